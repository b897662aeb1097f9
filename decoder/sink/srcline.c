/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/srcline.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/sink/output.h"
#include "ptd/decode.h"

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

size_t srcline_format(const struct ptd_position *positions, size_t n, enum sink_positions shown,
		      char ret_text[static SRCLINE_MAX])
{
	struct text text = { .bytes = ret_text };

	if (n == 0 || shown == SINK_NO_POSITIONS)
		return 0;
	if (shown == SINK_LINES) {
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

/* Return: whether the position is in the function that was inlined there. */
static bool is_inside(const struct ptd_position *position, const struct ptd_function *function)
{
	const char *name = position->function ?: "";
	const size_t size = strlen(name);

	return strncmp(function->name, name, size) == 0 &&
	       strcmp(function->name + size, PTD_INLINED_MARK) == 0;
}

int srcline_of_function(struct ptd_decoder *decoder, const struct ptd_function *function,
			struct ptd_position *ret_position)
{
	struct ptd_position positions[PTD_POSITIONS_MAX];
	int n = 0, i = 0;

	if (decoder)
		n = ptd_decoder_positions(decoder, function->object, function->address, positions);
	if (n <= 0)
		return n;
	/* The last one is in the function itself, whatever is inlined at its beginning. */
	if (!function->is_inlined)
		i = n - 1;
	while (i < n - 1 && !is_inside(&positions[i], function))
		i++;
	*ret_position = positions[i];
	return 1;
}
