/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * timed [-n COUNT] [-s FIRST-SEED] [-k DIRECTORY] [-p]: runs a small program along random ways, and
 * writes the packets that a CPU would write of that by the SDM, with a random choice of the ways in
 * which packets can tell the time. Of each stream, as a bare one and as a perf.data file, both
 * engines must list exactly the instructions that ran, each with the time that the last packet of
 * time told before the packet that leads to the instruction; flow must list the same in parts.
 *
 * Where cycles are counted between MTC packets, decoders measure how long a cycle takes. There a
 * time may differ, but not beyond the MTC or TSC packets beside it, and not between the engines.
 *
 * -k keeps the perf.data files below DIRECTORY, as SEED/input, and prints their names; -p prints
 * the packets and the instructions of the first seed. The exit status is 1 if anything was listed
 * otherwise.
 */

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "decoder/cmd/verify.h"
#include "ptd/decode.h"
#include "tests/lib/digest.h"
#include "tests/lib/golden_input.h"
#include "tests/lib/iptversion.h"
#include "tests/lib/packets.h"
#include "tests/lib/tempdir.h"
#include "util/vec.h"

#define BASE      0x401000
#define BYTES_MAX 6000 /* of packets; a golden case has room for more */
#define NOM       32   /* TSC ticks of as many cycles of the crystal as the bus has */
#define CALLS_MAX 64
#define TNT_MAX   6
#define START_TSC 0x10000
#define HANDLER   0x30

enum kind { PLAIN, COND, JUMP, CALL, CALL_INDIRECT, INDIRECT, RETURN, PTWRITE, SYSCALL };

static const struct insn {
	uint8_t at, size;
	enum kind kind;
	uint8_t to;
	uint8_t bytes[5];
} program[] = {
	{ 0x00, 1, PLAIN, 0, { 0x90 } },
	{ 0x01, 2, COND, 0x05, { 0x75, 0x02 } },
	{ 0x03, 1, PLAIN, 0, { 0x90 } },
	{ 0x04, 1, PLAIN, 0, { 0x90 } },
	{ 0x05, 5, CALL, 0x20, { 0xe8, 0x16, 0, 0, 0 } },
	{ 0x0a, 2, INDIRECT, 0, { 0xff, 0xe0 } },
	{ 0x10, 5, PTWRITE, 0, { 0xf3, 0x48, 0x0f, 0xae, 0xe0 } },
	{ 0x15, 2, COND, 0x00, { 0x74, 0xe9 } },
	{ 0x17, 2, SYSCALL, 0, { 0x0f, 0x05 } },
	{ 0x19, 2, JUMP, 0x00, { 0xeb, 0xe5 } },
	{ 0x20, 1, PLAIN, 0, { 0x90 } },
	{ 0x21, 2, COND, 0x23, { 0x75, 0x00 } },
	{ 0x23, 2, CALL_INDIRECT, 0x30, { 0xff, 0xd2 } },
	{ 0x25, 2, COND, 0x20, { 0x75, 0xf9 } },
	{ 0x27, 1, RETURN, 0, { 0xc3 } },
	{ 0x30, 2, COND, 0x33, { 0x74, 0x01 } },
	{ 0x32, 1, PLAIN, 0, { 0x90 } },
	{ 0x33, 1, RETURN, 0, { 0xc3 } },
};

static const uint8_t targets[] = { 0x00, 0x10, 0x15, 0x17 };

/* The time that was told, and the TSC or MTC packets beside it. */
struct told {
	uint64_t t, from, to;
};

/* An instruction that ran. */
struct ran {
	uint64_t ip;
	bool is_timed; /* the packet that leads to it was written */
	struct told told;
};

struct cpu {
	struct golden *golden;
	uint64_t random;
	FILE *print;

	/* How time is told. */
	bool has_tsc, has_mtc, has_cyc;
	unsigned period, threshold;
	bool is_exact; /* no cycles are counted between MTC packets */
	bool is_for_perf;

	uint64_t ip; /* of the next instruction */
	uint64_t calls[CALLS_MAX];
	size_t n_calls;
	char tnt[TNT_MAX + 1];
	size_t n_tnt;
	bool is_on;
	bool has_mode; /* since the last PSB */

	uint64_t tsc, cycles; /* cycles since the last CYC */
	unsigned ratio;       /* TSC ticks of a cycle: NOM / CBR */
	bool has_rate;        /* packets have told it */
	uint64_t last;        /* told by packets; 0: nothing yet */
	uint64_t anchor;      /* the last TSC or MTC */
	struct told now;      /* of the instructions that run now, unless bits wait */

