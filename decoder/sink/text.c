/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Text
 *
 * One line per executed instruction, in the manner of perf script:
 *
 *	         python3     123/124     [003]  12345.678901234:     7f0123456789 4889e5     mov …
 *
 *	comm         16 columns; a byte that cannot be printed is '?', as in every name
 *	pid/tid      '?' if the records do not say
 *	[cpu]
 *	time:        of the first instruction of the run, as exactly as the packets show it:
 *	             seconds on the recorder's clock, or TSC ticks of a bare PT stream, or '-' if
 *	             the trace has no time
 *	address      where the thread saw it, hexadecimal
 *	bytes        hexadecimal, without spaces
 *	instruction  AT&T
 *	symbol+offset, or [unknown]
 *	(object)     as it was mapped
 *
 * Lines that begin with '#' are no instructions. They are the head of the file, and the marks
 * between instructions (gaps, interruptions, exits to untraced code), with the same first columns.
 *
 * Except for its first columns, a line depends only on the block and the address at which it is
 * mapped. The lines of a block are therefore made once and then copied.
 */

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "decoder/x86/text.h"
#include "util/arena.h"
#include "util/vec.h"

#define NAME_MAX_SHOWN 1024 /* bytes of the name of a symbol or an object; longer names are cut */
#define LINE_SIZE      (2 * NAME_MAX_SHOWN + 512) /* more than the longest line, with its head */
#define CACHE_SIZE_MAX (256u << 20) /* bytes of cached lines; beyond that the cache is emptied */
#define BASES_MAX      64           /* addresses of one block whose lines are cached */
#define INSN_SIZE_MAX  15
#define HEAD_SIZE      96

/* The lines of one block, mapped at one address. */
struct lines {
	struct lines *next; /* those of the same block, mapped at another address */
	uint64_t base;
	const char *text;
	uint32_t *starts; /* offsets of each line in @text, and of the end */
};

struct text {
	enum ptd_clock clock;
};

/* What one thread keeps between two batches. */
struct memory {
	enum ptd_clock clock;

	/* The first columns. Those before the time are the same in the whole slice. */
	char head[HEAD_SIZE];
	size_t head_slice_size, head_size;
	uint64_t head_t;

	VEC(struct lines *) blocks; /* by block id */
	struct arena arena;         /* of the lines */
	size_t arena_size;
	VEC(char) scratch;
};

/* --- the first columns ------------------------------------------------------------------------ */

static void put_id(char ret_text[static 12], uint32_t id)
{
	if (id == PTD_ID_UNKNOWN)
		strcpy(ret_text, "?");
	else
		(void)snprintf(ret_text, 12, "%" PRIu32, id);
}

/* Write @v in decimal, padded with @fill to at least @width columns. Return: the end. */
static char *put_decimal(char *to, uint64_t v, size_t width, char fill)
{
	char digits[20];
	size_t n = 0;

	do
		digits[n++] = (char)('0' + v % 10);
	while ((v /= 10) > 0);
	for (size_t i = n; i < width; i++)
		*to++ = fill;
	while (n > 0)
		*to++ = digits[--n];
	return to;
}

static void head_set_time(struct memory *memory, uint64_t t)
{
	char *p = memory->head + memory->head_slice_size;

	switch (memory->clock) {
	case PTD_CLOCK_NS:
		p = put_decimal(p, t / 1000000000, 7, ' ');
		*p++ = '.';
		p = put_decimal(p, t % 1000000000, 9, '0');
		break;
	case PTD_CLOCK_TSC:
		p = put_decimal(p, t, 17, ' ');
		break;
	default:
		*p++ = '-';
	}
	*p++ = ':';
	*p++ = ' ';
	memory->head_size = (size_t)(p - memory->head);
	memory->head_t = t;
}

static void head_set_slice(struct memory *memory, const struct ptd_slice *slice)
{
	char comm[16] = "", pid[12], tid[12];

	(void)output_printable(comm, slice->comm ? slice->comm : "?", sizeof(comm) - 1);
	put_id(pid, slice->pid);
	put_id(tid, slice->tid);
	memory->head_slice_size =
	    (size_t)snprintf(memory->head, sizeof(memory->head), "%16s %7s/%-7s [%03" PRIu32 "] ",
			     comm, pid, tid, slice->cpu);
	head_set_time(memory, slice->t0);
}

/* --- the lines of a block --------------------------------------------------------------------- */

