/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/calls.h"

#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "decoder/sink/output.h"
#include "ptd/decode.h"

#define NAME       "aux/funclist.log"
#define NAME_BYTES 8192 /* of a name, which are written; the decoder makes none that is longer */

enum choice {
	NOT_CHOSEN_YET,
	IS_LEFT_OUT,
	IS_CHOSEN,
	IS_USED, /* a file has a marker of it */
};

int memtrace_calls_init(struct memtrace_calls *calls, const struct ptd_info *info,
			const char *pattern, bool with_kernel)
{
	*calls = (struct memtrace_calls){ .with_kernel = with_kernel };
	if (pattern && strcmp(pattern, "none") == 0)
		return 0;
	if (pattern) {
		calls->pattern = strdup(pattern);
		if (!calls->pattern)
			return -ENOMEM;
	}
	return ptd_calls_new(info, &calls->layer);
}

void memtrace_calls_deinit(struct memtrace_calls *calls)
{
	ptd_calls_free(calls->layer);
	free(calls->pattern);
	open_stacks_deinit(&calls->stacks);
	vec_deinit(&calls->chosen);
}

int memtrace_calls_begin(struct memtrace_calls *calls, const struct ptd_batch *batch)
{
	calls->found = NULL;
	return calls->layer ? ptd_calls_batch(calls->layer, batch) : 0;
}

/* Find out whether @function is marked. Return: enum choice, or -ENOMEM. */
static int choose(struct memtrace_calls *calls, const struct ptd_function *function)
{
	uint8_t *choice = vec_at(&calls->chosen, function->id, NOT_CHOSEN_YET);

	if (!choice)
		return -ENOMEM;
	if (*choice == NOT_CHOSEN_YET)
		*choice = calls->pattern && fnmatch(calls->pattern, function->name, 0) != 0
			      ? IS_LEFT_OUT
			      : IS_CHOSEN;
	return *choice;
}

/* Return: 1 if the function that @call enters is marked; 0; or -ENOMEM. */
static int is_marked(struct memtrace_calls *calls, const struct ptd_call *call)
{
	int r;

	if (call->how != PTD_CALL_BY_CALL && call->how != PTD_CALL_BY_TAIL)
		return 0;
	if (call->to >> 63 && !calls->with_kernel)
		return 0;
	r = choose(calls, call->function);
	if (r < 0 || r == IS_LEFT_OUT)
		return r < 0 ? r : 0;
	calls->chosen.items[call->function->id] = IS_USED;
	return 1;
}

static int enter(struct memtrace_calls *calls, const struct ptd_call *call,
		 struct memtrace_call_list *list)
{
	struct open_stack *stack = open_stacks_get(&calls->stacks, call->stack);
	int r, marked;

	marked = is_marked(calls, call);
	if (marked < 0 || !stack)
		return -ENOMEM;
	r = open_stack_push(stack, call);
	if (r < 0 || !marked)
		return r;
	open_stack_top(stack)->is_printed = true;
	open_stack_top(stack)->file = list;
	return vec_push(&list->items, { .function = call->function->id, .is_enter = true });
}

static int leave(struct memtrace_calls *calls, const struct ptd_call *call,
		 struct memtrace_call_list *list)
{
	struct open_stack *stack = open_stacks_get(&calls->stacks, call->stack);
	struct open_frame *frame = stack ? open_stack_top(stack) : NULL;
	bool marked;

	if (!stack)
		return -ENOMEM;
	if (!frame)
		return 0;
	/* A stack may go on in another thread, whose file does not have the marker of the entry. */
	marked = frame->is_printed && frame->file == list;
	open_stack_pop(stack);
	return marked ? vec_push(&list->items, { .function = call->function->id }) : 0;
}

static int take_call(struct memtrace_calls *calls, const struct ptd_call *call,
		     struct memtrace_call_list *list)
{
	switch ((enum ptd_call_kind)call->kind) {
	case PTD_CALL_ENTER:
		return enter(calls, call, list);
	case PTD_CALL_LEAVE:
		return leave(calls, call, list);
	case PTD_CALL_SWITCH:
		return open_stacks_move(&calls->stacks, call);
	}
	return 0;
}

int memtrace_calls_take(struct memtrace_calls *calls, size_t run, struct memtrace_call_list *list,
			size_t *ret_next)
{
	*ret_next = SIZE_MAX;
	if (!calls->layer)
		return 0;
	for (;;) {
		const struct ptd_call *call;
		int r;

		if (!calls->found || calls->next == calls->found->n_calls) {
			r = ptd_calls_next(calls->layer, &calls->found);
			calls->next = 0;
			if (r != 0) {
				calls->found = NULL;
				return r == PTD_END ? 0 : r;
			}
			continue;
		}
		call = &calls->found->calls[calls->next];
		/* What is left because a thread ended needs no marker any more. */
		if (calls->found->batch && call->run > run) {
			*ret_next = call->run;
			return 0;
		}
		r = take_call(calls, call, list);
		if (r < 0)
			return r;
		calls->next++;
	}
}

static void write_function(struct output *output, const struct ptd_function *function)
{
	const char *slash = strrchr(function->object->name, '/');
	char text[NAME_BYTES];
	size_t n;

	output_printf(output, "%" PRIu32 ",0,0x%" PRIx64 ",", function->id, function->address);
	for (int i = 0; i < 2; i++) {
		n = output_printable(text,
				     i > 0   ? function->name
				     : slash ? slash + 1
					     : function->object->name,
				     sizeof(text));
		for (size_t k = 0; k < n; k++)
			if (text[k] == ',')
				text[k] = ';';
		(void)output_write(output, text, n);
		output_printf(output, i > 0 ? "\n" : "!");
	}
}

int memtrace_calls_finish(struct memtrace_calls *calls, const struct sink_config *config)
{
	const struct ptd_function *const *functions;
	struct output output;
	size_t n;
	int r;

	if (!calls->layer)
		return 0;
	r = output_create(&output, config->fd, NAME, config->room);
	if (r < 0)
		return r;
	functions = ptd_calls_functions(calls->layer, &n);
	for (size_t i = 0; i < n && i < calls->chosen.n; i++)
		if (calls->chosen.items[i] == IS_USED)
			write_function(&output, functions[i]);
	r = output_finish(&output);
	output_deinit(&output);
	return r;
}
