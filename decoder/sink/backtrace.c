/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/backtrace.h"

#include <inttypes.h>
#include <string.h>

#include "decoder/sink/output.h"

#define SHOWN_MAX 100 /* functions in the text; of more, half of them at each end */

/* Return: @name without what the C library puts before its own names. */
static const char *plain_name(const char *name)
{
	if (strncmp(name, "__GI_", 5) == 0)
		name += 5;
	return name + (strncmp(name, "__", 2) == 0 ? 2 : 0);
}

bool backtrace_is_complete(const struct ptd_frame *frames, size_t n)
{
	static const char *const outermost[] = { "_start", "clone", "clone3", "start_thread",
						 "ret_from_fork" };

	for (size_t i = 0; n > 0 && i < ARRAY_LEN(outermost); i++)
		if (strcmp(plain_name(frames[n - 1].function->name), outermost[i]) == 0)
			return true;
	return false;
}

/* What has to be said of a function besides where it is. */
static const char *note_of(const struct ptd_frame *frame)
{
	switch (frame->how) {
	case PTD_CALL_BY_GAP:
		return "open before the last gap, may have returned";
	case PTD_CALL_BY_SIGNAL:
		return "entered by a signal";
	case PTD_CALL_BY_INTERRUPT:
		return "entered by an interrupt";
	case PTD_CALL_BY_TAIL:
		return "entered by a tail call";
	default:
		return frame->ambiguous ? "ambiguous" : NULL;
	}
}

static void put_frame(struct ptd_output *output, const struct ptd_frame *frame, size_t i)
{
	const char *note = note_of(frame);

	if (frame->ip)
		ptd_output_printf(output, "  #%-3zu 0x%016" PRIx64 "  ", i, frame->ip);
	else
		ptd_output_printf(output, "  #%-3zu %-18s  ", i, "?");
	output_name(output, frame->function->name);
	ptd_output_printf(output, " (");
	output_name(output, frame->function->object->name);
	ptd_output_printf(output, ")%s%s\n", note ? " // " : "", note ?: "");
}

void backtrace_put(struct ptd_output *output, const struct ptd_frame *frames, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (n > SHOWN_MAX && i == SHOWN_MAX / 2) {
			ptd_output_printf(output, "       %zu more\n", n - SHOWN_MAX);
			i = n - SHOWN_MAX / 2;
		}
		put_frame(output, &frames[i], i);
	}
	if (!backtrace_is_complete(frames, n))
		ptd_output_printf(output, "       unknown above\n");
}

void backtrace_json(struct json *json, const struct ptd_frame *frames, size_t n)
{
	json_array(json, "frames");
	for (size_t i = 0; i < n; i++) {
		json_object(json, NULL);
		if (frames[i].ip)
			json_address(json, "ip", frames[i].ip);
		else
			json_null(json, "ip");
		json_function(json, frames[i].function);
		json_signed(json, "depth", frames[i].depth);
		json_text(json, "entered_by", ptd_call_how_name(frames[i].how));
		json_bool(json, "ambiguous", frames[i].ambiguous);
		json_number(json, "t", frames[i].t);
		json_close(json);
	}
	json_close(json);
	json_bool(json, "complete", backtrace_is_complete(frames, n));
}
