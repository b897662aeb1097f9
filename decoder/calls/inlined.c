/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The rules
 *
 * A place is where a compiler put a function in the place of a call. Places nest; the code of one
 * is a set of ranges, and lies among instructions of what is around it. gcc notes the entry of each
 * place. Else the entry is the instruction at which control came into the place for the first time.
 *
 * Of the function that was called last and has not returned, those places are open that control is
 * in, or may come back to. Control arrives at an instruction, which has an innermost place (or is
 * in none: in the function itself). The first row that fits counts:
 *
 *  the instruction                              what it is
 *
 *  is in no function that is known, as a stub   nothing
 *  is the entry of an open place, which was     that is left, and entered: another execution of it
 *  noted; or which is doubtful
 *  is in the innermost place that is open       nothing
 *  is in a place around that, or in none        what is inside of that is doubtful from then on
 *  is in a place that is not open, and is not   it passes by, and what is open but not around that
 *  the entry of it or of one around it that is  place is doubtful. If it makes a call there, or
 *  not open either                              stays, it has entered the place again
 *  is in a place that is not open               what is not around that is left, and the places up
 *                                               to that are entered: those of which this is the
 *                                               entry are executed, the others entered again
 *
 * What is doubtful is not left if control is next in it again, and not at its entry. It was left
 * when it became doubtful if anything else comes first: a call, a return, another place, a mark, or
 * another part of the thread's time.
 *
 * So instructions that a compiler moved away from the others of a place, before its entry or behind
 * what comes next, belong to what is around it.
 *
 * When a function is left, so is what was inlined into it, for the same reason, and before it.
 */

#include "decoder/calls/inlined.h"

#include <errno.h>

#define PARTS_MAX (UINT32_C(1) << 28)

/* Instructions of a place that are executed together away from its entry: of more, it is said that
 * it was entered again. */
#define PASSING_MAX 16

void inliner_deinit(struct inliner *inliner)
{
	vec_deinit_each(&inliner->stacks, stack, {
		vec_deinit(&stack->frames);
		vec_deinit(&stack->costs);
	});
	map_deinit(&inliner->by_shown);
	vec_deinit(&inliner->places);
	vec_deinit(&inliner->blocks);
	vec_deinit(&inliner->parts);
	vec_deinit(&inliner->threads);
	vec_deinit(&inliner->calls);
}

/* --- what is inlined where -------------------------------------------------------------------- */

static struct inlined_place *place_at(const struct inliner *inliner, uint32_t i)
{
	return &inliner->places.items[i];
}

static bool is_entry_of(const struct inlined_place *place, uint64_t address)
{
	return place->has_entry && place->entry == address;
}

/* Return: whether the place or one around it is entered at the address. */
static bool enters(const struct inliner *inliner, uint32_t i, uint64_t address)
{
	for (; i != INLINED_NONE; i = place_at(inliner, i)->outer)
		if (is_entry_of(place_at(inliner, i), address))
			return true;
	return false;
}

/* Get the index of a place, and of those around it. Return: 0 or -ENOMEM. */
static int find_place(struct inliner *inliner, const struct ptd_inlined *shown, uint32_t *ret_place)
{
	const struct ptd_inlined *way[PTD_POSITIONS_MAX];
	size_t n = 0;
	int r = 0;

	*ret_place = INLINED_NONE;
	while (shown && shown->depth > PTD_POSITIONS_MAX)
		shown = shown->outer;
	for (; shown && n < PTD_POSITIONS_MAX; shown = shown->outer)
		way[n++] = shown;
	while (r >= 0 && n-- > 0) {
		const uint32_t outer = *ret_place;
		uint64_t i;

		r = map_number(&inliner->by_shown, (uintptr_t)way[n], inliner->places.n, &i);
		if (r > 0)
			r = vec_push(&inliner->places, { .shown = way[n],
							 .outer = outer,
							 .entry = way[n]->entry,
							 .has_entry = way[n]->has_entry });
		*ret_place = (uint32_t)i;
	}
	return r;
}

