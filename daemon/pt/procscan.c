/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/pt/procscan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/proc/claimant.h"
#include "daemon/proc/mappedfile.h"
#include "daemon/pt/idreader.h"
#include "record/record.h"
#include "util/dirs.h"
#include "util/map.h"
#include "util/mapsline.h"
#include "util/vec.h"

/* More than the kernel makes of the longest name. */
#define BUFFER_SIZE 32768u

/* How long the event loop waits for a file's build-id. */
#define READ_MAX_NS UINT64_C(20000000)

/* Threads that are named between two looks at the clock. */
#define THREADS_AT_ONCE 16u

/* How often a process is looked at that executes other programs meanwhile. */
#define EXEC_TRIES 3u

/* How often the list of processes is read, as long as it has some that it had not before. */
#define PASSES_MAX 8u

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

struct procscan {
	struct procscan_options options;
	struct procscan_stats stats;
	DIR *pids;
	struct map seen; /* pids that the list has had */
	unsigned n_pass; /* of the list */
	bool has_more;   /* the present pass met some for the first time */

	/* The process that it has come to. */
	uint32_t pid;
	int pid_fd;
	DIR *threads; /* NULL once they are named */
	int maps_fd;  /* -1 while they are being named */
	char *buffer;
	size_t used;
	bool skips; /* a line that did not fit: up to its end */

	struct idreader *ids; /* NULL until it is needed */
	VEC(struct known) known;
	struct map by_file; /* hash of its identity → 1 + index of the last */
};

int procscan_new(const struct procscan_options *options, struct procscan **ret_scan)
{
	_cleanup_(procscan_freep) struct procscan *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct procscan){ .options = *options, .pid_fd = -1, .maps_fd = -1 };
	s->buffer = malloc(BUFFER_SIZE + 1);
	if (!s->buffer)
		return -ENOMEM;
	s->pids = dirs_list(options->proc_fd);
	if (!s->pids)
		return -errno;
	*ret_scan = TAKE(s);
	return 0;
}

static void leave_process(struct procscan *s)
{
	s->pid_fd = fd_close(s->pid_fd);
	s->maps_fd = fd_close(s->maps_fd);
	dirs_closep(&s->threads);
	s->threads = NULL;
	s->used = 0;
	s->skips = false;
}

struct procscan *procscan_free(struct procscan *scan)
{
	if (!scan)
		return NULL;

	leave_process(scan);
	dirs_closep(&scan->pids);
	map_deinit(&scan->seen);
	vec_deinit(&scan->known);
	map_deinit(&scan->by_file);
	(void)idreader_free(scan->ids);
	free(scan->buffer);
	free(scan);
	return NULL;
}

struct procscan_stats procscan_stats(const struct procscan *scan)
{
	return scan->stats;
}

static uint64_t records_now(const struct procscan *s)
{
	return s->options.now(s->options.userdata);
}

/* The name of a folder that is a task's. */
static bool parse_id(const char *name, uint32_t *ret_id)
{
	uint64_t id = 0;

	for (const char *c = name; *c; c++) {
		if (*c < '0' || *c > '9' || id > INT32_MAX)
			return false;
		id = id * 10 + (uint64_t)(*c - '0');
	}
	*ret_id = (uint32_t)id;
	return id > 0 && id <= INT32_MAX;
}

/* --- threads --------------------------------------------------------------------------------- */

static void name_thread(struct procscan *s, const char *name, uint32_t tid)
{
	_cleanup_(fd_closep) int fd = -1;
	char path[32], comm[RECORD_COMM_SIZE + 1] = "";
	const struct trailer trailer = record_trailer(s->pid, tid, records_now(s));
	uint8_t record[RECORD_OWN_MAX];
	size_t size;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%.11s/comm", name);
	fd = openat(dirfd(s->threads), path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, comm, sizeof(comm) - 1);
	if (n <= 0)
		return; /* it has ended */
	/* A name may hold newlines; the last one is not its own. */
	comm[n - 1] = comm[n - 1] == '\n' ? '\0' : comm[n - 1];
	/* The kernel shows more of a worker's than a record has of it. */
	comm[RECORD_COMM_SIZE - 1] = '\0';
	s->stats.n_threads++;
	size = record_write_comm(&(struct record_comm){ .pid = s->pid, .tid = tid, .comm = comm },
				 &trailer, record, sizeof(record));
	s->stats.n_refused += s->options.put(s->options.userdata, record, size) < 0;
}

/* Return: whether there are more. */
static bool name_threads(struct procscan *s)
{
	struct dirent *entry;
	uint32_t tid;

	for (unsigned n = 0; n < THREADS_AT_ONCE; n++) {
		if (dirs_next(s->threads, &entry) <= 0)
			return false;
		if (parse_id(entry->d_name, &tid))
			name_thread(s, entry->d_name, tid);
	}
	return true;
}

/* --- mappings -------------------------------------------------------------------------------- */

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

