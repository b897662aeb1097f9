/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Memtrace out: files that are written side by side hold what was put into them, with records that
 * were changed afterwards, compressed or plain; and their bytes depend neither on the threads nor
 * on how many records are added at a time.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/drmemtrace/out.h"
#include "ptd/decode.h"
#include "tests/lib/tempdir.h"
#include "tests/lib/unpack.h"

#define RECORD MEMTRACE_OUT_WATCHED

static char base[TEMPDIR_SIZE];

static int make_base(void **state)
{
	(void)state;
	tempdir_make("memtrace_out", base);
	return 0;
}

static int remove_base(void **state)
{
	(void)state;
	tempdir_remove(base);
	return 0;
}

static int open_directory(unsigned int *ret_number)
{
	static unsigned int n;
	char path[TEMPDIR_SIZE + 16];

	(void)snprintf(path, sizeof(path), "%s/%u", base, *ret_number = n++);
	assert_int_equal(mkdir(path, 0700), 0);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* So many records are added at a time, at most. */
static size_t n_at_once = SIZE_MAX;

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* --- a file, and what it must hold ---------------------------------------------------------- */

struct written {
	struct memtrace_out out;
	VEC(uint8_t) bytes;
	VEC(size_t) ends;      /* of its members */
	VEC(uint64_t) watched; /* offsets */
};

static void written_deinit(struct written *w)
{
	memtrace_out_deinit(&w->out);
	vec_deinit(&w->bytes);
	vec_deinit(&w->ends);
	vec_deinit(&w->watched);
}

static void add_at_once(struct written *w, size_t n, bool is_loop, uint32_t *seed)
{
	uint8_t *room;

	assert_int_equal(memtrace_out_use(&w->out), 0);
	assert_int_equal(memtrace_out_room(&w->out, n * RECORD, &room), 0);
	for (size_t i = 0; i < n * RECORD; i++)
		room[i] = (uint8_t)(is_loop ? (w->bytes.n + i) % (RECORD * 37) : next_random(seed));
	assert_int_equal(vec_reserve(&w->bytes, n * RECORD), 0);
	memcpy(w->bytes.items + w->bytes.n, room, n * RECORD);
	w->bytes.n += n * RECORD;
	w->out.n += n * RECORD;
	assert_int_equal(memtrace_out_offset(&w->out), w->bytes.n);
}

/* Add @n records: of a loop, or of anything. */
static void add(struct written *w, size_t n, bool is_loop, uint32_t *seed)
{
	while (n > n_at_once) {
		add_at_once(w, n_at_once, is_loop, seed);
		n -= n_at_once;
	}
	add_at_once(w, n, is_loop, seed);
}

static void watch(struct written *w, uint32_t *seed)
{
	const uint64_t offset = w->bytes.n;

	add(w, 1, false, seed);
	assert_int_equal(memtrace_out_watch(&w->out, offset), 0);
	assert_int_equal(vec_push(&w->watched, offset), 0);
}

static void change(struct written *w, size_t i, uint32_t *seed)
{
	uint8_t *bytes = w->bytes.items + w->watched.items[i];

	for (size_t k = 4; k < RECORD; k++)
		bytes[k] = (uint8_t)next_random(seed);
	assert_int_equal(memtrace_out_use(&w->out), 0);
	assert_int_equal(memtrace_out_patch(&w->out, w->watched.items[i], bytes), 0);
}

static void end_member(struct written *w)
{
	assert_int_equal(memtrace_out_use(&w->out), 0);
	assert_int_equal(memtrace_out_end_member(&w->out), 0);
	assert_int_equal(vec_push(&w->ends, w->bytes.n), 0);
}

/* Do something with a file, as @seed says. */
static void step(struct written *w, uint32_t *seed)
{
	const uint32_t what = next_random(seed) % 16;

	if (what == 0 && w->watched.n < MEMTRACE_OUT_WATCH_MAX) {
		watch(w, seed);
	} else if (what == 1 && w->watched.n > 0) {
		change(w, next_random(seed) % w->watched.n, seed);
	} else if (what == 2 && w->watched.n > 0) {
		w->watched.n = next_random(seed) % w->watched.n;
		assert_int_equal(memtrace_out_use(&w->out), 0);
		assert_int_equal(memtrace_out_settle(&w->out, w->watched.items[w->watched.n]), 0);
	} else if (what == 3 && !w->out.pool->is_plain) {
		add(w, 1, true, seed); /* no member is empty */
		end_member(w);
		add(w, 1, true, seed);
	} else {
		add(w, 1 + next_random(seed) % (MEMTRACE_OUT_BUFFER / RECORD), what < 14, seed);
	}
}

static const char *const suffixes[] = { [false] = ".zip", [true] = "" }; /* plain? */

/* The file on disk holds what @w says. Return: its own bytes, which the caller frees. */
static uint8_t *check(const struct written *w, unsigned int directory, size_t file,
		      size_t *ret_size)
{
	char path[TEMPDIR_SIZE + 64];
	struct unpacked u;
	uint8_t *bytes;
	struct stat st;
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%u/x%zu.0000.trace%s", base, directory, file,
		       suffixes[w->out.pool->is_plain]);
	u = unpack(path);
	assert_int_equal(u.bytes.n, w->bytes.n);
	assert_memory_equal(u.bytes.items, w->bytes.items, w->bytes.n);
	assert_int_equal(u.ends.n, w->ends.n + 1);
	for (size_t i = 0; i < w->ends.n; i++)
		assert_int_equal(u.ends.items[i], w->ends.items[i]);
	if (!w->out.pool->is_plain)
		assert_string_equal(u.names.items[0], "chunk.00000000");
	unpacked_deinit(&u);

	assert_int_equal(stat(path, &st), 0);
	bytes = malloc((size_t)st.st_size);
	f = fopen(path, "re");
	assert_true(bytes && f && fread(bytes, 1, (size_t)st.st_size, f) == (size_t)st.st_size);
	fclose(f);
	*ret_size = (size_t)st.st_size;
	return bytes;
}

