#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The Debian packages: built twice, elsewhere and in another environment, they are the same byte by byte; lintian has
# no error or warning; in a bare Debian they are installed, record and decode, and are removed without a trace.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/release.sh
need dpkg-buildpackage dh lintian mmdebstrap unshare
[[ $EUID -eq 0 ]] || skip "a chroot needs root"
[[ -z ${PTD_ASAN:-} ]] || skip "packages are built without sanitizers"
. /etc/os-release
[[ ${VERSION_CODENAME:-} == bookworm ]] || skip "the packages are for Debian 12"

echo "--- built twice"
make -s deb O="$T/a" >"$T/a.log" 2>&1 || { tail -n 20 "$T/a.log"; fail "make deb"; }
(umask 077 && TZ=Asia/Tokyo LC_ALL=C.UTF-8 HOME=$T make -s deb O="$T/another/place" >"$T/b.log" 2>&1) ||
	{ tail -n 20 "$T/b.log"; fail "make deb, elsewhere"; }
for deb in "$T"/a/deb/*.deb; do
	cmp "$deb" "$T/another/place/deb/${deb##*/}" || fail "${deb##*/} was built otherwise"
done
(cd "$T/a/deb" && sha256sum -- *.deb)

echo "--- lintian"
lintian --allow-root --fail-on error,warning "$T"/a/deb/*.changes || fail "lintian"

echo "--- a bare Debian with what they depend on"
rm "$T"/a/deb/*-dbgsym*
depends=$(for deb in "$T"/a/deb/*.deb; do dpkg-deb -f "$deb" Depends; done | tr ',' '\n' |
	sed -E 's/\|.*//; s/\(.*//; s/ //g; /^(lib)?ptdecode/d' | sort -u | paste -sd,)
root=$T/root
mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io --include="$depends,qemu-user,gcc,libc6-dev,pkg-config" bookworm "$root" "$(mirror_here)" >"$T/debootstrap" 2>&1 ||
	skip "no Debian to install them in: $(tail -n 1 "$T/debootstrap")"
inside() { unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' "$root" "$@"; }
# What is there: files, their owners, modes and links, and users; but for what dpkg itself keeps.
list() {
	(cd "$root" && find . -xdev \( -path ./proc -o -path ./run -o -path ./var/lib/dpkg -o -path ./var/log -o -path ./var/cache \) -prune \
		-o -printf '%p %u %g %m %l\n' | grep -vE '^\./(etc|tmp) |^\./etc/(passwd|group|shadow|gshadow)-|^\./etc/\.pwd' | sort)
	cat "$root"/etc/{passwd,group}
}
list >"$T/before"

echo "--- installed"
unset PTD_EMU_SO # the plugin that is installed is to be found
mkdir "$root/debs" && cp "$T"/a/deb/*.deb "$root/debs"
inside sh -c 'dpkg -i /debs/*.deb' >"$T/dpkg" 2>&1 || { tail "$T/dpkg"; fail "dpkg -i"; }
[[ $(inside stat -c '%U %G %a' /var/lib/ptd) == "ptd ptd 750" ]] || fail "no state directory"
for user in ptd ptd-collector; do
	inside getent passwd "$user" >/dev/null || fail "there is no user $user"
done
grep -qx /etc/ptd/ptd.conf "$root/var/lib/dpkg/info/ptd.conffiles" || fail "ptd.conf is no conffile"
[[ -z $(find "$root/etc/systemd" -name 'ptd*') ]] || fail "a unit was enabled"
for unit in ptd.service ptd.socket ptd-metrics.socket; do
	[[ $(inside systemctl is-enabled "$unit") == disabled ]] || fail "$unit is not disabled"
done
for script in record build; do
	cp "debian/tests/$script" "$root/debs"
	timeout 300 unshare --mount --pid --fork --kill-child sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"' \
		"$root" "/debs/$script" >"$T/$script" 2>&1 || { tail "$T/$script"; fail "debian/tests/$script"; }
done
grep '^Instructions' "$T/record"

echo "--- removed"
touch "$root/var/lib/ptd/left"
inside dpkg --purge ptd ptdecode libptdecode-dev libptdecode0 >"$T/dpkg" 2>&1 || { tail "$T/dpkg"; fail "dpkg --purge"; }
rm -r "$root/debs"
list >"$T/after"
diff "$T/before" "$T/after" || fail "that was left, or changed"
echo ok
