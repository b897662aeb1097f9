/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/pt/cpu.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "daemon/helper/keeper/link.h"
#include "daemon/source/source.h"
#include "util/perf/perfrec.h"
#include "util/perf/record.h"
#include "util/vec.h"

/* Bytes of a record that is being written, below the head that was published last. */
#define UNPUBLISHED 512u

/* No task record is longer: MMAP2 with the longest path. */
#define TASK_RECORD_MAX (sizeof(struct perf_event_header) + 64 + PATH_MAX + TRAILER_SIZE)

/* By which one sees whether an event runs. */
#define READ_FORMAT (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

#define PT_DATA_SIZE ((size_t)sysconf(_SC_PAGESIZE)) /* one ITRACE_START */

/* --- opening --------------------------------------------------------------------------------- */

void cpu_init(struct cpu *cpu, uint32_t number)
{
	*cpu = (struct cpu){
		.number = number,
		.pt.fd = -1,
		.switches.fd = -1,
		.tasks.fd = -1,
	};
}

static int event_open(struct cpu_event *event, struct perf_event_attr *attr,
		      const struct cpu_setup *setup, uint32_t cpu)
{
	const pid_t pid = setup->parent > 0 ? setup->parent : -1;

	attr->size = sizeof(*attr);
	attr->sample_type = PERFABI_SAMPLE_TYPE;
	attr->sample_id_all = 1;
	attr->inherit = setup->parent > 0;
	event->fd =
	    (int)syscall(SYS_perf_event_open, attr, pid, (int)cpu, -1, PERF_FLAG_FD_CLOEXEC);
	return event->fd < 0 || ioctl(event->fd, PERF_EVENT_IOC_ID, &event->id) < 0 ? -errno : 0;
}

/* The kernel keeps an event as long as it is mapped. */
static void event_close(struct cpu_event *event)
{
	ring_unmap(&event->ring);
	(void)fd_close(event->fd);
	*event = (struct cpu_event){ .fd = -1 };
}

static void close_sideband(struct cpu *cpu)
{
	cpu->tasks_tail = 0;
	event_close(&cpu->switches);
	event_close(&cpu->tasks);
}

void cpu_close_pt(struct cpu *cpu)
{
	event_close(&cpu->pt);
	free(cpu->fingerprint);
	cpu->fingerprint = NULL;
	cpu->start = (struct cpu_start){};
	cpu->pos = (struct auxpos){};
	cpu->state = CPU_CLOSED;
}

void cpu_close(struct cpu *cpu)
{
	cpu_close_pt(cpu);
	close_sideband(cpu);
}

static int open_switches(struct cpu *cpu, const struct cpu_setup *setup)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.context_switch = 1,
		.write_backward = 1,
	};
	int r;

	r = event_open(&cpu->switches, &attr, setup, cpu->number);
	return r < 0 ? r
		     : ring_map(&cpu->switches.ring, cpu->switches.fd, setup->switch_size, true);
}

static int open_tasks(struct cpu *cpu, const struct cpu_setup *setup)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.exclude_kernel = 1,
		.mmap = 1, /* without it there is no mmap2 either */
		.mmap2 = 1,
		.build_id = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.ksymbol = setup->kernel,
		.bpf_event = setup->kernel,
		.text_poke = setup->kernel,
		.read_format = READ_FORMAT,
		.watermark = 1,
		.wakeup_watermark = 1,
	};
	int r;

	r = event_open(&cpu->tasks, &attr, setup, cpu->number);
	return r < 0 ? r : ring_map(&cpu->tasks.ring, cpu->tasks.fd, setup->task_size, false);
}

int cpu_open_sideband(struct cpu *cpu, const struct cpu_setup *setup)
{
	int r;

	if (cpu->tasks.ring.page)
		return 0;
	cpu->is_inherited = setup->parent > 0;
	r = open_switches(cpu, setup);
	if (r == 0)
		r = open_tasks(cpu, setup);
	if (r < 0)
		close_sideband(cpu);
	return r;
}

