#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# export bolt: each branch of a program, and each stretch between two of them, as another reader of the list of
# addresses counts them.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3 gcc objdump

cat >"$T/prog.c" <<'END'
#include <stdio.h>
#include <stdlib.h>

static int __attribute__((noinline)) once(int i) { return i * 3 + 1; }
static int __attribute__((noinline)) half(int i) { return i / 2; }
static int __attribute__((noinline)) depth(int n) { return n ? 1 + depth(n - 1) : 0; }

int main(void)
{
	int (*const ways[])(int) = { once, half };
	unsigned long sum = 0;

	for (int i = 1; i < 200; i++) {
		for (int n = i; n != 1; n = ways[n % 2 == 0](n))
			sum += n % 7 == 3 ? 2 : 1;
		switch (i % 9) {
		case 0: sum += depth(i % 40); break;
		case 1: sum ^= 5; break;
		case 2: sum *= 3; break;
		case 3: sum += (unsigned long)abs(-i); break;
		case 4: sum -= 11; break;
		case 5: printf("%lu\n", sum); break;
		default: break;
		}
	}
	return sum == 42;
}
END
gcc -O1 -static -no-pie -fno-inline-functions -o "$T/prog" "$T/prog.c" || fail "gcc"
start_ptd Cpus=1
"$O/ptctl" record -o "$T/rec" -- "$T/prog" >"$T/out" || fail "record"
"$O/ptdecode" export addresses -o "$T/addresses" "$T/rec" || fail "addresses"
tests/tools/takenbranches.py "$T/prog" "$T/addresses" >"$T/expected" || fail "takenbranches.py"
for name in prog "$T/prog"; do
	"$O/ptdecode" export bolt --binary="$name" -o "$T/bolt" "$T/rec" || fail "bolt"
	diff "$T/expected" "$T/bolt" | head -20
	cmp -s "$T/expected" "$T/bolt" || fail "$name: the lines differ"
done
[[ $(grep -c ^B "$T/bolt") -gt 500 && $(grep -c ^F "$T/bolt") -gt 500 ]] || fail "few lines: $(wc -l <"$T/bolt")"
echo "$(wc -l <"$T/bolt") lines, $(wc -c <"$T/addresses" | awk '{print $1 / 8}') instructions"

"$O/ptdecode" export bolt --binary=none -o "$T/none" "$T/rec" 2>"$T/err"
grep -q 'nothing of the object was executed' "$T/err" || fail "another name: $(cat "$T/err")"
[[ ! -s $T/none ]] || fail "lines of no object"
"$O/ptdecode" export bolt -o "$T/none" "$T/rec" 2>"$T/err" && fail "without an object"
exit 0
