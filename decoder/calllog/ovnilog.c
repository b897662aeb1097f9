/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/ovnilog.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/calllog/calllog.h"
#include "decoder/calllog/logfile.h"
#include "decoder/calllog/ovnicalls.h"
#include "decoder/calllog/ovnievent.h"
#include "decoder/calllog/ovnimeta.h"
#include "decoder/calllog/ovninames.h"
#include "decoder/image/objects.h"
#include "decoder/symbol/resolver.h"
#include "decoder/symbol/source.h"
#include "decoder/util/ovni.h"
#include "util/dirs.h"
#include "util/map.h"
#include "util/message.h"
#include "util/vec.h"

/* --- the directories of a trace, and the streams in them -------------------------------------- */

#define OVNITREE_DEPTH_MAX 8    /* directories nested deeper are not looked at */
#define OVNITREE_LOOKS_MAX 4096 /* entries are looked at to find out whether it is a trace */

struct ovnistream {
	char *path, *metadata; /* of its files; owned */
	char *loom;            /* of version 1: name of the directory; owned; NULL: not known */
	bool is_old;           /* it is of version 1: */
	uint32_t pid, tid;     /* as the names of the files say */
};

struct ovnitree {
	VEC(struct ovnistream) streams; /* in the order of their paths */
};

/* A search for streams. */
struct search {
	struct ovnitree *tree; /* NULL: the first one is enough */
	size_t n_max;
	size_t n_looks;
	char **reterr_message;
};

/* Return: whether @name is @prefix and a number of 32 bits. */
static bool parse_name(const char *name, const char *prefix, uint32_t *ret_number)
{
	unsigned long long number;
	char *end;

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	name += strlen(prefix);
	number = strtoull(name, &end, 10);
	*ret_number = (uint32_t)number;
	return *name >= '0' && *name <= '9' && *end == '\0' && number <= UINT32_MAX;
}

static bool is_there(int dir_fd, const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, 0) == 0 && S_ISREG(st.st_mode);
}

static void stream_deinit(struct ovnistream *stream)
{
	free(stream->path);
	free(stream->metadata);
	free(stream->loom);
}

/* Add the stream @name in the directory @path, whose metadata is there, too. */
static int note_stream(struct search *s, const char *path, const char *name, const char *metadata,
		       const struct ovnistream *found)
{
	struct ovnistream stream = *found;
	int r = 0;

	if (s->tree->streams.n == s->n_max)
		return message_set(s->reterr_message, -EFBIG, "%s: more than %zu streams", path,
				   s->n_max);
	stream.path = message_text("%s/%s", path, name);
	stream.metadata = message_text("%s/%s", path, metadata);
	if (found->loom)
		stream.loom = strdup(found->loom);
	if (!stream.path || !stream.metadata || (found->loom && !stream.loom))
		r = -ENOMEM;
	if (r == 0)
		r = vec_push(&s->tree->streams, stream);
	if (r < 0)
		stream_deinit(&stream);
	return r;
}

/* --- version 1 -------------------------------------------------------------------------------- */

/* Return: the name of the loom's directory, which is that above @path; the caller frees it. */
static char *loom_of(const char *path)
{
	const char *end = strrchr(path, '/');
	_cleanup_(freep) char *above = end ? strndup(path, (size_t)(end - path)) : NULL;

	if (!end)
		return strdup("");
	return above ? strdup(basename(above)) : NULL;
}

/* A thread's file, THREAD or in later releases THREAD.obs, in the directory of a process. */
static int take_thread(struct search *s, const char *path, const char *name,
		       struct ovnistream *process)
{
	char number[64];
	const size_t n = strlen(name), n_end = strlen(".obs");

	if (n >= sizeof(number))
		return 0;
	memcpy(number, name, n + 1);
	if (n > n_end && strcmp(name + n - n_end, ".obs") == 0)
		number[n - n_end] = '\0';
	return parse_name(number, OVNI_THREAD_PREFIX, &process->tid)
		   ? note_stream(s, path, name, OVNI_PROC_METADATA, process)
		   : 0;
}

