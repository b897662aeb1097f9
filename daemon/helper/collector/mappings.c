/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/helper/collector/mappings.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/proc/mappedfile.h"
#include "util/buildid.h"
#include "util/map.h"
#include "util/mapsline.h"
#include "util/mutex.h"
#include "util/perf/record.h"
#include "util/quietthread.h"
#include "util/vec.h"

/* More than the kernel makes of the longest name. */
#define BUFFER_SIZE 32768u

/* How long to wait for a file's build-id. */
#define READ_MAX_NS UINT64_C(20000000)

/* How often a process is looked at that executes other programs meanwhile. */
#define EXEC_TRIES 3u

/* Files that are remembered; if there are more, all are forgotten. */
#define KNOWN_MAX 16384u

/*
 * What distinguishes a file from all others, and from itself before it was written to. The numbers
 * in maps do not: there all subvolumes of a btrfs have one device, and each counts its inodes from
 * 256 on; and an inode that is deleted is soon another file's.
 */
struct identity {
	uint64_t dev, ino;
	int64_t ctime_s, ctime_ns;
};

/* A file whose build-id is known. */
struct known {
	struct identity file;
	struct buildid build_id;
	size_t alike; /* 1 + index of another that hashes alike; 0: none */
};

struct mappings {
	struct idreader *ids; /* NULL until it is needed */
	VEC(struct known) known;
	struct map by_file; /* hash of its identity → 1 + index of the last */
};

/* One process, as it is read. */
struct reader {
	struct mappings *mappings;
	const struct mappings_options *options;
	int maps_fd;
	char *buffer;
	size_t used;
	bool skips; /* a line that did not fit: up to its end */
	int error;  /* of put() */
};

int mappings_new(struct mappings **ret_mappings)
{
	struct mappings *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	*ret_mappings = m;
	return 0;
}

struct mappings *mappings_free(struct mappings *mappings)
{
	if (!mappings)
		return NULL;
	vec_deinit(&mappings->known);
	map_deinit(&mappings->by_file);
	(void)idreader_free(mappings->ids);
	free(mappings);
	return NULL;
}

/* --- files ----------------------------------------------------------------------------------- */

static struct identity identity_of(const struct stat *st)
{
	return (struct identity){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.ctime_s = st->st_ctim.tv_sec,
		.ctime_ns = st->st_ctim.tv_nsec,
	};
}

static bool identity_equal(const struct identity *a, const struct identity *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->ctime_s == b->ctime_s &&
	       a->ctime_ns == b->ctime_ns;
}

static const struct known *find_known(const struct mappings *m, const struct identity *file)
{
	const uint64_t *head = map_get(&m->by_file, map_hash(file, sizeof(*file)));

	for (size_t i = head ? (size_t)*head : 0; i > 0; i = m->known.items[i - 1].alike)
		if (identity_equal(&m->known.items[i - 1].file, file))
			return &m->known.items[i - 1];
	return NULL;
}

/* Without memory for it, the next one opens the file again. */
static void remember(struct mappings *m, const struct identity *file, const struct buildid *id)
{
	const uint64_t key = map_hash(file, sizeof(*file)), *head;
	struct known known = { .file = *file, .build_id = *id };

	if (m->known.n == KNOWN_MAX) {
		m->known.n = 0;
		map_deinit(&m->by_file);
	}
	head = map_get(&m->by_file, key);
	known.alike = head ? (size_t)*head : 0;
	if (vec_reserve(&m->known, 1) == 0 && map_put(&m->by_file, key, m->known.n + 1) == 0)
		m->known.items[m->known.n++] = known;
}

/* A reader that finds no build-id in a record finds its file by the path. */
static bool read_build_id(struct mappings *m, int *fd, struct buildid *ret_id)
{
	if (!m->ids && idreader_new(&m->ids) < 0)
		return false;
	return idreader_read(m->ids, TAKE_FD(*fd), READ_MAX_NS, ret_id) == 0;
}

static struct buildid build_id_of(struct mappings *m, int pid_fd, const struct mapsline *l,
				  const char *path)
{
	const struct mappedfile mapped = {
		.start = l->start,
		.end = l->end,
		.offset = l->offset,
		.path = path,
		.dev = makedev(l->maj, l->min),
		.ino = l->ino,
	};
	const struct mappedfile_process by = { .pid_fd = pid_fd, .is_true = true };
	_cleanup_(fd_closep) int fd = -1;
	const struct known *known;
	struct buildid id = {};
	struct identity file;
	struct stat st;

	if (mappedfile_stat(&by, &mapped, &st) == 0) {
		file = identity_of(&st);
		known = find_known(m, &file);
		if (known)
			return known->build_id;
	}
	/* That which was opened: another may lie at the path by now. */
	if (mappedfile_open(&by, &mapped, &fd) == 0 && fstat(fd, &st) == 0 &&
	    read_build_id(m, &fd, &id)) {
		file = identity_of(&st);
		remember(m, &file, &id);
	}
	return id;
}

