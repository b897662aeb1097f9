/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/sums.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "decoder/file/reading.h"
#include "decoder/file/textline.h"
#include "decoder/util/threads.h"
#include "ptd/snapshot.h"
#include "util/message.h"
#include "util/pieces.h"
#include "util/regular.h"
#include "util/vec.h"

#define HEX_SIZE (SHA256_HEX_SIZE - 1)

/* The sizes of files that ptd writes: memory and the kernel's code, and all others but the data
 * file. One that is larger, which may have nothing but holes, would be hashed for hours. */
#define LARGE_SIZE_MAX (UINT64_C(64) << 30)
#define SMALL_SIZE_MAX (UINT64_C(512) << 20)

/* How many bytes of the data file are one task: some pieces. */
#define STRETCH_SIZE (4 * PIECES_SIZE)

/* One line: a file and its hash. */
struct sum {
	struct task task;
	struct sums *sums;
	char *path;
	char expected[SHA256_HEX_SIZE];
	uint64_t size;    /* when the lines were read: it only says which files are large */
	bool is_left_out; /* it is hashed in another way: the data file, by its pieces */

	size_t thread; /* that hashes it */
	struct progress progress;
	uint64_t n_told; /* bytes that were added to sums->n_new */

	/* What came of it. */
	int r;
	char hex[SHA256_HEX_SIZE];
};

/* A part of the data file. */
struct stretch {
	struct task task;
	struct sums *sums;
	uint64_t offset, n;
	int r; /* what came of it */
};

struct sums {
	int dir_fd;
	const char *dir;
	struct ptd_threads *threads; /* or NULL */
	struct progress *progress;   /* or NULL; of the calling thread, which is number 0 */
	char **reterr_message;

	VEC(struct sum) items; /* in the order of the lines */
	struct pieces *pieces; /* of the data file; owned; NULL: it is hashed as a whole */
	int data_fd;
	VEC(struct stretch) stretches; /* of the data file */
	VEC(struct sum *) largest_first;
	VEC(struct task *) tasks;
	bool has_data, has_manifest; /* are among them */
	uint64_t n_new;              /* bytes that were hashed and not added to @progress yet */
	bool stops;                  /* what is still to be hashed does not matter any more */
	bool is_canceled;            /* the receiver of the progress does not want the rest */
};

