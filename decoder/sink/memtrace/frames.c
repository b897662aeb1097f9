/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/memtrace/frames.h"

#include <assert.h>
#include <string.h>

void memtrace_returns_deinit(struct memtrace_returns *returns)
{
	vec_deinit(&returns->addresses);
}

int memtrace_returns_push(struct memtrace_returns *returns, uint64_t address)
{
	uint64_t *items = returns->addresses.items;

	if (returns->addresses.n == MEMTRACE_RETURNS_MAX) {
		returns->addresses.n /= 2;
		memcpy(items, items + returns->addresses.n, returns->addresses.n * sizeof(*items));
		returns->is_cut = true;
	}
	return vec_push(&returns->addresses, address);
}

void memtrace_returns_pop(struct memtrace_returns *returns)
{
	if (returns->addresses.n > 0)
		returns->addresses.n--;
}

bool memtrace_returns_top(const struct memtrace_returns *returns, uint64_t *ret_address)
{
	const size_t n = returns->addresses.n;

	*ret_address = n > 0 ? returns->addresses.items[n - 1] : 0;
	return n > 0 || !returns->is_cut;
}

void memtrace_frames_deinit(struct memtrace_frames *frames)
{
	vec_deinit(&frames->stack);
}

int memtrace_frames_push(struct memtrace_frames *frames, const struct memtrace_frame *frame)
{
	struct memtrace_frame *items = frames->stack.items;

	if (frames->stack.n == MEMTRACE_FRAMES_MAX) {
		frames->cut |= !items[0].closed;
		memmove(items, items + 1, (MEMTRACE_FRAMES_MAX - 1) * sizeof(*items));
		frames->stack.n--;
	}
	return vec_push(&frames->stack, *frame);
}

struct memtrace_frame *memtrace_frames_top(const struct memtrace_frames *frames)
{
	return frames->stack.n ? &frames->stack.items[frames->stack.n - 1] : NULL;
}

bool memtrace_frames_empty(const struct memtrace_frames *frames)
{
	return !frames->stack.n && !frames->cut;
}

bool memtrace_frames_deeper(const struct memtrace_frames *frames, uint64_t pc)
{
	for (size_t i = 0; i + 1 < frames->stack.n; i++) {
		const struct memtrace_frame *frame = &frames->stack.items[i];

		if (!frame->closed && (frame->pc == pc || frame->restarted == pc))
			return true;
	}
	return false;
}

void memtrace_frames_pop(struct memtrace_frames *frames)
{
	assert(frames->stack.n > 0);

	/* Closed frames wait for the open one above them. */
	do
		frames->stack.n--;
	while (frames->stack.n > 0 && frames->stack.items[frames->stack.n - 1].closed);
}

void memtrace_frames_restore(struct memtrace_frames *frames, size_t n)
{
	assert(n >= frames->stack.n && n <= frames->stack.n_capacity);

	frames->stack.n = n;
}