static const struct known *find_known(const struct procscan *s, const struct identity *file)
{
	const uint64_t *head = map_get(&s->by_file, map_hash(file, sizeof(*file)));

	for (size_t i = head ? (size_t)*head : 0; i > 0; i = s->known.items[i - 1].alike)
		if (identity_equal(&s->known.items[i - 1].file, file))
			return &s->known.items[i - 1];
	return NULL;
}

/* Without memory for it, the next one opens the file again. */
static void remember(struct procscan *s, const struct identity *file, const struct buildid *id)
{
	const uint64_t key = map_hash(file, sizeof(*file)), *head = map_get(&s->by_file, key);
	const struct known known = { .file = *file,
				     .build_id = *id,
				     .alike = head ? (size_t)*head : 0 };

	if (vec_reserve(&s->known, 1) == 0 && map_put(&s->by_file, key, s->known.n + 1) == 0)
		s->known.items[s->known.n++] = known;
}

/* Whoever finds no build-id in a record finds its file by the path. */
static bool read_build_id(struct procscan *s, int *fd, struct buildid *ret_id)
{
	int given;

	if (!s->ids && idreader_new(&s->ids) < 0)
		return false;
	given = *fd;
	*fd = -1;
	return idreader_read(s->ids, given, READ_MAX_NS, ret_id) == 0;
}

static struct buildid build_id_of(struct procscan *s, const struct mapsline *l, const char *path)
{
	const struct mappedfile mapped = {
		.start = l->start,
		.end = l->end,
		.offset = l->offset,
		.path = path,
		.dev = makedev(l->maj, l->min),
		.ino = l->ino,
	};
	const struct claimant by = { .pid_fd = s->pid_fd, .is_true = true };
	_cleanup_(fd_closep) int fd = -1;
	const struct known *known;
	struct buildid id = {};
	struct identity file;
	struct stat st;

	if (mappedfile_stat(&by, &mapped, &st) == 0) {
		file = identity_of(&st);
		known = find_known(s, &file);
		if (known)
			return known->build_id;
	}
	/* That which was opened: another may lie at the path by now. */
	if (mappedfile_open(&by, &mapped, &fd) == 0 && fstat(fd, &st) == 0 &&
	    read_build_id(s, &fd, &id)) {
		file = identity_of(&st);
		remember(s, &file, &id);
	}
	return id;
}

/* A name in which "\012" is as likely a newline as these characters: the kernel's link is
 * neither. */
static bool read_link(const struct procscan *s, const struct mapsline *l,
		      char ret_name[static PATH_MAX])
{
	char path[64];
	ssize_t n;

	(void)snprintf(path, sizeof(path), "map_files/%lx-%lx", (unsigned long)l->start,
		       (unsigned long)l->end);
	n = readlinkat(s->pid_fd, path, ret_name, PATH_MAX - 1);
	if (n < 0)
		return false;
	ret_name[n] = '\0';
	return true;
}

/* What the kernel calls it in its records. NULL: it has none for that. */
static const char *name_of(const struct procscan *s, struct mapsline *l,
			   char buffer[static PATH_MAX])
{
	if (l->name[0] == '\0' || strncmp(l->name, "[anon:", 6) == 0)
		return "//anon";
	if (strncmp(l->name, "[anon_shmem:", 12) == 0)
		return "/dev/zero (deleted)";
	if (strcmp(l->name, "[vsyscall]") == 0)
		return NULL;
	if (!strstr(l->name, "\\012"))
		return l->name;
	if (read_link(s, l, buffer))
		return buffer;
	mapsline_unescape(l->name);
	return l->name;
}

static void write_mapping(struct procscan *s, char *text, uint64_t time)
{
	const struct trailer trailer = record_trailer(s->pid, s->pid, time);
	uint8_t record[RECORD_OWN_MAX];
	char buffer[PATH_MAX];
	struct record_mmap2 mmap;
	struct mapsline l;
	const char *name;
	size_t size;

	if (mapsline_parse(text, &l) < 0 || !(l.prot & PROT_EXEC))
		return;
	name = name_of(s, &l, buffer);
	if (!name)
		return;
	mmap = (struct record_mmap2){
		.misc = PERF_RECORD_MISC_USER,
		.pid = s->pid,
		.tid = s->pid,
		.addr = l.start,
		.len = l.end - l.start,
		.pgoff = l.offset,
		.prot = l.prot,
		.flags = l.flags,
		.name = name,
	};
	if (l.ino > 0 && name[0] == '/')
		mmap.build_id = build_id_of(s, &l, name);
	if (mmap.build_id.size == 0) {
		mmap.maj = l.maj;
		mmap.min = l.min;
		mmap.ino = l.ino;
	}
	s->stats.n_maps++;
	size = record_write_mmap2(&mmap, &trailer, record, sizeof(record));
	s->stats.n_refused += s->options.put(s->options.userdata, record, size) < 0;
}

