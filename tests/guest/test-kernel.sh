#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Kernel code, with stock perf as the recorder: all that the guest's CPUs ran, its user code per thread
# and its kernel code per CPU, is what they did, instruction by instruction; the system calls of a
# program are found by the names of kallsyms.
source "$(dirname "$0")/../integration/common.sh"
set -o pipefail
need perf qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

cat >"$T/script" <<EOF
echo -1 >/proc/sys/kernel/perf_event_paranoid
echo 0 >/proc/sys/kernel/kptr_restrict
set -e
record() { # NUMBER EVENT
	echo \$1 >/sys/kernel/debug/softpt/log
	perf record -q -o /out/\$1 -a --kcore --snapshot=e -m,32M -e \$2 calls.c >>/out/pids
}
record 1 intel_pt//
record 2 intel_pt/cyc,noretcomp,psb_period=0/
record 3 intel_pt//k
EOF
tests/guest/boot.sh -l "$T/log" -o "$T/out" "$T/script" /usr/bin/perf "$O/targets/calls.c" 2>"$T/err" ||
	{ cat "$T/err" >&2; fail "the guest's script failed"; }
grep vcpu "$T/err"
grep -q "[1-9][0-9]* odd\|[1-9][0-9]* without" "$T/err" && fail "the plugin could not follow the CPUs"

for n in 1 2 3; do
	for engine in block insn; do
		"$O/tools/exact" -e $engine "$T/out/$n" "$T/log/$n" >"$T/exact" || { cat "$T/exact"; fail "recording $n, engine $engine"; }
	done
	echo "recording $n: $(tail -1 "$T/exact")"
done

# Each of its 1000 calls, and those that it made to start and to end.
pid=$(head -1 "$T/out/pids")
calls=$("$O/ptdecode" --cpuid-15 1/40 -f text "$T/out/1" | grep -c "  $pid/$pid .* entry_SYSCALL_64+0x0 (\[kernel")
echo "$calls system calls"
[[ $calls -ge 1000 && $calls -lt 1200 ]] || fail "there should be 1000 and some"
