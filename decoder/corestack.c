/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/corestack.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/codemap.h"
#include "decoder/file/core.h"
#include "decoder/image/object.h"
#include "decoder/image/space.h"
#include "decoder/sideband/timeline.h"
#include "decoder/symbol/ehframe.h"
#include "decoder/symbol/source.h"
#include "decoder/symbol/unwind.h"
#include "util/vec.h"

/* A stack of 8 MiB has fewer functions, unless it is made up. */
#define FRAMES_MAX (1u << 18)

static_assert((int)_CORE_REGS == (int)_UNWIND_REGS && (int)CORE_RSP == (int)UNWIND_RSP &&
		  (int)CORE_RIP == (int)UNWIND_RIP,
	      "both have the numbers of DWARF");

struct corestacks {
	struct core *core;
	const struct space *space; /* of the process; borrowed; NULL: not known */
	VEC(struct ptd_core_thread) threads;
	VEC(struct ptd_core_frame) frames; /* of the thread that was asked for last */
};

static int add_threads(struct corestacks *stacks)
{
	const struct core *core = stacks->core;
	int r = 0;

	for (size_t i = 0; i < core->threads.n && r == 0; i++)
		r = vec_push(&stacks->threads,
			     { .pid = core->pid,
			       .tid = core->threads.items[i].tid,
			       .space = stacks->space ? space_id(stacks->space) : UINT32_MAX,
			       .is_first = i == 0,
			       .signal = core->signal,
			       .signal_code = core->signal_code,
			       .signal_address = core->signal_address });
	return r;
}

int corestacks_new(const char *path, const struct timeline *timeline,
		   struct corestacks **ret_stacks, char **reterr_message)
{
	_cleanup_(corestacks_freep) struct corestacks *stacks = calloc(1, sizeof(*stacks));
	int r;

	if (!stacks)
		return -ENOMEM;
	r = core_open(path, &stacks->core, reterr_message);
	if (r < 0)
		return r;
	stacks->space = timeline_last_space(timeline, stacks->core->pid);
	r = add_threads(stacks);
	if (r == 0)
		*ret_stacks = TAKE(stacks);
	return r;
}

struct corestacks *corestacks_free(struct corestacks *stacks)
{
	if (!stacks)
		return NULL;
	stacks->core = core_close(stacks->core);
	vec_deinit(&stacks->threads);
	vec_deinit(&stacks->frames);
	free(stacks);
	return NULL;
}

const struct ptd_core_thread *corestacks_threads(const struct corestacks *stacks, size_t *ret_n)
{
	*ret_n = stacks->threads.n;
	return stacks->threads.items;
}

static bool read_memory(void *userdata, uint64_t address, void *ret_bytes, size_t size)
{
	return core_read(userdata, address, ret_bytes, size);
}

/* Find how the function around @ip is unwound. Return: 0; -ENOENT if it is not known; -ENOMEM. */
static int find_entry(const struct corestacks *stacks, struct codemap *map, uint64_t ip,
		      struct ehframe_entry *ret_entry, uint64_t *ret_address)
{
	const struct symtab_symbol *unused;
	const struct object *object;
	struct symbol_source *source;
	uint64_t end;
	int r;

	r = codemap_find(map, stacks->space, UINT64_MAX, ip, &object, ret_address);
	if (r < 0)
		return r;
	source = object ? object->symbols : NULL;
	if (!source || !source->ops->entry)
		return -ENOENT;
	r = symbol_source_find(source, *ret_address, &unused, &end);
	if (r < 0)
		return r;
	return source->ops->entry(source, *ret_address, ret_entry) ? 0 : -ENOENT;
}

/*
 * Go on to the caller of @frame. @is_call is whether its address is behind a call, and then whether
 * the caller's is.
 *
 * Return: 0; UNWIND_END; -ENOMEM; or another negative errno if the caller is not known.
 */
static int go_to_caller(const struct corestacks *stacks, struct codemap *map,
			struct unwind_frame *frame, bool *is_call)
{
	const struct unwind_memory memory = { .read = read_memory, .userdata = stacks->core };
	const uint64_t rsp = frame->regs[UNWIND_RSP];
	struct ehframe_entry entry;
	uint64_t address;
	int r;

	/* A call that does not return may be the last instruction of its function. */
	r = find_entry(stacks, map, frame->regs[UNWIND_RIP] - *is_call, &entry, &address);
	if (r == 0)
		r = unwind_frame(&entry, address, frame, &memory, frame);
	if (r != 0)
		return r;
	/* The stack grows downwards; a signal's handler may have another one. */
	if (!entry.is_signal && frame->regs[UNWIND_RSP] <= rsp)
		return -EBADMSG;
	*is_call = !entry.is_signal;
	return frame->regs[UNWIND_RIP] ? 0 : UNWIND_END;
}

int corestacks_walk(struct corestacks *stacks, struct codemap *map, size_t i,
		    const struct ptd_core_frame **ret_frames, size_t *ret_n, bool *ret_complete)
{
	struct unwind_frame frame = { .known = (1u << _UNWIND_REGS) - 1 };
	bool is_call = false;
	int r = 0;

	memcpy(frame.regs, stacks->core->threads.items[i].regs, sizeof(frame.regs));
	stacks->frames.n = 0;
	while (r == 0 && stacks->frames.n < FRAMES_MAX) {
		r = vec_push(&stacks->frames, { .ip = frame.regs[UNWIND_RIP], .is_call = is_call });
		if (r == 0 && !stacks->space)
			break;
		if (r == 0)
			r = go_to_caller(stacks, map, &frame, &is_call);
	}
	if (r == -ENOMEM)
		return r;
	*ret_frames = stacks->frames.items;
	*ret_n = stacks->frames.n;
	*ret_complete = r == UNWIND_END;
	return 0;
}