static int open_pt(struct cpu *cpu, const struct cpu_setup *setup)
{
	struct perf_event_attr attr = {
		.type = setup->pmu_type,
		.config = setup->config,
		.sample_period = 1, /* so that it can be restarted by setting it */
		.read_format = READ_FORMAT,
		.disabled = 1,
		.enable_on_exec = setup->parent > 0,
		.exclude_user = !setup->user,
		.exclude_kernel = !setup->kernel,
		.exclude_hv = 1,
	};
	int r;

	r = event_open(&cpu->pt, &attr, setup, cpu->number);
	if (r == 0)
		r = ring_map(&cpu->pt.ring, cpu->pt.fd, PT_DATA_SIZE, false);
	if (r == 0)
		r = ring_map_aux(&cpu->pt.ring, cpu->pt.fd, setup->aux_size);
	if (r < 0)
		return r;
	cpu->fingerprint = calloc(1, sizeof(*cpu->fingerprint));
	if (!cpu->fingerprint)
		return -ENOMEM;
	cpu->pos = (struct auxpos){ .size = setup->aux_size };
	if (attr.enable_on_exec)
		return 0;
	/* Enabled before its area is mapped, it would never run, and nothing would say so. */
	return ioctl(cpu->pt.fd, PERF_EVENT_IOC_ENABLE, 0) < 0 ? -errno : 0;
}

int cpu_open_pt(struct cpu *cpu, const struct cpu_setup *setup)
{
	int r;

	cpu_close_pt(cpu);
	r = open_pt(cpu, setup);
	if (r < 0)
		cpu_close_pt(cpu);
	cpu->error = r;
	cpu->state = r == 0         ? CPU_RECORDING
		     : r == -EBUSY  ? CPU_BUSY
		     : r == -ENODEV ? CPU_OFFLINE
				    : CPU_FAILED;
	return r;
}

/* Return: 0; or negative errno, and the event is closed. */
static int event_adopt(struct cpu_event *event, const struct keepable *kept, bool overwrite)
{
	int r;

	*event = (struct cpu_event){ .fd = kept->fd };
	r = ioctl(event->fd, PERF_EVENT_IOC_ID, &event->id) < 0 ? -errno : 0;
	if (r == 0)
		r = ring_map(&event->ring, event->fd, kept->data_size, overwrite);
	if (r == 0 && kept->aux_size > 0)
		r = ring_map_aux(&event->ring, event->fd, kept->aux_size);
	if (r < 0)
		event_close(event);
	return r;
}

int cpu_adopt_sideband(struct cpu *cpu, const struct keepable *switches,
		       const struct keepable *tasks)
{
	const int r = event_adopt(&cpu->switches, switches, true);
	const int other = event_adopt(&cpu->tasks, tasks, false);

	if (r < 0 || other < 0) {
		close_sideband(cpu);
		return r < 0 ? r : other;
	}
	cpu->tasks_tail = cpu->tasks.ring.page->data_tail;
	return 0;
}

bool cpu_resume_tasks(struct cpu *cpu, uint64_t event_id, uint64_t tail)
{
	const struct ring *ring = &cpu->tasks.ring;

	if (cpu->tasks.id != event_id || tail < ring->page->data_tail ||
	    tail > ring_data_head(ring))
		return false;
	cpu->tasks_tail = tail;
	return true;
}

int cpu_adopt_pt(struct cpu *cpu, const struct keepable *pt)
{
	int r;

	cpu_close_pt(cpu);
	r = event_adopt(&cpu->pt, pt, false);
	if (r < 0)
		return r;
	cpu->fingerprint = calloc(1, sizeof(*cpu->fingerprint));
	/* Another process may have been killed after it had stopped PT. */
	if (!cpu->fingerprint || ioctl(cpu->pt.fd, PERF_EVENT_IOC_ENABLE, 0) < 0) {
		r = cpu->fingerprint ? -errno : -ENOMEM;
		cpu_close_pt(cpu);
		return r;
	}
	cpu->pos = (struct auxpos){ .size = pt->aux_size };
	cpu->state = CPU_RECORDING;
	cpu->error = 0;
	return 0;
}

