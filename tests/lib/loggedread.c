/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/loggedread.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ptd/calls.h"

static void print_mark(FILE *f, const struct ptd_batch *batch, const struct ptd_mark *mark)
{
	if (mark->kind == PTD_MARK_POINT) {
		fprintf(f, "*%s@%" PRIu64 " ", batch->symbols[mark->value]->name, mark->t);
		return;
	}
	assert_int_equal(mark->kind, PTD_MARK_GAP);
	fprintf(f, "[%s, %" PRIu64 "] ",
		mark->reason == PTD_GAP_CUT ? "data cut off" : "bad packet", mark->n_bytes);
}

static void print_call(FILE *f, const struct ptd_batch *batch, const struct ptd_logged_call *call)
{
	assert_true(call->kind < _PTD_LOGGED_KINDS && call->symbol < batch->n_symbols);
	fprintf(f, "%c%s@%" PRIu64 " ", "><~^*"[call->kind], batch -> symbols[call->symbol] -> name,
		call -> t);
}

static void print_id(FILE *f, uint32_t id, char end)
{
	if (id == PTD_ID_UNKNOWN)
		fprintf(f, "?%c", end);
	else
		fprintf(f, "%" PRIu32 "%c", id, end);
}

static void print_logged(FILE *f, const struct ptd_logged *logged, uint64_t *slice)
{
	const struct ptd_batch *batch = &logged->batch;
	size_t m = 0;

	assert_int_equal(batch->n_runs, 0);
	if (batch->slice->id != *slice) {
		const bool has_cpu = logged->n_calls > 0;

		print_id(f, has_cpu ? batch->slice->cpu : PTD_ID_UNKNOWN, ' ');
		print_id(f, batch->slice->pid, '/');
		print_id(f, batch->slice->tid, ':');
		fprintf(f, " ");
	}
	*slice = batch->slice->id;
	for (size_t i = 0; i <= logged->n_calls; i++) {
		while (m < batch->n_marks && batch->marks[m].run == i)
			print_mark(f, batch, &batch->marks[m++]);
		if (i < logged->n_calls)
			print_call(f, batch, &logged->calls[i]);
	}
	assert_int_equal(m, batch->n_marks);
}

const char *loggedread_without_path(const char *message, const char *path)
{
	return strncmp(message, path, strlen(path)) == 0 ? message + strlen(path) : message;
}

char *loggedread(const char *path, const struct ptd_part *part)
{
	struct ptd_options options = { .size = sizeof(options), .input = path, .part = *part };
	const struct ptd_info *info;
	const struct ptd_logged *logged;
	struct ptd_decoder *d = NULL;
	uint64_t slice = UINT64_MAX;
	char *text = NULL, *message = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int r;

	assert_non_null(f);
	r = ptd_decoder_new(&options, &d, &message);
	if (r < 0)
		fprintf(f, "!%s", message ? loggedread_without_path(message, path) : "no message");
	info = r < 0 ? NULL : ptd_decoder_info(d);
	if (info && info->clock == PTD_CLOCK_TSC)
		fprintf(f, "ticks; ");
	while (r == 0 && (r = ptd_decoder_next_logged(d, &logged)) == 0)
		print_logged(f, logged, &slice);
	for (size_t i = 0; info && i < info->n_complaints; i++)
		fprintf(f, ";%s", loggedread_without_path(info->complaints[i], path) + 1);
	if (d)
		(void)ptd_decoder_stats(d);
	ptd_decoder_free(d);
	free(message);
	assert_int_equal(fclose(f), 0);
	return text;
}