static int take_process(struct search *s, const char *path, DIR *dir, uint32_t pid)
{
	struct ovnistream process = { .is_old = true, .pid = pid, .loom = loom_of(path) };
	struct dirent *entry;
	int r = process.loom ? 0 : -ENOMEM;

	while (r == 0 && (r = dirs_next(dir, &entry)) > 0)
		r = is_there(dirfd(dir), entry->d_name)
			? take_thread(s, path, entry->d_name, &process)
			: 0;
	free(process.loom);
	return r;
}

/* --- directories ------------------------------------------------------------------------------ */

static int search(struct search *s, const char *path, unsigned int depth);

/* Search the directories in this one. Return: as search(). */
static int search_within(struct search *s, const char *path, DIR *dir, unsigned int depth)
{
	struct dirent *entry;
	int r = 0;

	while (r == 0 && (r = dirs_next(dir, &entry)) > 0) {
		_cleanup_(freep) char *inner = NULL;
		struct stat st;

		r = 0;
		if (!s->tree && ++s->n_looks > OVNITREE_LOOKS_MAX)
			return 0;
		if (entry->d_name[0] == '.' ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		    !S_ISDIR(st.st_mode))
			continue;
		inner = message_text("%s/%s", path, entry->d_name);
		r = inner ? search(s, inner, depth + 1) : -ENOMEM;
	}
	return r;
}

/* Return: 0; 1: the search is over; or negative errno. */
static int search(struct search *s, const char *path, unsigned int depth)
{
	const struct ovnistream newer = {};
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_DIRECTORY);
	_cleanup_(dirs_closep) DIR *dir = fd < 0 ? NULL : dirs_list(fd);
	uint32_t pid;

	if (!dir || depth > OVNITREE_DEPTH_MAX)
		return 0;
	if (is_there(fd, OVNI_METADATA) && is_there(fd, OVNI_STREAM))
		return s->tree ? note_stream(s, path, OVNI_STREAM, OVNI_METADATA, &newer) : 1;
	if (is_there(fd, OVNI_PROC_METADATA) && parse_name(basename(path), OVNI_PROC_PREFIX, &pid))
		return s->tree ? take_process(s, path, dir, pid) : 1;
	return search_within(s, path, dir, depth);
}

/* Return: @path without slashes at its end; the caller frees it. */
static char *plain_path(const char *path)
{
	char *plain = strdup(path);

	for (size_t n = plain ? strlen(plain) : 0; n > 1 && plain[n - 1] == '/'; n--)
		plain[n - 1] = '\0';
	return plain;
}

/* Return: whether there is a stream at @path or below. */
static bool ovnitree_is(const char *path)
{
	_cleanup_(freep) char *plain = plain_path(path);
	struct search s = {};
	struct stat st;

	/* The writer of a FIFO must not see it opened and closed. */
	return plain && stat(plain, &st) == 0 && S_ISDIR(st.st_mode) && search(&s, plain, 0) > 0;
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct ovnistream *)a)->path, ((const struct ovnistream *)b)->path);
}

/*
 * Find all streams at @path and below. More than @n_max are refused.
 *
 * Return: 0; or negative errno and @reterr_message, which may be NULL.
 */
static int ovnitree_find(struct ovnitree *tree, const char *path, size_t n_max,
			 char **reterr_message)
{
	struct search s = { .tree = tree, .n_max = n_max, .reterr_message = reterr_message };
	_cleanup_(freep) char *plain = plain_path(path);
	const int r = plain ? search(&s, plain, 0) : -ENOMEM;

	vec_sort(&tree->streams, by_path);
	return r;
}

static void ovnitree_deinit(struct ovnitree *tree)
{
	vec_deinit_each(&tree->streams, stream, stream_deinit(stream));
}

/* --- ovni clock ------------------------------------------------------------------------------- */

