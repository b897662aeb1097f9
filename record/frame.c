/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "record/frame.h"

#include <linux/perf_event.h>
#include <string.h>

#include "record/trailer.h"

void frame_put(struct frame *frame, const void *bytes, size_t size)
{
	if (size > 0 && frame->size <= frame->room && size <= frame->room - frame->size)
		memcpy(frame->bytes + frame->size, bytes, size);
	frame->size += size;
}

void frame_begin(struct frame *frame, uint32_t type, uint16_t misc, void *to, size_t room)
{
	const struct perf_event_header header = { .type = type, .misc = misc };

	*frame = (struct frame){ .bytes = to, .room = room };
	frame_put(frame, &header, sizeof(header));
}

static void put_zeros(struct frame *frame, size_t n)
{
	static const uint8_t zero;

	while (n-- > 0)
		frame_put(frame, &zero, sizeof(zero));
}

void frame_put_string(struct frame *frame, const char *string, size_t alignment)
{
	const size_t size = strlen(string) + 1;

	frame_put(frame, string, size);
	put_zeros(frame, -size % alignment);
}

size_t frame_end(struct frame *frame, const struct trailer *trailer)
{
	uint8_t bytes[TRAILER_SIZE];
	uint16_t size;

	if (trailer) {
		put_zeros(frame, -frame->size % 8);
		trailer_write(trailer, bytes);
		frame_put(frame, bytes, sizeof(bytes));
	}
	if (frame->size > frame->room || frame->size > UINT16_MAX)
		return 0;
	size = (uint16_t)frame->size;
	memcpy(frame->bytes + offsetof(struct perf_event_header, size), &size, sizeof(size));
	return size;
}
