#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Parts of larger recordings, which test-part.sh leaves out: threads that migrate, rings that wrapped, JIT code,
# and a program of some ten million instructions, most of whose PT is not decoded for a part. What a filter
# leaves of the whole text is what each part must be.
. "$(dirname "$0")/common.sh"
. tests/integration/jit.sh
need qemu-x86_64 python3

# What is added to a recording of JIT code is not in its SHA256SUMS.
compare() {
	"$O/tools/part" -f -n "$1" "$T/$2" || fail "parts of $2 differ"
}

start_ptd Cpus=3
record threads /usr/bin/python3 -I -S -c 'import _thread, time
for i in range(6): _thread.start_new_thread(lambda: [time.sleep(0.001) for i in range(20)], ())
time.sleep(0.2)'
compare 6 threads
drop threads
record_jit jit "$O/targets/jit.c" "$T/dumps"
compare 8 jit
drop jit
start_ptd Cpus=2 AuxSize=256K
record wrapped sh -c 'for i in 1 2 3; do ls -l / | sort | head -3; done'
compare 6 wrapped

# lines OPTIONS...: the text of a part, without the title and the marks of what was left out.
lines() {
	"$O/ptdecode" "$@" "$T/long" | grep -v -e '^# comm' -e '^# time' -e ': out of scope: '
}
start_ptd Cpus=2
record long /usr/bin/python3 -I -S -c 'print(sum(i * i % 7 for i in range(20000)))'
tid=$("$O/ptdecode" --last 1 "$T/long" | sed -nE 's|^.* [0-9]+/([0-9]+) +\[.*|\1|p' | tail -1)
span=$("$O/ptdecode" -f addresses "$T/long" | wc -c)
echo "$((span / 8)) instructions"
for n in 1 1000 1000000; do
	lines --tid "$tid" --last $n >"$T/part"
	lines | awk -v tid="$tid" '$1 !~ /^#/ && match($0, "/" tid " +\\[")' | tail -n $n >"$T/expected"
	grep -v '^#' "$T/part" | cmp - "$T/expected" || fail "the last $n instructions differ"
done
# Times of the last million, as far apart as they are.
mapfile -t times < <(sed -E 's/.*\] +([0-9]+\.[0-9]+): .*/\1/' "$T/expected" | uniq | awk 'NR % 50 == 0')
for ((i = 0; i + 1 < ${#times[@]} && i < 5; i++)); do
	lines --time "${times[i]},${times[i + 1]}" >"$T/part"
	lines | awk -v from="${times[i]}" -v to="${times[i + 1]}" \
		'match($0, /[0-9]+\.[0-9]+: /) { t = substr($0, RSTART, RLENGTH - 2); if (t >= from && t < to) print }' |
		cmp - "$T/part" || fail "the time from ${times[i]} to ${times[i + 1]} differs"
done
"$O/ptdecode" -f summary --time "${times[0]},${times[1]}" "$T/long" | grep "^Out of scope: [1-9]" ||
	fail "all was decoded for a part"
