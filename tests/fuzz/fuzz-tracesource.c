/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A foreign drmemtrace directory. The first byte of the input says how its only file is compressed;
 * the rest is the file, up to the text "symbols:", behind which stands aux/symbols.tsv, up to the
 * text "mappings:", behind which stands aux/mappings.tsv. It is read as an input, and checked.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "ptd/decode.h"
#include "tests/judge/memtrace.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A zip file can hold a thousand times its size. */
#define INSNS_MAX 1000000

static char dir[] = "/tmp/fuzz-tracesource-XXXXXX";
static char file_path[128], symbols_path[128], mappings_path[128];

static void remove_dir(void)
{
	char path[128];

	(void)unlink(file_path);
	(void)unlink(symbols_path);
	(void)unlink(mappings_path);
	(void)snprintf(path, sizeof(path), "%s/trace", dir);
	(void)rmdir(path);
	(void)snprintf(path, sizeof(path), "%s/aux", dir);
	(void)rmdir(path);
	(void)rmdir(dir);
}

static void make_dir(void)
{
	char path[128];

	if (!mkdtemp(dir) || atexit(remove_dir) != 0)
		abort();
	(void)snprintf(path, sizeof(path), "%s/trace", dir);
	if (mkdir(path, 0700) < 0)
		abort();
	(void)snprintf(path, sizeof(path), "%s/aux", dir);
	if (mkdir(path, 0700) < 0)
		abort();
	(void)snprintf(symbols_path, sizeof(symbols_path), "%s/aux/symbols.tsv", dir);
	(void)snprintf(mappings_path, sizeof(mappings_path), "%s/aux/mappings.tsv", dir);
}

static void put(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "we");

	if (!f || fwrite(bytes, 1, size, f) != size || fclose(f) != 0)
		abort();
}

/* Every instruction is one of a block, with bytes. */
static size_t count(const struct ptd_batch *batch)
{
	size_t n = 0;

	for (size_t i = 0; i < batch->n_runs; i++) {
		const struct ptd_run *run = &batch->runs[i];

		if (run->n == 0 || (size_t)run->first + run->n > run->block->n_insns)
			abort();
		for (size_t k = run->first; k < (size_t)run->first + run->n; k++) {
			const struct ptd_insn *insn = &run->block->insns[k];

			if (insn->offset + insn->size > run->block->size ||
			    insn->symbol >= batch->n_symbols)
				abort();
		}
		n += run->n;
	}
	for (size_t i = 0; i < batch->n_marks; i++)
		if (batch->marks[i].run > batch->n_runs)
			abort();
	return n;
}

static void read_back(void)
{
	const struct ptd_options options = { .size = sizeof(options), .input = dir };
	const struct ptd_batch *batch;
	struct ptd_decoder *d;
	char *message = NULL;
	size_t n = 0;

	if (ptd_decoder_new(&options, &d, &message) < 0) {
		if (!message)
			abort();
		free(message);
		return;
	}
	while (n < INSNS_MAX && ptd_decoder_next(d, &batch) == 0)
		n += count(batch) + 1;
	ptd_decoder_free(d);
}

static void check(void)
{
	static FILE *null;
	struct memtrace trace = {};
	char *path = NULL;

	null = null ?: fopen("/dev/null", "we");
	if (!null)
		abort();
	trace.faults = null;
	if (memtrace_find(&trace, dir, &path) < 0 || memtrace_check(&trace, &path) < 0)
		abort();
	free(path);
	memtrace_deinit(&trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const suffixes[] = { "", ".gz", ".zip", ".lz4" };
	static const char behind[] = "symbols:", behind_symbols[] = "mappings:";
	const uint8_t *symbols, *mappings;
	size_t n;

	if (size == 0)
		return 0;
	if (symbols_path[0] == '\0')
		make_dir();
	symbols = memmem(data, size, behind, strlen(behind));
	n = symbols ? (size_t)(symbols - data) : size;
	if (n < 1)
		return 0;
	(void)snprintf(file_path, sizeof(file_path), "%s/trace/drmemtrace.x.1.0000.trace%s", dir,
		       suffixes[data[0] % ARRAY_LEN(suffixes)]);
	put(file_path, data + 1, n - 1);
	if (symbols) {
		symbols += strlen(behind);
		size -= n + strlen(behind);
		mappings = memmem(symbols, size, behind_symbols, strlen(behind_symbols));
		n = mappings ? (size_t)(mappings - symbols) : size;
		put(symbols_path, symbols, n);
		if (mappings)
			put(mappings_path, mappings + strlen(behind_symbols),
			    size - n - strlen(behind_symbols));
	}
	read_back();
	check();
	(void)unlink(file_path);
	(void)unlink(symbols_path);
	(void)unlink(mappings_path);
	return 0;
}
