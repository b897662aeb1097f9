#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# export lcov: what was seen is what gcov has, never more; and genhtml and lcov read it.
. "$(dirname "$0")/lib/common.sh"
need qemu-x86_64 python3 gcc g++ gcov genhtml lcov

cat >"$T/demo.c" <<'END'
#include <stdio.h>

static long
twice(long x)
{
	return 2 * x;
}

static void empty(void)
{
}

static void early(long x)
{
	if (x > 3)
		return;
	printf("%ld\n", x);
	return;
}

static void mixed(long x)
{
	if (x > 3)
		return;
	printf("%ld\n", x);
}

static void loop(long n)
{
	while (n-- > 0)
		if (n == 7)
			empty();
}

static void forever(long n) { while (1)
		if (n-- < 0)
			return;
}

static int one(void) { return 1; }

static long never(long n)
{
	if (n > 5)
		return 4;
	return n + 4;
}

int main(void)
{
	long sum = 0;
	char big[4000];

	for (long i = 0; i < 32; i++) {
		sum += twice(i) + one();
		switch (i % 5) {
		case 0:
			loop(i);
			break;
		case 1:
			early(i);
			mixed(i);
			break;
		default:
			forever(i);
			break;
		}
		if (i > 3 && (i & 1 || i == 8))
			sum++;
	}
	big[sum & 63] = 1;
	if (sum < 0)
		sum = never(sum) + big[5];
	printf("%ld\n", sum);
	return 0;
}
END
cat >"$T/shapes.cc" <<'END'
#include <cstdio>
#include <vector>

struct Shape {
	virtual ~Shape() = default;
	virtual long area() const = 0;
};

struct Square : Shape {
	explicit Square(long a) : side(a)
	{
	}
	long area() const override;
	long side;
};

long Square::area() const
{
	return side * side;
}

template <typename T>
T least(T a, T b)
{
	if (a < b)
		return a;
	return b;
}

static void check(long n)
{
	if (n > 20)
		throw n;
}

int main()
{
	std::vector<Shape *> shapes;
	long sum = 0;

	for (long i = 0; i < 9; i++)
		shapes.push_back(new Square(i));
	auto add = [&](const Shape *shape) {
		sum += shape->area();
	};
	for (Shape *shape : shapes)
		add(shape);
	for (long i = 0; i < 3; i++) {
		try {
			check(i * 15);
		} catch (long n) {
			sum += n;
		}
	}
	sum += least(sum, 100L) + (long)least(2.0, 1.0);
	for (Shape *shape : shapes)
		delete shape;
	std::printf("%ld\n", sum);
}
END

# judge NAME SOURCE COMPILER...: run the program NAME with counters, in $T/NAME.gcov, and record it without.
judge() {
	local name=$1 source=$2
	mkdir "$T/$name.gcov"
	(cd "$T/$name.gcov" && "${@:3}" -O0 --coverage -o "$name" "../$source" && "./$name" >out &&
		gcov -b -c -- *.gcda) >"$T/log" 2>&1 || fail "gcov of $name: $(cat "$T/log")"
	"${@:3}" -O0 -g -o "$T/$name" "$T/$source" || fail "$name"
	"$O/ptctl" record -o "$T/$name.rec" -- "$T/$name" >"$T/out" || fail "record $name"
	cmp "$T/out" "$T/$name.gcov/out" || fail "the runs differ"
	"$O/ptdecode" export lcov --binary="$name" -o "$T/$name.info" "$T/$name.rec" || fail "lcov of $name"
}

start_ptd Cpus=1
judge demo demo.c gcc
tests/tools/coverage.py "$T/demo.info" --branches "$T/demo.c" "$T/demo.gcov/demo.c.gcov" || fail "demo"
judge shapes shapes.cc g++
tests/tools/coverage.py "$T/shapes.info" "$T/shapes.cc" "$T/shapes.gcov/shapes.cc.gcov" || fail "shapes"

# What the tools make of it: as many lines as gcov's own trace file of the program has, or those but the cases.
genhtml --branch-coverage -q -o "$T/html" "$T/demo.info" >"$T/log" 2>&1 || fail "genhtml: $(cat "$T/log")"
grep -q 'demo.c' "$T/html/index.html" || grep -rq 'demo.c' "$T/html" || fail "genhtml shows no demo.c"
lcov -q -a "$T/demo.info" -a "$T/demo.info" -o "$T/twice.info" >"$T/log" 2>&1 || fail "lcov -a: $(cat "$T/log")"
grep -q '^FNDA:64,twice$' "$T/twice.info" || fail "lcov -a does not sum: $(grep FNDA "$T/twice.info")"

# All objects that have debug information; and none.
"$O/ptdecode" export lcov -o "$T/all.info" "$T/demo.rec" 2>"$T/err" || fail "all objects"
grep -q "SF:$T/demo.c" "$T/all.info" || fail "demo.c is not among all files"
gcc -O0 -o "$T/plain" "$T/demo.c" || fail "plain"
"$O/ptctl" record -o "$T/plain.rec" -- "$T/plain" >"$T/out" || fail "record plain"
"$O/ptdecode" export lcov --binary=plain -o "$T/plain.info" "$T/plain.rec" 2>"$T/err" || fail "lcov of plain"
grep -q 'debug information' "$T/err" && [[ ! -s $T/plain.info ]] || fail "nothing is said: $(cat "$T/err")"
[[ -z ${REAL:-} ]] || . "$(dirname "$0")/lib/lcov-real.sh"
echo ok
