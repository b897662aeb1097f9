#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The closing brace of a function without a value is where it returns, and gcov shows how often, one would guess: of each
# such function, or of none. gcov counts it only in a function where no "return;" stands, whether or not that was executed:
# then the return that nobody wrote gets the brace's line, and at -O0 a nop; else all returns share one statement, which
# has the line of a written one. The line table has a row for the brace in both, since the epilogue stands there.
#
# Depended on by: decoder/sink/export/lcov.c, which counts a closing brace where such a nop stands.
. "$(dirname "$0")/lib.sh"
command -v gcc >/dev/null && command -v gcov >/dev/null || missing "gcc is not installed"
cat >braces.c <<'EOT'
volatile int sink;

static void without(int n)
{
	if (n < 100)
		sink = n;
}

static void with(int n)
{
	if (n > 100)
		return;
	sink = n;
}

int main(void)
{
	for (int i = 0; i < 5; i++) {
		without(i);
		with(i);
	}
	return 0;
}
EOT
gcc --version | head -n 1
gcc -O0 --coverage -o counted braces.c
./counted
gcov -- *.gcda >said
sed -n '/static void/,/}/p' braces.c.gcov
gcc -O0 -g -o plain braces.c
objdump -dl plain | sed -n '/<with>:/,/ret/p' | tail -n 4
count() {
	sed -nE "s/^ *([^: ]+): *$1:.*/\1/p" braces.c.gcov
}
[[ $(count 7) == 5 ]] || changed "the brace of a function without \"return;\" has $(count 7)"
[[ $(count 14) == - ]] || changed "the brace of a function with a \"return;\" that was not executed has $(count 14)"
objdump -dl plain | grep -q 'braces.c:14$' || changed "the line table has no row for that brace"