	VEC(struct ran) ran;
	size_t n_decided; /* so many of them are before the last packet that says where they are */
	size_t n_recovered; /* so many of them were there at the last overflow */
	size_t n_branched;  /* so many of them are before the last bit of a TNT */
};

static uint64_t random_below(struct cpu *c, uint64_t n)
{
	uint64_t z = (c->random += 0x9e3779b97f4a7c15u);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (z ^ (z >> 31)) % n;
}

static bool one_in(struct cpu *c, uint64_t n)
{
	return random_below(c, n) == 0;
}

/*
 * Packets
 */

_printf_(2, 3) static void put(struct cpu *c, const char *format, ...)
{
	struct golden_piece *pt = &c->golden->pt[0];
	char line[80];
	va_list ap;
	int n;

	va_start(ap, format);
	(void)vsnprintf(line, sizeof(line), format, ap);
	va_end(ap);
	if (c->print)
		fprintf(c->print, "\t%s\n", line);
	n = packets_write(line, pt->bytes + pt->size);
	if (n < 0)
		error(2, -n, "%s", line);
	pt->size += (size_t)n;
}

/* A packet of time was written, of the TSC @t. */
static void tell(struct cpu *c, uint64_t t, bool is_anchor)
{
	if (t > c->last)
		c->last = t;
	if (!is_anchor)
		return;
	c->anchor = t;
	if (c->now.to == UINT64_MAX)
		c->now.to = t;
	for (size_t i = c->ran.n; i-- > 0 && c->ran.items[i].told.to == UINT64_MAX;)
		c->ran.items[i].told.to = t;
}

static void put_cyc(struct cpu *c)
{
	if (!c->has_cyc)
		return;
	put(c, "cyc %" PRIx64, c->cycles);
	c->cycles = 0;
	if (c->last && c->has_rate)
		tell(c, c->tsc, false);
}

/* Cycles are told before packets that the SDM calls eligible, if there were enough of them. */
static void put_cycles(struct cpu *c)
{
	if (c->has_cyc && c->cycles >= (c->threshold ? UINT64_C(1) << (c->threshold - 1) * 2 : 1))
		put_cyc(c);
}

static uint64_t crystal_ticks(const struct cpu *c)
{
	return c->golden->cpuid_15_ebx / c->golden->cpuid_15_eax;
}

static void put_clock(struct cpu *c)
{
	const uint64_t ticks = crystal_ticks(c);

	put(c, "tsc %" PRIx64, c->tsc);
	if (c->has_mtc)
		put(c, "tma %" PRIx64 " %" PRIx64, c->tsc / ticks & 0xffff, c->tsc % ticks);
	tell(c, c->tsc, true);
}

static void put_tsc(struct cpu *c)
{
	if (!c->has_tsc)
		return;
	put_cyc(c);
	put_clock(c);
}

static void put_mtc(struct cpu *c)
{
	const uint64_t step = crystal_ticks(c) << c->period;

	put(c, "mtc %" PRIx64, c->tsc / step & 0xff);
	if (c->last)
		tell(c, c->tsc / step * step, true);
}

/* Instructions whose packet is written now have the time told until now. */
static void decide(struct cpu *c)
{
	c->now = (struct told){ c->last, c->anchor, UINT64_MAX };
	for (size_t i = c->ran.n; i-- > 0 && !c->ran.items[i].is_timed;) {
		c->ran.items[i].told = c->now;
		c->ran.items[i].is_timed = true;
	}
	c->n_decided = c->ran.n;
}

static void flush(struct cpu *c)
{
	if (c->n_tnt == 0)
		return;
	put_cycles(c);
	c->tnt[c->n_tnt] = '\0';
	put(c, "tnt %s", c->tnt);
	c->n_tnt = 0;
	decide(c);
	c->n_decided = c->n_branched;
}

/* @n cycles pass. MTC packets may come before a TNT of which there are bits already. */
static void pass(struct cpu *c, uint64_t n)
{
	const uint64_t step = crystal_ticks(c) << c->period;
	uint64_t left = n * c->ratio;

	while (c->has_mtc && c->tsc / step != (c->tsc + left) / step) {
		const uint64_t until = step - c->tsc % step;
		const uint64_t cycles = (until + c->ratio - 1) / c->ratio;

		c->cycles += cycles;
		c->tsc += cycles * c->ratio;
		left -= cycles * c->ratio < left ? cycles * c->ratio : left;
		put_cycles(c);
		put_mtc(c);
	}
	c->cycles += left / c->ratio;
	c->tsc += left;
}