static bool event_is_alive(struct cpu_event *event)
{
	struct {
		uint64_t value, enabled, running;
	} now;
	bool alive;

	if (event->fd < 0)
		return true;
	if (read(event->fd, &now, sizeof(now)) != sizeof(now))
		return false;
	alive = now.enabled > event->time_enabled &&
		now.running - event->time_running >= (now.enabled - event->time_enabled) / 2;
	event->time_enabled = now.enabled;
	event->time_running = now.running;
	return alive;
}

/*
 * Asking costs an interrupt of that CPU, so only one of the events is asked. The others die with
 * their CPU, and so does PT, which may die alone, too. The time of an event of tasks stands still
 * while they do.
 */
bool cpu_is_alive(struct cpu *cpu)
{
	return cpu->is_inherited || event_is_alive(cpu->pt.fd >= 0 ? &cpu->pt : &cpu->tasks);
}

/* What ended since the last look still seems alive: look, and look again. */
bool cpu_sideband_is_alive(struct cpu *cpu)
{
	(void)event_is_alive(&cpu->tasks);
	return cpu->is_inherited || event_is_alive(&cpu->tasks);
}

/* --- PT -------------------------------------------------------------------------------------- */

/*
 * The head is published when the event stops, and only then. Setting the period stops and starts it
 * in one interrupt of its CPU: PT is off for as long as that takes, however long we wait for a CPU
 * of our own, which we might between a disable and an enable. It reaches one event only, though,
 * and not those that tasks have inherited from it.
 */
static void restart_pt(struct cpu *cpu)
{
	const uint64_t before = clock_ns(CLOCK_MONOTONIC);
	uint64_t period = 1;

	if (cpu->is_inherited || ioctl(cpu->pt.fd, PERF_EVENT_IOC_PERIOD, &period) < 0) {
		(void)ioctl(cpu->pt.fd, PERF_EVENT_IOC_DISABLE, 0);
		(void)ioctl(cpu->pt.fd, PERF_EVENT_IOC_ENABLE, 0);
	}
	cpu->gap_ns += clock_ns(CLOCK_MONOTONIC) - before;
}

/*
 * Split the next record off, and give it the event id of the snapshot's only attr for sideband: in
 * the rings, each CPU's event has an id of its own.
 *
 * Return: 0; RECORD_END; -EBADMSG: of @ret_record only the header is set.
 */
static int next_record(uint8_t *bytes, size_t size, struct record *ret_record)
{
	struct cursor c = cursor_from(bytes, size);
	struct perfrec rec;
	size_t whole;

	if (perfrec_next(&c, &rec) != 0)
		return RECORD_END;
	whole = (size_t)(c.pos - bytes);
	if (whole % 8 != 0)
		return RECORD_END;
	if (cursor_left(&rec.body) >= TRAILER_SIZE)
		record_set_id(bytes, whole, RECORD_ID_SIDEBAND);
	c = cursor_from(bytes, whole);
	ret_record->header = (struct perf_event_header){ .type = rec.type,
							 .misc = rec.misc,
							 .size = (uint16_t)whole };
	return record_next(&c, ret_record);
}

/* The first record, which the kernel wrote when PT was switched on, says which thread ran. Each
 * stop of the event adds a record that says nothing, as long as there is room. ptd never frees
 * that room, so that a process that takes the ring over finds the first record, too. */
static void note_start(struct cpu *cpu)
{
	const struct ring *ring = &cpu->pt.ring;
	const uint64_t head = ring_data_head(ring);
	uint8_t bytes[RECORD_SWITCH_SIZE];
	struct cpu_start start;
	struct record record;

	if (!cpu->start.seen && head >= sizeof(bytes)) {
		memcpy(bytes, ring->data, sizeof(bytes));
		if (next_record(bytes, sizeof(bytes), &record) == 0 &&
		    record.header.type == PERF_RECORD_ITRACE_START &&
		    record_read_itrace_start(record.body, &start.who) == 0) {
			start.seen = true;
			start.trailer = record.trailer;
			cpu->start = start;
		}
	}
}

