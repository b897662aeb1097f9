/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Text
 *
 * One line per executed instruction, in the manner of perf script:
 *
 *	         python3     123/124     [003]  12345.678901234:     7f0123456789 4889e5     mov …
 *
 *	comm         16 columns; what cannot be printed is '?', as in every name
 *	pid/tid      '?' if the records do not say
 *	[cpu]
 *	time:        of the first instruction of the run, as far as the packets tell: seconds on the
 *	             recorder's clock, or TSC ticks of a bare stream, or '-' if there is no time
 *	address      where the thread saw it, hexadecimal
 *	bytes        hexadecimal, without spaces
 *	instruction  AT&T
 *	symbol+offset, or [unknown]
 *	(object)     as it was mapped
 *
 * Lines that begin with '#' are no instructions: the head of the file, and what stands between
 * instructions (gaps, interruptions, the ways out to untraced code), with the same first columns.
 *
 * All of a line but its first columns depends only on the block and where it is mapped, so the
 * lines of a block are made once and then copied.
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

#define NAME_MAX_SHOWN 1024 /* of a symbol or an object; longer ones are cut */
#define LINE_SIZE      (2 * NAME_MAX_SHOWN + 512) /* more than the longest line, with its head */
#define CACHE_SIZE_MAX (256u << 20)               /* of made lines: then they are made afresh */
#define BASES_MAX      64 /* of a block, the latest: lines of others are made afresh, too */
#define INSN_SIZE_MAX  15
#define HEAD_SIZE      96

/* The lines of one block, mapped at one address. */
struct lines {
	struct lines *next; /* the same block, mapped elsewhere */
	uint64_t base;
	const char *text;
	uint32_t *starts; /* of each line in @text, and of the end */
};

struct text {
	struct ptd_sink sink;
	struct output output;
	enum ptd_clock clock;

