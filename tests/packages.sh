#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Install those of the named Debian packages that are missing. Says which, asks nothing. In a name, %clang% stands for
# the version of the release's clang, and %newest% for the newest one that there is.

# named NAME: the package's name in this release.
named() {
	case $1 in
	*%clang%*)
		version=$(apt-cache depends clang | sed -nE 's/.*Depends: clang-([0-9]+)$/\1/p' | head -n 1)
		echo "$1" | sed "s/%clang%/$version/"
		;;
	*%newest%*)
		pattern=$(echo "$1" | sed 's/%newest%/[0-9][0-9]*/')
		apt-cache pkgnames "${1%%%*}" | grep -x "$pattern" | sort -V | tail -1
		;;
	*) echo "$1" ;;
	esac
}

as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
# A machine that never asked for them has no lists of packages.
case $* in
*%*) apt-cache show clang >/dev/null 2>&1 || $as_root apt-get update -q >/dev/null ;;
esac
missing=
for p; do
	p=$(named "$p")
	dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

log=$(mktemp) || exit 1
echo "Installing packages:$missing"
{ $as_root apt-get update -q && DEBIAN_FRONTEND=noninteractive $as_root \
	apt-get install -qy --no-install-recommends $missing; } >"$log" 2>&1 || {
	tail -20 "$log"
	echo "packages: cannot install:$missing (the whole log: $log)" >&2
	exit 1
}
rm -f "$log"
