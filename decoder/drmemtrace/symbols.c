/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/symbols.h"

#include <inttypes.h>
#include <string.h>

#define NAME       "aux/symbols.tsv"
#define NAME_BYTES 8192 /* of a name, which are written; the decoder makes none that is longer */
#define IDS        64   /* in a word of a bit set */

static const char columns[] =
    "id\tname\tobject\tbuild_id\taddress\tsize\tkind\tpid\tjit_index\tvalid_from\n";

void memtrace_symbols_init(struct memtrace_symbols *symbols, const struct sink_config *config,
			   const struct memtrace_clock *clock)
{
	*symbols = (struct memtrace_symbols){
		.dir_fd = config->fd,
		.clock = clock,
		.room = config->room,
		.output = output_none(),
	};
}

void memtrace_symbols_deinit(struct memtrace_symbols *symbols)
{
	output_deinit(&symbols->output);
	vec_deinit(&symbols->known);
}

static int create(struct memtrace_symbols *symbols)
{
	const int r = output_create(&symbols->output, symbols->dir_fd, NAME, symbols->room);

	return r < 0 ? r : output_write(&symbols->output, columns, sizeof(columns) - 1);
}

/* Set the bit of @id. Return: 1; 0 if it was set; or -ENOMEM. */
static int learn(struct memtrace_symbols *symbols, uint32_t id)
{
	const uint64_t bit = UINT64_C(1) << (id % IDS);
	uint64_t *word;
	int r;

	while (symbols->known.n <= id / IDS) {
		r = vec_push(&symbols->known, 0);
		if (r < 0)
			return r;
	}
	word = &symbols->known.items[id / IDS];
	if (*word & bit)
		return 0;
	*word |= bit;
	return 1;
}

/* Write a name, which is foreign, so that it is one column. */
static void write_name(struct output *output, const char *name)
{
	char text[NAME_BYTES];
	size_t n = output_printable(text, name, sizeof(text));

	if (n == 0)
		text[n++] = '-';
	(void)output_write(output, text, n);
	output_printf(output, "\t");
}

static void write_build_id(struct output *output, const struct ptd_object *object)
{
	for (size_t i = 0; i < object->build_id_size; i++)
		output_printf(output, "%02x", object->build_id[i]);
	output_printf(output, "%s\t", object->build_id_size ? "" : "-");
}

static const char *kind_of(const struct ptd_symbol *symbol, const struct ptd_run *run)
{
	const char *object = run->block->object->name;

	if (run->base >> 63)
		return "kernel";
	if (symbol->is_plt)
		return "plt";
	if (symbol->jit || (object[0] == '[' && strcmp(object, "[vdso]") != 0))
		return "jit";
	return "elf";
}

/* Return: where the first byte of the symbol is, as the column has it. */
static uint64_t address_of(const struct ptd_symbol *symbol, const struct ptd_run *run, bool is_elf)
{
	if (symbol->jit)
		return symbol->jit->address;
	return is_elf ? symbol->address : run->base + (symbol->address - run->block->address);
}

static void write_line(struct memtrace_symbols *symbols, const struct ptd_batch *batch,
		       const struct ptd_run *run, uint32_t id)
{
	struct output *output = &symbols->output;
	const struct ptd_symbol *symbol = batch->symbols[id];
	const char *kind = kind_of(symbol, run);
	const bool is_jit = kind[0] == 'j';

	output_printf(output, "%" PRIu32 "\t", id);
	write_name(output, symbol->name);
	write_name(output, run->block->object->name);
	write_build_id(output, run->block->object);
	output_printf(output, "%" PRIx64 "\t%" PRIu64 "\t%s\t",
		      address_of(symbol, run, !is_jit && kind[0] != 'k'),
		      symbol->jit ? symbol->jit->size : symbol->size, kind);
	if (is_jit && batch->slice->pid != PTD_ID_UNKNOWN)
		output_printf(output, "%" PRIu32 "\t", batch->slice->pid);
	else
		output_printf(output, "-\t");
	if (symbol->jit)
		output_printf(output, "%" PRIu64 "\t%" PRIu64 "\n", symbol->jit->index,
			      memtrace_stamp(symbols->clock, symbol->jit->t));
	else
		output_printf(output, "-\t-\n");
}

int memtrace_symbols_add(struct memtrace_symbols *symbols, const struct ptd_batch *batch,
			 const struct ptd_run *run)
{
	const struct ptd_insn *insns = &run->block->insns[run->first];
	int r;

	for (size_t i = 0; i < run->n; i++) {
		const uint32_t id = insns[i].symbol;

		if (id == PTD_NO_SYMBOL || id >= batch->n_symbols ||
		    (i > 0 && id == insns[i - 1].symbol))
			continue;
		r = learn(symbols, id);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		if (symbols->output.fd < 0) {
			r = create(symbols);
			if (r < 0)
				return r;
		}
		write_line(symbols, batch, run, id);
	}
	return symbols->output.error;
}

int memtrace_symbols_finish(struct memtrace_symbols *symbols)
{
	return symbols->output.fd < 0 ? 0 : output_finish(&symbols->output);
}
