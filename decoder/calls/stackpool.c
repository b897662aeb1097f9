/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calls/stackpool.h"

#include <errno.h>
#include <string.h>

#include "decoder/calls/step.h"

/* --- those alike: what each knows of the others ----------------------------------------------- */

/* Return: the index in @stack's entries of that for the same frames as @alike of @other. */
static size_t find_mirror(const struct callstack *stack, const struct alike *alike,
			  const struct callstack *other)
{
	for (size_t i = 0; i < stack->alike.n; i++)
		if (stack->alike.items[i].stack == other &&
		    stack->alike.items[i].own == alike->other &&
		    stack->alike.items[i].other == alike->own)
			return i;
	return STEP_NONE;
}

static void remove_alike(struct callstack *stack, size_t i)
{
	stack->alike.items[i] = stack->alike.items[--stack->alike.n];
}

/* Remove an entry, and the other stack's. */
static void unlink_alike(struct callstack *stack, size_t i)
{
	const struct alike alike = stack->alike.items[i];
	const size_t mirror = find_mirror(alike.stack, &alike, stack);

	remove_alike(stack, i);
	if (mirror != STEP_NONE)
		remove_alike(alike.stack, mirror);
}

/* Make room for an entry. */
static void make_room(struct callstack *stack)
{
	size_t lowest = 0;

	if (stack->alike.n < STACKPOOL_ALIKE_MAX)
		return;
	for (size_t i = 1; i < stack->alike.n; i++)
		if (stack->alike.items[i].own < stack->alike.items[lowest].own)
			lowest = i;
	unlink_alike(stack, lowest);
}

/* The first @n_a frames of @a may be the first @n_b of @b, and the other way round. */
static void link_alike(struct step *s, struct callstack *a, size_t n_a, struct callstack *b,
		       size_t n_b)
{
	const struct alike alike = { b, n_a, n_b };

	if (n_a == 0 || n_b == 0 || find_mirror(b, &alike, a) != STEP_NONE)
		return;
	make_room(a);
	make_room(b);
	if (vec_push(&a->alike, alike) < 0 || vec_push(&b->alike, { a, n_b, n_a }) < 0)
		step_fail(s, -ENOMEM);
}

/* Forget what is about frames that were left since. */
static void drop_stale(struct callstack *stack)
{
	for (size_t i = stack->alike.n; i-- > 0;)
		if (stack->alike.items[i].own > stack->n_old)
			unlink_alike(stack, i);
}

/* Return: whether frame @n - 1 of @stack is still there, and returns to where control arrives. */
static bool returns_here(const struct step *s, const struct callstack *stack, size_t n)
{
	return n > 0 && n <= stack->n_old && n <= stack->frames.n &&
	       stack->frames.items[n - 1].ret == s->ip;
}

/* Return: whether there is an entry that @alike, of one frame less, would be equal to. */
static bool has_below(const struct callstack *stack, const struct alike *alike)
{
	const struct alike below = { .own = alike->other - 1, .other = alike->own - 1 };

	return find_mirror(stack, &below, alike->stack) != STEP_NONE;
}

/* The thread is not on the stack of @alike. */
static void refute(struct step *s, struct callstack *stack, const struct alike *alike)
{
	if (stack->refuted.n < STACKPOOL_ALIKE_MAX &&
	    vec_push(&stack->refuted, { *alike, alike->stack->parking }) < 0)
		step_fail(s, -ENOMEM);
}

/*
 * The thread turned out not to be on @stack: so what it is not on may still be what waits there, if
 * that has waited since.
 */
static void restore_refuted(struct step *s, struct callstack *stack, const struct callstack *right)
{
	for (size_t i = 0; i < stack->refuted.n; i++) {
		const struct alike *a = &stack->refuted.items[i].alike;

		if (a->stack != right && a->stack->parking != 0 &&
		    a->stack->parking == stack->refuted.items[i].parking &&
		    a->own <= stack->frames.n && a->other <= a->stack->n_old &&
		    a->other <= a->stack->frames.n)
			link_alike(s, stack, a->own, a->stack, a->other);
	}
	stack->refuted.n = 0;
}

