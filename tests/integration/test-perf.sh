#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# perf as judge: `perf script --itrace=i1i` on a snapshot lists, per thread, the instructions that
# were logged while it was recorded.
. "$(dirname "$0")/common.sh"
need qemu-x86_64 perf
[[ -z ${PTD_ASAN:-} ]] || skip "perf is not built with sanitizers"

judge() {
	local name=$1 thread n
	shift
	start_ptd
	record "$name" "$@"
	n=$("$O/tools/emulog" "$T/$name.log" | awk '{ n += $2 } END { print n }')
	[[ $n -gt 0 ]] || fail "$name: nothing was logged"
	[[ $n -le 100000000 ]] || fail "$name: $n instructions are too many for perf"
	perf script -i "$T/$name" --itrace=i1i -F pid,tid,ip --ns 2>"$T/perf.err" |
		"$O/tools/perf-addresses" "$T/$name.perf" || fail "$name: perf script: $(tail -3 "$T/perf.err")"
	[[ ! -s $T/perf.err ]] || { cat "$T/perf.err"; fail "$name: perf complains"; }
	for thread in $("$O/tools/emulog" "$T/$name.log" | cut -d' ' -f1); do
		"$O/tools/emulog" --compare "$T/$name.log" "$thread" <"$T/$name.perf/$thread" ||
			fail "$name: perf lists other instructions for thread $thread"
	done
	drop "$name"
}

judge true /bin/true
judge ls ls -lR /usr/include
judge python /usr/bin/python3 -c 'print(sum(range(100000)))'
