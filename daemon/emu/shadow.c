/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/emu/shadow.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#define PAGE 4096u

enum {
	UNKNOWN,
	FIRST,   /* handed over as the first bytes there */
	CHANGED, /* handed over in the place of other bytes */
};

struct shadow_page {
	uint8_t bytes[PAGE];
	uint8_t known[PAGE];
};

void shadow_deinit(struct shadow *shadow)
{
	map_deinit(&shadow->pages);
	arena_deinit(&shadow->arena);
	*shadow = (struct shadow){};
}

static struct shadow_page *page_at(const struct shadow *shadow, uint64_t address)
{
	const uint64_t *slot = map_get(&shadow->pages, address / PAGE);

	return slot ? (struct shadow_page *)(uintptr_t)*slot : NULL;
}

/* Return: how many of the @size bytes at @address are in its page. */
static size_t in_page(uint64_t address, size_t size)
{
	const size_t room = PAGE - address % PAGE;

	return size < room ? size : room;
}

enum shadow_verdict shadow_compare(const struct shadow *shadow, uint64_t address,
				   const uint8_t *bytes, size_t size, bool only_changed)
{
	const uint8_t least = only_changed ? CHANGED : FIRST;
	size_t n_known = 0;

	for (size_t done = 0, n; done < size; done += n) {
		const size_t at = (address + done) % PAGE;
		const struct shadow_page *page = page_at(shadow, address + done);

		n = in_page(address + done, size - done);
		for (size_t i = 0; page && i < n; i++) {
			if (page->known[at + i] < least)
				continue;
			if (page->bytes[at + i] != bytes[done + i])
				return SHADOW_CHANGED;
			n_known++;
		}
	}
	return n_known == 0 ? SHADOW_NONE : n_known < size ? SHADOW_PART : SHADOW_SAME;
}

static int reserve_page(struct shadow *shadow, uint64_t address)
{
	struct shadow_page *page;

	if (page_at(shadow, address))
		return 0;
	if (shadow->n_pages == SHADOW_PAGES_MAX)
		return -ENOSPC;
	page = arena_alloc(&shadow->arena, sizeof(*page));
	if (!page || map_put(&shadow->pages, address / PAGE, (uintptr_t)page) < 0)
		return -ENOMEM;
	shadow->n_pages++;
	return 0;
}

int shadow_reserve(struct shadow *shadow, uint64_t address, size_t size)
{
	int r = 0;

	for (size_t done = 0; r == 0 && done < size; done += in_page(address + done, size - done))
		r = reserve_page(shadow, address + done);
	return r;
}

void shadow_put(struct shadow *shadow, uint64_t address, const uint8_t *bytes, size_t size,
		bool changed)
{
	for (size_t done = 0, n; done < size; done += n) {
		const size_t at = (address + done) % PAGE;
		struct shadow_page *page = page_at(shadow, address + done);

		assert(page);
		n = in_page(address + done, size - done);
		memcpy(page->bytes + at, bytes + done, n);
		memset(page->known + at, changed ? CHANGED : FIRST, n);
	}
}