void stackpool_compare(struct step *s)
{
	struct callstack *stack = s->thread->stack;

	drop_stale(stack);
	for (size_t i = stack->alike.n; i-- > 0;) {
		struct alike *alike = &stack->alike.items[i];
		const size_t mirror = find_mirror(alike->stack, alike, stack);

		if (alike->own != stack->frames.n)
			continue;
		if (mirror != STEP_NONE && !returns_here(s, alike->stack, alike->other))
			refute(s, stack, alike);
		if (mirror == STEP_NONE || alike->own == 1 || alike->other == 1 ||
		    has_below(stack, alike) || !returns_here(s, alike->stack, alike->other)) {
			unlink_alike(stack, i);
			continue;
		}
		alike->stack->alike.items[mirror].own--;
		alike->stack->alike.items[mirror].other--;
		alike->own--;
		alike->other--;
	}
	if (stack->alike.n == 0)
		s->world->list.stats.n_decided++;
}

/* --- making stacks ---------------------------------------------------------------------------- */

/* The stack that ended last is not used yet: its number would say that nothing has changed. */
struct callstack *stackpool_new_stack(struct call_world *world)
{
	struct callstack *stack = world->unused;

	if (stack && stack != world->last_unused) {
		world->unused = stack->next_unused;
		stack->next_unused = NULL;
		return stack;
	}
	stack = calloc(1, sizeof(*stack));
	if (!stack)
		return NULL;
	stack->next = world->stacks;
	world->stacks = stack;
	stack->id = world->n_stacks++;
	return stack;
}

void stackpool_drop_stack(struct call_world *world, struct callstack *stack)
{
	while (stack->alike.n > 0)
		unlink_alike(stack, stack->alike.n - 1);
	callstack_deinit(stack, &world->list);
	*stack = (struct callstack){ .id = stack->id, .next = stack->next };
	*(world->unused ? &world->last_unused->next_unused : &world->unused) = stack;
	world->last_unused = stack;
}

void stackpool_deinit(struct stackpool *pool)
{
	vec_deinit(&pool->parked);
	vec_deinit(&pool->early);
}

/* --- those that went on early ----------------------------------------------------------------- */

/* How many functions are looked at to find returns of a stack that went on early. */
#define EARLY_DEPTH_MAX 64

/* The thread is on an unknown stack, which went on at @ip. */
static void note_early(struct step *s, uint64_t ip, uint64_t t)
{
	struct stackpool *pool = s->thread->pool;
	const struct early early = { .ip = ip, .t = t };

	if (pool->early.n < STACKPOOL_EARLY_MAX) {
		if (vec_push(&pool->early, early) < 0) {
			step_fail(s, -ENOMEM);
			return;
		}
	} else {
		pool->early.items[pool->n_early % STACKPOOL_EARLY_MAX] = early;
	}
	s->thread->stack->early = ++pool->n_early;
}

/* Return: the entry of the thread's stack; NULL: it has none, or none any more. */
static struct early *early_of(const struct step *s)
{
	const struct stackpool *pool = s->thread->pool;
	const uint64_t number = s->thread->stack->early;

	if (number == 0 || number + STACKPOOL_EARLY_MAX <= pool->n_early)
		return NULL;
	return &pool->early.items[(number - 1) % STACKPOOL_EARLY_MAX];
}

void stackpool_note_return(struct step *s)
{
	struct early *early = early_of(s);

	if (early && early->n_returns < STACKPOOL_EARLY_RETURNS_MAX)
		early->returns[early->n_returns++] = s->ip;
}

/* Return: whether functions that are open on @stack return as those of @early did. */
static bool returns_as(const struct callstack *stack, const struct early *early)
{
	const size_t n = stack->frames.n;
	size_t found = 0;

	for (size_t i = n; i-- > 0 && n - i < EARLY_DEPTH_MAX && found < early->n_returns;)
		found += stack->frames.items[i].ret == early->returns[found];
	return early->n_returns > 0 && found == early->n_returns;
}

