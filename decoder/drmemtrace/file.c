/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/file.h"

#include <assert.h>
#include <string.h>

#include "decoder/drmemtrace/record.h"
#include "decoder/drmemtrace/schedule.h"
#include "util/map.h"

#define EPOCH_1601_US    UINT64_C(11644473600000000)
#define CACHE_LINE_BYTES 64
#define PAGE_BYTES       4096
#define PAGE_SITES       256
#define PIECE_INSNS      512 /* written in one go; with bytes they need less than a buffer */
#define ENCODING_BYTES   8   /* in one record */
#define DATA_RECORDS_MAX 2   /* a read, a write */
#define INSN_RECORDS_MAX (4 + DATA_RECORDS_MAX) /* two of encoding, the target, the instruction */
#define HEADER_MARKERS   5

static_assert(PIECE_INSNS * INSN_RECORDS_MAX * sizeof(struct memtrace_record) <=
		  MEMTRACE_OUT_BUFFER,
	      "a piece fits into the buffer");
static_assert(sizeof(struct memtrace_record) == MEMTRACE_OUT_WATCHED, "a record is watched");

struct memtrace_announced {
	struct {
		uint32_t epoch;
		uint32_t n; /* the first @n instructions of the site are announced */
	} sites[PAGE_SITES];
};

static uint8_t *put_bytes(uint8_t *p, const uint8_t *bytes, size_t size)
{
	while (size > 0) {
		const size_t n = size < ENCODING_BYTES ? size : ENCODING_BYTES;
		uint64_t piece = 0;

		memcpy(&piece, bytes, n);
		p = memtrace_put_record(p, MEMTRACE_ENCODING, (uint16_t)n, piece);
		bytes += n;
		size -= n;
	}
	return p;
}

static void commit(struct memtrace_file *file, const uint8_t *end)
{
	file->out.n = (size_t)(end - file->out.buffer);
}

static int write_header(struct memtrace_file *file, uint64_t file_type, uint64_t pid, uint64_t tid)
{
	uint8_t *p;
	int r;

	r = memtrace_out_room(&file->out, 8 * sizeof(struct memtrace_record), &p);
	if (r < 0)
		return r;
	p = memtrace_put_record(p, MEMTRACE_HEADER, 0, MEMTRACE_VERSION_RETIRED);
	p = memtrace_put_record(p, MEMTRACE_MARKER, MEMTRACE_VERSION, MEMTRACE_VERSION_RETIRED);
	p = memtrace_put_record(p, MEMTRACE_MARKER, MEMTRACE_FILETYPE, file_type);
	p = memtrace_put_record(p, MEMTRACE_THREAD, MEMTRACE_ID_SIZE, tid);
	p = memtrace_put_record(p, MEMTRACE_PID, MEMTRACE_ID_SIZE, pid);
	p = memtrace_put_record(p, MEMTRACE_MARKER, MEMTRACE_CACHE_LINE, CACHE_LINE_BYTES);
	p = memtrace_put_record(p, MEMTRACE_MARKER, MEMTRACE_CHUNK_INSNS, MEMTRACE_CHUNK);
	p = memtrace_put_record(p, MEMTRACE_MARKER, MEMTRACE_PAGE_SIZE, PAGE_BYTES);
	commit(file, p);
	file->n_others = HEADER_MARKERS;
	return 0;
}

int memtrace_file_create(struct memtrace_file *file, struct memtrace_out_pool *pool,
			 const struct memtrace_clock *clock, struct memtrace_schedule *schedule,
			 struct memtrace_operands *operands, const char *stem, uint64_t file_type,
			 uint64_t pid, uint64_t tid)
{
	int r;

	r = memtrace_out_create(&file->out, pool, stem);
	if (r < 0)
		return r;
	file->clock = clock;
	file->schedule = schedule;
	file->operands = operands;
	file->tid = tid;
	file->chunk_end = MEMTRACE_CHUNK;
	file->symbol = MEMTRACE_NO_SYMBOL_YET;
	return write_header(file, file_type, pid, tid);
}

