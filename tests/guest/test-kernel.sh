#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Kernel code, with stock perf as the recorder: all that the guest's CPUs ran, its user code per thread
# and its kernel code per CPU, is what they did, instruction by instruction; the system calls of a
# program are found by the names of kallsyms; and perf lists the same instructions. With ALL=1 also without
# user code, and with ptd as the recorder.
source "$(dirname "$0")/../integration/common.sh"
source tests/integration/perf.sh
set -o pipefail
need perf qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

{
	cat tests/guest/recorder.sh
	echo "all=${ALL:-}"
	cat <<'EOF'
echo -1 >/proc/sys/kernel/perf_event_paranoid
echo 0 >/proc/sys/kernel/kptr_restrict
record() { # NUMBER EVENT
	echo $1 >$softpt/log
	perf record -q -o /out/$1 -a --kcore --snapshot=e -m,32M -e $2 calls.c >>/out/pids || fail "perf $1"
}
record 1 intel_pt//
[ -n "$all" ] || exit 0
record 2 intel_pt/cyc,noretcomp,psb_period=0/k

# ptd need not record its own start.
echo 3 >$softpt/log
start_told Trace=all AuxSize=32M SwitchSize=4M $few_mtc
calls.c >>/out/pids
snapshot 3
stop
EOF
} >"$T/script"
tests/guest/boot.sh -t 600 -l "$T/log" -o "$T/out" "$T/script" /usr/bin/perf "$O/ptd" "$O/ptctl" \
	"$O/targets/calls.c" 2>"$T/err" || { cat "$T/err" >&2; fail "the guest's script failed"; }
grep vcpu "$T/err"
grep -q "[1-9][0-9]* odd\|[1-9][0-9]* without" "$T/err" && fail "the plugin could not follow the CPUs"

compare() { # NUMBER
	for engine in flow insn; do
		"$O/tools/exact" -e $engine "$T/out/$1" "$T/log/$1" >"$T/exact" ||
			{ cat "$T/exact"; fail "recording $1, engine $engine"; }
	done
	echo "recording $1: $(tail -1 "$T/exact")"
}

# Each of its 1000 calls, and those that it made to start and to end.
count() { # PID INPUT
	local calls
	calls=$("$O/ptdecode" --cpuid-15 1/40 -f text "$2" | grep -c "  $1/$1 .* entry_SYSCALL_64+0x0 (\[kernel")
	echo "$calls system calls of $1"
	[[ $calls -ge 1000 && $calls -lt 1200 ]] || fail "there should be 1000 and some"
}

compare 1
"$O/tools/cuts" "$T/out/1" || fail "recording 1: cuts"
count "$(sed -n 1p "$T/out/pids")" "$T/out/1"
judge_kernel "recording 1" "$T/out/1"
[[ -n ${ALL:-} ]] || exit 0
compare 2
judge_kernel "recording 2" "$T/out/2"
"$O/tools/pieces" "$T/out/3" "$T/log/3" >"$T/pieces" || { cat "$T/pieces"; fail "ptd's snapshot"; }
echo "ptd's snapshot: $(tail -1 "$T/pieces")"
count "$(sed -n 3p "$T/out/pids")" "$T/out/3"
judge_kernel "ptd's snapshot" "$T/out/3"
judged