/* Time packets that nothing asks for; each is true. */
static void put_any_time(struct cpu *c)
{
	switch (random_below(c, 9)) {
	case 0:
		put_tsc(c);
		return;
	case 1:
		put_cyc(c);
		return;
	case 2:
		put(c, "pad");
		return;
	default:
		return;
	}
}

/* The same between a packet and the FUP that belongs to it, where perf wants no time. */
static void put_time_inside(struct cpu *c)
{
	if (!c->is_for_perf && one_in(c, 4))
		put_any_time(c);
}

/* All that comes before a packet which is no TNT. */
static void lead(struct cpu *c)
{
	flush(c);
	put_any_time(c);
	put_cycles(c);
	if (one_in(c, 8))
		put_any_time(c);
}

/*
 * Events
 */

static void put_cbr(struct cpu *c)
{
	put(c, "cbr %x", NOM / c->ratio);
	c->has_rate = true;
}

/* How long cycles are is told anew behind an overflow, and how many have passed is lost. */
static void put_ovf(struct cpu *c)
{
	put(c, "ovf");
	c->has_rate = false;
	c->cycles = 0;
}

static void put_psb(struct cpu *c)
{
	flush(c);
	put_any_time(c);
	put_cyc(c);
	put(c, "psb");
	if (c->has_tsc)
		put_clock(c);
	put_cbr(c);
	if (c->is_on) {
		put(c, "mode.exec 64");
		put(c, "fup %" PRIx64, c->ip);
		decide(c);
	}
	c->has_mode = c->is_on;
	put(c, "psbend");
	c->n_calls = 0;
}

static void leave(struct cpu *c)
{
	lead(c);
	put(c, "tip.pgd0");
	c->is_on = false;
	decide(c);
}

static void enter(struct cpu *c)
{
	if (c->has_tsc && !one_in(c, 4))
		put_tsc(c);
	put_any_time(c);
	put_cycles(c);
	if (!c->has_mode || one_in(c, 2))
		put(c, "mode.exec 64");
	if (one_in(c, 8))
		put_any_time(c);
	put(c, "tip.pge %" PRIx64, c->ip);
	c->has_mode = c->is_on = true;
	c->n_calls = 0;
	decide(c);
}

static void change_frequency(struct cpu *c)
{
	const bool had_rate = c->has_rate;

	flush(c);
	put_cyc(c);
	c->ratio = 1u << random_below(c, 3);
	put_cbr(c);
	if (!had_rate)
		put_tsc(c);
}

/* Packets are off for a while, and the CPU sleeps, or not. */
static void be_off(struct cpu *c)
{
	pass(c, random_below(c, 300));
	if (one_in(c, 4))
		put_any_time(c);
	if (one_in(c, 6)) {
		put(c, "pip %x", 0x1000 * (1 + (unsigned)random_below(c, 4)));
	} else if (one_in(c, 6)) {
		put_cycles(c);
		if (!c->is_for_perf)
			put(c, "mwait 20 1");
		put(c, "pwre 2 0");
		put(c, "exstop");
		pass(c, 100);
		put_tsc(c);
		put(c, "pwrx 2 2");
	} else if (one_in(c, 6)) {
		put_psb(c);
	}
	if (one_in(c, 20))
		put_ovf(c);
	if (c->is_for_perf && one_in(c, 4))
		change_frequency(c);
	pass(c, random_below(c, 300));
	enter(c);
}

static void interrupt(struct cpu *c)
{
	lead(c);
	put(c, "fup %" PRIx64, c->ip);
	decide(c);
	put_time_inside(c);
	if (one_in(c, 3)) {
		c->ip = BASE + HANDLER;
		put(c, "tip %" PRIx64, c->ip);
		decide(c);
		return;
	}
	put(c, "tip.pgd0");
	c->is_on = false;
	be_off(c);
}

static void overflow(struct cpu *c)
{
	c->n_tnt = c->n_calls = 0;
	c->ran.n = c->n_recovered = c->n_decided;
	put_ovf(c);
	c->ip = BASE + targets[random_below(c, ARRAY_LEN(targets))];
	pass(c, random_below(c, 300));
	if (one_in(c, 3)) {
		c->is_on = false;
		enter(c);
		return;
	}
	if (one_in(c, 2))
		put_any_time(c);
	if (one_in(c, 4)) {
		put_cbr(c);
		put_tsc(c);
	}
	put(c, "fup %" PRIx64, c->ip);
	decide(c);
}