/* Return: whether the thread's stack, which is to be parked, has been seen to go on. */
static bool went_on_early(struct step *s)
{
	struct stackpool *pool = s->thread->pool;

	for (size_t i = 0; i < pool->early.n; i++) {
		struct early *early = &pool->early.items[i];

		if (early->is_parked || early->ip != step_top(s)->ret || early->t < s->place.t ||
		    !returns_as(s->thread->stack, early))
			continue;
		early->is_parked = true;
		return true;
	}
	return false;
}

/* --- parking ---------------------------------------------------------------------------------- */

static void remove_parked(struct stackpool *pool, size_t i)
{
	pool->parked.items[i].stack->parking = 0;
	pool->parked.n--;
	memmove(&pool->parked.items[i], &pool->parked.items[i + 1],
		(pool->parked.n - i) * sizeof(*pool->parked.items));
}

/* Leave all on a stack on which no thread is. */
static void end_parked(struct stackpool *pool, struct call_world *world, size_t i,
		       const struct call_place *place)
{
	struct callstack *stack = pool->parked.items[i].stack;

	remove_parked(pool, i);
	stack->bias = stack->n_parked - place->n;
	callstack_leave_to(stack, &world->list, &world->functions, place, 0, PTD_CALL_BY_END);
	stackpool_drop_stack(world, stack);
}

/* Any thread may go on on @stack, or none: it is not that of a scheduler any more. */
static void forget_home(struct callthread *thread, const struct callstack *stack)
{
	if (thread->home == stack)
		thread->home = NULL;
}

/* Park a stack, which goes on at @ip. */
static void park(struct step *s, struct callstack *stack, uint64_t ip)
{
	struct stackpool *pool = s->thread->pool;

	forget_home(s->thread, stack);
	if (pool->parked.n >= PTD_CALLS_STACKS_MAX) {
		s->world->list.stats.n_stacks_ended++;
		end_parked(pool, s->world, 0, &s->place);
	}
	if (vec_push(&pool->parked, { .ip = ip, .stack = stack }) < 0) {
		step_fail(s, -ENOMEM);
		return;
	}
	stack->n_parked = s->place.n + stack->bias;
	stack->parking = ++s->world->n_parkings;
}

void stackpool_end(struct stackpool *pool, struct call_world *world, uint32_t thread,
		   const struct call_place *place)
{
	for (size_t i = pool->parked.n; i-- > 0;)
		if (pool->parked.items[i].stack->thread == thread)
			end_parked(pool, world, i, place);
}

/* --- going on --------------------------------------------------------------------------------- */

/* The thread parks goroutines, or lets them go on. */
static void note_scheduler(struct step *s)
{
	struct stackpool *pool = s->thread->pool;
	const uint32_t number = s->thread->shown.id + 1;

	if (pool->scheduler == 0)
		pool->scheduler = number;
	pool->has_schedulers |= pool->scheduler != number;
}

/* The thread is on @stack from now on. */
static void go_to(struct step *s, struct callstack *stack)
{
	struct callthread *thread = s->thread;

	stack->bias = stack->n_parked - s->place.n;
	stack->thread = thread->shown.id;
	thread->stack = stack;
}

/* Go on on a stack that was not seen before. */
static void go_to_new(struct step *s, bool is_whole)
{
	struct callstack *stack = stackpool_new_stack(s->world);

	if (!stack) {
		step_fail(s, -ENOMEM);
		return;
	}
	go_to(s, stack);
	stack->is_whole = is_whole;
	callstack_say_switch(stack, &s->world->list, &s->world->functions, &s->place, 0, 0);
	step_start(s);
}

/* Of those that are parked with the same address, any might be the one that is taken. */
static void keep_alike(struct step *s, struct callstack *taken)
{
	const struct stackpool *pool = s->thread->pool;
	size_t n = 0;

	drop_stale(taken);
	for (size_t i = 0; i < pool->parked.n; i++) {
		struct callstack *other = pool->parked.items[i].stack;

		if (pool->parked.items[i].ip != s->ip || n++ == STACKPOOL_ALIKE_MAX)
			continue;
		/* The function that changed stacks returns to the same address on each. */
		drop_stale(other);
		link_alike(s, taken, taken->frames.n - 1, other, other->frames.n - 1);
		other->n_old = other->frames.n;
	}
	taken->n_old = taken->frames.n;
	if (n > 0)
		s->world->list.stats.n_choices++;
}

