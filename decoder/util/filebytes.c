/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/filebytes.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "util/dataspan.h"
#include "util/fileparts.h"
#include "util/regular.h"

/* What is read at a time: four pages, because code that ran is rarely alone. */
#define PIECE_SIZE UINT64_C(16384)

/* In more than this, holes are looked for: they need no memory. */
#define SPARSE_MIN (UINT64_C(1) << 20)

struct filebytes {
	unsigned n_refs;
	struct fileset *set; /* borrowed; NULL: the bytes are in memory that is not ours */
	char *path;
	bool stays_open;
	uint64_t size;
	uint8_t *bytes; /* an address for each; the memory of a piece comes when it is read */
	atomic_uchar *is_read; /* of each piece; NULL: all are */

	/* Under the mutex of the set. */
	int fd; /* -1: closed */
	bool has_failed;
	struct stat opened; /* the file as it was */
};

/* --- the set ---------------------------------------------------------------------------------- */

static char no_memory[] = "out of memory";

void fileset_init(struct fileset *set)
{
	*set = (struct fileset){ .mutex = PTHREAD_MUTEX_INITIALIZER };
}

void fileset_deinit(struct fileset *set)
{
	char *failure = (char *)(uintptr_t)atomic_load(&set->failure);

	if (failure != no_memory)
		free(failure);
	(void)pthread_mutex_destroy(&set->mutex);
}

const char *fileset_failure(const struct fileset *set)
{
	return atomic_load_explicit(&set->failure, memory_order_acquire);
}

/* Keep the first failure, which is @file's, and read nothing of @file any more. Return: @r. */
_printf_(3, 4) static int fail_file(struct filebytes *file, int r, const char *format, ...)
{
	char *text;
	va_list ap;
	int n;

	file->has_failed = true;
	if (fileset_failure(file->set))
		return r;
	va_start(ap, format);
	n = vasprintf(&text, format, ap);
	va_end(ap);
	atomic_store_explicit(&file->set->failure, n < 0 ? no_memory : text, memory_order_release);
	return r;
}

static void close_file(struct filebytes *file)
{
	for (size_t i = 0; i < FILESET_OPEN_MAX; i++)
		if (file->set->open[i] == file)
			file->set->open[i] = NULL;
	file->fd = fd_close(file->fd);
}

/* Let @file be open at @fd; the file that has been open for the longest time may be closed. */
static void keep_open(struct filebytes *file, int fd)
{
	struct fileset *set = file->set;

	file->fd = fd;
	if (file->stays_open)
		return;
	if (set->open[set->next])
		close_file(set->open[set->next]);
	set->open[set->next] = file;
	set->next = (set->next + 1) % FILESET_OPEN_MAX;
}

static int open_again(struct filebytes *file)
{
	_cleanup_(fd_closep) int fd = regular_open(AT_FDCWD, file->path, 0);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return fail_file(file, -errno, "%s: cannot be opened again: %s", file->path,
				 strerror(fd < 0 ? -fd : errno));
	if (st.st_dev != file->opened.st_dev || st.st_ino != file->opened.st_ino)
		return fail_file(file, -ESTALE, "%s: was replaced while it was read", file->path);
	keep_open(file, fd);
	fd = -1;
	return 0;
}

/* --- life ------------------------------------------------------------------------------------- */

