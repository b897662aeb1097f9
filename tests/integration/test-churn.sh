#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Address spaces and tasks that change all the time, as far as user code can bring it about: decoded = log,
# for every process and thread.
. "$(dirname "$0")/lib/common.sh"
. "$(dirname "$0")/lib/tree.sh"
. tests/integration/lib/jit.sh
. tests/integration/lib/libraries.sh
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

# What anonymous memory held before it was changed was handed over when it ran. (test-ran has more of this.)
start_ptd
record patch "$O/targets/patch.c"
for engine in flow insn; do
	"$O/tools/gapped" $engine "$T/patch" "$T/patch.log" >"$T/gapped" || { cat "$T/gapped"; fail "patch"; }
	echo "patch $engine: $(tail -1 "$T/gapped")"
	grep -q ", 0 gaps left out 0$" "$T/gapped" || fail "patch: gaps"
done
drop patch

# Each program of a process has its own code, where the other one's was.
record_alive patch "$O/targets/patch.c" exec
for engine in flow insn; do
	"$O/tools/gapped" $engine "$T/patch" "$T/patch.log" >"$T/gapped" || { cat "$T/gapped"; fail "patch exec"; }
	echo "patch exec $engine: $(tail -1 "$T/gapped")"
	grep -q ", 0 gaps left out 0$" "$T/gapped" || fail "patch exec: gaps"
done
"$O/ptdecode" text "$T/patch" 2>/dev/null | grep -c '\[anon\]' >"$T/n"
[[ $(cat "$T/n") == 6 ]] || fail "patch exec: not three instructions of each program"
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