/* Write @n_files files in @n_steps steps. Return: what they are made of, a sum. */
static uint64_t write_files(size_t n_files, size_t n_steps, bool is_plain, size_t n_threads)
{
	_cleanup_(freep) struct written *files = calloc(n_files, sizeof(*files));
	struct ptd_threads *threads = NULL;
	struct memtrace_out_pool pool;
	uint64_t sum = 0;
	unsigned int directory;
	uint32_t seed = 7;
	const int fd = open_directory(&directory);

	assert_true(files && fd >= 0);
	if (n_threads > 0)
		assert_int_equal(ptd_threads_new(n_threads, &threads), 0);
	assert_int_equal(memtrace_out_pool_init(&pool, fd, NULL, is_plain, threads), 0);
	for (size_t i = 0; i < n_files; i++) {
		char stem[32];

		(void)snprintf(stem, sizeof(stem), "x%zu", i);
		assert_int_equal(memtrace_out_create(&files[i].out, &pool, stem), 0);
		add(&files[i], 1, true, &seed);
	}
	for (size_t i = 0; i < n_steps; i++)
		step(&files[next_random(&seed) % n_files], &seed);
	for (size_t i = 0; i < n_files; i++) {
		assert_int_equal(memtrace_out_use(&files[i].out), 0);
		assert_int_equal(memtrace_out_finish(&files[i].out), 0);
	}
	assert_int_equal(memtrace_out_pool_flush(&pool), 0);
	for (size_t i = 0; i < n_files; i++) {
		size_t size;
		_cleanup_(freep) uint8_t *bytes = check(&files[i], directory, i, &size);

		for (size_t k = 0; k < size; k++)
			sum = sum * 31 + bytes[k];
		written_deinit(&files[i]);
	}
	memtrace_out_pool_deinit(&pool);
	ptd_threads_free(threads);
	(void)close(fd);
	return sum;
}

/* Few files with many pieces each, and more files than may be open. */
static void any_threads(void **state)
{
	static const struct {
		size_t n_files, n_steps;
		bool is_plain;
	} rows[] = {
		{ 1, 60, false }, { 3, 60, false }, { MEMTRACE_OUT_OPEN_MAX + 20, 300, false },
		{ 1, 60, true },  { 3, 60, true },  { MEMTRACE_OUT_OPEN_MAX + 20, 300, true }
	};
	static const size_t n_threads[] = { 1, 2, 8 };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const uint64_t sum =
		    write_files(rows[i].n_files, rows[i].n_steps, rows[i].is_plain, 0);

		print_message("  %zu files%s\n", rows[i].n_files, suffixes[rows[i].is_plain]);
		for (size_t k = 0; k < ARRAY_LEN(n_threads); k++) {
			n_at_once = k ? 100 * k : SIZE_MAX;
			assert_int_equal(write_files(rows[i].n_files, rows[i].n_steps,
						     rows[i].is_plain, n_threads[k]),
					 sum);
		}
		n_at_once = SIZE_MAX;
	}
}

