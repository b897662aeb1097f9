# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share in which perf is the judge; they source it after common.sh.
n_judged=0
fields=pid,tid,ip

# judge NAME INPUT [N [SAME]]: each thread's list is perf's; but for N instructions. SAME: decode that,
# the same in another form.
judge() {
	local name=$1 input=$2 allowed=${3:-0} same=${4:-$2}
	perf script -i "$input" --itrace=i1i -F $fields --ns 2>"$T/perf.err" >"$T/perf.txt"
	judge_list "$name" "$same" "$allowed"
	[[ $allowed != 0 || ! -s $T/perf.err || -n ${expects_gaps:-} ]] || { cat "$T/perf.err"; fail "$name: perf complains"; }
}

# judge_list NAME INPUT N: the same of the list in $T/perf.txt.
judge_list() {
	"$O/tools/perf-judge" -d "$3" "$2" <"$T/perf.txt" >"$T/judged" ||
		{ cat "$T/judged"; head -3 "$T/perf.err"; fail "$1: perf lists other instructions"; }
	echo "$1: $(tail -1 "$T/judged")"
	n_judged=$((n_judged + $(sed -nE '$s/.* ([0-9]+) instructions equal.*/\1/p' "$T/judged")))
	rm "$T/perf.txt"
}

# judge_record NAME CMD...: of a program, in the recorder that runs.
judge_record() {
	local name=$1
	shift
	record "$name" "$@"
	judge "$name" "$T/$name"
	drop "$name"
}

# judged: how many instructions there were in all.
judged() {
	echo "$n_judged instructions as perf lists them"
	[[ $n_judged -gt 0 ]] || fail "that is nothing"
}
