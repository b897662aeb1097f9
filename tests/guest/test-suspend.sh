#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The guest is suspended to memory and woken by its clock: ptd says so and records anew on every CPU;
# what is snapshotted then is what was written since, and nothing older.
source "$(dirname "$0")/../integration/lib/common.sh"
set -o pipefail
need qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

cat tests/guest/recorder.sh - >"$T/script" <<'EOF'
play() { # BYTES, on both CPUs
	printf "$1" >$softpt/cpu0/play
	printf "$1" >$softpt/cpu1/play
}
start AuxSize=64K
play before--
snapshot before
echo +3 >/sys/class/rtc/rtc0/wakealarm
echo mem >/sys/power/state || fail "cannot be suspended"
wait_for log_has "the machine was suspended: recording anew"
wait_for grep -q "^on 1" $softpt/cpu0/stats
wait_for grep -q "^on 1" $softpt/cpu1/stats
play after---
snapshot after
ptctl status
stop
cat /out/ptd.log
EOF
tests/guest/boot.sh -o "$T/out" "$T/script" "$O/ptd" "$O/ptctl" | tee "$T/log" ||
	fail "the guest's script: exit status $?"
grep -q "Source: pt, recording" "$T/log" || fail "it does not record"
for name in before after; do
	for cpu in 0 1; do
		"$O/tools/auxbytes" "$T/out/$name" $cpu >"$T/bytes" 2>/dev/null || fail "$name: cannot be read"
		printf %-8s $name | tr ' ' - | cmp - "$T/bytes" || fail "$name: other bytes of CPU $cpu"
	done
	(cd "$T/out/$name" && sha256sum --quiet -c SHA256SUMS) || fail "$name: sums"
done
echo "suspended once, what was written before and after it equal on both CPUs"
