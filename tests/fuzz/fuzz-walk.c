/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * PT bytes to the walk over packets, without code. Whatever the bytes: it comes to an end, goes
 * forward only, what it takes by the first byte alone is what it would take otherwise, and it takes
 * the same by a window that holds hardly more than a packet.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/pt/walk.h"

#define ERRATA_ALL 0x3ff

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
	if (!holds)
		abort();
}

/* Everything that was taken, as one number. */
static uint64_t mix(uint64_t hash, uint64_t value)
{
	return (hash ^ value) * UINT64_C(0x9e3779b97f4a7c15) + (hash >> 29);
}

/* Take what comes next. Return: whether packets go on. */
static bool take(struct walk *walk, uint64_t *hash)
{
	struct walk_event event;
	uint64_t bits, ip;
	unsigned n;
	bool has_ip;

	walk_pass_time(walk);
	if (walk_quick_tnt(walk, &bits, &n) || walk_quick_long_tnt(walk, &bits, &n)) {
		*hash = mix(mix(*hash, bits), n);
		return true;
	}
	if (walk_quick_tip(walk, &ip)) {
		*hash = mix(mix(*hash, ip), 1);
		return true;
	}
	switch (walk_ahead(walk)) {
	case WALK_TNT:
		n = walk_take_tnt(walk, &bits);
		need(n < 48);
		*hash = mix(mix(*hash, bits), n);
		return true;
	case WALK_TIP:
		has_ip = walk_take_tip(walk, &ip);
		*hash = mix(mix(*hash, ip), has_ip);
		return true;
	case WALK_EVENT:
		if (!walk_take_event(walk, &event))
			return false;
		need(event.offset <= event.end && event.end <= walk->size);
		*hash = mix(mix(*hash, event.kind), event.ip);
		while (walk->n_notes > 0)
			(void)walk_take_note(walk);
		return true;
	default:
		return false;
	}
}

/*
 * Return: a hash of all that was taken. @quick_max: how far it may be taken quickly; @window: how
 * many bytes are in memory at once, 0: all.
 */
static uint64_t walk_all(const uint8_t *data, size_t size, uint32_t errata, uint64_t quick_max,
			 size_t window)
{
	uint64_t offset, hash = 0, before = 0;
	struct walk_point point;
	struct walk walk;
	bool has_ip;

	walk_init(&walk, &(struct walk_config){ .pt = fileparts_in_memory(data, size),
						.window = window,
						.errata = errata,
						.mtc_freq = 3,
						.nom_freq = 24,
						.cpuid_15_eax = 2,
						.cpuid_15_ebx = 200,
						.has_events = true });
	walk.quick_max = quick_max;
	for (;;) {
		need(walk_used(&walk) <= walk.offset && walk.offset <= size);
		if (walk_recover(&walk, &point)) {
			walk_resume(&walk, &point);
		} else {
			if (!walk_sync(&walk, walk.offset, &offset, &has_ip))
				break;
			need(offset <= size);
		}
		while (take(&walk, &hash)) {
			need(walk.offset >= before);
			before = walk.offset;
			hash = mix(mix(hash, walk.tsc.now), walk.is_timed);
		}
		hash = mix(hash, walk.offset);
	}
	need(walk_read_error(&walk) == 0);
	walk_deinit(&walk);
	return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint32_t errata[] = { 0, ERRATA_ALL };

	for (size_t i = 0; i < ARRAY_LEN(errata); i++) {
		const uint64_t hash = walk_all(data, size, errata[i], UINT64_MAX, 0);

		need(walk_all(data, size, errata[i], 0, 0) == hash);
		need(walk_all(data, size, errata[i], UINT64_MAX, WALK_WINDOW_MIN) == hash);
	}
	return 0;
}
