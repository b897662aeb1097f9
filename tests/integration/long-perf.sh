#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# perf as judge of threads and processes that die, of rings that wrap, and of what it does not read right. See
# test-perf.sh. Of what other tests record it judges in long runs (`recorded` in common.sh).
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/perf.sh
. tests/integration/lib/live.sh
need qemu-x86_64 perf python3 "${CC:-cc}"
[[ -z ${PTD_ASAN:-} ]] || skip "perf is not built with sanitizers"

# may_fail NAME STATUS CMD...: as judge_record, of a program that ends with another status than 0.
may_fail() {
	local name=$1 status=$2
	shift 2
	"$O/ptctl" record -o "$T/$name" -- "$@" >"$T/$name.out" 2>"$T/$name.err"
	[[ $? == "$status" ]] || { cat "$T/$name.err"; fail "$name: not with exit status $status"; }
	judge "$name" "$T/$name"
	drop "$name"
}

# In a namespace, where nobody else takes numbers.
if [[ ${1:-} == reuse ]]; then
	start_ptd
	may_fail reuse 0 "$O/targets/mortal.c" reuse 2
	exit
fi

start_ptd
may_fail threads 4 "$O/targets/mortal.c" threads
may_fail exec 6 "$O/targets/mortal.c" exec 1
may_fail killed 137 "$O/targets/mortal.c" signal 9
if unshare --pid --mount-proc --fork true 2>/dev/null; then
	unshare --pid --mount-proc --fork "$0" reuse || fail "numbers that are used again"
fi
start_ptd PT=mtc=1,cyc=1
judge_record "pipeline, mtc and cyc" sh -c 'ls /usr/bin | sort | tail -3'

# Code that is in no file: perf goes on late, or never, and what it shows where it does may be out of line
# with what ran there. That is in the log.
"${CC:-cc}" -O1 -z execstack -o "$T/stackcode" tests/targets/stackcode.c || fail "cc -z execstack"
for program in "$O/targets/patch.c" "$T/stackcode"; do
	name="code of ${program##*/}"
	start_ptd PT=noretcomp=1
	record "$name" "$program" </dev/null
	judge "$name" "$T/$name" 1000000
	grep -q ", [1-9][0-9]* only here, " "$T/judged" || fail "$name: not what perf does wrong"
	"$O/tools/exact" "$T/$name" "$T/$name.log" >"$T/exact" || { tail "$T/exact"; fail "$name: not as logged"; }
	drop "$name"
done

start_ptd
record it sh -c 'ls /etc | sort | tail -3; /bin/true'
for form in $(grep -v '^#' tests/perf-defects | cut -d '|' -f 2 | tr ' ' '\n' | grep -v =); do
	"$O/tools/reshape" "$form" "$T/it/data" "$T/$form" || fail "reshape $form"
	judge "$form" "$T/$form" 10000000 "$T/it"
	still_differs "$form"
done
drop it
judge_timed 300

cpus=2 ring=$((64 * 1024)) expects_gaps=yes
start_ptd AuxSize=$ring
mkfifo "$T/tell"
record live sh -c 'exec 3<&0; { cat <&3 >/dev/null; : >"$1"; } &
	while ! [ -e "$1" ]; do ls -l /usr/bin | sort -k 5 -n | sed -n 9p; done >/dev/null; wait' sh "$T/over" <"$T/tell" &
recording=$!
exec 7>"$T/tell"
warm_up
for i in 1 2 3; do
	sleep "0.$((RANDOM % 900 + 100))"
	ask "$i" || fail "snapshot $i"
	judge "moment $i" "$T/$i"
done
exec 7>&-
wait "$recording" || fail "the program: exit status $?"
judged