/* Return: 0 or -ENOMEM. */
static int find_parts(struct inliner *inliner, const struct ptd_block *block,
		      struct inlined_block *ret_block)
{
	const size_t first = inliner->parts.n;
	struct inlined_part part = { .place = INLINED_NONE };
	uint64_t end = 0;
	int r = 0;

	for (size_t i = 0; r >= 0 && i < block->n_insns; i++) {
		const uint64_t address = block->address + block->insns[i].offset;
		const struct inlined_part before = part;
		const struct ptd_inlined *shown;

		part.first = (uint16_t)i;
		if (address >= end || i == 0) {
			r = ptd_decoder_inlined(inliner->decoder, block->object, address, &shown,
						&end);
			part.is_known = r > 0;
			if (r >= 0)
				r = find_place(inliner, shown, &part.place);
		}
		part.is_entry = enters(inliner, part.place, address);
		if (r >= 0 && (i == 0 || part.place != before.place ||
			       part.is_known != before.is_known || part.is_entry))
			r = vec_push(&inliner->parts, part);
	}
	*ret_block =
	    (struct inlined_block){ (uint32_t)first, (uint32_t)(inliner->parts.n - first) };
	return inliner->parts.n > PARTS_MAX || r < 0 ? -ENOMEM : 0;
}

/* Return: the parts of the block, valid until the next call; NULL: no memory. */
static const struct inlined_block *get_block(struct inliner *inliner, const struct ptd_block *block)
{
	struct inlined_block *known = vec_at(&inliner->blocks, block->id, {});

	if (known && known->n == 0 && find_parts(inliner, block, known) < 0)
		return NULL;
	return known;
}

/* --- what is open ----------------------------------------------------------------------------- */

/* Add a call, all fields of which are set: to clear it first takes as long as all the rest. */
static inline struct ptd_call *add_call(struct inliner *inliner, const struct inlined_stack *stack,
					const struct inlined_frame *frame,
					const struct inlined_moment *moment,
					enum ptd_call_kind kind, enum ptd_call_how how)
{
	const uint32_t function = place_at(inliner, frame->place)->function;
	struct ptd_call *call;

	if (inliner->calls.n == inliner->calls.n_capacity && vec_reserve(&inliner->calls, 1) < 0)
		return NULL;
	call = &inliner->calls.items[inliner->calls.n++];
	call->kind = (uint8_t)kind;
	call->how = (uint8_t)how;
	call->ambiguous = frame->ambiguous;
	call->depth = frame->called + (int32_t)(frame - stack->frames.items) + 1;
	call->stack = (uint32_t)(stack - inliner->stacks.items);
	call->n_moved = 0;
	call->moved_to = 0;
	call->run = moment->run;
	call->function = inliner->functions->all.items[function];
	call->t = moment->t;
	call->n_insns = moment->n;
	call->from = 0;
	call->to = moment->ip;
	call->t_total = 0;
	call->t_self = 0;
	call->n_insns_total = 0;
	call->n_insns_self = 0;
	return call;
}

/*
 * Control comes into a place for the first time: at its entry, if that is not known, unless the
 * function around it was entered before what is known.
 */
static void see_entry(struct inliner *inliner, const struct inlined_stack *stack, uint32_t i,
		      struct inlined_part *part, uint64_t address)
{
	struct inlined_place *place = place_at(inliner, i);

	if (place->has_entry || stack->is_open_before)
		return;
	place->entry = address;
	place->has_entry = part->is_entry = true;
}

/* Return: the cost of the innermost function that was called; NULL: no memory. */
static struct inlined_cost *get_cost(struct inlined_stack *stack)
{
	if ((stack->costs.n == 0 || stack->costs.items[stack->costs.n - 1].called < stack->depth) &&
	    vec_push(&stack->costs, { .called = stack->depth }) < 0)
		return NULL;
	return &stack->costs.items[stack->costs.n - 1];
}

