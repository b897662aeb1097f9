#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# True PT through the real AUX path, with stock perf as the recorder: what ptdecode reads in perf's files
# is what the guest's CPUs ran, instruction by instruction; and it is what perf reads there.
source "$(dirname "$0")/../integration/lib/common.sh"
source tests/integration/lib/perf.sh
set -o pipefail
need perf qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

cat >"$T/script" <<EOF
echo -1 >/proc/sys/kernel/perf_event_paranoid
softpt=/sys/kernel/debug/softpt
set -e
# The program is not a child of perf's, whose children have signals blocked.
record() { # NUMBER EVENT PROGRAM...
	echo \$1 >\$softpt/log
	perf record -q -o /out/\$1 -a --snapshot=e -m 4M,64M -e \$2 &
	perf=\$!
	until grep -q "on 1" \$softpt/cpu0/stats && grep -q "on 1" \$softpt/cpu1/stats; do
		sleep 0.1
	done
	shift 2
	"\$@" >/out/printed
	kill -INT \$perf
	wait \$perf || [ \$? = 130 ]
}
record 1 intel_pt//u guest.c -V 4
record 2 intel_pt/noretcomp,psb_period=0/u guest.c -V 2
record 3 intel_pt/cyc,mtc,mtc_period=3/u guest.c -V 2
record 4 intel_pt//u signals.c
cat >/tmp/overflow <<EOS
echo 1 | tee \$softpt/cpu0/stalled >\$softpt/cpu1/stalled
guest.c -V 60
echo 0 | tee \$softpt/cpu0/stalled >\$softpt/cpu1/stalled
guest.c -V 2
EOS
record 5 intel_pt//u sh /tmp/overflow
grep -H ring_overflows \$softpt/cpu*/stats
EOF
tests/guest/boot.sh -l "$T/log" -o "$T/out" "$T/script" /usr/bin/perf "$O"/targets/{guest,signals}.c 2>"$T/err" |
	tee "$T/printed" || { cat "$T/err" >&2; fail "the guest's script failed"; }
grep vcpu "$T/err"
grep -q "[1-9][0-9]* odd\|[1-9][0-9]* without" "$T/err" && fail "the plugin could not follow the CPUs"

for n in 1 2 3 4; do
	for engine in flow insn; do
		"$O/tools/exact" -e $engine "$T/out/$n" "$T/log/$n" >"$T/exact" || { cat "$T/exact"; fail "recording $n, engine $engine"; }
	done
	echo "recording $n: $(tail -1 "$T/exact")"
done
"$O/tools/pieces" -l "$T/out/5" "$T/log/5" >"$T/pieces" || { cat "$T/pieces"; fail "recording 5, with lost packets"; }
echo "recording 5: $(tail -1 "$T/pieces")"

# perf as judge. The fourth is for long runs.
for n in 1 2 3 ${PTD_LONG:+4}; do
	judge "recording $n" "$T/out/$n"
done
expects_gaps=yes judge "recording 5" "$T/out/5"
judged