/* Something happens before the next instruction, and its packet has its address. */
static void report(struct cpu *c)
{
	static const char *const packets[] = { "exstop ip", "mode.tsx begin", "mode.tsx commit" };

	lead(c);
	put(c, "%s", packets[random_below(c, ARRAY_LEN(packets))]);
	put_time_inside(c);
	put(c, "fup %" PRIx64, c->ip);
	decide(c);
}

static void happen(struct cpu *c)
{
	switch (random_below(c, 60)) {
	case 0:
		put_psb(c);
		return;
	case 1:
		interrupt(c);
		return;
	case 2:
		/* Of two in a row, libipt gives one. perf leaves out a ptwrite behind which packets
		 * were lost. */
		if (c->ran.n > c->n_recovered + 20 &&
		    !(c->is_for_perf && c->ran.items[c->n_decided - 1].ip == BASE + 0x10))
			overflow(c);
		return;
	case 3:
		report(c);
		return;
	case 4:
		/* Behind such a CBR perf gives code the time of the packets that come next. */
		if (!c->is_for_perf)
			change_frequency(c);
		return;
	case 5:
		put_tsc(c);
		return;
	case 6:
		/* A CYC stands right before its packet; else an MTC seems to be that. */
		put_cyc(c);
		put(c, "pad");
		return;
	default:
		return;
	}
}

/*
 * Instructions
 */

static void decide_branch(struct cpu *c, bool is_taken)
{
	c->tnt[c->n_tnt++] = is_taken ? '1' : '0';
	c->n_branched = c->ran.n;
	if (c->n_tnt == TNT_MAX || one_in(c, 3))
		flush(c);
}

static void go_to(struct cpu *c, uint64_t ip)
{
	lead(c);
	put(c, "tip %" PRIx64, ip);
	c->ip = ip;
	decide(c);
}

static void push(struct cpu *c)
{
	if (c->n_calls == CALLS_MAX)
		memmove(c->calls, c->calls + 1, --c->n_calls * sizeof(*c->calls));
	c->calls[c->n_calls++] = c->ip;
}

/* The CPU takes the top of its stack of calls at each return, also at one that leads elsewhere. */
static void take_return(struct cpu *c)
{
	const uint64_t top = c->n_calls > 0 ? c->calls[--c->n_calls] : 0;

	if (top == 0 || one_in(c, 10)) {
		go_to(c, BASE + 0x0a);
		return;
	}
	c->ip = top;
	decide_branch(c, true);
}

static void write_ptw(struct cpu *c)
{
	const uint64_t ip = c->ip - 5;
	const bool has_ip = one_in(c, 2);

	lead(c);
	put(c, "ptw8 1234%s", has_ip ? " ip" : "");
	if (has_ip)
		put_time_inside(c);
	if (has_ip)
		put(c, "fup %" PRIx64, ip);
	decide(c);
}

static const struct insn *insn_at(uint64_t ip)
{
	for (size_t i = 0; i < ARRAY_LEN(program); i++)
		if (program[i].at == ip - BASE)
			return &program[i];
	error(2, 0, "no instruction at %" PRIx64, ip);
	return NULL;
}

static void execute(struct cpu *c)
{
	const struct insn *insn = insn_at(c->ip);
	const struct ran ran = { .ip = c->ip,
				 .is_timed = c->n_tnt == 0,
				 .told = c->n_tnt == 0 ? c->now : (struct told){} };
	bool is_taken;

	if (vec_push(&c->ran, ran) < 0)
		error(2, ENOMEM, "instructions");
	if (c->print)
		fprintf(c->print, "\t# %zu: %" PRIx64 "\n", c->ran.n - 1, c->ip);
	c->ip += insn->size;
	pass(c, one_in(c, 50) ? random_below(c, 5000) : random_below(c, 20));
	switch (insn->kind) {
	case PLAIN:
		break;
	case COND:
		is_taken = one_in(c, 2);
		if (is_taken)
			c->ip = BASE + insn->to;
		decide_branch(c, is_taken);
		break;
	case JUMP:
		c->ip = BASE + insn->to;
		break;
	case CALL:
		push(c);
		c->ip = BASE + insn->to;
		break;
	case CALL_INDIRECT:
		push(c);
		go_to(c, BASE + insn->to);
		break;
	case INDIRECT:
		go_to(c, BASE + targets[random_below(c, ARRAY_LEN(targets))]);
		break;
	case RETURN:
		take_return(c);
		break;
	case PTWRITE:
		write_ptw(c);
		break;
	case SYSCALL:
		leave(c);
		be_off(c);
		break;
	}
}

