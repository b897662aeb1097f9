#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Kernel code that changes while it is recorded: branches are switched, functions are traced and probed, and
# all of it is undone again. What the guest's CPUs ran is what they did, instruction by instruction: with perf as
# the recorder, which copies the kernel before, and with ptd, which copies it after.
source "$(dirname "$0")/../integration/lib/common.sh"
set -o pipefail
need perf qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

{
	cat tests/guest/recorder.sh
	cat <<'EOF2'
echo -1 >/proc/sys/kernel/perf_event_paranoid
echo 0 >/proc/sys/kernel/kptr_restrict
mount -t tracefs tracefs /sys/kernel/tracing || fail "no tracefs"
cat >/root/changes <<'EOF3'
cd /sys/kernel/tracing
calls.c
echo 1 >/proc/sys/kernel/sched_schedstats
echo ksys_read ksys_write >set_ftrace_filter
echo function >current_tracer
echo 'p:probe do_nanosleep' >kprobe_events
echo 1 >events/kprobes/probe/enable
calls.c
echo 0 >events/kprobes/probe/enable
echo >kprobe_events
echo nop >current_tracer
echo 0 >/proc/sys/kernel/sched_schedstats
calls.c
EOF3
echo 1 >$softpt/log
perf record -q -o /out/1 -a --kcore --snapshot=e -m,64M -e intel_pt//k sh -e /root/changes >/out/pids || fail "perf"
echo 2 >$softpt/log
start_told Trace=all AuxSize=64M SwitchSize=4M
sh -e /root/changes || fail "changes"
snapshot 2
stop
EOF2
} >"$T/script"
tests/guest/boot.sh -t 1500 -l "$T/log" -o "$T/out" "$T/script" /usr/bin/perf "$O/ptd" "$O/ptctl" \
	"$O/targets/calls.c" 2>"$T/err" || { cat "$T/err" >&2; fail "the guest's script failed"; }
grep vcpu "$T/err"
grep -q "[1-9][0-9]* odd\|[1-9][0-9]* without" "$T/err" && fail "the plugin could not follow the CPUs"
for n in 1 2; do
	pokes=$(perf script -i "$T/out/$n" --show-text-poke-events --itrace=i0ns 2>/dev/null | grep -ac TEXT_POKE)
	echo "recording $n: $pokes changes of the kernel's code"
	[[ $pokes -ge 100 ]] || fail "there should be more"
done
for engine in flow insn; do
	"$O/tools/exact" -e $engine "$T/out/1" "$T/log/1" >"$T/exact" ||
		{ cat "$T/exact"; fail "perf's recording, engine $engine"; }
done
echo "perf's recording: $(tail -1 "$T/exact")"
"$O/tools/pieces" "$T/out/2" "$T/log/2" >"$T/pieces" || { cat "$T/pieces"; fail "ptd's snapshot"; }
echo "ptd's snapshot: $(tail -1 "$T/pieces")"