/* Return: whether the stack, on which no thread is, is a goroutine's. */
static bool has_goroutine(const struct callstack *stack)
{
	const uint8_t kind = callstack_top(stack)->kind;

	return kind == FRAME_PARK || kind == FRAME_GROW;
}

/* Go on on the stack that is parked as number @i, whose innermost function returns. If @is_certain,
 * no other one may be the right one. */
static void go_to_parked(struct step *s, size_t i, bool is_certain)
{
	struct callstack *stack = s->thread->pool->parked.items[i].stack;

	remove_parked(s->thread->pool, i);
	go_to(s, stack);
	stack->resumed_ip = has_goroutine(stack) && !is_certain ? s->ip : 0;
	stack->resumed_t = s->place.t;
	stack->refuted.n = 0;
	if (stack->resumed_ip != 0)
		note_scheduler(s);
	if (!is_certain) {
		stack->is_guessed |= stack->resumed_ip != 0 && s->thread->pool->has_schedulers;
		keep_alike(s, stack);
	}
	callstack_say_switch(stack, &s->world->list, &s->world->functions, &s->place, 0, 0);
	step_return(s);
}

/* Return: the index of the stack that was parked first with the address; or STEP_NONE. */
static size_t find_parked(const struct step *s)
{
	const struct stackpool *pool = s->thread->pool;

	for (size_t i = 0; i < pool->parked.n; i++)
		if (pool->parked.items[i].ip == s->ip)
			return i;
	return STEP_NONE;
}

/*
 * Return: the index of the stack that the thread parked last, if what it called from there resumes
 *         a goroutine itself, without a scheduler; or STEP_NONE.
 */
static size_t find_own(const struct step *s)
{
	const struct callthread *thread = s->thread;
	const struct stackpool *pool = thread->pool;

	if (step_top(s)->kind != FRAME_GO || thread->stack != thread->home ||
	    thread->stack->frames.n != 2 || thread->parking == 0)
		return STEP_NONE;
	for (size_t i = pool->parked.n; i-- > 0;)
		if (pool->parked.items[i].stack->parking == thread->parking)
			return i;
	return STEP_NONE;
}

void stackpool_end_home(struct callthread *thread, struct call_world *world)
{
	if (thread->home && thread->home != thread->stack)
		stackpool_drop_stack(world, thread->home);
	thread->home = NULL;
}

/* The scheduler leaves its stack: what it called before will not be returned to. */
static void leave_home(struct step *s)
{
	struct callthread *thread = s->thread;

	stackpool_end_home(thread, s->world);
	thread->home = thread->stack;
	step_leave_to(s, 0, PTD_CALL_BY_UNWINDING);
	thread->home->n_parked = s->place.n + thread->home->bias;
}

/* The stack is not gone on with: a coroutine has ended. */
static void end_own(struct step *s)
{
	struct callstack *stack = s->thread->stack;

	forget_home(s->thread, stack);
	step_leave_to(s, 0, PTD_CALL_BY_END);
	stackpool_drop_stack(s->world, stack);
}

/* Leave the stack that the thread is on, by the innermost function of the kind @kind. */
static void leave_own(struct step *s, uint8_t kind)
{
	struct callthread *thread = s->thread;

	if (kind == FRAME_GO)
		leave_home(s);
	else if (kind == FRAME_SWAP)
		park(s, thread->stack, step_top(s)->ret);
	else
		end_own(s);
}

/*
 * The goroutine that the thread parked last, which is number @own, goes on elsewhere than where it
 * waited, since a panic was recovered: in a function that is open on its stack.
 *
 * Return: whether it is so.
 */
