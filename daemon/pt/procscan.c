/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/pt/procscan.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "util/dirs.h"
#include "util/map.h"
#include "util/number.h"
#include "util/perf/record.h"
#include "util/textfile.h"
#include "util/vec.h"

/* Threads and mappings that are told of between two looks at the clock. */
#define THREADS_AT_ONCE  16u
#define MAPPINGS_AT_ONCE 64u

/* How often the list of processes is read, as long as it has some that it had not before. */
#define PASSES_MAX 8u

/* How often processes are asked for again that took too long. */
#define AGAIN_MAX 3u

struct procscan_pids {
	VEC(uint32_t) list;
};

struct procscan {
	struct procscan_options options;
	struct procscan_stats stats;
	DIR *pids;
	struct map seen; /* pids that the list has had */
	unsigned n_pass; /* of the list */
	bool has_more;   /* the present pass met some for the first time */
	bool is_listed;  /* the list has no more */

	struct procscan_pids late;  /* took too long, and are to be asked for again */
	struct procscan_pids again; /* are asked for again; @n_asked of them were */
	size_t n_asked;
	unsigned n_again; /* how often that was done */

	/* The process that it has come to. */
	uint32_t pid;
	char name[16]; /* of its folder, if it is asked for again */
	int pid_fd;
	DIR *threads;      /* NULL once they are named */
	bool has_mappings; /* false: they are asked for */
	uint8_t *bytes;    /* of their records */
	struct cursor mappings;
};

int procscan_new(const struct procscan_options *options, struct procscan **ret_scan)
{
	_cleanup_(procscan_freep) struct procscan *s = malloc(sizeof(*s));

	if (!s)
		return -ENOMEM;
	*s = (struct procscan){ .options = *options, .pid_fd = -1 };
	s->pids = dirs_list(options->proc_fd);
	if (!s->pids)
		return -errno;
	*ret_scan = TAKE(s);
	return 0;
}

static void leave_process(struct procscan *s)
{
	s->pid_fd = fd_close(s->pid_fd);
	dirs_closep(&s->threads);
	s->threads = NULL;
	s->has_mappings = false;
	free(TAKE(s->bytes));
}

struct procscan *procscan_free(struct procscan *scan)
{
	if (!scan)
		return NULL;

	leave_process(scan);
	dirs_closep(&scan->pids);
	map_deinit(&scan->seen);
	vec_deinit(&scan->late.list);
	vec_deinit(&scan->again.list);
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
	uint64_t id;

	if (number_parse(name, INT32_MAX, &id) < 0 || id == 0)
		return false;
	*ret_id = (uint32_t)id;
	return true;
}

/* --- threads --------------------------------------------------------------------------------- */

static void name_thread(struct procscan *s, const char *name, uint32_t tid)
{
	char path[32], comm[RECORD_COMM_SIZE + 1] = "";
	const struct trailer trailer = record_trailer(s->pid, tid, records_now(s));
	uint8_t record[RECORD_OWN_MAX];
	size_t size;
	int n;

	(void)snprintf(path, sizeof(path), "%.11s/comm", name);
	n = textfile_read(dirfd(s->threads), path, comm, sizeof(comm));
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

static void put_mapping(struct procscan *s, const struct record *record)
{
	struct record_mmap2 mmap;

	if (record_get_mmap2(record, &mmap) < 0 || mmap.pid != s->pid)
		return; /* the answer must be mistaken */
	s->stats.n_maps++;
	s->stats.n_refused +=
	    s->options.put(s->options.userdata, record->bytes, record->header.size) < 0;
}

/* Return: whether there are more. */
static bool put_mappings(struct procscan *s)
{
	struct record record;

	for (unsigned n = 0; n < MAPPINGS_AT_ONCE; n++) {
		if (record_next(&s->mappings, &record) != 0)
			return false;
		put_mapping(s, &record);
	}
	return true;
}

/* Return: 1; or negative errno if the collector cannot be asked for mappings. */
static int ask_mappings(struct procscan *s, uint64_t wait_ns)
{
	size_t size = 0;
	const int r = s->options.maps(s->options.userdata, s->pid, wait_ns, &s->bytes, &size);

	if (r == -EAGAIN)
		return 1;
	if (r == -ENOTCONN || r == -ENOMEM)
		return r;
	if (r == -ETIMEDOUT && vec_push(&s->late.list, s->pid) < 0)
		return -ENOMEM;
	s->stats.n_unreadable += r < 0 && r != -ESRCH && r != -ENOENT && r != -ETIMEDOUT;
	if (r < 0) {
		leave_process(s);
		return 1;
	}
	s->mappings = cursor_from(s->bytes, size);
	s->has_mappings = true;
	return 1;
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

/* Return: whether some of those that took too long are to be asked for again. */
static bool ask_again(struct procscan *s)
{
	vec_deinit(&s->again.list);
	s->again = s->late;
	s->late = (struct procscan_pids){};
	s->n_asked = 0;
	if (s->again.list.n > 0 && s->n_again == AGAIN_MAX) {
		s->stats.n_unreadable += s->again.list.n;
		s->again.list.n = 0;
	}
	if (s->again.list.n == 0)
		return false;
	s->n_again++;
	if (s->options.again)
		s->options.again(s->options.userdata);
	return true;
}

/* Find the next process of those that took too long. Return: as next_pid(). */
static int next_late(struct procscan *s, const char **ret_name)
{
	if (s->n_asked == s->again.list.n && !ask_again(s))
		return 0;
	s->pid = s->again.list.items[s->n_asked++];
	(void)snprintf(s->name, sizeof(s->name), "%" PRIu32, s->pid);
	*ret_name = s->name;
	return 1;
}

/* Return: as next_pid(). */
static int next_process(struct procscan *s)
{
	const char *name;
	int r, fd;

	r = s->is_listed ? 0 : next_pid(s, &name);
	s->is_listed = r == 0;
	if (r == 0)
		r = next_late(s, &name);
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

static int advance(struct procscan *s, uint64_t wait_ns)
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
	if (!s->has_mappings)
		return ask_mappings(s, wait_ns);
	if (!put_mappings(s))
		leave_process(s);
	return 1;
}

int procscan_step(struct procscan *scan, uint64_t budget_ns)
{
	const uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	uint64_t spent = 0;
	int r;

	do {
		r = advance(scan, budget_ns - spent);
		spent = clock_ns(CLOCK_MONOTONIC) - begun;
	} while (r > 0 && spent < budget_ns);
	return r > 0 ? PROCSCAN_MORE : r;
}

int procscan_go_on(struct procscan **scan, const struct procscan_options *options,
		   uint64_t budget_ns, struct procscan_stats *ret_stats)
{
	int r = 0;

	if (!*scan)
		r = procscan_new(options, scan);
	if (r == 0)
		r = procscan_step(*scan, budget_ns);
	if (r == 0)
		*ret_stats = procscan_stats(*scan);
	if (r != PROCSCAN_MORE)
		*scan = procscan_free(*scan);
	return r;
}