/*
 * The clocks of several machines differ. The file clock-offsets.txt of a trace, which ovnisync
 * makes, has a line for each host below a line of titles: a number, the name of the host, and the
 * median, mean and deviation of what must be added to its clock, in ns.
 */

#define OVNICLOCK_FILE     "clock-offsets.txt"
#define OVNICLOCK_SIZE_MAX ((size_t)4 << 20) /* a larger file is refused */
#define OVNICLOCK_HOST_MAX 256

struct ovniclock {
	VEC(struct ovniclock_host {
		char name[OVNICLOCK_HOST_MAX];
		int64_t offset_ns; /* the median, without its fraction, as in ovniemu */
	})
	hosts;
};

#define LINE_MAX_BYTES 1024
#define LOOM_PREFIX    "loom."

/* Parse a number of ns. Return: 0 or -EBADMSG. */
static int parse_offset(const char *text, int64_t *ret_ns)
{
	const double limit = 0x1p62;
	char *end;
	double ns;

	ns = strtod(text, &end);
	if (end == text || *end || !(ns > -limit && ns < limit))
		return -EBADMSG;
	*ret_ns = (int64_t)ns;
	return 0;
}

/* Parse a line, which is changed. Return: 0, also if it is empty; -EBADMSG; or -ENOMEM. */
static int parse_line(struct ovniclock *clock, char *line)
{
	struct ovniclock_host host = {};
	char *fields[5], *rest = line;
	size_t n = 0;
	int64_t unused;

	for (char *field; (field = strtok_r(rest, " \t\r", &rest));) {
		if (n == ARRAY_LEN(fields))
			return -EBADMSG;
		fields[n++] = field;
	}
	if (n == 0)
		return 0;
	if (n < ARRAY_LEN(fields) || parse_offset(fields[0], &unused) < 0 ||
	    strlen(fields[1]) >= sizeof(host.name) ||
	    parse_offset(fields[2], &host.offset_ns) < 0 || parse_offset(fields[3], &unused) < 0 ||
	    parse_offset(fields[4], &unused) < 0)
		return -EBADMSG;
	memcpy(host.name, fields[1], strlen(fields[1]) + 1);
	return vec_push(&clock->hosts, host);
}

/*
 * Parse the @size bytes at @text.
 *
 * Return: 0; -EBADMSG and @reterr_line, the number of the line that is wrong, from 1; or -ENOMEM.
 */
static int ovniclock_parse(struct ovniclock *clock, const char *text, size_t size,
			   unsigned int *reterr_line)
{
	const char *end = text + size;
	char line[LINE_MAX_BYTES];
	int r = 0;

	for (*reterr_line = 1; r == 0 && text < end; ++*reterr_line) {
		const char *newline = memchr(text, '\n', (size_t)(end - text)) ?: end;
		const size_t n = (size_t)(newline - text);

		if (n >= sizeof(line))
			return -EBADMSG;
		memcpy(line, text, n);
		line[n] = '\0';
		/* The first line has the titles. */
		if (*reterr_line > 1)
			r = strlen(line) == n ? parse_line(clock, line) : -EBADMSG;
		if (r < 0)
			return r;
		text = newline + 1;
	}
	return r;
}

static void ovniclock_deinit(struct ovniclock *clock)
{
	vec_deinit(&clock->hosts);
}

/*
 * Return: the offset of the host that the loom @loom ran on: its name is that of the loom, or of
 *         its directory, up to a dot; NULL if there is none.
 */
static const int64_t *ovniclock_find(const struct ovniclock *clock, const char *loom)
{
	const size_t n_prefix = strlen(LOOM_PREFIX);
	size_t n;

	if (strncmp(loom, LOOM_PREFIX, n_prefix) == 0)
		loom += n_prefix;
	n = strcspn(loom, ".");
	for (size_t i = 0; i < clock->hosts.n; i++) {
		const struct ovniclock_host *host = &clock->hosts.items[i];

		if (strncmp(host->name, loom, n) == 0 && host->name[n] == '\0')
			return &host->offset_ns;
	}
	return NULL;
}

