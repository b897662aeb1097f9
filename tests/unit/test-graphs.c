/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Random graphs of code: chains of direct jumps, calls that nest, tails that functions share,
 * loops, recursions, returns that go elsewhere than back. Each is run at random, and encoded by a
 * CPU of our own, written from the SDM; then each engine has to list what ran, all of it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/image/cache.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"
#include "decoder/image/view.h"
#include "decoder/pt/engine.h"
#include "tests/lib/packets.h"
#include "util/vec.h"

#define GRAPHS        200
#define STEPS         1500
#define BASE          UINT64_C(0x401000)
#define FUNCTIONS_MAX 6
#define BLOCKS_MAX    8 /* of a function */
#define CHAIN_MAX     70
#define NESTED_MAX    4096
#define CPU_CALLS     64

enum kind {
	OTHER,
	COND,
	JUMP,
	CALL,
	JUMP_INDIRECT,
	CALL_INDIRECT,
	RETURN,
};

struct node {
	enum kind kind;
	size_t to; /* the node that it leads to, if it is direct */
	uint64_t ip;
	unsigned size;
};

struct graph {
	VEC(struct node) nodes;
	size_t n_functions, first[FUNCTIONS_MAX + 1]; /* node of each function */
	VEC(size_t) blocks;                           /* first nodes, of all functions */
	VEC(uint8_t) code;
};

/* The machine that runs, and the packets that its CPU writes. */
struct machine {
	const struct graph *graph;
	size_t at;                          /* a node */
	size_t stack[NESTED_MAX], n_stack;  /* nodes to return to */
	uint64_t calls[CPU_CALLS], n_calls; /* the CPU's call stack, the oldest first */
	char tnt[48];
	size_t n_tnt_max;
	unsigned mode;
	uint64_t tsc;
	VEC(uint8_t) pt;
	VEC(uint64_t) ran;
};

/* xorshift; the same on every machine. */
static uint64_t random_state;

static size_t random_below(size_t n)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return (size_t)(random_state >> 11) % n;
}

static bool one_in(size_t n)
{
	return random_below(n) == 0;
}

/*
 * Graphs
 */

static void add(struct graph *g, enum kind kind, size_t to)
{
	static const unsigned sizes[] = { 1, 6, 5, 5, 2, 2, 1 };

	assert_int_equal(vec_push(&g->nodes, ((struct node){ kind, to, .size = sizes[kind] })), 0);
}

/* Direct jumps from one to the next. Between them are nodes that nothing leads to. */
static void add_chain(struct graph *g, size_t n)
{
	while (n-- > 0) {
		const size_t skipped = random_below(3);

		add(g, one_in(3) ? CALL : JUMP, g->nodes.n + 1 + skipped);
		for (size_t i = 0; i < skipped; i++)
			add(g, OTHER, 0);
	}
}

/* Return: what stands for the first node of a function behind @function, until it is known. */
static size_t to_later(size_t function)
{
	return SIZE_MAX - (function + 1 + random_below(FUNCTIONS_MAX - function - 1));
}

static void add_block(struct graph *g, size_t function, size_t block)
{
	assert_int_equal(vec_push(&g->blocks, g->nodes.n), 0);
	for (size_t n = random_below(4); n > 0; n--)
		add(g, OTHER, 0);
	if (one_in(4))
		add_chain(g, random_below(CHAIN_MAX));
	switch (random_below(8)) {
	case 0:
		/* A tail that functions share. What leads on does not go round without a packet. */
		if (function + 1 < FUNCTIONS_MAX)
			add(g, JUMP, to_later(function));
		break;
	case 1:
	case 2:
		add(g, COND, g->blocks.items[g->blocks.n - 1 - random_below(block + 1)]);
		break;
	case 3:
		if (function + 1 < FUNCTIONS_MAX)
			add(g, CALL, to_later(function));
		break;
	case 4:
		add(g, COND, g->nodes.n + 1);
		add(g, CALL, g->first[random_below(function + 1)]);
		break;
	case 5:
		add(g, CALL_INDIRECT, 0);
		break;
	case 6:
		add(g, JUMP_INDIRECT, 0);
		break;
	default:
		add(g, RETURN, 0);
		break;
	}
}

