/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/memcopy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "util/mapsline.h"
#include "util/textfile.h"
#include "util/vec.h"

#define PAGE       4096u
#define PIECE_SIZE ((size_t)1 << 20) /* bytes that are read before they are passed on */

/* How often to look whether memory is executable, and how many ns apart. */
#define LOOKS   3u
#define LOOK_NS 1000000

struct reader {
	uint8_t *piece; /* of PIECE_SIZE bytes; borrowed */
	uint64_t start; /* the address of its first byte */
	size_t size;    /* how many of its bytes are in use */
	int64_t n_given;
	memcopy_put_fn put;
	void *userdata;
};

static int give_bytes(struct reader *r)
{
	const size_t n = r->size;

	r->size = 0;
	r->n_given += (int64_t)n;
	return n > 0 ? r->put(r->userdata, r->start, r->piece, n) : 0;
}

/* Read the page at @at. Return: whether it has anything but zeros. */
static bool read_page(int fd, uint64_t at, uint8_t *to)
{
	return pread(fd, to, PAGE, (off_t)at) == PAGE &&
	       !(to[0] == 0 && memcmp(to, to + 1, PAGE - 1) == 0);
}

int64_t memcopy_read(int fd, uint64_t start, uint64_t size, uint64_t n_max, memcopy_put_fn put,
		     void *userdata)
{
	_cleanup_(freep) uint8_t *piece = malloc(PIECE_SIZE);
	struct reader reader = { .piece = piece, .put = put, .userdata = userdata };
	int r = 0;

	if (!piece)
		return -ENOMEM;
	size &= ~(uint64_t)(PAGE - 1);
	for (uint64_t at = start; r == 0 && at - start < size; at += PAGE) {
		const bool full = (uint64_t)reader.n_given + reader.size + PAGE > n_max;

		if (!full && read_page(fd, at, piece + reader.size)) {
			if (reader.size == 0)
				reader.start = at;
			reader.size += PAGE;
			if (reader.size < PIECE_SIZE)
				continue;
		}
		r = give_bytes(&reader);
		if (full)
			break;
	}
	if (r == 0)
		r = give_bytes(&reader);
	return r < 0 ? r : reader.n_given;
}

struct part {
	uint64_t start, end;
};

struct parts {
	VEC(struct part) executable; /* by address */
	bool has_other;              /* memory that can be read, but not executed */
};

static void parts_deinit(struct parts *parts)
{
	vec_deinit(&parts->executable);
}

/* Find out what of the memory from @start to @end is executable now. */
static int find_executable(int pid_fd, uint64_t start, uint64_t end, struct parts *parts)
{
	_cleanup_(textfile_closep) FILE *f = NULL;
	_cleanup_(freep) char *line = NULL;
	struct mapsline l;
	size_t size = 0;
	int r;

	parts->executable.n = 0;
	parts->has_other = false;
	r = textfile_open(pid_fd, "maps", &f);
	while (r == 0 && getline(&line, &size, f) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (mapsline_parse(line, &l) < 0 || l.end <= start)
			continue;
		if (l.start >= end)
			break;
		if (l.prot & PROT_EXEC)
			r = vec_push(&parts->executable,
				     { .start = l.start > start ? l.start : start,
				       .end = l.end < end ? l.end : end });
		else
			parts->has_other = parts->has_other || l.prot != PROT_NONE;
	}
	return r;
}

static int await_executable(int pid_fd, uint64_t start, uint64_t end, struct parts *parts)
{
	static const struct timespec pause = { .tv_nsec = LOOK_NS };
	int r = find_executable(pid_fd, start, end, parts);

	for (unsigned i = 1; r == 0 && parts->has_other && i < LOOKS; i++) {
		(void)nanosleep(&pause, NULL);
		r = find_executable(pid_fd, start, end, parts);
	}
	return r;
}

int64_t memcopy_read_executable(int pid_fd, uint64_t start, uint64_t size, uint64_t n_max,
				memcopy_put_fn put, void *userdata)
{
	_cleanup_(parts_deinit) struct parts parts = {};
	_cleanup_(fd_closep) int fd = openat(pid_fd, "mem", O_RDONLY | O_CLOEXEC);
	int64_t n = 0, r;

	if (fd < 0)
		return -errno;
	if (size > UINT64_MAX - start)
		return -EINVAL;
	r = await_executable(pid_fd, start, start + size, &parts);
	for (size_t i = 0; r >= 0 && i < parts.executable.n; i++) {
		const struct part *part = &parts.executable.items[i];

		r = memcopy_read(fd, part->start, part->end - part->start, n_max - (uint64_t)n, put,
				 userdata);
		n += r > 0 ? r : 0;
	}
	return r < 0 ? r : n;
}
