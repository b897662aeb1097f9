/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A foreign flight data recorder file, up to the text "map:", behind which stands the ELF file that
 * names its functions. It is read as an input; its calls must nest.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "tests/lib/callcheck.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char log_path[] = "/tmp/fuzz-fdrlog-XXXXXX", map_path[] = "/tmp/fuzz-fdrlog-XXXXXX";

static void remove_files(void)
{
	(void)unlink(log_path);
	(void)unlink(map_path);
}

static void make_file(char *path)
{
	const int fd = mkstemp(path);

	if (fd < 0 || close(fd) < 0)
		abort();
}

static void put(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "we");

	if (!f || (size > 0 && fwrite(bytes, 1, size, f) != size) || fclose(f) != 0)
		abort();
}

static void take_calls(struct ptd_calls *calls, struct callcheck *check)
{
	const struct ptd_call_batch *batch;

	while (ptd_calls_next(calls, &batch) == 0)
		if (callcheck_calls(check, batch) < 0)
			abort();
}

static void follow(struct ptd_decoder *d)
{
	struct callcheck check = { .faults = stderr };
	const struct ptd_batch *batch;
	struct ptd_calls *calls;
	int r;

	if (ptd_calls_new(ptd_decoder_info(d), &calls) < 0)
		abort();
	while ((r = ptd_decoder_next(d, &batch)) == 0) {
		for (size_t i = 0; i < batch->n_stated; i++)
			if (batch->stated[i].symbol == PTD_NO_SYMBOL ||
			    batch->stated[i].symbol >= batch->n_symbols)
				abort();
		for (size_t i = 0; i < batch->n_marks; i++)
			if (batch->marks[i].run > batch->n_stated)
				abort();
		if (ptd_calls_batch(calls, batch) < 0)
			abort();
		take_calls(calls, &check);
	}
	/* What was not found damaged at first cannot be later. */
	if (r < 0 || ptd_calls_finish(calls) < 0)
		abort();
	take_calls(calls, &check);
	callcheck_end(&check);
	if (check.n_faults > 0)
		abort();
	callcheck_deinit(&check);
	ptd_calls_free(calls);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char behind[] = "map:";
	struct ptd_options options = { .size = sizeof(options), .input = log_path };
	static bool has_files;
	const uint8_t *map;
	struct ptd_decoder *d;
	char *message = NULL;

	if (!has_files) {
		has_files = true;
		make_file(log_path);
		make_file(map_path);
		if (atexit(remove_files) != 0)
			abort();
	}
	map = memmem(data, size, behind, strlen(behind));
	put(log_path, data, map ? (size_t)(map - data) : size);
	if (map) {
		map += strlen(behind);
		put(map_path, map, (size_t)(data + size - map));
		options.instr_map = map_path;
	}
	if (ptd_decoder_new(&options, &d, &message) < 0) {
		if (!message)
			abort();
		free(message);
		return 0;
	}
	if (ptd_decoder_info(d)->states_calls)
		follow(d);
	ptd_decoder_free(d);
	return 0;
}