/* --- ovni log --------------------------------------------------------------------------------- */

#define EVENT_MAX (OVNI_EVENT_SIZE + OVNI_PAYLOAD_MAX)
#define DATA_MAX  (sizeof(uint32_t) + OVNINAMES_SIZE)

struct ovniloom {
	VEC(uint32_t) cpus; /* by index */
	int64_t offset_ns;  /* of its host's clock */
};

struct ovnilane {
	struct calllane lane; /* the first field */
	struct logfile file;
	struct ovnicalls calls;
	uint32_t loom;
	bool is_reversed;
	uint64_t begin, end; /* offsets of the events that can be read */
	uint64_t n_lost;     /* bytes behind them */
	bool is_cut;         /* bytes are missing behind them */
	bool has_begun;      /* it has events; the first one says: */
	uint32_t cpu_first;  /* on which CPU; UINT32_MAX: it does not */
	uint64_t t_first;
	uint64_t offset;
};

struct ovnilog {
	struct calllog log; /* the first field */
	int64_t offset_ns;
	struct ovnitree tree;
	struct ovninames names;
	struct logwindow window;
	VEC(struct ovnilane) lanes;
	VEC(struct ovniloom) looms;
	struct map processes; /* hash of the loom and the pid → number */
	struct map by_name;   /* hash of its name → number of the loom */
	struct ovniclock clock;

	struct symbol_list list;
	VEC(uint32_t) symbols; /* by number of the name */
	const struct ptd_object *object;
};

static struct ovnilog *of(struct calllog *log)
{
	return (struct ovnilog *)log;
}

bool ovnilog_is(const char *path)
{
	return ovnitree_is(path);
}

/* --- events ----------------------------------------------------------------------------------- */

/*
 * Get the event at @offset, and the first bytes of a jumbo event's data in @ret_data, which is
 * valid until the next call.
 *
 * Return: 0, and @offset is behind it; -ENODATA: the file ends in it; -EBADMSG and @reterr_fault;
 *         or another negative errno and @reterr_message.
 */
static int get_event(struct ovnilog *log, const struct ovnilane *lane, uint64_t *offset,
		     struct ovnievent *ret_event, struct cursor *ret_data,
		     const char **reterr_fault, char **reterr_message)
{
	const uint64_t size = lane->file.size;
	uint64_t at = *offset;
	struct cursor c;
	int r;

	r = logwindow_look(&log->window, &lane->file, at, size, EVENT_MAX, &c, reterr_message);
	if (r == 0)
		r = ovnievent_get(&c, lane->is_reversed, ret_event, reterr_fault);
	if (r < 0)
		return r;
	at += OVNI_EVENT_SIZE + (uint64_t)ret_event->size;
	*ret_data = cursor_from(NULL, 0);
	if (ret_event->is_jumbo) {
		if (ret_event->n_data > size - at)
			return -ENODATA;
		r = logwindow_look(&log->window, &lane->file, at, at + ret_event->n_data, DATA_MAX,
				   ret_data, reterr_message);
		at += ret_event->n_data;
	}
	*offset = at;
	return r;
}

static uint64_t time_of(const struct ovnilog *log, const struct ovnilane *lane, uint64_t clock)
{
	const uint64_t t = clock < INT64_MAX ? clock : INT64_MAX;
	int64_t sum;

	/* An offset of a host is less than half of what there is room for. */
	if (__builtin_add_overflow((int64_t)t, log->looms.items[lane->loom].offset_ns, &sum) ||
	    __builtin_add_overflow(sum, log->offset_ns, &sum))
		return INT64_MAX;
	return sum > 0 ? (uint64_t)sum : 0;
}

static uint32_t cpu_of(const struct ovnilog *log, const struct ovnilane *lane, int32_t index)
{
	const struct ovniloom *loom = &log->looms.items[lane->loom];

	return index >= 0 && (size_t)index < loom->cpus.n ? loom->cpus.items[index] : UINT32_MAX;
}

