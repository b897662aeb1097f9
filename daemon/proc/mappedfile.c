/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/mappedfile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "daemon/proc/process.h"
#include "util/mapsline.h"
#include "util/textfile.h"

/* How often to look for a mapping that changes meanwhile. */
#define TRIES 2u

/* How many mappings that may be of a file are looked at. */
#define OPENED_MAX 16u

int mappedfile_reopen(int path_fd, int *ret_fd)
{
	char path[40];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", path_fd);
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static bool may_be(const struct mappedfile *file, const struct stat *st)
{
	return file->build_id.size > 0 || file->ino == 0 || file->ino == st->st_ino;
}

/* Check that the build-id of the file is the one that is known. */
static int check_build_id(int path_fd, const struct mappedfile *file)
{
	_cleanup_(fd_closep) int fd = -1;
	struct buildid id;
	int r;

	r = mappedfile_reopen(path_fd, &fd);
	if (r == 0 && file->build_id.size > 0)
		r = buildid_read(fd, &id);
	if (r < 0 || file->build_id.size == 0)
		return r;
	return buildid_equal(&file->build_id, &id) ? 0 : -ESTALE;
}

enum place {
	PLACE_MAP_FILES, /* no user can put another file there */
	PLACE_ROOT,      /* its path in the root directory and mount namespace of the process */
	PLACE_OWN_ROOT,  /* its path in ptd's namespace, because the process may have ended */
	_PLACES,
};

/* Open the file that is mapped from @start to @end. */
static int find_entry(int pid_fd, uint64_t start, uint64_t end)
{
	char name[64];
	int fd;

	(void)snprintf(name, sizeof(name), "map_files/%" PRIx64 "-%" PRIx64, start, end);
	fd = openat(pid_fd, name, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Return: whether the line has the same byte of a file at the same address. */
static bool has_start(const struct mapsline *l, const struct mappedfile *file)
{
	return l->ino != 0 && l->start <= file->start && file->start < l->end &&
	       l->offset + (file->start - l->start) == file->offset;
}

/* Read the next mapping of @f into @line, which is the caller's. Return: whether there is one. */
static bool next_mapping(FILE *f, char **line, size_t *size, struct mapsline *ret_mapping)
{
	while (getline(line, size, f) > 0) {
		(*line)[strcspn(*line, "\n")] = '\0';
		if (mapsline_parse(*line, ret_mapping) == 0)
			return true;
	}
	return false;
}

/* Find the mapping that has the first byte of @file. Return: 0; -ENOENT; or another negative
 * errno. */
static int find_line(int pid_fd, const struct mappedfile *file, struct mapsline *ret_line)
{
	_cleanup_(textfile_closep) FILE *f = NULL;
	_cleanup_(freep) char *line = NULL;
	struct mapsline l;
	size_t size = 0;
	int r;

	r = textfile_open(pid_fd, "maps", &f);
	if (r < 0)
		return r;
	while (next_mapping(f, &line, &size, &l)) {
		if (l.end <= file->start)
			continue;
		/* Lines are sorted by address. */
		if (!has_start(&l, file))
			return -ENOENT;
		l.name = NULL;
		*ret_line = l;
		return 0;
	}
	return -ENOENT;
}

static int find_mapped(int pid_fd, const struct mappedfile *file)
{
	struct mapsline l;
	int fd;

	/* Most mappings are still as they were mapped. */
	fd = find_entry(pid_fd, file->start, file->end);
	for (unsigned i = 0; fd == -ENOENT && i < TRIES; i++) {
		const int r = find_line(pid_fd, file, &l);

		fd = r < 0 ? r : find_entry(pid_fd, l.start, l.end);
		if (r < 0)
			break;
	}
	return fd;
}

static int find_by_path(int at_fd, const char *root, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	_cleanup_(fd_closep) int root_fd = openat(at_fd, root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	int fd;

	if (root_fd < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));
	return fd < 0 ? -errno : fd;
}

/* The kernel says that the process has this very file mapped; or a file with that build-id, which
 * is compared when the file is open. */
static bool is_proven(const struct mappedfile_process *by, const struct mappedfile *file,
		      const struct stat *st)
{
	return by->is_true &&
	       (file->build_id.size > 0 ||
		(file->ino != 0 && file->ino == st->st_ino && file->dev == st->st_dev));
}

/* Return: whether the file may be read for the process: everyone may read it; or the user who is
 * known to have started the process owns it and may read it; or, if the kernel wrote the record,
 * the user of the process owns it and may read it. A forged record can name any process of the
 * file's owner. */
static bool may_read(const struct mappedfile_process *by, const struct stat *st)
{
	if (st->st_mode & S_IROTH)
		return true;
	if (!(st->st_mode & S_IRUSR))
		return false;
	return (by->has_user && by->user == st->st_uid) ||
	       (by->is_true && process_user_is(by->pid_fd, st->st_uid));
}

/* Return: a descriptor that stands for the regular file there, or negative errno. */
static int find_file(enum place place, const struct mappedfile_process *by,
		     const struct mappedfile *file, struct stat *ret_st)
{
	_cleanup_(fd_closep) int found = -1;

	if (place == PLACE_OWN_ROOT)
		found = find_by_path(AT_FDCWD, "/", file->path);
	else if (by->pid_fd < 0)
		found = -ESRCH;
	else
		found = place == PLACE_ROOT ? find_by_path(by->pid_fd, "root", file->path)
					    : find_mapped(by->pid_fd, file);
	if (found < 0)
		return found;
	if (fstat(found, ret_st) < 0)
		return -errno;
	if (!S_ISREG(ret_st->st_mode))
		return -ENOEXEC;
	if (place != PLACE_MAP_FILES && !is_proven(by, file, ret_st) && !may_read(by, ret_st))
		return -EACCES;
	return TAKE_FD(found);
}

static int try_place(enum place place, const struct mappedfile_process *by,
		     const struct mappedfile *file, bool verify, int *ret_path_fd,
		     struct stat *ret_st)
{
	_cleanup_(fd_closep) int path_fd = find_file(place, by, file, ret_st);
	int r;

	if (path_fd < 0)
		return path_fd;
	if (!may_be(file, ret_st))
		return -ESTALE;
	r = verify ? check_build_id(path_fd, file) : 0;
	if (r < 0)
		return r;
	*ret_path_fd = TAKE_FD(path_fd);
	return 0;
}

/* Return: how much an error says. Another file was found; a file was refused; there was none;
 * nothing was tried. */
static int weigh_error(int r)
{
	return r == -ESTALE ? 3 : r == -ENOEXEC || r == -EACCES ? 2 : r == -ESRCH ? 0 : 1;
}

int mappedfile_find(const struct mappedfile_process *by, const struct mappedfile *file, bool verify,
		    int *ret_path_fd, struct stat *ret_st)
{
	int worst = -ESRCH;

	if (file->path[0] != '/')
		return -ENOEXEC;
	for (enum place place = PLACE_MAP_FILES; place < _PLACES; place++) {
		struct stat st;
		const int r = try_place(place, by, file, verify, ret_path_fd, &st);

		if (r == 0) {
			*ret_st = st;
			return 0;
		}
		worst = weigh_error(r) > weigh_error(worst) ? r : worst;
	}
	return worst;
}

int mappedfile_open(const struct mappedfile_process *by, const struct mappedfile *file, int *ret_fd)
{
	_cleanup_(fd_closep) int path_fd = -1;
	struct stat st;
	const int r = mappedfile_find(by, file, false, &path_fd, &st);

	return r < 0 ? r : mappedfile_reopen(path_fd, ret_fd);
}

int mappedfile_stat(const struct mappedfile_process *by, const struct mappedfile *file,
		    struct stat *ret_st)
{
	_cleanup_(fd_closep) int path_fd = -1;

	return mappedfile_find(by, file, false, &path_fd, ret_st);
}

/* Return: whether @fd stands for the file. */
static bool is_file(int fd, const struct mappedfile *file)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && st.st_dev == file->dev && st.st_ino == file->ino;
}

/* Look at mappings that may be of the file, but for no more than some of them. Return: 0; -ENOENT;
 * or another negative errno. */
static int find_anywhere(int pid_fd, const struct mappedfile *file)
{
	_cleanup_(textfile_closep) FILE *f = NULL;
	_cleanup_(freep) char *line = NULL;
	unsigned n_opened = 0;
	struct mapsline l;
	size_t size = 0;
	int r;

	r = textfile_open(pid_fd, "maps", &f);
	if (r < 0)
		return r;
	while (n_opened < OPENED_MAX && next_mapping(f, &line, &size, &l)) {
		_cleanup_(fd_closep) int fd = -1;

		if (l.ino != file->ino || l.offset != file->offset)
			continue;
		n_opened++;
		fd = find_entry(pid_fd, l.start, l.end);
		if (is_file(fd, file))
			return 0;
	}
	return -ENOENT;
}

int mappedfile_is_mapped(int pid_fd, const struct mappedfile *file)
{
	_cleanup_(fd_closep) int fd = find_mapped(pid_fd, file);

	if (is_file(fd, file))
		return 0;
	return fd < 0 && fd != -ENOENT ? fd : find_anywhere(pid_fd, file);
}