void cpu_publish_head(struct cpu *cpu)
{
	struct auxpos_end end;

	cpu->is_exact = false;
	cpu->overwritten = 0;
	cpu->gap_ns = 0;
	auxpos_read_end(cpu->pt.ring.aux, cpu->pos.size, &end);
	if (cpu->state == CPU_RECORDING)
		restart_pt(cpu);
	auxpos_move(&cpu->pos, ring_aux_head(&cpu->pt.ring), &end);
}

void cpu_take_fingerprint(struct cpu *cpu)
{
	auxpos_take_fingerprint(&cpu->pos, cpu->pt.ring.aux, cpu->fingerprint);
	note_start(cpu);
}

static uint64_t overwritten(const struct cpu *cpu)
{
	if (cpu->is_exact)
		return cpu->overwritten;
	return auxpos_estimate_overwritten(&cpu->pos, cpu->fingerprint, cpu->pt.ring.aux);
}

struct source_view cpu_view(const struct cpu *cpu)
{
	const struct auxpos *pos = &cpu->pos;
	const uint64_t n = pos->wrapped ? pos->size : pos->head;
	struct source_view view = ring_span(cpu->pt.ring.aux, pos->size, pos->written - n, n);

	view.head = pos->written;
	view.overwritten = overwritten(cpu);
	view.gap_ns = cpu->gap_ns;
	view.end = cpu->state == CPU_RECORDING ? SOURCE_END_FLUSHED : SOURCE_END_OFFLINE;
	return view;
}

/* The position stays that of the hold: the next one moves it over whatever came since. */
void cpu_find_overwritten(struct cpu *cpu)
{
	if (cpu->is_exact)
		return;
	if (cpu->state == CPU_RECORDING)
		restart_pt(cpu);
	cpu->overwritten = auxpos_overwritten(&cpu->pos, cpu->fingerprint, cpu->pt.ring.aux,
					      ring_aux_head(&cpu->pt.ring));
	cpu->is_exact = true;
}

/* --- records --------------------------------------------------------------------------------- */

struct switch_at {
	uint64_t time;
	uint32_t offset;
	uint16_t size;
};

struct switches {
	uint8_t *bytes;           /* the ring, newest first */
	VEC(struct switch_at) at; /* of each record in it */
};

/* Those that are before @end are whole. Return: 0, or -ENOMEM; @ret_end is where they end. */
static int find_switches(struct switches *s, size_t end, size_t *ret_end)
{
	struct record record;
	size_t at = 0;
	int r;

	while ((r = next_record(s->bytes + at, end - at, &record)) != RECORD_END) {
		if (r == 0) {
			r = vec_push(&s->at, { .time = record.trailer.time,
					       .offset = (uint32_t)at,
					       .size = record.header.size });
			if (r < 0)
				return r;
		}
		at += record.header.size;
	}
	*ret_end = at;
	return 0;
}

static uint8_t *put_start(uint8_t *to, const struct cpu_start *start)
{
	return to + record_write_itrace_start(&start->who, &start->trailer, to, RECORD_SWITCH_SIZE);
}

/* Oldest first, and with them, in its place, who ran when PT was switched on. */
static uint8_t *turn_around(const struct switches *s, const struct cpu_start *start, uint8_t *to)
{
	bool started = !start->seen;

	for (size_t i = s->at.n; i-- > 0;) {
		const struct switch_at *at = &s->at.items[i];

		if (!started && at->time >= start->trailer.time) {
			to = put_start(to, start);
			started = true;
		}
		memcpy(to, s->bytes + at->offset, at->size);
		to += at->size;
	}
	return started ? to : put_start(to, start);
}

