/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/srcline.h"

#include <inttypes.h>
#include <stdio.h>

#include "decoder/sink/output.h"

/* Text with an end that it is cut at. */
struct text {
	char *bytes;
	size_t n;
};

static void put_name(struct text *text, const char *name)
{
	text->n += output_printable(text->bytes + text->n, name, SRCLINE_MAX - text->n);
}

static void put_place(struct text *text, const struct ptd_position *position)
{
	char line[16] = ":?";

	if (position->line > 0)
		(void)snprintf(line, sizeof(line), ":%" PRIu32, position->line);
	put_name(text, position->file ?: "??");
	put_name(text, line);
}

size_t srcline_format(const struct ptd_position *positions, size_t n, enum ptd_show_positions shown,
		      char ret_text[static SRCLINE_MAX])
{
	struct text text = { .bytes = ret_text };

	if (n == 0 || shown == PTD_SHOW_NO_POSITIONS)
		return 0;
	if (shown == PTD_SHOW_LINES) {
		put_place(&text, &positions[0]);
		return text.n;
	}
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			put_name(&text, " (inlined by) ");
		if (positions[i].function) {
			put_name(&text, positions[i].function);
			put_name(&text, " at ");
		}
		put_place(&text, &positions[i]);
	}
	return text.n;
}
