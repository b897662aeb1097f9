/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/sums.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "decoder/file/reading.h"
#include "decoder/file/textline.h"
#include "ptd/snapshot.h"
#include "util/message.h"
#include "util/pieces.h"
#include "util/regular.h"
#include "util/threads.h"
#include "util/vec.h"

#define HEX_SIZE (SHA256_HEX_SIZE - 1)

/* One line: a file and its hash. */
struct sum {
	struct task task;
	struct sums *sums;
	char *path;
	char expected[SHA256_HEX_SIZE];
	uint64_t size;    /* when the lines were read: it only says which files are large */
	bool is_left_out; /* its pieces are checked when they are read */

	size_t thread; /* that hashes it */
	struct progress progress;
	uint64_t n_told; /* bytes that were added to sums->n_new */

	/* What came of it. */
	int r;
	char hex[SHA256_HEX_SIZE];
};

struct sums {
	int dir_fd;
	const char *dir;
	struct ptd_threads *threads; /* or NULL */
	struct progress *progress;   /* or NULL; of the calling thread, which is number 0 */
	char **reterr_message;

	VEC(struct sum) items; /* in the order of the lines */
	VEC(struct sum *) largest_first;
	bool has_data, has_manifest; /* are among them */
	uint64_t n_new;              /* bytes that were hashed and not added to @progress yet */
	bool stops;                  /* what is still to be hashed does not matter any more */
	bool is_canceled;            /* whoever sees the progress does not want the rest */
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

static bool has_line(const struct sums *s, const char *path)
{
	bool has = false;

	for (size_t i = 0; i < s->items.n && !has; i++)
		has = strcmp(s->items.items[i].path, path) == 0;
	return has;
}

/* Leave out the data file, which is checked by its pieces. */
static void leave_out_data(struct sums *s)
{
	for (size_t i = 0; i < s->items.n; i++)
		if (strcmp(s->items.items[i].path, PTD_SNAPSHOT_DATA) == 0)
			s->items.items[i].is_left_out = true;
}

/* Read the hashes of the pieces of the data file. Return: 0, or negative errno. */
static int read_pieces(const struct sums *s, struct pieces **ret_pieces)
{
	_cleanup_(mapfile_deinit) struct mapfile lines = {};
	struct stat st;
	int r;

	r = mapfile_read(&lines, s->dir_fd, PTD_SNAPSHOT_PIECES);
	if (r == 0 && fstatat(s->dir_fd, PTD_SNAPSHOT_DATA, &st, 0) < 0)
		r = -errno;
	if (r == 0)
		r = pieces_read((const char *)lines.bytes, lines.size, (uint64_t)st.st_size,
				ret_pieces);
	if (r == -EBADMSG || r == -ENOENT)
		return complain(s, -EKEYREJECTED,
				PTD_SNAPSHOT_PIECES
				" has not a hash for each MiB of " PTD_SNAPSHOT_DATA
				": the snapshot is not whole (--force decodes it all the same)");
	return r < 0 ? complain(s, r, "cannot read %s: %s", PTD_SNAPSHOT_PIECES, strerror(-r)) : 0;
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

	(void)total;
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
	if (sum->is_left_out) {
		memcpy(sum->hex, sum->expected, sizeof(sum->hex));
		return;
	}
	if (__atomic_load_n(&sum->sums->stops, __ATOMIC_RELAXED)) {
		sum->r = -ECANCELED;
		return;
	}
	fd = regular_open(sum->sums->dir_fd, sum->path, 0);
	sum->r = fd < 0 ? fd : sha256_fd(fd, NULL, &sum->progress, sum->hex, &size);
	if (sum->r == 0)
		(void)report(sum, size, size);
	if (sum->r < 0 || strcmp(sum->hex, sum->expected) != 0)
		__atomic_store_n(&sum->sums->stops, true, __ATOMIC_RELAXED);
}

static int by_size(const void *a, const void *b)
{
	const struct sum *const *x = a, *const *y = b;

	return (*x)->size > (*y)->size ? -1 : (*x)->size < (*y)->size;
}

/* Hash the largest files first, and the largest one in this thread, which reports the progress. */
static int hash_all(struct sums *s)
{
	int r = vec_reserve(&s->largest_first, s->items.n);

	if (r < 0)
		return complain(s, r, PTD_SNAPSHOT_SUMS ": %s", strerror(-r));
	for (size_t i = 0; i < s->items.n; i++) {
		if (!s->items.items[i].is_left_out)
			progress_expect(s->progress, s->items.items[i].size);
		s->largest_first.items[s->largest_first.n++] = &s->items.items[i];
	}
	if (s->largest_first.n > 0)
		qsort(s->largest_first.items, s->largest_first.n, sizeof(struct sum *), by_size);
	for (size_t i = 1; i < s->largest_first.n && threads_n(s->threads) > 1; i++) {
		s->largest_first.items[i]->task.run = hash_file;
		threads_add(s->threads, &s->largest_first.items[i]->task);
	}
	if (s->largest_first.n > 0)
		hash_file(&s->largest_first.items[0]->task, 0);
	for (size_t i = 1; i < s->largest_first.n; i++) {
		if (threads_n(s->threads) > 1)
			threads_wait(s->threads, &s->largest_first.items[i]->task);
		else
			hash_file(&s->largest_first.items[i]->task, 0);
	}
	report_new(s);
	return 0;
}

/* --- what came of it -------------------------------------------------------------------------- */

static int judge(const struct sums *s, const struct sum *sum)
{
	if (sum->r == -ENOENT)
		return complain(s, -EKEYREJECTED,
				"%s is missing, but is in " PTD_SNAPSHOT_SUMS
				": the snapshot is not whole (--force decodes it all the same)",
				sum->path);
	if (sum->r < 0)
		return complain(s, sum->r, "cannot read %s: %s", sum->path, strerror(-sum->r));
	if (strcmp(sum->hex, sum->expected) != 0)
		return complain(
		    s, -EKEYREJECTED,
		    "%s is not the file that was written: its SHA-256 is %s, " PTD_SNAPSHOT_SUMS
		    " says %s (--force decodes it all the same)",
		    sum->path, sum->hex, sum->expected);
	return 0;
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
	if (!s->has_data || !s->has_manifest)
		return complain(s, -EKEYREJECTED,
				PTD_SNAPSHOT_SUMS
				" does not name %s: the snapshot is not whole (--force decodes it "
				"all the same)",
				s->has_data ? PTD_SNAPSHOT_MANIFEST : PTD_SNAPSHOT_DATA);
	return 0;
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
	};
	bool by_pieces;
	int r;

	r = read_lines(&s, file);
	by_pieces = r == 0 && reading && reading->is_part && has_line(&s, PTD_SNAPSHOT_PIECES);
	if (by_pieces)
		leave_out_data(&s);
	if (r == 0)
		r = hash_all(&s);
	if (r == 0)
		r = judge_all(&s);
	if (r == 0 && by_pieces)
		r = read_pieces(&s, &reading->pieces);
	for (size_t i = 0; i < s.items.n; i++)
		free(s.items.items[i].path);
	vec_deinit(&s.items);
	vec_deinit(&s.largest_first);
	return r;
}