void memtrace_file_set_code(struct memtrace_file *file, struct memtrace_code *code)
{
	file->code = code;
	memtrace_file_forget(file);
}

int memtrace_file_marker(struct memtrace_file *file, uint16_t marker, uint64_t value,
			 uint64_t *ret_offset)
{
	uint8_t *p;
	int r;

	r = memtrace_out_room(&file->out, sizeof(struct memtrace_record), &p);
	if (r < 0)
		return r;
	if (ret_offset)
		*ret_offset = memtrace_out_offset(&file->out);
	commit(file, memtrace_put_record(p, MEMTRACE_MARKER, marker, value));
	file->n_others++;
	return 0;
}

int memtrace_file_patch(struct memtrace_file *file, uint64_t offset, uint16_t marker,
			uint64_t value)
{
	uint8_t record[MEMTRACE_OUT_WATCHED];

	(void)memtrace_put_record(record, MEMTRACE_MARKER, marker, value);
	return memtrace_out_patch(&file->out, offset, record);
}

/*
 * The next instruction is written now: if the chunk is full, the next one begins, in an archive
 * with what readers do not count.
 */
static int enter_chunk(struct memtrace_file *file)
{
	uint8_t *p;
	int r;

	if (file->n_insns - file->chunk_start < MEMTRACE_CHUNK)
		return 0;
	file->chunk_start = file->n_insns;
	file->symbol = MEMTRACE_NO_SYMBOL_YET;
	if (file->out.pool->is_plain)
		return 0;
	r = memtrace_file_marker(file, MEMTRACE_CHUNK_FOOTER, file->n_chunks++, NULL);
	if (r == 0)
		r = memtrace_out_end_member(&file->out);
	if (r == 0)
		r = memtrace_out_room(&file->out, 3 * sizeof(struct memtrace_record), &p);
	if (r < 0)
		return r;
	p = memtrace_put_record(p, MEMTRACE_MARKER, MEMTRACE_RECORD_ORDINAL,
				file->n_insns + file->n_others);
	p = memtrace_put_record(p, MEMTRACE_MARKER, MEMTRACE_TIMESTAMP, file->stamp);
	p = memtrace_put_record(p, MEMTRACE_MARKER, MEMTRACE_CPU, file->cpu);
	commit(file, p);
	return 0;
}

int memtrace_file_switch(struct memtrace_file *file, uint64_t pid, uint64_t tid)
{
	uint8_t *p;
	int r;

	r = memtrace_out_room(&file->out, 2 * sizeof(struct memtrace_record), &p);
	if (r < 0)
		return r;
	p = memtrace_put_record(p, MEMTRACE_THREAD, MEMTRACE_ID_SIZE, tid);
	p = memtrace_put_record(p, MEMTRACE_PID, MEMTRACE_ID_SIZE, pid);
	commit(file, p);
	return 0;
}

uint64_t memtrace_stamp(const struct memtrace_clock *clock, uint64_t t)
{
	int64_t unix_ns;

	if (clock->clock != PTD_CLOCK_NS)
		return t > clock->t_first ? t - clock->t_first + 1 : 1;

	unix_ns = (int64_t)(t + (uint64_t)clock->realtime_offset_ns);
	return EPOCH_1601_US + (unix_ns > 0 ? (uint64_t)unix_ns / 1000 : 0);
}

int memtrace_file_pair(struct memtrace_file *file, uint64_t t, uint32_t cpu)
{
	const uint64_t stamp = memtrace_stamp(file->clock, t);
	uint8_t *p;
	int r;

	r = memtrace_out_room(&file->out, 2 * sizeof(struct memtrace_record), &p);
	if (r < 0)
		return r;
	if (stamp > file->stamp)
		file->stamp = stamp;
	file->cpu = cpu == PTD_ID_UNKNOWN ? UINT64_MAX : cpu;
	p = memtrace_put_record(p, MEMTRACE_MARKER, MEMTRACE_TIMESTAMP, file->stamp);
	p = memtrace_put_record(p, MEMTRACE_MARKER, MEMTRACE_CPU, file->cpu);
	commit(file, p);
	file->n_others += 2;
	if (!file->schedule)
		return 0;
	return memtrace_schedule_add(file->schedule, file->tid, file->stamp, file->cpu,
				     file->n_insns);
}