/* --- records --------------------------------------------------------------------------------- */

/* A name in which "\012" is as likely a newline as these characters: the kernel's link is
 * neither. */
static bool read_link(const struct reader *r, const struct mapsline *l,
		      char ret_name[static PATH_MAX])
{
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "map_files/%lx-%lx", (unsigned long)l->start,
		       (unsigned long)l->end);
	n = readlinkat(r->options->pid_fd, path, ret_name, PATH_MAX - 1);
	if (n < 0)
		return false;
	ret_name[n] = '\0';
	return true;
}

/* What the kernel calls it in its records. NULL: it has none for that. */
static const char *name_of(const struct reader *r, struct mapsline *l, char buffer[static PATH_MAX])
{
	if (l->name[0] == '\0' || strncmp(l->name, "[anon:", 6) == 0)
		return "//anon";
	if (strncmp(l->name, "[anon_shmem:", 12) == 0)
		return "/dev/zero (deleted)";
	if (strcmp(l->name, "[vsyscall]") == 0)
		return NULL;
	if (!strstr(l->name, "\\012"))
		return l->name;
	if (read_link(r, l, buffer))
		return buffer;
	mapsline_unescape(l->name);
	return l->name;
}

static void write_mapping(struct reader *r, char *text, uint64_t time)
{
	const struct trailer trailer = record_trailer(r->options->pid, r->options->pid, time);
	uint8_t record[RECORD_OWN_MAX];
	char buffer[PATH_MAX];
	struct record_mmap2 mmap;
	struct mapsline l;
	const char *name;
	size_t size;

	if (mapsline_parse(text, &l) < 0 || !(l.prot & PROT_EXEC))
		return;
	name = name_of(r, &l, buffer);
	if (!name)
		return;
	mmap = (struct record_mmap2){
		.misc = PERF_RECORD_MISC_USER,
		.pid = r->options->pid,
		.tid = r->options->pid,
		.addr = l.start,
		.len = l.end - l.start,
		.pgoff = l.offset,
		.prot = l.prot,
		.flags = l.flags,
		.name = name,
	};
	if (l.ino > 0 && name[0] == '/')
		mmap.build_id = build_id_of(r->mappings, r->options->pid_fd, &l, name);
	if (mmap.build_id.size == 0) {
		mmap.maj = l.maj;
		mmap.min = l.min;
		mmap.ino = l.ino;
	}
	size = record_write_mmap2(&mmap, &trailer, record, sizeof(record));
	r->error = r->options->put(r->options->userdata, record, size);
}

/* Tell of the whole lines that are in the buffer; what is behind them stays there. */
static void write_lines(struct reader *r, uint64_t time)
{
	char *at = r->buffer, *end = r->buffer + r->used, *newline;

	while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
		*newline = '\0';
		if (!r->skips && r->error == 0)
			write_mapping(r, at, time);
		r->skips = false;
		at = newline + 1;
	}
	r->used = (size_t)(end - at);
	memmove(r->buffer, at, r->used);
	if (r->used == BUFFER_SIZE) {
		r->skips = true;
		r->used = 0;
	}
}

/* Return: 1; 0 at the end; or negative errno. */
static int read_maps(struct reader *r)
{
	const ssize_t n = read(r->maps_fd, r->buffer + r->used, BUFFER_SIZE - r->used);

	if (n < 0)
		return -errno;
	r->used += (size_t)n;
	return n > 0;
}

static struct stat program_of(const struct reader *r)
{
	struct stat st;

	return fstatat(r->options->pid_fd, "exe", &st, 0) == 0 ? st : (struct stat){};
}

/*
 * What is open as maps stays the same address space, whatever the process executes; but which one
 * is opened? If another program begins between the stamp and that, its mappings would be taken for
 * those of its predecessor.
 *
 * Return: as read_maps().
 */
static int open_maps(struct reader *r, uint64_t *ret_time)
{
	struct stat before, after;
	int n;

	for (unsigned i = 0; i < EXEC_TRIES; i++) {
		before = program_of(r);
		*ret_time = r->options->now(r->options->userdata);
		r->maps_fd = fd_close(r->maps_fd);
		r->maps_fd = openat(r->options->pid_fd, "maps", O_RDONLY | O_CLOEXEC);
		if (r->maps_fd < 0)
			return -errno;
		r->used = 0;
		n = read_maps(r);
		after = program_of(r);
		if (n < 0 || (before.st_ino == after.st_ino && before.st_dev == after.st_dev))
			return n;
	}
	return 0; /* the kernel's records say what it executes */
}

