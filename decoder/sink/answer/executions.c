/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/answer/executions.h"

#include <errno.h>
#include <string.h>

#include "decoder/sink/answer/profile.h"

#define SEARCHED_PARTS 8 /* up to this number, they are searched one by one */

enum { MATCH_UNKNOWN, MATCH_NO, MATCH_YES };

static void execution_deinit(struct execution *execution)
{
	free(execution->parts);
	*execution = (struct execution){};
}

static void running_deinit(struct running *running)
{
	execution_deinit(&running->execution);
	map_deinit(&running->by_id);
	*running = (struct running){};
}

void executions_deinit(struct executions *executions)
{
	vec_deinit_each(&executions->running, running, running_deinit(running));
	vec_deinit(&executions->matches);
	for (size_t i = 0; i < executions->n_worst; i++)
		execution_deinit(&executions->worst[i]);
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (executions->usual[i])
			execution_deinit(executions->usual[i]);
		free(executions->usual[i]);
	}
	open_stacks_deinit(&executions->stacks);
	histogram_deinit(&executions->t);
	histogram_deinit(&executions->n_insns);
}

bool executions_name_is(const char *name, const char *wanted)
{
	const size_t size = strlen(wanted);

	return size > 0 && strncmp(name, wanted, size) == 0 &&
	       (name[size] == '\0' || name[size] == '(' ||
		strcmp(name + size, PTD_INLINED_MARK) == 0);
}

/* --- the parts of an execution ---------------------------------------------------------------- */

/* Return: the part of the function; NULL if it has none yet. */
static struct execution_part *find_part(const struct running *running,
					const struct ptd_function *function)
{
	const struct execution *e = &running->execution;
	const uint64_t *index;

	for (size_t i = 0; i < e->n_parts && i < SEARCHED_PARTS; i++)
		if (e->parts[i].function == function)
			return &e->parts[i];
	index = e->n_parts > SEARCHED_PARTS ? map_get(&running->by_id, function->id) : NULL;
	return index ? &e->parts[*index] : NULL;
}

/* Return: the part of the function, which is made if need be; NULL: no memory. */
static struct execution_part *get_part(struct running *running, const struct ptd_function *function)
{
	struct execution_part *part = find_part(running, function);
	struct execution *e = &running->execution;

	if (part)
		return part;
	if (vec_reserve_raw((void **)&e->parts, e->n_parts, &running->n_capacity, 1,
			    sizeof(*e->parts)) < 0)
		return NULL;
	if (e->n_parts >= SEARCHED_PARTS && map_put(&running->by_id, function->id, e->n_parts) < 0)
		return NULL;
	part = &e->parts[e->n_parts++];
	*part = (struct execution_part){ .function = function };
	return part;
}

/* The function of the part, which was entered by @how, is left by @call. */
static void leave_part(struct execution_part *part, uint8_t how, const struct ptd_call *call)
{
	part->n_calls += !profile_goes_on(how);
	part->t_self += call->t_self;
	part->n_insns_self += call->n_insns_self;
	part->n_open -= part->n_open > 0;
	if (part->n_open > 0)
		return;
	part->t_total += call->t_total;
	part->n_insns_total += call->n_insns_total;
}

static int by_insns(const void *pa, const void *pb)
{
	const struct execution_part *a = pa, *b = pb;

	return COMPARE(b->n_insns_self, a->n_insns_self)
		   ?: COMPARE(a->function->id, b->function->id);
}

/* Copy an execution. Of very many parts, the smallest become one. Return: 0 or -ENOMEM. */
static int keep(const struct execution *from, struct execution *ret_to)
{
	const size_t n = from->n_parts < EXECUTION_PARTS ? from->n_parts : EXECUTION_PARTS;
	struct execution_part *parts = calloc(n, sizeof(*parts)), *rest;

	if (!parts)
		return -ENOMEM;
	if (n < from->n_parts)
		qsort(from->parts + 1, from->n_parts - 1, sizeof(*from->parts), by_insns);
	memcpy(parts, from->parts, n * sizeof(*parts));
	rest = &parts[n - 1];
	if (n < from->n_parts)
		rest->function = NULL;
	for (size_t i = n; i < from->n_parts; i++) {
		rest->n_calls += from->parts[i].n_calls;
		rest->t_self += from->parts[i].t_self;
		rest->n_insns_self += from->parts[i].n_insns_self;
		rest->t_total += from->parts[i].t_total;
		rest->n_insns_total += from->parts[i].n_insns_total;
	}
	*ret_to = *from;
	ret_to->parts = parts;
	ret_to->n_parts = n;
	return 0;
}

/* --- what is kept ----------------------------------------------------------------------------- */

static uint64_t cost_of(const struct executions *executions, const struct execution *e)
{
	return executions->has_time ? e->duration : e->n_insns;
}

/* Return: whether @a is worse than @b; of equal ones, the one that began first. */
static bool is_worse(const struct executions *executions, const struct execution *a,
		     const struct execution *b)
{
	const uint64_t x = cost_of(executions, a), y = cost_of(executions, b);

	if (x != y)
		return x > y;
	return a->n_insns != b->n_insns ? a->n_insns > b->n_insns : a->number < b->number;
}

static int keep_worst(struct executions *executions, const struct execution *e)
{
	struct execution *worst = executions->worst, kept = *e;
	size_t i = executions->n_worst;
	int r;

	while (i > 0 && is_worse(executions, e, &worst[i - 1]))
		i--;
	if (i == EXECUTIONS_WORST)
		return 0;
	kept.parts = NULL;
	kept.n_parts = 0;
	if (i == 0) {
		r = keep(e, &kept);
		if (r < 0)
			return r;
		free(worst[0].parts);
		worst[0].parts = NULL;
		worst[0].n_parts = 0;
	}
	executions->n_worst += executions->n_worst < EXECUTIONS_WORST;
	memmove(&worst[i + 1], &worst[i], (executions->n_worst - 1 - i) * sizeof(*worst));
	worst[i] = kept;
	return 0;
}