/* Enter a place of @object. Return: 0 or -ENOMEM. */
static int enter(struct inliner *inliner, struct inlined_stack *stack,
		 const struct ptd_object *object, uint32_t i, const struct inlined_moment *moment)
{
	struct inlined_place *place = place_at(inliner, i);
	const enum ptd_call_how how =
	    is_entry_of(place, moment->address) ? PTD_CALL_BY_INLINING : PTD_CALL_BY_REENTRY;

	if (!place->object && functions_of_inlined(inliner->functions, object, place->shown,
						   moment->address, &place->function) < 0)
		return -ENOMEM;
	place->object = object;
	inliner->stats->n_entered[how]++;
	if (!get_cost(stack) || vec_push(&stack->frames, { .place = i,
							   .called = stack->depth,
							   .ambiguous = stack->ambiguous,
							   .t = moment->t,
							   .n = moment->n + stack->bias }) < 0)
		return -ENOMEM;
	return add_call(inliner, stack, &stack->frames.items[stack->frames.n - 1], moment,
			PTD_CALL_ENTER, how)
		   ? 0
		   : -ENOMEM;
}

/* Leave the innermost place, which is in the innermost function. Return: 0 or -ENOMEM. */
static int leave(struct inliner *inliner, struct inlined_stack *stack,
		 const struct inlined_moment *moment, enum ptd_call_how how)
{
	struct inlined_frame *frame = &stack->frames.items[stack->frames.n - 1];
	const uint64_t t = callstack_since(moment->t, frame->t);
	const uint64_t n = callstack_since(moment->n + stack->bias, frame->n);
	struct ptd_call *call = add_call(inliner, stack, frame, moment, PTD_CALL_LEAVE, how);

	if (!call)
		return -ENOMEM;
	call->t_total = t;
	call->n_insns_total = n;
	call->t_self = callstack_since(t, frame->t_inner);
	call->n_insns_self = callstack_since(n, frame->n_inner);
	inliner->stats->n_left[how]++;
	if (--stack->frames.n > stack->base) {
		frame[-1].t_inner += t;
		frame[-1].n_inner += n;
	} else {
		/* Its cost was added when the place was entered. */
		stack->costs.items[stack->costs.n - 1].t_inner += t;
		stack->costs.items[stack->costs.n - 1].n_inner += n;
	}
	return 0;
}

/* Leave places until only @n frames are open; those that are doubtful were left before. */
static int leave_to(struct inliner *inliner, struct inlined_stack *stack, size_t n,
		    const struct inlined_moment *moment, enum ptd_call_how how)
{
	int r = 0;

	while (r == 0 && stack->frames.n > n) {
		const bool is_doubtful = stack->n_doubtful > 0;

		stack->n_doubtful -= is_doubtful;
		r = is_doubtful ? leave(inliner, stack, &stack->doubtful, PTD_CALL_BY_RETURN)
				: leave(inliner, stack, moment, how);
	}
	return r;
}

/* What is doubtful was left. */
static int decide(struct inliner *inliner, struct inlined_stack *stack)
{
	return leave_to(inliner, stack, stack->frames.n - stack->n_doubtful, &stack->doubtful,
			PTD_CALL_BY_RETURN);
}

/* Control is in none of the innermost places but the first @n frames. */
static int doubt(struct inliner *inliner, struct inlined_stack *stack, size_t n,
		 const struct inlined_moment *moment)
{
	int r;

	/* It may be in some that were doubtful. */
	if (n + stack->n_doubtful >= stack->frames.n) {
		stack->n_doubtful = stack->frames.n - n;
		return 0;
	}
	r = decide(inliner, stack);
	stack->doubtful = *moment;
	stack->n_doubtful = stack->frames.n - n;
	return r;
}

