#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# As test-threads, with more: larger programs, JIT compilers, and what needs long under TSan.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/jit.sh
need qemu-x86_64 python3
[[ -z ${PTD_ASAN:-} ]] || skip "programs of this size are not for sanitized builds"
[[ -e $O/tsan/tools/formats ]] || skip "nothing was built with TSan: make tests"

# check NAME...: however they are cut, and whatever is decoded ahead, of at least one of them.
check() {
	"$O/tools/cuts" "${@/#/$T/}" || fail "$*: cuts"
}

# race NAME: eight threads, under TSan, and the bytes that one thread makes.
race() {
	rm -rf "$T/1" "$T/8"
	mkdir "$T/1" "$T/8"
	"$O/tools/formats" 1 "$T/1" "$T/$1" || fail "$1: one thread"
	"$O/tsan/tools/formats" 8 "$T/8" "$T/$1" 2>"$T/said" || fail "$1 under TSan: $(cat "$T/said")"
	[[ ! -s $T/said ]] || fail "$1: races: $(head -60 "$T/said")"
	diff -r "$T/1" "$T/8" >"$T/diff" || fail "$1 under TSan: $(head -c 1000 "$T/diff")"
	rm -r "$T/1" "$T/8"
}

start_ptd
record mortal sh -c "'$O/targets/mortal.c' threads; true"
record patch "$O/targets/patch.c"
stop_ptd
check mortal patch # the second has one PSB only
race mortal
race patch
drop mortal
drop patch

start_ptd PT=mtc=1,cyc=1
record ls ls -lR /usr/include
stop_ptd
check ls
drop ls

start_ptd
record python python3 -c 'print(sum(range(100000)))'
stop_ptd
check python
drop python

if installed node; then
	echo 'function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
		let sum = 0; for (let i = 0; i < 30; i++) sum += fib(16); console.log(sum)' >"$T/script.js"
	record_jit node env -u NODE_EXTRA_CA_CERTS -C "$T/dumps" node --perf-prof "$T/script.js"
	check node
fi
exit 0