static bool go_to_recovered(struct step *s, size_t own)
{
	struct callthread *thread = s->thread;
	struct stackpool *pool = thread->pool;
	struct callstack *home = thread->stack, *stack = pool->parked.items[own].stack;
	size_t i;

	thread->stack = stack;
	i = step_find_open(s, stack->frames.n);
	thread->stack = home;
	if (i == STEP_NONE)
		return false;
	leave_home(s);
	remove_parked(pool, own);
	go_to(s, stack);
	callstack_say_switch(stack, &s->world->list, &s->world->functions, &s->place, 0, 0);
	step_unwind_to(s, i);
	return true;
}

/* Return: whether number @own goes on where it waited for its stack to become larger. */
static bool has_grown(const struct step *s, size_t own)
{
	const struct parked *parked = &s->thread->pool->parked.items[own];

	return parked->ip == s->ip && callstack_top(parked->stack)->kind == FRAME_GROW;
}

void stackpool_leave(struct step *s)
{
	const struct frame top = *step_top(s);
	const size_t own = find_own(s), parked = find_parked(s);
	size_t i;

	if (own != STEP_NONE && has_grown(s, own)) {
		leave_own(s, top.kind);
		go_to_parked(s, own, true);
		return;
	}
	if (parked != STEP_NONE) {
		const struct callstack *stack = s->thread->pool->parked.items[parked].stack;

		leave_own(s, top.kind);
		/* Parking the own one may have ended another. */
		i = find_parked(s);
		if (i != STEP_NONE && s->thread->pool->parked.items[i].stack == stack) {
			go_to_parked(s, i, false);
			return;
		}
		go_to_new(s, false);
		return;
	}
	if (top.ret == s->ip) {
		step_return(s);
		return;
	}
	if (!step_is_beginning(s)) {
		i = step_find_open(s, s->thread->stack->frames.n - 1);
		if (i != STEP_NONE && top.kind != FRAME_SWAP) {
			step_unwind_to(s, i);
			return;
		}
		if (own != STEP_NONE && go_to_recovered(s, own))
			return;
	}
	leave_own(s, top.kind);
	go_to_new(s, step_is_beginning(s));
	if (top.kind == FRAME_GO && !step_is_beginning(s))
		note_early(s, s->ip, s->place.t);
}

void stackpool_pass(struct step *s)
{
	struct stackpool *pool = s->thread->pool;
	const struct frame *top = step_top(s);
	const size_t i = pool->n_passed % STACKPOOL_PASSED_MAX;

	if (top->kind != FRAME_FUNCTION || top->ret == 0)
		return;
	pool->passed[i].ret = top->ret;
	pool->passed[i].function = top->function;
	pool->n_passed++;
}

/* Return: whether the innermost function passed its caller over, which goes on now. */
static bool has_passed(const struct step *s)
{
	const struct stackpool *pool = s->thread->pool;

	for (size_t i = 0; i < STACKPOOL_PASSED_MAX && i < pool->n_passed; i++)
		if (pool->passed[i].ret == s->ip &&
		    pool->passed[i].function == step_top(s)->function)
			return true;
	return false;
}

bool stackpool_learn(struct step *s)
{
	struct functions *functions = &s->world->functions;
	struct frame *top = step_top(s);
	uint32_t code = CODE_NONE;

	if (top->kind != FRAME_FUNCTION || top->ret == 0)
		return false;
	if (functions_get(functions, top->function)->role != FUNCTION_SWAP) {
		if (!has_passed(s))
			return false;
		step_fail(s, functions_code(functions, s->batch, s->last->block,
					    step_last_index(s->last), &code));
		if (code != top->function || !functions_learn_swap(functions, code))
			return false;
	}
	top->kind = FRAME_SWAP;
	stackpool_leave(s);
	return true;
}

