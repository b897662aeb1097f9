#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Code that JIT compilers make is decoded to what ran, and each instruction of it carries the name
# that the jitdump gives it at that time: a JIT of our own, which does what is rare; then node
# and PHP, if they are installed. long-jit.sh takes larger programs, both engines for node, and Erlang.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/jit.sh
need qemu-x86_64

# The dump ends in the record of the function that ran last: that is said, and it counts as damage
# once the memory is gone, too.
check_cut() {
	local text='jit-[0-9]*\.dump: ends inside the record at byte [0-9]*: expected a whole one' status
	"$O/ptdecode" --force summary "$T/jit" >"$T/summary" 2>"$T/said" ||
		fail "jit, cut off: exit status $?"
	grep -q "$text" "$T/said" && grep -q "^Missing: .*$text" "$T/summary" ||
		fail "jit: nothing says that its dump is cut off"
	rm -r "$T/jit/mem"
	"$O/ptdecode" --force summary "$T/jit" >"$T/summary" 2>"$T/said"
	status=$?
	[[ $status == 3 ]] && grep -q 'code not mapped' "$T/summary" ||
		fail "jit, cut off, without memory: exit status $status"
}

for mode in '' close; do
	record_jit jit "$O/targets/jit.c" "$T/dumps" $mode
	check_jit jit
	# beta ran once before it was noted: 103 instructions.
	grep -q ' 103 early' "$T/names.flow" || fail "jit: of beta's first run not 103 instructions are early"
	grep -qE ' [1-9][0-9]* after their time' "$T/names.flow" || fail "jit: nothing ran after its time"
	[[ $mode ]] || check_cut
	drop jit
done
[[ -z ${PTD_ASAN:-} ]] || exit 0

run_node 'function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
	let sum = 0; for (let i = 0; i < 30; i++) sum += fib(16); console.log(sum)' flow
run_php 'function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); } echo fib(20), "\n"'
exit 0
