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
 *	bytes        hexadecimal, without spaces; the option nobytes leaves them out
 *	instruction  AT&T
 *	symbol+offset, or [unknown]
 *	(object)     as it was mapped
 *	source line  if it was asked for and is known (see srcline.h)
 *
 * On a terminal, lines are cut at its width. A narrow one has no room for all columns: there the
 * bytes, or also comm and pid, are left out.
 *
 * Lines that begin with '#' are no instructions. They are the head of the file, and the marks
 * between instructions (gaps, interruptions, exits to untraced code), with the same first columns.
 *
 * Except for its first columns, a line depends only on the block and the address at which it is
 * mapped. The lines of a block are therefore made once, with the first columns of the slice, and
 * then copied. The time is put into the copies. Each thread has lines of its own, because it
 * changes their first columns; but what comes behind these it copies from lines that another thread
 * has made, if there are any.
 */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/column.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"
#include "decoder/sink/srcline.h"
#include "decoder/sink/templates.h"
#include "decoder/util/mutex.h"
#include "decoder/x86/text.h"
#include "ptd/decode.h"
#include "util/map.h"
#include "util/vec.h"

#define NAME_MAX_SHOWN 1024 /* bytes of the name of a symbol or an object; longer names are cut */
/* More than the longest line, with its head. */
#define LINE_SIZE     (2 * NAME_MAX_SHOWN + SRCLINE_MAX + 512)
#define INSN_SIZE_MAX 15
#define HEAD_SIZE     128
#define PREFETCH      4 /* runs ahead of the one that is written */

/* The least columns of a terminal that has room for bytes, and for comm and pid. */
#define COLUMNS_BYTES   150
#define COLUMNS_PROCESS 120

/* The lines of one block, mapped at one address, with first columns of any slice and time. */
struct lines {
	struct template template;
	const struct ptd_block *block;
	uint64_t slice_text; /* of their first columns: see struct memory */
	size_t head_size;    /* bytes of the first columns of each line */
	size_t n;
	uint32_t starts[]; /* offsets of each line in the text, and of the end; then the text */
};

/* The lines of all threads: those of a block at an address that were made last. */
struct all_lines {
	pthread_mutex_t mutex; /* held while lines of another thread are read, or forgotten */
	struct map map;        /* see key_of(): struct lines; another block may have the same key */
	size_t n_threads;      /* that make lines; if it is one, none are kept here */
};

/* Which columns there are, and how times are written. */
struct text {
	enum ptd_clock clock;
	bool bytes, process;
	struct ptd_decoder *decoder; /* borrowed; NULL unless positions are shown */
	enum sink_positions positions;
	struct all_lines *all_lines; /* owned by the sink */
};

/* What one thread keeps between two batches. */
struct memory {
	struct text text;

	/* The first columns. Those before the time are the same in the whole slice. */
	char head[HEAD_SIZE];
	size_t head_slice_size, head_size;
	uint64_t head_t;
	struct column_times times;
	uint64_t slice_text; /* counts up when the columns before the time change */