void stackpool_park(struct step *s)
{
	struct callthread *thread = s->thread;

	note_scheduler(s);
	thread->parking = 0;
	/* Those of goroutines that have ended, or went on, would be taken for others that wait. */
	if (step_has_role(s, FUNCTION_FREE) || went_on_early(s)) {
		end_own(s);
	} else {
		park(s, thread->stack, step_top(s)->ret);
		thread->parking = thread->stack->parking;
	}
	if (!thread->home) {
		thread->home = stackpool_new_stack(s->world);
		if (!thread->home) {
			step_fail(s, -ENOMEM);
			return;
		}
		callstack_begin(thread->home,
				&(struct call_place){ .t = s->place.t, .n = -thread->home->bias });
	}
	go_to(s, thread->home);
	callstack_say_switch(thread->home, &s->world->list, &s->world->functions, &s->place, 0, 0);
	step_enter(s, &(struct frame){ .ret = step_next_ip(s),
				       .function = step_begin(s),
				       .kind = step_kind(s),
				       .how = PTD_CALL_BY_CALL });
}

/* --- those alike ------------------------------------------------------------------------------ */

/* Return: how many of the innermost @n frames have been given out. */
static size_t count_shown(const struct callstack *stack, size_t n)
{
	size_t n_shown = 0;

	for (size_t i = stack->frames.n - n; i < stack->frames.n; i++)
		n_shown += stack->frames.items[i].kind != FRAME_LOCAL &&
			   stack->frames.items[i].kind != FRAME_STUB;
	return n_shown;
}

/* What belongs to the frames of @from behind the first @n goes with them: see move_frames(). */
static int move_belongings(struct callstack *from, struct callstack *to, size_t n)
{
	const size_t difference = to->frames.n - n;
	size_t first_trap = from->traps.n, first_suspended = from->suspended.n;
	size_t first_jumped = from->jumped.n;

	while (first_trap > 0 && from->traps.items[first_trap - 1].frame >= n)
		first_trap--;
	while (first_suspended > 0 && from->suspended.items[first_suspended - 1].frame >= n)
		first_suspended--;
	while (first_jumped > 0 && from->jumped.items[first_jumped - 1].frame >= n)
		first_jumped--;
	for (size_t i = first_jumped; i < from->jumped.n; i++) {
		const struct jumped *jumped = &from->jumped.items[i];

		if (vec_push(&to->jumped, { jumped->function, jumped->frame + difference }) < 0)
			return -ENOMEM;
	}
	for (size_t i = first_trap; i < from->traps.n; i++) {
		const struct trap *trap = &from->traps.items[i];

		if (vec_push(&to->traps, { trap->handler, trap->frame + difference }) < 0)
			return -ENOMEM;
	}
	for (size_t i = first_suspended; i < from->suspended.n; i++) {
		const struct suspended *suspended = &from->suspended.items[i];

		if (vec_push(&to->suspended, { suspended->last, suspended->frame + difference }) <
		    0)
			return -ENOMEM;
	}
	from->traps.n = first_trap;
	from->suspended.n = first_suspended;
	from->jumped.n = first_jumped;
	to->n_attached = from->frames.n + difference;
	return 0;
}

/* The frames of @from behind the first @n (there is at least one) become those of @to. */
static void move_frames(struct step *s, struct callstack *from, struct callstack *to, size_t n)
{
	const uint64_t difference = s->place.n + to->bias - from->n_parked;
	const int32_t deeper = callstack_top(to)->depth - from->frames.items[n - 1].depth;

	if (vec_reserve(&to->frames, from->frames.n - n) < 0 || move_belongings(from, to, n) < 0) {
		step_fail(s, -ENOMEM);
		return;
	}
	for (size_t i = n; i < from->frames.n; i++) {
		struct frame frame = from->frames.items[i];

		frame.n += difference;
		frame.depth += deeper;
		frame.ambiguous = true;
		to->frames.items[to->frames.n++] = frame;
	}
	from->frames.n = n;
}

/*
 * @right is the stack that the thread was on, and not @wrong: those that might be @wrong might be
 * @right, if they return where that does. What @right had above its first @n frames is on @wrong
 * now, behind its first @n_wrong.
 */