/* Return: whether the place of frame @i, which is open, is entered another time at the address. */
static bool begins_anew(const struct inliner *inliner, const struct inlined_stack *stack, size_t i,
			uint64_t address)
{
	const struct inlined_place *place = place_at(inliner, stack->frames.items[i].place);

	return is_entry_of(place, address) &&
	       (place->shown->has_entry || i + stack->n_doubtful >= stack->frames.n);
}

/* Put the places around @place, and it itself, into @ret_way. Return: how many there are. */
static size_t find_way(const struct inliner *inliner, uint32_t place,
		       uint32_t ret_way[static PTD_POSITIONS_MAX])
{
	size_t n = 0;

	for (uint32_t i = place; i != INLINED_NONE; i = place_at(inliner, i)->outer)
		n++;
	for (size_t i = n; i-- > 0; place = place_at(inliner, place)->outer)
		ret_way[i] = place;
	return n;
}

/* Return: how many of the places of @way are open, and are not entered anew at the address. */
static size_t count_open(const struct inliner *inliner, const struct inlined_stack *stack,
			 const uint32_t *way, size_t depth, uint64_t address)
{
	const size_t base = stack->base;
	size_t n = 0;

	while (n < depth && base + n < stack->frames.n &&
	       stack->frames.items[base + n].place == way[n] &&
	       !begins_anew(inliner, stack, base + n, address))
		n++;
	return n;
}

/* Enter the places of @way from number @n on; what else is open inside of those before is left. */
static int enter_way(struct inliner *inliner, struct inlined_stack *stack,
		     const struct ptd_object *object, const uint32_t *way, size_t depth, size_t n,
		     const struct inlined_moment *moment)
{
	int r = leave_to(inliner, stack, stack->base + n, moment, PTD_CALL_BY_RETURN);

	stack->n_doubtful = 0;
	stack->is_passing = false;
	for (; r == 0 && n < depth; n++)
		r = enter(inliner, stack, object, way[n], moment);
	return r;
}

/* --- what happens ----------------------------------------------------------------------------- */

/* Control has not only passed by the place where it is. Return: 0 or -ENOMEM. */
static int stay(struct inliner *inliner, struct inlined_stack *stack)
{
	const struct inlined_moment moment = stack->passing;
	uint32_t way[PTD_POSITIONS_MAX];
	const size_t depth = find_way(inliner, stack->current, way);
	const size_t n = count_open(inliner, stack, way, depth, moment.address);

	return enter_way(inliner, stack, stack->object, way, depth, n, &moment);
}

/* Return: whether a place of @way from number @n on is entered at the address. */
static bool has_entry(const struct inliner *inliner, const uint32_t *way, size_t depth, size_t n,
		      uint64_t address)
{
	while (n < depth && !is_entry_of(place_at(inliner, way[n]), address))
		n++;
	return n < depth;
}

/* Control arrives at an instruction of the part. Return: 0 or -ENOMEM. */
static int arrive(struct inliner *inliner, struct inlined_stack *stack,
		  const struct ptd_block *block, struct inlined_part *part,
		  const struct inlined_moment *moment)
{
	const bool is_open_before = stack->is_open_before;
	uint32_t way[PTD_POSITIONS_MAX];
	size_t depth, n;
	int r = 0;

	if (stack->n_called == 0 || !part->is_known)
		return 0;
	depth = find_way(inliner, part->place, way);
	n = count_open(inliner, stack, way, depth, moment->address);
	for (size_t i = n; i < depth; i++)
		see_entry(inliner, stack, way[i], part, moment->address);
	stack->is_open_before = false;
	if (n < depth && (is_open_before || has_entry(inliner, way, depth, n, moment->address))) {
		r = enter_way(inliner, stack, block->object, way, depth, n, moment);
	} else {
		if (n < depth && (!stack->is_passing || stack->current != part->place))
			stack->passing = *moment;
		stack->is_passing = n < depth;
		stack->object = block->object;
		if (stack->base + n < stack->frames.n || stack->n_doubtful > 0)
			r = doubt(inliner, stack, stack->base + n, moment);
	}
	stack->current = part->place;
	return r;
}

