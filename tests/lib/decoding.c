/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/decoding.h"

#include <error.h>
#include <stddef.h>

#include "decoder/pipeline.h"

/* More than most machines have CPUs to spare, so that they wait for each other. */
#define N_THREADS 3

struct ptd_decoder *decoding_new_cut(const struct ptd_options *given, uint64_t cut_size)
{
	static struct ptd_threads *threads; /* of all decoders: they end with the tool */
	const struct decoder_config config = { .cut_size = cut_size };
	struct ptd_options options = *given;
	struct ptd_decoder *decoder;
	char *message = NULL;
	int r;

	r = threads ? 0 : ptd_threads_new(N_THREADS, &threads);
	if (r < 0)
		error(2, -r, "cannot start threads");
	options.threads = threads;
	r = decoder_new(&options, &config, &decoder, &message);
	if (r < 0)
		error(2, message ? 0 : -r, "%s", message ? message : options.input);
	return decoder;
}

struct ptd_decoder *decoding_new(const struct ptd_options *options)
{
	return decoding_new_cut(options, 0);
}

const struct ptd_batch *decoding_next(struct ptd_decoder *decoder, const char *input)
{
	const struct ptd_batch *batch;
	int r;

	r = ptd_decoder_next(decoder, &batch);
	if (r < 0)
		error(2, -r, "%s", input);
	return r == 0 ? batch : NULL;
}
