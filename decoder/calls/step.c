/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calls/step.h"

#include "decoder/calls/stackpool.h"

/* How far outside an activation another one of its function is looked for, or a handler. */
#define OTHERS_MAX 256

/* How many functions are inferred below those of a stack that the rules lost track of,
 * since unknown code may return for ever. For other stacks it is PTD_CALLS_DEPTH_MAX. */
#define LOST_DEPTH_MAX 64

/* How many frames are looked at to find those whose return address their code dropped. */
#define ABANDONED_MAX 64

void step_fail(struct step *s, int r)
{
	if (r < 0)
		s->world->list.r = r;
}

/* --- the last instruction --------------------------------------------------------------------- */

bool step_continues(const struct step *s)
{
	const struct ptd_block *block = s->last->block;
	const uint64_t target = s->last->base + (uint64_t)block->target;

	switch (step_last_class(s)) {
	case PTD_INSN_OTHER:
	case PTD_INSN_PTWRITE:
		return s->ip == step_next_ip(s);
	case PTD_INSN_JUMP:
	case PTD_INSN_CALL:
		return s->ip == target || block->mode != 64;
	case PTD_INSN_JUMP_COND:
		return s->ip == target || s->ip == step_next_ip(s) || block->mode != 64;
	default:
		return true;
	}
}

/* --- where control arrives -------------------------------------------------------------------- */

static const struct function *function_at(const struct step *s, uint32_t function)
{
	return functions_get(&s->world->functions, function);
}

uint32_t step_begin(struct step *s)
{
	uint32_t function = 0;

	if (step_is_named(s))
		return s->code;
	step_fail(s, functions_begin(&s->world->functions, s->run->block, s->insn, &function));
	return function;
}

/* Return: the function that is there. */
static uint32_t function_here(struct step *s)
{
	uint32_t function;

	if (!step_is_named(s) &&
	    functions_nearest(&s->world->functions, s->run->block, s->insn, &function))
		return function;
	return step_begin(s);
}

void step_set_code(struct step *s, uint32_t code)
{
	const struct function *f;

	s->code = code;
	s->role = FUNCTION_PLAIN;
	s->begins = false;
	if (!step_is_named(s))
		return;
	f = function_at(s, code);
	s->role = f->role;
	s->begins = functions_is_beginning(f, s->batch, s->run->block, s->insn);
}

void step_join(struct step *s)
{
	const struct frame *top = step_top(s);
	uint32_t code = CODE_NONE;

	step_fail(s, functions_code(&s->world->functions, s->batch, s->last->block,
				    step_last_index(s->last), &code));
	if (top->kind == FRAME_FUNCTION && code == top->function)
		functions_join(&s->world->functions, s->code, code);
}

bool step_is_after_silent_jump(struct step *s)
{
	const struct frame *top = step_top(s);
	uint32_t code = CODE_NONE, nearest;

	if (step_is_named(s))
		return false;
	step_fail(s, functions_code(&s->world->functions, s->batch, s->last->block,
				    step_last_index(s->last), &code));
	return code == s->code && (!functions_nearest(&s->world->functions, s->last->block,
						      step_last_index(s->last), &nearest) ||
				   nearest != top->function);
}

bool step_is_beginning(const struct step *s)
{
	return step_is_named(s) ? s->begins
				: functions_begins(&s->world->functions, s->run->block, s->insn);
}

bool step_is_inside(struct step *s, const struct frame *frame)
{
	struct functions *functions = &s->world->functions;
	const struct function *f = function_at(s, frame->function);
	uint32_t nearest;

	if (!step_is_named(s))
		return f->shown.symbol == PTD_NO_SYMBOL &&
		       f->shown.object == s->run->block->object &&
		       functions_nearest(functions, s->run->block, s->insn, &nearest) &&
		       nearest == frame->function;
	return frame->function == s->code ||
	       functions_is_cold_part(functions, s->code, frame->function) ||
	       functions_is_cold_part(functions, frame->function, s->code) ||
	       (!s->begins && functions_is_same_script(functions, s->code, frame->function));
}