/*
 * Streams
 */

static const char records[] = "@1 0 10/10 comm demo\n"
			      "@1 0 10/10 mmap 401000 1000 0 demo\n"
			      "@1 0 10/10 in 0/0\n";

static void write_program(struct golden *g)
{
	struct golden_piece *code = &g->code[g->n_code++];

	*code = (struct golden_piece){ .name = "demo", .address = BASE, .size = 0x40 };
	memset(code->bytes, 0x90, code->size);
	for (size_t i = 0; i < ARRAY_LEN(program); i++)
		memcpy(code->bytes + program[i].at, program[i].bytes, program[i].size);
}

/* The ways to tell the time: none, TSC, MTC with each period, CYC with each threshold, and both. */
static void pick_time(struct cpu *c)
{
	struct golden *g = c->golden;

	c->has_tsc = !one_in(c, 20);
	c->has_mtc = c->has_tsc && one_in(c, 2);
	c->has_cyc = c->has_tsc && one_in(c, 2);
	c->is_exact = !(c->has_mtc && c->has_cyc);
	c->period = (unsigned)random_below(c, 10);
	c->threshold = one_in(c, 2) ? (unsigned)random_below(c, 5) : 0;
	g->has_mtc = c->has_mtc;
	g->has_cyc = c->has_cyc;
	g->mtc_freq = (uint8_t)c->period;
	g->nom_freq = NOM;
	g->cpuid_15_eax = 2;
	g->cpuid_15_ebx = 64;
}

/* Make the stream of @seed. @c is to be cleared by the caller. */
static void make(uint64_t seed, bool is_for_perf, struct golden *g, FILE *print, struct cpu *c)
{
	*g = (struct golden){ .n_pt = 1 };
	g->pt[0].tid = -1;
	*c = (struct cpu){ .golden = g,
			   .random = seed,
			   .print = print,
			   .is_for_perf = is_for_perf,
			   .ip = BASE,
			   .tsc = START_TSC,
			   .ratio = 1 };
	write_program(g);
	pick_time(c);
	put_psb(c);
	enter(c);
	while (g->pt[0].size < BYTES_MAX) {
		happen(c);
		execute(c);
	}
	lead(c);
	put(c, "fup %" PRIx64, c->ip);
	leave(c);
}

DEFINE_CLEANUP(struct ptd_decoder *, ptd_decoder_free);

static int next(void *userdata, const struct ptd_batch **ret_batch)
{
	return ptd_decoder_next(userdata, ret_batch);
}

static struct ptd_decoder *open_with(struct ptd_options *options, const char *engine)
{
	_cleanup_(freep) char *message = NULL;
	struct ptd_decoder *d;
	int r;

	options->engine = engine;
	r = ptd_decoder_new(options, &d, &message);
	if (r < 0)
		error(2, -r, "%s", message ?: "cannot decode");
	return d;
}

static bool is_right(const struct cpu *c, const struct ran *ran, uint64_t ip, uint64_t t)
{
	const uint64_t slack =
	    ran->told.to == UINT64_MAX ? 0 : (ran->told.to - ran->told.from) / 64;

	if (ip != ran->ip)
		return false;
	return c->is_exact ? t == ran->told.t : t >= ran->told.from && t <= ran->told.to + slack;
}

static void print_ran(const struct cpu *c, size_t i)
{
	const struct ran *ran = &c->ran.items[i];

	if (i >= c->ran.n)
		printf("nothing");
	else if (c->is_exact)
		printf("%" PRIx64 " at %" PRIu64, ran->ip, ran->told.t);
	else
		printf("%" PRIx64 " from %" PRIu64 " to %" PRIu64, ran->ip, ran->told.from,
		       ran->told.to);
}