/* --- going through ---------------------------------------------------------------------------- */

/* Find the order of bytes and the header. Return: 0 or negative errno. */
static int scan_head(struct ovnilog *log, struct ovnilane *lane, char **reterr_message)
{
	uint8_t bytes[OVNI_EVENT_SIZE];
	uint32_t version;
	uint64_t clock;
	struct cursor c;
	int r;

	r = logwindow_look(&log->window, &lane->file, 0, lane->file.size, sizeof(bytes), &c,
			   reterr_message);
	if (r < 0)
		return r;
	lane->begin = 0;
	if (cursor_left(&c) >= OVNI_HEADER_SIZE &&
	    memcmp(c.pos, OVNI_MAGIC, OVNI_MAGIC_SIZE) == 0) {
		memcpy(&version, c.pos + OVNI_MAGIC_SIZE, sizeof(version));
		lane->is_reversed = version == __builtin_bswap32(OVNI_STREAM_VERSION);
		if (version != OVNI_STREAM_VERSION && !lane->is_reversed)
			return message_set(reterr_message, -EBADMSG,
					   "%s: byte %d: expected version %u of streams",
					   lane->file.path, OVNI_MAGIC_SIZE, OVNI_STREAM_VERSION);
		lane->begin = OVNI_HEADER_SIZE;
	} else if (cursor_get(&c, sizeof(bytes), bytes) == 0) {
		/* No clock has run for centuries. */
		memcpy(&clock, bytes + OVNI_EVENT_SIZE - sizeof(clock), sizeof(clock));
		lane->is_reversed = __builtin_bswap64(clock) < clock;
	}
	return 0;
}

/* Note where the stream begins, and count what @event says. */
static int scan_event(struct ovnilog *log, struct ovnilane *lane, const struct ovnievent *event,
		      struct cursor data)
{
	struct ovnicall call;
	const int r =
	    ovnicalls_take(&lane->calls, &log->names, event, data.pos, cursor_left(&data), &call);

	if (r < 0)
		return r;
	if (call.kind == OVNICALL_CPU && !lane->has_begun)
		lane->cpu_first = cpu_of(log, lane, call.cpu);
	lane->has_begun = true;
	log->log.n_calls += call.kind != OVNICALL_NONE && call.kind != OVNICALL_CPU;
	return 0;
}

/* The rest of the stream, from lane->end on, cannot be read. */
static int lose_rest(struct ovnilog *log, struct ovnilane *lane, int r, const char *fault)
{
	lane->n_lost = lane->file.size - lane->end;
	lane->is_cut = r == -ENODATA;
	return calllog_complain(&log->log, lane->file.path, lane->end,
				lane->is_cut ? "the file ends inside an event" : fault);
}

static int scan_stream(struct ovnilog *log, struct ovnilane *lane, char **reterr_message)
{
	uint64_t last = 0, offset;
	bool is_sorted = true;
	int r = scan_head(log, lane, reterr_message);

	lane->end = offset = lane->begin;
	ovnicalls_begin(&lane->calls);
	while (r == 0 && offset < lane->file.size) {
		struct ovnievent event;
		struct cursor data;
		const char *fault;

		r = get_event(log, lane, &offset, &event, &data, &fault, reterr_message);
		if (r == -ENODATA || (r == -EBADMSG && !*reterr_message))
			return lose_rest(log, lane, r, fault);
		if (r < 0)
			break;
		if (lane->end == lane->begin)
			lane->t_first = time_of(log, lane, event.clock);
		if (event.clock < last && is_sorted) {
			is_sorted = false;
			r = calllog_complain(
			    &log->log, lane->file.path, lane->end,
			    "the clock goes back: time stands still until it is as late "
			    "again");
		}
		last = event.clock > last ? event.clock : last;
		lane->end = offset;
		if (r == 0)
			r = scan_event(log, lane, &event, data);
		if (r == -EFBIG)
			r = message_set(reterr_message, r,
					"%s: byte %" PRIu64 ": more than %u names or %u tasks",
					lane->file.path, offset, OVNINAMES_MAX,
					OVNINAMES_TASKS_MAX);
	}
	return r;
}

