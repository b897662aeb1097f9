/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Addresses
 *
 * The address of each executed instruction, in the order of the stream, as a little-endian u64 and
 * nothing else: the shortest form in which two decoders can be compared.
 */

#include <endian.h>
#include <errno.h>

#include "decoder/sink/output.h"
#include "decoder/sink/sinks.h"

struct addresses {
	struct ptd_sink sink;
	struct output output;
};

static struct ptd_sink *addresses_free(struct ptd_sink *sink)
{
	struct addresses *a = (struct addresses *)sink;

	if (!a)
		return NULL;
	output_deinit(&a->output);
	free(a);
	return NULL;
}

static int addresses_open(const struct ptd_sink_ops *ops, const struct ptd_sink_target *target,
			  const struct ptd_info *info, struct ptd_sink **ret_sink)
{
	struct addresses *a = calloc(1, sizeof(*a));
	int r;

	(void)info;
	if (!a)
		return -ENOMEM;
	r = output_init(&a->output, target);
	if (r < 0) {
		free(a);
		return r;
	}
	a->sink.ops = ops;
	*ret_sink = &a->sink;
	return 0;
}

static void expand(uint64_t *restrict to, uint64_t base, const struct ptd_insn *restrict insns,
		   size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = htole64(base + insns[i].offset);
}

static int addresses_batch(struct ptd_sink *sink, const struct ptd_batch *batch)
{
	struct addresses *a = (struct addresses *)sink;

	for (size_t i = 0; i < batch->n_runs; i++) {
		const struct ptd_run *run = &batch->runs[i];
		/* A run is at most 65535 instructions: half of the buffer. */
		const size_t size = run->n * sizeof(uint64_t);
		const int r = output_reserve(&a->output, size);

		if (r < 0)
			return r;
		expand((uint64_t *)(void *)(a->output.buffer + a->output.n_used), run->base,
		       run->block->insns + run->first, run->n);
		a->output.n_used += size;
	}
	return 0;
}

static int addresses_finish(struct ptd_sink *sink, const struct ptd_stats *stats)
{
	(void)stats;
	return output_finish(&((struct addresses *)sink)->output);
}

const struct ptd_sink_ops sink_addresses = {
	.name = "addresses",
	.help = "address of each executed instruction, 8 bytes each, little endian",
	.open = addresses_open,
	.batch = addresses_batch,
	.finish = addresses_finish,
	.free = addresses_free,
};