/* Is what is listed what ran? */
static bool check_truth(const struct cpu *c, struct ptd_options *options, const char *engine)
{
	_cleanup_(ptd_decoder_freep) struct ptd_decoder *d = open_with(options, engine);
	const bool has_times = strcmp(engine, "insn") != 0 || !ipt_reads_ahead();
	const struct ptd_batch *batch;
	size_t n = 0;

	while (ptd_decoder_next(d, &batch) == 0) {
		for (size_t r = 0; r < batch->n_runs; r++) {
			for (size_t i = 0; i < batch->runs[r].n; i++, n++) {
				const uint64_t ip = ptd_run_ip(&batch->runs[r], i);
				const uint64_t t = batch->runs[r].t;

				if (n < c->ran.n &&
				    (has_times ? is_right(c, &c->ran.items[n], ip, t)
					       : ip == c->ran.items[n].ip))
					continue;
				printf("%s: instruction %zu is %" PRIx64 " at %" PRIu64
				       ", and there was ",
				       engine, n, ip, t);
				print_ran(c, n);
				putchar('\n');
				return false;
			}
		}
	}
	if (n == c->ran.n)
		return true;
	printf("%s: %zu instructions instead of %zu\n", engine, n, c->ran.n);
	return false;
}

static bool check_engines(struct ptd_options *options)
{
	_cleanup_(ptd_decoder_freep) struct ptd_decoder *flow = open_with(options, "flow");
	_cleanup_(ptd_decoder_freep) struct ptd_decoder *insn = open_with(options, "insn");
	const struct verify_stream streams[] = { { "flow", next, flow }, { "insn", next, insn } };
	uint64_t n;

	if (verify_streams(streams, stdout, &n) == VERIFY_EQUAL)
		return true;
	printf("instruction %" PRIu64 " is the last one that both list alike\n", n - 1);
	return false;
}

static bool check_parts(struct ptd_options *options)
{
	struct digest alone, parts;

	options->engine = "flow";
	alone = digest_of(options, 1, 1);
	parts = digest_of(options, 2, 1);
	if (alone.hash == parts.hash && alone.n_items == parts.n_items && parts.r == alone.r)
		return true;
	printf("flow and flow in parts differ\n");
	return false;
}

static bool check(const struct cpu *c, struct ptd_options *options)
{
	return check_truth(c, options, "flow") && check_truth(c, options, "insn") &&
	       (ipt_reads_ahead() || check_engines(options)) && check_parts(options);
}

/* Return: how many instructions ran. */
static size_t try(uint64_t seed, struct golden *g, const char *dir, const char *kept, bool print,
		  bool *ret_is_right)
{
	struct golden_input input;
	struct cpu c;
	size_t n;

	make(seed, kept, g, print ? stdout : NULL, &c);
	if (golden_input_write(g, dir, &input) < 0)
		exit(2);
	*ret_is_right = check(&c, &input.options);
	if (!*ret_is_right)
		printf("seed %" PRIu64 ", a bare stream%s%s\n", seed, g->has_mtc ? ", MTC" : "",
		       g->has_cyc ? ", CYC" : "");
	g->records = strdup(records);
	g->timeless = !c.has_tsc;
	if (!c.has_tsc)
		g->pt[0].cpu = -1, g->pt[0].tid = 10, g->threads = true;
	if (!g->records || golden_input_write(g, kept ?: dir, &input) < 0)
		exit(2);
	if (kept)
		printf("%s\n", input.options.input);
	if (*ret_is_right && !check(&c, &input.options)) {
		printf("seed %" PRIu64 ", a perf.data\n", seed);
		*ret_is_right = false;
	}
	free(g->records);
	n = c.ran.n;
	vec_deinit(&c.ran);
	return n;
}

int main(int argc, char **argv)
{
	static struct golden golden;
	uint64_t first = 1, n = 100, n_insns = 0, n_wrong = 0;
	const char *keep = NULL;
	char dir[TEMPDIR_SIZE], kept[4096];
	bool print = false, is_right;
	int option;

	while ((option = getopt(argc, argv, "n:s:k:p")) != -1) {
		if (option == 'n')
			n = strtoull(optarg, NULL, 0);
		else if (option == 's')
			first = strtoull(optarg, NULL, 0);
		else if (option == 'k')
			keep = optarg;
		else if (option == 'p')
			print = true;
		else
			return 2;
	}
	tempdir_make("timed", dir);
	for (uint64_t seed = first; seed < first + n; seed++) {
		(void)snprintf(kept, sizeof(kept), "%s/%" PRIu64, keep ?: "", seed);
		if (keep && mkdir(kept, 0777) < 0)
			error(2, errno, "%s", kept);
		n_insns +=
		    try(seed, &golden, dir, keep ? kept : NULL, print && seed == first, &is_right);
		n_wrong += !is_right;
	}
	tempdir_remove(dir);
	fprintf(stderr, "%" PRIu64 " streams, %" PRIu64 " instructions, %" PRIu64 " wrong\n", n,
		n_insns, n_wrong);
	return n_wrong > 0 || n_insns == 0;
}