int memtrace_file_window(struct memtrace_file *file)
{
	return memtrace_file_marker(file, MEMTRACE_WINDOW, file->n_windows++, NULL);
}

static int find_announced(struct memtrace_file *file, uint32_t site,
			  struct memtrace_announced **ret_page)
{
	struct memtrace_announced **page = vec_at(&file->announced, site / PAGE_SITES, NULL);

	if (page && !*page)
		*page = calloc(1, sizeof(**page));
	if (!page || !*page)
		return -ENOMEM;
	*ret_page = *page;
	return 0;
}

int memtrace_file_announce(struct memtrace_file *file, const struct ptd_run *run, size_t *ret_from)
{
	struct memtrace_announced *page;
	uint32_t site, *epoch, *n;
	int r;

	r = memtrace_code_site(file->code, run->block, run->base, &site);
	if (r < 0)
		return r;
	r = find_announced(file, site, &page);
	if (r < 0)
		return r;

	if (file->generation != file->code->generation) {
		file->generation = file->code->generation;
		memtrace_file_forget(file);
	}
	epoch = &page->sites[site % PAGE_SITES].epoch;
	n = &page->sites[site % PAGE_SITES].n;

	*ret_from = run->first;
	if (file->n_insns + run->n > file->chunk_end) {
		/* Part of the run is in the old chunk: what it announces counts for neither. */
		file->chunk_end += MEMTRACE_CHUNK;
		memtrace_file_forget(file);
	} else if (*epoch == file->epoch && run->first <= *n) {
		*ret_from = *n;
		if (*n < (uint32_t)run->first + run->n)
			*n = (uint32_t)run->first + run->n;
	} else if (run->first == 0) {
		*epoch = file->epoch;
		*n = run->n;
	}
	return 0;
}

static void reset_known(const struct memtrace_file *file, struct memtrace_known *known)
{
	memset(known->n.items, 0, known->n.n * sizeof(*known->n.items));
	known->epoch = file->epoch;
}

int memtrace_file_begin_batch(const struct memtrace_file *file, size_t n_sites,
			      struct memtrace_known *known)
{
	int r;

	known->n.n = 0;
	r = vec_reserve(&known->n, n_sites ?: 1);
	if (r < 0)
		return r;
	known->n.n = n_sites;
	reset_known(file, known);
	return 0;
}

/* Return: how many instructions of the block at @base are announced, from the first one on. */
static uint32_t count_announced(const struct memtrace_file *file, const struct ptd_block *block,
				uint64_t base)
{
	const struct memtrace_announced *page;
	uint32_t i;

	if (!memtrace_code_find(file->code, block, base, &i) || i / PAGE_SITES >= file->announced.n)
		return 0;
	page = file->announced.items[i / PAGE_SITES];
	return page && page->sites[i % PAGE_SITES].epoch == file->epoch
		   ? page->sites[i % PAGE_SITES].n
		   : 0;
}

bool memtrace_file_look_up(const struct memtrace_file *file, struct memtrace_known *known,
			   uint32_t site, const struct ptd_run *run)
{
	const uint64_t key = ((uintptr_t)run->block + run->base) * UINT64_C(0x9e3779b97f4a7c15);
	__typeof__(known->lately[0]) *lately =
	    &known->lately[key >> 32 & (ARRAY_LEN(known->lately) - 1)];
	const uint32_t end = (uint32_t)run->first + run->n;

	if (known->epoch != file->epoch)
		reset_known(file, known);
	/* The run before it was announced in this generation. */
	assert(file->generation == file->code->generation);
	if (lately->block != run->block || lately->base != run->base || lately->file != file ||
	    lately->epoch != file->epoch || lately->n < end) {
		lately->file = file;
		lately->block = run->block;
		lately->base = run->base;
		lately->epoch = file->epoch;
		lately->n = count_announced(file, run->block, run->base);
	}
	known->n.items[site] = lately->n;
	return lately->n >= end;
}