static void move_alike(struct step *s, struct callstack *wrong, size_t n_wrong,
		       struct callstack *right, size_t n)
{
	/* To make room for a link, others are removed: so @i may be behind the last one. */
	for (size_t i = right->alike.n; i-- > 0;) {
		struct alike a;

		if (i >= right->alike.n || right->alike.items[i].own <= n)
			continue;
		a = right->alike.items[i];
		unlink_alike(right, i);
		if (a.stack != wrong)
			link_alike(s, wrong, a.own - n + n_wrong, a.stack, a.other);
	}
	for (size_t i = wrong->alike.n; i-- > 0;) {
		struct alike a;

		if (i >= wrong->alike.n || wrong->alike.items[i].own != n_wrong)
			continue;
		a = wrong->alike.items[i];
		if (a.stack == right && a.other == n)
			unlink_alike(wrong, i);
		else if (a.stack != right && a.other <= a.stack->n_old &&
			 a.other <= a.stack->frames.n &&
			 a.stack->frames.items[a.other - 1].ret == right->frames.items[n - 1].ret)
			link_alike(s, right, n, a.stack, a.other);
	}
}

/* The frames of the thread's stack are those of the one alike: the thread is on that. */
static void exchange(struct step *s, const struct alike *alike)
{
	struct callstack *wrong = s->thread->stack, *right = alike->stack;
	struct stackpool *pool = s->thread->pool;
	const size_t n = alike->other, n_wrong = wrong->frames.n;
	const size_t n_shown = count_shown(right, right->frames.n - n);
	struct parked parked;
	size_t i;

	for (i = 0; pool->parked.items[i].stack != right; i++)
		;
	parked = pool->parked.items[i];
	move_frames(s, right, wrong, n);
	/* Nothing that is on it now was left since. */
	wrong->n_old = wrong->frames.n;
	move_alike(s, wrong, n_wrong, right, n);
	restore_refuted(s, wrong, right);
	right->refuted.n = 0;
	right->n_old = right->n_old < n ? right->n_old : n;
	wrong->n_parked = s->place.n + wrong->bias;
	wrong->parking = right->parking;
	right->parking = 0;
	/* It may wait for long: others are tried before it. */
	memmove(&pool->parked.items[i], &pool->parked.items[i + 1],
		(pool->parked.n - i - 1) * sizeof(parked));
	parked.stack = wrong;
	pool->parked.items[pool->parked.n - 1] = parked;
	go_to(s, right);
	right->resumed_ip = wrong->resumed_ip;
	right->resumed_t = wrong->resumed_t;
	wrong->resumed_ip = 0;
	callstack_say_switch(right, &s->world->list, &s->world->functions, &s->place, n_shown,
			     wrong->id);
	s->world->list.stats.n_wrong++;
}

/*
 * The thread may be on a stack that is not alike its own, but alike one that is: that of two
 * choices each depends on the other, or of three stacks each was taken for the next one. Then the
 * thread exchanges its frames with each stack on the way.
 */
struct link {
	struct alike alike;
	size_t before; /* index of the link before it; STEP_NONE: the thread's stack is before it */
};

/* How many of those alike are looked at. */
#define LINKS_MAX 64

/* All ways that are known so far. */
struct chain {
	struct link links[LINKS_MAX];
	size_t n;
};

static bool is_in_chain(const struct chain *chain, const struct alike *alike)
{
	for (size_t i = 0; i < chain->n; i++)
		if (chain->links[i].alike.stack == alike->stack &&
		    chain->links[i].alike.other == alike->other)
			return true;
	return false;
}

/* Add the stacks with which the first @n frames of @stack might have to be exchanged. */
static void add_links(const struct step *s, struct chain *chain, const struct callstack *stack,
		      size_t n, size_t before)
{
	for (size_t i = 0; i < stack->alike.n && chain->n < LINKS_MAX; i++) {
		const struct alike *alike = &stack->alike.items[i];
		const struct callstack *other = alike->stack;

		if (alike->own == n && (other->parking != 0 || other == s->thread->stack) &&
		    alike->other > 0 && alike->other <= other->n_old &&
		    alike->other <= other->frames.n && !is_in_chain(chain, alike))
			chain->links[chain->n++] = (struct link){ *alike, before };
	}
}

