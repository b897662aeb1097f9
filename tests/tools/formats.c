/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * formats THREADS INPUT DIR: decodes INPUT to each format of the library, by a writer with that
 * number of threads, into DIR/FORMAT. It uses nothing but what is installed, so that it can be
 * linked with a library that looks for races.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ptd/decode.h>
#include <ptd/sink.h>
#include <ptd/threads.h>

#define FORMATS_MAX 16

static void check(const char *what, int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "formats: %s: %s\n", what, strerror(-r));
	exit(1);
}

int main(int argc, char **argv)
{
	static const char *const function[] = { "function=main", NULL };
	struct ptd_options options = { .size = sizeof(options), .force = true, .engine = "flow" };
	struct ptd_sink *sinks[FORMATS_MAX];
	const struct ptd_batch *batch;
	const struct ptd_sideband *record;
	struct ptd_decoder *decoder;
	struct ptd_threads *threads;
	struct ptd_writer *writer;
	char path[4096];
	size_t n = 0;
	int r;

	if (argc != 4)
		return 2;
	check(argv[1], ptd_threads_new((size_t)atoi(argv[1]), &threads));
	options.input = argv[2];
	check(argv[2], ptd_decoder_new(&options, &decoder, NULL));
	for (; n < FORMATS_MAX && ptd_sink_at(n); n++) {
		const struct ptd_sink_ops *ops = ptd_sink_at(n);

		snprintf(path, sizeof(path), "%s/%s", argv[3], ops->name);
		check(path, ptd_sink_open(ops, path, ptd_decoder_info(decoder),
					  ptd_sink_takes_option(ops, function[0]) ? function : NULL,
					  &sinks[n]));
	}
	while (ptd_decoder_next_sideband(decoder, &record) == 0)
		for (size_t i = 0; i < n; i++)
			check("sideband", ptd_sink_sideband(sinks[i], record));
	check("writer", ptd_writer_new(threads, sinks, n, &writer));
	while ((r = ptd_decoder_next(decoder, &batch)) == 0)
		check("batch", ptd_writer_batch(writer, batch));
	check("decode", r);
	check("flush", ptd_writer_flush(writer));
	for (size_t i = 0; i < n; i++)
		check("finish", ptd_sink_finish(sinks[i], ptd_decoder_stats(decoder)));
	ptd_writer_free(writer);
	for (size_t i = 0; i < n; i++)
		ptd_sink_free(sinks[i]);
	ptd_decoder_free(decoder);
	ptd_threads_free(threads);
	return 0;
}
