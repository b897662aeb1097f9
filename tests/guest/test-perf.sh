#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The control of all tests in the guest: stock perf takes the module's PMU for intel_pt, and what it
# records is what the module played, in all its ways of recording.
source "$(dirname "$0")/../integration/lib/common.sh"
set -o pipefail
need perf qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

head -c 3000000 /dev/urandom >"$T/played"
cat >"$T/script" <<EOF
play=/sys/kernel/debug/softpt/cpu1/play
echo -1 >/proc/sys/kernel/perf_event_paranoid
set -e
record() { # NAME BYTES OPTION...
	echo "head -c \$2 $T/played >\$play" >/tmp/workload
	out=/out/\$1
	shift 2
	perf record -q -o \$out -a "\$@" sh /tmp/workload
}
record short 100000 -e intel_pt//u --snapshot=e
record wrapped 300000 -e intel_pt//u --snapshot=e -m,64K
record full 3000000 -e intel_pt// -m,4M
cat /sys/kernel/debug/softpt/cpu1/stats
EOF
tests/guest/boot.sh -o "$T/out" "$T/script" "$T/played" /usr/bin/perf | tee "$T/log" ||
	fail "the guest's script: exit status $?"
grep -Eq "^interrupts [1-9]" "$T/log" || fail "the full trace never interrupted"
grep -qx "dropped 0" "$T/log" || fail "the module dropped bytes"

# check NAME BYTES KEPT: the last KEPT of the first BYTES that were played are there.
check() {
	"$O/tools/auxbytes" "$T/out/$1" 1 >"$T/bytes" || fail "$1: cannot be read"
	head -c "$2" "$T/played" | tail -c "$3" | cmp - "$T/bytes" || fail "$1: other bytes"
	echo "$1: $3 bytes equal"
}
check short 100000 100000
check wrapped 300000 65536
check full 3000000 3000000