static void put_code(struct graph *g)
{
	uint64_t ip = BASE;

	for (size_t i = 0; i < g->nodes.n; i++) {
		g->nodes.items[i].ip = ip;
		ip += g->nodes.items[i].size;
	}
	for (size_t i = 0; i < g->nodes.n; i++) {
		static const uint8_t bytes[][2] = { { 0x90 }, { 0x0f, 0x84 }, { 0xe9 },
						    { 0xe8 }, { 0xff, 0xe0 }, { 0xff, 0xd0 },
						    { 0xc3 } };
		const struct node *n = &g->nodes.items[i];
		uint8_t insn[8];

		memcpy(insn, bytes[n->kind], 2);
		if (n->size > 4) {
			const uint32_t distance =
			    (uint32_t)(g->nodes.items[n->to].ip - (n->ip + n->size));

			memcpy(insn + n->size - 4, &distance, 4);
		}
		for (unsigned k = 0; k < n->size; k++)
			assert_int_equal(vec_push(&g->code, insn[k]), 0);
	}
}

static void make_graph(struct graph *g)
{
	*g = (struct graph){ .n_functions = FUNCTIONS_MAX };
	for (size_t f = 0; f < g->n_functions; f++) {
		const size_t n_blocks = 1 + random_below(BLOCKS_MAX);

		g->first[f] = g->nodes.n;
		for (size_t b = 0; b < n_blocks; b++)
			add_block(g, f, b);
		add(g, RETURN, 0);
	}
	for (size_t i = 0; i < g->nodes.n; i++)
		if (g->nodes.items[i].to > SIZE_MAX - FUNCTIONS_MAX)
			g->nodes.items[i].to = g->first[SIZE_MAX - g->nodes.items[i].to];
	put_code(g);
}

static void free_graph(struct graph *g)
{
	vec_deinit(&g->nodes);
	vec_deinit(&g->blocks);
	vec_deinit(&g->code);
}

/*
 * The machine
 */

__attribute__((format(printf, 2, 3))) static void put(struct machine *m, const char *format, ...)
{
	uint8_t bytes[64];
	char line[128];
	va_list ap;
	int n;

	va_start(ap, format);
	(void)vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	n = packets_write(line, bytes);
	assert_true(n > 0);
	for (int i = 0; i < n; i++)
		assert_int_equal(vec_push(&m->pt, bytes[i]), 0);
}

static void flush(struct machine *m)
{
	if (m->tnt[0])
		put(m, "%s %s", strlen(m->tnt) > 6 ? "tnt64" : "tnt", m->tnt);
	m->tnt[0] = 0;
}

static void put_bit(struct machine *m, char bit)
{
	const size_t n = strlen(m->tnt);

	m->tnt[n] = bit;
	m->tnt[n + 1] = 0;
	if (n + 1 == m->n_tnt_max)
		flush(m);
}

static uint64_t ip_of(const struct machine *m)
{
	return m->graph->nodes.items[m->at].ip;
}

/* Packets were lost; or they stop, and begin again; or a PSB+ comes. */
static void put_break(struct machine *m)
{
	m->n_calls = 0;
	m->tsc += 3;
	switch (random_below(3)) {
	case 0:
		put(m, "psb");
		put(m, "tsc %" PRIx64, m->tsc);
		put(m, "mode.exec %u", m->mode);
		put(m, "fup %" PRIx64, ip_of(m));
		put(m, "psbend");
		return;
	case 1:
		put(m, "ovf");
		put(m, "tsc %" PRIx64, m->tsc);
		put(m, "fup %" PRIx64, ip_of(m));
		return;
	default:
		put(m, "fup %" PRIx64, ip_of(m));
		put(m, "tip.pgd0");
		put(m, "tsc %" PRIx64, m->tsc);
		put(m, "tip.pge %" PRIx64, ip_of(m));
		return;
	}
}