	struct templates templates; /* struct lines */
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

static void head_set_time(struct memory *memory, uint64_t t)
{
	char *p = memory->head + memory->head_slice_size;

	if (memory->text.clock == PTD_CLOCK_NONE)
		*p++ = '-';
	else
		p = column_times_put(&memory->times, p, t);
	*p++ = ':';
	*p++ = ' ';
	memory->head_size = (size_t)(p - memory->head);
	memory->head_t = t;
}

static void head_set_slice(struct memory *memory, const struct ptd_slice *slice)
{
	const size_t size_before = memory->head_slice_size;
	char comm[16] = "", pid[12], tid[12], before[HEAD_SIZE];
	int n;

	(void)output_printable(comm, slice->comm ? slice->comm : "?", sizeof(comm) - 1);
	put_id(pid, slice->pid);
	put_id(tid, slice->tid);
	memcpy(before, memory->head, sizeof(before));
	n = memory->text.process
		? snprintf(memory->head, HEAD_SIZE, "%16s %7s/%-7s [%03" PRIu32 "] ", comm, pid,
			   tid, slice->cpu)
		: snprintf(memory->head, HEAD_SIZE, " %7s [%03" PRIu32 "] ", tid, slice->cpu);
	memory->head_slice_size = (size_t)n;
	if (memory->head_slice_size != size_before ||
	    memcmp(memory->head, before, size_before) != 0)
		memory->slice_text++;
	head_set_time(memory, slice->t0);
}

/* --- the lines of a block --------------------------------------------------------------------- */

/* Write the last column, of the instruction at @address. Return: its length; or -ENOMEM. */
static int make_srcline(const struct text *text, const struct ptd_object *object, uint64_t address,
			char ret_text[static SRCLINE_MAX + 1])
{
	struct ptd_position positions[PTD_POSITIONS_MAX];
	size_t size;
	int n;

	if (!text->decoder)
		return 0;
	n = ptd_decoder_positions(text->decoder, object, address, positions);
	if (n <= 0)
		return n;
	ret_text[0] = ' ';
	size = srcline_format(positions, (size_t)n, text->positions, ret_text + 1);
	return size > 0 ? (int)size + 1 : 0;
}

/* Write a line without its first columns. Return: its length in bytes; or -ENOMEM. */
static int make_line(const struct text *columns, const struct ptd_batch *batch,
		     const struct ptd_run *run, size_t i, char ret_line[static LINE_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	const struct ptd_block *block = run->block;
	const struct ptd_insn *insn = &block->insns[i];
	const uint8_t *bytes = block->bytes + insn->offset;
	const uint64_t ip = run->base + insn->offset;
	char text[TEXT_MAX], hex[2 * INSN_SIZE_MAX + 1] = "";
	size_t n;
	int r;

	(void)text_format(block->mode, ip, bytes, insn->size, text);
	for (size_t b = 0; b < insn->size && b < INSN_SIZE_MAX; b++) {
		hex[2 * b] = digits[bytes[b] >> 4];
		hex[2 * b + 1] = digits[bytes[b] & 15];
	}
	n = (size_t)(columns->bytes
			 ? snprintf(ret_line, LINE_SIZE, "%16" PRIx64 " %-22s %-36s ", ip, hex,
				    text)
			 : snprintf(ret_line, LINE_SIZE, "%16" PRIx64 " %-36s ", ip, text));

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
	r = make_srcline(columns, block->object, block->address + insn->offset, ret_line + n);
	if (r < 0)
		return r;
	n += (size_t)r;
	ret_line[n++] = '\n';
	return (int)n;
}

static char *text_of(const struct lines *lines)
{
	return (char *)(uintptr_t)&lines->starts[lines->n + 1];
}

/* Add a line, of the bytes behind its first columns, to the scratch. Return: 0 or -ENOMEM. */
static int push_line(struct memory *memory, const char *line, size_t size)
{
	const int r = vec_reserve(&memory->scratch, memory->head_size + size);

	if (r < 0)
		return r;
	memcpy(memory->scratch.items + memory->scratch.n, memory->head, memory->head_size);
	memory->scratch.n += memory->head_size;
	memcpy(memory->scratch.items + memory->scratch.n, line, size);
	memory->scratch.n += size;
	return 0;
}

/* Begin line @i in the scratch, which is the end of the template: the starts, and then the text. */
static void begin_line(struct memory *memory, const struct ptd_block *block, size_t i)
{
	const size_t starts_size = (block->n_insns + (size_t)1) * sizeof(uint32_t);
	const uint32_t start = (uint32_t)(memory->scratch.n - starts_size);

	memcpy(memory->scratch.items + i * sizeof(start), &start, sizeof(start));
}

/* Make the lines of the block. Return: 0 or -ENOMEM. */
static int push_made(struct memory *memory, const struct ptd_batch *batch,
		     const struct ptd_run *run)
{
	for (size_t i = 0; i < run->block->n_insns; i++) {
		char line[LINE_SIZE];
		const int n = make_line(&memory->text, batch, run, i, line);

		if (n < 0)
			return n;
		begin_line(memory, run->block, i);
		if (push_line(memory, line, (size_t)n) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Copy the lines @from, with other first columns. Return: 0 or -ENOMEM. */
static int push_copied(struct memory *memory, const struct lines *from)
{
	for (size_t i = 0; i < from->n; i++) {
		const size_t start = from->starts[i] + from->head_size;

		begin_line(memory, from->block, i);
		if (push_line(memory, text_of(from) + start, from->starts[i + 1] - start) < 0)
			return -ENOMEM;
	}
	return 0;
}

static uint64_t key_of(const struct ptd_block *block, uint64_t base)
{
	return base + ((uint64_t)block->id << 32);
}

/* Take the lines of another thread, if it has made them. */
static int push_shared(struct memory *memory, const struct ptd_run *run, bool *ret_found)
{
	struct all_lines *all = memory->text.all_lines;
	const struct lines *lines;
	int r = 0;

	*ret_found = false;
	if (__atomic_load_n(&all->n_threads, __ATOMIC_RELAXED) < 2)
		return 0;
	(void)pthread_mutex_lock(&all->mutex);
	lines = map_pointer(&all->map, key_of(run->block, run->base));
	if (lines && lines->block == run->block && lines->template.base == run->base) {
		*ret_found = true;
		r = push_copied(memory, lines);
	}
	(void)pthread_mutex_unlock(&all->mutex);
	return r;
}

/* Let other threads take the lines. */
static int share_lines(struct memory *memory, const struct lines *lines)
{
	struct all_lines *all = memory->text.all_lines;
	int r;

	if (__atomic_load_n(&all->n_threads, __ATOMIC_RELAXED) < 2)
		return 0;
	(void)pthread_mutex_lock(&all->mutex);
	r = map_put(&all->map, key_of(lines->block, lines->template.base), (uintptr_t)lines);
	(void)pthread_mutex_unlock(&all->mutex);
	return r;
}

/* No thread may take lines that another one is going to forget. */
static void unshare_lines(struct memory *memory)
{
	struct all_lines *all = memory->text.all_lines;

	(void)pthread_mutex_lock(&all->mutex);
	map_deinit(&all->map);
	(void)pthread_mutex_unlock(&all->mutex);
}

static int make_lines(struct memory *memory, const struct ptd_batch *batch,
		      const struct ptd_run *run, struct lines **ret_lines)
{
	const struct ptd_block *block = run->block;
	const size_t starts_size = (block->n_insns + (size_t)1) * sizeof(uint32_t);
	struct lines *lines;
	bool is_found;
	int r;

	memory->scratch.n = 0;
	r = vec_reserve(&memory->scratch, starts_size);
	if (r < 0)
		return r;
	memory->scratch.n = starts_size;
	r = push_shared(memory, run, &is_found);
	if (r == 0 && !is_found)
		r = push_made(memory, batch, run);
	if (r < 0)
		return r;
	begin_line(memory, block, block->n_insns);

	lines = templates_alloc(&memory->templates, sizeof(*lines) + memory->scratch.n);
	if (!lines)
		return -ENOMEM;
	lines->block = block;
	lines->slice_text = memory->slice_text;
	lines->head_size = memory->head_size;
	lines->n = block->n_insns;
	memcpy(lines->starts, memory->scratch.items, memory->scratch.n);
	*ret_lines = lines;
	r = templates_add(&memory->templates, block, run->base, &lines->template);
	return r == 0 && !is_found ? share_lines(memory, lines) : r;
}

/* Put the first columns of this slice, which have as many bytes with the time, into all lines. */
static void set_slice(const struct memory *memory, struct lines *lines)
{
	for (size_t i = 0; i < lines->n; i++)
		memcpy(text_of(lines) + lines->starts[i], memory->head, memory->head_slice_size);
	lines->slice_text = memory->slice_text;
}

/* --- the stream ------------------------------------------------------------------------------- */

/* Write the lines @i to @end - 1, each with the first columns. */
static int put_lines(const struct memory *memory, struct lines *lines, size_t i, size_t end,
		     struct output *output)
{
	for (; i < end; i++) {
		const size_t size = lines->starts[i + 1] - lines->starts[i] - lines->head_size;
		uint8_t *to;
		int r;

		r = output_reserve(output, LINE_SIZE);
		if (r < 0)
			return r;
		to = output->buffer + output->n_used;
		memcpy(to, memory->head, memory->head_size);
		memcpy(to + memory->head_size, text_of(lines) + lines->starts[i] + lines->head_size,
		       size);
		output->n_used += memory->head_size + size;
	}
	return 0;
}

/* Write the time, with what follows it before the next column. Clocks have from 16 to 32 bytes. */
static inline void put_time(const struct memory *memory, uint8_t *to)
{
	const char *time = memory->head + memory->head_slice_size;
	const size_t size = memory->head_size - memory->head_slice_size;

	if (size >= 16 && size <= 32) {
		memcpy(to, time, 16);
		memcpy(to + size - 16, time + size - 16, 16);
	} else {
		memcpy(to, time, size);
	}
}

/* Copy the lines @i to @end - 1, and put the time into each. */
static int copy_lines(const struct memory *memory, struct lines *lines, size_t i, size_t end,
		      struct output *output)
{
	const size_t start = lines->starts[i], size = lines->starts[end] - start;
	uint8_t *to;
	int r;

	r = output_reserve(output, size);
	if (r < 0)
		return r;
	to = output->buffer + output->n_used;
	memcpy(to, text_of(lines) + start, size);
	for (; i < end; i++)
		put_time(memory, to + lines->starts[i] - start + memory->head_slice_size);
	output->n_used += size;
	return 0;
}

static int put_run(struct memory *memory, const struct ptd_batch *batch, const struct ptd_run *run,
		   struct output *output)
{
	const size_t end = (size_t)run->first + run->n;
	struct lines *lines;
	int r;

	if (run->t != memory->head_t)
		head_set_time(memory, run->t);
	lines = (void *)templates_find(&memory->templates, run->block, run->base);
	if (!lines) {
		r = make_lines(memory, batch, run, &lines);
		if (r < 0)
			return r;
	}
	/* Ids or times with more digits than usual make the first columns longer. */
	if (lines->head_size != memory->head_size ||
	    lines->starts[end] - lines->starts[run->first] > OUTPUT_SIZE)
		return put_lines(memory, lines, run->first, end, output);
	if (lines->slice_text != memory->slice_text)
		set_slice(memory, lines);
	return copy_lines(memory, lines, run->first, end, output);
}

/* Values that are not known, or are 0, are left out. */
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

/* What has a name. */
static void put_noted(struct output *output, const struct ptd_batch *batch,
		      const struct ptd_mark *mark)
{
	output_printf(output, "%s: ", ptd_mark_kind_name(mark->kind));
	output_name(output, batch->symbols[mark->value]->name);
	if (mark->ip)
		output_printf(output, ", ip %" PRIx64, mark->ip);
	output_printf(output, "\n");
}

static int put_mark(struct memory *memory, const struct ptd_batch *batch,
		    const struct ptd_mark *mark, struct output *output)
{
	char ip[24] = "unknown";
	int r;

	if (mark->t != memory->head_t)
		head_set_time(memory, mark->t);
	r = output_write(output, "#", 1);
	if (r < 0)
		return r;
	r = output_write(output, memory->head + 1, memory->head_size - 1);
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
		output_printf(output, "out of scope: code that was not asked for, ip %s\n", ip);
		break;
	case PTD_MARK_TSX:
		output_printf(output, "tsx: %s, ip %s\n",
			      mark->value == PTD_TSX_BEGIN    ? "begin"
			      : mark->value == PTD_TSX_COMMIT ? "commit"
							      : "abort",
			      ip);
		break;
	case PTD_MARK_BEGIN:
	case PTD_MARK_END:
	case PTD_MARK_POINT:
	case PTD_MARK_PROBE:
		put_noted(output, batch, mark);
		break;
	default:
		put_values(output, mark);
	}
	return output->error;
}

static int text_expand(const void *state, void *userdata, const struct ptd_batch *batch,
		       struct output *output)
{
	struct memory *memory = userdata;
	size_t m = 0;
	int r = 0;

	if (templates_exceed(&memory->templates))
		unshare_lines(memory);
	templates_limit(&memory->templates);
	head_set_slice(memory, batch->slice);
	for (size_t i = 0; i <= batch->n_runs && r == 0; i++) {
		if (i + PREFETCH < batch->n_runs)
			templates_prefetch(&memory->templates, batch->runs[i + PREFETCH].block,
					   batch->runs[i + PREFETCH].base);
		while (r == 0 && m < batch->n_marks && batch->marks[m].run == i)
			r = put_mark(memory, batch, &batch->marks[m++], output);
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
	memory->text = *(const struct text *)state;
	memory->times.clock = memory->text.clock;
	(void)__atomic_add_fetch(&memory->text.all_lines->n_threads, 1, __ATOMIC_RELAXED);
	*ret_memory = memory;
	return 0;
}

static void text_forget(void *userdata)
{
	struct memory *memory = userdata;

	unshare_lines(memory);
	templates_deinit(&memory->templates);
	vec_deinit(&memory->scratch);
	free(memory);
}

static void text_close(void *state)
{
	struct text *text = state;

	if (!text->all_lines)
		return;
	map_deinit(&text->all_lines->map);
	(void)pthread_mutex_destroy(&text->all_lines->mutex);
	free(text->all_lines);
}

static void put_title(const struct text *text, struct output *output, const struct ptd_info *info)
{
	output_printf(output, "# %s [cpu] time: address %sinstruction symbol+offset (object)\n",
		      text->process ? "comm pid/tid" : "tid", text->bytes ? "bytes " : "");
	output_clock(output, info);
}

static int text_open(void *state, const struct sink_config *config, struct output *output)
{
	struct text *text = state;
	bool is_wide;

	text->all_lines = calloc(1, sizeof(*text->all_lines));
	if (!text->all_lines)
		return -ENOMEM;
	mutex_init_short(&text->all_lines->mutex);
	output_fit(output);
	is_wide = output->columns == 0 || output->columns >= COLUMNS_BYTES;
	text->clock = config->info->clock;
	text->bytes = is_wide && !sink_option(config, "no-bytes");
	text->process = is_wide || output->columns >= COLUMNS_PROCESS;
	text->positions = config->positions;
	if (config->positions != SINK_NO_POSITIONS)
		text->decoder = config->decoder;
	put_title(text, output, config->info);
	return 0;
}

static const struct sink_option options[] = {
	{ .name = "no-bytes", .help = "without the bytes of the instructions" },
	{},
};

const struct sink_ops sink_text = {
	.name = "text",
	.help = "one line per instruction: who, where, when, disassembly, symbol",
	.options = options,
	.state_size = sizeof(struct text),
	.open = text_open,
	.remember = text_remember,
	.forget = text_forget,
	.expand = text_expand,
	.close = text_close,
};
