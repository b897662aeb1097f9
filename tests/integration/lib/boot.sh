#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# boot.sh DIR: this machine's own /usr, with systemd as PID 1, in namespaces. No disk image, no guest;
# it is up after some seconds.
#
# DIR/usr is laid over /usr, read-only, and DIR/etc is copied over a fresh /etc: what is there is as if
# it had been installed. The rest is empty and in memory, and nothing gets out: /proc/sys is read-only,
# the network is a loopback, and all control groups are under one of our own.
#
# DIR/pid is systemd's process as seen from here, DIR/systemd.log what it says. It runs until that
# process, or this script, is killed; then nothing of it is left. Exit status 77 if it cannot be done
# here, with the reason on stdout.
set -u
dir=$1
root=$dir/root

# In the namespaces: make the root, become systemd.
if [[ ${2:-} == inside ]]; then
	set -e
	mount -t tmpfs -o mode=755 root "$root"
	cd "$root"
	mkdir -p dev etc home proc root run sys tmp usr var/{cache,lib,log,tmp}
	mount -t overlay -o "lowerdir=$dir/usr:/usr" overlay usr
	for link in bin sbin lib lib32 lib64 libx32; do
		[[ ! -L /$link ]] || cp -P "/$link" .
	done
	mount -t proc proc proc
	mount --bind proc/sys proc/sys
	mount -o remount,bind,ro proc/sys
	mount -t sysfs -o ro sysfs sys
	mount -t cgroup2 cgroup2 sys/fs/cgroup
	mount -t tmpfs -o mode=755 run run
	mount -t tmpfs -o mode=1777 tmp tmp
	mount -t tmpfs -o mode=755 dev dev
	for device in null zero full random urandom tty; do
		: >dev/$device
		mount --bind /dev/$device dev/$device
	done
	mkdir dev/pts dev/shm
	mount -t devpts -o newinstance,ptmxmode=666 devpts dev/pts
	ln -s pts/ptmx dev/ptmx
	ln -s /proc/self/fd dev/fd
	for file in passwd group nsswitch.conf ld.so.cache ld.so.conf ld.so.conf.d os-release alternatives; do
		[[ ! -e /etc/$file ]] || cp -a "/etc/$file" etc/
	done
	: >etc/machine-id
	mkdir -p etc/systemd/system
	# What is not needed, or wants a bus or hardware.
	for unit in systemd-logind.service dbus.service dbus.socket getty.target dev-hugepages.mount \
		sys-kernel-{debug,tracing,config}.mount sys-fs-fuse-connections.mount; do
		ln -s /dev/null etc/systemd/system/$unit
	done
	cp -r "$dir/etc/." etc/
	# /proc is still the outer one, so this is the process as it is known there.
	read -r pid _ </proc/self/stat
	echo "$pid" >"$dir/pid"
	exec env -i container=namespaces PATH=/usr/sbin:/usr/bin chroot . /lib/systemd/systemd \
		--unit=multi-user.target --show-status=no --log-target=journal
fi

cannot() {
	echo "$*"
	exit 77
}

[[ $(id -u) == 0 ]] || cannot "namespaces with systemd in them take root"
[[ -x /lib/systemd/systemd ]] || cannot "systemd is not installed"
mkdir -p "$root" "$dir"/{usr,etc,cgroup}
rm -f "$dir/pid"

# A namespace of mounts for this script itself, so that none of them is left; and it shall not outlive
# who started it.
if [[ ${2:-} != mounted ]]; then
	unshare --mount true 2>"$dir/error" || cannot "no namespace can be made: $(cat "$dir/error")"
	exec unshare --mount --propagation private setpriv --pdeathsig TERM "$0" "$dir" mounted
fi

unshare -fpuinC true 2>"$dir/error" || cannot "no namespace can be made: $(cat "$dir/error")"
mount -t overlay -o "lowerdir=$dir/usr:/usr" overlay "$root" 2>"$dir/error" ||
	cannot "/usr cannot be overlaid: $(cat "$dir/error")"
umount "$root"
mount -t cgroup2 cgroup2 "$dir/cgroup" 2>"$dir/error" ||
	cannot "no cgroup2: $(cat "$dir/error")"
was=$dir/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)
own=$was/ptd-test-$$
{ mkdir "$own" && echo $$ >"$own/cgroup.procs"; } 2>"$dir/error" ||
	cannot "no control group can be made: $(cat "$dir/error")"

unshare -fmpuinC --kill-child "$0" "$dir" inside >"$dir/systemd.log" 2>&1 </dev/null &
trap 'kill -KILL $!' TERM INT
# The first may be cut short by the trap.
{ wait $!; wait $!; } 2>/dev/null
echo $$ >"$was/cgroup.procs"
# What the kernel is still taking apart.
for _ in {1..6000}; do
	find "$own" -depth -type d -exec rmdir {} + 2>/dev/null
	[[ -d $own ]] || exit 0
	sleep 0.05
done
echo "control groups are left: $(find "$own" -type d)"
exit 1
