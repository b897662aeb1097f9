/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/source/ring.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/source/source.h"

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

int ring_map(struct ring *ring, int fd, size_t data_size, bool overwrite)
{
	/* Whether records are overwritten is said by how they are mapped. */
	const int protection = overwrite ? PROT_READ : PROT_READ | PROT_WRITE;
	void *map;

	map = mmap(NULL, page_size() + data_size, protection, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	*ring = (struct ring){
		.page = map,
		.data = (const uint8_t *)map + page_size(),
		.data_size = data_size,
	};
	return 0;
}

int ring_map_aux(struct ring *ring, int fd, size_t aux_size)
{
	const size_t offset = page_size() + ring->data_size;
	void *map;

	ring->page->aux_offset = offset;
	ring->page->aux_size = aux_size;
	/* Its pages are there already, but a snapshot is not to be kept up by finding them. */
	map = mmap(NULL, aux_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, (off_t)offset);
	if (map == MAP_FAILED)
		return -errno;
	ring->aux = map;
	ring->aux_size = aux_size;
	return 0;
}

static void unmap(const void *bytes, size_t size)
{
	(void)munmap((void *)(uintptr_t)bytes, size);
}

void ring_unmap(struct ring *ring)
{
	if (ring->aux)
		unmap(ring->aux, ring->aux_size);
	if (ring->page)
		unmap(ring->page, page_size() + ring->data_size);
	*ring = (struct ring){};
}

/* Acquire: pairs with the barrier before the kernel's store of the head. */
uint64_t ring_data_head(const struct ring *ring)
{
	return __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
}

uint64_t ring_aux_head(const struct ring *ring)
{
	return __atomic_load_n(&ring->page->aux_head, __ATOMIC_ACQUIRE);
}

/* Release: the kernel writes there only after what we read before. */
void ring_set_data_tail(struct ring *ring, uint64_t tail)
{
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
}

struct source_view ring_span(const uint8_t *bytes, uint64_t size, uint64_t from, uint64_t n)
{
	const uint64_t start = from & (size - 1);
	const uint64_t first = n < size - start ? n : size - start;

	return (struct source_view){
		.a = bytes + start,
		.a_size = first,
		.b = bytes,
		.b_size = n - first,
	};
}

size_t ring_before(const struct source_view *view, uint64_t since)
{
	const size_t size = view->a_size + view->b_size;

	if (since >= view->head)
		return size;
	return view->head - since < size ? size - (view->head - since) : 0;
}

void ring_copy(const struct source_view *view, size_t at, size_t n, uint8_t *to)
{
	const size_t left = at < view->a_size ? view->a_size - at : 0;
	const size_t from_a = n < left ? n : left;

	if (from_a > 0)
		memcpy(to, view->a + at, from_a);
	if (n > from_a)
		memcpy(to + from_a, view->b + (at + from_a - view->a_size), n - from_a);
}
