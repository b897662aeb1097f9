/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Ten small programs, each with one fault, for what ranks branches by how well they predict a bad
 * run: "faults NAME SEED" makes its input from the seed, and ends with 1 or a signal if the fault
 * has shown. The line of each fault says so: "FAULT: NAME".
 */

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As a build for debugging: each condition is a branch. */
#pragma GCC optimize("O0")

static uint64_t state;

static unsigned next(unsigned limit)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % limit;
}

static int check(int is_right)
{
	if (!is_right)
		fprintf(stderr, "wrong\n");
	return !is_right;
}

/* Whether a sorted array has a number. */
static int find(const int *numbers, int n, int wanted)
{
	int low = 0, high = n - 1;

	while (low < high) { /* FAULT: bounds; should be <= */
		const int middle = (low + high) / 2;

		if (numbers[middle] == wanted)
			return 1;
		if (numbers[middle] < wanted)
			low = middle + 1;
		else
			high = middle - 1;
	}
	return 0;
}

static int bounds(void)
{
	int numbers[10], at = (int)next(10);

	for (int i = 0; i < 10; i++)
		numbers[i] = 3 * i + (int)next(3);
	return check(find(numbers, 10, numbers[at]));
}

/* A list of names, of which one is removed. */
struct node {
	struct node *next;
	int key;
};

static struct node *list_remove(struct node *head, int key)
{
	struct node *before = NULL, *node = head;

	while (node && node->key != key) {
		before = node;
		node = node->next;
	}
	before->next = node->next; /* FAULT: head; before is NULL for the first one */
	return head;
}

static int head(void)
{
	struct node nodes[6], *list;

	for (int i = 0; i < 6; i++)
		nodes[i] = (struct node){ i < 5 ? &nodes[i + 1] : NULL, i };
	list = list_remove(nodes, (int)next(4));
	return check(list->key == 0);
}

/* How many of the intervals remain when those that touch are joined. */
static int joined(const int (*intervals)[2], int n)
{
	int count = n > 0, end = intervals[0][1];

	for (int i = 1; i < n; i++) {
		if (intervals[i][0] >= end) /* FAULT: operator; should be > */
			count++;
		if (intervals[i][1] > end)
			end = intervals[i][1];
	}
	return count;
}

static int operator(void)
{
	int intervals[5][2], at = 0, n_wanted = 1;

	for (int i = 0; i < 5; i++) {
		const int gap = next(8) == 0 ? 0 : next(2) ? 2 : -1;

		n_wanted += i > 0 && gap > 0;
		intervals[i][0] = i > 0 ? at + gap : 0;
		at = intervals[i][1] = intervals[i][0] + 3 + (int)next(4);
	}
	return check(joined(intervals, 5) == n_wanted);
}

/* Words of a line, of which some are in quotes. */
static int count_words(const char *line)
{
	static int in_quotes; /* FAULT: stale; is not set back for each line */
	int n = 0, in_word = 0;

	for (; *line; line++) {
		if (*line == '"')
			in_quotes = !in_quotes;
		if (*line == ' ' && !in_quotes) {
			in_word = 0;
		} else if (!in_word) {
			in_word = 1;
			n++;
		}
	}
	return n;
}

static int stale(void)
{
	static const char *const lines[] = { "one two", "\"one two\" three", "un\"ended", "a b c" };
	static const int counts[] = { 2, 2, 1, 3 };
	int is_wrong = 0;

	for (int i = 0; i < 3; i++) {
		const unsigned k = next(4);

		if (k == 2 && next(2))
			continue;
		is_wrong |= count_words(lines[k]) != counts[k];
	}
	return check(!is_wrong);
}

/* The size of a message, by its kind. */
static int size_of(int kind, int n)
{
	switch (kind) {
	case 0:
		return 1;
	case 1:
		return 2 + n;
	case 2:
		return 4;
	case 3:
		return 4 + 2 * n;
	default: /* FAULT: missing; kind 4 has 8 */
		return 1;
	}
}

static int missing(void)
{
	int at = 0, end = 0;

	for (int i = 0; i < 8; i++) {
		const int kind = next(20) == 0 ? 4 : (int)next(4), n = (int)next(9);

		at += size_of(kind, n);
		end += (const int[]){ 1, 2 + n, 4, 4 + 2 * n, 8 }[kind];
	}
	return check(at == end);
}