bool step_is_thunk(const struct step *s)
{
	const struct ptd_block *block = s->run->block;
	const struct ptd_insn *insn = &block->insns[s->insn];

	if (step_has_role(s, FUNCTION_THUNK))
		return true;
	if (s->ip >> 63 == 0 || (step_is_named(s) && s->begins))
		return false;
	return insn->iclass == PTD_INSN_JUMP_INDIRECT ||
	       (insn->iclass == PTD_INSN_JUMP_COND && block->target == (int64_t)insn->offset - 1);
}

uint8_t step_kind(const struct step *s)
{
	static const uint8_t kinds[] = {
		[FUNCTION_PLAIN] = FRAME_FUNCTION,
		[FUNCTION_STUB] = FRAME_STUB,
		[FUNCTION_THUNK] = FRAME_STUB,
		[FUNCTION_PREFIX] = FRAME_STUB,
		[FUNCTION_RET] = FRAME_FUNCTION,
		[FUNCTION_COLD] = FRAME_FUNCTION,
		[FUNCTION_SWAP] = FRAME_SWAP,
		[FUNCTION_SET] = FRAME_SET,
		[FUNCTION_GO] = FRAME_GO,
		[FUNCTION_PARK] = FRAME_PARK,
		[FUNCTION_GROW] = FRAME_GROW,
		[FUNCTION_FREE] = FRAME_FUNCTION,
		[FUNCTION_INTERPRETER] = FRAME_FUNCTION,
		[FUNCTION_RESTART] = FRAME_FUNCTION,
	};

	return step_is_thunk(s) ? FRAME_STUB : kinds[s->role];
}

/* --- what happens ----------------------------------------------------------------------------- */

void step_enter(struct step *s, const struct frame *frame)
{
	callstack_enter(s->thread->stack, &s->world->list, &s->world->functions, &s->place, frame);
	step_add_search_room(s->thread);
}

void step_leave_to(struct step *s, size_t n, enum ptd_call_how how)
{
	callstack_leave_to(s->thread->stack, &s->world->list, &s->world->functions, &s->place, n,
			   how);
}

void step_leave(struct step *s, enum ptd_call_how how)
{
	step_leave_to(s, s->thread->stack->frames.n - 1, how);
}

void step_start(struct step *s)
{
	callstack_begin(s->thread->stack, &s->place);
	step_enter(s, &(struct frame){ .function = function_here(s), .how = PTD_CALL_BY_START });
}

void step_restart(struct step *s)
{
	s->place.from = 0;
	callstack_break(s->thread->stack, &s->world->list, &s->world->functions, &s->place);
	step_start(s);
}

void step_tail(struct step *s)
{
	struct frame frame = *step_top(s);

	frame.function = step_begin(s);
	/* What a call within the function went on to was called by that. */
	frame.how = frame.kind == FRAME_LOCAL ? PTD_CALL_BY_CALL : PTD_CALL_BY_TAIL;
	switch (frame.kind) {
	case FRAME_SIGNAL:
	case FRAME_RESTORER:
	case FRAME_KERNEL:
		break;
	default:
		frame.kind = step_kind(s);
		break;
	}
	callstack_tail(s->thread->stack, &s->world->list, &s->world->functions, &s->place, &frame);
}

void step_name_stub(struct step *s)
{
	const uint8_t kind = step_kind(s);

	if (kind == FRAME_STUB) {
		step_top(s)->function = step_begin(s);
		return;
	}
	callstack_name(s->thread->stack, &s->world->list, &s->world->functions, &s->place,
		       step_begin(s));
	step_top(s)->kind = kind;
}

/* --- which frame ------------------------------------------------------------------------------ */

/* Return: how many of @n frames may be looked at. */
static size_t search_at_most(const struct callthread *thread, size_t n)
{
	return n < thread->search_room ? n : (size_t)thread->search_room;
}

