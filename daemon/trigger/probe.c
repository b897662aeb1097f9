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

#include "daemon/proc/sysfile.h"
#include "daemon/source/ring.h"
#include "daemon/source/source.h"
#include "util/function.h"
#include "util/message.h"
#include "util/regular.h"
#include "util/vec.h"

#define TRACEPOINTS "/sys/kernel/tracing/events"
#define UPROBE      "/sys/bus/event_source/devices/uprobe"
#define RING_SIZE   4096u
#define FILTER_SIZE 256

/* Signals for which the kernel dumps core, if they have no handler: signal(7). */
#define IS_CORE_SIGNAL                                                                           \
	"(sig == 3 || sig == 4 || sig == 5 || sig == 6 || sig == 7 || sig == 8 || sig == 11 || " \
	"sig == 24 || sig == 25 || sig == 31)"

struct event {
	int fd;
	struct ring ring;
	uint64_t tail; /* running count of what was read */
};

struct probe {
	VEC(struct event) events; /* one a CPU that is online */
};

/* A sample as the attributes below have it. */
struct sample {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t time;
};

/* --- attributes ------------------------------------------------------------------------------- */

static int use_tracepoint(const char *name, struct perf_event_attr *attr, char **reterr_message)
{
	char path[128];
	uint32_t id;
	int r;

	(void)snprintf(path, sizeof(path), TRACEPOINTS "/%s/id", name);
	r = sysfile_number(AT_FDCWD, path, 10, &id);
	if (r < 0)
		return message_set(reterr_message, r, "%s: cannot read the tracepoint: %s", path,
				   strerror(-r));
	attr->type = PERF_TYPE_TRACEPOINT;
	attr->config = id;
	return 0;
}

/*
 * Open the file of a function. A file that only some may read is not looked into for others.
 *
 * Return: 0 and @ret_fd, which the caller closes, and the offset of the function.
 */
static int open_function(const struct condition *condition, int *ret_fd, uint64_t *ret_offset,
			 char **reterr_message)
{
	const char *names[] = { condition->function }, *path = condition->object;
	_cleanup_(fd_closep) int fd = -1;
	struct function found[2];
	struct stat st;
	int n;

	if (!path || path[0] != '/')
		return message_set(reterr_message, -EINVAL,
				   "%s: which file has it? Its path follows an @",
				   condition->function);
	fd = regular_open(AT_FDCWD, path, 0);
	if (fd >= 0 && fstat(fd, &st) == 0 && !(st.st_mode & S_IROTH)) {
		(void)fd_close(fd);
		fd = -EACCES;
	}
	if (fd < 0)
		return message_set(reterr_message, fd, "%s: %s", path, strerror(-fd));
	n = function_find(fd, names, 1, found, ARRAY_LEN(found));
	if (n < 0)
		return message_set(reterr_message, n, "%s: cannot look for functions in it: %s",
				   path, strerror(-n));
	if (n != 1)
		return message_set(reterr_message, -ENOENT, "%s: has %s function called %s", path,
				   n == 0 ? "no" : "more than one", condition->function);
	*ret_offset = found[0].offset;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* @path is where the kernel finds the file, and stays as long as @attr is used. */
static int use_uprobe(const struct condition *condition, uint64_t offset, const char *path,
		      struct perf_event_attr *attr, char **reterr_message)
{
	uint64_t returns = 0; /* the bit that makes an event one of returns */
	uint32_t type;
	int r;

	r = sysfile_number(AT_FDCWD, UPROBE "/type", 10, &type);
	if (r == 0 && condition->kind == CONDITION_RETURN)
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
static int open_event(struct probe *probe, struct perf_event_attr *attr, int cpu,
		      const char *filter)
{
	struct event event = { .fd = -1 };
	int r;

	event.fd = (int)syscall(SYS_perf_event_open, attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
	if (event.fd < 0)
		return errno == ENODEV ? 0 : -errno;
	r = filter[0] && ioctl(event.fd, PERF_EVENT_IOC_SET_FILTER, filter) < 0 ? -errno : 0;
	if (r == 0)
		r = ring_map(&event.ring, event.fd, RING_SIZE, false);
	if (r == 0)
		r = vec_push(&probe->events, event);
	if (r < 0) {
		ring_unmap(&event.ring);
		(void)fd_close(event.fd);
	}
	return r;
}

static int open_events(struct probe *probe, struct perf_event_attr *attr, const char *filter,
		       char **reterr_message)
{
	const long n = sysconf(_SC_NPROCESSORS_CONF);
	int r = 0;

	for (int cpu = 0; cpu < n && r == 0; cpu++)
		r = open_event(probe, attr, cpu, filter);
	if (r == 0 && probe->events.n == 0)
		r = -ENODEV;
	if (r < 0)
		return message_set(reterr_message, r, "the kernel refuses to watch for it: %s",
				   strerror(-r));
	return 0;
}

static int choose_event(const struct condition *condition, struct perf_event_attr *attr,
			int *ret_fd, char path[static 32], char **reterr_message)
{
	uint64_t offset = 0;
	int r;

	switch (condition->kind) {
	case CONDITION_SIGNAL:
	case CONDITION_CORE:
		return use_tracepoint("signal/signal_deliver", attr, reterr_message);
	case CONDITION_EXIT:
		return use_tracepoint("syscalls/sys_enter_exit_group", attr, reterr_message);
	case CONDITION_OOM:
		return use_tracepoint("oom/mark_victim", attr, reterr_message);
	case CONDITION_ENTER:
	case CONDITION_RETURN:
		break;
	}
	r = open_function(condition, ret_fd, &offset, reterr_message);
	if (r < 0)
		return r;
	/* The file at the path may be another one by now. */
	(void)snprintf(path, 32, "/proc/self/fd/%d", *ret_fd);
	return use_uprobe(condition, offset, path, attr, reterr_message);
}

int probe_new(const struct condition *condition, const char *comm, struct probe **ret_probe,
	      char **reterr_message)
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
	_cleanup_(fd_closep) int fd = -1;
	char filter[FILTER_SIZE], path[32];
	int r;

	if (!probe)
		return -ENOMEM;
	make_filter(condition, comm, filter);
	r = choose_event(condition, &attr, &fd, path, reterr_message);
	if (r == 0)
		r = open_events(probe, &attr, filter, reterr_message);
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
	free(probe);
	return NULL;
}

int probe_arm(struct probe *probe)
{
	int r = 0;

	for (size_t i = 0; i < probe->events.n; i++)
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
		    sample.header.size == sizeof(sample)) {
			ring_copy(&all, 0, sizeof(sample), (uint8_t *)ret_sample);
			has = true;
		}
		event->tail += sample.header.size;
	}
	event->tail = head;
	ring_set_data_tail(&event->ring, head);
	return has;
}

bool probe_take(struct probe *probe, struct probe_hit *ret_hit)
{
	bool has = false;

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