static void push(struct machine *m, size_t next, bool is_real)
{
	if (m->n_stack < NESTED_MAX)
		m->stack[m->n_stack++] = next;
	if (!is_real)
		return;
	if (m->n_calls == CPU_CALLS)
		memmove(m->calls, m->calls + 1, --m->n_calls * sizeof(*m->calls));
	m->calls[m->n_calls++] = m->graph->nodes.items[next].ip;
}

static size_t random_block(const struct machine *m)
{
	return m->graph->blocks.items[random_below(m->graph->blocks.n)];
}

static void go_indirectly(struct machine *m, size_t to)
{
	flush(m);
	m->at = to;
	put(m, "tip %" PRIx64, ip_of(m));
	if (one_in(40))
		put_break(m);
}

/* It goes back; or elsewhere, as that of a retpoline; or past some calls. */
static void run_return(struct machine *m)
{
	const bool strays = m->n_stack == 0 || one_in(12);
	size_t to;
	bool is_compressed;

	if (!strays && one_in(12))
		m->n_stack -= random_below(m->n_stack);
	to = strays ? random_block(m) : m->stack[m->n_stack - 1];
	if (m->n_stack > 0 && !(strays && one_in(2)))
		m->n_stack--;
	is_compressed = m->n_calls > 0 && m->calls[m->n_calls - 1] == m->graph->nodes.items[to].ip;
	if (m->n_calls > 0)
		m->n_calls--;
	if (!is_compressed) {
		go_indirectly(m, to);
		return;
	}
	put_bit(m, '1');
	m->at = to;
}

static void step(struct machine *m)
{
	const struct node *n = &m->graph->nodes.items[m->at];
	const size_t next = m->at + 1;
	bool is_taken;

	assert_int_equal(vec_push(&m->ran, n->ip), 0);
	switch (n->kind) {
	case OTHER:
		m->at = next;
		return;
	case COND:
		is_taken = one_in(2);
		put_bit(m, is_taken ? '1' : '0');
		m->at = is_taken ? n->to : next;
		return;
	case CALL:
		push(m, next, n->to != next);
		m->at = n->to;
		return;
	case JUMP:
		m->at = n->to;
		return;
	case CALL_INDIRECT:
		push(m, next, true);
		go_indirectly(m, m->graph->first[random_below(m->graph->n_functions)]);
		return;
	case JUMP_INDIRECT:
		go_indirectly(m, random_block(m));
		return;
	case RETURN:
		run_return(m);
		return;
	}
}

static void run(struct machine *m, const struct graph *graph)
{
	*m = (struct machine){ .graph = graph,
			       .mode = one_in(3) ? 32 : 64,
			       .n_tnt_max = one_in(2) ? 6 : 47,
			       .tsc = 7 };
	put(m, "psb");
	put(m, "tsc 5");
	put(m, "psbend");
	put(m, "mode.exec %u", m->mode);
	put(m, "tsc 7");
	put(m, "tip.pge %" PRIx64, ip_of(m));
	for (size_t i = 0; i < STEPS; i++)
		step(m);
	flush(m);
	put(m, "fup %" PRIx64, ip_of(m));
	put(m, "tip.pgd0");
}

static void free_machine(struct machine *m)
{
	vec_deinit(&m->pt);
	vec_deinit(&m->ran);
}

/*
 * Engines
 */

struct setup {
	char path[32];
	struct objects *objects;
	struct space *space;
	struct cache *cache;
	struct views *views;
	struct engine_budget budget;
	struct ptd_run *runs;
};

static void setup_init(struct setup *s, const uint8_t *code, size_t size)
{
	const struct object *object;
	int fd;

	*s = (struct setup){ .path = "/tmp/ptd-test-XXXXXX",
			     .budget.n_insns = ENGINE_INSNS_MIN,
			     .runs = calloc(ENGINE_STEP_RUNS_MAX, sizeof(*s->runs)) };
	fd = mkstemp(s->path);
	assert_true(fd >= 0 && s->runs);
	assert_int_equal(write(fd, code, size), size);
	close(fd);
	assert_int_equal(objects_new(NULL, &s->objects), 0);
	assert_int_equal(objects_add_file(s->objects, s->path, &object), 0);
	assert_int_equal(space_new(0, NULL, 0, &s->space), 0);
	assert_int_equal(
	    space_map(s->space, &(struct mapping){ .start = BASE, .size = size, .object = object }),
	    0);
	assert_int_equal(cache_new(NULL, NULL, &s->cache), 0);
	assert_int_equal(views_new(s->cache, &s->views), 0);
}