static int reserve_addresses(struct filebytes *file)
{
	const uint64_t n_pieces = file->size / PIECE_SIZE + 1;
	void *p;

	if (file->size > SIZE_MAX / 2)
		return -ENOMEM;
	file->is_read = calloc(n_pieces, sizeof(*file->is_read));
	if (!file->is_read)
		return -ENOMEM;
	if (file->size == 0)
		return 0;
	p = mmap(NULL, file->size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return -errno;
	file->bytes = p;
	return 0;
}

int filebytes_new_in_memory(const void *bytes, size_t size, struct filebytes **ret_file)
{
	struct filebytes *file = calloc(1, sizeof(*file));

	if (!file)
		return -ENOMEM;
	*file = (struct filebytes){
		.n_refs = 1, .size = size, .bytes = (uint8_t *)(uintptr_t)bytes, .fd = -1
	};
	*ret_file = file;
	return 0;
}

struct filebytes *filebytes_ref(struct filebytes *file)
{
	file->n_refs++;
	return file;
}

struct filebytes *filebytes_unref(struct filebytes *file)
{
	if (!file || --file->n_refs > 0)
		return NULL;
	if (file->set) {
		(void)pthread_mutex_lock(&file->set->mutex);
		close_file(file);
		(void)pthread_mutex_unlock(&file->set->mutex);
		if (file->bytes)
			(void)munmap(file->bytes, file->size);
	}
	free(file->is_read);
	free(file->path);
	free(file);
	return NULL;
}

uint64_t filebytes_size(const struct filebytes *file)
{
	return file->size;
}

/* --- reading ---------------------------------------------------------------------------------- */

static int read_span(struct filebytes *file, const struct dataspan *span)
{
	return fileparts_read_fd(file->fd, span->start, file->bytes + span->start,
				 (size_t)(span->end - span->start));
}

/* Read the bytes from @start to @end, which are whole pieces, to where they belong. */
static int read_range(struct filebytes *file, uint64_t start, uint64_t end)
{
	struct dataspan span = { .start = start, .end = end };
	int r;

	/* The memory is had at once, not by a fault for each page. */
	if (end - start <= SPARSE_MIN) {
		(void)madvise(file->bytes + start, (size_t)(end - start), MADV_POPULATE_WRITE);
		return read_span(file, &span);
	}
	for (uint64_t at = start; (r = dataspan_next(file->fd, at, end, &span)) > 0;
	     at = span.end) {
		r = read_span(file, &span);
		if (r < 0)
			return r;
	}
	return r;
}

/* How a file is read. */
enum manner {
	AS_OPENED, /* it must be as it was when it was opened; a failure is kept */
	AS_IT_IS,  /* it may have grown; the caller deals with a failure */
};

/* The bytes at @at cannot be read. Return: @r. */
static int fail_to_read(struct filebytes *file, int r, uint64_t at, enum manner manner)
{
	if (manner == AS_IT_IS)
		return r;
	return fail_file(file, r, "%s: cannot be read at byte %" PRIu64 ": %s", file->path, at,
			 strerror(-r));
}

/* Return: 0; -ESTALE if what was read of the file may not be what was there when it was opened. */
static int check_unchanged(struct filebytes *file, enum manner manner)
{
	const struct timespec *then = &file->opened.st_mtim;
	struct stat now;

	if (fstat(file->fd, &now) < 0)
		return fail_to_read(file, -errno, 0, manner);
	if (manner == AS_IT_IS)
		return (uint64_t)now.st_size < file->size ? -ESTALE : 0;
	if ((uint64_t)now.st_size < file->size)
		return fail_file(file, -ESTALE,
				 "%s: was cut off at byte %jd while it was read: it had %" PRIu64
				 " bytes",
				 file->path, (intmax_t)now.st_size, file->size);
	if (now.st_mtim.tv_sec != then->tv_sec || now.st_mtim.tv_nsec != then->tv_nsec)
		return fail_file(file, -ESTALE, "%s: was written to while it was read", file->path);
	return 0;
}

/* Read the pieces from @first up to, but not including, @end. */
static int read_pieces(struct filebytes *file, uint64_t first, uint64_t end, enum manner manner)
{
	const uint64_t start = first * PIECE_SIZE;
	const uint64_t stop = end > file->size / PIECE_SIZE ? file->size : end * PIECE_SIZE;
	int r, changed;

	r = file->fd < 0 ? open_again(file) : 0;
	if (r < 0)
		return r;
	r = read_range(file, start, stop);
	changed = check_unchanged(file, manner);
	if (changed < 0)
		return changed;
	if (r < 0)
		return fail_to_read(file, r, start, manner);
	for (uint64_t i = first; i < end; i++)
		atomic_store_explicit(&file->is_read[i], true, memory_order_release);
	return 0;
}

/* The number of the piece with the last of @size bytes at @offset. */
static uint64_t last_piece(uint64_t offset, uint64_t size)
{
	return (offset + (size ? size - 1 : 0)) / PIECE_SIZE;
}

static bool has_read(const struct filebytes *file, uint64_t i)
{
	return atomic_load_explicit(&file->is_read[i], memory_order_acquire);
}

/* Read the pieces from @first to @last that have not been read, those that adjoin at once. */
static int read_missing(struct filebytes *file, uint64_t first, uint64_t last, enum manner manner)
{
	int r = file->has_failed ? -ESTALE : 0;

	while (r == 0 && first <= last) {
		uint64_t end = first;

		while (end <= last && !has_read(file, end))
			end++;
		if (end > first)
			r = read_pieces(file, first, end, manner);
		first = end + 1;
	}
	return r;
}

static int read_locked(struct filebytes *file, uint64_t first, uint64_t last, enum manner manner)
{
	int r;

	(void)pthread_mutex_lock(&file->set->mutex);
	r = read_missing(file, first, last, manner);
	(void)pthread_mutex_unlock(&file->set->mutex);
	return r;
}

const uint8_t *filebytes_get(struct filebytes *file, uint64_t offset, uint64_t size)
{
	uint64_t i = offset / PIECE_SIZE;

	if (!file->bytes || offset > file->size || size > file->size - offset)
		return NULL;
	if (file->is_read && size > 0) {
		const uint64_t last = last_piece(offset, size);

		while (i <= last && has_read(file, i))
			i++;
		if (i <= last && read_locked(file, i, last, AS_OPENED) < 0)
			return NULL;
	}
	return file->bytes + offset;
}

int filebytes_read_all(struct filebytes *file)
{
	if (!file->is_read || file->size == 0)
		return 0;
	return read_locked(file, 0, last_piece(0, file->size), AS_IT_IS);
}

int filebytes_new(struct fileset *set, const char *path, int *fd, bool stays_open,
		  struct filebytes **ret_file)
{
	_cleanup_(filebytes_unrefp) struct filebytes *file = calloc(1, sizeof(*file));
	int r;

	if (!file)
		return -ENOMEM;
	*file = (struct filebytes){ .n_refs = 1, .set = set, .fd = -1, .stays_open = stays_open };
	if (fstat(*fd, &file->opened) < 0)
		return -errno;
	if (!S_ISREG(file->opened.st_mode))
		return S_ISDIR(file->opened.st_mode) ? -EISDIR : -EINVAL;
	file->size = (uint64_t)file->opened.st_size;
	file->path = strdup(path);
	if (!file->path)
		return -ENOMEM;
	r = reserve_addresses(file);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&set->mutex);
	keep_open(file, *fd);
	*fd = -1;
	r = file->size > 0 ? read_missing(file, 0, 0, AS_IT_IS) : 0;
	(void)pthread_mutex_unlock(&set->mutex);
	if (r < 0)
		return r;
	*ret_file = TAKE(file);
	return 0;
}
