/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Engines: each row is a short stream of packets over one small program, and the transcript of what
 * an engine must make of it. Every row runs on every engine.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "decoder/image/cache.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"
#include "decoder/image/view.h"
#include "decoder/pt/engine.h"

#define BASE 0x401000

/* The program. Offsets are in the comments; it is mapped at BASE. */
static const uint8_t program[] = {
	0x90,                         /* 00 nop */
	0x74, 0x02,                   /* 01 je 05 */
	0x90,                         /* 03 nop */
	0x90,                         /* 04 nop */
	0xe8, 0x06, 0x00, 0x00, 0x00, /* 05 call 10 */
	0xff, 0xe0,                   /* 0a jmp *%rax */
	0x90, 0x90, 0x90, 0x90,       /* 0c nop … */
	0x90,                         /* 10 nop */
	0xc3,                         /* 11 ret */
	0x0f, 0x05,                   /* 12 syscall */
	0x90,                         /* 14 nop */
	0xeb, 0xfe,                   /* 15 jmp 15 */
	0x90,                         /* 17 nop, the last byte of the mapping */
};

#define PSB                                                                                       \
	0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, \
	    0x82
#define PSBEND    0x02, 0x23
#define MODE_64   0x99, 0x01
#define IP(off)   (off), 0x10, 0x40, 0x00, 0x00, 0x00 /* BASE + off, six bytes */
#define PGE(off)  0x71, IP(off)
#define TIP(off)  0x6d, IP(off)
#define FUP(off)  0x7d, IP(off)
#define PGD       0x01
#define TNT_T     0x06 /* one branch, taken */
#define TNT_N     0x04
#define OVF       0x02, 0xf3
#define TSC(n)    0x19, (n), 0, 0, 0, 0, 0, 0
#define START     PSB, TSC(5), PSBEND, MODE_64, TSC(7)
#define TSC_BYTES 8

struct row {
	const char *name;
	const char *expected;
	size_t size;
	uint8_t packets[120];
};

#define ROW(text, transcript, ...)                                       \
	{                                                                \
		.name = (text), .expected = (transcript),                \
		.size = sizeof((uint8_t[]){ __VA_ARGS__ }), .packets = { \
			__VA_ARGS__                                      \
		}                                                        \
	}