/* Exchange frames on the way to the link number @last. Return: whether that was possible. */
static bool exchange_along(struct step *s, const struct chain *chain, size_t last)
{
	struct alike path[LINKS_MAX];
	size_t n = 0;

	for (size_t i = last; i != STEP_NONE; i = chain->links[i].before)
		path[n++] = chain->links[i].alike;
	while (n-- > 0) {
		const struct callstack *right = path[n].stack;

		if (right == s->thread->stack || right->parking == 0 ||
		    path[n].other > right->frames.n)
			return false;
		exchange(s, &path[n]);
	}
	return true;
}

bool stackpool_correct(struct step *s)
{
	struct callstack *stack = s->thread->stack;
	struct chain chain;

	drop_stale(stack);
	chain.n = 0;
	add_links(s, &chain, stack, stack->frames.n, STEP_NONE);
	for (size_t i = 0; i < chain.n; i++) {
		const struct alike *alike = &chain.links[i].alike;

		if (returns_here(s, alike->stack, alike->other)) {
			if (!exchange_along(s, &chain, i))
				return false;
			stackpool_compare(s);
			return true;
		}
		if (s->thread->search_room < LINKS_MAX)
			return false;
		s->thread->search_room -= LINKS_MAX;
		add_links(s, &chain, alike->stack, alike->other, i);
	}
	return false;
}

bool stackpool_disown(struct step *s)
{
	struct callstack *wrong = s->thread->stack, *stack;
	const struct frame top = *step_top(s);
	const uint64_t ip = wrong->resumed_ip, t = wrong->resumed_t;

	if (ip == 0 || wrong->frames.n > wrong->n_old || wrong->frames.n < 2 ||
	    top.kind != FRAME_FUNCTION || step_is_beginning(s))
		return false;
	stack = stackpool_new_stack(s->world);
	if (!stack) {
		step_fail(s, -ENOMEM);
		return true;
	}
	while (wrong->alike.n > 0)
		unlink_alike(wrong, wrong->alike.n - 1);
	wrong->resumed_ip = 0;
	park(s, wrong, top.ret);
	go_to(s, stack);
	callstack_begin(stack, &s->place);
	callstack_say_switch(stack, &s->world->list, &s->world->functions, &s->place, 0, 0);
	step_enter(s, &(struct frame){ .function = top.function, .how = PTD_CALL_BY_START });
	note_early(s, ip, t);
	s->world->list.stats.n_wrong++;
	step_return(s);
	return true;
}

/* Return: the index of the first stack that waits for the innermost function to return. */
static size_t find_waiting(const struct step *s)
{
	const struct stackpool *pool = s->thread->pool;
	const uint32_t function = step_top(s)->function;

	for (size_t i = 0; i < pool->parked.n; i++) {
		const struct callstack *stack = pool->parked.items[i].stack;

		if (pool->parked.items[i].ip == s->ip && stack->frames.n > 1 &&
		    callstack_top(stack)->kind == FRAME_FUNCTION &&
		    callstack_top(stack)->function == function)
			return i;
	}
	return STEP_NONE;
}

bool stackpool_rejoin(struct step *s)
{
	struct stackpool *pool = s->thread->pool;
	struct callstack *own = s->thread->stack, *stack;
	struct early *early = early_of(s);
	size_t i;

	if (!early || own->frames.n != 1 || step_top(s)->ret != 0)
		return false;
	i = find_waiting(s);
	if (i == STEP_NONE)
		return false;
	stack = pool->parked.items[i].stack;
	early->is_parked = true;
	step_leave(s, PTD_CALL_BY_RETURN);
	forget_home(s->thread, own);
	stackpool_drop_stack(s->world, own);
	remove_parked(pool, i);
	go_to(s, stack);
	stack->resumed_ip = early->ip;
	stack->resumed_t = early->t;
	/* Others may wait for the same. */
	stack->is_guessed = true;
	stack->n_old = stack->frames.n;
	callstack_say_switch(stack, &s->world->list, &s->world->functions, &s->place, 0, 0);
	step_leave(s, PTD_CALL_BY_END);
	return true;
}