/* The block has this part alone. */
static void note_recent(struct inliner *inliner, const struct ptd_block *block,
			const struct inlined_part *part)
{
	const uint32_t place = part->is_entry ? INLINED_SEVERAL : part->place;

	inliner->recent[blockfacts_index(block)] =
	    (struct inlined_recent){ block, part->is_known ? place : INLINED_UNKNOWN };
}

/* The thread executes @n instructions of the run, from the one with the index @first in it on. */
static int execute(struct inliner *inliner, const struct inlined_thread *thread,
		   const struct ptd_run *run, size_t first, size_t n)
{
	struct inlined_stack *stack = &inliner->stacks.items[thread->stack];
	const struct inlined_block *block = get_block(inliner, run->block);
	const size_t begin = run->first + first, end = begin + n;
	int r = block ? 0 : -ENOMEM;

	for (size_t i = 0; r == 0 && i < block->n; i++) {
		struct inlined_part *part = &inliner->parts.items[block->first + i];
		const size_t at = part->first > begin ? part->first : begin;
		const size_t next = i + 1 < block->n ? part[1].first : run->block->n_insns;
		const struct ptd_insn *insn = &run->block->insns[at];

		if (next <= begin || at >= end)
			continue;
		r = arrive(inliner, stack, run->block, part,
			   &(struct inlined_moment){ .t = run->t,
						     .n = thread->n + (at - begin),
						     .ip = run->base + insn->offset,
						     .address = run->block->address + insn->offset,
						     .run = (uint32_t)inliner->run });
	}
	if (block && block->n == 1)
		note_recent(inliner, run->block, &inliner->parts.items[block->first]);
	return r;
}

/* Something comes that calls of the next instructions must not be put before. */
static int interrupt(struct inliner *inliner, struct inlined_stack *stack)
{
	stack->is_passing = false;
	stack->current = INLINED_ANY;
	return decide(inliner, stack);
}

/* What the marks up to the next run are about came between. */
static int take_marks(struct inliner *inliner, struct inlined_stack *stack,
		      const struct ptd_batch *batch)
{
	int r = 0;

	for (; r == 0 && inliner->mark < batch->n_marks &&
	       batch->marks[inliner->mark].run <= inliner->run;
	     inliner->mark++)
		r = interrupt(inliner, stack);
	return r;
}

/*
 * Pass the runs from @run to before @end in which nothing happens while control is in @current.
 * @n counts their instructions, which are not more than @n_max.
 *
 * Return: the run behind them.
 */
static const struct ptd_run *pass_runs(const struct inlined_recent *recent, uint32_t current,
				       const struct ptd_run *run, const struct ptd_run *end,
				       uint64_t *n, uint64_t n_max)
{
	uint64_t n_passed = 0;

	for (; run < end; run++) {
		const struct inlined_recent *at = &recent[blockfacts_index(run->block)];

		if (at->block != run->block ||
		    (at->place != current && at->place != INLINED_UNKNOWN) ||
		    n_passed + run->n > n_max)
			break;
		n_passed += run->n;
	}
	*n += n_passed;
	return run;
}

/* Pass what there is to pass before the next mark and the thread's instruction number @until. */
static void pass(struct inliner *inliner, const struct inlined_stack *stack,
		 struct inlined_thread *thread, const struct ptd_batch *batch, size_t end_run,
		 uint64_t until)
{
	const struct ptd_run *run;

	if (inliner->mark < batch->n_marks && batch->marks[inliner->mark].run < end_run)
		end_run = batch->marks[inliner->mark].run;
	if (stack->is_passing && stack->passing.n + PASSING_MAX < until)
		until = stack->passing.n + PASSING_MAX;
	if (inliner->insn > 0 || until <= thread->n)
		return;
	run = pass_runs(inliner->recent, stack->current, batch->runs + inliner->run,
			batch->runs + end_run, &thread->n, until - thread->n);
	inliner->run = (size_t)(run - batch->runs);
}