/* --- what is not finished ------------------------------------------------------------------- */

static bool has_file(int fd, const char *name)
{
	return faccessat(fd, name, F_OK, 0) == 0;
}

/* A file that is not finished never has its name, whichever threads are still busy with it. */
static void leave_unfinished(bool is_plain, size_t n_threads)
{
	const char *const part = is_plain ? "x.0000.trace.part" : "x.0000.trace.zip.part";
	const char *const name = is_plain ? "x.0000.trace" : "x.0000.trace.zip";
	struct ptd_threads *threads = NULL;
	struct memtrace_out_pool pool;
	struct written w = {};
	unsigned int directory;
	uint32_t seed = 1;
	const int fd = open_directory(&directory);

	assert_int_equal(ptd_threads_new(n_threads, &threads), 0);
	assert_int_equal(memtrace_out_pool_init(&pool, fd, NULL, is_plain, threads), 0);
	assert_int_equal(memtrace_out_create(&w.out, &pool, "x"), 0);
	for (size_t i = 0; i < 100; i++)
		add(&w, MEMTRACE_OUT_BUFFER / RECORD, false, &seed);
	written_deinit(&w);
	memtrace_out_pool_deinit(&pool);
	ptd_threads_free(threads);
	assert_false(has_file(fd, name));
	assert_true(has_file(fd, part));
	(void)close(fd);
}

static void unfinished(void **state)
{
	(void)state;
	for (int is_plain = 0; is_plain <= 1; is_plain++) {
		leave_unfinished(is_plain, 1);
		leave_unfinished(is_plain, 3);
	}
}

/* When no more may be written, the error comes at the latest with the end, and so does no name. */
static void fill(bool is_plain)
{
	uint64_t room = 1 << 20;
	struct memtrace_out_pool pool;
	struct written w = {};
	unsigned int directory;
	uint32_t seed = 1;
	const int fd = open_directory(&directory);
	uint8_t *to;
	int r = 0;

	assert_int_equal(memtrace_out_pool_init(&pool, fd, &room, is_plain, NULL), 0);
	assert_int_equal(memtrace_out_create(&w.out, &pool, "x"), 0);
	for (size_t i = 0; i < 40 && r == 0; i++) {
		r = memtrace_out_room(&w.out, MEMTRACE_OUT_BUFFER / RECORD * RECORD, &to);
		if (r < 0)
			break;
		for (size_t k = 0; k < MEMTRACE_OUT_BUFFER / RECORD * RECORD; k++)
			to[k] = (uint8_t)next_random(&seed);
		w.out.n += MEMTRACE_OUT_BUFFER / RECORD * RECORD;
	}
	assert_int_equal(r, -EFBIG);
	written_deinit(&w);
	memtrace_out_pool_deinit(&pool);
	assert_false(has_file(fd, is_plain ? "x.0000.trace" : "x.0000.trace.zip"));
	(void)close(fd);
}

static void no_room(void **state)
{
	(void)state;
	fill(false);
	fill(true);
}

/* A record that was settled, and then compressed, cannot be changed any more. */
static void settled(void **state)
{
	struct memtrace_out_pool pool;
	struct written w = {};
	uint8_t record[RECORD] = {};
	unsigned int directory;
	uint32_t seed = 1;
	const int fd = open_directory(&directory);

	(void)state;
	assert_int_equal(memtrace_out_pool_init(&pool, fd, NULL, false, NULL), 0);
	assert_int_equal(memtrace_out_create(&w.out, &pool, "x"), 0);
	watch(&w, &seed);
	watch(&w, &seed);
	assert_int_equal(memtrace_out_settle(&w.out, RECORD), 0);
	end_member(&w);
	assert_int_equal(memtrace_out_patch(&w.out, RECORD, record), -ENOENT);
	assert_int_equal(memtrace_out_patch(&w.out, 0, record), 0);
	written_deinit(&w);
	memtrace_out_pool_deinit(&pool);
	(void)close(fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_threads),
		cmocka_unit_test(unfinished),
		cmocka_unit_test(no_room),
		cmocka_unit_test(settled),
	};

	return cmocka_run_group_tests(tests, make_base, remove_base);
}