	/* The first columns; those up to the time are the slice's. */
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

/* @v in decimal, at least @width wide, with @fill in front. Return: behind it. */
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

static void head_set_time(struct text *text, uint64_t t)
{
	char *p = text->head + text->head_slice_size;

	switch (text->clock) {
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
	text->head_size = (size_t)(p - text->head);
	text->head_t = t;
}

static void head_set_slice(struct text *text, const struct ptd_slice *slice)
{
	char comm[16] = "", pid[12], tid[12];

	(void)output_printable(comm, slice->comm ? slice->comm : "?", sizeof(comm) - 1);
	put_id(pid, slice->pid);
	put_id(tid, slice->tid);
	text->head_slice_size =
	    (size_t)snprintf(text->head, sizeof(text->head), "%16s %7s/%-7s [%03" PRIu32 "] ", comm,
			     pid, tid, slice->cpu);
	head_set_time(text, slice->t0);
}

/* --- the lines of a block --------------------------------------------------------------------- */

/* Everything of the line but its first columns. Return: its length. */
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

static int make_lines(struct text *text, const struct ptd_batch *batch, const struct ptd_run *run,
		      struct lines **ret_lines)
{
	const struct ptd_block *block = run->block;
	struct lines *lines;
	char line[LINE_SIZE];
	size_t size;

	lines = arena_alloc(&text->arena, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	lines->base = run->base;
	lines->starts =
	    arena_alloc(&text->arena, (block->n_insns + (size_t)1) * sizeof(*lines->starts));
	if (!lines->starts)
		return -ENOMEM;

	text->scratch.n = 0;
	for (size_t i = 0; i < block->n_insns; i++) {
		const size_t n = make_line(batch, run, i, line);
		const int r = vec_reserve(&text->scratch, n);

		if (r < 0)
			return r;
		memcpy(text->scratch.items + text->scratch.n, line, n);
		text->scratch.n += n;
		lines->starts[i + 1] = (uint32_t)text->scratch.n;
	}
	lines->text = arena_copy(&text->arena, text->scratch.items, text->scratch.n);
	if (!lines->text)
		return -ENOMEM;

	size = sizeof(*lines) + (block->n_insns + (size_t)1) * sizeof(*lines->starts);
	text->arena_size += size + text->scratch.n;
	*ret_lines = lines;
	return 0;
}

static int get_new_lines(struct text *text, const struct ptd_batch *batch,
			 const struct ptd_run *run, const struct lines **ret_lines)
{
	const uint32_t id = run->block->id;
	struct lines *lines;
	int r;

	if (id >= text->blocks.n) {
		r = vec_reserve(&text->blocks, id + (size_t)1 - text->blocks.n);
		if (r < 0)
			return r;
		while (text->blocks.n <= id)
			text->blocks.items[text->blocks.n++] = NULL;
	}
	if (text->arena_size > CACHE_SIZE_MAX) {
		memset(text->blocks.items, 0, text->blocks.n * sizeof(*text->blocks.items));
		arena_deinit(&text->arena);
		text->arena_size = 0;
	}

	r = make_lines(text, batch, run, &lines);
	if (r < 0)
		return r;
	lines->next = text->blocks.items[id];
	text->blocks.items[id] = lines;
	*ret_lines = lines;
	return 0;
}

static inline int get_lines(struct text *text, const struct ptd_batch *batch,
			    const struct ptd_run *run, const struct lines **ret_lines)
{
	const uint32_t id = run->block->id;
	const struct lines *l = id < text->blocks.n ? text->blocks.items[id] : NULL;

	for (size_t n = 0; l && n < BASES_MAX; l = l->next, n++)
		if (l->base == run->base) {
			*ret_lines = l;
			return 0;
		}
	return get_new_lines(text, batch, run, ret_lines);
}

/* --- the stream ------------------------------------------------------------------------------- */

static int put_run(struct text *text, const struct ptd_batch *batch, const struct ptd_run *run)
{
	struct output *output = &text->output;
	const struct lines *lines = NULL;
	int r;

	r = get_lines(text, batch, run, &lines);
	if (r < 0)
		return r;
	if (run->t != text->head_t)
		head_set_time(text, run->t);

	for (size_t i = run->first; i < (size_t)run->first + run->n; i++) {
		const size_t size = lines->starts[i + 1] - lines->starts[i];
		uint8_t *to;

		r = output_reserve(output, LINE_SIZE);
		if (r < 0)
			return r;
		to = output->buffer + output->n_used;
		memcpy(to, text->head, text->head_size);
		memcpy(to + text->head_size, lines->text + lines->starts[i], size);
		output->n_used += text->head_size + size;
	}
	return 0;
}

/* What is not told, or nothing, is left out. */
static void put_values(struct output *output, const struct ptd_mark *mark)
{
	output_printf(output, "%s:", ptd_mark_kind_name(mark->kind));
	if (mark->value || mark->extra)
		output_printf(output, " 0x%" PRIx64, mark->value);
	if (mark->extra)
		output_printf(output, " 0x%" PRIx64, mark->extra);
	if (mark->ip)
		output_printf(output, "%s ip %" PRIx64, mark->value || mark->extra ? "," : "",
			      mark->ip);
	output_printf(output, "\n");
}

static int put_mark(struct text *text, const struct ptd_mark *mark)
{
	struct output *output = &text->output;
	char ip[24] = "unknown";
	int r;

	if (mark->t != text->head_t)
		head_set_time(text, mark->t);
	r = output_write(output, "#", 1);
	if (r < 0)
		return r;
	r = output_write(output, text->head + 1, text->head_size - 1);
	if (r < 0)
		return r;

	if (mark->ip)
		(void)snprintf(ip, sizeof(ip), "%" PRIx64, mark->ip);
	switch (mark->kind) {
	case PTD_MARK_GAP:
		output_printf(output,
			      "gap: %s, ip %s, offset 0x%" PRIx64 ", %" PRIu64 " bytes lost\n",
			      ptd_gap_reason_name(mark->reason), ip, mark->offset, mark->n_bytes);
		break;
	case PTD_MARK_ASYNC:
		output_printf(output, "async: interrupted, ip %s\n", ip);
		break;
	case PTD_MARK_OFF:
		output_printf(output, "off: left for untraced code, ip %s\n", ip);
		break;
	case PTD_MARK_STOP:
		output_printf(output, "stop: packets were stopped by an address filter\n");
		break;
	case PTD_MARK_OUT_OF_SCOPE:
		output_printf(output, "out of scope: another process's code, ip %s\n", ip);
		break;
	case PTD_MARK_TSX:
		output_printf(output, "tsx: %s, ip %s\n",
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

static int text_batch(struct ptd_sink *sink, const struct ptd_batch *batch)
{
	struct text *text = (struct text *)sink;
	size_t m = 0;
	int r = 0;

	head_set_slice(text, batch->slice);
	for (size_t i = 0; i <= batch->n_runs && r == 0; i++) {
		while (r == 0 && m < batch->n_marks && batch->marks[m].run == i)
			r = put_mark(text, &batch->marks[m++]);
		if (r == 0 && i < batch->n_runs)
			r = put_run(text, batch, &batch->runs[i]);
	}
	return r;
}

/* --- its life --------------------------------------------------------------------------------- */

static struct ptd_sink *text_free(struct ptd_sink *sink)
{
	struct text *text = (struct text *)sink;

	if (!text)
		return NULL;
	output_deinit(&text->output);
	arena_deinit(&text->arena);
	vec_deinit(&text->blocks);
	vec_deinit(&text->scratch);
	free(text);
	return NULL;
}

static void put_title(struct text *text, const struct ptd_info *info)
{
	struct output *output = &text->output;

	output_printf(output, "# comm pid/tid [cpu] time: address bytes instruction "
			      "symbol+offset (object)\n");
	if (info->clock == PTD_CLOCK_TSC)
		output_printf(output, "# time in TSC ticks\n");
	else if (info->clock != PTD_CLOCK_NS)
		output_printf(output, "# no time in this trace\n");
	else if (info->realtime_offset_ns == 0)
		output_printf(output, "# time in seconds on the recorder's clock\n");
	else
		output_printf(output,
			      "# time in seconds on the recorder's clock; CLOCK_REALTIME is "
			      "%" PRId64 " ns more\n",
			      info->realtime_offset_ns);
}

static int text_open(const struct ptd_sink_ops *ops, const struct ptd_sink_target *target,
		     const struct ptd_info *info, struct ptd_sink **ret_sink)
{
	struct text *text = calloc(1, sizeof(*text));
	int r;

	if (!text)
		return -ENOMEM;
	text->sink.ops = ops;
	text->clock = info->clock;
	r = output_init(&text->output, target);
	if (r < 0) {
		free(text);
		return r;
	}
	put_title(text, info);
	*ret_sink = &text->sink;
	return 0;
}

static int text_finish(struct ptd_sink *sink, const struct ptd_stats *stats)
{
	(void)stats;
	return output_finish(&((struct text *)sink)->output);
}

const struct ptd_sink_ops sink_text = {
	.name = "text",
	.help = "one line per instruction: who, where, when, disassembly, symbol",
	.open = text_open,
	.batch = text_batch,
	.finish = text_finish,
	.free = text_free,
};
