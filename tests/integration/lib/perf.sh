# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share in which perf is the judge; they source it after common.sh.
n_judged=0 n_compared=0
fields=pid,tid,event,ip # a recording has samples of tracepoints, too

# judge NAME INPUT [N [SAME]]: each thread's list is perf's; but for N instructions. SAME: decode that,
# the same in another form.
judge() {
	local name=$1 input=$2 allowed=${3:-0} same=${4:-$2}
	perf script -i "$input" --itrace=i1i -F $fields --ns 2>"$T/perf.err" >"$T/perf.txt"
	judge_list "$name" "$same" "$allowed"
	[[ $allowed != 0 || ! -s $T/perf.err || -n ${expects_gaps:-} ]] || { cat "$T/perf.err"; fail "$name: perf complains"; }
}

# judge_list NAME INPUT N: the same of the list in $T/perf.txt. Of a snapshot, all is listed up to the end of each
# ring, as perf does; not only until the first ring was read.
judge_list() {
	local input=$2
	if [[ -d $2 ]]; then
		input=$T/rings
		to_the_ends "$2" "$input"
	fi
	"$O/tools/perf-judge" -d "$3" "$input" <"$T/perf.txt" >"$T/judged" ||
		{ cat "$T/judged"; head -3 "$T/perf.err"; fail "$1: perf lists other instructions"; }
	add "$1"
	rm -rf "$T/perf.txt" "$T/rings"
}

# to_the_ends DIRECTORY COPY: a copy (of links) that does not say until when all rings are complete; only snapshots of
# ptd do. The judge passes over hashes.
to_the_ends() {
	cp -al "$1" "$2"
	[[ ! -e $2/manifest ]] || sed -i '/^complete_until_ns=/d' "$2/manifest"
}

add() { # NAME: of what was judged
	echo "$1: $(tail -1 "$T/judged")"
	n_compared=$((n_compared + 1))
	n_judged=$((n_judged + $(sed -nE '$s/.* ([0-9]+) instructions equal.*/\1/p' "$T/judged")))
}

# judge_kernel NAME DIRECTORY: of a guest, with its kernel's code, which is compared for each CPU.
# perf is told what the guest's CPUID does not say, so that MTC packets tell it the time. Else it
# knows only what few TSC packets tell, and loses what a CPU ran from the next switch of threads on
# (tests/perf-defects: context).
judge_kernel() {
	local name=$1 told=$T/told
	to_the_ends "$2" "$told"
	rm "$told/data"
	"$O/tools/reshape" ctc=40 "$2/data" "$told/data" || fail "reshape"
	perf --buildid-dir "$told/objects" script -i "$told" --itrace=i1i -F pid,tid,cpu,ip --ns \
		2>"$T/perf.err" |
		"$O/tools/perf-judge" -k "$told" >"$T/judged" ||
		{ cat "$T/judged"; head -3 "$T/perf.err"; fail "$name: perf lists other instructions"; }
	[[ ! -s $T/perf.err ]] || { cat "$T/perf.err"; fail "$name: perf complains"; }
	add "$name"
	rm -r "$told"
}

# judge_record NAME CMD...: of a program, in the recorder that runs.
judge_record() {
	local name=$1
	shift
	record "$name" "$@"
	judge "$name" "$T/$name"
	drop "$name"
}

# still_differs NAME: what was judged last is a known defect of perf's, which shows.
still_differs() {
	! grep -q ", 0 only here, 0 only of perf," "$T/judged" || fail "$1: perf does not do it wrong"
}

# judged: how much there was in all.
judged() {
	echo "$n_compared comparisons: $n_judged instructions as perf lists them"
	[[ $n_judged -gt 0 ]] || fail "that is nothing"
}
