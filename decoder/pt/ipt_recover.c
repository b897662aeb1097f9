/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_recover.h"

#include <string.h>

#define PSB_SIZE 16

static uint8_t *put(uint8_t *p, const void *bytes, size_t n)
{
	memcpy(p, bytes, n);
	return p + n;
}

size_t ipt_recover_make_psb(const struct walk *walk, uint64_t ip,
			    uint8_t ret_bytes[static IPT_RECOVER_PSB_MAX])
{
	const struct walk_state *state = &walk->state;
	const uint64_t pip = state->cr3 >> 5 << 1 | (state->non_root & 1), vmcs = state->vmcs >> 12;
	uint8_t *p = ret_bytes;

	for (size_t i = 0; i < PSB_SIZE; i += 2)
		p = put(p, (const uint8_t[]){ 0x02, 0x82 }, 2);
	if (walk->tsc.has_tsc) {
		*p++ = 0x19;
		p = put(p, &walk->tsc.base, 7);
	}
	if (walk->tsc.has_tsc && tsc_counts(&walk->tsc)) {
		p = put(p, (const uint8_t[]){ 0x02, 0x73 }, 2);
		p = put(p, &walk->tsc.ctc, 2);
		p = put(p, (const uint8_t[]){ 0, 0, 0 }, 3);
	}
	if (state->cbr)
		p = put(p, (const uint8_t[]){ 0x02, 0x03, (uint8_t)state->cbr, 0 }, 4);
	if (state->has_cr3)
		p = put(put(p, (const uint8_t[]){ 0x02, 0x43 }, 2), &pip, 6);
	if (state->has_vmcs)
		p = put(put(p, (const uint8_t[]){ 0x02, 0xc8 }, 2), &vmcs, 5);
	if (state->mode)
		p = put(p,
			(const uint8_t[]){ 0x99, state->mode == 64   ? 1
						 : state->mode == 32 ? 2
								     : 0 },
			2);
	if (state->tsx & PACKET_TSX_BEGIN)
		p = put(p, (const uint8_t[]){ 0x99, 0x21 }, 2);
	*p++ = 0xdd; /* FUP */
	p = put(p, &ip, 8);
	p = put(p, (const uint8_t[]){ 0x02, 0x23 }, 2);
	return (size_t)(p - ret_bytes);
}

/* Take the branch or the event that comes next. Return: whether it goes on. */
static bool take_next(struct walk *walk, enum walk_next next)
{
	struct walk_event event;
	uint64_t unused;
	bool has_ip;

	switch (next) {
	case WALK_TNT:
		(void)walk_take_tnt(walk, &unused);
		return true;
	case WALK_TIP:
		(void)walk_take_tip(walk, &unused);
		return true;
	case WALK_EVENT:
		if (walk_take_event(walk, &event))
			return true;
		break;
	case WALK_ERROR:
		break;
	case WALK_END:
		return false;
	}
	return walk_sync(walk, walk->offset + 1, &unused, &has_ip);
}

void ipt_recover_follow(struct walk *walk, uint64_t offset)
{
	enum walk_next next;

	do
		next = walk_ahead(walk);
	while (walk->offset < offset && take_next(walk, next));
}
