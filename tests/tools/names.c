/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * names [-d DEBUGDIR] -n N -s SEED SNAPSHOT OBJECT: picks N of the instructions that were executed
 * in the object of that path, each with the same chance, and prints for each a line: its ELF
 * address in hex, a tab, the name of its symbol, "??" if it has none.
 */

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ptd/decode.h"
#include "tests/lib/decoding.h"
#include "tests/lib/reservoir.h"

#define PICKS_MAX 100000

struct pick {
	uint64_t address;
	uint32_t symbol;
};

struct picks {
	struct pick *items;
	size_t n;
	struct reservoir reservoir;
};

static void see(struct picks *picks, uint64_t address, uint32_t symbol)
{
	const uint64_t i = reservoir_place(&picks->reservoir);

	if (i >= picks->reservoir.n_max)
		return;
	picks->items[i] = (struct pick){ .address = address, .symbol = symbol };
	if (picks->n <= i)
		picks->n = i + 1;
}

static void see_batch(struct picks *picks, const struct ptd_batch *batch, const char *object)
{
	for (size_t i = 0; i < batch->n_runs; i++) {
		const struct ptd_run *run = &batch->runs[i];
		const struct ptd_block *block = run->block;

		if (strcmp(block->object->name, object) != 0)
			continue;
		for (size_t k = run->first; k < (size_t)run->first + run->n; k++)
			see(picks, block->address + block->insns[k].offset, block->insns[k].symbol);
	}
}

int main(int argc, char **argv)
{
	struct ptd_options options = { .size = sizeof(options) };
	struct picks picks = {};
	struct ptd_decoder *decoder;
	const struct ptd_batch *batch;
	const struct ptd_symbol *const *symbols = NULL;
	int option;

	while ((option = getopt(argc, argv, "d:n:s:")) != -1) {
		if (option == 'd')
			options.debug_dir = optarg;
		else if (option == 'n')
			picks.reservoir.n_max = strtoul(optarg, NULL, 0);
		else if (option == 's')
			picks.reservoir.random = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	if (argc - optind != 2 || picks.reservoir.n_max == 0 || picks.reservoir.n_max > PICKS_MAX)
		error(2, 0, "usage: names [-d DEBUGDIR] -n N -s SEED SNAPSHOT OBJECT");
	picks.items = calloc(picks.reservoir.n_max, sizeof(*picks.items));
	if (!picks.items)
		error(1, ENOMEM, "names");

	options.input = argv[optind];
	decoder = decoding_new(&options);
	while ((batch = decoding_next(decoder, options.input))) {
		see_batch(&picks, batch, argv[optind + 1]);
		symbols = batch->symbols;
	}
	for (size_t i = 0; i < picks.n; i++) {
		const struct pick *p = &picks.items[i];

		printf("%#" PRIx64 "\t%s\n", p->address,
		       p->symbol == PTD_NO_SYMBOL ? "??" : symbols[p->symbol]->name);
	}
	ptd_decoder_free(decoder);
	free(picks.items);
	return 0;
}
