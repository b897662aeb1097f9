#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The golden cases that have records, decoded by perf: what the dlfilter lists of each thread is what perf script --itrace=i1i
# lists, with all that perf does otherwise than ptdecode.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/dlfilter.sh

# Cases in which that cannot be, with the number of instructions that differ: where perf learns of a switch between
# two branches, or code changes there, which the dlfilter is not told; and an eretu that perf takes for clac.
expected="bpf-code=3 insn-newer-over=15 poke=2 scope-kernel=4 switch-fault=2 switch-overflow=2 switch-proven=2"

mkdir "$T/golden"
"$O/tools/golden" -k "$T/golden" tests/golden/*.case >"$T/inputs" || fail "golden -k"
n_cases=0 n_insns=0 bad=
while read -r input; do
	name=$(basename "$(dirname "$input")")
	grep -q ^records "tests/golden/$name.case" || continue # perf lists one of the others without an end
	perf script -i "$input" --itrace=i1i -F pid,tid,event,ip >"$T/perf.txt" 2>"$T/perf.err"
	status=$? # of a file that perf gives up, not 0
	awk '$2 ~ /^instructions/ { print $1, $NF }' "$T/perf.txt" | sort -s -k1,1 >"$T/by-perf"
	filter "$input" "text -o $T/text" 2>"$T/err" || [[ $? == "$status" || ! -s $T/by-perf ]] ||
		{ cat "$T/err"; fail "$name: perf gives it up"; }
	awk '!/^#/ {
		for (i = 1; $i !~ /^[-0-9?]+\/[-0-9?]+$/; i++)
			;
		thread = $i
		while ($i !~ /:$/)
			i++
		print thread, $(i + 1)
	}' "$T/text" | sort -s -k1,1 >"$T/listed"
	differ=$(diff "$T/by-perf" "$T/listed" | grep -c '^[<>]')
	allowed=$(sed -nE "s/.*\b$name=([0-9]+).*/\1/p" <<<"$expected")
	[[ $differ == "${allowed:-0}" ]] || { diff "$T/by-perf" "$T/listed" | head; echo "$name: $differ instructions differ"; bad+=" $name"; }
	n_cases=$((n_cases + 1)) n_insns=$((n_insns + $(wc -l <"$T/listed")))
done <"$T/inputs"
echo "$n_cases golden cases, $n_insns instructions, as perf lists them but for those of $(wc -w <<<"$expected") cases"
[[ -z $bad ]] || fail "perf lists something else:$bad"
[[ $n_cases -gt 90 ]] || fail "$n_cases cases"
