/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/tables.h"

#include <inttypes.h>
#include <string.h>

#define NAME_BYTES 8192 /* of a name, which are written; the decoder makes none that is longer */
#define IDS        64   /* in a word of a bit set */

void memtrace_tables_init(struct memtrace_tables *tables, const struct sink_config *config,
			  const struct memtrace_clock *clock)
{
	*tables = (struct memtrace_tables){
		.dir_fd = config->fd,
		.clock = clock,
		.room = config->room,
		.symbols = output_none(),
		.mappings = output_none(),
	};
}

void memtrace_tables_deinit(struct memtrace_tables *tables)
{
	output_deinit(&tables->symbols);
	output_deinit(&tables->mappings);
	vec_deinit(&tables->known);
	map_deinit(&tables->bases);
}

/* Make the file of @output, @name, unless it was made, with the names of its columns. */
static int begin(struct memtrace_tables *tables, struct output *output, const char *name,
		 const char *columns)
{
	int r;

	if (output->fd >= 0)
		return 0;
	r = output_create(output, tables->dir_fd, name, tables->room);
	return r < 0 ? r : output_write(output, columns, strlen(columns));
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

/* --- symbols ---------------------------------------------------------------------------------- */

/* Set the bit of @id. Return: 1; 0 if it was set; or -ENOMEM. */
static int learn(struct memtrace_tables *tables, uint32_t id)
{
	const uint64_t bit = UINT64_C(1) << (id % IDS);
	uint64_t *word = vec_at(&tables->known, id / IDS, 0);

	if (!word)
		return -ENOMEM;
	if (*word & bit)
		return 0;
	*word |= bit;
	return 1;
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

static void write_symbol(struct memtrace_tables *tables, const struct ptd_batch *batch,
			 const struct ptd_run *run, uint32_t id)
{
	struct output *output = &tables->symbols;
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
			      memtrace_stamp(tables->clock, symbol->jit->t));
	else
		output_printf(output, "-\t-\n");
}

static int add_symbols(struct memtrace_tables *tables, const struct ptd_batch *batch,
		       const struct ptd_run *run)
{
	const struct ptd_insn *insns = &run->block->insns[run->first];
	int r;

	for (size_t i = 0; i < run->n; i++) {
		const uint32_t id = insns[i].symbol;

		if (id == PTD_NO_SYMBOL || id >= batch->n_symbols ||
		    (i > 0 && id == insns[i - 1].symbol))
			continue;
		r = learn(tables, id);
		if (r < 0)
			return r;
		if (r == 0)
			continue;
		r = begin(tables, &tables->symbols, "aux/symbols.tsv",
			  "id\tname\tobject\tbuild_id\taddress\tsize\tkind\tpid\tjit_index\t"
			  "valid_from\n");
		if (r < 0)
			return r;
		write_symbol(tables, batch, run, id);
	}
	return tables->symbols.error;
}

/* --- mappings --------------------------------------------------------------------------------- */

static int write_mapping(struct memtrace_tables *tables, uint64_t pid, const struct ptd_run *run,
			 uint64_t base)
{
	const struct ptd_object *object = run->block->object;
	struct output *output = &tables->mappings;
	const int r =
	    begin(tables, output, "aux/mappings.tsv", "pid\tobject\tbuild_id\tbase\tvalid_from\n");

	if (r < 0)
		return r;
	output_printf(output, "%" PRIu64 "\t", pid);
	write_name(output, object->name);
	write_build_id(output, object);
	output_printf(output, "%" PRIx64 "\t%" PRIu64 "\n", base,
		      memtrace_stamp(tables->clock, run->t));
	return output->error;
}

/* Return: whether the code was mapped: code of JIT compilers and of the kernel lies where it is. */
static bool is_mapped(const struct ptd_run *run)
{
	const char *name = run->block->object->name;

	return (name[0] == '/' || strcmp(name, "[vdso]") == 0) && !(run->base >> 63);
}

static int add_mapping(struct memtrace_tables *tables, uint64_t pid, const struct ptd_run *run)
{
	const uint64_t base = run->base - run->block->address;
	const uint64_t *known;
	uint64_t key;
	int r;

	if (!run->block->object)
		return 0;
	key = pid << 32 | run->block->object->id;
	if ((tables->has_last && key == tables->last_key && base == tables->last_base) ||
	    !is_mapped(run))
		return 0;
	known = map_get(&tables->bases, key);
	if (!known || *known != base) {
		r = map_put(&tables->bases, key, base);
		if (r == 0)
			r = write_mapping(tables, pid, run, base);
		if (r < 0)
			return r;
	}
	tables->has_last = true;
	tables->last_key = key;
	tables->last_base = base;
	return 0;
}

int memtrace_tables_add(struct memtrace_tables *tables, const struct ptd_batch *batch,
			const struct ptd_run *run, uint64_t pid)
{
	const int r = add_symbols(tables, batch, run);

	return r < 0 ? r : add_mapping(tables, pid, run);
}

int memtrace_tables_finish(struct memtrace_tables *tables)
{
	int r = tables->symbols.fd < 0 ? 0 : output_finish(&tables->symbols);

	if (r == 0 && tables->mappings.fd >= 0)
		r = output_finish(&tables->mappings);
	return r;
}