/* Tell of the whole lines that are in the buffer; what is behind them stays there. */
static void write_lines(struct procscan *s, uint64_t time)
{
	char *at = s->buffer, *end = s->buffer + s->used, *newline;

	while ((newline = memchr(at, '\n', (size_t)(end - at)))) {
		*newline = '\0';
		if (!s->skips)
			write_mapping(s, at, time);
		s->skips = false;
		at = newline + 1;
	}
	s->used = (size_t)(end - at);
	memmove(s->buffer, at, s->used);
	if (s->used == BUFFER_SIZE) {
		s->skips = true;
		s->used = 0;
	}
}

/* Return: 1; 0 at the end; or negative errno. */
static int read_maps(struct procscan *s)
{
	const ssize_t n = read(s->maps_fd, s->buffer + s->used, BUFFER_SIZE - s->used);

	if (n < 0)
		return -errno;
	s->used += (size_t)n;
	return n > 0;
}

static struct stat program_of(const struct procscan *s)
{
	struct stat st;

	return fstatat(s->pid_fd, "exe", &st, 0) == 0 ? st : (struct stat){};
}

/*
 * What is open as maps stays the same address space, whatever the process executes; but which one
 * is opened? If another program begins between the stamp and that, its mappings would be taken for
 * those of its predecessor.
 */
static int open_maps(struct procscan *s, uint64_t *ret_time)
{
	struct stat before, after;
	int r;

	for (unsigned i = 0; i < EXEC_TRIES; i++) {
		before = program_of(s);
		*ret_time = records_now(s);
		s->maps_fd = fd_close(s->maps_fd);
		s->maps_fd = openat(s->pid_fd, "maps", O_RDONLY | O_CLOEXEC);
		if (s->maps_fd < 0)
			return -errno;
		s->used = 0;
		r = read_maps(s);
		after = program_of(s);
		if (r < 0 || (before.st_ino == after.st_ino && before.st_dev == after.st_dev))
			return r;
	}
	return 0; /* the kernel's records say what it executes */
}

/* Return: whether there is more to read. */
static bool write_maps(struct procscan *s)
{
	const bool begins = s->maps_fd < 0;
	uint64_t time = records_now(s);
	const int r = begins ? open_maps(s, &time) : read_maps(s);

	if (begins && (r == -EACCES || r == -EPERM))
		s->stats.n_unreadable++;
	if (r > 0)
		write_lines(s, time);
	return r > 0;
}

/* --- all of it ------------------------------------------------------------------------------- */

/*
 * Find the next process. The kernel gives the list in parts, so a process that was forked meanwhile
 * may be missing in it, while its parent, whose mappings it has, is only scanned later. Therefore
 * the list is read again until no process in it is new.
 *
 * Return: 1; 0 if there are no more; or negative errno.
 */
static int next_pid(struct procscan *s, const char **ret_name)
{
	struct dirent *entry;
	int r;

	while ((r = dirs_next(s->pids, &entry)) > 0) {
		if (!parse_id(entry->d_name, &s->pid) || map_get(&s->seen, s->pid))
			continue;
		s->has_more = true;
		*ret_name = entry->d_name;
		return map_put(&s->seen, s->pid, 1) < 0 ? -ENOMEM : 1;
	}
	if (r < 0 || !s->has_more || ++s->n_pass == PASSES_MAX)
		return r;
	s->has_more = false;
	rewinddir(s->pids);
	return next_pid(s, ret_name);
}

/* Return: as next_pid(). */
static int next_process(struct procscan *s)
{
	const char *name;
	int r, fd;

	r = next_pid(s, &name);
	if (r <= 0)
		return r;
	/* By this descriptor no other process is met that is given the number later. */
	s->pid_fd =
	    openat(s->options.proc_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (s->pid_fd < 0)
		return 1;
	fd = dirs_open(s->pid_fd, "task");
	s->threads = fd < 0 ? NULL : fdopendir(fd);
	if (!s->threads) {
		(void)fd_close(fd);
		leave_process(s);
		return 1;
	}
	s->stats.n_processes++;
	return 1;
}

static int advance(struct procscan *s)
{
	if (s->pid_fd < 0)
		return next_process(s);
	if (s->threads) {
		if (!name_threads(s)) {
			dirs_closep(&s->threads);
			s->threads = NULL;
		}
		return 1;
	}
	if (!write_maps(s))
		leave_process(s);
	return 1;
}

int procscan_step(struct procscan *scan, uint64_t budget_ns)
{
	const uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	int r;

	do
		r = advance(scan);
	while (r > 0 && clock_ns(CLOCK_MONOTONIC) - begun < budget_ns);
	return r > 0 ? PROCSCAN_MORE : r;
}

int procscan_go_on(struct procscan **scan, const struct procscan_options *options,
		   uint64_t budget_ns)
{
	int r = 0;

	if (!*scan)
		r = procscan_new(options, scan);
	if (r == 0)
		r = procscan_step(*scan, budget_ns);
	if (r != PROCSCAN_MORE)
		*scan = procscan_free(*scan);
	return r;
}
