/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "ctl/copyout.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "ctl/client.h"
#include "ctl/verb.h"
#include "ptd/snapshot.h"
#include "util/dirs.h"
#include "util/message.h"

/* The least size of a snapshot in bytes: it has the libraries of programs. */
#define ROOM_MIN ((off_t)1 << 20)

/* Get the path of the directory of an incomplete copy. Return: the path, which the caller frees;
 * NULL without memory. */
static char *part_of(const char *directory)
{
	size_t n = strlen(directory);

	while (n > 1 && directory[n - 1] == '/')
		n--;
	return message_text("%.*s.part", (int)n, directory);
}

/* Try whether a file of some size can be made in the directory @path, without leaving one there. */
static int check_room(const char *path)
{
	_cleanup_(fd_closep) int fd = open(path, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);

	if (fd >= 0)
		return -posix_fallocate(fd, 0, ROOM_MIN);
	if (errno != EOPNOTSUPP && errno != EISDIR)
		return -errno;
	/* Some file systems have no unnamed files. */
	return faccessat(AT_FDCWD, path, W_OK | X_OK, AT_EACCESS) < 0 ? -errno : 0;
}

static int cannot_write(const char *directory, const char *where, int r)
{
	errno = -r;
	if (where)
		log_error("%s: cannot write a snapshot there: %s: %m", directory, where);
	else
		log_error("%s: cannot write a snapshot there: %m", directory);
	return EXIT_FAILED;
}

/* Check whether the absent directory can be made. */
static int check_parent(const char *directory)
{
	_cleanup_(freep) char *part = part_of(directory), *parent = part ? strdup(part) : NULL;
	struct stat st;
	int r;

	if (!parent)
		return cannot_write(directory, NULL, -ENOMEM);
	/* It is a symbolic link that leads nowhere. */
	if (lstat(directory, &st) == 0)
		return cannot_write(directory, NULL, -ENOENT);
	if (lstat(part, &st) == 0)
		return log_as(EXIT_FAILED,
			      "%s: in the way, left by a copy that was cut short? Remove it", part);
	r = check_room(dirname(parent));
	return r < 0 ? cannot_write(directory, parent, r) : EXIT_OK;
}

int copyout_check(const char *directory)
{
	_cleanup_(fd_closep) int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return errno == ENOENT ? check_parent(directory)
				       : cannot_write(directory, NULL, -errno);
	r = dirs_check_empty(fd);
	if (r == -ENOTEMPTY)
		return log_as(
		    EXIT_FAILED,
		    "%s: this directory is not empty, refusing to write a snapshot into it",
		    directory);
	if (r == 0)
		r = check_room(directory);
	return r < 0 ? cannot_write(directory, NULL, r) : EXIT_OK;
}

/* Copy the snapshot into the empty directory @path. On failure no file is left there. */
static int copy_into(int from, const char *path)
{
	_cleanup_(fd_closep) int to = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (to < 0)
		return -errno;
	/* Files of others must not be removed below. */
	r = dirs_check_empty(to);
	if (r < 0)
		return r;
	r = dirs_copy(from, to, PTD_SNAPSHOT_SUMS);
	if (r == 0)
		r = dirs_sync(to);
	if (r < 0)
		(void)!dirs_empty(to);
	return r;
}

/* Make the directory @path with the copy. It appears only when it is complete. */
static int copy_anew(int from, const char *path)
{
	_cleanup_(freep) char *part = part_of(path);
	int r;

	if (!part)
		return -ENOMEM;
	if (mkdir(part, 0700) < 0)
		return -errno;
	r = copy_into(from, part);
	if (r == 0 && renameat2(AT_FDCWD, part, AT_FDCWD, path, RENAME_NOREPLACE) < 0)
		r = -errno;
	if (r < 0)
		(void)!dirs_remove(AT_FDCWD, part);
	return r;
}

int copyout_snapshot(sd_bus *bus, const char *id, const char *directory)
{
	_cleanup_(fd_closep) int from = -1;
	struct waiting waiting;
	int r;

	r = client_open_snapshot(bus, id, &from);
	if (r != EXIT_OK)
		return r;

	/* An existing directory may be a mount point, or the working directory of a process. */
	waiting_begin(&waiting, "copying the snapshot");
	r = access(directory, F_OK) == 0 ? copy_into(from, directory) : copy_anew(from, directory);
	waiting_end(&waiting);
	if (r < 0)
		return log_errno_as(EXIT_FAILED, r, "%s: cannot copy snapshot %s there: %m",
				    directory, id);
	return EXIT_OK;
}

/* --- waiting ---------------------------------------------------------------------------------- */

static void *show_seconds(void *userdata)
{
	struct waiting *w = userdata;
	struct timespec next;
	unsigned int seconds = 0;

	(void)clock_gettime(CLOCK_REALTIME, &next);
	(void)pthread_mutex_lock(&w->lock);
	while (!w->is_over) {
		next.tv_sec++;
		while (!w->is_over &&
		       pthread_cond_timedwait(&w->ended, &w->lock, &next) != ETIMEDOUT)
			;
		if (!w->is_over)
			fprintf(stderr, "\rptctl: %s, %u s ", w->what, ++seconds);
	}
	(void)pthread_mutex_unlock(&w->lock);
	if (seconds > 0)
		fputs("\r\033[K", stderr);
	return NULL;
}

void waiting_begin(struct waiting *waiting, const char *what)
{
	*waiting = (struct waiting){ .what = what };
	if (!isatty(STDERR_FILENO))
		return;
	(void)pthread_mutex_init(&waiting->lock, NULL);
	(void)pthread_cond_init(&waiting->ended, NULL);
	/* The work does not need the line. */
	waiting->is_shown = pthread_create(&waiting->thread, NULL, show_seconds, waiting) == 0;
}

void waiting_end(struct waiting *waiting)
{
	if (!waiting->is_shown)
		return;
	(void)pthread_mutex_lock(&waiting->lock);
	waiting->is_over = true;
	(void)pthread_cond_signal(&waiting->ended);
	(void)pthread_mutex_unlock(&waiting->lock);
	(void)pthread_join(waiting->thread, NULL);
	waiting->is_shown = false;
}
