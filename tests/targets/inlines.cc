/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * inlines: small functions that a compiler inlines, each of which counts its executions. At the end
 * the counts are printed, a line each: name and number.
 */

#include <cstdint>
#include <cstdio>
#include <cstdlib>

enum {
	LEAF,
	LOOP,
	EARLY,
	OUTER,
	MIDDLE,
	INNER,
	RECURSE,
	PARTIAL,
	THEN,
	ELSE,
	DO_WHILE,
	SWITCHED,
	PUSH,
	SUM,
	LAMBDA,
	SMALLER,
	LARGER,
	COMPARE,
	TWICE,
	STORE,
	PARSE,
	DIGIT,
	EMIT,
	HASH,
	N_FUNCTIONS,
};

static const char *const names[N_FUNCTIONS] = {
	"leaf",     "loop",     "early",    "outer",    "middle", "inner", "recurse", "partial",
	"then_arm", "else_arm", "do_while", "switched", "push",   "sum",   "lambda",  "smaller",
	"larger",   "compare",  "twice",    "store",    "parse",  "digit", "emit",    "hash",
};

static volatile uint64_t counts[N_FUNCTIONS];
static volatile uint64_t sink;

#define COUNT(what) counts[what] = counts[what] + 1

static inline unsigned leaf(unsigned x)
{
	COUNT(LEAF);
	return x * 3 + 1;
}

static inline unsigned loop(unsigned x)
{
	unsigned n = 0;

	COUNT(LOOP);
	for (unsigned i = 0; i < x % 7; i++)
		n += leaf(i) ^ x;
	return n;
}

static inline unsigned early(unsigned x)
{
	COUNT(EARLY);
	if (x % 3 == 0)
		return 1;
	sink = sink + x;
	return x / 3;
}

static inline unsigned inner(unsigned x)
{
	COUNT(INNER);
	sink = sink ^ x;
	return x + 1;
}

static inline unsigned middle(unsigned x)
{
	COUNT(MIDDLE);
	return inner(x) + inner(x + 1);
}

static inline unsigned outer(unsigned x)
{
	COUNT(OUTER);
	return middle(x) * middle(x * 2);
}

static unsigned recurse(unsigned x)
{
	COUNT(RECURSE);
	if (x < 2)
		return 1;
	return recurse(x - 1) + (x % 2 ? recurse(x - 2) : 0);
}

static unsigned partial(unsigned x)
{
	COUNT(PARTIAL);
	if (x % 16)
		return x;
	for (unsigned i = 0; i < 3; i++)
		printf("%s", x + i == 1 ? "never" : "");
	return x + 2;
}

static inline void then_arm(unsigned x)
{
	COUNT(THEN);
	sink = sink + x;
}

static inline void else_arm(unsigned x)
{
	COUNT(ELSE);
	sink = sink - x;
}

static inline unsigned do_while(unsigned x)
{
	COUNT(DO_WHILE);
	do {
		sink = sink * 3;
		x /= 2;
	} while (x > 3);
	return x;
}

static inline unsigned switched(unsigned x)
{
	COUNT(SWITCHED);
	switch (x % 6) {
	case 0:
		return leaf(x);
	case 1:
		return sink = x;
	case 2:
		return early(x);
	case 3:
		return x * x;
	case 4:
		sink = sink + 4;
		return 4;
	default:
		return 0;
	}
}

template <typename T> struct stack {
	T items[64];
	unsigned n = 0;

	void push(T item)
	{
		COUNT(PUSH);
		if (n < 64)
			items[n++] = item;
	}
	T sum() const
	{
		T all = 0;

		COUNT(SUM);
		for (unsigned i = 0; i < n; i++)
			all += items[i];
		return all;
	}
};

template <typename F> static inline unsigned twice(F f, unsigned x)
{
	COUNT(TWICE);
	return f(f(x));
}

static inline bool smaller(unsigned a, unsigned b)
{
	COUNT(SMALLER);
	return a < b;
}

static inline bool larger(unsigned a, unsigned b)
{
	COUNT(LARGER);
	return smaller(b, a);
}

static int compare(const void *a, const void *b)
{
	const unsigned x = *static_cast<const unsigned *>(a), y = *static_cast<const unsigned *>(b);

	COUNT(COMPARE);
	return larger(x, y) - smaller(x, y);
}

static inline void store(unsigned *at, unsigned x)
{
	COUNT(STORE);
	*at = x;
}

static inline unsigned digit(char c)
{
	COUNT(DIGIT);
	return static_cast<unsigned>(c - '0');
}

static inline unsigned parse(const char *text)
{
	unsigned n = 0;

	COUNT(PARSE);
	for (; *text; text++)
		n = n * 10 + digit(*text);
	return n;
}

static inline void emit(char c)
{
	COUNT(EMIT);
	sink = sink + static_cast<unsigned char>(c);
}

static inline unsigned hash(const unsigned *items, unsigned n)
{
	unsigned h = 2166136261u;

	COUNT(HASH);
	for (unsigned i = 0; i < n; i++)
		h = (h ^ items[i]) * 16777619u;
	return h;
}

static __attribute__((__noinline__)) unsigned work(unsigned x)
{
	stack<unsigned> numbers;
	unsigned items[8];
	char text[16];

	numbers.push(leaf(x));
	numbers.push(loop(x));
	numbers.push(early(x));
	numbers.push(outer(x));
	numbers.push(recurse(x % 9));
	numbers.push(partial(x));
	if (x & 1)
		then_arm(x);
	else
		else_arm(x);
	numbers.push(do_while(x));
	numbers.push(switched(x));
	numbers.push(twice(
	    [](unsigned y) {
		    COUNT(LAMBDA);
		    return y ^ static_cast<unsigned>(sink);
	    },
	    x));
	for (unsigned i = 0; i < 8; i++)
		store(&items[i], (x * 7 + i * 13) % 31);
	qsort(items, 8, sizeof(*items), compare);
	snprintf(text, sizeof(text), "%u", x);
	numbers.push(parse(text));
	if (numbers.sum() > x)
		emit('+');
	else
		emit('-');
	return hash(items, 8) + numbers.sum();
}

int main()
{
	unsigned n = 0;

	for (unsigned i = 0; i < 100; i++)
		n += work(i * 37 + 5);
	sink = n;
	for (unsigned i = 0; i < N_FUNCTIONS; i++)
		printf("%s %llu\n", names[i], static_cast<unsigned long long>(counts[i]));
}