/* Take the next run, or what is left of it, but not beyond the instruction number @until. */
static int take_run(struct inliner *inliner, struct inlined_thread *thread,
		    const struct ptd_batch *batch, uint64_t until)
{
	const struct ptd_run *run = &batch->runs[inliner->run];
	const uint64_t room = until - thread->n;
	size_t n = run->n - inliner->insn;
	int r;

	if (n > room)
		n = (size_t)room;
	r = execute(inliner, thread, run, inliner->insn, n);
	thread->n += n;
	inliner->insn += n;
	if (inliner->insn == run->n) {
		inliner->insn = 0;
		inliner->run++;
	}
	return r;
}

/*
 * Take the runs of the batch to before @end_run, but not beyond the thread's instruction number
 * @until.
 */
static int take_runs(struct inliner *inliner, struct inlined_thread *thread,
		     const struct ptd_batch *batch, size_t end_run, uint64_t until)
{
	struct inlined_stack *stack = &inliner->stacks.items[thread->stack];
	int r = 0;

	while (r == 0 && inliner->run < end_run && thread->n < until) {
		r = take_marks(inliner, stack, batch);
		if (r == 0 && stack->is_passing && thread->n - stack->passing.n >= PASSING_MAX)
			r = stay(inliner, stack);
		if (r < 0)
			return r;
		pass(inliner, stack, thread, batch, end_run, until);
		if (inliner->run < end_run && thread->n < until)
			r = take_run(inliner, thread, batch, until);
	}
	return r;
}

/* --- the layer's calls ------------------------------------------------------------------------ */

/* Return: whether the function that is entered has been open. */
static bool is_open_before(const struct ptd_call *call)
{
	return call->how == PTD_CALL_BY_START || call->how == PTD_CALL_BY_INFERENCE ||
	       call->how == PTD_CALL_BY_RESUMPTION || call->how == PTD_CALL_BY_REOPENING;
}

/* The innermost function that was called is another one. */
static void set_depth(struct inlined_stack *stack, int32_t depth)
{
	stack->depth = depth;
	stack->current = INLINED_ANY;
	stack->base = stack->frames.n;
	while (stack->base > 0 && stack->frames.items[stack->base - 1].called >= depth)
		stack->base--;
}

/* A function was entered or left, and nothing is inlined in what is innermost then. */
static void note_call(struct inlined_stack *stack, const struct ptd_call *call)
{
	const bool is_entered = call->kind == PTD_CALL_ENTER;

	stack->n_called += is_entered ? 1 : -(stack->n_called > 0);
	stack->ambiguous = call->ambiguous;
	stack->is_open_before = is_entered && is_open_before(call);
	set_depth(stack, is_entered ? call->depth : call->depth - 1);
}

static int take_enter(struct inliner *inliner, struct inlined_stack *stack,
		      const struct ptd_call *found)
{
	struct ptd_call call = *found;
	const int r = stack->is_passing ? stay(inliner, stack) : decide(inliner, stack);

	call.depth += (int32_t)stack->frames.n;
	note_call(stack, found);
	return r < 0 ? r : vec_push(&inliner->calls, call);
}

/* The time and instructions of @call were spent in what is innermost now. */
static void add_inner(struct inlined_stack *stack, const struct ptd_call *call)
{
	struct inlined_frame *around = &stack->frames.items[stack->frames.n - 1];
	struct inlined_cost *cost = &stack->costs.items[stack->costs.n - 1];

	around->t_inner += call->t_total;
	around->n_inner += call->n_insns_total;
	cost->t_moved += call->t_total;
	cost->n_moved += call->n_insns_total;
}

