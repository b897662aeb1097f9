/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/logfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "util/fullwrite.h"
#include "util/message.h"

#define WINDOW_SIZE ((size_t)64 << 10)

void logwindow_init(struct logwindow *window)
{
	*window = (struct logwindow){ .fd = -1 };
}

void logwindow_deinit(struct logwindow *window)
{
	window->fd = fd_close(window->fd);
	free(window->bytes);
	logwindow_init(window);
}

static int cannot_read(const struct logfile *file, int r, char **reterr_message)
{
	return message_set(reterr_message, r, "%s: %s", file->path, strerror(-r));
}

static int is_stale(const struct logfile *file, char **reterr_message)
{
	return message_set(reterr_message, -ESTALE, "%s: was changed while it was read",
			   file->path);
}

static int use(struct logwindow *window, const struct logfile *file, char **reterr_message)
{
	struct stat st;

	if (window->file == file)
		return 0;
	window->fd = fd_close(window->fd);
	window->file = NULL;
	window->n = 0;
	if (!window->bytes)
		window->bytes = malloc(WINDOW_SIZE);
	if (!window->bytes)
		return -ENOMEM;
	window->fd = open(file->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (window->fd < 0 || fstat(window->fd, &st) < 0)
		return cannot_read(file, -errno, reterr_message);
	if (file->size > 0 && (st.st_dev != file->dev || st.st_ino != file->ino))
		return is_stale(file, reterr_message);
	window->file = file;
	return 0;
}

/* Fill the window with @n bytes or more from @offset on, if the file has them. */
static int fill(struct logwindow *window, const struct logfile *file, uint64_t offset,
		char **reterr_message)
{
	const uint64_t left = file->size - offset;
	const size_t size = left < WINDOW_SIZE ? (size_t)left : WINDOW_SIZE;
	const ssize_t n = fullread_at(window->fd, window->bytes, size, offset);

	window->offset = offset;
	window->n = n < 0 ? 0 : (size_t)n;
	if (n < 0)
		return cannot_read(file, (int)n, reterr_message);
	return window->n < size ? is_stale(file, reterr_message) : 0;
}

int logwindow_look(struct logwindow *window, const struct logfile *file, uint64_t offset,
		   uint64_t end, size_t n, struct cursor *ret_cursor, char **reterr_message)
{
	size_t at, left;
	int r = use(window, file, reterr_message);

	if (end > file->size)
		end = file->size;
	if (n > end - offset)
		n = (size_t)(end - offset);
	if (r == 0 && (offset < window->offset || offset + n > window->offset + window->n))
		r = fill(window, file, offset, reterr_message);
	if (r < 0)
		return r;
	at = (size_t)(offset - window->offset);
	left = window->n - at;
	if (left > end - offset)
		left = (size_t)(end - offset);
	*ret_cursor = cursor_from(window->bytes + at, left);
	return 0;
}

int logfile_open(struct logfile *file, const char *path, struct logwindow *window,
		 char **reterr_message)
{
	struct stat st;
	int r;

	*file = (struct logfile){ .path = strdup(path) };
	if (!file->path)
		return -ENOMEM;
	r = use(window, file, reterr_message);
	if (r < 0)
		return r;
	if (fstat(window->fd, &st) < 0)
		return cannot_read(file, -errno, reterr_message);
	if (!S_ISREG(st.st_mode))
		return message_set(reterr_message, -EBADMSG, "%s: no regular file", file->path);
	file->size = (uint64_t)st.st_size;
	file->dev = st.st_dev;
	file->ino = st.st_ino;
	return 0;
}

void logfile_deinit(struct logfile *file)
{
	free(file->path);
	file->path = NULL;
}

/* Read all of the file. Return: 0 or negative errno. */
static int read_all(const struct logfile *file, struct logwindow *window, char *text,
		    char **reterr_message)
{
	uint64_t at = 0;
	struct cursor c;
	int r = 0;

	while (at < file->size && r == 0) {
		r = logwindow_look(window, file, at, file->size, 1, &c, reterr_message);
		if (r == 0) {
			memcpy(text + at, c.pos, cursor_left(&c));
			at += cursor_left(&c);
		}
	}
	return r;
}

int logfile_read(const char *path, uint64_t max, struct logwindow *window, char **ret_text,
		 size_t *ret_size, char **reterr_message)
{
	_cleanup_(freep) char *text = NULL;
	struct logfile file;
	int r = logfile_open(&file, path, window, reterr_message);

	if (r == 0 && file.size > max)
		r = message_set(reterr_message, -EFBIG, "%s: more than %" PRIu64 " bytes", path,
				max);
	if (r == 0) {
		text = malloc(file.size ? (size_t)file.size : 1);
		r = text ? read_all(&file, window, text, reterr_message) : -ENOMEM;
	}
	window->file = NULL;
	if (r == 0) {
		*ret_text = TAKE(text);
		*ret_size = (size_t)file.size;
	}
	logfile_deinit(&file);
	return r;
}
