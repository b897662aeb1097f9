/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/trigger/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/helper/collector/link.h"
#include "daemon/proc/mappedfile.h"
#include "daemon/proc/sysfile.h"
#include "daemon/source/ring.h"
#include "daemon/source/source.h"
#include "util/function.h"
#include "util/message.h"
#include "util/vec.h"

#define TRACEPOINTS "/sys/kernel/tracing/events"
#define UPROBE      "/sys/bus/event_source/devices/uprobe"
#define RING_SIZE   4096u
#define OPEN_MS     200u /* the event loop waits */
#define FILTER_SIZE 256

/* Of passages the rings have each beginning and end, and are read from time to time. */
#define PASSAGE_RING_SIZE  32768u
#define PASSAGE_PERIOD_MIN UINT64_C(1000000)   /* ns */
#define PASSAGE_PERIOD_MAX UINT64_C(100000000) /* ns */

/* Between the time that a record has and the moment when it is in the ring. */
#define PASSAGE_SLACK_NS 1000000u

/* No record of ours is larger. */
#define RECORD_MAX 128u

/* The number of the stack pointer in sample_regs_user. */
#define REGISTER_SP 7

/* Signals for which the kernel dumps core, if they have no handler: signal(7). */
#define IS_CORE_SIGNAL                                                                           \
	"(sig == 3 || sig == 4 || sig == 5 || sig == 6 || sig == 7 || sig == 8 || sig == 11 || " \
	"sig == 24 || sig == 25 || sig == 31)"

struct event {
	int fd;
	bool is_end; /* of passages */
	struct ring ring;
	uint64_t tail; /* running count of what was read */
};

struct probe {
	VEC(struct event) events; /* one a CPU that is online; for passages, two */
	bool has_passages;
	struct passages passages;
	uint64_t period_ns; /* how often the rings are read; 0: when they have something */
};

/* A sample as the attributes below have it. */
struct sample {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time;
	uint64_t abi, sp; /* only with the registers */
};

#define SAMPLE_SIZE_PLAIN offsetof(struct sample, abi)

/* The beginning of a record of a thread that ended, or was renamed. All end with their time. */
struct side {
	struct perf_event_header header;
	uint32_t pid;
	uint32_t tid_of_comm; /* in EXIT, the parent */
	uint32_t tid_of_exit;
};

/* --- attributes ------------------------------------------------------------------------------- */

static int use_tracepoint(struct collectorlink *link, const char *name,
			  struct perf_event_attr *attr, char **reterr_message)
{
	char path[128], text[SMALLFILE_MAX];
	const char *end;
	uint32_t id = 0;
	int r;

	(void)snprintf(path, sizeof(path), TRACEPOINTS "/%s/id", name);
	r = smallfile_read(link, path, text);
	if (r == 0 && (!(end = sysfile_scan(text, 10, &id)) || *end))
		r = -EBADMSG;
	if (r < 0)
		return message_set(reterr_message, r, "%s: cannot read the tracepoint: %s", path,
				   strerror(-r));
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = id;
	return 0;
}

/* Have the file at the path found, which ptd need not see. Return: 0 and a descriptor for reading,
 * which the caller closes. */
static int open_path(struct collectorlink *link, const char *path, int *ret_fd)
{
	struct collector_request request = { .verb = COLLECTOR_OPEN_PATH,
					     .timeout_ms = OPEN_MS,
					     .path = path };
	_cleanup_(fd_closep) int path_fd = -1;
	struct stat st;
	int r;

	r = collectorlink_ask(link, &request, NULL, NULL, NULL, &path_fd);
	if (r < 0)
		return r;
	if (fstat(path_fd, &st) < 0)
		return -errno;
	return st.st_mode & S_IROTH ? mappedfile_reopen(path_fd, ret_fd) : -EACCES;
}

/*
 * Open the file of the functions. A file that only some may read is not looked into for others.
 *
 * Return: 0 and @ret_fd, which the caller closes.
 */
static int open_object(struct collectorlink *link, const struct condition *condition, int *ret_fd,
		       char **reterr_message)
{
	const char *path = condition->object;
	int r;

	if (!path || path[0] != '/')
		return message_set(reterr_message, -EINVAL,
				   "%s: which file has it? Its path follows an @",
				   condition->function);
	r = open_path(link, path, ret_fd);
	return r < 0 ? message_set(reterr_message, r, "%s: %s", path, strerror(-r)) : 0;
}