/* --- streams ---------------------------------------------------------------------------------- */

/* Get the number of what @text names in @map. Return: 0; 1 if it is new; or -ENOMEM. */
static int get_number(struct map *map, const char *text, uint32_t *ret_number)
{
	uint64_t number;
	const int r = map_number(map, map_hash(text, strlen(text)), map->n_used, &number);

	*ret_number = (uint32_t)number;
	return r;
}

static int find_loom(struct ovnilog *log, struct ovnilane *lane, const char *name,
		     struct ovnimeta *meta)
{
	const int64_t *offset = ovniclock_find(&log->clock, name);
	char text[OVNIMETA_NAME_MAX + 32];
	struct ovniloom *loom;
	int r = get_number(&log->by_name, name, &lane->loom);

	if (r > 0)
		r = vec_push(&log->looms, {});
	if (r < 0)
		return r;
	loom = &log->looms.items[lane->loom];
	loom->offset_ns = offset ? *offset : 0;
	for (size_t i = 0; i < meta->cpus.n; i++) {
		uint32_t *cpu = vec_at(&loom->cpus, i, UINT32_MAX);

		if (!cpu)
			return -ENOMEM;
		if (meta->cpus.items[i] != UINT32_MAX)
			*cpu = meta->cpus.items[i];
	}
	(void)snprintf(text, sizeof(text), "%.250s/%" PRIu32, name, lane->lane.pid);
	r = get_number(&log->processes, text, &lane->calls.process);
	return r < 0 ? r : 0;
}

static uint32_t id_of(int64_t id)
{
	return id > 0 && id < UINT32_MAX ? (uint32_t)id : PTD_ID_UNKNOWN;
}

static int add_stream(struct ovnilog *log, const struct ovnistream *stream, struct ovnimeta *meta,
		      char **reterr_message)
{
	const bool is_old = stream->is_old;
	struct ovnilane lane = { .cpu_first = UINT32_MAX };
	int r;

	lane.lane.pid = is_old ? stream->pid : id_of(meta->pid);
	lane.lane.tid = is_old ? stream->tid : id_of(meta->tid);
	if (meta->comm[0]) {
		lane.lane.comm = arena_strdup(&log->log.texts, meta->comm);
		if (!lane.lane.comm)
			return -ENOMEM;
	}
	r = find_loom(log, &lane, is_old ? stream->loom : meta->loom, meta);
	if (r == 0 && !is_old && !meta->is_finished)
		r = calllog_complain(&log->log, stream->metadata, 0,
				     "the program did not end its stream: events may be missing");
	if (r == 0)
		r = logfile_open(&lane.file, stream->path, &log->window, reterr_message);
	log->window.file = NULL;
	if (r == 0)
		r = vec_push(&log->lanes, lane);
	if (r < 0)
		logfile_deinit(&lane.file);
	return r;
}

static int read_stream(struct ovnilog *log, const struct ovnistream *stream, char **reterr_message)
{
	struct ovnimeta meta;
	int r = ovnimeta_read(&meta, stream->metadata, &log->window, &log->names, reterr_message);

	if (r < 0)
		return r;
	if (meta.version != (stream->is_old ? 1 : 3))
		r = message_set(reterr_message, -EBADMSG,
				"%s: expected the metadata of version %s of a trace of ovni",
				stream->metadata, stream->is_old ? "1" : "3");
	/* Streams of other parts, such as of CPUs, are not of threads. */
	if (r == 0 && (stream->is_old || meta.is_thread))
		r = add_stream(log, stream, &meta, reterr_message);
	ovnimeta_deinit(&meta);
	return r;
}