/* Return: how many markers of symbols there are among the records. */
static uint64_t count_symbols(const uint8_t *records, size_t size)
{
	const uint32_t marker = (uint32_t)MEMTRACE_SYMBOL << 16 | MEMTRACE_MARKER;
	uint64_t n = 0;

	for (size_t i = 0; i < size; i += sizeof(struct memtrace_record)) {
		uint32_t kind;

		memcpy(&kind, records + i, sizeof(kind));
		n += kind == marker;
	}
	return n;
}

int memtrace_file_records(struct memtrace_file *file, const uint8_t *records, size_t size,
			  uint64_t n_insns, uint32_t symbol)
{
	uint8_t *p;
	int r = enter_chunk(file);

	if (r == 0)
		r = memtrace_out_room(&file->out, size, &p);
	if (r < 0)
		return r;
	memcpy(p, records, size);
	commit(file, p + size);
	if (!file->out.pool->is_plain)
		file->n_others += count_symbols(records, size);
	file->n_insns += n_insns;
	file->symbol = symbol;
	return 0;
}

void memtrace_file_forget(struct memtrace_file *file)
{
	file->epoch++;
}

static uint8_t *put_insns(uint8_t *p, const struct ptd_block *block, uint64_t base, size_t i,
			  size_t end)
{
	for (; i < end; i++) {
		const struct ptd_insn *insn = &block->insns[i];

		p = memtrace_put_record(p, memtrace_insn_type(block, i), insn->size,
					base + insn->offset);
	}
	return p;
}

/* Return: as operand_rip(), which is asked unless the answer is remembered. */
static bool find_operand(struct memtrace_operands *operands, const uint8_t *bytes, size_t size,
			 struct operand *ret_operand)
{
	__typeof__(operands->lately[0]) *lately;

	if (size > MEMTRACE_INSN_BYTES)
		return false;
	lately = &operands->lately[map_hash(bytes, size) % ARRAY_LEN(operands->lately)];
	if (lately->size != size || memcmp(lately->bytes, bytes, size) != 0) {
		lately->size = (uint8_t)size;
		memcpy(lately->bytes, bytes, size);
		lately->has_operand = operand_rip(bytes, size, &lately->operand);
	}
	if (lately->has_operand)
		*ret_operand = lately->operand;
	return lately->has_operand;
}

/* Put the records of the data that instruction @i accesses, as far as their addresses are known. */
static uint8_t *put_data(struct memtrace_file *file, uint8_t *p, const struct ptd_block *block,
			 uint64_t base, size_t i)
{
	const struct ptd_insn *insn = &block->insns[i];
	struct operand operand;
	uint64_t address;

	if (!file->operands ||
	    !find_operand(file->operands, block->bytes + insn->offset, insn->size, &operand))
		return p;
	address = base + insn->offset + insn->size + (uint64_t)(int64_t)operand.disp;
	if (operand.reads)
		p = memtrace_put_record(p, MEMTRACE_READ, operand.size, address);
	if (operand.writes)
		p = memtrace_put_record(p, MEMTRACE_WRITE, operand.size, address);
	file->n_others += (uint64_t)operand.reads + operand.writes;
	return p;
}

/* The same, with the bytes of the instructions if they are asked for, and with their data. */
static uint8_t *put_insns_with(struct memtrace_file *file, uint8_t *p,
			       const struct ptd_block *block, uint64_t base, size_t i, size_t end,
			       bool with_bytes)
{
	for (; i < end; i++) {
		if (with_bytes)
			p = put_bytes(p, block->bytes + block->insns[i].offset,
				      block->insns[i].size);
		p = put_insns(p, block, base, i, i + 1);
		p = put_data(file, p, block, base, i);
	}
	return p;
}