static int take_leave(struct inliner *inliner, struct inlined_stack *stack,
		      const struct ptd_call *found)
{
	const struct inlined_moment moment = {
		.t = found->t, .n = found->n_insns, .ip = found->to, .run = found->run
	};
	const enum ptd_call_how how =
	    found->how == PTD_CALL_BY_TAIL ? PTD_CALL_BY_RETURN : found->how;
	struct ptd_call call = *found;
	int r;

	r = leave_to(inliner, stack, stack->base, &moment, how);
	stack->n_doubtful = 0;
	stack->is_passing = false;
	call.depth += (int32_t)stack->frames.n;
	if (stack->costs.n > 0 && stack->costs.items[stack->costs.n - 1].called >= found->depth) {
		const struct inlined_cost *cost = &stack->costs.items[--stack->costs.n];

		call.t_self = callstack_since(call.t_self + cost->t_moved, cost->t_inner);
		call.n_insns_self =
		    callstack_since(call.n_insns_self + cost->n_moved, cost->n_inner);
	}
	note_call(stack, found);
	if (stack->frames.n > stack->base)
		add_inner(stack, found);
	return r < 0 ? r : vec_push(&inliner->calls, call);
}

/* Frames belong to another stack, as PTD_CALL_SWITCH says. Return: 0 or -ENOMEM. */
static int move_frames(struct inliner *inliner, struct ptd_call *call)
{
	struct inlined_stack *from = &inliner->stacks.items[call->stack];
	struct inlined_stack *to = &inliner->stacks.items[call->moved_to];
	const int32_t first = from->depth - (int32_t)call->n_moved;
	const int32_t lower = (to->n_called > 0 ? to->depth : first) - first;
	const size_t n_frames = vec_bisect(&from->frames, frame, frame->called <= first);
	const size_t n_costs = vec_bisect(&from->costs, cost, cost->called <= first);

	if (from == to || call->n_moved > from->n_called)
		return 0;
	for (size_t i = n_frames; i < from->frames.n; i++) {
		struct inlined_frame frame = from->frames.items[i];

		frame.called += lower;
		if (vec_push(&to->frames, frame) < 0)
			return -ENOMEM;
	}
	for (size_t i = n_costs; i < from->costs.n; i++) {
		struct inlined_cost cost = from->costs.items[i];

		cost.called += lower;
		if (vec_push(&to->costs, cost) < 0)
			return -ENOMEM;
	}
	from->n_called -= call->n_moved;
	to->n_called += call->n_moved;
	set_depth(to, from->depth + lower);
	call->n_moved += (uint32_t)(from->frames.n - n_frames);
	from->frames.n = n_frames;
	from->costs.n = n_costs;
	set_depth(from, first);
	return 0;
}

/* Return: whether there is a stack of this number now. */
static bool has_stack(struct inliner *inliner, uint32_t number)
{
	return vec_at(&inliner->stacks, number, {});
}

static int take_switch(struct inliner *inliner, struct inlined_thread *thread,
		       const struct ptd_call *found)
{
	struct ptd_call call = *found;
	struct inlined_stack *stack = &inliner->stacks.items[thread->stack];
	int r = interrupt(inliner, stack);

	stack->n_saved = found->n_insns + stack->bias;
	thread->stack = found->stack;
	if (r == 0 && found->n_moved > 0)
		r = has_stack(inliner, found->moved_to) ? move_frames(inliner, &call) : -ENOMEM;
	if (r < 0)
		return r;
	stack = &inliner->stacks.items[found->stack];
	stack->bias = stack->n_saved - found->n_insns;
	call.depth += (int32_t)stack->frames.n;
	return vec_push(&inliner->calls, call);
}

