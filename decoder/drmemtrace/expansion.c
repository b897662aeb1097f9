/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/expansion.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/drmemtrace/insn.h"
#include "decoder/drmemtrace/record.h"
#include "decoder/sink/output.h"
#include "decoder/sink/templates.h"
#include "decoder/x86/operand.h"

#define INDEX_BITS 11
#define SITES_MAX  (1u << 28) /* no batch has as many runs */
#define PREFETCH   8          /* runs ahead of the one that is expanded */

/* Longer blocks, which the library does not make, are left to the writer. */
#define INSNS_MAX 1024

#define COPY_SIZE        16                  /* bytes that are copied at a time */
#define RUN_RECORDS_MAX  (2 * INSNS_MAX + 2) /* symbols; the branch before it, and its target */
#define RUN_RECORDS_SIZE (RUN_RECORDS_MAX * sizeof(struct memtrace_record) + COPY_SIZE)

/* The bytes of an expansion: this, the runs, the records. */
struct head {
	uint32_t n_sites;
};

/* How control leaves a run. */
enum way {
	WAY_FALL,     /* to the next instruction */
	WAY_DIRECT,   /* to the target: a direct jump or call */
	WAY_COND,     /* to one of the two */
	WAY_INDIRECT, /* to anywhere: another branch */
};

/* How many records say so, which are before those of the next run. */
static const size_t n_records_of_way[] = { [WAY_COND] = 1, [WAY_INDIRECT] = 2 };

/* The records of a block at an address. */
struct recorded {
	struct template template;
	uint64_t target; /* where the last instruction leads, if it is a direct branch */
	uint32_t symbol; /* of all instructions, unless is_mixed; else of the last one */
	uint16_t n;
	bool is_left;  /* to the writer: it has data with records */
	bool is_mixed; /* the instructions have several symbols */
	uint8_t way;   /* enum way, by which the last instruction leaves */
	bool turns;    /* its last instruction is a call or a return */
	bool is_far;   /* it ends with what may lead to the kernel: no run follows */
	struct memtrace_record records[]; /* and COPY_SIZE bytes more */
};

static_assert(sizeof(struct head) % 4 == 0 && sizeof(struct memtrace_expansion_run) == 8 &&
		  sizeof(struct memtrace_record) % 4 == 0,
	      "the bytes of each batch are aligned if those of the first one are");

struct site {
	const struct ptd_block *block;
	uint64_t base;
	const struct recorded *recorded; /* NULL: the writer writes its records */
};

struct memtrace_memory {
	bool operands; /* blocks with operands of known addresses are left to the writer */
	struct templates templates;
	VEC(struct site) sites; /* of the batch */
	uint32_t
	    index[1 << INDEX_BITS]; /* for a hash, the site that was added last; or any number */
};

struct memtrace_memory *memtrace_memory_new(bool operands)
{
	struct memtrace_memory *memory = calloc(1, sizeof(*memory));

	if (memory)
		memory->operands = operands;
	return memory;
}

struct memtrace_memory *memtrace_memory_free(struct memtrace_memory *memory)
{
	if (!memory)
		return NULL;
	templates_deinit(&memory->templates);
	vec_deinit(&memory->sites);
	free(memory);
	return NULL;
}

/* --- the records of a block ------------------------------------------------------------------- */

static enum way way_of(uint8_t iclass)
{
	if (!memtrace_insn_branches(iclass))
		return WAY_FALL;
	if (!memtrace_insn_needs_outcome(iclass))
		return WAY_DIRECT;
	return iclass == PTD_INSN_JUMP_COND ? WAY_COND : WAY_INDIRECT;
}

static bool may_be_far(uint8_t iclass)
{
	return iclass == PTD_INSN_RETURN_FAR || iclass == PTD_INSN_SYSCALL ||
	       iclass == PTD_INSN_SYSENTER || iclass == PTD_INSN_INTERRUPT;
}

