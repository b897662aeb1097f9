/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/answer/calltree.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "decoder/sink/output.h"
#include "decoder/sink/srcline.h"

#define INSNS_WIDTH  12
#define DEPTH_WIDTH  5
#define INDENTS_MAX  48 /* levels that are indented; deeper ones stand below each other */
#define INDENT       2
#define NOTES_SIZE   512
#define BLANKS_USUAL 32
#define LABEL_USUAL  48 /* bytes that can be copied from any part of a label */
#define DEPTH_USUAL  100

/* More than a line without the label. */
#define LINE_SIZE (8 * COLUMN_MAX + INDENTS_MAX * INDENT + NOTES_SIZE + 64)

void calltree_deinit(struct calltree *tree)
{
	open_stacks_deinit(&tree->stacks);
	vec_deinit(&tree->labels);
	arena_deinit(&tree->texts);
}

/* --- labels ----------------------------------------------------------------------------------- */

static int make_label(struct calltree *tree, const struct ptd_function *function,
		      struct calltree_label *ret_label)
{
	const char *path = function->object->name;
	char text[2 * OUTPUT_NAME_MAX + 4];
	struct calltree_label label = {};

	label.size = label.name_size = output_printable(text, function->name, OUTPUT_NAME_MAX);
	text[label.size++] = ' ';
	text[label.size++] = '[';
	/* "[anon]" and its like have their brackets. */
	if (path[0] == '[')
		label.size--;
	label.size += output_printable(text + label.size, basename(path), OUTPUT_NAME_MAX);
	if (path[0] != '[')
		text[label.size++] = ']';
	label.text = arena_alloc(&tree->texts, label.size + LABEL_USUAL);
	if (!label.text)
		return -ENOMEM;
	memcpy(label.text, text, label.size);
	*ret_label = label;
	return 0;
}

/* Find where the function begins in the source code. Return: 0 or -ENOMEM. */
static int find_place(struct calltree *tree, const struct ptd_function *function,
		      struct calltree_label *label)
{
	char text[SRCLINE_MAX + 1];
	struct ptd_position position;
	const int r = srcline_of_function(tree->decoder, function, &position);

	if (r <= 0)
		return r;
	text[srcline_format(&position, 1, SINK_LINES, text)] = '\0';
	label->place = arena_strdup(&tree->texts, text);
	label->file = position.file;
	label->line = position.line;
	return label->place ? 0 : -ENOMEM;
}

/* Make the label of a function that is entered. Return: 0 or -ENOMEM. */
static int new_label(struct calltree *tree, const struct ptd_function *function)
{
	struct calltree_label *label = vec_at(&tree->labels, function->id, {});
	const int r = label ? make_label(tree, function, label) : -ENOMEM;

	return r < 0 ? r : find_place(tree, function, label);
}

