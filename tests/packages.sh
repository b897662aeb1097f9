#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Install those of the named Debian packages that are missing. Says which, asks nothing.
missing=
for p; do
	dpkg-query -W -f '${db:Status-Status}\n' "$p" 2>/dev/null | grep -qx installed || missing="$missing $p"
done
[ -n "$missing" ] || exit 0

as_root=
[ "$(id -u)" = 0 ] || as_root=sudo
log=$(mktemp) || exit 1
echo "Installing packages:$missing"
{ $as_root apt-get update -q && DEBIAN_FRONTEND=noninteractive $as_root \
	apt-get install -qy --no-install-recommends $missing; } >"$log" 2>&1 || {
	tail -20 "$log"
	echo "packages: cannot install:$missing (the whole log: $log)" >&2
	exit 1
}
rm -f "$log"