static int keep_usual(struct executions *executions, const struct execution *e)
{
	const unsigned int bucket = histogram_bucket(cost_of(executions, e));
	struct execution *kept;
	int r;

	if (executions->usual[bucket])
		return 0;
	kept = calloc(1, sizeof(*kept));
	if (!kept)
		return -ENOMEM;
	r = keep(e, kept);
	if (r < 0) {
		free(kept);
		return r;
	}
	executions->usual[bucket] = kept;
	return 0;
}

static int end_execution(struct executions *executions, struct running *running,
			 const struct ptd_call_thread *thread, const struct open_frame *frame,
			 const struct ptd_call *call)
{
	struct execution *e = &running->execution;
	int r;

	running->is_running = false;
	map_deinit(&running->by_id);
	if (!profile_is_whole(frame, call)) {
		executions->n_partial += !profile_goes_on(frame->how);
		return 0;
	}
	e->comm = thread->comm;
	e->duration = call->t_total;
	e->n_insns = call->n_insns_total;
	r = histogram_add(&executions->t, e->duration);
	if (r == 0)
		r = histogram_add(&executions->n_insns, e->n_insns);
	if (r == 0)
		r = keep_worst(executions, e);
	return r < 0 ? r : keep_usual(executions, e);
}

const struct execution *executions_median(const struct executions *executions)
{
	const struct histogram *h = executions->has_time ? &executions->t : &executions->n_insns;

	return h->n > 0 ? executions->usual[histogram_bucket(histogram_quantile(h, 500))] : NULL;
}

/* --- the call stream -------------------------------------------------------------------------- */

/* Find out whether it is the function sought. Return: 0 or -ENOMEM. */
static int is_sought(struct executions *executions, const struct ptd_function *function,
		     bool *ret_is)
{
	uint8_t *match = vec_at(&executions->matches, function->id, MATCH_UNKNOWN);

	if (!match)
		return -ENOMEM;
	if (*match == MATCH_UNKNOWN)
		*match =
		    executions_name_is(function->name, executions->name) ? MATCH_YES : MATCH_NO;
	*ret_is = *match == MATCH_YES;
	return 0;
}

/* Return: what goes on on the stack, valid until the next call; NULL: no memory. */
static struct running *get_running(struct executions *executions, uint32_t stack)
{
	return vec_at(&executions->running, stack, {});
}

static int enter(struct executions *executions, const struct ptd_call_thread *thread,
		 const struct ptd_call *call)
{
	struct running *running = get_running(executions, call->stack);
	struct open_stack *stack = open_stacks_get(&executions->stacks, call->stack);
	struct execution_part *part;
	bool is;
	int r;

	if (!running || !stack)
		return -ENOMEM;
	if (!running->is_running) {
		r = is_sought(executions, call->function, &is);
		if (r < 0)
			return r;
		if (is) {
			executions->function = call->function;
			running->is_running = true;
			running->level = stack->frames.n;
			running->execution.n_parts = 0;
			executions->n += !profile_goes_on(call->how);
			running->execution.number = executions->n;
			running->execution.pid = thread->pid;
			running->execution.tid = thread->tid;
			running->execution.t = call->t;
		}
	}
	if (running->is_running) {
		part = get_part(running, call->function);
		if (!part)
			return -ENOMEM;
		part->n_open++;
	}
	return open_stack_push(stack, call);
}

static int leave(struct executions *executions, const struct ptd_call_thread *thread,
		 const struct ptd_call *call)
{
	struct running *running = get_running(executions, call->stack);
	struct open_stack *stack = open_stacks_get(&executions->stacks, call->stack);
	const struct open_frame *top;
	struct execution_part *part;
	struct open_frame frame;
	int r = 0;

	if (!running || !stack)
		return -ENOMEM;
	top = open_stack_top(stack);
	if (!top)
		return 0;
	frame = *top;
	open_stack_pop(stack);
	if (running->is_running) {
		part = find_part(running, frame.function);
		if (part)
			leave_part(part, frame.how, call);
		if (stack->frames.n <= running->level)
			r = end_execution(executions, running, thread, &frame, call);
	}
	if (stack->frames.n == 0)
		running_deinit(running);
	return r;
}

/* What is moved to another stack is not seen as a whole there. Return: 0 or -ENOMEM. */
static int move(struct executions *executions, const struct ptd_call *call)
{
	int r;

	if (call->n_moved == 0)
		return 0;
	r = open_stacks_move(&executions->stacks, call);
	if (r == 0 && call->stack < executions->running.n) {
		struct running *running = &executions->running.items[call->stack];
		const struct open_stack *stack = &executions->stacks.items.items[call->stack];

		if (running->is_running && stack->frames.n <= running->level) {
			running->is_running = false;
			map_deinit(&running->by_id);
			executions->n_partial++;
		}
		if (stack->frames.n == 0)
			running_deinit(running);
	}
	return r;
}

int executions_add(struct executions *executions, const struct ptd_call_batch *batch)
{
	for (size_t i = 0; i < batch->n_calls; i++) {
		const struct ptd_call *call = &batch->calls[i];
		int r;

		if (call->kind == PTD_CALL_SWITCH)
			r = move(executions, call);
		else if (call->kind == PTD_CALL_ENTER)
			r = enter(executions, batch->thread, call);
		else
			r = leave(executions, batch->thread, call);
		if (r < 0)
			return r;
	}
	return 0;
}