int memtrace_file_symbol(struct memtrace_file *file, uint32_t symbol)
{
	const int r = enter_chunk(file);

	if (r < 0 || file->symbol == symbol)
		return r;
	file->symbol = symbol;
	return memtrace_file_marker(file, MEMTRACE_SYMBOL, symbol, NULL);
}

/* Return: up to which instruction, at most up to @end, the chunk and the symbol of @first go. */
static size_t same_symbol(const struct memtrace_file *file, const struct ptd_block *block,
			  size_t first, size_t end)
{
	const uint64_t left = file->chunk_start + MEMTRACE_CHUNK - file->n_insns;
	size_t i = first + 1;

	if (end - first > left)
		end = first + (size_t)left;
	while (i < end && block->insns[i].symbol == block->insns[first].symbol)
		i++;
	return i;
}

int memtrace_file_insns(struct memtrace_file *file, const struct ptd_block *block, uint64_t base,
			size_t first, size_t end, size_t from)
{
	while (first < end) {
		const bool with_bytes = first >= from;
		const bool is_plain = !with_bytes && !file->operands;
		size_t stop;
		uint8_t *p;
		int r = memtrace_file_symbol(file, block->insns[first].symbol);

		if (r < 0)
			return r;
		stop = same_symbol(file, block, first, with_bytes || end < from ? end : from);
		if (stop - first > PIECE_INSNS)
			stop = first + PIECE_INSNS;
		r = memtrace_out_room(&file->out,
				      (stop - first) * sizeof(struct memtrace_record) *
					  (is_plain ? 1 : INSN_RECORDS_MAX),
				      &p);
		if (r < 0)
			return r;
		p = is_plain ? put_insns(p, block, base, first, stop)
			     : put_insns_with(file, p, block, base, first, stop, with_bytes);
		commit(file, p);
		file->n_insns += stop - first;
		first = stop;
	}
	return 0;
}

static uint16_t type_of_branch(const struct memtrace_insn *insn, uint64_t target)
{
	/* A branch to its own fall-through counts as taken. */
	if (memtrace_insn_class(insn) == PTD_INSN_JUMP_COND && target == memtrace_insn_target(insn))
		return MEMTRACE_TAKEN_JUMP;
	return memtrace_insn_type(insn->block, insn->index);
}

int memtrace_file_branch(struct memtrace_file *file, const struct memtrace_insn *insn,
			 bool with_bytes, uint64_t target)
{
	const struct ptd_insn *i = &insn->block->insns[insn->index];
	uint8_t *p;
	int r = memtrace_file_symbol(file, i->symbol);

	if (r == 0)
		r = memtrace_out_room(&file->out, INSN_RECORDS_MAX * sizeof(struct memtrace_record),
				      &p);
	if (r < 0)
		return r;
	if (with_bytes)
		p = put_bytes(p, insn->block->bytes + i->offset, i->size);
	if (i->iclass != PTD_INSN_JUMP_COND)
		p = memtrace_put_record(p, MEMTRACE_MARKER, MEMTRACE_BRANCH_TARGET, target);
	p = memtrace_put_record(p, type_of_branch(insn, target), i->size, memtrace_insn_pc(insn));
	p = put_data(file, p, insn->block, insn->base, insn->index);
	commit(file, p);
	file->n_insns++;
	return 0;
}

void memtrace_file_forget_all(struct memtrace_file *file)
{
	vec_deinit_each(&file->announced, page, free(*page));
}

int memtrace_file_finish(struct memtrace_file *file, uint64_t tid)
{
	uint8_t *p;
	int r;

	r = memtrace_out_room(&file->out, 2 * sizeof(struct memtrace_record), &p);
	if (r < 0)
		return r;
	p = memtrace_put_record(p, MEMTRACE_THREAD_EXIT, MEMTRACE_ID_SIZE, tid);
	p = memtrace_put_record(p, MEMTRACE_FOOTER, 0, 0);
	commit(file, p);
	return memtrace_out_finish(&file->out);
}

void memtrace_file_deinit(struct memtrace_file *file)
{
	memtrace_out_deinit(&file->out);
	memtrace_file_forget_all(file);
}