/* Read what must be added to the clocks of hosts, if the trace at @path has that. */
static int read_clock(struct ovnilog *log, const char *path, char **reterr_message)
{
	_cleanup_(freep) char *file = message_text("%s/" OVNICLOCK_FILE, path), *text = NULL;
	unsigned int line;
	size_t size;
	int r;

	if (!file)
		return -ENOMEM;
	if (access(file, F_OK) < 0 && errno == ENOENT)
		return 0;
	r = logfile_read(file, OVNICLOCK_SIZE_MAX, &log->window, &text, &size, reterr_message);
	if (r == 0)
		r = ovniclock_parse(&log->clock, text, size, &line);
	return r == -EBADMSG && !*reterr_message
		   ? message_set(reterr_message, r,
				 "%s: line %u: expected a number, a host, and the median, mean and "
				 "deviation of the offset of its clock",
				 file, line)
		   : r;
}

static int read_streams(struct ovnilog *log, const char *path, char **reterr_message)
{
	int r = ovnitree_find(&log->tree, path, OVNILOG_STREAMS_MAX, reterr_message);

	if (r == 0)
		r = read_clock(log, path, reterr_message);
	for (size_t i = 0; i < log->tree.streams.n && r == 0; i++)
		r = read_stream(log, &log->tree.streams.items[i], reterr_message);
	for (size_t i = 0; i < log->lanes.n && r == 0; i++)
		r = scan_stream(log, &log->lanes.items[i], reterr_message);
	return r < 0
		   ? r
		   : calllog_check(&log->log, path, "events but of threads' lives", reterr_message);
}

/* --- names ------------------------------------------------------------------------------------ */

static int make_symbols(struct ovnilog *log, struct objects *objects)
{
	struct object *object;
	int r;

	r = objects_add_synthetic(objects, "[ovni]", &object);
	if (r < 0)
		return r;
	object->symbols = &log->list.source;
	log->object = &object->id;
	for (size_t i = 0; i < log->names.all.n && r == 0; i++) {
		const char *name = log->names.all.items[i];

		r = symbol_list_add(&log->list, i + 1, 1, name, (uint16_t)strlen(name), NULL);
	}
	for (size_t i = 0; i < log->names.all.n && r == 0; i++) {
		uint32_t symbol;
		uint64_t end;

		r = resolver_find(log->log.resolver, object->symbols, i + 1, &symbol, &end);
		if (r == 0)
			r = vec_push(&log->symbols, symbol);
	}
	return r;
}

/* --- the calls -------------------------------------------------------------------------------- */

static int begin_lane(struct calllog *calllog, struct calllane *calllane, char **reterr_message)
{
	struct ovnilane *lane = (struct ovnilane *)calllane;

	lane->offset = lane->begin;
	lane->lane.ended = lane->begin == lane->end && lane->n_lost == 0;
	lane->lane.cpu = lane->cpu_first;
	lane->lane.t = lane->t_first;
	ovnicalls_begin(&lane->calls);
	return 0;
}

static int add_call(const struct ovnilog *log, const struct ovnilane *lane,
		    const struct ovnicall *call, struct callpiece *piece)
{
	static const uint8_t kinds[] = { [OVNICALL_ENTER] = PTD_LOGGED_ENTER,
					 [OVNICALL_LEAVE] = PTD_LOGGED_LEAVE,
					 [OVNICALL_POINT] = PTD_LOGGED_POINT };

	/* The file was changed since it was gone through. */
	if (call->name >= log->symbols.n)
		return -ESTALE;
	return vec_push(&piece->calls, { .t = lane->lane.t,
					 .object = log->object,
					 .symbol = log->symbols.items[call->name],
					 .kind = kinds[call->kind] });
}

/* Take an event. Return: 0; 1: the lane is on another CPU now; or negative errno. */
static int take_event(struct ovnilog *log, struct ovnilane *lane, const struct ovnievent *event,
		      struct cursor data, struct callpiece *piece)
{
	const uint64_t t = time_of(log, lane, event->clock);
	const uint32_t cpu = lane->lane.cpu;
	struct ovnicall call;
	int r;

