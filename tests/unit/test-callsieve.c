/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Calls that are left out: each row is a stream of calls, and what remains of it. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/callsieve.h"

struct row {
	const char *name;
	uint64_t min_duration;
	int64_t max_depth;
	/* Functions are letters: "(" and a letter at which one is entered, ")" and one at which it
	 * is left, 1 time unit apart; "." passes ten units; a digit goes on on the stack of that
	 * number; "^" and a digit moves the innermost function of the present stack there. */
	const char *calls;
	const char *remain; /* likewise, without what passes time */
	uint64_t n_left_out;
};

static const struct row rows[] = {
	{ "nothing is asked for", 0, INT64_MAX, "(a(b)b)a", "(a(b)b)a", 0 },
	{ "all is short", 10, INT64_MAX, "(a(b)b)a", "", 2 },
	{ "a long one in others", 10, INT64_MAX, "(a(b)b(c.)c(d)d)a", "(a(c)c)a", 2 },
	{ "only the outer one is long", 10, INT64_MAX, "(a.(b(c)c)b)a", "(a)a", 2 },
	{ "long ones one after the other", 10, INT64_MAX, "(a.)a(b.)b", "(a)a(b)b", 0 },
	{ "what is deep", 0, 1, "(a(b(c.)c(d)d)b)a", "(a(b)b)a", 2 },
	{ "deep, and short", 10, 1, "(a(b(c.)c)b(e)e)a", "(a(b)b)a", 2 },
	{ "another stack", 10, INT64_MAX, "(a(b1(c)c(d.)d0)b)a", "(a(b1(d)d0)b)a", 1 },
	{ "functions that are moved", 10, INT64_MAX, "(a1(b0(c1^0)b.)c)a", "(a1(b0(c1^0)b)c)a", 0 },
};

#define CALLS_MAX 32

struct stream {
	struct ptd_call calls[CALLS_MAX];
	struct ptd_function functions[26];
	size_t n;
	struct {
		uint64_t entered[CALLS_MAX];
		size_t n;
	} stacks[2];
};

static void put_call(struct stream *s, char what, char name, uint64_t t, uint32_t stack)
{
	struct ptd_call *call = &s->calls[s->n++];

	*call = (struct ptd_call){ .stack = stack, .t = t, .function = &s->functions[name - 'a'] };
	if (what == '(') {
		call->kind = PTD_CALL_ENTER;
		call->depth = (int32_t)s->stacks[stack].n;
		s->stacks[stack].entered[s->stacks[stack].n++] = t;
	} else {
		call->kind = PTD_CALL_LEAVE;
		call->t_total = t - s->stacks[stack].entered[--s->stacks[stack].n];
		call->n_insns_total = 2 * call->t_total;
	}
}

static void put_switch(struct stream *s, uint32_t stack, uint32_t n_moved, uint32_t moved_to)
{
	s->calls[s->n++] = (struct ptd_call){
		.kind = PTD_CALL_SWITCH, .stack = stack, .n_moved = n_moved, .moved_to = moved_to
	};
}

static void read_stream(const char *text, struct stream *s)
{
	uint32_t stack = 0;
	uint64_t t = 1;

	*s = (struct stream){};
	for (; *text; text++, t++) {
		if (*text == '.') {
			t += 10;
		} else if (*text == '(' || *text == ')') {
			put_call(s, text[0], text[1], t, stack);
			text++;
		} else if (*text == '^') {
			/* The innermost function of the stack that the thread is on now. */
			const uint32_t to = (uint32_t)(*++text - '0');

			s->calls[s->n - 1].n_moved = 1;
			s->calls[s->n - 1].moved_to = to;
			s->stacks[to].entered[s->stacks[to].n++] =
			    s->stacks[stack].entered[--s->stacks[stack].n];
			stack = to;
		} else {
			stack = (uint32_t)(*text - '0');
			put_switch(s, stack, 0, 0);
		}
	}
}

static void print_calls(const struct stream *s, const struct ptd_call_batch *calls, char *to)
{
	for (size_t i = 0; i < calls->n_calls; i++) {
		const struct ptd_call *call = &calls->calls[i];

		if (call->kind == PTD_CALL_SWITCH)
			to += sprintf(to, call->n_moved ? "%u^%u" : "%u", call->stack,
				      call->moved_to);
		else
			to += sprintf(to, "%c%c", call->kind == PTD_CALL_ENTER ? '(' : ')',
				      (char)('a' + (call->function - s->functions)));
	}
	*to = '\0';
}

static void take(struct callsieve *sieve, const struct stream *stream,
		 struct ptd_call_batch *ret_rest)
{
	static const struct ptd_call_thread thread;
	const struct ptd_call_batch all = { .thread = &thread,
					    .calls = stream->calls,
					    .n_calls = stream->n };

	assert_int_equal(callsieve_take(sieve, &all, ret_rest), 0);
}

static void sieved(void **state)
{
	static struct stream stream;
	char text[4 * CALLS_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct callsieve sieve = { .min_duration = rows[i].min_duration,
					   .max_depth = rows[i].max_depth };
		struct ptd_call_batch rest;

		print_message("  %s\n", rows[i].name);
		read_stream(rows[i].calls, &stream);
		take(&sieve, &stream, &rest);
		print_calls(&stream, &rest, text);
		assert_string_equal(text, rows[i].remain);
		assert_int_equal(sieve.n_left_out, rows[i].n_left_out);
		callsieve_deinit(&sieve);
	}
}

/* What is left out counts as its caller's own, also if that was left out between. */
static void folded(void **state)
{
	static struct stream stream;
	struct callsieve sieve = { .max_depth = 0 };
	struct ptd_call_batch rest;

	(void)state;
	read_stream("(a(b(c)c)b(d.)d)a", &stream);
	take(&sieve, &stream, &rest);
	assert_int_equal(rest.n_calls, 2);
	/* b took 3, c with it, and d 11 and the time that passed. */
	assert_int_equal(rest.calls[1].t_self, stream.calls[4].t_total + stream.calls[6].t_total);
	assert_int_equal(rest.calls[1].n_insns_self, 2 * rest.calls[1].t_self);
	callsieve_deinit(&sieve);
}

static void counted(void **state)
{
	struct ptd_call calls[100];
	struct callsieve sieve = {};

	(void)state;
	for (size_t i = 0; i < 100; i++)
		calls[i] =
		    (struct ptd_call){ .kind = PTD_CALL_LEAVE, .t_total = i < 90 ? 5 : 1000 };
	callsieve_count(&sieve, &(struct ptd_call_batch){ .calls = calls, .n_calls = 100 });
	assert_int_equal(callsieve_duration_of(&sieve, 1), 1);
	assert_int_equal(callsieve_duration_of(&sieve, 10), 8);
	assert_int_equal(callsieve_duration_of(&sieve, 11), 1024);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sieved),
		cmocka_unit_test(folded),
		cmocka_unit_test(counted),
	};

	return cmocka_run_group_tests_name("callsieve", tests, NULL, NULL);
}
