/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/answer/backtrace.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "decoder/sink/output.h"
#include "decoder/sink/srcline.h"

#define SHOWN_MAX 100 /* functions in the text; of more, half of them at each end */

/* Return: @name without what the C library puts before its own names. */
static const char *plain_name(const char *name)
{
	if (strncmp(name, "__GI_", 5) == 0)
		name += 5;
	return name + (strncmp(name, "__", 2) == 0 ? 2 : 0);
}

bool backtrace_is_complete(const struct backtrace *backtrace)
{
	static const char *const outermost[] = { "_start", "clone", "clone3", "start_thread",
						 "ret_from_fork" };
	const char *name;

	if (backtrace->n_older > 0)
		return backtrace->is_older_complete;
	if (backtrace->n == 0)
		return false;
	name = plain_name(backtrace->frames[backtrace->n - 1].function->name);
	for (size_t i = 0; i < ARRAY_LEN(outermost); i++)
		if (strcmp(name, outermost[i]) == 0)
			return true;
	return false;
}

/*
 * Return: whether frame @i is at its address, and not behind a call there. What a signal or an
 *         interrupt interrupted goes on where it was.
 */
static bool is_at_ip(const struct backtrace *backtrace, size_t i)
{
	const struct ptd_frame *inner = &backtrace->frames[i - (i > 0)];

	return i == 0 || inner->how == PTD_CALL_BY_SIGNAL || inner->how == PTD_CALL_BY_INTERRUPT;
}

/*
 * Find the source positions of frame @i: where it is, or of the call behind which it goes on. What
 * is at the address now must be of the frame's object.
 *
 * Return: how many there are; or -ENOMEM.
 */
static int find_positions(const struct backtrace *backtrace, size_t i,
			  struct ptd_position ret_positions[static PTD_POSITIONS_MAX])
{
	const struct ptd_frame *frame = &backtrace->frames[i];
	struct ptd_place place;
	int r;

	if (!backtrace->decoder || !frame->ip)
		return 0;
	r = ptd_decoder_place(backtrace->decoder, backtrace->space, backtrace->t,
			      frame->ip - !is_at_ip(backtrace, i), &place);
	if (r < 0 || !place.object || place.object != frame->function->object)
		return r;
	return ptd_decoder_positions(backtrace->decoder, place.object, place.address,
				     ret_positions);
}

/* --- the core file ---------------------------------------------------------------------------- */

/* Get the stack of the thread in the core file. Return: 0; -ENOENT if it is not there; -ENOMEM. */
static int get_core_stack(struct ptd_decoder *decoder, uint32_t pid, uint32_t tid,
			  struct backtrace *ret_stack)
{
	const struct ptd_core_thread *threads = NULL;
	struct backtrace stack = {};
	size_t n = 0, i = 0;
	int r;

	if (decoder)
		threads = ptd_decoder_core(decoder, &n);
	while (i < n && (threads[i].pid != pid || threads[i].tid != tid))
		i++;
	if (i == n)
		return -ENOENT;
	r = ptd_decoder_core_stack(decoder, i, &stack.older, &stack.n_older,
				   &stack.is_older_complete);
	if (r == 0)
		*ret_stack = stack;
	return r;
}

/* Return: whether the innermost function of both is the same; or -ENOMEM. */
static int is_same_function(const struct backtrace *backtrace, const struct ptd_core_frame *core)
{
	const struct ptd_function *function = backtrace->frames[0].function;
	struct ptd_place place;
	const int r =
	    ptd_decoder_place(backtrace->decoder, backtrace->space, backtrace->t, core->ip, &place);

	if (r < 0)
		return r;
	return place.object == function->object && place.symbol &&
	       place.symbol->address == function->address;
}

int backtrace_add_core(struct backtrace *backtrace, uint32_t pid, uint32_t tid)
{
	struct backtrace core = {};
	size_t n_same =
	    0; /* of the core file's functions: they are known, or inside of known ones */
	int r;

	r = get_core_stack(backtrace->decoder, pid, tid, &core);
	if (r == -ENOENT)
		return 0;
	if (r == 0 && backtrace->n > 0)
		r = is_same_function(backtrace, &core.older[0]);
	if (r < 0)
		return r;
	n_same = (size_t)r;
	/* The core file may have more: what leads back from a signal's handler. */
	for (size_t i = 1; i < backtrace->n; i++) {
		const struct ptd_frame *frame = &backtrace->frames[i];
		size_t k = n_same > 0 ? n_same : 1;

		if (!frame->ip)
			continue;
		while (k < core.n_older && core.older[k].ip != frame->ip)
			k++;
		if (k < core.n_older) {
			n_same = k + 1;
			continue;
		}
		if (frame->how != PTD_CALL_BY_GAP)
			return BACKTRACE_DIFFERS;
		backtrace->n = i;
	}
	if (backtrace->n > 0 && n_same == 0)
		return BACKTRACE_DIFFERS;
	backtrace->older = core.older + n_same;
	backtrace->n_older = core.n_older - n_same;
	backtrace->is_older_complete = core.is_older_complete;
	return 0;
}

/* --- text and JSON ---------------------------------------------------------------------------- */

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

static void put_line(struct output *output, const struct ptd_position *position)
{
	char text[SRCLINE_MAX];

	output_printf(output, " at ");
	(void)output_write(output, text, srcline_format(position, 1, SINK_LINES, text));
}