static void setup_deinit(struct setup *s)
{
	free(s->runs);
	views_free(s->views);
	cache_free(s->cache);
	space_free(s->space);
	objects_free(s->objects);
	unlink(s->path);
}

/* Return: how many instructions @name lists before one that is not the next of @ran, or a gap. */
static size_t count_right(struct setup *s, const char *name, const uint8_t *pt, size_t size,
			  const uint64_t *ran, size_t n_ran)
{
	const struct engine_config config = { .pt = fileparts_in_memory(pt, size),
					      .cache = s->cache,
					      .budget = &s->budget,
					      .views = s->views };
	_cleanup_(engine_freep) struct engine *engine = NULL;
	struct engine_step step;
	size_t n = 0;

	assert_int_equal(engine_new(engine_find(name), &config, &engine), 0);
	do {
		assert_int_equal(engine_next(engine, s->runs, ENGINE_STEP_RUNS_MAX, &step), 0);
		for (size_t i = 0; i < step.n_runs; i++)
			for (size_t k = 0; k < s->runs[i].n; k++, n++)
				if (n == n_ran || ptd_run_ip(&s->runs[i], k) != ran[n])
					return n;
		if (step.stop == ENGINE_GAP && step.reason != PTD_GAP_OVERFLOW)
			return n;
		if (step.stop == ENGINE_ASK)
			assert_int_equal(engine_set_space(engine, s->space, 1, 1), 0);
	} while (step.stop != ENGINE_END);
	return n;
}

static const char *const engines[] = { "flow", "insn" };

static void graphs(void **state)
{
	size_t n_insns = 0, n_bytes = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= GRAPHS; seed++) {
		struct machine m;
		struct graph g;
		struct setup s;

		random_state = seed * UINT64_C(0x9e3779b97f4a7c15);
		make_graph(&g);
		run(&m, &g);
		setup_init(&s, g.code.items, g.code.n);
		for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
			const size_t n =
			    count_right(&s, engines[i], m.pt.items, m.pt.n, m.ran.items, m.ran.n);

			if (n != m.ran.n)
				fail_msg("seed %" PRIu64 ", %s: right up to %zu of %zu", seed,
					 engines[i], n, m.ran.n);
		}
		n_insns += m.ran.n;
		n_bytes += m.pt.n;
		setup_deinit(&s);
		free_machine(&m);
		free_graph(&g);
	}
	print_message("  %zu instructions, %zu bytes of packets\n", n_insns, n_bytes);
}

/* More than a million instructions, and direct jumps, that no packet lies between. */
static void long_ways(void **state)
{
	enum { N = 1200000 };
	uint8_t *code = malloc(2 * N + 1);
	uint64_t *ran = calloc(N, sizeof(*ran));

	(void)state;
	assert_true(code && ran);
	for (size_t size = 1; size <= 2; size++) {
		struct machine m = {};
		struct setup s;

		for (size_t i = 0; i < N; i++) {
			memcpy(code + i * size, size == 1 ? "\x90" : "\xeb", size);
			ran[i] = BASE + i * size;
		}
		code[N * size] = 0x90;
		put(&m, "psb");
		put(&m, "psbend");
		put(&m, "mode.exec 64");
		put(&m, "tip.pge %" PRIx64, BASE);
		put(&m, "fup %" PRIx64, BASE + N * size);
		put(&m, "tip.pgd0");
		setup_init(&s, code, N * size + 1);
		for (size_t i = 0; i < ARRAY_LEN(engines); i++)
			assert_int_equal(count_right(&s, engines[i], m.pt.items, m.pt.n, ran, N),
					 N);
		setup_deinit(&s);
		free_machine(&m);
	}
	free(code);
	free(ran);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(graphs),
		cmocka_unit_test(long_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
