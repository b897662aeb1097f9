#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# perf as judge: of each thread, `perf script --itrace=i1i` lists the instructions that are decoded here. Apart
# from what tests/perf-defects says of golden cases. long-perf.sh takes larger programs, and the forms
# that perf does not read right.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/perf.sh
. tests/integration/lib/libraries.sh
. tests/integration/lib/live.sh
need qemu-x86_64 perf python3 "${CC:-cc}"
[[ -z ${PTD_ASAN:-} ]] || skip "perf is not built with sanitizers"
make_libraries

start_ptd
judge_record true /bin/true
judge_record ls ls -l /usr
judge_record signals "$O/targets/signals.c"
judge_record load "$O/targets/churn.c" load "${libraries[@]::2}"
judge_record map "$O/targets/churn.c" map "${libraries[@]}"
for pt in mtc=1 mtc=1,mtc_period=0,cyc=1; do
	start_ptd "PT=$pt"
	judge_record "signals $pt" "$O/targets/signals.c"
done

# A JIT's code, as perf injects it. perf wants a jitdump whose stamps are the TSC's, which in the software source
# are the same. (Code that is noted after it first ran is decoded here, but not by perf.)
start_ptd
mkdir "$T/dumps"
record jit "$O/targets/jit.c" "$T/dumps" noted
dump=$(echo "$T"/dumps/jit-*.dump)
printf '\1' | dd of="$dump" bs=1 seek=32 conv=notrunc status=none
perf inject --jit -i "$T/jit/data" -o "$T/dumps/injected" 2>"$T/perf.err" || { cat "$T/perf.err"; fail "perf inject"; }
perf script -i "$T/dumps/injected" --itrace=i1i -F $fields --ns 2>"$T/perf.err" >"$T/perf.txt"
[[ ! -s $T/perf.err ]] || { cat "$T/perf.err"; fail "jit: perf complains"; }
judge_list jit "$T/jit" 0
drop jit

# A moment of rings that have wrapped.
cpus=4 ring=$((256 * 1024)) expects_gaps=yes
start_ptd AuxSize=$ring
mkfifo "$T/tell"
record live "$O/targets/live.c" <"$T/tell" &
recording=$!
exec 7>"$T/tell"
warm_up
ask moment || fail "snapshot"
exec 7>&-
wait "$recording" || fail "the program: exit status $?"
judge moment "$T/moment"

judge_timed 20

# Golden cases, bare streams too, and what perf does wrong: that shows. Some have samples of other events.
stop_ptd
echo "$n_compared recordings: $n_judged instructions as perf lists them, with $n_times times"
mkdir "$T/golden"
"$O/tools/golden" -k "$T/golden" tests/golden/*.case >"$T/inputs" || fail "golden -k"
defects=$(grep -v '^#' tests/perf-defects)
# Of other versions of perf than 6.1 the cases are left out that show its defects, and those that theirs show: 6.12 leaves
# out what a thread runs behind a record of its exit, and ends at a record of its own.
known=yes others=" exit records-of-perf "
[[ $(perf --version) == "perf version 6.1."* ]] || known=no
n_cases=0 n_defects=0 most=1000
while read -r input; do
	name=$(basename "$(dirname "$input")")
	n=$(sed -nE "s/^[^|]*\|.* $name=([0-9]+) .*/\1/p" <<<"$defects")
	n_cases=$((n_cases + 1))
	[[ -z $n ]] || n_defects=$((n_defects + 1))
	[[ $known == yes || (-z $n && $others != *" $name "*) ]] || continue
	judge "$name" "$input" "$n"
	[[ -z $n ]] || still_differs "$name"
done <"$T/inputs"
n=$(grep -o '[^ ]=[0-9]' <<<"$defects" | wc -l)
[[ $n -eq $n_defects ]] || fail "tests/perf-defects names $n golden cases, but $n_defects were compared"
n=$(find tests/golden -name '*.case' | wc -l)
[[ $n_cases -eq $n ]] || fail "$n_cases of $n golden cases were compared"
echo "$n_cases golden cases: $((n_cases - n_defects)) as perf lists them, $n_defects show its defects"
n=$(wc -l <<<"$defects")
echo "$n known defects of perf's:"
sed 's/^/	/' <<<"$defects"
[[ $n -le 10 ]] || fail "that is more than ten"
judged