/* Find the function @name in the file @fd, which is at @path. */
static int find_function(int fd, const char *path, const char *name, uint64_t *ret_offset,
			 char **reterr_message)
{
	struct function found[2];
	int n;

	n = function_find(fd, &name, 1, found, ARRAY_LEN(found));
	if (n < 0)
		return message_set(reterr_message, n, "%s: cannot look for functions in it: %s",
				   path, strerror(-n));
	if (n != 1)
		return message_set(reterr_message, -ENOENT, "%s: has %s function called %s", path,
				   n == 0 ? "no" : "more than one", name);
	*ret_offset = found[0].offset;
	return 0;
}

/* @path is where the kernel finds the file, and stays as long as @attr is used. */
static int use_uprobe(bool is_return, uint64_t offset, const char *path,
		      struct perf_event_attr *attr, char **reterr_message)
{
	uint64_t returns = 0; /* the bit that makes an event one of returns */
	uint32_t type;
	int r;

	r = sysfile_number(AT_FDCWD, UPROBE "/type", 10, &type);
	if (r == 0 && is_return)
		r = sysfile_mask(AT_FDCWD, UPROBE "/format/retprobe", &returns);
	if (r < 0)
		return message_set(reterr_message, r, UPROBE ": cannot use uprobes: %s",
				   strerror(-r));
	attr->type = type;
	attr->config = returns;
	attr->uprobe_path = (uintptr_t)path;
	attr->probe_offset = offset;
	return 0;
}

/* Write the filter that the kernel is to apply; "" if there is none. */
static void make_filter(const struct condition *condition, const char *comm,
			char ret_text[static FILTER_SIZE])
{
	char what[192] = "";

	if (condition->kind == CONDITION_SIGNAL)
		(void)snprintf(what, sizeof(what), "sig == %" PRIu32, condition->number);
	else if (condition->kind == CONDITION_CORE)
		(void)snprintf(what, sizeof(what), "sa_handler == 0 && " IS_CORE_SIGNAL);
	else if (condition->kind == CONDITION_EXIT && condition->number == CONDITION_ANY_STATUS)
		(void)snprintf(what, sizeof(what), "error_code & 255");
	else if (condition->kind == CONDITION_EXIT)
		(void)snprintf(what, sizeof(what), "error_code == %" PRIu32, condition->number);
	(void)snprintf(ret_text, FILTER_SIZE, "%s%s%s%s%s", what, comm && what[0] ? " && " : "",
		       comm ? "comm == \"" : "", comm ? comm : "", comm ? "\"" : "");
}

/* --- events ----------------------------------------------------------------------------------- */

