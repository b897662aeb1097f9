/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/livecode.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/helper/collector/link.h"
#include "daemon/objects/codestore.h"
#include "daemon/objects/jitfile.h"
#include "daemon/proc/caller.h"
#include "daemon/proc/memcopy.h"
#include "daemon/proc/vdso.h"
#include "daemon/share/share.h"
#include "daemon/sideband/sideband.h"
#include "daemon/snapshot/bundle.h"
#include "daemon/snapshot/snapshot.h"
#include "daemon/snapshot/userparts.h"
#include "daemon/source/source.h"
#include "ptd/snapshot.h"
#include "util/cancel.h"
#include "util/fullwrite.h"
#include "util/map.h"
#include "util/objectsmap.h"

/* Bytes of memory that are looked at for what is not zero: a record may claim any amount, and a
 * program may map it. */
#define LOOK_MAX (UINT64_C(16) << 30)

#define COPY_MAX (UINT64_C(16) << 20) /* bytes of memory that are asked for at once */
#define COPY_MS  1000u                /* that the collector may take for them */

/* That it may take for a file. */
#define PATIENCE_MS     1000u
#define PATIENCE_MS_MIB 40u

/* That it may take for all memory and files of one user, beyond what their bytes take at a rate
 * that memory and the page cache have: the user decides how many there are, and how slowly a file
 * server has them. */
#define USER_NS   UINT64_C(200000000)
#define USER_RATE (UINT64_C(1) << 30) /* bytes a second */

#define MS UINT64_C(1000000) /* in ns */

#define JITFILE_NAME_SIZE 48

#define PAGES (&PTD_SNAPSHOT_MEM_PAGES[sizeof(PTD_SNAPSHOT_MEM)]) /* its name in the folder */

/* Instead of a file of a JIT compiler there is a line in the manifest that says why. */
#define JITFILE_REFUSED 1

/* What keeps something from being taken, in the manifest's words: also the user's part. */
#define PART "their share of MaxUse="

void livecode_deinit(struct livecode *livecode)
{
	map_deinit(&livecode->spent);
	livecode->pages_fd = fd_close(livecode->pages_fd);
	livecode->link = collectorlink_free(livecode->link);
	hungusers_deinit(&livecode->hung);
}

static int connect_collector(struct livecode *l)
{
	return l->link ? 0 : collectorlink_new(l->request->runtime_dir, false, &l->link);
}

/* Return: the time in ns that @bytes may take. */
static uint64_t time_for(uint64_t bytes)
{
	return bytes * (UINT64_C(1000000000) / (USER_RATE >> 20)) >> 20;
}

/* Ask the collector for @request->size_max bytes at most that are the user's. Return: as
 * collectorlink_ask(), also -ETIMEDOUT if it has taken long enough for them. */
static int ask_for_user(struct livecode *l, uid_t uid, struct collector_request *request,
			const int *fds, struct collector_answer *ret_answer)
{
	const uint64_t *before = map_get(&l->spent, uid), begun = clock_ns(CLOCK_MONOTONIC);
	const bool is_limited = !userparts_has_all(uid);
	uint64_t spent = before ? *before : 0, allowed;
	int r;

	if (is_limited && spent >= USER_NS)
		return -ETIMEDOUT;
	allowed = USER_NS - spent + time_for(request->size_max);
	if (is_limited && request->timeout_ms > allowed / MS + 1)
		request->timeout_ms = (uint32_t)(allowed / MS + 1);
	r = collectorlink_ask(l->link, request, fds, l->request->cancel, ret_answer, NULL);
	if (!is_limited)
		return r;
	spent += clock_ns(CLOCK_MONOTONIC) - begun;
	allowed = r == 0 ? time_for(ret_answer->size) : 0;
	/* Without memory for it, their next request may take as long. */
	(void)!map_put(&l->spent, uid, spent > allowed ? spent - allowed : 0);
	return r;
}

