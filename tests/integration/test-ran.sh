#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Code that is in no file, or not as the file has it, is decoded as it ran, also when the program has
# changed it, freed it, and ended: a program that does all of that; node, whose JIT notes nothing; PHP
# with the JIT of its regular expressions. long-ran.sh takes larger programs.
. "$(dirname "$0")/lib/common.sh"
. tests/integration/lib/ran.sh
need qemu-x86_64

start_ptd
for engine in flow insn; do
	ran ran $engine 0 "$O/targets/ran.c" "$T/deleted"
done
# No room in the recorder, and then in the pool, where code waits for it.
start_ptd MemMax=32K
short ran "$O/targets/ran.c" "$T/deleted" 100
grep -q '^ptd: code that was in no file was lost' "$T/ptd.log" || fail "nothing says that code was lost"
grep -q "MemMax= leaves to user $EUID$" "$T/ptd.log" || fail "nothing says whose code was lost: $(cat "$T/ptd.log")"
"$O/ptctl" status | grep -q "code of user $EUID, [1-9]" || fail "status: $("$O/ptctl" status)"
start_ptd TaskSize=4K
short ran "$O/targets/ran.c" "$T/deleted" 100
[[ -z ${PTD_ASAN:-} ]] || exit 0
start_ptd

if installed php; then
	php_regex_program 20 | write_php "$T/regex.php"
	ran php flow 1000000 php -d pcre.jit=1 "$T/regex.php"
fi
if installed node; then
	echo 'function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) }
		let sum = 0; for (let i = 0; i < 20; i++) sum += fib(16); console.log(sum)' >"$T/script.js"
	ran node flow 1000000 env -u NODE_EXTRA_CA_CERTS node "$T/script.js"
fi
exit 0
