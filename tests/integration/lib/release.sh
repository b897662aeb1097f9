# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share that try another Debian release; they source it after common.sh. It is a root directory with
# a clone of this tree in /ptd, and not a chroot, in which there are no user namespaces and live processes of others
# have the numbers of recorded ones.

# The mirror that this machine has its packages from.
mirror_here() {
	apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | head -n 1
}

# make_root RELEASE: a minimal Debian of that release in $T/root.
make_root() {
	need mmdebstrap git unshare pivot_root
	[[ $EUID -eq 0 ]] || skip "another root directory needs root"
	[[ -z ${PTD_ASAN:-} ]] || skip "the release has a build of its own"
	mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io --include=git,make,ca-certificates "$1" "$T/root" "$(mirror_here)" \
		>"$T/debootstrap" 2>&1 || skip "no Debian to try it in: $(tail -n 1 "$T/debootstrap")"
	git clone -q . "$T/root/ptd" || fail "git clone"
	echo "$1: $(cat "$T/root/etc/debian_version"), $(git -C "$T/root/ptd" log --oneline -n 1)"
}

# inside COMMAND: a shell command in the clone, in that root and in PID and mount namespaces of its own.
inside() {
	unshare --mount --pid --ipc --uts --fork --kill-child --propagation private bash -c '
		cd "$1" && mount --bind . . && cd "$1" && mkdir -p old && mount -t proc proc proc && mount --rbind /sys sys &&
			mount --rbind /dev dev && mount -t tmpfs tmpfs dev/shm && pivot_root . old && umount -l /old && cd /ptd &&
			exec env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 bash -c "$2"' \
		- "$T/root" "$1"
}
