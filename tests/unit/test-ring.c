/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* A file in memory stands for the event: what the kernel would write there is written by hand. */

#include "daemon/source/ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/source/source.h"
#include "tests/lib/failing.h"

struct fixture {
	int fd;
	size_t page;
	struct ring ring;
};

#define N_DATA 2u /* pages */
#define N_AUX  4u

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->page = (size_t)sysconf(_SC_PAGESIZE);
	f->fd = memfd_create("ring", MFD_CLOEXEC);
	assert_true(f->fd >= 0);
	assert_int_equal(ftruncate(f->fd, (off_t)((1 + N_DATA + N_AUX) * f->page)), 0);
	for (unsigned i = 1; i < 1 + N_DATA + N_AUX; i++)
		assert_int_equal(pwrite(f->fd, &(uint8_t){ (uint8_t)i }, 1, (off_t)(i * f->page)),
				 1);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)close(f->fd);
	free(f);
	return 0;
}

static bool is_mapped(const void *p, size_t page)
{
	return msync((void *)((uintptr_t)p & ~(page - 1)), 1, MS_ASYNC) == 0;
}

static void mapped(void **state)
{
	struct fixture *f = *state;
	struct ring *r = &f->ring;
	struct perf_event_mmap_page *page;
	const uint8_t *data, *aux;

	assert_int_equal(ring_map(r, f->fd, N_DATA * f->page, false), 0);
	assert_int_equal(r->data_size, N_DATA * f->page);
	assert_ptr_equal(r->data, (const uint8_t *)r->page + f->page);
	assert_int_equal(r->data[0], 1);
	assert_int_equal(r->data[f->page], 2);
	assert_null(r->aux);
	assert_int_equal(r->aux_size, 0);

	assert_int_equal(ring_map_aux(r, f->fd, N_AUX * f->page), 0);
	assert_int_equal(r->aux_size, N_AUX * f->page);
	for (unsigned i = 0; i < N_AUX; i++)
		assert_int_equal(r->aux[i * f->page], 3 + i);
	/* The kernel wants to be told where it lies before it is mapped. */
	assert_int_equal(r->page->aux_offset, (1 + N_DATA) * f->page);
	assert_int_equal(r->page->aux_size, N_AUX * f->page);

	r->page->data_head = 77;
	r->page->aux_head = 88;
	assert_int_equal(ring_data_head(r), 77);
	assert_int_equal(ring_aux_head(r), 88);
	ring_set_data_tail(r, 66);
	assert_int_equal(r->page->data_tail, 66);

	page = r->page;
	data = r->data;
	aux = r->aux;
	ring_unmap(r);
	assert_null(r->page);
	assert_null(r->aux);
	assert_int_equal(r->data_size, 0);
	assert_int_equal(r->aux_size, 0);
	assert_false(is_mapped(page, f->page));
	assert_false(is_mapped(data + f->page, f->page));
	assert_false(is_mapped(aux + (N_AUX - 1) * f->page, f->page));
	ring_unmap(r); /* nothing is mapped any more */
}

static bool is_writable(const void *p)
{
	int ends[2];
	bool writable;

	/* The kernel says EFAULT where we would get a signal. */
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "x", 1), 1);
	writable = read(ends[0], (void *)(uintptr_t)p, 1) == 1;
	(void)close(ends[0]);
	(void)close(ends[1]);
	return writable;
}

/* The kernel overwrites a ring only if whoever maps it cannot write. */
static void protected(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(ring_map(&f->ring, f->fd, N_DATA * f->page, true), 0);
	assert_false(is_writable(f->ring.page));
	assert_false(is_writable(f->ring.data));
	ring_unmap(&f->ring);
	assert_int_equal(ring_map(&f->ring, f->fd, N_DATA * f->page, false), 0);
	assert_true(is_writable(f->ring.page));
	assert_int_equal(ring_map_aux(&f->ring, f->fd, N_AUX * f->page), 0);
	assert_false(is_writable(f->ring.aux));
	ring_unmap(&f->ring);
}

static int map_both(void *userdata)
{
	struct fixture *f = userdata;
	int r;

	f->ring = (struct ring){};
	r = ring_map(&f->ring, f->fd, N_DATA * f->page, false);
	if (r == 0)
		r = ring_map_aux(&f->ring, f->fd, N_AUX * f->page);
	if (r < 0) {
		assert_null(f->ring.aux);
		ring_unmap(&f->ring);
	}
	return r;
}

static void is_whole(void *userdata)
{
	struct fixture *f = userdata;

	assert_non_null(f->ring.aux);
	ring_unmap(&f->ring);
}

static void calls_that_fail(void **state)
{
	failing_each(map_both, is_whole, *state);
	assert_int_equal(ring_map(&((struct fixture *)*state)->ring, -1, 4096, false), -EBADF);
}

/* Bytes that were written at running positions, across the ring's end too. */
static void spans(void **state)
{
	static const uint8_t bytes[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	static const struct {
		uint64_t from, n;
		size_t a_at, a_size, b_size;
	} rows[] = {
		{ 0, 0, 0, 0, 0 },  { 0, 8, 0, 8, 0 },
		{ 3, 5, 3, 5, 0 },  { 3, 6, 3, 5, 1 },
		{ 11, 8, 3, 5, 3 }, { 7, 2, 7, 1, 1 },
		{ 8, 3, 0, 3, 0 },  { (UINT64_C(1) << 40) + 6, 4, 6, 2, 2 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct source_view v = ring_span(bytes, 8, rows[i].from, rows[i].n);
		uint8_t copy[8] = {};

		if (rows[i].n > 0)
			assert_ptr_equal(v.a, bytes + rows[i].a_at);
		assert_int_equal(v.a_size, rows[i].a_size);
		assert_int_equal(v.b_size, rows[i].b_size);
		if (v.b_size > 0)
			assert_ptr_equal(v.b, bytes);
		for (size_t at = 0; at <= rows[i].n; at++) {
			ring_copy(&v, at, rows[i].n - at, copy);
			for (size_t k = 0; k + at < rows[i].n; k++)
				assert_int_equal(copy[k], (rows[i].from + at + k) % 8);
		}
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(mapped, set_up, tear_down),
		cmocka_unit_test_setup_teardown(protected, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
		cmocka_unit_test(spans),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