static bool has_operand(const struct ptd_block *block)
{
	struct operand operand;

	for (size_t i = 0; i < block->n_insns; i++)
		if (operand_rip(block->bytes + block->insns[i].offset, block->insns[i].size,
				&operand))
			return true;
	return false;
}

static int make_recorded(struct memtrace_memory *memory, const struct ptd_block *block,
			 uint64_t base, struct recorded **ret_recorded)
{
	const struct ptd_insn *last = &block->insns[block->n_insns - 1];
	struct recorded *recorded;
	uint16_t type;
	uint8_t *p;
	int r;

	recorded = templates_alloc(&memory->templates,
				   sizeof(*recorded) +
				       block->n_insns * sizeof(struct memtrace_record) + COPY_SIZE);
	if (!recorded)
		return -ENOMEM;
	recorded->n = block->n_insns;
	recorded->way = (uint8_t)way_of(block->insns[block->n_insns - 1].iclass);
	type = memtrace_insn_type(block, block->n_insns - 1u);
	recorded->turns = type == MEMTRACE_DIRECT_CALL || type == MEMTRACE_INDIRECT_CALL ||
			  type == MEMTRACE_RETURN;
	recorded->is_far = may_be_far(block->insns[block->n_insns - 1].iclass);
	recorded->target = insn_target(block->mode, block->bytes + last->offset, last->size,
				       base + (uint64_t)block->target);
	recorded->symbol = block->insns[block->n_insns - 1].symbol;
	recorded->is_left = memory->operands && has_operand(block);
	recorded->is_mixed = false;
	for (size_t i = 0; i < block->n_insns; i++)
		recorded->is_mixed |= block->insns[i].symbol != recorded->symbol;
	p = (uint8_t *)recorded->records;
	for (size_t i = 0; i < block->n_insns; i++)
		p = memtrace_put_record(p, memtrace_insn_type(block, i), block->insns[i].size,
					base + block->insns[i].offset);
	r = templates_add(&memory->templates, block, base, &recorded->template);
	if (r < 0)
		return r;
	*ret_recorded = recorded;
	return 0;
}

static int add_site(struct memtrace_memory *memory, const struct ptd_run *run)
{
	const struct ptd_block *block = run->block;
	struct recorded *recorded = NULL;
	int r;

	if (block->mode == 64 && block->n_insns <= INSNS_MAX) {
		recorded = (void *)templates_find(&memory->templates, block, run->base);
		if (!recorded) {
			r = make_recorded(memory, block, run->base, &recorded);
			if (r < 0)
				return r;
		}
	}
	if (recorded && recorded->is_left)
		recorded = NULL;
	return vec_push(&memory->sites,
			{ .block = block, .base = run->base, .recorded = recorded });
}

static inline int find_site(struct memtrace_memory *memory, const struct ptd_run *run,
			    uint32_t *ret_site)
{
	const uint64_t key = (uintptr_t)run->block + run->base;
	uint32_t *slot = &memory->index[key * UINT64_C(0x9e3779b97f4a7c15) >> (64 - INDEX_BITS)];
	const struct site *site = &memory->sites.items[*slot];

	if (*slot >= memory->sites.n || site->block != run->block || site->base != run->base) {
		*slot = (uint32_t)memory->sites.n;
		*ret_site = *slot;
		return add_site(memory, run);
	}
	*ret_site = *slot;
	return 0;
}

/* --- the records of a run --------------------------------------------------------------------- */

/* The run before, while runs are expanded. */
struct before {
	const struct recorded *recorded; /* NULL: the next run does not follow */
	size_t last;                     /* index of its last instruction in its block */
	uint32_t symbol;                 /* of that */
	enum way way;
};

/* Most runs take one step, so that the CPU predicts the end of the loop well. */
static inline uint8_t *copy_records(uint8_t *to, const struct memtrace_record *records, size_t n)
{
	const size_t size = n * sizeof(*records);

	for (size_t i = 0; i < size; i += COPY_SIZE)
		memcpy(to + i, (const uint8_t *)records + i, COPY_SIZE);
	return to + size;
}

