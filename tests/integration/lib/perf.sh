# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What the scripts share in which perf is the judge; they source it after common.sh.
n_judged=0 n_compared=0 n_times=0 n_estimates=0
fields=pid,tid,cpu,time,event,ip # a recording has samples of tracepoints, too

# perf_list INPUT: what perf lists of it, with times if it has them; of a golden case, the first $most lines.
perf_list() {
	script "$1" $fields || script "$1" "${fields/,cpu,time/}"
}

script() { # INPUT FIELDS
	perf script -i "$1" --itrace=i1i -F "$2" --ns 2>"$T/perf.err" | head -n "${most:--0}" >"$T/perf.txt"
	[[ ${PIPESTATUS[0]} -eq 0 || ${PIPESTATUS[0]} -eq $((128 + $(kill -l PIPE))) ]]
}

# judge NAME INPUT [N [SAME]]: each thread's list is perf's; but for N instructions. SAME: decode that,
# the same in another form. Of an input with CYC packets, also as it is without them.
judge() {
	local name=$1 input=$2 allowed=${3:-0} same=${4:-$2} uncycled=
	[[ $same != "$input" ]] || ! remove_cycles "$input" "$T/uncycled" || uncycled=$T/uncycled
	perf_list "$input"
	judge_list "$name" "$same" "$allowed" "$uncycled"
	[[ $allowed != 0 || ! -s $T/perf.err || -n ${expects_gaps:-} ]] || { cat "$T/perf.err"; fail "$name: perf complains"; }
	[[ -n $uncycled ]] || return 0
	cp "$T/judged" "$T/judged.first"
	perf_list "$uncycled"
	judge_list "$name without cycles" "$uncycled" "$allowed"
	mv "$T/judged.first" "$T/judged"
	rm -r "$uncycled"
}

# remove_cycles INPUT COPY: a copy without CYC packets. Fails if there are none.
remove_cycles() {
	local data=$1 out=$2
	if [[ -d $1 ]]; then
		to_the_ends "$1" "$2"
		rm "$2/data"
		data=$1/data out=$2/data
	fi
	"$O/tools/reshape" uncycled "$data" "$out" || fail "reshape uncycled $1"
	! cmp -s "$data" "$out" || { rm -r "$2"; return 1; }
}

# judge_list NAME INPUT N [UNCYCLED]: the same of the list in $T/perf.txt. Of a snapshot, all is listed up to the end of each
# ring, as perf does; not only until the first ring was read.
judge_list() {
	local input=$2 uncycled=()
	[[ -z ${4:-} ]] || uncycled=(-c "$4")
	if [[ -d $2 ]]; then
		input=$T/rings
		to_the_ends "$2" "$input"
	fi
	"$O/tools/perf-judge" -d "$3" "${uncycled[@]}" "$input" <"$T/perf.txt" >"$T/judged" ||
		{ cat "$T/judged"; head -3 "$T/perf.err"; fail "$1: perf lists other instructions or times"; }
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
	local line
	line=$(tail -1 "$T/judged")
	echo "$1: $line"
	n_compared=$((n_compared + 1))
	n_judged=$((n_judged + $(sed -nE 's/.* ([0-9]+) instructions equal.*/\1/p' <<<"$line")))
	n_times=$((n_times + $(sed -nE 's/.* ([0-9]+) times,.*/\1/p' <<<"$line")))
	n_estimates=$((n_estimates + $(sed -nE 's/.* ([0-9]+) of them near.*/\1/p' <<<"$line")))
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

# judge_timed N: of streams in which time is told in random ways.
judge_timed() {
	local before=$n_judged input
	mkdir "$T/timed"
	"$O/tools/timed" -n "$1" -k "$T/timed" >"$T/inputs" || fail "timed"
	while read -r input; do
		judge "${input#"$T/"}" "$input"
	done <"$T/inputs"
	rm -r "$T/timed"
	[[ $n_judged -gt $before ]] || fail "timed made nothing"
}

# still_differs NAME: what was judged last is a known defect of perf's, which shows.
still_differs() {
	! grep -q ", 0 only here, 0 only of perf," "$T/judged" || fail "$1: perf does not do it wrong"
}

# judged [no-times]: how much there was in all; with the argument, perf need not list times.
judged() {
	echo "$n_compared comparisons: $n_judged instructions as perf lists them, with $n_times times" \
		"($n_estimates of them only near perf's)"
	[[ $n_judged -gt 0 && (-n ${1:-} || ($n_times -gt 0 && $n_estimates -lt $((n_times / 4)))) ]] ||
		fail "that is too little"
}
