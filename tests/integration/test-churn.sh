#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Address spaces and tasks that change all the time, as far as user code can bring it about: decoded = log,
# for every process and thread.
. "$(dirname "$0")/common.sh"
. "$(dirname "$0")/tree.sh"
. tests/integration/jit.sh
. tests/integration/libraries.sh
need qemu-x86_64 "${CC:-cc}"

# In a namespace, where nobody else takes numbers.
if [[ ${1:-} == reuse ]]; then
	tree reuse 0 0 "$O/targets/mortal.c" reuse 5
	grep "^one number for all$" "$T/reuse.out" || { cat "$T/reuse.out"; fail "reuse"; }
	exit
fi

make_libraries
tree load 0 0 "$O/targets/churn.c" load "${libraries[@]::2}"
grep ", 19 loads where the other was$" "$T/load.out" || fail "load: not at the same address: $(cat "$T/load.out")"
drop load
tree map 0 0 "$O/targets/churn.c" map "${libraries[@]}"
drop map

# Nobody keeps what anonymous memory held before it was changed: each of the 20 calls is a gap, of three
# instructions, and the rest is as it was logged. (What is noted in a jitdump is decoded: test-jit.)
# Packets tell where calls return to, or the gaps would reach further.
start_ptd PT=noretcomp=1
record patch "$O/targets/patch.c"
for engine in block insn; do
	"$O/tools/gapped" $engine "$T/patch" "$T/patch.log" >"$T/gapped" || { cat "$T/gapped"; fail "patch"; }
	echo "patch $engine: $(tail -1 "$T/gapped")"
	grep -q "20 gaps left out 60$" "$T/gapped" || fail "patch: not 20 gaps of 3 instructions"
done
drop patch

# What is kept of a process's memory is that of its last program: the three instructions of the one before
# are a gap.
record_alive patch "$O/targets/patch.c" exec
for engine in block insn; do
	"$O/tools/gapped" $engine "$T/patch" "$T/patch.log" >"$T/gapped" || { cat "$T/gapped"; fail "patch exec"; }
	echo "patch exec $engine: $(tail -1 "$T/gapped")"
	grep -qE " [1-9][0-9]* gaps left out [1-9]" "$T/gapped" || fail "patch exec: no gap"
done
"$O/ptdecode" -f text "$T/patch" 2>/dev/null | grep -c '\[anon\]' >"$T/n"
[[ $(cat "$T/n") == 3 ]] || fail "patch exec: not three instructions of the last program"
drop patch

tree threads 4 0 "$O/targets/mortal.c" threads
drop threads
tree exec 6 0 "$O/targets/mortal.c" exec 5
drop exec
# Of a process that was killed the log or the packets end a little early.
ulimit -c 0
for signal in 15 0; do
	tree signal$signal $((128 + (signal ? signal : 11))) 0 sh -c "'$O/targets/mortal.c' signal $signal; exit \$?"
	drop signal$signal
done
tree signal9 137 4 sh -c "'$O/targets/mortal.c' signal 9; exit \$?"
drop signal9

if unshare --pid --mount-proc --fork true 2>/dev/null; then
	unshare --pid --mount-proc --fork "$0" reuse || fail "numbers that are used again"
else
	echo "no namespaces can be made here: numbers that are used again are not tested"
fi