/* Make the file @name in the folder @folder. */
static int create_in(struct livecode *l, const char *folder, const char *name, int *ret_fd)
{
	char path[96];
	int fd;

	if (mkdirat(l->dir_fd, folder, 0750) < 0 && errno != EEXIST)
		return -errno;
	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = openat(l->dir_fd, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0640);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static int add_sum(struct livecode *l, const char *folder, const char *name)
{
	char hash[SHA256_HEX_SIZE] = "", path[96];
	uint64_t size;
	int r;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	r = bundle_add_sum(l->bundle, path, hash, &size);
	if (r == 0)
		l->bytes += size;
	return r;
}

/* The file as it is said in the manifest. */
static const char *jitfile_key(const struct jitfile *file)
{
	return file->is_dump ? "jit" : "perfmap";
}

_printf_(3, 4) static void refuse_jitfile(const struct livecode *l, const struct jitfile *file,
					  const char *format, ...)
{
	va_list ap;

	fprintf(l->notes, "%s.%" PRIu32 "=refused: ", jitfile_key(file), file->pid);
	va_start(ap, format);
	(void)vfprintf(l->notes, format, ap);
	va_end(ap);
	fputc('\n', l->notes);
}

/* Return: 0, and @ret_error why it cannot be read; or negative errno. */
static int copy_jitfile(struct livecode *l, const struct jitfile *file, int fd, int *ret_error)
{
	const int fds[CHANNEL_FDS_MAX] = { file->fd, fd };
	struct collector_request request = {
		.verb = COLLECTOR_COPY,
		.flags = COLLECTOR_FIRST,
		.timeout_ms = PATIENCE_MS + (uint32_t)((file->size >> 20) * PATIENCE_MS_MIB),
		.pid = file->pid,
		.uid = file->uid,
		.size_max = file->size,
	};
	struct collector_answer answer;
	int r;

	if (request.timeout_ms > COLLECTOR_TIMEOUT_MAX)
		request.timeout_ms = COLLECTOR_TIMEOUT_MAX;
	r = connect_collector(l);
	if (r < 0)
		return r;
	r = hungusers_has_user(&l->hung, file->uid)
		? -ETIMEDOUT
		: ask_for_user(l, file->uid, &request, fds, &answer);
	if (r == -ETIMEDOUT)
		hungusers_note_user(&l->hung, file->uid);
	/* Of these, it is not somebody else's file that is the cause. */
	if (r == -ECANCELED || r == -ENOSPC || r == -EDQUOT)
		return r;
	*ret_error = r;
	return 0;
}

/* Format the name of file @i in the folder. */
static void name_jitfile(const struct livecode *l, size_t i,
			 char ret_name[static JITFILE_NAME_SIZE])
{
	const struct jitfile *files = l->known->jitfiles;
	unsigned number = 1;

	for (size_t k = 0; k < i; k++)
		number += files[k].is_dump && files[k].pid == files[i].pid;
	if (!files[i].is_dump)
		(void)snprintf(ret_name, JITFILE_NAME_SIZE, "perf-%" PRIu32 ".map", files[i].pid);
	else if (number == 1)
		(void)snprintf(ret_name, JITFILE_NAME_SIZE, "jit-%" PRIu32 ".dump", files[i].pid);
	else
		(void)snprintf(ret_name, JITFILE_NAME_SIZE, "jit-%" PRIu32 ".%u.dump", files[i].pid,
			       number);
}

/* Somebody else's file may fail to be read, on NFS for one: the snapshot goes on without it.
 * Return: 0; JITFILE_REFUSED; or negative errno. */
static int add_jitfile(struct livecode *l, size_t i, const char *limit)
{
	const struct jitfile *file = &l->known->jitfiles[i];
	char name[JITFILE_NAME_SIZE], path[64];
	_cleanup_(fd_closep) int fd = -1;
	int r, error = 0;

	if (file->reason) {
		refuse_jitfile(l, file, "%s", file->reason);
		return JITFILE_REFUSED;
	}
	if (limit) {
		refuse_jitfile(l, file, "its %" PRIu64 " bytes are more than %s leaves to user %u",
			       file->size, limit, (unsigned)file->uid);
		return JITFILE_REFUSED;
	}
	name_jitfile(l, i, name);
	(void)snprintf(path, sizeof(path), PTD_SNAPSHOT_JIT "/%s", name);
	r = create_in(l, PTD_SNAPSHOT_JIT, name, &fd);
	if (r == 0)
		r = copy_jitfile(l, file, fd, &error);
	if (error < 0) {
		refuse_jitfile(l, file, "it cannot be read: %s",
			       collectorlink_may_retry(error)
				   ? "the collector did not answer in time"
				   : strerror(-error));
		return unlinkat(l->dir_fd, path, 0) < 0 ? -errno : JITFILE_REFUSED;
	}
	if (r == 0)
		r = add_sum(l, PTD_SNAPSHOT_JIT, name);
	if (r == 0)
		fprintf(l->notes, "%s.%" PRIu32 "=%" PRIu64 "\n", jitfile_key(file), file->pid,
			file->size);
	return r;
}

/* Return: the limit that the file does not fit into; NULL if it fits. */
static const char *find_limit(const struct livecode *l, const struct share *share,
			      const struct jitfile *file, bool beyond_part)
{
	const uint64_t max = l->request->jit_max;

	if (file->size > max || share->taken > max - file->size ||
	    (!beyond_part && !share_is_in_part(share, max, file->uid, file->size)))
		return "JitMax=";
	return file->size > userparts_left(l->parts, file->uid) ? "MaxUse=" : NULL;
}

/* Find out which files fit: at first those that are in their users' parts of JitMax=, then others
 * as long as there is room. @limits: of each file, what it does not fit into; NULL if it fits. */
static void choose_files(const struct livecode *l, const char **limits)
{
	struct share share = {};

	for (size_t i = 0; i < l->known->n_jitfiles; i++) {
		limits[i] = "JitMax=";
		if (map_get(l->pids, l->known->jitfiles[i].pid) && !l->known->jitfiles[i].reason)
			userparts_add_user(l->parts, l->known->jitfiles[i].uid);
	}
	for (unsigned pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < l->known->n_jitfiles; i++) {
			const struct jitfile *file = &l->known->jitfiles[i];

			if (!map_get(l->pids, l->known->jitfiles[i].pid) || file->reason ||
			    !limits[i])
				continue;
			limits[i] = find_limit(l, &share, file, pass > 0);
			if (limits[i])
				continue;
			share_take(&share, file->uid, file->size);
			userparts_take(l->parts, file->uid, file->size);
		}
}

/* What has become of the files of JIT compilers. */
struct jitmap {
	const struct livecode *code;
	bool *kept; /* of each file */
};

static void put_jitmap(FILE *f, void *userdata)
{
	const struct jitmap *map = userdata;

	for (size_t i = 0; i < map->code->known->n_jitfiles; i++) {
		const struct jitfile *file = &map->code->known->jitfiles[i];
		char id[256], name[JITFILE_NAME_SIZE] = "-";

		if (!file->path || !map_get(map->code->pids, file->pid))
			continue;
		if (map->kept[i])
			name_jitfile(map->code, i, name);
		(void)snprintf(id, sizeof(id), "%" PRIu32 " %" PRIu64 " %s%s%s", file->pid,
			       file->since, name, file->reason ? " " : "", file->reason ?: "");
		objectsmap_put(f, id, file->path);
	}
}

static bool has_dump(const struct livecode *l)
{
	for (size_t i = 0; i < l->known->n_jitfiles; i++)
		if (l->known->jitfiles[i].path && map_get(l->pids, l->known->jitfiles[i].pid))
			return true;
	return false;
}

static int add_jitfiles(struct livecode *l, const char *const *limits, struct jitmap *map)
{
	for (size_t i = 0; i < l->known->n_jitfiles; i++) {
		int r;

		if (!map_get(l->pids, l->known->jitfiles[i].pid))
			continue;
		r = cancel_asked(l->request->cancel) ? -ECANCELED : add_jitfile(l, i, limits[i]);
		if (r < 0)
			return r;
		map->kept[i] = r == 0;
	}
	return has_dump(l) ? bundle_add_file(l->bundle, PTD_SNAPSHOT_JIT_MAP, put_jitmap, map) : 0;
}

int livecode_add_files(struct livecode *l)
{
	const size_t n = l->known->n_jitfiles;
	_cleanup_(freep) const char **limits = calloc(n + 1, sizeof(*limits));
	_cleanup_(freep) bool *kept = calloc(n + 1, sizeof(*kept));
	struct jitmap map = { .code = l, .kept = kept };

	if (!limits || !kept)
		return -ENOMEM;
	choose_files(l, limits);
	return add_jitfiles(l, limits, &map);
}

/* What may still be kept and looked at, of all processes' memory. */
struct budget {
	uint64_t keep, look; /* bytes */
};

/* Reading memory, which only the collector may do. */
struct reading {
	struct livecode *code;
	int copy_fd; /* where the collector copies memory to */
	struct budget left;
	const char *limit; /* what sets how much may be kept */
};

static void reading_deinit(struct reading *reading)
{
	reading->copy_fd = fd_close(reading->copy_fd);
}

static int reading_init(struct reading *reading, struct livecode *code)
{
	*reading = (struct reading){
		.code = code,
		.copy_fd = memfd_create("memory", MFD_CLOEXEC),
		.left = { .keep = code->request->mem_max, .look = LOOK_MAX },
	};
	return reading->copy_fd < 0 ? -errno : connect_collector(code);
}

/* A process whose memory is read. */
struct memory {
	struct reading *reading;
	uint32_t pid;
	uid_t uid;      /* whose process it is */
	uint64_t start; /* of the memory that was copied */
	int error;      /* why the rest cannot be read; 0: it can */
};

static int begin_pages(struct livecode *l)
{
	static const struct ptd_pages_header header = { .magic = PTD_PAGES_MAGIC,
							.version = PTD_PAGES_VERSION };
	int r;

	r = create_in(l, PTD_SNAPSHOT_MEM, PAGES, &l->pages_fd);
	return r < 0 ? r : fullwrite(l->pages_fd, &header, sizeof(header));
}

/* All pieces go into one file: programs decide how many there are, and a file costs much more than
 * a page. */
static int put_memory(void *userdata, uint64_t at, const void *bytes, size_t size)
{
	const struct memory *m = userdata;
	struct livecode *code = m->reading->code;
	const struct ptd_pages_piece piece = { .pid = m->pid,
					       .address = m->start + at,
					       .size = size };
	int r;

	r = code->pages_fd < 0 ? begin_pages(code) : 0;
	if (r == 0)
		r = fullwrite(code->pages_fd, &piece, sizeof(piece));
	return r < 0 ? r : fullwrite(code->pages_fd, bytes, size);
}

/* Have the collector copy what is executable of the @size bytes at @start, at most @n_max. Return:
 * bytes that it copied, 0 if the memory cannot be read; or negative errno. */
static int64_t copy_memory(struct memory *m, uint64_t start, uint64_t size, uint64_t n_max)
{
	const struct reading *reading = m->reading;
	const int fds[CHANNEL_FDS_MAX] = { reading->copy_fd, -1 };
	struct collector_request request = {
		.verb = COLLECTOR_MEMORY,
		.timeout_ms = COPY_MS,
		.pid = m->pid,
		.start = start,
		.end = start + size,
		.size_max = n_max,
	};
	struct collector_answer answer;
	int r;

	if (ftruncate(reading->copy_fd, 0) < 0 || ftruncate(reading->copy_fd, (off_t)size) < 0)
		return -errno;
	m->start = start;
	r = ask_for_user(reading->code, m->uid, &request, fds, &answer);
	if (r == -ECANCELED)
		return r;
	if (r == -ETIMEDOUT)
		hungusers_note(&m->reading->code->hung, m->pid);
	m->error = r;
	return r < 0 ? 0 : (int64_t)answer.size;
}

/* The vDSO is an object, the same one of all processes; what a process has in its place is kept as
 * its own memory. Return: bytes that were kept, or negative errno. */
static int64_t add_vdso(struct memory *m, const struct tasks_range *range)
{
	const int fd = m->reading->copy_fd;
	uint8_t bytes[VDSO_SIZE_MAX];
	int64_t r;

	if (range->size > sizeof(bytes))
		return 0;
	r = copy_memory(m, range->start, range->size, range->size);
	if (r <= 0)
		return r;
	if (pread(fd, bytes, range->size, 0) != (ssize_t)range->size)
		return -EIO;
	if (vdso_equals(bytes, range->size))
		return 0;
	return memcopy_read(fd, 0, range->size, range->size, put_memory, m);
}

static void spend_budget(uint64_t *left, uint64_t bytes)
{
	*left -= bytes < *left ? bytes : *left;
}

/* A range may have gigabytes, so it is copied in parts. Return: bytes that were kept, or negative
 * errno. */
static int64_t add_range(struct memory *m, const struct tasks_range *range)
{
	struct budget *left = &m->reading->left;
	const uint64_t size = range->size < left->look ? range->size : left->look;
	int64_t kept = 0, r = 0;

	for (uint64_t at = 0; m->error == 0 && at < size; at += COPY_MAX) {
		const uint64_t n = size - at < COPY_MAX ? size - at : COPY_MAX;

		r = copy_memory(m, range->start + at, n, left->keep);
		if (r > 0)
			r = memcopy_read(m->reading->copy_fd, 0, n, left->keep, put_memory, m);
		if (r < 0)
			return r;
		spend_budget(&left->look, n);
		spend_budget(&left->keep, (uint64_t)r);
		kept += r;
	}
	return kept;
}

static int64_t add_vdso_or_range(struct memory *m, const struct tasks_range *range)
{
	int64_t r;

	if (!range->vdso)
		return add_range(m, range);
	r = add_vdso(m, range);
	if (r > 0)
		spend_budget(&m->reading->left.keep, (uint64_t)r);
	return r;
}

static const char *why_unread(int error)
{
	if (error == -ESRCH || error == -ENOENT)
		return "it is no process that is recorded now";
	return collectorlink_may_retry(error) ? "the collector did not answer in time"
					      : strerror(-error);
}

static void say_kept(const struct memory *m, uint64_t kept)
{
	const struct budget *left = &m->reading->left;

	const bool is_full = left->keep < 4096;

	fprintf(m->reading->code->notes, "mem.%" PRIu32 "=%" PRIu64 "%s%s%s%s%s%s\n", m->pid, kept,
		is_full ? ": more than " : "", is_full ? m->reading->limit : "",
		is_full ? " may be missing" : "",
		left->look == 0 ? ": there may be more of it than was looked at" : "",
		m->error < 0 ? ": the rest could not be read: " : "",
		m->error < 0 ? why_unread(m->error) : "");
}

static void say_refused(const struct memory *m)
{
	fprintf(m->reading->code->notes, "mem.%" PRIu32 "=refused: %s\n", m->pid,
		why_unread(m->error));
}

/* Keep the ranges of one process: @n at @ranges. */
static int add_process_memory(struct reading *reading, const struct tasks_range *ranges, size_t n)
{
	struct memory memory = { .reading = reading, .pid = ranges->pid, .uid = ranges->uid };
	bool only_vdso = true;
	uint64_t kept = 0;

	for (size_t i = 0; i < n; i++)
		only_vdso = only_vdso && ranges[i].vdso;

	memory.error = hungusers_has(&reading->code->hung, memory.pid) ? -ETIMEDOUT : 0;
	for (size_t i = 0; memory.error == 0 && i < n; i++) {
		const int64_t size = cancel_asked(reading->code->request->cancel)
					 ? -ECANCELED
					 : add_vdso_or_range(&memory, &ranges[i]);

		if (size < 0)
			return (int)size;
		kept += (uint64_t)size;
	}
	if (memory.error < 0 && kept == 0 && !only_vdso)
		say_refused(&memory);
	else if (!only_vdso || kept > 0)
		say_kept(&memory, kept);
	return 0;
}

/* A user with processes whose memory is to be read. */
struct demand {
	uid_t uid;
	uint64_t size; /* of the ranges, whatever is in them */
};

static int by_size(const void *a, const void *b)
{
	const struct demand *x = a, *y = b;

	return COMPARE(x->size, y->size) ?: COMPARE(x->uid, y->uid);
}

/* Find out which users want how much, who wants least first. Return: how many there are, in an
 * array with room for each range. */
static size_t find_demands(const struct livecode *l, struct demand *ret_demands)
{
	const struct sideband_view *tasks = l->known->tasks;
	size_t n = 0;

	for (size_t i = 0; i < tasks->n_ranges; i++) {
		const struct tasks_range *range = &tasks->ranges[i];
		size_t k = 0;

		if (!map_get(l->pids, range->pid))
			continue;
		while (k < n && ret_demands[k].uid != range->uid)
			k++;
		if (k == n)
			ret_demands[n++] = (struct demand){ .uid = range->uid };
		ret_demands[k].size += range->size;
	}
	if (n > 1)
		qsort(ret_demands, n, sizeof(*ret_demands), by_size);
	return n;
}

/* Read the memory of one user's processes. */
static int read_user(struct reading *reading, uid_t uid)
{
	const struct livecode *l = reading->code;
	const struct sideband_view *tasks = l->known->tasks;
	int r = 0;

	for (size_t i = 0, n; r == 0 && i < tasks->n_ranges; i += n) {
		for (n = 1; i + n < tasks->n_ranges; n++)
			if (tasks->ranges[i + n].pid != tasks->ranges[i].pid)
				break;
		if (tasks->ranges[i].uid == uid && map_get(l->pids, tasks->ranges[i].pid))
			r = add_process_memory(reading, tasks->ranges + i, n);
	}
	return r;
}

/* Read the memory of one user's processes, at most @part of it. Return: 0 and what is left of that;
 * or negative errno. */
static int read_part(struct reading *reading, uid_t uid, const struct budget *part,
		     struct budget *ret_left)
{
	struct userparts *parts = reading->code->parts;
	const uint64_t allowed = userparts_left(parts, uid);
	const bool is_less = allowed < part->keep;
	const uint64_t keep = is_less ? allowed : part->keep;
	int r;

	reading->left = (struct budget){ .keep = keep, .look = part->look };
	reading->limit = is_less ? PART : "MemMax=";
	r = read_user(reading, uid);
	userparts_take(parts, uid, keep - reading->left.keep);
	*ret_left = reading->left;
	ret_left->keep += part->keep - keep;
	return r;
}

/* Each user may have as much as is left for them and each of those who want more: what one does not
 * need is theirs. */
static int read_memory(struct livecode *l)
{
	const struct sideband_view *tasks = l->known->tasks;
	_cleanup_(reading_deinit) struct reading reading = { .copy_fd = -1 };
	_cleanup_(freep) struct demand *demands = NULL;
	struct budget left, rest;
	size_t n;
	int r;

	if (tasks->n_ranges == 0)
		return 0;
	demands = malloc(tasks->n_ranges * sizeof(*demands));
	if (!demands)
		return -ENOMEM;
	r = reading_init(&reading, l);
	left = reading.left;
	n = find_demands(l, demands);
	for (size_t i = 0; i < n; i++)
		userparts_add_user(l->parts, demands[i].uid);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct budget part = { .keep = left.keep / (n - i),
					     .look = left.look / (n - i) };

		r = read_part(&reading, demands[i].uid, &part, &rest);
		spend_budget(&left.keep, part.keep - rest.keep);
		spend_budget(&left.look, part.look - rest.look);
	}
	return r == 0 && l->pages_fd >= 0 ? add_sum(l, PTD_SNAPSHOT_MEM, PAGES) : r;
}

