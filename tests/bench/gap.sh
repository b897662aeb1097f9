#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# For how long a snapshot keeps tracing off, measured by the module that stands in for the hardware in the
# guest: ptd's, of small and of large rings, against perf record --snapshot's of the same large ones. All
# rings are full. The median of three of each. The guest's one CPU takes 1 ns for each instruction, so that
# it does not matter what else this machine does.
. "$(dirname "$0")/../integration/lib/common.sh"
need perf qemu-system-x86_64 busybox cpio
tests/guest/kernel.sh "$O" || exit

cat tests/guest/recorder.sh - >"$T/script" <<'EOF'
rate() {
	echo $1 >$softpt/cpu0/rate
}
fill() { # MIB
	rate 400000
	written=$(sed -n 's/^written //p' $softpt/cpu0/stats)
	until [ $(sed -n 's/^written //p' $softpt/cpu0/stats) -gt $((written + ($1 << 20))) ]; do
		sleep 0.5
	done
	rate 2000
}
# measure WHO COMMAND...: how long the CPU is off because of it
measure() {
	who=$1
	shift
	for i in 1 2 3; do
		echo 0 >$softpt/cpu0/stats
		"$@" || fail "$*"
		echo "$who $(sed -n 's/^gap_ns //p' $softpt/cpu0/stats)" >>/out/gaps
	done
}
with_ptd() {
	id=$(ptctl snapshot 2>/dev/null) && rm -r /out/state/snapshots/$id
}
with_perf() {
	rm -f /tmp/perf.data.*
	kill -USR2 $perf
	# The gap is counted when tracing is on again.
	until grep -q '^gaps [1-9]' $softpt/cpu0/stats; do
		sleep 0.2
	done
	sleep 1
}
for size in 1 64; do
	start AuxSize=${size}M
	fill $size
	measure ptd$size with_ptd
	stop
done
echo -1 >/proc/sys/kernel/perf_event_paranoid
perf record -q -o /tmp/perf.data -e intel_pt//u -a --snapshot --switch-output -m,64M 2>/out/perf.log &
perf=$!
wait_for grep -q "^on 1" $softpt/cpu0/stats
fill 64
measure perf64 with_perf
kill -INT $perf
wait $perf
rm -f /tmp/perf.data*
EOF
CPUS=1 ACCEL=tcg,thread=single MEMORY=3072 tests/guest/boot.sh -t 600 -q -icount -q shift=0,sleep=off -o "$T/out" \
	"$T/script" "$O/ptd" "$O/ptctl" /usr/bin/perf >"$T/log" 2>&1 ||
	{ cat "$T/log"; fail "the guest's script"; }

median() {
	awk -v who="$1" '$1 == who { print $2 }' "$T/out/gaps" | sort -n | awk '{ a[NR] = $1 } END { print a[int((NR + 1) / 2)] }'
}
ours=$(median ptd64) small=$(median ptd1) perfs=$(median perf64)
awk -v ours="$ours" -v small="$small" -v perfs="$perfs" 'BEGIN {
	printf "%-34s %8.4f ms   %8.4f ms  %-28s %6.2f x\n", "tracing off, snapshot of 64 MiB", ours / 1e6, perfs / 1e6,
		"perf record --snapshot", perfs / ours
	printf "%-34s %8.4f ms   %8.4f ms  %-28s %6.2f x\n", "tracing off, snapshot of 64 MiB", ours / 1e6, small / 1e6,
		"the same of 1 MiB", small / ours }'
