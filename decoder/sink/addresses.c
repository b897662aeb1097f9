/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Addresses
 *
 * The address of each executed instruction, in the order of the stream, as a little-endian u64 and
 * nothing else: the shortest form in which two decoders can be compared.
 */

#include <assert.h>
#include <endian.h>

#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"

static_assert(UINT16_MAX * sizeof(uint64_t) <= OUTPUT_SIZE, "a run fits into the buffer");

static void expand_run(uint64_t *restrict to, uint64_t base, const struct ptd_insn *restrict insns,
		       size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = htole64(base + insns[i].offset);
}

static int addresses_expand(const void *state, void *memory, const struct ptd_batch *batch,
			    struct output *output)
{
	for (size_t i = 0; i < batch->n_runs; i++) {
		const struct ptd_run *run = &batch->runs[i];
		const size_t size = run->n * sizeof(uint64_t);
		const int r = output_reserve(output, size);

		if (r < 0)
			return r;
		expand_run((uint64_t *)(void *)(output->buffer + output->n_used), run->base,
			   run->block->insns + run->first, run->n);
		output->n_used += size;
	}
	return 0;
}

const struct sink_ops sink_addresses = {
	.name = "addresses",
	.help = "address of each executed instruction, 8 bytes each, little endian",
	.expand = addresses_expand,
	.no_symbols = true,
};