/*
 * Write the records that say that control left @before for @ip. There is no decision that the CPU
 * could predict wrongly: the records are written in any case, and count as far as they are needed.
 *
 * Return: their end; NULL if control cannot have come to @ip.
 */
static inline uint8_t *put_way(uint8_t *to, const struct before *before, uint64_t ip)
{
	const struct memtrace_record *record = &before->recorded->records[before->last];
	const enum way way = before->way;
	const bool is_next = ip == record->addr + record->size;
	const bool is_target = ip == before->recorded->target;
	const bool can_be[] = {
		[WAY_FALL] = is_next,
		[WAY_DIRECT] = is_target,
		[WAY_COND] = is_target | is_next,
		[WAY_INDIRECT] = ip != 0, /* the format knows no jump to 0 */
	};
	/* A branch to its own fall-through counts as taken. */
	const uint16_t taken =
	    ((way == WAY_COND) & is_target) ? MEMTRACE_UNTAKEN_JUMP - MEMTRACE_TAKEN_JUMP : 0;

	(void)memtrace_put_record(to, MEMTRACE_MARKER, MEMTRACE_BRANCH_TARGET, ip);
	(void)memtrace_put_record(to + (way == WAY_INDIRECT) * sizeof(*record),
				  (uint16_t)(record->type - taken), record->size, record->addr);
	return can_be[way] ? to + n_records_of_way[way] * sizeof(*record) : NULL;
}

/* Write the marker of @symbol, which counts if @before is another one, as in put_way(). */
static inline uint8_t *put_symbol(uint8_t *to, uint32_t symbol, uint32_t before)
{
	(void)memtrace_put_record(to, MEMTRACE_MARKER, MEMTRACE_SYMBOL, symbol);
	return to + (symbol != before) * sizeof(struct memtrace_record);
}

/* Write the first @n records of @run one by one: the symbol may change between. */
static uint8_t *put_mixed(uint8_t *to, const struct ptd_run *run, const struct recorded *recorded,
			  uint32_t symbol, size_t n)
{
	for (size_t i = 0; i < run->n; i++) {
		const uint32_t own = run->block->insns[run->first + i].symbol;

		to = put_symbol(to, own, symbol);
		symbol = own;
		if (i < n)
			to = copy_records(to, &recorded->records[run->first + i], 1);
	}
	return to;
}

/* Write the records of @run at @to, if it follows @before. Return: their end; else NULL. */
static inline uint8_t *put_run(uint8_t *to, const struct ptd_run *run,
			       const struct recorded *recorded, const struct before *before,
			       bool waits)
{
	const struct memtrace_record *records = &recorded->records[run->first];

	if (!before->recorded)
		return NULL;
	to = put_way(to, before, records->addr);
	if (!to)
		return NULL;
	if (recorded->is_mixed)
		return put_mixed(to, run, recorded, before->symbol, (size_t)run->n - waits);
	to = put_symbol(to, recorded->symbol, before->symbol);
	return copy_records(to, records, (size_t)run->n - waits);
}

/* Have the CPU fetch the records of a run that comes soon: mostly they are in no cache near it. */
static inline void prefetch_records(const struct memtrace_memory *memory, uint32_t site,
				    const struct ptd_run *run)
{
	const struct recorded *recorded = memory->sites.items[site].recorded;

	if (!recorded)
		return;
	__builtin_prefetch(recorded);
	__builtin_prefetch(&recorded->records[run->first + run->n / 2]);
	__builtin_prefetch(&recorded->records[run->first + run->n - 1]);
}

/*
 * Put the records of @run, whose site is ret_run->site, at the end of @output, where the records
 * begin at offset @records.
 */