/* A ring of eight bytes. */
static struct {
	unsigned char bytes[8];
	unsigned head, tail;
} ring;

static int ring_put(unsigned char byte)
{
	if (ring.head - ring.tail > 8) /* FAULT: full; should be >= */
		return 0;
	ring.bytes[ring.head++ % 8] = byte;
	return 1;
}

static int ring_get(void)
{
	return ring.head == ring.tail ? -1 : ring.bytes[ring.tail++ % 8];
}

static int full(void)
{
	unsigned char put = 0, got = 0;
	int is_wrong = 0;

	for (int i = 0; i < 60 && !is_wrong; i++) {
		if (next(100) < 58)
			put = (unsigned char)(put + ring_put(put));
		else if (ring.head != ring.tail)
			is_wrong = ring_get() != got++;
	}
	while (ring.head != ring.tail && !is_wrong)
		is_wrong = ring_get() != got++;
	return check(!is_wrong);
}

/* A number as text, and back. */
static long parse(const char *text)
{
	long n = 0;
	int is_negative = 0;

	if (*text == '-') {
		is_negative = 1;
		text++;
	}
	while (*text >= '0' && *text < '9') /* FAULT: digit; should be <= */
		n = 10 * n + *text++ - '0';
	return is_negative ? -n : n;
}

static int digit(void)
{
	char text[32];
	const long n = (long)next(2000) - 1000;

	snprintf(text, sizeof(text), "%ld", n);
	return check(parse(text) == n);
}

/* Room for things, of which each has a size. */
static int fits(const unsigned short *sizes, int n, unsigned limit)
{
	unsigned short sum = 0; /* FAULT: overflow; should be wider */

	for (int i = 0; i < n; i++)
		sum = (unsigned short)(sum + sizes[i]);
	if (sum > limit)
		return 0;
	return 1;
}

static int overflow(void)
{
	unsigned short sizes[8];
	unsigned sum = 0;

	for (int i = 0; i < 8; i++) {
		sizes[i] = (unsigned short)next(15000);
		sum += sizes[i];
	}
	return check(fits(sizes, 8, 40000) == (sum <= 40000));
}

/* A cache of squares. */
static int cache[16], keys[16];

static int square(int n)
{
	const int slot = n % 16;

	if (cache[slot] && keys[slot] / 16 == n / 32) /* FAULT: key; should compare all of it */
		return cache[slot];
	keys[slot] = n;
	return cache[slot] = n * n;
}

static int key(void)
{
	int is_wrong = 0;

	for (int i = 0; i < 5; i++) {
		const int n = 1 + (int)next(60);

		is_wrong |= square(n) != n * n;
	}
	return check(!is_wrong);
}

/* Two threads that add to an account. */
static volatile long balance;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static int is_careless;

static void *pay(void *unused)
{
	for (int i = 0; i < 3000; i++) {
		long before;

		if (is_careless && i % 3 != 0) { /* FAULT: lock; is to be taken each time */
			before = balance;
			for (volatile int k = 0; k < 200; k++)
				;
			balance = before + 1;
			continue;
		}
		(void)pthread_mutex_lock(&mutex);
		before = balance;
		for (volatile int k = 0; k < 200; k++)
			;
		balance = before + 1;
		(void)pthread_mutex_unlock(&mutex);
	}
	return unused;
}

static int lock(void)
{
	pthread_t threads[2];

	is_careless = next(2) == 0;
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, pay, NULL) != 0)
			return 2;
	for (int i = 0; i < 2; i++)
		(void)pthread_join(threads[i], NULL);
	return check(balance == 6000);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} faults[] = { { "bounds", bounds }, { "head", head },
		       { "operator", operator},
			 { "stale", stale },
			 { "missing", missing },
			 { "full", full },
			 { "digit", digit },
			 { "overflow", overflow },
			 { "key", key },
			 { "lock", lock } };

	if (argc != 3)
		return 2;
	state = strtoull(argv[2], NULL, 0);
	(void)next(1);
	for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++)
		if (strcmp(argv[1], faults[i].name) == 0)
			return faults[i].run();
	return 2;
}