/* Write a line without its first columns. Return: its length in bytes. */
static size_t make_line(const struct ptd_batch *batch, const struct ptd_run *run, size_t i,
			char ret_line[static LINE_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	const struct ptd_block *block = run->block;
	const struct ptd_insn *insn = &block->insns[i];
	const uint8_t *bytes = block->bytes + insn->offset;
	const uint64_t ip = run->base + insn->offset;
	char text[TEXT_MAX], hex[2 * INSN_SIZE_MAX + 1] = "";
	size_t n;

	(void)text_format(block->mode, ip, bytes, insn->size, text);
	for (size_t b = 0; b < insn->size && b < INSN_SIZE_MAX; b++) {
		hex[2 * b] = digits[bytes[b] >> 4];
		hex[2 * b + 1] = digits[bytes[b] & 15];
	}
	n = (size_t)snprintf(ret_line, LINE_SIZE, "%16" PRIx64 " %-22s %-36s ", ip, hex, text);

	if (insn->symbol != PTD_NO_SYMBOL && insn->symbol < batch->n_symbols) {
		const struct ptd_symbol *symbol = batch->symbols[insn->symbol];

		n += output_printable(ret_line + n, symbol->name, NAME_MAX_SHOWN);
		n += (size_t)snprintf(ret_line + n, LINE_SIZE - n, "+0x%" PRIx64 " (",
				      block->address + insn->offset - symbol->address);
	} else {
		n += (size_t)snprintf(ret_line + n, LINE_SIZE - n, "[unknown] (");
	}
	n += output_printable(ret_line + n, block->object->name, NAME_MAX_SHOWN);
	ret_line[n++] = ')';
	ret_line[n++] = '\n';
	return n;
}

static int make_lines(struct memory *memory, const struct ptd_batch *batch,
		      const struct ptd_run *run, struct lines **ret_lines)
{
	const struct ptd_block *block = run->block;
	struct lines *lines;
	char line[LINE_SIZE];
	size_t size;

	lines = arena_alloc(&memory->arena, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	lines->base = run->base;
	lines->starts =
	    arena_alloc(&memory->arena, (block->n_insns + (size_t)1) * sizeof(*lines->starts));
	if (!lines->starts)
		return -ENOMEM;

	memory->scratch.n = 0;
	for (size_t i = 0; i < block->n_insns; i++) {
		const size_t n = make_line(batch, run, i, line);
		const int r = vec_reserve(&memory->scratch, n);

		if (r < 0)
			return r;
		memcpy(memory->scratch.items + memory->scratch.n, line, n);
		memory->scratch.n += n;
		lines->starts[i + 1] = (uint32_t)memory->scratch.n;
	}
	lines->text = arena_copy(&memory->arena, memory->scratch.items, memory->scratch.n);
	if (!lines->text)
		return -ENOMEM;

	size = sizeof(*lines) + (block->n_insns + (size_t)1) * sizeof(*lines->starts);
	memory->arena_size += size + memory->scratch.n;
	*ret_lines = lines;
	return 0;
}

static int get_new_lines(struct memory *memory, const struct ptd_batch *batch,
			 const struct ptd_run *run, const struct lines **ret_lines)
{
	const uint32_t id = run->block->id;
	struct lines *lines;
	int r;

	if (id >= memory->blocks.n) {
		r = vec_reserve(&memory->blocks, id + (size_t)1 - memory->blocks.n);
		if (r < 0)
			return r;
		while (memory->blocks.n <= id)
			memory->blocks.items[memory->blocks.n++] = NULL;
	}
	if (memory->arena_size > CACHE_SIZE_MAX) {
		memset(memory->blocks.items, 0, memory->blocks.n * sizeof(*memory->blocks.items));
		arena_deinit(&memory->arena);
		memory->arena_size = 0;
	}

	r = make_lines(memory, batch, run, &lines);
	if (r < 0)
		return r;
	lines->next = memory->blocks.items[id];
	memory->blocks.items[id] = lines;
	*ret_lines = lines;
	return 0;
}

static inline int get_lines(struct memory *memory, const struct ptd_batch *batch,
			    const struct ptd_run *run, const struct lines **ret_lines)
{
	const uint32_t id = run->block->id;
	const struct lines *l = id < memory->blocks.n ? memory->blocks.items[id] : NULL;

	for (size_t n = 0; l && n < BASES_MAX; l = l->next, n++)
		if (l->base == run->base) {
			*ret_lines = l;
			return 0;
		}
	return get_new_lines(memory, batch, run, ret_lines);
}

/* --- the stream ------------------------------------------------------------------------------- */

static int put_run(struct memory *memory, const struct ptd_batch *batch, const struct ptd_run *run,
		   struct ptd_output *output)
{
	const struct lines *lines = NULL;
	int r;

	r = get_lines(memory, batch, run, &lines);
	if (r < 0)
		return r;
	if (run->t != memory->head_t)
		head_set_time(memory, run->t);

	for (size_t i = run->first; i < (size_t)run->first + run->n; i++) {
		const size_t size = lines->starts[i + 1] - lines->starts[i];
		uint8_t *to;

		r = output_reserve(output, LINE_SIZE);
		if (r < 0)
			return r;
		to = output->buffer + output->n_used;
		memcpy(to, memory->head, memory->head_size);
		memcpy(to + memory->head_size, lines->text + lines->starts[i], size);
		output->n_used += memory->head_size + size;
	}
	return 0;
}

/* Values that are not known, or are 0, are left out. */
static void put_values(struct ptd_output *output, const struct ptd_mark *mark)
{
	ptd_output_printf(output, "%s:", ptd_mark_kind_name(mark->kind));
	if (mark->value || mark->extra)
		ptd_output_printf(output, " 0x%" PRIx64, mark->value);
	if (mark->extra)
		ptd_output_printf(output, " 0x%" PRIx64, mark->extra);
	if (mark->ip)
		ptd_output_printf(output, "%s ip %" PRIx64, mark->value || mark->extra ? "," : "",
				  mark->ip);
	ptd_output_printf(output, "\n");
}

static int put_mark(struct memory *memory, const struct ptd_mark *mark, struct ptd_output *output)
{
	char ip[24] = "unknown";
	int r;

	if (mark->t != memory->head_t)
		head_set_time(memory, mark->t);
	r = ptd_output_write(output, "#", 1);
	if (r < 0)
		return r;
	r = ptd_output_write(output, memory->head + 1, memory->head_size - 1);
	if (r < 0)
		return r;

	if (mark->ip)
		(void)snprintf(ip, sizeof(ip), "%" PRIx64, mark->ip);
	switch (mark->kind) {
	case PTD_MARK_GAP:
		ptd_output_printf(
		    output, "gap: %s, ip %s, offset 0x%" PRIx64 ", %" PRIu64 " bytes lost\n",
		    ptd_gap_reason_name(mark->reason), ip, mark->offset, mark->n_bytes);
		break;
	case PTD_MARK_ASYNC:
		ptd_output_printf(output, "async: interrupted, ip %s\n", ip);
		break;
	case PTD_MARK_OFF:
		ptd_output_printf(output, "off: left for untraced code, ip %s\n", ip);
		break;
	case PTD_MARK_STOP:
		ptd_output_printf(output, "stop: packets were stopped by an address filter\n");
		break;
	case PTD_MARK_OUT_OF_SCOPE:
		ptd_output_printf(output, "out of scope: another process's code, ip %s\n", ip);
		break;
	case PTD_MARK_TSX:
		ptd_output_printf(output, "tsx: %s, ip %s\n",
				  mark->value == PTD_TSX_BEGIN    ? "begin"
				  : mark->value == PTD_TSX_COMMIT ? "commit"
								  : "abort",
				  ip);
		break;
	default:
		put_values(output, mark);
	}
	return output->error;
}

static int text_expand(const void *state, void *userdata, const struct ptd_batch *batch,
		       struct ptd_output *output)
{
	struct memory *memory = userdata;
	size_t m = 0;
	int r = 0;

	(void)state;
	head_set_slice(memory, batch->slice);
	for (size_t i = 0; i <= batch->n_runs && r == 0; i++) {
		while (r == 0 && m < batch->n_marks && batch->marks[m].run == i)
			r = put_mark(memory, &batch->marks[m++], output);
		if (r == 0 && i < batch->n_runs)
			r = put_run(memory, batch, &batch->runs[i], output);
	}
	return r;
}

/* --- its life --------------------------------------------------------------------------------- */

static int text_remember(const void *state, void **ret_memory)
{
	struct memory *memory = calloc(1, sizeof(*memory));

	if (!memory)
		return -ENOMEM;
	memory->clock = ((const struct text *)state)->clock;
	*ret_memory = memory;
	return 0;
}

static void text_forget(void *userdata)
{
	struct memory *memory = userdata;

	arena_deinit(&memory->arena);
	vec_deinit(&memory->blocks);
	vec_deinit(&memory->scratch);
	free(memory);
}

static void text_free(void *state)
{
	free(state);
}

static void put_title(struct ptd_output *output, const struct ptd_info *info)
{
	ptd_output_printf(output, "# comm pid/tid [cpu] time: address bytes instruction "
				  "symbol+offset (object)\n");
	if (info->clock == PTD_CLOCK_TSC)
		ptd_output_printf(output, "# time in TSC ticks\n");
	else if (info->clock != PTD_CLOCK_NS)
		ptd_output_printf(output, "# no time in this trace\n");
	else if (info->realtime_offset_ns == 0)
		ptd_output_printf(output, "# time in seconds on the recorder's clock\n");
	else
		ptd_output_printf(output,
				  "# time in seconds on the recorder's clock; CLOCK_REALTIME is "
				  "%" PRId64 " ns more\n",
				  info->realtime_offset_ns);
}

static int text_open(const struct ptd_sink_config *config, struct ptd_output *output,
		     void **ret_state)
{
	struct text *text = calloc(1, sizeof(*text));

	if (!text)
		return -ENOMEM;
	text->clock = config->info->clock;
	put_title(output, config->info);
	*ret_state = text;
	return 0;
}

const struct ptd_sink_ops sink_text = {
	.size = sizeof(sink_text),
	.name = "text",
	.help = "one line per instruction: who, where, when, disassembly, symbol",
	.open = text_open,
	.remember = text_remember,
	.forget = text_forget,
	.expand = text_expand,
	.free = text_free,
};
