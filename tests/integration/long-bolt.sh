#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# export bolt, judged by BOLT: it takes the profile without a stale function, and what it makes of the program gives
# the same result from another layout.
. "$(dirname "$0")/lib/common.sh"
# Debian's /usr/bin/perf2bolt-16 does not know itself by that name, and does what llvm-bolt does.
PATH=/usr/lib/llvm-16/bin:$PATH
need qemu-x86_64 gcc objdump perf2bolt llvm-bolt

# What is cold stands in the way of what is hot.
cat >"$T/prog.c" <<'END'
#include <stdio.h>
#include <stdlib.h>

static unsigned long state = 88172645463325252ul;

static __attribute__((noinline)) unsigned long next(void)
{
	if (__builtin_expect(state % 1000003 == 7, 1)) {
		puts("rare");
		abort();
	}
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static __attribute__((noinline)) int compare(const void *a, const void *b)
{
	const unsigned long x = *(const unsigned long *)a, y = *(const unsigned long *)b;

	if (x == y)
		return 0;
	return x < y ? -1 : 1;
}

static __attribute__((noinline)) unsigned long fold(const unsigned long *v, int n)
{
	unsigned long sum = 0;

	for (int i = 0; i < n; i++) {
		switch (v[i] % 16) {
		case 0: sum ^= v[i]; break;
		case 1: sum *= 3; break;
		case 2: sum -= 7; break;
		case 3: sum = sum << 5 | sum >> 59; break;
		case 4: sum += v[i] / 3; break;
		default: sum++; break;
		}
	}
	return sum;
}

int main(void)
{
	static unsigned long v[512];
	unsigned long sum = 0;

	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 512; i++)
			v[i] = next();
		qsort(v, 512, sizeof(*v), compare);
		sum += fold(v, 512);
	}
	printf("%lu\n", sum);
	return 0;
}
END
# BOLT 16 cannot follow gcc's jump tables.
gcc -O2 -fno-jump-tables -fno-reorder-blocks-and-partition -Wl,-q -o "$T/prog" "$T/prog.c" || fail "gcc"
"$T/prog" >"$T/expected" || fail "the program"
start_ptd Cpus=1
"$O/ptctl" record -o "$T/rec" -- "$T/prog" >"$T/out" || fail "record"
"$O/ptdecode" export bolt --binary=prog -o "$T/profile" "$T/rec" || fail "bolt"
perf2bolt -pa -p "$T/profile" -o "$T/fdata" "$T/prog" >"$T/perf2bolt" 2>&1 || fail "perf2bolt: $(cat "$T/perf2bolt")"
grep 'traces mismatching' "$T/perf2bolt"
grep -q 'traces mismatching disassembled function contents: .*(0\.0%)' "$T/perf2bolt" ||
	fail "traces do not fit the program: $(cat "$T/perf2bolt")"
llvm-bolt "$T/prog" -data "$T/fdata" -o "$T/bolted" -reorder-blocks=ext-tsp -reorder-functions=hfsort \
	-split-functions >"$T/log" 2>&1 || fail "llvm-bolt: $(cat "$T/log")"
grep -E 'non-empty execution profile|modified layout|stale|invalid' "$T/log"
grep -qE 'stale|invalid' "$T/log" && fail "stale functions"
grep -qE 'basic block reordering modified layout of [1-9][0-9]* functions' "$T/log" || fail "the layout is the same"
"$T/bolted" | cmp - "$T/expected" || fail "what BOLT made gives another result"
echo "$(wc -l <"$T/profile") lines of profile; the layout changed, the result did not"