/* Time is shown where it changes, as "t=…". */
static const struct row rows[] = {
	ROW("a system call", "t=7 12 off end", START, PGE(0x12), PGD),
	ROW("branch taken, call, compressed return", "t=7 00 01 05 10 11 0a 12 off end", START,
	    PGE(0x00), 0x0e, TIP(0x12), PGD),
	ROW("branch not taken, uncompressed return, indirect jump",
	    "t=7 00 01 03 04 05 10 11 0a 12 off end", START, PGE(0x00), TNT_N, TIP(0x0a), TIP(0x12),
	    PGD),
	ROW("the time before the TIP of a return is of where that leads",
	    "t=7 00 01 03 04 05 10 11 t=9 0a 12 off end", START, PGE(0x00), TNT_N, TSC(9),
	    TIP(0x0a), TIP(0x12), PGD, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
	ROW("interrupted before an instruction, and back",
	    "t=7 00 async@01 t=9 01 05 10 11 0a 12 off end", START, PGE(0x00), FUP(0x01), PGD,
	    TSC(9), PGE(0x01), 0x0e, TIP(0x12), PGD),
	ROW("a system call that is restarted", "t=7 12 off 12 off end", START, PGE(0x12), PGD,
	    PGE(0x12), PGD),
	ROW("overflow while packets are on", "t=7 00 01 gap(overflow) 12 off end", START, PGE(0x00),
	    TNT_N, OVF, FUP(0x12), PGD),
	ROW("bytes before the first PSB", "gap(before the first PSB)x3@0 t=7 12 off end", 0x00,
	    0x00, 0x00, START, PGE(0x12), PGD),
	ROW("no PSB at all", "gap(no PSB at all)x7@0 end", PGE(0x12)),
	ROW("the end inside a packet", "t=7 gap(cut off inside a packet)x3@43 end", START,
	    PGE(0x00), 0x71, 0x00, 0x10),
	ROW("code that is not mapped", "t=7 00 01 05 10 11 0a gap(code not mapped) end", START,
	    PGE(0x00), 0x0e, TIP(0x40), PGD),
	ROW("falls off the end of its mapping", "t=7 17 gap(code not mapped) end", START, PGE(0x17),
	    PGD),
	ROW("a spinning loop is given up", "t=7 15 gap(no progress)x1@43 end", START, PGE(0x15),
	    TNT_T),
	ROW("an unknown packet, and on at the next PSB",
	    "t=7 00 01 gap(bad packet)x2@44 12 off end", START, PGE(0x00), TNT_N, 0x02, 0xff, START,
	    PGE(0x12), PGD),
};

struct setup {
	char path[32];
	struct objects *objects;
	struct space *space;
	struct cache *cache;
	struct engine_budget budget;
	struct views *views;
	struct ptd_run *runs;
	bool shows; /* blocks, as soon as they have run */
};

static void setup_init(struct setup *s)
{
	const struct object *object;
	int fd;

	*s = (struct setup){ .path = "/tmp/ptd-test-XXXXXX" };
	fd = mkstemp(s->path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, program, sizeof(program)), sizeof(program));
	close(fd);
	assert_int_equal(objects_new(NULL, &s->objects), 0);
	assert_int_equal(objects_add_file(s->objects, s->path, &object), 0);
	assert_int_equal(space_new(0, NULL, 0, &s->space), 0);
	assert_int_equal(space_map(s->space, &(struct mapping){ .start = BASE,
								.size = sizeof(program),
								.object = object }),
			 0);
	assert_int_equal(cache_new(NULL, NULL, &s->cache), 0);
	s->budget.n_insns = ENGINE_INSNS_MIN;
	assert_int_equal(views_new(s->cache, &s->views), 0);
	s->runs = calloc(ENGINE_STEP_RUNS_MAX, sizeof(*s->runs));
	assert_non_null(s->runs);
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

/* Longer lists of one address are written once, followed by dots. */
static void print_runs(FILE *f, const struct setup *s, size_t n, uint64_t *t, uint64_t *last)
{
	for (size_t i = 0; i < n; i++) {
		const struct ptd_run *run = &s->runs[i];

		if (run->t != *t)
			fprintf(f, "t=%" PRIu64 " ", *t = run->t);
		for (size_t k = 0; k < run->n; k++) {
			const uint64_t ip = ptd_run_ip(run, k);

			if (ip != *last)
				fprintf(f, "%02" PRIx64 " ", ip - BASE);
			*last = ip;
		}
	}
}

/* Is @block the block of one of @n runs? */
static bool is_block_of(const struct setup *s, const uint32_t *runs, size_t n, size_t last,
			const struct ptd_block *block)
{
	for (size_t i = 0; i < n && runs[i] <= last; i++)
		if (s->runs[runs[i]].block == block)
			return true;
	return false;
}

/* The engine names the first of its @n runs of each block that has not been shown, and no run of
 * another block. */
static void check_new_runs(const struct setup *s, const struct engine *engine, size_t n)
{
	size_t n_new;
	const uint32_t *new_runs = engine_new_runs(engine, &n_new);

	for (size_t i = 0; i < n; i++)
		assert_int_equal(is_block_of(s, new_runs, n_new, i, s->runs[i].block),
				 !cache_has_shown(s->runs[i].block));
	for (size_t i = 0; i < n_new; i++)
		assert_true(new_runs[i] < n && (i == 0 || new_runs[i - 1] < new_runs[i]));
	for (size_t i = 0; i < n && s->shows; i++)
		if (!cache_has_shown(s->runs[i].block))
			assert_int_equal(cache_show(s->cache, s->runs[i].block), 0);
}

static void transcribe(struct setup *s, const struct engine_ops *ops, const struct row *row,
		       FILE *f)
{
	uint8_t packets[sizeof(row->packets)];
	const struct engine_config config = { .pt = fileparts_in_memory(packets, row->size),
					      .cache = s->cache,
					      .budget = &s->budget,
					      .views = s->views };
	_cleanup_(engine_freep) struct engine *engine = NULL;
	uint64_t t = 0, last = 0, accounted = 0;
	bool asked = false; /* since packets were last off */
	struct engine_step step;

	memcpy(packets, row->packets, sizeof(packets));
	assert_int_equal(engine_new(ops, &config, &engine), 0);
	do {
		assert_int_equal(engine_next(engine, s->runs, ENGINE_STEP_RUNS_MAX, &step), 0);
		assert_true(asked || step.n_runs == 0);
		check_new_runs(s, engine, step.n_runs);
		print_runs(f, s, step.n_runs, &t, &last);
		if (step.stop == ENGINE_FULL)
			continue;
		if (step.stop != ENGINE_GAP && step.t != t)
			fprintf(f, "t=%" PRIu64 " ", t = step.t);
		last = step.stop == ENGINE_ASK ? last : 0;
		asked = step.stop == ENGINE_ASK;
		switch (step.stop) {
		case ENGINE_ASK:
			assert_int_equal(engine_set_space(engine, s->space, 1, 1), 0);
			break;
		case ENGINE_MARK:
			fprintf(f, "%s", ptd_mark_kind_name(step.mark));
			if (step.ip)
				fprintf(f, "@%02" PRIx64, step.ip - BASE);
			fprintf(f, " ");
			break;
		case ENGINE_GAP:
			fprintf(f, "gap(%s)", ptd_gap_reason_name(step.reason));
			if (step.n_bytes)
				fprintf(f, "x%" PRIu64 "@%" PRIu64, step.n_bytes, step.offset);
			fprintf(f, " ");
			accounted += step.n_bytes;
			break;
		default:
			fprintf(f, "end");
		}
	} while (step.stop != ENGINE_END);

	/* In = decoded + lost. */
	assert_int_equal(engine_decoded(engine) + accounted, row->size);
	assert_int_equal(engine_next(engine, s->runs, ENGINE_STEP_RUNS_MAX, &step), 0);
	assert_int_equal(step.stop, ENGINE_END);
}

static void every_row(const char *engine)
{
	const struct engine_ops *ops = engine_find(engine);
	struct setup s;

	assert_non_null(ops);
	setup_init(&s);
	/* First no block is shown, although its code runs again and again; then all are. */
	for (size_t i = 0; i < 2 * ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i % ARRAY_LEN(rows)];
		char *text = NULL;
		size_t size;
		FILE *f = open_memstream(&text, &size);

		assert_non_null(f);
		s.shows = i >= ARRAY_LEN(rows);
		transcribe(&s, ops, row, f);
		fclose(f);
		print_message("  %s: %s\n", row->name, text);
		assert_string_equal(text, row->expected);
		free(text);
	}
	setup_deinit(&s);
}

