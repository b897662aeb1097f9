/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/handover.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/plugin/coderecord.h"

/* Longest time that a translation waits for a process that was stopped while it wrote a record. */
#define LOCK_PATIENCE_NS UINT64_C(5000000)

/* Room that is reserved for records of the beginnings of programs, on which all other records
 * depend. */
#define RESERVE_MAX UINT64_C(4096)

void handover_init(struct handover *handover, const struct attach *attach)
{
	*handover = (struct handover){ .attach = attach };
}

static bool has_room(const struct attach *attach, const struct coderecord *record)
{
	const struct emu_pool *pool = attach->pool;
	const uint64_t size = attach->layout.code_size;
	const uint64_t head = atomic_load_explicit(&pool->code_head, memory_order_relaxed);
	const uint64_t tail = atomic_load_explicit(&pool->code_tail, memory_order_acquire);
	const uint64_t reserve = record->kind == CODERECORD_START ? 0
				 : size / 4 < RESERVE_MAX         ? size / 4
								  : RESERVE_MAX;

	return head - tail <= size && size - (head - tail) >= record->size + reserve;
}

/* Return: whether the record was written to the ring. */
static bool put_code(const struct attach *attach, const struct coderecord *record,
		     const uint8_t *bytes)
{
	const struct emu_pool_layout *l = &attach->layout;
	struct emu_pool *pool = attach->pool;
	uint64_t head;
	bool fits;

	if (!attach_lock(&pool->code_lock, LOCK_PATIENCE_NS))
		return false;
	fits = has_room(attach, record);
	if (fits) {
		head = atomic_load_explicit(&pool->code_head, memory_order_relaxed);
		attach_put(attach, emu_code_offset(l), l->code_size, head, record, sizeof(*record));
		if (record->n_bytes > 0)
			attach_put(attach, emu_code_offset(l), l->code_size, head + sizeof(*record),
				   bytes, record->n_bytes);
		atomic_store_explicit(&pool->code_head, head + record->size, memory_order_release);
	}
	attach_unlock(&pool->code_lock);
	return fits;
}

/* Without the beginning ptd would take the program's code for that of the program before. */
static bool say_start(struct handover *handover)
{
	const struct coderecord record = {
		.size = coderecord_size(0),
		.kind = CODERECORD_START,
		.pid = handover->pid,
		.parent_pid = handover->parent_pid,
		.start = handover->start,
		.time = handover->forked,
		.address = handover->parent_start,
	};

	if (!handover->started)
		handover->started = put_code(handover->attach, &record, NULL);
	return handover->started;
}

void handover_start(struct handover *handover, uint32_t pid)
{
	handover->pid = pid;
	handover->start = attach_now_ns();
	handover->started = false;
	(void)say_start(handover);
}

void handover_fork_prepare(struct handover *handover)
{
	if (handover->started)
		handover->forked = attach_now_ns();
}

void handover_fork_child(struct handover *handover, uint32_t pid)
{
	/* A parent that has not handed over its beginning has handed over nothing; if it is a child
	 * itself, its code is that of its own parent. */
	if (handover->started) {
		handover->parent_pid = handover->pid;
		handover->parent_start = handover->start;
	}
	handover_start(handover, pid);
}

static uint64_t hide_code(struct handover *handover)
{
	atomic_fetch_add(&handover->attach->pool->code_lost, 1);
	return HANDOVER_HIDDEN;
}

static uint64_t hand_over(struct handover *handover, bool changed, uint64_t address,
			  const uint8_t *bytes, size_t size)
{
	const struct coderecord record = {
		.size = coderecord_size((uint32_t)size),
		.kind = changed ? CODERECORD_CHANGED : CODERECORD_NEW,
		.pid = handover->pid,
		.start = handover->start,
		.time = attach_now_ns(),
		.address = address,
		.n_bytes = (uint32_t)size,
	};

	if (size > CODERECORD_BYTES_MAX || !say_start(handover) ||
	    shadow_reserve(&handover->shadow, address, size) < 0 ||
	    !put_code(handover->attach, &record, bytes))
		return hide_code(handover);
	shadow_put(&handover->shadow, address, bytes, size, changed);
	if (changed)
		atomic_fetch_add_explicit(&handover->n_changes, 1, memory_order_release);
	return handover_changes(handover);
}

uint64_t handover_code(struct handover *handover, enum handover_place place, uint64_t address,
		       const uint8_t *bytes, size_t size)
{
	/* A decoder does not use code that was in other memory there before for the code of a
	 * file. */
	const enum shadow_verdict verdict =
	    shadow_compare(&handover->shadow, address, bytes, size, place == HANDOVER_WRITTEN);

	switch (verdict) {
	case SHADOW_SAME:
		return handover_changes(handover);
	case SHADOW_CHANGED:
		return hand_over(handover, true, address, bytes, size);
	case SHADOW_NONE:
	case SHADOW_PART:
		break;
	}
	/* Where no bytes were handed over, a decoder uses those of the file. */
	if (place == HANDOVER_FILE)
		return verdict == SHADOW_NONE ? 0 : handover_changes(handover);
	return hand_over(handover, place == HANDOVER_WRITTEN, address, bytes, size);
}

/* --- shadow ----------------------------------------------------------------------------------- */

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

static struct shadow_page *page_at(const struct shadow *shadow, uint64_t address)
{
	return map_pointer(&shadow->pages, address / PAGE);
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