	r = ovnicalls_take(&lane->calls, &log->names, event, data.pos, cursor_left(&data), &call);
	if (r < 0)
		return r;
	if (t > lane->lane.t)
		lane->lane.t = t;
	if (call.kind == OVNICALL_CPU)
		lane->lane.cpu = cpu_of(log, lane, call.cpu);
	else if (call.kind != OVNICALL_NONE)
		r = add_call(log, lane, &call, piece);
	return r < 0 ? r : lane->lane.cpu != cpu;
}

/* The stream has been read: mark what is lost. */
static int end_lane(struct ovnilane *lane, struct callpiece *piece)
{
	lane->lane.ended = true;
	if (lane->n_lost == 0)
		return 0;
	return vec_push(&piece->marks, { .kind = PTD_MARK_GAP,
					 .reason = lane->is_cut ? PTD_GAP_CUT : PTD_GAP_BAD_PACKET,
					 .run = piece->calls.n,
					 .t = lane->lane.t,
					 .offset = lane->end,
					 .n_bytes = lane->n_lost });
}

static int read_lane(struct calllog *calllog, struct calllane *calllane, struct callpiece *piece,
		     char **reterr_message)
{
	struct ovnilane *lane = (struct ovnilane *)calllane;
	struct ovnilog *log = of(calllog);
	int r = 0;

	while (r == 0 && !callpiece_is_full(piece)) {
		struct ovnievent event;
		struct cursor data;
		const char *fault;

		if (lane->offset >= lane->end)
			return end_lane(lane, piece);
		r = get_event(log, lane, &lane->offset, &event, &data, &fault, reterr_message);
		if (r == 0)
			r = take_event(log, lane, &event, data, piece);
		if (r == -EBADMSG || r == -ENODATA || r == -EFBIG ||
		    (r == -ESTALE && !*reterr_message))
			r = message_set(reterr_message, -ESTALE,
					"%s: was changed while it was read", lane->file.path);
	}
	return r < 0 ? r : 0;
}

/* --- its life --------------------------------------------------------------------------------- */

static void free_log(struct calllog *calllog)
{
	struct ovnilog *log = of(calllog);

	vec_deinit_each(&log->lanes, lane, {
		logfile_deinit(&lane->file);
		ovnicalls_deinit(&lane->calls);
	});
	vec_deinit_each(&log->looms, loom, vec_deinit(&loom->cpus));
	vec_deinit(&log->symbols);
	map_deinit(&log->processes);
	map_deinit(&log->by_name);
	ovnitree_deinit(&log->tree);
	ovninames_deinit(&log->names);
	ovniclock_deinit(&log->clock);
	symbol_list_deinit(&log->list);
	logwindow_deinit(&log->window);
	free(log);
}

static const struct calllog_ops log_ops = {
	.begin = begin_lane,
	.read = read_lane,
	.free = free_log,
};

int ovnilog_open(const char *path, int64_t offset_ns, struct objects *objects,
		 struct resolver *resolver, struct calllog **ret_log, char **reterr_message)
{
	struct ovnilog *log = calloc(1, sizeof(*log));
	int r;

	if (!log)
		return -ENOMEM;
	log->log.ops = &log_ops;
	log->log.resolver = resolver;
	log->log.clock = PTD_CLOCK_NS;
	log->offset_ns = offset_ns;
	logwindow_init(&log->window);
	symbol_list_init(&log->list);
	r = read_streams(log, path, reterr_message);
	if (r == 0)
		r = make_symbols(log, objects);
	for (size_t i = 0; i < log->lanes.n && r == 0; i++)
		r = vec_push(&log->log.lanes, &log->lanes.items[i].lane);
	if (r < 0) {
		calllog_free(&log->log);
		return r;
	}
	*ret_log = &log->log;
	return 0;
}