static int expand_run(const struct memtrace_memory *memory, const struct ptd_run *run,
		      struct before *before, size_t records, struct output *output,
		      struct memtrace_expansion_run *ret_run)
{
	const struct recorded *recorded = memory->sites.items[ret_run->site].recorded;
	int r;

	r = output_reserve(output, RUN_RECORDS_SIZE);
	if (r < 0)
		return r;
	/* Offsets that an expansion has no room for are left to the writer. */
	if (output->n_used - records > UINT32_MAX - RUN_RECORDS_SIZE)
		recorded = NULL;
	if (recorded) {
		const size_t end = (size_t)run->first + run->n;
		const enum way way = end == recorded->n ? (enum way)recorded->way : WAY_FALL;
		const bool waits = n_records_of_way[way] > 0;
		uint8_t *to = output->buffer + output->n_used;
		const uint8_t *p = put_run(to, run, recorded, before, waits);

		ret_run->waits = waits;
		ret_run->turns = end == recorded->n && recorded->turns;
		ret_run->follows = p != NULL;
		output->n_used += p ? (size_t)(p - to) : 0;
		before->last = end - 1;
		before->symbol =
		    recorded->is_mixed ? run->block->insns[end - 1].symbol : recorded->symbol;
		before->way = way;
		if (recorded->is_far && end == recorded->n)
			recorded = NULL;
	}
	before->recorded = recorded;
	ret_run->end = (uint32_t)(output->n_used - records);
	return 0;
}

/* Put the number of each run's site at @runs. */
static int number_sites(struct memtrace_memory *memory, const struct ptd_batch *batch,
			uint8_t *runs)
{
	struct memtrace_expansion_run run = {};

	memory->sites.n = 0;
	for (size_t i = 0; i < batch->n_runs; i++) {
		uint32_t site;
		const int r = find_site(memory, &batch->runs[i], &site);

		if (r < 0)
			return r;
		assert(site < SITES_MAX);
		run.site = site;
		memcpy(runs + i * sizeof(run), &run, sizeof(run));
	}
	return 0;
}

int memtrace_expand(struct memtrace_memory *memory, const struct ptd_batch *batch,
		    struct output *output)
{
	const size_t start = output->n_used, runs = start + sizeof(struct head);
	const size_t records = runs + batch->n_runs * sizeof(struct memtrace_expansion_run);
	struct before before = {};
	struct head head;
	size_t mark = 0;
	int r;

	templates_limit(&memory->templates);
	r = output_reserve(output, records - start);
	if (r == 0)
		r = number_sites(memory, batch, output->buffer + runs);
	output->n_used = records;
	for (size_t i = 0; i < batch->n_runs && r == 0; i++) {
		const size_t at = runs + i * sizeof(struct memtrace_expansion_run);
		struct memtrace_expansion_run run, later;

		for (; mark < batch->n_marks && batch->marks[mark].run <= i; mark++)
			before.recorded = NULL;
		if (i + PREFETCH < batch->n_runs) {
			memcpy(&later, output->buffer + at + PREFETCH * sizeof(run), sizeof(later));
			prefetch_records(memory, later.site, &batch->runs[i + PREFETCH]);
		}
		memcpy(&run, output->buffer + at, sizeof(run));
		r = expand_run(memory, &batch->runs[i], &before, records, output, &run);
		memcpy(output->buffer + at, &run, sizeof(run));
	}
	head.n_sites = (uint32_t)memory->sites.n;
	if (r == 0)
		memcpy(output->buffer + start, &head, sizeof(head));
	return r;
}

struct memtrace_expansion memtrace_expansion_at(const void *bytes, size_t n_runs)
{
	const struct head *head = bytes;
	const struct memtrace_expansion_run *runs = (const void *)(head + 1);

	return (struct memtrace_expansion){
		.runs = runs,
		.records = (const uint8_t *)(runs + n_runs),
		.n_sites = head->n_sites,
	};
}
