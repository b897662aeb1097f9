#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# export autofdo: how often each line ran, as gcov counts it; and clang reads the profile, and inlines by it.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3 gcc gcov clang llvm-profdata

# Each line is one block of code, so that gcov and the profile mean the same by its count.
cat >"$T/lines.c" <<'END'
#include <stdio.h>

static long twice(long x)
{
	return 2 * x;
}

static long climb(long n)
{
	if (n == 0)
		return 0;
	n = climb(n - 1);
	return n + 1;
}

static long never(long n)
{
	return n + 4;
}

int main(void)
{
	long (*const ways[])(long) = { twice, climb };
	long sum = 0;

	for (long i = 0; i < 321; i++) {
		sum += twice(i);
		switch (i % 5) {
		case 0:
			sum += climb(i % 50);
			break;
		case 1:
			sum ^= 5;
			break;
		default:
			sum += ways[i % 2](i % 20);
			break;
		}
		while (sum > 1000)
			sum /= 3;
	}
	if (sum < 0)
		sum = never(sum);
	printf("%ld\n", sum);
	return 0;
}
END
mkdir "$T/gcov"
(cd "$T/gcov" && gcc -O0 --coverage -o lines ../lines.c && ./lines >out && gcov -r -s "$T" lines.gcda) \
	>"$T/gcov.log" 2>&1 || fail "gcov: $(cat "$T/gcov.log")"
gcc -O0 -g -o "$T/lines" "$T/lines.c" || fail "gcc"

start_ptd Cpus=1
"$O/ptctl" record -o "$T/rec" -- "$T/lines" >"$T/out" || fail "record"
cmp "$T/out" "$T/gcov/out" || fail "the runs differ"
"$O/ptdecode" export autofdo --binary=lines -o "$T/profile" "$T/rec" || fail "autofdo"
python3 - "$T" <<'END' || fail "the counts differ from gcov's"
import glob, re, sys

directory = sys.argv[1]
source = open(directory + "/lines.c", encoding="utf-8").read().splitlines()
begins = {match[1]: number for number, line in enumerate(source, 1)
          if (match := re.match(r"(?:static long|int) (\w+)\(", line))}
gcov = {}
for line in open(glob.glob(directory + "/gcov/*lines.c.gcov")[0], encoding="utf-8"):
    count, number, _ = line.split(":", 2)
    if count.strip() not in ("-", ""):
        gcov[int(number)] = 0 if "#" in count else int(count.strip().rstrip("*"))
ours, entered = {}, {}
for line in open(directory + "/profile", encoding="utf-8"):
    if not line.startswith(" "):
        name, _, head = line.split(":")
        entered[name] = int(head)
    elif name in begins:
        place, count = line.split()[:2]
        number = begins[name] + int(place.rstrip(":").split(".")[0])
        ours[number] = max(int(count), ours.get(number, 0))
# gcov counts a function at its name and a case at its label, where the line table has no code; and no brace.
is_statement = {n: n not in begins.values() and not re.match(r"\s*(case .*:|default:|[{}])$", line)
                for n, line in enumerate(source, 1)}
wrong = [(n, gcov.get(n), ours.get(n, 0)) for n in sorted(gcov | ours)
         if is_statement[n] and gcov.get(n) != ours.get(n, 0)]
for number, expected, got in wrong:
    print(f"line {number}: {got}, gcov has {expected}: {source[number - 1].strip()}")
calls = {name: gcov[number] for name, number in begins.items() if gcov[number]}
counts = [n for number, n in gcov.items() if is_statement[number]]
print(f"{len(counts)} lines, {sum(counts)} executions, {len(wrong)} differ; entered: {entered}")
sys.exit(bool(wrong) or len(counts) < 20 or any(entered[name] != n for name, n in calls.items()))
END
# What the pointer led to is told with the line of the call.
grep -Eq '^ [0-9]+: [0-9]+ (twice:[0-9]+ climb:[0-9]+|climb:[0-9]+ twice:[0-9]+)$' "$T/profile" ||
	fail "no targets of the indirect call: $(cat "$T/profile")"

# A function that is too large to be inlined, but for the one place that is hot.
cat >"$T/hot.c" <<'END'
#include <stdio.h>

static volatile unsigned long seed = 88172645463325252ul;
#define STEP(n) x ^= x << 13; x += seed * n; x ^= x >> 7; x ^= x << 17; if (x % 3 == n % 3) x += y * n; else y ^= x;
static unsigned long work(unsigned long x)
{
	unsigned long y = 1;
	STEP(1) STEP(2) STEP(3) STEP(4) STEP(5) STEP(6) STEP(7) STEP(8) STEP(9) STEP(10) STEP(11) STEP(12)
	STEP(13) STEP(14) STEP(15) STEP(16) STEP(17) STEP(18) STEP(19) STEP(20) STEP(21) STEP(22) STEP(23)
	return x;
}

int main(int argc, char **argv)
{
	unsigned long sum = 0;
	(void)argv;
	for (int i = 0; i < 3000; i++)
		sum += work(sum + i);
	if (argc > 5)
		sum += work(argc);
	printf("%lu\n", sum);
	return 0;
}
END
compile=(clang -O2 -g -fdebug-info-for-profiling -Rpass=inline -Rpass-missed=inline)
"${compile[@]}" -o "$T/hot" "$T/hot.c" 2>"$T/without" || fail "clang: $(cat "$T/without")"
"$O/ptctl" record -o "$T/hotrec" -- "$T/hot" >"$T/out" || fail "record hot"
"$O/ptdecode" export autofdo --binary=hot -o "$T/hotprofile" "$T/hotrec" || fail "autofdo of hot"
llvm-profdata merge --sample --text -o "$T/merged" "$T/hotprofile" || fail "llvm-profdata"
grep -q '^main:' "$T/merged" && grep -q '^work:' "$T/merged" || fail "llvm-profdata has $(cat "$T/merged")"
"${compile[@]}" -fprofile-sample-use="$T/hotprofile" -o "$T/hotter" "$T/hot.c" 2>"$T/with" ||
	fail "clang refuses the profile: $(cat "$T/with")"
"$T/hotter" | cmp - "$T/out" || fail "the program that was compiled by the profile differs"
grep -q "'work' inlined into 'main'" "$T/without" && fail "work is inlined without a profile, too"
grep -q "'work' inlined into 'main'" "$T/with" || fail "work is not inlined: $(cat "$T/with")"
grep -q "warning" "$T/with" && fail "$(cat "$T/with")"
echo "work is inlined where it is hot: $(grep -c "'work' inlined" "$T/with") of 2 places"
