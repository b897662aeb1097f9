/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * formats THREADS DIR INPUT…: decodes each INPUT to each format of the library, by a decoder and a
 * writer with that number of threads, into DIR/NAME/FORMAT, where NAME is the last part of INPUT's
 * path. What decoding came to is in DIR/NAME/result.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/sink/sink.h"
#include "tests/lib/kinds.h"
#include <ptd/decode.h>

#define FORMATS_MAX 32

static void check(const char *what, int r)
{
	if (r >= 0)
		return;
	fprintf(stderr, "formats: %s: %s\n", what, strerror(-r));
	exit(1);
}

/* Let the sinks write what the decoder gives out. Return: what decoding came to. */
static int decode(struct ptd_decoder *decoder, struct ptd_threads *threads, struct sink **sinks,
		  size_t n)
{
	const struct ptd_batch *batch;
	const struct ptd_sideband *record;
	struct writer *writer;
	int r;

	while (ptd_decoder_next_sideband(decoder, &record) == 0)
		for (size_t i = 0; i < n; i++)
			check("sideband", sink_take_sideband(sinks[i], record));
	check("writer", writer_new(threads, sinks, n, &writer));
	while ((r = ptd_decoder_next(decoder, &batch)) == 0)
		check("batch", writer_batch(writer, batch));
	check("flush", writer_flush(writer));
	for (size_t i = 0; i < n; i++)
		check("finish", sink_finish(sinks[i], ptd_decoder_stats(decoder)));
	writer_free(writer);
	return r;
}

/* Return: what decoding came to. */
static int write_formats(const char *input, const char *dir, struct ptd_threads *threads)
{
	struct ptd_options options = {
		.size = sizeof(options), .force = true, .input = input, .threads = threads
	};
	/* Each kind takes its own. */
	static const char *const given[] = { "function=main", "binary=libc.so.6", NULL };
	struct sink *sinks[FORMATS_MAX];
	struct ptd_decoder *decoder;
	char path[8192];
	size_t n = 0;
	int r;

	r = ptd_decoder_new(&options, &decoder, NULL);
	if (r < 0)
		return r;
	for (; n < FORMATS_MAX && sink_at(n); n++) {
		const struct sink_ops *ops = sink_at(n);

		snprintf(path, sizeof(path), "%s/%s", dir, ops->name);
		check(path, sink_open(ops, path, ptd_decoder_info(decoder), given, &sinks[n]));
	}
	r = decode(decoder, threads, sinks, n);
	for (size_t i = 0; i < n; i++)
		sink_free(sinks[i]);
	ptd_decoder_free(decoder);
	return r;
}

int main(int argc, char **argv)
{
	struct ptd_threads *threads;
	char dir[4096], path[8192];

	if (argc < 4)
		return 2;
	check(argv[1], ptd_threads_new((size_t)atoi(argv[1]), &threads));
	for (int i = 3; i < argc; i++) {
		const char *slash = strrchr(argv[i], '/');
		FILE *f;

		snprintf(dir, sizeof(dir), "%s/%s", argv[2], slash ? slash + 1 : argv[i]);
		(void)mkdir(dir, 0777);
		snprintf(path, sizeof(path), "%s/result", dir);
		f = fopen(path, "w");
		if (!f)
			check(path, -1);
		fprintf(f, "%d\n", write_formats(argv[i], dir, threads));
		fclose(f);
	}
	ptd_threads_free(threads);
	return 0;
}