/* Return: 0, also if the CPU is offline; or negative errno. */
static int open_event(struct probe *probe, struct perf_event_attr *attr, int cpu, bool is_end,
		      const char *filter)
{
	const size_t size = probe->has_passages ? PASSAGE_RING_SIZE : RING_SIZE;
	struct event event = { .fd = -1, .is_end = is_end };
	int r;

	event.fd = (int)syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (event.fd < 0)
		return errno == ENODEV ? 0 : -errno;
	r = filter[0] && ioctl(event.fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0 ? -errno : 0;
	if (r == 0)
		r = ring_map(&event.ring, event.fd, size, false);
	if (r == 0)
		r = vec_push(&probe->events, event);
	if (r < 0) {
		ring_unmap(&event.ring);
		(void)fd_close(event.fd);
	}
	return r;
}

static int open_events(struct probe *probe, struct perf_event_attr *attr, bool is_end,
		       const char *comm, const struct condition *condition, char **reterr_message)
{
	const long n = sysconf(_SC_NPROCESSORS_CONF);
	char filter[FILTER_SIZE];
	int r = 0;

	make_filter(condition, comm, filter);
	for (int cpu = 0; cpu < n && r == 0; cpu++)
		r = open_event(probe, attr, cpu, is_end, filter);
	if (r == 0 && probe->events.n == 0)
		r = -ENODEV;
	if (r < 0)
		return message_set(reterr_message, r, "the kernel refuses to watch for it: %s",
				   strerror(-r));
	return 0;
}

static int watch_tracepoint(struct probe *probe, struct collectorlink *link,
			    struct perf_event_attr *attr, const struct condition *condition,
			    const char *comm, char **reterr_message)
{
	const char *name = "signal/signal_deliver";
	int r;

	if (condition->kind == CONDITION_EXIT)
		name = "syscalls/sys_enter_exit_group";
	else if (condition->kind == CONDITION_OOM)
		name = "oom/mark_victim";
	r = use_tracepoint(link, name, attr, reterr_message);
	return r < 0 ? r : open_events(probe, attr, false, comm, condition, reterr_message);
}

/* Watch for entries of a function, or returns from it. */
static int watch_function(struct probe *probe, struct perf_event_attr *attr,
			  const struct condition *condition, int fd, const char *function,
			  bool is_return, bool is_end, const char *comm, char **reterr_message)
{
	char path[32];
	uint64_t offset = 0;
	int r;

	r = find_function(fd, condition->object, function, &offset, reterr_message);
	if (r < 0)
		return r;
	/* The file at the path may be another one by now. */
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = use_uprobe(is_return, offset, path, attr, reterr_message);
	return r < 0 ? r : open_events(probe, attr, is_end, comm, condition, reterr_message);
}

static int watch_passages(struct probe *probe, struct perf_event_attr *attr,
			  const struct condition *condition, int fd, const char *comm,
			  char **reterr_message)
{
	const uint64_t period = condition->limit_ns / 8;
	int r;

	probe->has_passages = true;
	probe->passages.limit_ns = condition->limit_ns;
	probe->passages.has_return = !condition->until;
	probe->period_ns = period > PASSAGE_PERIOD_MAX   ? PASSAGE_PERIOD_MAX
			   : period < PASSAGE_PERIOD_MIN ? PASSAGE_PERIOD_MIN
							 : period;
	attr->watermark = 1;
	attr->wakeup_watermark = PASSAGE_RING_SIZE / 2;
	attr->sample_id_all = 1;
	if (probe->passages.has_return) {
		attr->sample_type |= PERF_SAMPLE_REGS_USER;
		attr->sample_regs_user = 1 << REGISTER_SP;
	}
	r = watch_function(probe, attr, condition, fd, condition->function, false, false, comm,
			   reterr_message);
	if (r < 0)
		return r;
	/* A thread that ends, and a process that executes another program, end passages as well. */
	attr->task = attr->comm = attr->comm_exec = 1;
	return watch_function(probe, attr, condition, fd,
			      condition->until ? condition->until : condition->function,
			      probe->passages.has_return, true, comm, reterr_message);
}

static int watch(struct probe *probe, struct collectorlink *link, struct perf_event_attr *attr,
		 const struct condition *condition, const char *comm, char **reterr_message)
{
	_cleanup_(fd_closep) int fd = -1;
	int r;

	if (!condition->function)
		return watch_tracepoint(probe, link, attr, condition, comm, reterr_message);
	r = open_object(link, condition, &fd, reterr_message);
	if (r < 0)
		return r;
	if (condition->kind == CONDITION_LONGER)
		return watch_passages(probe, attr, condition, fd, comm, reterr_message);
	return watch_function(probe, attr, condition, fd, condition->function,
			      condition->kind == CONDITION_RETURN, false, comm, reterr_message);
}

int probe_new(const struct condition *condition, const char *comm, struct collectorlink *link,
	      struct probe **ret_probe, char **reterr_message)
{
	struct perf_event_attr attr = { .size = sizeof(attr),
					.sample_period = 1,
					.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
					.disabled = 1,
					.watermark = 0,
					.wakeup_events = 1,
					.use_clockid = 1,
					.clockid = CLOCK_MONOTONIC };
	_cleanup_(probe_freep) struct probe *probe = calloc(1, sizeof(*probe));
	int r;

	if (!probe)
		return -ENOMEM;
	r = watch(probe, link, &attr, condition, comm, reterr_message);
	if (r == 0)
		*ret_probe = TAKE(probe);
	return r;
}

struct probe *probe_free(struct probe *probe)
{
	if (!probe)
		return NULL;
	for (size_t i = 0; i < probe->events.n; i++) {
		ring_unmap(&probe->events.items[i].ring);
		(void)fd_close(probe->events.items[i].fd);
	}
	vec_deinit(&probe->events);
	passages_deinit(&probe->passages);
	free(probe);
	return NULL;
}

int probe_arm(struct probe *probe)
{
	int r = 0;

	passages_forget(&probe->passages);
	/* The ends of passages, which are the last events, must be enabled on all CPUs before the
	 * first beginning is. */
	for (size_t i = probe->events.n; i-- > 0;)
		if (ioctl(probe->events.items[i].fd, PERF_EVENT_IOC_ENABLE, 0) < 0)
			r = -errno;
	return r;
}

void probe_disarm(struct probe *probe)
{
	for (size_t i = 0; i < probe->events.n; i++)
		(void)ioctl(probe->events.items[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

size_t probe_n(const struct probe *probe)
{
	return probe->events.n;
}

int probe_fd(const struct probe *probe, size_t i)
{
	return probe->events.items[i].fd;
}

uint64_t probe_period(const struct probe *probe)
{
	return probe->period_ns;
}

/* --- records ---------------------------------------------------------------------------------- */

/* Take the records of one event. Return: whether there was a sample, and the first. */
static bool take_event(struct event *event, struct sample *ret_sample)
{
	const uint64_t head = ring_data_head(&event->ring);
	bool has = false;

	while (event->tail < head) {
		const struct source_view all = ring_span(event->ring.data, event->ring.data_size,
							 event->tail, head - event->tail);
		struct sample sample = {};

		ring_copy(&all, 0, sizeof(sample.header), (uint8_t *)&sample);
		if (sample.header.size < sizeof(sample.header) ||
		    sample.header.size > head - event->tail)
			break;
		if (!has && sample.header.type == PERF_RECORD_SAMPLE &&
		    sample.header.size == SAMPLE_SIZE_PLAIN) {
			ring_copy(&all, 0, SAMPLE_SIZE_PLAIN, (uint8_t *)ret_sample);
			has = true;
		}
		event->tail += sample.header.size;
	}
	event->tail = head;
	ring_set_data_tail(&event->ring, head);
	return has;
}

/* Return: whether the record at the start of @view is a moment of a passage, and which. */
static bool read_moment(const struct event *event, const struct source_view *view, size_t size,
			struct moment *ret_moment)
{
	struct sample sample = {};
	struct side side = {};

	ring_copy(view, 0, size < sizeof(side) ? size : sizeof(side), (uint8_t *)&side);
	if (side.header.type == PERF_RECORD_SAMPLE && size >= SAMPLE_SIZE_PLAIN) {
		ring_copy(view, 0, size < sizeof(sample) ? size : sizeof(sample),
			  (uint8_t *)&sample);
		*ret_moment = (struct moment){ .kind = event->is_end ? MOMENT_END : MOMENT_BEGIN,
					       .pid = sample.pid,
					       .tid = sample.tid,
					       .time_ns = sample.time,
					       .sp = sample.sp };
		return true;
	}
	if (size < sizeof(side) + sizeof(ret_moment->time_ns))
		return false;
	if (side.header.type == PERF_RECORD_EXIT)
		*ret_moment = (struct moment){ .kind = MOMENT_GONE, .tid = side.tid_of_exit };
	else if (side.header.type == PERF_RECORD_COMM &&
		 (side.header.misc & PERF_RECORD_MISC_COMM_EXEC))
		*ret_moment = (struct moment){ .kind = MOMENT_EXEC, .pid = side.pid };
	else
		return false;
	ring_copy(view, size - sizeof(ret_moment->time_ns), sizeof(ret_moment->time_ns),
		  (uint8_t *)&ret_moment->time_ns);
	return true;
}

/* Take the moments of one event. Return: whether they are all that the kernel had to say. */
static bool take_moments(struct event *event, struct passages *passages)
{
	const uint64_t head = ring_data_head(&event->ring), tail = event->tail;
	bool is_whole = head - tail + RECORD_MAX <= event->ring.data_size;

	event->tail = head;
	for (uint64_t at = tail; at < head && is_whole;) {
		const struct source_view all =
		    ring_span(event->ring.data, event->ring.data_size, at, head - at);
		struct perf_event_header header = {};
		struct moment moment;

		ring_copy(&all, 0, sizeof(header), (uint8_t *)&header);
		is_whole = header.size >= sizeof(header) && header.size <= head - at;
		if (is_whole && read_moment(event, &all, header.size, &moment))
			is_whole = passages_add(passages, &moment) == 0;
		at += header.size;
	}
	ring_set_data_tail(&event->ring, head);
	return is_whole;
}

static bool take_passages(struct probe *probe, struct probe_hit *ret_hit)
{
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);
	struct moment hit;
	bool is_whole = true;

	for (size_t i = 0; i < probe->events.n; i++)
		is_whole = take_moments(&probe->events.items[i], &probe->passages) && is_whole;
	/* Without its end, a passage would be taken for one that lasts. */
	if (!is_whole)
		passages_forget(&probe->passages);
	if (!is_whole || !passages_find(&probe->passages, now_ns - PASSAGE_SLACK_NS, &hit))
		return false;
	*ret_hit = (struct probe_hit){ .pid = hit.pid, .tid = hit.tid, .time_ns = hit.time_ns };
	return true;
}

bool probe_take(struct probe *probe, struct probe_hit *ret_hit)
{
	bool has = false;

	if (probe->has_passages)
		return take_passages(probe, ret_hit);

	for (size_t i = 0; i < probe->events.n; i++) {
		struct sample sample;

		if (!take_event(&probe->events.items[i], &sample) ||
		    (has && ret_hit->time_ns <= sample.time))
			continue;
		*ret_hit = (struct probe_hit){ .pid = sample.pid,
					       .tid = sample.tid,
					       .time_ns = sample.time };
		has = true;
	}
	return has;
}

/* --- passages --------------------------------------------------------------------------------- */

void passages_deinit(struct passages *passages)
{
	vec_deinit(&passages->open);
	vec_deinit(&passages->moments);
}

void passages_forget(struct passages *passages)
{
	passages->open.n = 0;
	passages->moments.n = 0;
}

int passages_add(struct passages *passages, const struct moment *moment)
{
	return vec_push(&passages->moments, *moment);
}

static void close_passage(struct passages *passages, size_t i)
{
	memmove(&passages->open.items[i], &passages->open.items[i + 1],
		(--passages->open.n - i) * sizeof(passages->open.items[0]));
}

/* Return: index of the passage of the thread @tid; the number of passages if it has none. */
static size_t find_passage(const struct passages *passages, uint32_t tid)
{
	size_t i = 0;

	while (i < passages->open.n && passages->open.items[i].tid != tid)
		i++;
	return i;
}

static void begin(struct passages *passages, const struct moment *moment)
{
	const size_t i = find_passage(passages, moment->tid);

	if (i < passages->open.n) {
		/* The function was called from itself, and its frame is still there. */
		if (passages->has_return && moment->sp < passages->open.items[i].sp)
			return;
		close_passage(passages, i);
	}
	/* Without memory, the passage is not looked at. */
	if (passages->open.n < PASSAGES_MAX)
		(void)!vec_push(&passages->open, *moment);
}

static void end(struct passages *passages, const struct moment *moment)
{
	const size_t i = find_passage(passages, moment->tid);

	if (i == passages->open.n)
		return;
	/* A return has taken the return address from the stack. */
	if (!passages->has_return || moment->sp > passages->open.items[i].sp)
		close_passage(passages, i);
}

static void forget_process(struct passages *passages, uint32_t pid)
{
	size_t n = 0;

	for (size_t i = 0; i < passages->open.n; i++)
		if (passages->open.items[i].pid != pid)
			passages->open.items[n++] = passages->open.items[i];
	passages->open.n = n;
}

static void apply(struct passages *passages, const struct moment *moment)
{
	size_t i;

	switch (moment->kind) {
	case MOMENT_BEGIN:
		begin(passages, moment);
		break;
	case MOMENT_END:
		end(passages, moment);
		break;
	case MOMENT_GONE:
		i = find_passage(passages, moment->tid);
		if (i < passages->open.n)
			close_passage(passages, i);
		break;
	case MOMENT_EXEC:
		forget_process(passages, moment->pid);
		break;
	}
}

/* Return: whether the oldest passage has taken longer than the limit at @now_ns. */
static bool is_late(const struct passages *passages, uint64_t now_ns, struct moment *ret_hit)
{
	const struct moment *oldest = passages->open.items;

	if (passages->open.n == 0 || now_ns < oldest->time_ns ||
	    now_ns - oldest->time_ns <= passages->limit_ns)
		return false;
	*ret_hit = *oldest;
	ret_hit->time_ns += passages->limit_ns;
	return true;
}

static int compare_moments(const void *pa, const void *pb)
{
	const struct moment *a = pa, *b = pb;

	return COMPARE(a->time_ns, b->time_ns);
}

bool passages_find(struct passages *passages, uint64_t now_ns, struct moment *ret_hit)
{
	const struct moment *moments = passages->moments.items;
	bool is_found = false;
	size_t i = 0;

	vec_sort(&passages->moments, compare_moments);
	for (; i < passages->moments.n && moments[i].time_ns < now_ns && !is_found; i++) {
		is_found = is_late(passages, moments[i].time_ns, ret_hit);
		apply(passages, &moments[i]);
	}
	if (is_found || is_late(passages, now_ns, ret_hit)) {
		passages_forget(passages);
		return true;
	}
	if (i > 0) {
		passages->moments.n -= i;
		memmove(passages->moments.items, &moments[i],
			passages->moments.n * sizeof(*moments));
	}
	return false;
}
