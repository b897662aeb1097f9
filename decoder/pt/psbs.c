/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/psbs.h"

#include "decoder/pt/engine.h"
#include "util/psb.h"

/* Few bytes are read at each place. */
#define WINDOW ((size_t)1 << 13)

void psbs_init(struct psbs *psbs, const struct fileparts *pt, const struct engine_config *config)
{
	walk_init(&psbs->walk, &(struct walk_config){ .pt = *pt,
						      .window = WINDOW,
						      .mtc_freq = config->mtc_freq,
						      .nom_freq = config->nom_freq,
						      .cpuid_15_eax = config->cpuid_15_eax,
						      .cpuid_15_ebx = config->cpuid_15_ebx });
}

void psbs_deinit(struct psbs *psbs)
{
	walk_deinit(&psbs->walk);
}

int psbs_error(const struct psbs *psbs)
{
	return walk_read_error(&psbs->walk);
}

uint64_t psbs_find(struct psbs *psbs, uint64_t from)
{
	return psb_find(&psbs->walk.window, from);
}

uint64_t psbs_time(struct psbs *psbs, uint64_t offset)
{
	(void)walk_begin_at(&psbs->walk, offset);
	return psbs->walk.tsc.header_tsc;
}

uint64_t psbs_timed_size(struct window *pt, uint64_t offset)
{
	const uint32_t between = PACKETS_OF_TIME | PACKET_BIT(MODE_EXEC) | PACKET_BIT(MODE_TSX) |
				 PACKET_BIT(PIP) | PACKET_BIT(VMCS) | PACKET_BIT(FUP);
	struct packet_reader reader = {};
	struct packet packet;
	uint64_t at = offset + PSB_SIZE;

	do {
		size_t n;
		const uint8_t *p = window_at(pt, at, PACKET_SIZE_MAX, &n);

		if (packet_read(&reader, p, n, &packet) != 0)
			return 0;
		at += packet.size;
		if (packet.type == PACKET_TSC)
			return at - offset;
	} while (packet_is_in(&packet, between));
	return 0;
}

/* How far from the end of a span its last PSB is looked for first. */
#define LAST_SIZE (UINT64_C(1) << 15)

/* Return: the offset of the last PSB that states no time later than @limit; the size of the span
 * if there is none. */
static uint64_t last_psb(struct psbs *psbs, uint64_t limit)
{
	uint64_t last = psbs->walk.size;

	for (uint64_t back = LAST_SIZE; last == psbs->walk.size; back *= 2) {
		const uint64_t from = back < psbs->walk.size ? psbs->walk.size - back : 0;

		for (uint64_t at = psbs_find(psbs, from); at < psbs->walk.size;
		     at = psbs_find(psbs, at + 1)) {
			if (limit < UINT64_MAX && psbs_time(psbs, at) > limit)
				break;
			last = at;
		}
		if (from == 0)
			break;
	}
	return last;
}

uint64_t psbs_last_time(struct psbs *psbs)
{
	(void)walk_begin_at(&psbs->walk, last_psb(psbs, UINT64_MAX));
	(void)walk_pass_until(&psbs->walk, psbs->walk.size, UINT64_MAX);
	return walk_now(&psbs->walk);
}

uint64_t psbs_find_later(struct psbs *psbs, uint64_t time)
{
	uint64_t at = last_psb(psbs, time);

	/* All of it may be later. */
	if (at == psbs->walk.size)
		at = psbs_find(psbs, 0);
	while (at < psbs->walk.size) {
		const uint64_t next = psbs_find(psbs, at + 1);

		(void)walk_begin_at(&psbs->walk, at);
		if (walk_pass_until(&psbs->walk, next, time))
			return psbs->walk.offset;
		at = next;
	}
	return psbs->walk.size;
}
