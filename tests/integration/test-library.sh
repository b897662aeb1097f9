#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The library as others use it, from nothing but what "make install" puts into a directory.
. "$(dirname "$0")/common.sh"
[[ -z ${PTD_ASAN:-} ]] || skip "a sanitized library needs the sanitizer in each program that loads it"
need pkg-config nm

D=$T/dest
prefix=/opt/ptd
make -s install O="$O" VERSION=dev DESTDIR="$D" prefix=$prefix >"$T/install.log" 2>&1 || fail "$(cat "$T/install.log")"
export PKG_CONFIG_LIBDIR=$D$prefix/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=$D
lib=$D$prefix/lib

echo "--- names"
# all_ours WHAT: the names on standard input begin with ptd_.
all_ours() {
	awk -v what="$1" '
		$2 == "A" { next } # the version itself
		$NF ~ /^ptd_/ { n++ }
		$NF !~ /^ptd_/ { print what " has " $NF; bad = 1 }
		END { print what ": " n + 0 " names, all ptd_*"; exit bad || n < 10 }' || fail "$1 has names of others"
}
nm -D --defined-only "$lib/libptdecode.so" | sed 's/@.*//' | all_ours libptdecode.so
nm --defined-only --extern-only "$lib/libptdecode.a" | grep ' ' | all_ours libptdecode.a
[[ $(readelf -d "$lib/libptdecode.so") == *"soname: [libptdecode.so.0]"* ]] || fail "the soname"
