#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Speed, as ratios: ours against a peer, both measured in this run on this machine. Each is the best of
# three, but for perf, which is run once: it is slow, and evenly so.
. "$(dirname "$0")/../integration/common.sh"
need qemu-x86_64 perf

# best N CMD...: nanoseconds of the fastest of N runs.
best() {
	local i start t n=$1 best=
	shift
	for ((i = 0; i < n; i++)); do
		start=$(date +%s%N)
		"$@" >/dev/null 2>&1 || fail "$*"
		t=$(($(date +%s%N) - start))
		[[ -n $best && $best -lt $t ]] || best=$t
	done
	echo "$best"
}

# row WHAT INSTRUCTIONS OURS PEER NAME
row() {
	awk -v what="$1" -v n="$2" -v ours="$3" -v peer="$4" -v name="$5" 'BEGIN {
		printf "%-34s %8.1f M/s   %8.1f M/s %-28s %6.2f x\n", what, n * 1e3 / ours,
			n * 1e3 / peer, name, peer / ours }'
}

record_again() {
	rm -rf "$T/again"
	"$O/ptctl" record -o "$T/again" -- "${work[@]}"
}

work=(/usr/bin/python3 -I -S -c 'print(sum(i * i for i in range(20000)))')
start_ptd
record work "${work[@]}"
n=$("$O/tools/emulog" "$T/work.log" | awk '{ n += $2 } END { printf "%.0f\n", n }')
echo "$n instructions of python3, $(stat -c %s "$T/work/data") bytes of perf.data"
printf '%-34s %12s   %12s %-28s %8s\n' '' ours peer '' ratio

row "record (software source)" "$n" "$(best 3 record_again)" "$(best 3 qemu-x86_64 "${work[@]}")" \
	"qemu-x86_64, not recorded"
script() {
	perf script -i "$T/work" --itrace=i1i -F "$1"
}
perf_ip=$(best 1 script ip)
perf_text=$(best 1 script comm,tid,cpu,time,ip,sym,dso)
for engine in flow insn; do
	row "addresses, engine $engine" "$n" "$(best 3 "$O/ptdecode" -e $engine -f addresses "$T/work")" \
		"$perf_ip" "perf script -F ip"
done
row text "$n" "$(best 3 "$O/ptdecode" -f text "$T/work")" "$perf_text" "perf script with symbols"
row summary "$n" "$(best 3 "$O/ptdecode" -f summary "$T/work")" "$perf_text" "perf script with symbols"
rm -rf "$T/mem"
drmemtrace() {
	rm -rf "$T/mem"
	"$O/ptdecode" -f drmemtrace -o "$T/mem" "$T/work"
}
row drmemtrace "$n" "$(best 3 drmemtrace)" "$perf_ip" "perf script -F ip"
tests/bench/gap.sh
tests/bench/idle.sh