/* --- the code that ran ------------------------------------------------------------------------ */

/* What of the code store goes into the snapshot. */
struct ran {
	uint64_t left;      /* of MemMax= */
	struct map pids;    /* processes that have a file */
	uint64_t n_refused; /* records of programs that ran */
};

static int put_code(struct livecode *l, const struct codestore_program *program,
		    const uint8_t *bytes, size_t size)
{
	_cleanup_(fd_closep) int fd = -1;
	char name[64];
	int r;

	(void)snprintf(name, sizeof(name), "%" PRIu32 "-%" PRIu64 PTD_CODE_SUFFIX, program->pid,
		       program->start);
	r = create_in(l, PTD_SNAPSHOT_MEM, name, &fd);
	if (r == 0)
		r = fullwrite(fd, bytes, size);
	return r < 0 ? r : add_sum(l, PTD_SNAPSHOT_MEM, name);
}

/* A program that ran no such code has a file if one before it in its process did, whose code would
 * be taken for its own. */
static int add_program(struct livecode *l, const struct codestore_program *program, struct ran *ran)
{
	const uint64_t allowed = userparts_left(l->parts, program->uid);
	const bool is_less = allowed < ran->left;
	_cleanup_(freep) uint8_t *bytes = NULL;
	bool is_whole;
	size_t size;
	int r;

	r = codestore_copy(l->known->code, program, is_less ? allowed : ran->left, &bytes, &size);
	if (r < 0)
		return r == -ENOENT ? 0 : r;
	is_whole = r > 0;
	ran->n_refused += program->n_refused;
	if (size == sizeof(struct ptd_code_header) && !map_get(&ran->pids, program->pid))
		return 0;
	ran->left -= size < ran->left ? size : ran->left;
	userparts_take(l->parts, program->uid, size);
	r = map_put(&ran->pids, program->pid, 1);
	if (r == 0)
		r = put_code(l, program, bytes, size);
	if (r < 0)
		return r;
	if (is_whole)
		fprintf(l->notes, "mem.%" PRIu32 "=%zu\n", program->pid, size);
	else
		fprintf(l->notes, "mem.%" PRIu32 "=refused: more than %s allows\n", program->pid,
			is_less ? PART : "MemMax=");
	return 0;
}

static int add_code(struct livecode *l)
{
	struct ran ran = { .left = l->request->mem_max };
	struct codestore_program program = {};
	int r = 0;

	while (codestore_next(l->known->code, &program))
		if (map_get(l->pids, program.pid))
			userparts_add_user(l->parts, program.uid);
	program = (struct codestore_program){};
	while (r == 0 && codestore_next(l->known->code, &program))
		if (map_get(l->pids, program.pid))
			r = cancel_asked(l->request->cancel) ? -ECANCELED
							     : add_program(l, &program, &ran);
	map_deinit(&ran.pids);
	if (r == 0 && ran.n_refused > 0)
		fprintf(l->notes, "mem_refused=%" PRIu64 "\n", ran.n_refused);
	return r;
}

int livecode_add_memory(struct livecode *l)
{
	return l->known->code ? add_code(l) : read_memory(l);
}