#define complain(s, r, format, ...) \
	message_set((s)->reterr_message, (r), "%s: " format, (s)->dir, ##__VA_ARGS__)

/* --- the lines -------------------------------------------------------------------------------- */

/* A name in the sums may not lead out of the snapshot. */
static bool path_is_inside(const char *path)
{
	if (path[0] == '/' || path[0] == 0)
		return false;
	for (const char *at = path; at; at = strchr(at, '/')) {
		at += *at == '/';
		if (strncmp(at, "..", 2) == 0 && (at[2] == 0 || at[2] == '/'))
			return false;
	}
	return true;
}

/* Take one line apart: the hash in lower-case hex, two characters, the path. */
static bool split_line(char *line, const char **ret_hash, const char **ret_path)
{
	if (strspn(line, "0123456789abcdef") != HEX_SIZE || line[HEX_SIZE] != ' ')
		return false;
	if (line[HEX_SIZE + 1] != ' ' && line[HEX_SIZE + 1] != '*')
		return false;

	line[HEX_SIZE] = 0;
	*ret_hash = line;
	*ret_path = line + HEX_SIZE + 2;
	return path_is_inside(*ret_path);
}

static uint64_t size_max(const char *path)
{
	static const char *const large[] = { PTD_SNAPSHOT_MEM "/", PTD_SNAPSHOT_JIT "/",
					     PTD_SNAPSHOT_KCORE_DIR "/" };

	if (strncmp(path, PTD_SNAPSHOT_DATA, strlen(PTD_SNAPSHOT_DATA)) == 0)
		return UINT64_MAX;
	for (size_t i = 0; i < ARRAY_LEN(large); i++)
		if (strncmp(path, large[i], strlen(large[i])) == 0)
			return LARGE_SIZE_MAX;
	return SMALL_SIZE_MAX;
}

static int add_sum(struct sums *s, const char *hash, const char *path)
{
	struct sum sum = { .sums = s };
	struct stat st;
	int r;

	r = vec_reserve(&s->items, 1);
	if (r < 0)
		return r;
	sum.path = strdup(path);
	if (!sum.path)
		return -ENOMEM;
	memcpy(sum.expected, hash, sizeof(sum.expected));
	if (fstatat(s->dir_fd, path, &st, 0) == 0)
		sum.size = (uint64_t)st.st_size;
	s->items.items[s->items.n++] = sum;
	return 0;
}

static int read_lines(struct sums *s, const struct mapfile *file)
{
	struct cursor lines = textline_first(file);
	char line[TEXTLINE_SIZE_MAX];
	const char *hash, *path;
	int r;

	for (size_t n = 1; (r = textline_next(&lines, line)) != -ENODATA; n++) {
		if (r < 0 || !split_line(line, &hash, &path))
			return complain(s, -EBADMSG,
					PTD_SNAPSHOT_SUMS " line %zu: expected a SHA-256, two "
							  "blanks and a path inside the snapshot",
					n);
		r = add_sum(s, hash, path);
		if (r < 0)
			return complain(s, r, PTD_SNAPSHOT_SUMS ": %s", strerror(-r));
		s->has_data = s->has_data || strcmp(path, PTD_SNAPSHOT_DATA) == 0;
		s->has_manifest = s->has_manifest || strcmp(path, PTD_SNAPSHOT_MANIFEST) == 0;
	}
	return 0;
}

/* Return: the line of the file @path, or NULL. */
static struct sum *find_sum(const struct sums *s, const char *path)
{
	for (size_t i = 0; i < s->items.n; i++)
		if (strcmp(s->items.items[i].path, path) == 0)
			return &s->items.items[i];
	return NULL;
}

/* Check that there is a line for each data file that would be read: data.0, data.1, … */
static int check_data_files(const struct sums *s)
{
	for (size_t i = 0;; i++) {
		char name[32];

		(void)snprintf(name, sizeof(name), PTD_SNAPSHOT_DATA ".%zu", i);
		if (faccessat(s->dir_fd, name, F_OK, 0) < 0)
			return 0;
		if (!find_sum(s, name))
			return complain(s, -EKEYREJECTED,
					"%s is there, but is not in " PTD_SNAPSHOT_SUMS
					": the snapshot was written without it (--force decodes it "
					"all the same)",
					name);
	}
}

/* --- hashing ---------------------------------------------------------------------------------- */

/* Report the bytes that were hashed since the last call. The calling thread alone may do that. */
static void report_new(struct sums *s)
{
	if (progress_add(s->progress, __atomic_exchange_n(&s->n_new, 0, __ATOMIC_RELAXED)) == 0)
		return;
	s->is_canceled = true;
	__atomic_store_n(&s->stops, true, __ATOMIC_RELAXED);
}

/* @done bytes of a file have been hashed. Return: whether to stop. */
static int report(void *userdata, uint64_t done, uint64_t total)
{
	struct sum *sum = userdata;
	struct sums *s = sum->sums;

	(void)__atomic_add_fetch(&s->n_new, done - sum->n_told, __ATOMIC_RELAXED);
	sum->n_told = done;
	if (sum->thread == 0)
		report_new(s);
	return __atomic_load_n(&s->stops, __ATOMIC_RELAXED);
}

/* A task: hash one file. */
static void hash_file(struct task *task, size_t thread)
{
	struct sum *sum = (struct sum *)task;
	_cleanup_(fd_closep) int fd = -1;
	uint64_t size = 0;

	sum->thread = thread;
	sum->progress = (struct progress){ .report = report, .userdata = sum };
	if (__atomic_load_n(&sum->sums->stops, __ATOMIC_RELAXED)) {
		sum->r = -ECANCELED;
		return;
	}
	fd = regular_open(sum->sums->dir_fd, sum->path, 0);
	sum->r = fd < 0 ? fd
		 : sum->size > size_max(sum->path)
		     ? -EFBIG
		     : sha256_fd(fd, NULL, &sum->progress, sum->hex, &size);
	if (sum->r == 0)
		(void)report(sum, size, size);
	if (sum->r < 0 || strcmp(sum->hex, sum->expected) != 0)
		__atomic_store_n(&sum->sums->stops, true, __ATOMIC_RELAXED);
}

/* A task: check a part of the data file. */
static void check_stretch(struct task *task, size_t thread)
{
	struct stretch *stretch = (struct stretch *)task;
	struct sums *s = stretch->sums;
	uint64_t n = 0;

	if (__atomic_load_n(&s->stops, __ATOMIC_RELAXED)) {
		stretch->r = -ECANCELED;
		return;
	}
	stretch->r = pieces_check(s->pieces, s->data_fd, stretch->offset, stretch->n, &n);
	if (stretch->r == 0 && n < stretch->n)
		stretch->r = -EKEYREJECTED;
	if (stretch->r < 0)
		__atomic_store_n(&s->stops, true, __ATOMIC_RELAXED);
	(void)__atomic_add_fetch(&s->n_new, stretch->n, __ATOMIC_RELAXED);
	if (thread == 0)
		report_new(s);
}

static int by_size(const void *a, const void *b)
{
	const struct sum *const *x = a, *const *y = b;

	return COMPARE((*y)->size, (*x)->size);
}

/* Make tasks of the data file, if it has pieces that are all to be hashed. */
static int add_stretches(struct sums *s, uint64_t size)
{
	const size_t n = (size_t)(size / STRETCH_SIZE + (size % STRETCH_SIZE > 0));
	int r = vec_reserve(&s->stretches, n);

	if (r == 0)
		r = vec_reserve(&s->tasks, n);
	for (uint64_t at = 0; at < size && r == 0; at += STRETCH_SIZE) {
		struct stretch *stretch = &s->stretches.items[s->stretches.n++];

		*stretch =
		    (struct stretch){ .task.run = check_stretch,
				      .sums = s,
				      .offset = at,
				      .n = size - at < STRETCH_SIZE ? size - at : STRETCH_SIZE };
		s->tasks.items[s->tasks.n++] = &stretch->task;
	}
	progress_expect(s->progress, size);
	return r;
}

/* Make tasks of the files, the largest first. */
static int add_files(struct sums *s)
{
	int r = vec_reserve(&s->largest_first, s->items.n);

	if (r == 0)
		r = vec_reserve(&s->tasks, s->items.n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < s->items.n; i++) {
		struct sum *sum = &s->items.items[i];

		sum->task.run = hash_file;
		if (sum->is_left_out)
			continue;
		progress_expect(s->progress, sum->size);
		s->largest_first.items[s->largest_first.n++] = sum;
	}
	vec_sort(&s->largest_first, by_size);
	for (size_t i = 0; i < s->largest_first.n; i++)
		s->tasks.items[s->tasks.n++] = &s->largest_first.items[i]->task;
	return 0;
}

/* This thread, which reports the progress, runs the first task in any case. */
static void run_tasks(struct sums *s)
{
	const bool alone = threads_n(s->threads) == 1;

	for (size_t i = 1; i < s->tasks.n && !alone; i++)
		threads_add(s->threads, s->tasks.items[i]);
	for (size_t i = 0; i < s->tasks.n; i++) {
		if (i == 0 || alone)
			s->tasks.items[i]->run(s->tasks.items[i], 0);
		else
			threads_wait(s->threads, s->tasks.items[i]);
	}
	report_new(s);
}

/* --- what came of it -------------------------------------------------------------------------- */

static int judge(const struct sums *s, const struct sum *sum)
{
	if (sum->r == -ENOENT)
		return complain(s, -EKEYREJECTED,
				"%s is missing, but is in " PTD_SNAPSHOT_SUMS
				": the snapshot is not whole (--force decodes it all the same)",
				sum->path);
	if (sum->r == -EFBIG)
		return complain(s, -EKEYREJECTED,
				"%s is not the file that was written: it has %" PRIu64
				" bytes, and ptd writes %" PRIu64
				" at most (--force decodes it all the same)",
				sum->path, sum->size, size_max(sum->path));
	if (sum->r < 0)
		return complain(s, sum->r, "cannot read %s: %s", sum->path, strerror(-sum->r));
	if (!sum->is_left_out && strcmp(sum->hex, sum->expected) != 0)
		return complain(
		    s, -EKEYREJECTED,
		    "%s is not the file that was written: its SHA-256 is %s, " PTD_SNAPSHOT_SUMS
		    " says %s (--force decodes it all the same)",
		    sum->path, sum->hex, sum->expected);
	return 0;
}

static int judge_stretch(const struct sums *s, const struct stretch *stretch)
{
	uint64_t offset = 0;

	if (stretch->r == 0 || stretch->r == -ECANCELED)
		return 0;
	if (stretch->r != -EKEYREJECTED || !pieces_failed(s->pieces, &offset))
		return complain(s, stretch->r, "cannot read " PTD_SNAPSHOT_DATA ": %s",
				strerror(-stretch->r));
	return complain(s, -EKEYREJECTED,
			PTD_SNAPSHOT_DATA " is not the file that was written: from byte %" PRIu64
					  " on it has another SHA-256 than " PTD_SNAPSHOT_PIECES
					  " says (--force decodes it all the same)",
			offset);
}

/* Files that were not hashed to the end do not count: something else made that stop. */
static int judge_all(const struct sums *s)
{
	if (s->is_canceled)
		return complain(s, -ECANCELED, "%s", strerror(ECANCELED));
	for (size_t i = 0; i < s->items.n; i++) {
		const struct sum *sum = &s->items.items[i];
		const int r = sum->r == -ECANCELED ? 0 : judge(s, sum);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < s->stretches.n; i++) {
		const int r = judge_stretch(s, &s->stretches.items[i]);

		if (r < 0)
			return r;
	}
	if (!s->has_data || !s->has_manifest)
		return complain(s, -EKEYREJECTED,
				PTD_SNAPSHOT_SUMS
				" does not name %s: the snapshot is not whole (--force decodes it "
				"all the same)",
				s->has_data ? PTD_SNAPSHOT_MANIFEST : PTD_SNAPSHOT_DATA);
	return 0;
}

/* --- the data file ---------------------------------------------------------------------------- */

/* Read the hashes of the pieces of @data, from a file that is as it was written. */
static int read_pieces(struct sums *s, const struct sum *data)
{
	_cleanup_(mapfile_deinit) struct mapfile lines = {};
	int r;

	r = mapfile_read(&lines, s->dir_fd, PTD_SNAPSHOT_PIECES);
	if (r == 0)
		r = pieces_read((const char *)lines.bytes, lines.size, data->size, &s->pieces);
	if (r == -EBADMSG)
		return complain(s, -EKEYREJECTED,
				PTD_SNAPSHOT_DATA
				" is not the file that was written: it has %" PRIu64
				" bytes, and " PTD_SNAPSHOT_PIECES
				" does not have a hash for each MiB of them (--force decodes it "
				"all the same)",
				data->size);
	return r < 0 ? complain(s, r, "cannot read %s: %s", PTD_SNAPSHOT_PIECES, strerror(-r)) : 0;
}

/*
 * If the data file has pieces, it is checked by these: now, or, if it is only read in part, when it
 * is read.
 */
static int prepare_data(struct sums *s, bool is_part)
{
	struct sum *data = find_sum(s, PTD_SNAPSHOT_DATA);
	struct sum *pieces = find_sum(s, PTD_SNAPSHOT_PIECES);
	int r;

	/* Without them, it is hashed like the other files, or is missing. */
	if (!data || !pieces || faccessat(s->dir_fd, data->path, F_OK, 0) < 0)
		return 0;
	progress_expect(s->progress, pieces->size);
	hash_file(&pieces->task, 0);
	r = judge(s, pieces);
	if (r == 0)
		r = read_pieces(s, data);
	if (r < 0)
		return r;
	pieces->is_left_out = data->is_left_out = true;
	if (is_part)
		return 0;
	s->data_fd = regular_open(s->dir_fd, data->path, 0);
	r = s->data_fd < 0 ? s->data_fd : add_stretches(s, data->size);
	return r < 0 ? complain(s, r, "cannot read " PTD_SNAPSHOT_DATA ": %s", strerror(-r)) : 0;
}

static int hash_all(struct sums *s, bool is_part)
{
	int r;

	r = prepare_data(s, is_part);
	if (r < 0)
		return r;
	r = add_files(s);
	if (r < 0)
		return complain(s, r, PTD_SNAPSHOT_SUMS ": %s", strerror(-r));
	run_tasks(s);
	return judge_all(s);
}

static void deinit(struct sums *s)
{
	vec_deinit_each(&s->items, sum, free(sum->path));
	vec_deinit(&s->stretches);
	vec_deinit(&s->largest_first);
	vec_deinit(&s->tasks);
	pieces_free(s->pieces);
	(void)fd_close(s->data_fd);
}

int sums_check(int dir_fd, const char *dir, const struct mapfile *file, struct reading *reading,
	       char **reterr_message)
{
	struct sums s = {
		.dir_fd = dir_fd,
		.dir = dir,
		.threads = reading ? reading->threads : NULL,
		.progress = reading_progress(reading),
		.reterr_message = reterr_message,
		.data_fd = -1,
	};
	const bool is_part = reading && reading->is_part;
	int r;

	r = read_lines(&s, file);
	if (r == 0)
		r = check_data_files(&s);
	if (r == 0)
		r = hash_all(&s, is_part);
	if (r == 0 && is_part)
		reading->pieces = TAKE(s.pieces);
	deinit(&s);
	return r;
}