/* Backward: the newest record is at the head, and what is behind it is older and older. */
static int copy_ring(const struct ring *ring, struct switches *s, size_t *ret_size,
		     size_t *ret_whole, bool *ret_wrapped)
{
	const uint64_t head = ring_data_head(ring), written = -head;
	const size_t n = written < ring->data_size ? written : ring->data_size;
	const size_t room = ring->data_size - n;
	const struct source_view view = ring_span(ring->data, ring->data_size, head, n);
	size_t more;

	s->bytes = malloc(n + 1);
	if (!s->bytes)
		return -ENOMEM;
	ring_copy(&view, 0, n, s->bytes);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	more = head - ring_data_head(ring) + UNPUBLISHED;
	more = more > room ? more - room : 0;
	*ret_size = n;
	*ret_whole = more < n ? n - more : 0;
	*ret_wrapped = written > ring->data_size;
	return 0;
}

int cpu_copy_switches(struct cpu *cpu, uint8_t **ret_bytes, size_t *ret_size, bool *ret_cut)
{
	struct switches s = {};
	uint8_t *bytes = NULL;
	size_t size, end;
	bool wrapped;
	int r;

	r = copy_ring(&cpu->switches.ring, &s, &size, &end, &wrapped);
	if (r == 0)
		r = find_switches(&s, end, &end);
	if (r == 0) {
		bytes = malloc(end + RECORD_SWITCH_SIZE);
		r = bytes ? 0 : -ENOMEM;
	}
	if (r == 0) {
		const bool cut = wrapped || end < size;
		const struct cpu_start none = {};

		/* What began before the oldest record is of no use without those between. */
		*ret_size = (size_t)(turn_around(&s, cut ? &none : &cpu->start, bytes) - bytes);
		*ret_bytes = bytes;
		*ret_cut = cut;
	}
	free(s.bytes);
	vec_deinit(&s.at);
	return r;
}

size_t cpu_tasks_size(struct cpu *cpu)
{
	const struct ring *ring = &cpu->tasks.ring;
	uint64_t n;

	if (!ring->page)
		return 0;
	cpu->tasks_end = ring_data_head(ring);
	n = cpu->tasks_end - cpu->tasks_tail;
	return n < ring->data_size ? n : ring->data_size;
}

size_t cpu_drain_tasks(struct cpu *cpu, uint64_t until, uint8_t *bytes)
{
	const struct ring *ring = &cpu->tasks.ring;
	const uint64_t tail = cpu->tasks_tail;
	const uint64_t left = ring->page ? cpu->tasks_end - tail : 0;
	const size_t n = left < ring->data_size ? left : ring->data_size;
	const struct source_view view = ring_span(ring->data, ring->data_size, tail, n);
	size_t at = 0, kept = 0;
	struct record record;
	int r;

	if (n == 0)
		return 0;
	ring_copy(&view, 0, n, bytes);
	while ((r = next_record(bytes + at, n - at, &record)) != RECORD_END) {
		if (r == 0 && record.trailer.time > until)
			break;
		if (r == 0) {
			memmove(bytes + kept, bytes + at, record.header.size);
			kept += record.header.size;
		}
		at += record.header.size;
	}
	/* Bytes that are no records are not looked at again. */
	cpu->tasks_tail = tail + (r == RECORD_END ? n : at);
	return kept;
}

bool cpu_may_have_missed(struct cpu *cpu)
{
	const struct ring *ring = &cpu->tasks.ring;

	if (!ring->page || cpu->tasks_full)
		return false;
	cpu->tasks_full =
	    ring_data_head(ring) - ring->page->data_tail + TASK_RECORD_MAX > ring->data_size;
	return cpu->tasks_full;
}

void cpu_give_room(struct cpu *cpu)
{
	if (!cpu->tasks.ring.page)
		return;
	ring_set_data_tail(&cpu->tasks.ring, cpu->tasks_tail);
	cpu->tasks_full = false;
}