static int write_all(struct reader *r)
{
	uint64_t time;
	int n;

	n = open_maps(r, &time);
	while (n > 0 && r->error == 0) {
		write_lines(r, time);
		time = r->options->now(r->options->userdata);
		n = read_maps(r);
	}
	return n < 0 ? n : r->error;
}

int mappings_write(struct mappings *mappings, const struct mappings_options *options)
{
	_cleanup_(freep) char *buffer = malloc(BUFFER_SIZE + 1);
	struct reader reader = {
		.mappings = mappings,
		.options = options,
		.maps_fd = -1,
		.buffer = buffer,
	};
	int r;

	if (!buffer)
		return -ENOMEM;
	r = write_all(&reader);
	reader.maps_fd = fd_close(reader.maps_fd);
	return r;
}

/* --- build-id reader -------------------------------------------------------------------------- */

/* Threads that there may be: those that wait for ever, too. */
#define THREADS_MAX 8u

static atomic_uint n_threads;

/* Shared with the thread, which frees it if it is the last that has it. */
struct idreader {
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool left; /* the reader was freed: no more questions come */
	bool asked, answered;
	int fd; /* while it is asked: the thread's */
	int error;
	struct buildid id;
};

static void destroy_reader(struct idreader *reader)
{
	(void)fd_close(reader->fd);
	(void)pthread_cond_destroy(&reader->change);
	(void)pthread_mutex_destroy(&reader->lock);
	free(reader);
	(void)atomic_fetch_sub(&n_threads, 1);
}

static void *read_ids(void *userdata)
{
	struct idreader *reader = userdata;

	(void)pthread_mutex_lock(&reader->lock);
	for (;;) {
		struct buildid id = {};
		int error;

		while (!reader->left && (!reader->asked || reader->answered))
			(void)pthread_cond_wait(&reader->change, &reader->lock);
		if (reader->left)
			break;
		(void)pthread_mutex_unlock(&reader->lock);
		error = buildid_read(reader->fd, &id);
		(void)pthread_mutex_lock(&reader->lock);
		reader->fd = fd_close(reader->fd);
		reader->error = error;
		reader->id = id;
		reader->answered = true;
		(void)pthread_cond_broadcast(&reader->change);
	}
	(void)pthread_mutex_unlock(&reader->lock);
	destroy_reader(reader);
	return NULL;
}

static int start_thread(struct idreader *reader)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	r = pthread_attr_init(&attr);
	if (r)
		return -r;
	(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = quietthread_start(&thread, &attr, read_ids, reader);
	(void)pthread_attr_destroy(&attr);
	return r;
}

int idreader_new(struct idreader **ret_reader)
{
	struct idreader *reader = malloc(sizeof(*reader));
	int r;

	if (!reader)
		return -ENOMEM;
	if (atomic_fetch_add(&n_threads, 1) >= THREADS_MAX) {
		(void)atomic_fetch_sub(&n_threads, 1);
		free(reader);
		return -EBUSY;
	}
	*reader = (struct idreader){
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.change = PTHREAD_COND_INITIALIZER,
		.fd = -1,
	};
	r = start_thread(reader);
	if (r < 0) {
		destroy_reader(reader);
		return r;
	}
	*ret_reader = reader;
	return 0;
}

struct idreader *idreader_free(struct idreader *reader)
{
	if (!reader)
		return NULL;
	(void)pthread_mutex_lock(&reader->lock);
	reader->left = true;
	(void)pthread_cond_broadcast(&reader->change);
	(void)pthread_mutex_unlock(&reader->lock);
	return NULL;
}

int idreader_read(struct idreader *reader, int fd, uint64_t timeout_ns, struct buildid *ret_id)
{
	const struct timespec until = clock_timespec(clock_ns(CLOCK_MONOTONIC) + timeout_ns);
	int r = 0;

	HOLD(&reader->lock);
	if (reader->asked && !reader->answered) {
		(void)fd_close(fd);
		return -EBUSY;
	}
	reader->fd = fd;
	reader->asked = true;
	reader->answered = false;
	(void)pthread_cond_broadcast(&reader->change);
	while (!reader->answered && r == 0)
		r = pthread_cond_clockwait(&reader->change, &reader->lock, CLOCK_MONOTONIC, &until);
	if (!reader->answered)
		return -r;
	reader->asked = false;
	if (reader->error == 0)
		*ret_id = reader->id;
	return reader->error;
}