static void insn_engine(void **state)
{
	(void)state;
	every_row("insn");
}

static void flow_engine(void **state)
{
	(void)state;
	every_row("flow");
}

#define PIECES     70000 /* libipt has room for 65528 sections, a process for 65530 mappings */
#define PIECE_STEP 7     /* of those that code runs in */

static uint64_t piece_base(size_t i)
{
	return BASE + i * 0x1000;
}

/*
 * The program at all these addresses, and packets that run its last instruction but two at every
 * PIECE_STEPth.
 */
static uint8_t *make_pieces(struct setup *s, size_t *ret_size)
{
	static const uint8_t start[] = { START };
	struct mapping mapping = *space_mapping(s->space, 0);
	uint8_t *packets = malloc(sizeof(start) + PIECES * 8), *p = packets;

	assert_non_null(packets);
	memcpy(p, start, sizeof(start));
	p += sizeof(start);
	for (size_t i = 1; i < PIECES; i++) {
		mapping.start = piece_base(i);
		assert_int_equal(space_map(s->space, &mapping), 0);
	}
	for (size_t i = 0; i < PIECES; i += PIECE_STEP) {
		const uint64_t ip = piece_base(i) + 0x12;

		*p++ = 0x71; /* TIP.PGE */
		memcpy(p, &ip, 6);
		p[6] = PGD;
		p += 7;
	}
	*ret_size = (size_t)(p - packets);
	return packets;
}