static int take_call(struct inliner *inliner, struct inlined_thread *thread,
		     const struct ptd_call *found)
{
	struct inlined_stack *stack;

	if (!has_stack(inliner, found->stack))
		return -ENOMEM;
	/* A thread that begins, or goes on behind a gap, is on a stack of which nothing is said. */
	if (!thread->has_stack || found->kind == PTD_CALL_ENTER)
		thread->stack = found->stack;
	thread->has_stack = true;
	stack = &inliner->stacks.items[found->stack];
	switch (found->kind) {
	case PTD_CALL_ENTER:
		return take_enter(inliner, stack, found);
	case PTD_CALL_LEAVE:
		return take_leave(inliner, stack, found);
	default:
		return take_switch(inliner, thread, found);
	}
}

/* Return: whether the call may mean more than that the layer's stack is another one. */
static bool matters(const struct inlined_thread *thread, const struct inlined_stack *stack,
		    const struct ptd_call *call)
{
	if (call->stack != thread->stack || call->kind == PTD_CALL_SWITCH)
		return true;
	if (call->kind == PTD_CALL_ENTER)
		return is_open_before(call);
	return stack->costs.n > 0 && stack->costs.items[stack->costs.n - 1].called >= call->depth;
}

/*
 * Pass all that there is if nothing is inlined there, nor is the calls' cost another one.
 *
 * Return: whether that is so.
 */
static bool pass_all(struct inliner *inliner, struct inlined_thread *thread,
		     const struct ptd_batch *batch, size_t end_run, const struct ptd_call *calls,
		     size_t n_calls)
{
	struct inlined_stack *stack = &inliner->stacks.items[thread->stack];
	const struct ptd_run *end = batch->runs + end_run;
	uint64_t n = 0;

	if (stack->frames.n > 0 || stack->is_passing || stack->is_open_before || inliner->insn > 0)
		return false;
	for (size_t i = 0; i < n_calls; i++)
		if (matters(thread, stack, &calls[i]))
			return false;
	if (pass_runs(inliner->recent, INLINED_NONE, batch->runs + inliner->run, end, &n,
		      UINT64_MAX) != end)
		return false;
	inliner->run = end_run;
	thread->n += n;
	while (inliner->mark < batch->n_marks && batch->marks[inliner->mark].run <= end_run)
		inliner->mark++;
	for (size_t i = 0; i < n_calls; i++)
		note_call(stack, &calls[i]);
	return true;
}

void inliner_begin(struct inliner *inliner)
{
	inliner->run = inliner->insn = inliner->mark = 0;
	inliner->is_new_batch = true;
}

int inliner_take(struct inliner *inliner, const struct ptd_call_thread *shown,
		 const struct ptd_batch *batch, size_t end_run, const struct ptd_call *calls,
		 size_t n_calls)
{
	struct inlined_thread *thread = vec_at(&inliner->threads, shown->id, {});
	struct inlined_stack *stack;
	int r = thread ? 0 : -ENOMEM;

	if (r == 0 && thread->has_stack && (!batch || inliner->is_new_batch)) {
		stack = &inliner->stacks.items[thread->stack];
		stack->doubtful.run = stack->passing.run = 0;
		if (batch && thread->slice != batch->slice->id)
			r = interrupt(inliner, stack);
	}
	inliner->is_new_batch = false;
	if (r == 0 && batch)
		thread->slice = batch->slice->id;
	if (r == 0 && batch && thread->has_stack &&
	    pass_all(inliner, thread, batch, end_run, calls, n_calls))
		return 1;
	for (size_t i = 0; r == 0 && i < n_calls; i++) {
		if (batch && thread->has_stack)
			r = take_runs(inliner, thread, batch, end_run, calls[i].n_insns);
		if (r == 0)
			r = take_call(inliner, thread, &calls[i]);
	}
	if (r == 0 && batch && thread->has_stack)
		r = take_runs(inliner, thread, batch, end_run, UINT64_MAX);
	if (r == 0 && batch && thread->has_stack)
		r = take_marks(inliner, &inliner->stacks.items[thread->stack], batch);
	return r;
}
