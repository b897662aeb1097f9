/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A foreign stream of ovni, up to the text "meta:", behind which stands its metadata, and perhaps
 * behind the text "clock:" what must be added to the clocks of hosts. It is read as
 * an input, as a stream of version 1 and of version 3; its calls must nest. Then it is laid over a
 * stream of runs: marks must be in their order, and name symbols.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "decoder/calllog/calllog.h"
#include "decoder/calllog/ovnilog.h"
#include "decoder/image/objects.h"
#include "decoder/overlay.h"
#include "decoder/symbol/resolver.h"
#include "tests/lib/loggedcheck.h"
#include "tests/lib/tempdir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_marks(const struct ptd_batch *batch, size_t n_symbols)
{
	for (size_t i = 0; i < batch->n_marks; i++) {
		const struct ptd_mark *mark = &batch->marks[i];

		if (mark->run >= batch->n_runs || mark->t > batch->runs[mark->run].t ||
		    (mark->run > 0 && mark->t <= batch->runs[mark->run - 1].t) ||
		    (i > 0 && mark->t < mark[-1].t) || mark->value == PTD_NO_SYMBOL ||
		    mark->value >= n_symbols)
			abort();
	}
}

/* The trace was opened: lay it over a thread's runs, once and again. */
static void lay(struct overlay *overlay, const struct calllane *lane, size_t n_symbols)
{
	const struct ptd_slice slice = { .pid = lane->pid, .tid = lane->tid };
	struct ptd_run runs[66] = {};
	char *message = NULL;

	for (size_t i = 0; i < ARRAY_LEN(runs); i++)
		runs[i].t = i == 0 ? 0 : i > 64 ? UINT64_MAX : UINT64_C(1) << (i - 1);
	for (int again = 0; again < 2; again++) {
		struct ptd_batch batch = { .slice = &slice,
					   .runs = runs,
					   .n_runs = ARRAY_LEN(runs) };

		if (overlay_start(overlay, &message) < 0 ||
		    overlay_batch(overlay, &batch, &message) < 0)
			abort();
		check_marks(&batch, n_symbols);
	}
}

static void lay_over(const char *dir)
{
	struct resolver *resolver = NULL;
	struct objects *objects = NULL;
	struct overlay *overlay = NULL;
	struct calllog *log;
	char *message = NULL;
	size_t n_symbols;

	if (objects_new(NULL, &objects) < 0 || resolver_new(&resolver) < 0)
		abort();
	if (ovnilog_open(dir, -5, objects, resolver, &log, &message) == 0) {
		const struct calllane *lane = log->lanes.items[0];

		if (overlay_new(log, &overlay) < 0)
			abort();
		(void)resolver_symbols(resolver, &n_symbols);
		lay(overlay, lane, n_symbols);
		overlay_free(overlay);
	} else if (!message) {
		abort();
	}
	free(message);
	resolver_free(resolver);
	objects_free(objects);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[][2] = { { "proc.9/thread.7", "proc.9/metadata.json" },
						{ "stream.obs", "stream.json" } };
	static const char divider[] = "meta:";
	const uint8_t *found = memmem(data, size, divider, strlen(divider));
	const size_t n = found ? (size_t)(found - data) : size;
	const uint8_t *meta = found ? found + strlen(divider) : data;
	const uint8_t *clock =
	    found ? memmem(meta, (size_t)(data + size - meta), "clock:", 6) : NULL;
	const uint8_t *end = clock ?: data + size;
	char dir[TEMPDIR_SIZE];

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		tempdir_make("fuzz-ovni", dir);
		tempdir_put(dir, names[i][0], data, n);
		tempdir_put(dir, names[i][1], meta, found ? (size_t)(end - meta) : 0);
		if (clock)
			tempdir_put(dir, "clock-offsets.txt", clock + 6,
				    (size_t)(data + size - clock) - 6);
		loggedcheck(dir, NULL);
		lay_over(dir);
		tempdir_remove(dir);
	}
	return 0;
}