/* Write the functions that are inlined where the frame is. */
static void put_inlined(struct output *output, const struct ptd_position *positions, int n)
{
	for (int k = 0; k + 1 < n; k++) {
		output_printf(output, "       %-18s  ", "inlined");
		output_name(output, positions[k].function ?: "?");
		put_line(output, &positions[k]);
		output_printf(output, "\n");
	}
}

static int put_frame(struct output *output, const struct backtrace *backtrace, size_t i)
{
	const struct ptd_frame *frame = &backtrace->frames[i];
	struct ptd_position positions[PTD_POSITIONS_MAX];
	const int n = find_positions(backtrace, i, positions);
	const char *note = note_of(frame);

	put_inlined(output, positions, n);
	if (frame->ip)
		output_printf(output, "  #%-3zu 0x%016" PRIx64 "  ", i, frame->ip);
	else
		output_printf(output, "  #%-3zu %-18s  ", i, "?");
	output_name(output, frame->function->name);
	output_object(output, frame->function->object->name);
	if (n > 0)
		put_line(output, &positions[n - 1]);
	output_printf(output, "%s%s\n", note ? " // " : "", note ?: "");
	return n < 0 ? n : 0;
}

/* Find what is at a frame of the core file. Return: how many positions there are; or -ENOMEM. */
static int find_older(const struct backtrace *backtrace, const struct ptd_core_frame *frame,
		      struct ptd_place *ret_place,
		      struct ptd_position ret_positions[static PTD_POSITIONS_MAX])
{
	const int r = ptd_decoder_place(backtrace->decoder, backtrace->space, backtrace->t,
					frame->ip - frame->is_call, ret_place);

	if (r < 0 || !ret_place->object)
		return r;
	return ptd_decoder_positions(backtrace->decoder, ret_place->object, ret_place->address,
				     ret_positions);
}

static int put_older(struct output *output, const struct backtrace *backtrace, size_t i)
{
	const struct ptd_core_frame *frame = &backtrace->older[i - backtrace->n];
	struct ptd_position positions[PTD_POSITIONS_MAX];
	struct ptd_place place = {};
	const int n = find_older(backtrace, frame, &place, positions);

	put_inlined(output, positions, n);
	output_printf(output, "  #%-3zu 0x%016" PRIx64 "  ", i, frame->ip);
	output_name(output, place.symbol ? place.symbol->name : "[unknown]");
	if (place.object)
		output_object(output, place.object->name);
	if (n > 0)
		put_line(output, &positions[n - 1]);
	output_printf(output, " // from the core file\n");
	return n < 0 ? n : 0;
}

int backtrace_put(struct output *output, const struct backtrace *backtrace)
{
	const size_t n = backtrace->n + backtrace->n_older;
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++) {
		if (n > SHOWN_MAX && i == SHOWN_MAX / 2) {
			output_printf(output, "       %zu more\n", n - SHOWN_MAX);
			i = n - SHOWN_MAX / 2;
		}
		r = i < backtrace->n ? put_frame(output, backtrace, i)
				     : put_older(output, backtrace, i);
	}
	if (!backtrace_is_complete(backtrace))
		output_printf(output, "       unknown above\n");
	return r;
}

/* Write where a frame is in the source code, the innermost function first. */
static void put_json_source(struct json *json, const struct ptd_position *positions, int n)
{
	if (n <= 0)
		return;
	json_array(json, "source");
	for (int k = 0; k < n; k++) {
		json_object(json, NULL);
		json_text(json, "function", positions[k].function);
		json_text(json, "file", positions[k].file);
		json_number(json, "line", positions[k].line);
		json_close(json);
	}
	json_close(json);
}

static int put_json_frame(struct json *json, const struct backtrace *backtrace, size_t i)
{
	const struct ptd_frame *frame = &backtrace->frames[i];
	struct ptd_position positions[PTD_POSITIONS_MAX];
	const int n = find_positions(backtrace, i, positions);

	json_object(json, NULL);
	if (frame->ip)
		json_address(json, "ip", frame->ip);
	else
		json_null(json, "ip");
	json_function(json, frame->function);
	put_json_source(json, positions, n);
	json_signed(json, "depth", frame->depth);
	json_text(json, "entered_by", ptd_call_how_name(frame->how));
	json_bool(json, "ambiguous", frame->ambiguous);
	json_number(json, "t", frame->t);
	json_close(json);
	return n < 0 ? n : 0;
}

static int put_json_older(struct json *json, const struct backtrace *backtrace, size_t i)
{
	const struct ptd_core_frame *frame = &backtrace->older[i];
	struct ptd_position positions[PTD_POSITIONS_MAX];
	struct ptd_place place = {};
	const int n = find_older(backtrace, frame, &place, positions);

	json_object(json, NULL);
	json_address(json, "ip", frame->ip);
	json_text(json, "function", place.symbol ? place.symbol->name : NULL);
	json_text(json, "object", place.object ? place.object->name : NULL);
	if (place.symbol)
		json_address(json, "address", place.symbol->address);
	put_json_source(json, positions, n);
	json_text(json, "entered_by", "core");
	json_close(json);
	return n < 0 ? n : 0;
}

int backtrace_json(struct json *json, const struct backtrace *backtrace)
{
	int r = 0;

	json_array(json, "frames");
	for (size_t i = 0; i < backtrace->n && r == 0; i++)
		r = put_json_frame(json, backtrace, i);
	for (size_t i = 0; i < backtrace->n_older && r == 0; i++)
		r = put_json_older(json, backtrace, i);
	json_close(json);
	json_bool(json, "complete", backtrace_is_complete(backtrace));
	return r;
}
