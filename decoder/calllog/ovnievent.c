/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/ovnievent.h"

#include <errno.h>
#include <string.h>

static uint32_t in_order(uint32_t v, bool is_reversed)
{
	return is_reversed ? __builtin_bswap32(v) : v;
}

uint32_t ovnievent_u32(const struct ovnievent *event, size_t at)
{
	uint32_t v;

	if (at + sizeof(v) > event->size)
		return 0;
	memcpy(&v, event->payload + at, sizeof(v));
	return in_order(v, event->is_reversed);
}

uint64_t ovnievent_u64(const struct ovnievent *event, size_t at)
{
	uint64_t v;

	if (at + sizeof(v) > event->size)
		return 0;
	memcpy(&v, event->payload + at, sizeof(v));
	return event->is_reversed ? __builtin_bswap64(v) : v;
}

static int get_head(struct cursor *c, struct ovnievent *event, const char **reterr_fault)
{
	uint8_t head;
	uint64_t clock;

	if (cursor_get(c, sizeof(head), &head) < 0 ||
	    cursor_get(c, OVNI_LETTERS, event->letters) < 0 ||
	    cursor_get(c, sizeof(clock), &clock) < 0)
		return -ENODATA;
	event->clock = event->is_reversed ? __builtin_bswap64(clock) : clock;
	event->size = ovni_payload_size(head & 0xf);
	event->is_jumbo = head >> 4 == OVNI_FLAG_JUMBO;
	if (head >> 4 > OVNI_FLAG_JUMBO) {
		*reterr_fault = "an event with unknown flags";
		return -EBADMSG;
	}
	if (event->is_jumbo && (head & 0xf) != OVNI_JUMBO_CODE) {
		*reterr_fault = "a jumbo event whose size has not 4 bytes";
		return -EBADMSG;
	}
	for (size_t i = 0; i < OVNI_LETTERS; i++)
		if (event->letters[i] < ' ' || event->letters[i] > '~') {
			*reterr_fault = "an event whose model, category or value is no character";
			return -EBADMSG;
		}
	return 0;
}

int ovnievent_get(struct cursor *c, bool is_reversed, struct ovnievent *ret_event,
		  const char **reterr_fault)
{
	struct ovnievent event = { .is_reversed = is_reversed };
	struct cursor at = *c;
	int r = get_head(&at, &event, reterr_fault);

	if (r < 0)
		return r;
	if (cursor_get(&at, event.size, event.payload) < 0)
		return -ENODATA;
	if (event.is_jumbo)
		event.n_data = ovnievent_u32(&event, 0);
	*c = at;
	*ret_event = event;
	return 0;
}