size_t step_find_returning(struct step *s, const struct frame *frames, size_t n)
{
	const size_t n_searched = search_at_most(s->thread, n);

	for (size_t i = n; i-- > n - n_searched;)
		if (frames[i].ret == s->ip)
			return i;
	s->thread->search_room -= n_searched;
	return STEP_NONE;
}

size_t step_find_open(struct step *s, size_t n)
{
	const struct frame *frames = s->thread->stack->frames.items;
	const size_t n_searched = search_at_most(s->thread, n);

	for (size_t i = n; i-- > n - n_searched;)
		if (frames[i].kind != FRAME_LOCAL && step_is_inside(s, &frames[i]))
			return i;
	s->thread->search_room -= n_searched;
	return STEP_NONE;
}

size_t step_find_jumped(struct step *s, size_t n)
{
	const struct callstack *stack = s->thread->stack;
	const struct jumped *jumped = stack->jumped.items;

	for (size_t i = stack->jumped.n; i > 0 && i + OTHERS_MAX > stack->jumped.n; i--) {
		const struct frame frame = { .function = jumped[i - 1].function };

		if (jumped[i - 1].frame < n)
			break;
		if (step_is_inside(s, &frame))
			return i - 1;
	}
	return STEP_NONE;
}

size_t step_find_unnamed(struct step *s, size_t n)
{
	const struct frame *frames = s->thread->stack->frames.items;
	const struct ptd_object *object = s->run->block->object;
	const size_t n_searched = search_at_most(s->thread, n);

	if (step_is_named(s) || object->name[0] != '[')
		return STEP_NONE;
	for (size_t i = n; i-- > n - n_searched;) {
		const struct function *f = function_at(s, frames[i].function);

		if (f->shown.symbol == PTD_NO_SYMBOL && f->shown.object == object)
			return i;
	}
	s->thread->search_room -= n_searched;
	return STEP_NONE;
}

size_t step_find_interrupted(struct step *s)
{
	const struct frame *frames = s->thread->stack->frames.items;
	const size_t n = s->thread->stack->frames.n;
	const size_t n_searched = search_at_most(s->thread, n);

	for (size_t i = n; i-- > n - n_searched;) {
		const struct frame *f = &frames[i];

		if ((f->kind == FRAME_SIGNAL || f->kind == FRAME_RESTORER) &&
		    (f->ret == s->ip || (f->by_syscall && f->ret == s->ip + SYSCALL_SIZE)))
			return i;
	}
	s->thread->search_room -= n_searched;
	return STEP_NONE;
}

size_t step_find_trap(struct step *s, size_t *ret_trap)
{
	const struct callstack *stack = s->thread->stack;

	for (size_t i = stack->traps.n; i > 0 && i + OTHERS_MAX > stack->traps.n; i--) {
		if (stack->traps.items[i - 1].handler != s->ip)
			continue;
		*ret_trap = i - 1;
		return stack->traps.items[i - 1].frame;
	}
	return STEP_NONE;
}

size_t step_find_kernel(struct step *s)
{
	const struct frame *frames = s->thread->stack->frames.items;
	const size_t n = s->thread->stack->frames.n;
	const size_t n_searched = search_at_most(s->thread, n);

	for (size_t i = n; i-- > n - n_searched;)
		if (frames[i].kind == FRAME_KERNEL)
			return i;
	s->thread->search_room -= n_searched;
	return STEP_NONE;
}

/* --- below the lowest frame ------------------------------------------------------------------- */