/* Code may be in more places than libipt can keep. */
static void very_many_mappings(void **state)
{
	static const char *const engines[] = { "flow", "insn" };
	struct setup s;
	size_t size;

	(void)state;
	setup_init(&s);
	for (size_t k = 0; k < ARRAY_LEN(engines); k++) {
		_cleanup_(freep) uint8_t *packets = make_pieces(&s, &size);
		const struct engine_config config = { .pt = fileparts_in_memory(packets, size),
						      .cache = s.cache,
						      .budget = &s.budget,
						      .views = s.views };
		_cleanup_(engine_freep) struct engine *engine = NULL;
		struct engine_step step;
		size_t n = 0;

		assert_int_equal(engine_new(engine_find(engines[k]), &config, &engine), 0);
		do {
			assert_int_equal(engine_next(engine, s.runs, ENGINE_STEP_RUNS_MAX, &step),
					 0);
			assert_int_not_equal(step.stop, ENGINE_GAP);
			for (size_t i = 0; i < step.n_runs; i++, n++) {
				assert_int_equal(s.runs[i].n, 1);
				assert_int_equal(ptd_run_ip(&s.runs[i], 0),
						 piece_base(n * PIECE_STEP) + 0x12);
			}
			if (step.stop == ENGINE_ASK)
				assert_int_equal(engine_set_space(engine, s.space, PIECES, PIECES),
						 0);
		} while (step.stop != ENGINE_END);
		assert_int_equal(n, PIECES / PIECE_STEP);
	}
	setup_deinit(&s);
}

static void instructions_are_not_endless(void **state)
{
	struct engine_budget budget = { .n_insns = ENGINE_INSNS_MIN };

	(void)state;
	assert_true(engine_budget_take(&budget, ENGINE_INSNS_MIN - 1, 0));
	assert_false(engine_budget_take(&budget, 2, 0));
	assert_true(engine_budget_take(&budget, 1, 0));
	assert_false(engine_budget_take(&budget, 1, 0));
	assert_true(engine_budget_take(&budget, 3 * ENGINE_INSNS_PER_BYTE, 3));
	assert_false(engine_budget_take(&budget, 1, 0));
}

/* A file that is cut off is an error of each engine, wherever the cut is. */
static void cut_while_decoded(void **state)
{
	static const char *const engines[] = { "insn", "flow" };
	struct setup s;

	(void)state;
	setup_init(&s);
	for (size_t i = 0; i < ARRAY_LEN(engines) * rows[0].size; i++) {
		const struct row *row = &rows[0];
		const int fd = memfd_create("pt", MFD_CLOEXEC);
		const struct filepart part = { .fd = fd };
		const struct engine_config config = {
			.pt = { .size = row->size, .parts = &part, .n = 1 },
			.cache = s.cache,
			.views = s.views,
		};
		_cleanup_(engine_freep) struct engine *engine = NULL;
		struct engine_step step = {};
		int r;

		assert_true(write(fd, row->packets, row->size) == (ssize_t)row->size);
		assert_int_equal(engine_new(engine_find(engines[i % 2]), &config, &engine), 0);
		assert_int_equal(ftruncate(fd, (off_t)(i / 2)), 0);
		do {
			r = engine_next(engine, s.runs, ENGINE_STEP_RUNS_MAX, &step);
			if (r == 0 && step.stop == ENGINE_ASK)
				r = engine_set_space(engine, s.space, 1, 1);
		} while (r == 0 && step.stop != ENGINE_END);
		assert_int_equal(r, -ESTALE);
		close(fd);
	}
	setup_deinit(&s);
}

static void no_other_engine(void **state)
{
	(void)state;
	assert_null(engine_find("nonesuch"));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(insn_engine),
		cmocka_unit_test(flow_engine),
		cmocka_unit_test(very_many_mappings),
		cmocka_unit_test(instructions_are_not_endless),
		cmocka_unit_test(cut_while_decoded),
		cmocka_unit_test(no_other_engine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