/* See to it that a function that is entered has a label. Return: 0 or -ENOMEM. */
static inline int add_label(struct calltree *tree, const struct ptd_function *function)
{
	const uint32_t id = function->id;

	return id < tree->labels.n && tree->labels.items[id].text ? 0 : new_label(tree, function);
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Comments of a line, separated by commas. */
struct notes {
	char text[NOTES_SIZE];
	size_t n;
};

static void add_note(struct notes *notes, const char *before, const char *text)
{
	const size_t before_size = strlen(before), size = strlen(text);

	if (notes->n + 2 + before_size + size > sizeof(notes->text))
		return;
	if (notes->n > 0) {
		memcpy(notes->text + notes->n, ", ", 2);
		notes->n += 2;
	}
	memcpy(notes->text + notes->n, before, before_size);
	memcpy(notes->text + notes->n + before_size, text, size);
	notes->n += before_size + size;
}

static void note_entered(struct notes *notes, const struct calltree_label *label, uint8_t how)
{
	if (label->place)
		add_note(notes, "", label->place);
	/* Of what was inlined, the name says so. */
	if (how != PTD_CALL_BY_CALL && how != PTD_CALL_BY_INLINING)
		add_note(notes, "entered by ", ptd_call_how_name(how));
}

/* What a signal, an interrupt or a system call entered is left by its end as a rule. */
static void note_left(struct notes *notes, uint8_t entered, uint8_t how)
{
	const bool is_usual =
	    how == PTD_CALL_BY_RETURN ||
	    (how == entered && (how == PTD_CALL_BY_SIGNAL || how == PTD_CALL_BY_INTERRUPT ||
				how == PTD_CALL_BY_SYSCALL));

	if (!is_usual)
		add_note(notes, "left by ", ptd_call_how_name(how));
}

static void note_left_out(struct notes *notes, uint64_t n)
{
	char number[COLUMN_MAX];

	if (n == 0)
		return;
	*column_number(number, n, 0, ' ') = '\0';
	add_note(notes, number, n == 1 ? " call left out" : " calls left out");
}

/* Most copies are short, and take less time if their size is constant: what is too much is written
 * over. */

static char *put_blanks(char *to, size_t n)
{
	memset(to, ' ', BLANKS_USUAL);
	for (size_t i = BLANKS_USUAL; i < n; i += BLANKS_USUAL)
		memset(to + i, ' ', BLANKS_USUAL);
	return to + n;
}

static char *put_label(char *to, const char *text, size_t size)
{
	memcpy(to, text, LABEL_USUAL);
	if (size > LABEL_USUAL)
		memcpy(to, text, size);
	return to + size;
}

/* Write the depth and the blanks behind it, unless the depth is below 0 or unusual. */
static char *put_unusual_depth(char *to, int32_t depth, size_t n_blanks)
{
	char number[COLUMN_MAX], *end;

	if (depth >= 0)
		return put_blanks(column_number(to, (uint32_t)depth, DEPTH_WIDTH, ' '), n_blanks);
	number[0] = '-';
	end = column_number(number + 1, 0u - (uint32_t)depth, 0, ' ');
	if (end - number < DEPTH_WIDTH)
		to = put_blanks(to, DEPTH_WIDTH - (size_t)(end - number));
	return put_blanks(mempcpy(to, number, (size_t)(end - number)), n_blanks);
}

/* Write the depth, and the blanks that indent what is open @level levels deep. */
static inline char *put_depth(char *to, int32_t depth, uint32_t level)
{
	const size_t n_blanks = 2 + INDENT * (level < INDENTS_MAX ? level : INDENTS_MAX);

	if ((uint32_t)depth >= DEPTH_USUAL)
		return put_unusual_depth(to, depth, n_blanks);
	(void)put_blanks(to, DEPTH_WIDTH + n_blanks);
	memcpy(to + DEPTH_WIDTH - 2, column_pairs + 2 * depth, 2);
	if (depth < 10)
		to[DEPTH_WIDTH - 2] = ' ';
	return to + DEPTH_WIDTH + n_blanks;
}

/* Write all up to the label: @leave is NULL if the line has no duration. */
static inline char *put_head(struct calltree *tree, char *to, uint64_t t, int32_t depth,
			     int32_t depth_min, const struct ptd_call *leave)
{
	to = column_times_put(&tree->times, to, t);
	*to++ = ' ';
	if (leave) {
		to = column_duration(to, tree->times.clock, leave->t_total);
		*to++ = ' ';
		to = column_number(to, leave->n_insns_total, INSNS_WIDTH, ' ');
	} else {
		to = put_blanks(to, COLUMN_DURATION + 1 + INSNS_WIDTH);
	}
	*to++ = ' ';
	return put_depth(to, depth, (uint32_t)depth - (uint32_t)depth_min);
}

static char *put_notes(char *to, const char *before, const struct notes *notes)
{
	if (notes->n > 0) {
		to = mempcpy(to, before, strlen(before));
		to = mempcpy(to, notes->text, notes->n);
	}
	*to++ = '\n';
	return to;
}

/* Return: where a line with this label can be written; NULL: the output has failed. */
static inline char *begin_line(struct calltree *tree, const struct calltree_label *label)
{
	if (output_reserve(tree->output, LINE_SIZE + label->size) < 0)
		return NULL;
	return (char *)tree->output->buffer + tree->output->n_used;
}

static inline void end_line(struct calltree *tree, const char *end)
{
	tree->output->n_used = (size_t)((const uint8_t *)end - tree->output->buffer);
}

/* Return: the length of the label to print. The file is left off when @above, the caller's frame
 * (may be NULL), is in the same object. */
static inline size_t label_size(const struct calltree_label *label, const struct open_frame *frame,
				const struct open_frame *above)
{
	return above && above->function->object == frame->function->object ? label->name_size
									   : label->size;
}

/* Return: whether no comment is on how the function was entered. */
static inline bool is_entered_plainly(const struct calltree_label *label,
				      const struct open_frame *frame)
{
	return frame->how == PTD_CALL_BY_CALL && !frame->ambiguous && !label->place;
}

/* Return: whether no comment is on how the function was left, or on what it called. */
static inline bool is_left_plainly(const struct open_frame *frame, const struct ptd_call *leave)
{
	return leave->how == PTD_CALL_BY_RETURN && !leave->ambiguous && frame->n_left_out == 0;
}

static char *put_opening_notes(char *to, const struct calltree_label *label,
			       const struct open_frame *frame)
{
	struct notes notes;

	notes.n = 0;
	note_entered(&notes, label, frame->how);
	if (frame->ambiguous)
		add_note(&notes, "ambiguous", "");
	return put_notes(to, " // ", &notes);
}

/* Write the line with which @frame begins, that @above called; NULL: it is the lowest one. */
static void put_opening(struct calltree *tree, const struct open_stack *stack,
			const struct open_frame *frame, const struct open_frame *above)
{
	const struct calltree_label *label = &tree->labels.items[frame->function->id];
	char *p = begin_line(tree, label);

	if (!p)
		return;
	p = put_head(tree, p, frame->t, frame->depth, stack->depth_min, NULL);
	p = put_label(p, label->text, label_size(label, frame, above));
	if (is_entered_plainly(label, frame))
		p = mempcpy(p, " {\n", 3);
	else
		p = put_opening_notes(mempcpy(p, " {", 2), label, frame);
	end_line(tree, p);
}

static char *put_leaf_notes(char *to, const struct calltree_label *label,
			    const struct open_frame *frame, const struct ptd_call *leave)
{
	struct notes notes;

	notes.n = 0;
	note_entered(&notes, label, frame->how);
	note_left(&notes, frame->how, leave->how);
	if (frame->ambiguous || leave->ambiguous)
		add_note(&notes, "ambiguous", "");
	note_left_out(&notes, frame->n_left_out);
	return put_notes(to, " // ", &notes);
}

/* Write the one line of @frame, which called nothing that is printed; @above called it. */
static inline void put_leaf(struct calltree *tree, const struct open_stack *stack,
			    const struct open_frame *frame, const struct open_frame *above,
			    const struct ptd_call *leave)
{
	const struct calltree_label *label = &tree->labels.items[frame->function->id];
	const size_t size = label_size(label, frame, above);
	char *p = begin_line(tree, label);

	if (!p)
		return;
	p = put_head(tree, p, frame->t, frame->depth, stack->depth_min, leave);
	p = put_label(p, label->text, label->name_size);
	p = mempcpy(p, "()", 2);
	if (size > label->name_size)
		p = put_label(p, label->text + label->name_size, size - label->name_size);
	if (is_entered_plainly(label, frame) && is_left_plainly(frame, leave))
		p = mempcpy(p, ";\n", 2);
	else
		p = put_leaf_notes(mempcpy(p, ";", 1), label, frame, leave);
	end_line(tree, p);
}

static char *put_closing_notes(char *to, const struct open_frame *frame,
			       const struct ptd_call *leave)
{
	struct notes notes;

	notes.n = 0;
	note_left(&notes, frame->how, leave->how);
	if (leave->ambiguous)
		add_note(&notes, "ambiguous", "");
	note_left_out(&notes, frame->n_left_out);
	return put_notes(to, ", ", &notes);
}

/* Write the last line of @frame. */
static void put_closing(struct calltree *tree, const struct open_stack *stack,
			const struct open_frame *frame, const struct ptd_call *leave)
{
	const struct calltree_label *label = &tree->labels.items[frame->function->id];
	char *p = begin_line(tree, label);

	if (!p)
		return;
	p = put_head(tree, p, leave->t, frame->depth, stack->depth_min, leave);
	p = mempcpy(p, "} // ", 5);
	p = put_label(p, label->text, label->name_size);
	if (is_left_plainly(frame, leave))
		*p++ = '\n';
	else
		p = put_closing_notes(p, frame, leave);
	end_line(tree, p);
}

/* Return: whether the last thread that was named is this one. */
static inline bool is_named(const struct calltree *tree, uint32_t pid, uint32_t tid)
{
	return tree->is_named && tree->pid == pid && tree->tid == tid;
}

static void name_thread(struct calltree *tree, uint32_t pid, uint32_t tid, const char *comm)
{
	tree->is_named = true;
	tree->pid = pid;
	tree->tid = tid;
	output_printf(tree->output, "# thread ");
	output_thread(tree->output, pid, tid, comm);
	output_printf(tree->output, "\n");
}

/* --- JSON ------------------------------------------------------------------------------------- */

static void put_object(struct calltree *tree, const struct ptd_call_thread *thread,
		       const struct open_frame *frame, const struct ptd_call *leave)
{
	const struct calltree_label *label = &tree->labels.items[frame->function->id];
	struct json *json = &tree->json;

	json_object(json, NULL);
	json_id(json, "pid", thread->pid);
	json_id(json, "tid", thread->tid);
	json_number(json, "stack", leave->stack);
	json_signed(json, "depth", frame->depth);
	json_function(json, frame->function);
	if (label->place) {
		json_text(json, "file", label->file);
		json_number(json, "line", label->line);
	}
	json_text(json, "entered_by", ptd_call_how_name(frame->how));
	json_text(json, "left_by", ptd_call_how_name(leave->how));
	json_bool(json, "ambiguous", frame->ambiguous || leave->ambiguous);
	json_number(json, "t", frame->t);
	json_number(json, "duration", leave->t_total);
	json_number(json, "duration_self", leave->t_self);
	json_number(json, "instructions", leave->n_insns_total);
	json_number(json, "instructions_self", leave->n_insns_self);
	json_number(json, "left_out", frame->n_left_out);
	json_close(json);
}

/* --- the stream ------------------------------------------------------------------------------- */

static bool is_too_deep(const struct calltree *tree, int32_t depth)
{
	return depth > tree->max_depth;
}

/* Write the beginnings of the first @n frames that have none yet and are not too deep. */
static void print_frames(struct calltree *tree, const struct open_stack *stack, size_t n)
{
	size_t first = n;

	if (tree->is_json)
		return;
	while (first > 0 && !stack->frames.items[first - 1].is_printed)
		first--;
	for (size_t i = first; i < n; i++) {
		struct open_frame *frame = &stack->frames.items[i];

		if (is_too_deep(tree, frame->depth))
			continue;
		frame->is_printed = true;
		put_opening(tree, stack, frame, i > 0 ? frame - 1 : NULL);
	}
}

/*
 * The thread goes on on another stack, or another thread goes on. What is open long enough by now
 * is printed first, so that lines of threads come in the order of time.
 */
static void suspend(struct calltree *tree)
{
	const struct open_stack *stack;
	size_t n = 0;

	if (tree->stack >= tree->stacks.items.n)
		return;
	stack = &tree->stacks.items.items[tree->stack];
	/* Outer functions are open for longer than inner ones. */
	while (n < stack->frames.n && tree->t - stack->frames.items[n].t >= tree->min_duration)
		n++;
	print_frames(tree, stack, n);
}

/*
 * Count calls that are left out with the function above them. If that is left out in its turn, its
 * count goes further up.
 */
static void leave_out(struct calltree *tree, struct open_stack *stack, uint64_t n)
{
	struct open_frame *above = open_stack_top(stack);

	if (above)
		above->n_left_out += n;
	else
		tree->n_left_out += n;
}

static void leave(struct calltree *tree, const struct ptd_call_thread *thread,
		  struct open_stack *stack, const struct ptd_call *call)
{
	const struct open_frame *frame = open_stack_top(stack);
	const size_t n_above = stack->frames.n - 1;

	if (!frame)
		return;
	if (!frame->is_printed &&
	    (is_too_deep(tree, frame->depth) || call->t_total < tree->min_duration)) {
		const uint64_t n_left_out = frame->n_left_out + 1;

		open_stack_pop(stack);
		leave_out(tree, stack, n_left_out);
		return;
	}
	if (tree->is_json) {
		put_object(tree, thread, frame, call);
	} else if (frame->is_printed) {
		put_closing(tree, stack, frame, call);
	} else {
		print_frames(tree, stack, n_above);
		put_leaf(tree, stack, frame, n_above > 0 ? frame - 1 : NULL, call);
	}
	open_stack_pop(stack);
}

/*
 * A function is entered by @call and left by the next one. In the text it is a line, or is left
 * out, below a function that is open and stays so.
 *
 * Return: 0 or -ENOMEM.
 */
static inline int take_leaf(struct calltree *tree, struct open_stack *stack,
			    const struct ptd_call *call)
{
	const struct open_frame frame = open_frame_of(call);
	struct open_frame *above = open_stack_top(stack);
	const int r = add_label(tree, call->function);

	if (r < 0)
		return r;
	tree->t = call[1].t;
	if (call->depth < stack->depth_min)
		stack->depth_min = call->depth;
	if (is_too_deep(tree, call->depth) || call[1].t_total < tree->min_duration) {
		above->n_left_out++;
		return 0;
	}
	if (!above->is_printed)
		print_frames(tree, stack, stack->frames.n);
	put_leaf(tree, stack, &frame, above, call + 1);
	return 0;
}

/* Go on on the stack of @call. Return: 0 or -ENOMEM. */
static int switch_stack(struct calltree *tree, const struct ptd_call *call)
{
	if (tree->is_begun)
		suspend(tree);
	tree->stack = call->stack;
	tree->is_begun = true;
	if (call->kind != PTD_CALL_SWITCH)
		return 0;
	if (!tree->is_json)
		output_printf(tree->output, "# stack %" PRIu32 "\n", call->stack);
	return open_stacks_move(&tree->stacks, call);
}

/* Take the next call. Return: 0 or -ENOMEM. */
static int take_call(struct calltree *tree, const struct ptd_call_thread *thread,
		     const struct ptd_call *call)
{
	struct open_stack *stack;
	int r;

	if (call->stack != tree->stack || !tree->is_begun) {
		r = switch_stack(tree, call);
		if (r < 0)
			return r;
	}
	tree->t = call->t;
	if (call->kind == PTD_CALL_SWITCH)
		return 0;
	stack = open_stacks_get(&tree->stacks, call->stack);
	if (!stack)
		return -ENOMEM;
	if (!is_named(tree, thread->pid, thread->tid) && !tree->is_json)
		name_thread(tree, thread->pid, thread->tid, thread->comm);
	if (call->kind == PTD_CALL_LEAVE) {
		leave(tree, thread, stack, call);
		return 0;
	}
	r = add_label(tree, call->function);
	return r < 0 ? r : open_stack_push(stack, call);
}

/* Return: the stack of @call if take_leaf() can take that and the next one; else NULL. */
static inline struct open_stack *find_leaf(const struct calltree *tree,
					   const struct ptd_call_thread *thread,
					   const struct ptd_call *call)
{
	struct open_stack *stack;

	if (!open_stacks_is_leaf(call) || call->stack != tree->stack || !tree->is_begun ||
	    tree->stack >= tree->stacks.items.n || tree->is_json ||
	    !is_named(tree, thread->pid, thread->tid))
		return NULL;
	stack = &tree->stacks.items.items[tree->stack];
	return stack->frames.n > 0 ? stack : NULL;
}

int calltree_calls(struct calltree *tree, const struct ptd_call_thread *thread,
		   const struct ptd_call *calls, size_t n_calls)
{
	const struct ptd_call *call = calls, *const end = calls + n_calls;
	int r = 0;

	while (call < end && r == 0) {
		struct open_stack *stack = end - call > 1 ? find_leaf(tree, thread, call) : NULL;

		if (stack) {
			r = take_leaf(tree, stack, call);
			call += 2;
		} else {
			r = take_call(tree, thread, call++);
		}
	}
	return r;
}

/* Write what the thread noted itself, on the line that begins with @line. */
static void put_noted(struct calltree *tree, const char *line, const struct ptd_mark *mark)
{
	output_printf(tree->output, "%s// %s ", line, ptd_mark_kind_name(mark->kind));
	output_name(tree->output, tree->symbols[mark->value]->name);
	output_printf(tree->output, "\n");
}

static void put_json_noted(struct calltree *tree, const struct ptd_slice *slice,
			   const struct ptd_mark *mark)
{
	json_object(&tree->json, NULL);
	json_id(&tree->json, "pid", slice->pid);
	json_id(&tree->json, "tid", slice->tid);
	json_text(&tree->json, "event", tree->symbols[mark->value]->name);
	json_text(&tree->json, "kind", ptd_mark_kind_name(mark->kind));
	json_number(&tree->json, "t", mark->t);
	json_close(&tree->json);
}

void calltree_mark(struct calltree *tree, const struct ptd_slice *slice,
		   const struct ptd_mark *mark)
{
	const bool is_noted = ptd_mark_has_name(mark);
	char line[2 * COLUMN_MAX];

	if (mark->kind != PTD_MARK_GAP && mark->kind != PTD_MARK_OUT_OF_SCOPE && !is_noted)
		return;
	if (tree->is_json && is_noted) {
		put_json_noted(tree, slice, mark);
		return;
	}
	/* It stands behind the beginnings of the functions that are open, in which it happened. */
	if (is_noted && is_named(tree, slice->pid, slice->tid))
		tree->t = mark->t;
	if (is_noted && tree->is_begun)
		suspend(tree);
	if (tree->is_json) {
		json_object(&tree->json, NULL);
		json_id(&tree->json, "pid", slice->pid);
		json_id(&tree->json, "tid", slice->tid);
		json_text(&tree->json, "gap",
			  mark->kind == PTD_MARK_GAP ? ptd_gap_reason_name(mark->reason)
						     : ptd_mark_kind_name(mark->kind));
		json_number(&tree->json, "t", mark->t);
		json_number(&tree->json, "bytes", mark->n_bytes);
		json_close(&tree->json);
		return;
	}
	if (!is_named(tree, slice->pid, slice->tid))
		name_thread(tree, slice->pid, slice->tid, slice->comm);
	*put_blanks(column_time(line, tree->info->clock, mark->t),
		    COLUMN_DURATION + INSNS_WIDTH + DEPTH_WIDTH + 5) = '\0';
	if (is_noted)
		put_noted(tree, line, mark);
	else if (mark->kind == PTD_MARK_GAP)
		output_printf(tree->output, "%s// gap: %s, %" PRIu64 " byte%s lost\n", line,
			      ptd_gap_reason_name(mark->reason), mark->n_bytes,
			      plural(mark->n_bytes));
	else
		output_printf(tree->output, "%s// %s\n", line, ptd_mark_kind_name(mark->kind));
}

void calltree_begin(struct calltree *tree)
{
	tree->times.clock = tree->info->clock;
	if (!tree->is_json) {
		output_printf(tree->output,
			      "# time, duration, instructions, depth, function [file]\n");
		output_clock(tree->output, tree->info);
		return;
	}
	tree->json = json_begin(tree->output);
	json_object(&tree->json, NULL);
	json_text(&tree->json, "format", "calls");
	json_clock(&tree->json, tree->info->clock);
	json_signed(&tree->json, "realtime_offset_ns", tree->info->realtime_offset_ns);
	json_array(&tree->json, "calls");
}

void calltree_end(struct calltree *tree)
{
	if (tree->is_json) {
		json_close(&tree->json);
		json_number(&tree->json, "left_out", tree->n_left_out);
		json_close(&tree->json);
	} else if (tree->n_left_out > 0) {
		output_printf(tree->output, "# %" PRIu64 " call%s left out\n", tree->n_left_out,
			      plural(tree->n_left_out));
	}
}
