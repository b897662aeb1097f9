#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Code that JIT compilers make is decoded to what ran, and each instruction of it carries the name
# that the jitdump gives it at that time: a JIT of our own, which does what is rare; then node, PHP
# and Erlang, if they are installed. long-jit.sh takes larger programs.
. "$(dirname "$0")/common.sh"
. tests/integration/jit.sh
need qemu-x86_64

for mode in '' close; do
	record_jit jit "$O/targets/jit.c" "$T/dumps" $mode
	check_jit jit
	# beta ran once before it was noted: 103 instructions.
	grep -q ' 103 early' "$T/names" || fail "jit: of beta's first run not 103 instructions are early"
	grep -qE ' [1-9][0-9]* after their time' "$T/names" || fail "jit: nothing ran after its time"
	drop jit
done
[[ -z ${PTD_ASAN:-} ]] || exit 0

run_node 'function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
	let sum = 0; for (let i = 0; i < 30; i++) sum += fib(16); console.log(sum)'
run_php 'function fib($n) { return $n < 2 ? $n : fib($n - 1) + fib($n - 2); } echo fib(20), "\n"'
run_erlang 16
exit 0
