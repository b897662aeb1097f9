#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# ptdecode verify: nothing is found in recordings of real programs, of one process and of several; and
# a difference is found where libipt 2.0.5 is known to say less.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64

# verify STATUS TEXT ARGUMENT...: the last line is TEXT, a pattern.
verify() {
	local status=$1 text=$2 got
	shift 2
	"$O/ptdecode" verify "$@" >"$T/out" 2>"$T/err"
	got=$?
	[[ $got == "$status" && $(tail -n 1 "$T/out") =~ ^$text$ ]] ||
		fail "ptdecode verify $*: exit status $got: $(cat "$T/out" "$T/err")"
}

start_ptd
record one /bin/true
record several bash -c '(ls -l / | sort) & (ls | cat) & wait'
for name in one several; do
	verify 0 '[0-9]+ instructions, which both engines list' "$T/$name"
	n=$("$O/tools/emulog" "$T/$name.log" | awk '{ n += $2 } END { print n }')
	grep -qx "$n instructions, .*" "$T/out" || fail "$name: the log has $n: $(cat "$T/out")"
	echo "$name: $(cat "$T/out")"
done

mkdir "$T/kept"
input=$("$O/tools/golden" -k "$T/kept" tests/golden/recover-fup.case) || fail "no golden input"
verify 1 'The engines differ behind 1 instructions\.' "$input"
ipt_reads_ahead || diff - <(sed 's/ (.*)//' "$T/out") <<'EOF' || fail "what is said of it"
Both engines:
  CPU 0, thread 10/10, time 7: 401000 [unknown]
flow goes on with:
  CPU 0, thread 10/10, time 7: gap, packets contradict the code, 0 bytes at 57, 401000
  CPU 0, thread 10/10, time 7: async 0 0, 401003
  CPU 0, thread 10/10, time 7: 401004 [unknown]
  CPU 0, thread 10/10, time 7: 401005 [unknown]
  CPU 0, thread 10/10, time 7: off 0 0
  the end
insn goes on with:
  CPU 0, thread 10/10, time 7: gap, packets contradict the code, 1 bytes at 57, 401000
  the end
The engines differ behind 1 instructions.
EOF

for wrong in "--output $T/x" "--engine insn" "--lines"; do
	verify 2 '' $wrong "$T/one"
	grep -q -- "verify has no option ${wrong%% *}" "$T/err" || fail "$wrong: $(cat "$T/err")"
done
verify 2 '' - </dev/null
grep -q -- "verify reads its recording twice" "$T/err" || fail "standard input: $(cat "$T/err")"
"$O/ptdecode" verify "$T/one" >/dev/full 2>"$T/err" && fail "a full device, and no word of it"
grep -q "standard output: cannot write" "$T/err" || fail "a full device: $(cat "$T/err")"