void step_enter_below(struct step *s, bool was_resumed)
{
	struct callstack *stack = s->thread->stack;
	const struct frame *hidden = stack->hidden.items;
	size_t i = stack->hidden.n;
	struct frame frame = { .how = stack->is_whole ? PTD_CALL_BY_START : PTD_CALL_BY_INFERENCE,
			       .ambiguous = stack->early > 0 };

	/* What was resumed had the next hidden frame below it. */
	if (!was_resumed)
		i = step_find_returning(s, hidden, i);
	if (i != STEP_NONE && i > 0 && step_is_inside(s, &hidden[i - 1])) {
		frame = hidden[i - 1];
		frame.how = PTD_CALL_BY_RESUMPTION;
		s->world->list.n_frames -= stack->hidden.n - (i - 1);
		stack->hidden.n = i - 1;
	} else {
		if (stack->low <= (stack->is_lost ? -LOST_DEPTH_MAX : -PTD_CALLS_DEPTH_MAX)) {
			callstack_begin(stack, &s->place);
			frame.how = PTD_CALL_BY_START;
		}
		frame.function = function_here(s);
		stackpool_note_return(s);
	}
	step_enter(s, &frame);
}

void step_return(struct step *s)
{
	const bool was_resumed =
	    step_top(s)->how == PTD_CALL_BY_RESUMPTION && step_top(s)->ret != 0;

	if (stackpool_rejoin(s))
		return;
	step_leave(s, PTD_CALL_BY_RETURN);
	if (s->thread->stack->frames.n == 0)
		step_enter_below(s, was_resumed);
}

/* Return: whether another of the next frames below @n is of the function where control arrives. */
static bool has_other(struct step *s, size_t n)
{
	const struct frame *frames = s->thread->stack->frames.items;

	for (size_t i = n; i > 0 && i + OTHERS_MAX > n; i--)
		if (frames[i - 1].kind != FRAME_LOCAL && step_is_inside(s, &frames[i - 1]))
			return true;
	return false;
}

void step_unwind_to(struct step *s, size_t i)
{
	const size_t n = s->thread->stack->frames.n;

	step_leave_to(s, i + 1, PTD_CALL_BY_UNWINDING);
	if (i + 1 < n && has_other(s, i)) {
		step_top(s)->ambiguous = true;
		s->world->list.stats.n_choices++;
	}
}

void step_catch(struct step *s, size_t i, size_t trap)
{
	step_leave_to(s, i + 1, PTD_CALL_BY_UNWINDING);
	s->thread->stack->traps.n = trap;
}

void step_lose(struct step *s)
{
	struct callstack *stack = s->thread->stack;

	if (stack->is_lost || stack->is_whole) {
		step_restart(s);
		return;
	}
	stack->is_lost = true;
	step_leave_to(s, 0, PTD_CALL_BY_UNWINDING);
	step_enter_below(s, false);
}

void step_drop_abandoned(struct step *s, uint64_t ret)
{
	const struct callstack *stack = s->thread->stack;
	const struct functions *functions = &s->world->functions;
	const struct ptd_block *block = s->last->block;
	uint32_t own = FUNCTION_NONE;

	if (block->insns[step_last_index(s->last)].symbol != PTD_NO_SYMBOL)
		return;
	(void)functions_nearest(functions, block, step_last_index(s->last), &own);
	for (size_t i = stack->frames.n; i > 1 && i + ABANDONED_MAX > stack->frames.n; i--) {
		const struct frame *frame = &stack->frames.items[i - 1];
		const struct function *f = functions_get(functions, frame->function);

		if (frame->function == own || frame->kind != FRAME_FUNCTION ||
		    f->shown.symbol != PTD_NO_SYMBOL || f->shown.object != block->object)
			return;
		if (frame->ret == ret) {
			step_leave_to(s, i - 1, PTD_CALL_BY_UNWINDING);
			return;
		}
	}
}

void step_drop_locals(struct step *s, uint64_t ret)
{
	const struct callstack *stack = s->thread->stack;

	for (size_t i = stack->frames.n; i > 1 && i + ABANDONED_MAX > stack->frames.n; i--) {
		const struct frame *frame = &stack->frames.items[i - 1];

		if (frame->kind != FRAME_LOCAL)
			return;
		if (frame->ret == ret) {
			step_leave_to(s, i - 1, PTD_CALL_BY_UNWINDING);
			return;
		}
	}
}
