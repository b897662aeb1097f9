/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/soft/source_emu.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/emu/pool.h"
#include "daemon/keeper/link.h"
#include "daemon/keeper/message.h"
#include "daemon/proc/birth.h"
#include "daemon/soft/emuterms.h"
#include "daemon/soft/poolwriters.h"
#include "daemon/source/kept.h"
#include "daemon/source/ring.h"
#include "daemon/tasks/tasks.h"
#include "record/codec.h"
#include "record/record.h"

#define FLUSH_WAIT_US 10000u /* a CPU's owner may have lost the real CPU for a slice */
#define FLUSH_POLL_US 50u

/* A pass over all heads that took longer was interrupted. */
#define PASS_NS    20000u
#define PASS_TRIES 16u

/* Bytes a writer may have put behind the head it published last: less than a PSB+ and some TIPs,
 * one record. */
#define UNPUBLISHED_AUX    4096u
#define UNPUBLISHED_SWITCH 256u
#define UNPUBLISHED_EVENT  sizeof(struct emu_event)

#define SIGNAL_MAX 64u

/* Beginnings of programs that are remembered. */
#define BOOKMARKS_MAX 16u

/* The rings of a CPU at the last hold. */
struct held {
	uint64_t aux_head;
	uint64_t switch_head;
	uint64_t event_head;
	enum source_end end;
};

struct heads {
	uint64_t aux, switches, events;
};

/* Where all rings were at one time. */
struct bookmark {
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	struct heads heads[EMU_CPUS_MAX];
};

struct source_emu {
	struct source source;
	struct emu_pool_layout layout; /* ours; the one in the pool is for the programs */
	int fd;
	uint8_t *map;
	size_t map_size;
	struct held held[EMU_CPUS_MAX];
	struct poolwriters writers; /* seen in task records */
	bool said_code_lost, said_exhausted;
	_Atomic bool timing; /* a program was asked to write MTC and CYC packets */

	pthread_mutex_t lock; /* of the next two: a snapshot's threads read them */
	struct bookmark bookmarks[BOOKMARKS_MAX]; /* the latest ones */
	size_t n_bookmarks;                       /* ever made */
};

static struct source_emu *emu(struct source *source)
{
	return (struct source_emu *)source;
}

/* The records' clock. */
static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static struct emu_pool *pool(const struct source_emu *e)
{
	return (struct emu_pool *)e->map;
}

static struct emu_cpu *cpu_at(const struct source_emu *e, uint32_t cpu)
{
	return (struct emu_cpu *)(e->map + emu_cpu_offset(&e->layout, cpu));
}

/* What is to be kept of the source. */
static struct kept_state *state_of(const struct source_emu *e)
{
	return kept_draft(e->source.kept);
}

static uint64_t bytes_held(const struct source_emu *e)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < e->layout.n_cpus; i++) {
		const struct emu_cpu *cpu = cpu_at(e, i);
		const uint64_t aux = atomic_load_explicit(&cpu->aux_head, memory_order_relaxed);
		const uint64_t switches =
		    atomic_load_explicit(&cpu->switch_head, memory_order_relaxed);
		const uint64_t events =
		    atomic_load_explicit(&cpu->event_head, memory_order_relaxed);

		bytes += aux < e->layout.aux_size ? aux : e->layout.aux_size;
		bytes += switches < e->layout.switch_size ? switches : e->layout.switch_size;
		bytes += events < e->layout.event_size ? events : e->layout.event_size;
	}
	return bytes;
}

static enum source_end end_of(const struct source_emu *e, uint32_t i, uint32_t generation)
{
	struct emu_cpu *cpu = cpu_at(e, i);

	if (atomic_load_explicit(&cpu->owner, memory_order_acquire) == 0)
		return SOURCE_END_IDLE;
	return atomic_load_explicit(&cpu->flush_done, memory_order_acquire) == generation
		   ? SOURCE_END_FLUSHED
		   : SOURCE_END_LATE;
}

static bool all_flushed(const struct source_emu *e, uint32_t generation)
{
	for (uint32_t i = 0; i < e->layout.n_cpus; i++)
		if (end_of(e, i, generation) == SOURCE_END_LATE)
			return false;
	return true;
}

static void read_heads(struct source_emu *e, uint32_t generation)
{
	for (uint32_t i = 0; i < e->layout.n_cpus; i++) {
		e->held[i].end = end_of(e, i, generation);
		e->held[i].aux_head =
		    atomic_load_explicit(&cpu_at(e, i)->aux_head, memory_order_acquire);
	}
	/* After the PT, so that no packet is newer than the switch that explains it. */
	for (uint32_t i = 0; i < e->layout.n_cpus; i++) {
		e->held[i].switch_head =
		    atomic_load_explicit(&cpu_at(e, i)->switch_head, memory_order_acquire);
		e->held[i].event_head =
		    atomic_load_explicit(&cpu_at(e, i)->event_head, memory_order_acquire);
	}
}

static int hold(struct source *source, struct source_moment *ret_moment)
{
	struct source_emu *e = emu(source);
	const uint32_t generation =
	    atomic_fetch_add_explicit(&pool(e)->flush, 1, memory_order_acq_rel) + 1;

	/* An owner that does not answer is stopped, dead, or in one very long block: what it
	 * published is taken. */
	for (unsigned us = 0; us < FLUSH_WAIT_US && !all_flushed(e, generation);
	     us += FLUSH_POLL_US)
		(void)nanosleep(&(struct timespec){ .tv_nsec = FLUSH_POLL_US * 1000 }, NULL);

	/* All at one moment. If we were interrupted meanwhile, a thread may have gone from a CPU
	 * that was read to one that was not, and what it did on the first would be missing
	 * between. */
	for (unsigned i = 0; i < PASS_TRIES; i++) {
		const uint64_t since = now_ns();

		ret_moment->complete_until_ns = since;
		read_heads(e, generation);
		if (now_ns() - since < PASS_NS)
			break;
	}
	if (atomic_load(&e->timing))
		e->source.facts.attr_config |= emuterms_timing_config(&e->layout.timing);
	ret_moment->ns = ret_moment->monotonic_ns = now_ns();
	ret_moment->realtime_ns = clock_ns(CLOCK_REALTIME);
	return 0;
}

/* The pool is there as long as the source is. */
static void release(struct source *source)
{
	(void)source;
}

/* Memory is gotten while the rings are copied: the programs may fill a small part of them only. */
static uint64_t aux_room(struct source *source, uint32_t cpu)
{
	(void)source;
	(void)cpu;
	return 0;
}

/* The last bytes of the ring at @ring, at most its @size (a power of two), that end at @head. */
static struct source_view ring_view(const uint8_t *ring, uint64_t size, uint64_t head)
{
	const uint64_t n = head < size ? head : size;
	struct source_view view = ring_span(ring, size, head - n, n);

	view.head = head;
	return view;
}

/* The heads of @cpu at the last bookmark that is not later than @time_ns; 0 if there is none. */
static struct heads heads_at(struct source_emu *e, uint32_t cpu, uint64_t time_ns)
{
	struct heads heads = {};
	size_t n;

	(void)pthread_mutex_lock(&e->lock);
	n = e->n_bookmarks < BOOKMARKS_MAX ? e->n_bookmarks : BOOKMARKS_MAX;
	for (size_t i = 1; i <= n; i++) {
		const struct bookmark *b = &e->bookmarks[(e->n_bookmarks - i) % BOOKMARKS_MAX];

		if (b->time_ns <= time_ns) {
			heads = b->heads[cpu];
			break;
		}
	}
	(void)pthread_mutex_unlock(&e->lock);
	return heads;
}

/*
 * The oldest bytes of a view lie where the writer goes on writing once the ring is full. @now is
 * its head after they were copied; a head that went back is a scribbled one.
 */
static uint64_t lost_since(uint64_t size, uint64_t held, uint64_t now, uint64_t unpublished)
{
	const uint64_t n = held < size ? held : size;
	const uint64_t room = size - n;
	uint64_t written = now - held;

	if (now < held || written >= size)
		return n;
	written += unpublished;
	if (written <= room)
		return 0;
	return written - room < n ? written - room : n;
}

/* How many bytes at the start of what the rings of @cpu held are overwritten by now. */
static struct heads overwritten(const struct source_emu *e, uint32_t cpu)
{
	const struct emu_cpu *c = cpu_at(e, cpu);
	uint64_t aux, switches, events;
	bool owned;

	/* The owner first: if there is none now, whoever came and went has moved the heads. */
	atomic_thread_fence(memory_order_seq_cst);
	owned = atomic_load_explicit(&c->owner, memory_order_acquire) != 0;
	aux = atomic_load_explicit(&c->aux_head, memory_order_acquire);
	switches = atomic_load_explicit(&c->switch_head, memory_order_acquire);
	events = atomic_load_explicit(&c->event_head, memory_order_acquire);

	return (struct heads){
		.aux = lost_since(e->layout.aux_size, e->held[cpu].aux_head, aux,
				  owned ? UNPUBLISHED_AUX : 0),
		.switches = lost_since(e->layout.switch_size, e->held[cpu].switch_head, switches,
				       owned ? UNPUBLISHED_SWITCH : 0),
		.events = lost_since(e->layout.event_size, e->held[cpu].event_head, events,
				     owned ? UNPUBLISHED_EVENT : 0),
	};
}

/* The heads say exactly what is overwritten at any time. */
static int view(struct source *source, uint32_t cpu, uint64_t since_ns, bool exact,
		struct source_view *ret_view)
{
	struct source_emu *e = emu(source);

	(void)exact;
	if (cpu >= e->layout.n_cpus)
		return -EINVAL;
	*ret_view = ring_view(e->map + emu_aux_offset(&e->layout, cpu), e->layout.aux_size,
			      e->held[cpu].aux_head);
	ret_view->end = e->held[cpu].end;
	ret_view->since = since_ns > 0 ? heads_at(e, cpu, since_ns).aux : 0;
	ret_view->overwritten = overwritten(e, cpu).aux;
	return 0;
}

static int copy_switches(struct source *source, uint32_t cpu, uint64_t since_ns,
			 uint8_t **ret_bytes, size_t *ret_size, bool *ret_cut)
{
	struct source_emu *e = emu(source);
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct source_view v;
	size_t n, gone, unwanted, start;
	uint64_t since;
	int r;

	if (cpu >= e->layout.n_cpus)
		return -EINVAL;
	v = ring_view(e->map + emu_switch_offset(&e->layout, cpu), e->layout.switch_size,
		      e->held[cpu].switch_head);
	n = v.a_size + v.b_size;
	bytes = malloc(n + 1);
	if (!bytes)
		return -ENOMEM;
	ring_copy(&v, 0, n, bytes);

	gone = (size_t)overwritten(e, cpu).switches;
	since = since_ns > 0 ? heads_at(e, cpu, since_ns).switches : 0;
	unwanted = ring_before(&v, since);
	gone = gone < unwanted ? unwanted : gone;
	r = record_resync(bytes + gone, n - gone, cpu, &start);
	if (r < 0)
		return r;
	start += gone;
	memmove(bytes, bytes + start, n - start);
	*ret_size = n - start;
	*ret_cut = v.head > n || start > 0;
	*ret_bytes = TAKE(bytes);
	return 0;
}

/* Return: whether the event, which any program may have written, can be one. */
static bool take_event(const struct emu_event *event, struct source_event *ret_event)
{
	const bool is_call = event->kind == EMU_EVENT_SYSCALL;

	if (!is_call &&
	    (event->kind != EMU_EVENT_SIGNAL || event->number < 1 || event->number > SIGNAL_MAX))
		return false;
	*ret_event = (struct source_event){
		.time = event->time_ns,
		.pid = event->pid,
		.tid = event->tid,
		.kind = is_call ? SOURCE_EVENT_SYSCALL : SOURCE_EVENT_SIGNAL,
		.number = event->number,
		.handler = is_call ? 0 : event->handler,
	};
	return true;
}

static int copy_events(struct source *source, uint32_t cpu, uint64_t since_ns,
		       struct source_event **ret_events, size_t *ret_n)
{
	const size_t size = sizeof(struct emu_event);
	struct source_emu *e = emu(source);
	_cleanup_(freep) struct source_event *events = NULL;
	_cleanup_(freep) struct emu_event *written = NULL;
	struct source_view v;
	size_t n, gone, unwanted, n_good = 0;

	if (cpu >= e->layout.n_cpus)
		return -EINVAL;
	/* A head that is no multiple was scribbled. */
	v = ring_view(e->map + emu_event_offset(&e->layout, cpu), e->layout.event_size,
		      e->held[cpu].event_head / size * size);
	n = (v.a_size + v.b_size) / size;
	written = calloc(n + 1, size);
	events = calloc(n + 1, sizeof(*events));
	if (!written || !events)
		return -ENOMEM;
	ring_copy(&v, 0, n * size, (uint8_t *)written);

	gone = (size_t)overwritten(e, cpu).events;
	unwanted = ring_before(&v, since_ns > 0 ? heads_at(e, cpu, since_ns).events : 0);
	gone = ((gone < unwanted ? unwanted : gone) + size - 1) / size;
	for (size_t i = gone; i < n; i++)
		n_good += take_event(&written[i], &events[n_good]);
	*ret_events = TAKE(events);
	*ret_n = n_good;
	return 0;
}

static void keep_writers(struct source_emu *e)
{
	struct kept_state *state = state_of(e);

	static_assert(sizeof(e->writers.pids) == sizeof(state->writers), "all of them are kept");
	state->n_writers = (uint32_t)e->writers.n;
	memcpy(state->writers, e->writers.pids, sizeof(state->writers));
}

static int drain_tasks(struct source_emu *e, uint8_t **ret_bytes, size_t *ret_size)
{
	const uint64_t head = atomic_load_explicit(&pool(e)->task_head, memory_order_acquire);
	const uint64_t tail = state_of(e)->task_tail;
	const bool sane = head - tail <= e->layout.task_size;
	const size_t n = sane ? (size_t)(head - tail) : 0;
	const size_t room = n + RECORD_OWN_MAX;
	_cleanup_(freep) uint8_t *bytes = malloc(room);
	struct trailer trailer;
	struct source_view v;
	struct record record;
	struct cursor c;
	unsigned n_checks = 0;
	size_t whole;
	int r = RECORD_END;

	if (!bytes)
		return -ENOMEM;

	/* Copied first and judged then, so that what was judged cannot change. */
	v = ring_span(e->map + emu_task_offset(&e->layout), e->layout.task_size, tail, n);
	ring_copy(&v, 0, n, bytes);
	c = cursor_from(bytes, n);
	state_of(e)->task_tail = head;

	while ((r = record_next(&c, &record)) == 0)
		poolwriters_note(&e->writers, record.trailer.pid, &n_checks);
	keep_writers(e);
	whole = n - cursor_left(&c);
	if (r < 0 || !sane) {
		trailer = record_trailer(0, 0, now_ns());
		whole += record_write_lost(&(struct record_lost){ RECORD_ID_SIDEBAND, 1 }, &trailer,
					   bytes + whole, room - whole);
	}

	*ret_size = whole;
	*ret_bytes = TAKE(bytes);
	return 0;
}

static int drain_code(struct source_emu *e, uint8_t **ret_bytes, size_t *ret_size)
{
	const uint64_t head = atomic_load_explicit(&pool(e)->code_head, memory_order_acquire);
	const uint64_t tail = state_of(e)->code_tail, size = e->layout.code_size;
	const bool sane = head - tail <= size;
	const size_t n = sane ? (size_t)(head - tail) : 0;
	uint8_t *bytes = sane ? malloc(n + 1) : NULL;
	struct source_view v;

	state_of(e)->code_tail = head;
	if (bytes) {
		v = ring_span(e->map + emu_code_offset(&e->layout), size, tail, n);
		ring_copy(&v, 0, n, bytes);
	}
	if (!bytes)
		return sane ? -ENOMEM : -EBADMSG;
	*ret_bytes = bytes;
	*ret_size = n;
	return 0;
}

static int drain(struct source *source, enum source_stream stream, uint8_t **ret_bytes,
		 size_t *ret_size)
{
	struct source_emu *e = emu(source);

	return stream == SOURCE_CODE ? drain_code(e, ret_bytes, ret_size)
				     : drain_tasks(e, ret_bytes, ret_size);
}

/* If we are killed before this, the next process drains the same bytes again. */
static void give_room(struct source *source)
{
	const struct source_emu *e = emu(source);

	atomic_store_explicit(&pool(e)->task_tail, state_of(e)->task_tail, memory_order_release);
	atomic_store_explicit(&pool(e)->code_tail, state_of(e)->code_tail, memory_order_release);
}

/* The programs name each task from its beginning; /proc would show QEMU in their place. */
static int tasks(struct source *source, const struct tasks *known, uint64_t budget_ns,
		 record_put_fn put, void *userdata)
{
	(void)source;
	(void)budget_ns;
	/* @put counts what it refuses. */
	(void)tasks_write(known, tasks_time(known), put, userdata);
	return 0;
}

static bool is_writer(void *userdata, uint32_t pid)
{
	return poolwriters_has_pool(&((const struct source_emu *)userdata)->writers, pid);
}

/* Processes that were killed did not count themselves out. */
static bool is_active(struct source_emu *e)
{
	return atomic_load_explicit(&pool(e)->n_attached, memory_order_relaxed) > 0 &&
	       poolwriters_alive(&e->writers);
}

static struct source_status status(struct source *source)
{
	struct source_emu *e = emu(source);

	return (struct source_status){
		.n_online = e->layout.n_cpus,
		.n_recording = e->layout.n_cpus,
		.is_active = is_active(e),
		.aux_size = e->layout.aux_size,
		.switch_size = e->layout.switch_size,
		.bytes_held = bytes_held(e),
	};
}

/* The programs count what they could not record. One line says so, however often it happens. */
static void look_after(struct source *source)
{
	struct source_emu *e = emu(source);

	if (!e->said_code_lost && atomic_load(&pool(e)->code_lost) > 0) {
		log_warning("some code that is in no file ran unrecorded: more of it was made than "
			    "the ring of code holds (TaskSize= may be too small)");
		e->said_code_lost = true;
	}
	if (!e->said_exhausted && atomic_load(&pool(e)->exhausted) > 0) {
		log_warning("some threads ran unrecorded for a while: no virtual CPU became free "
			    "for them (Cpus= may be too small)");
		e->said_exhausted = true;
	}
}

static int refuse_pause(struct source *source, bool pause)
{
	(void)source;
	(void)pause;
	return -EOPNOTSUPP;
}

/* --- life ------------------------------------------------------------------------------------ */

static struct source *emu_free(struct source *source)
{
	struct source_emu *e = emu(source);

	if (!e)
		return NULL;
	if (e->map)
		(void)munmap(e->map, e->map_size);
	e->fd = fd_close(e->fd);
	e->source.kept = kept_free(e->source.kept);
	(void)pthread_mutex_destroy(&e->lock);
	free(e);
	return NULL;
}

static const struct source_ops emu_ops = {
	.status = status,
	.look_after = look_after,
	.pause = refuse_pause,
	.drain = drain,
	.give_room = give_room,
	.tasks = tasks,
	.aux_room = aux_room,
	.hold = hold,
	.release = release,
	.view = view,
	.copy_switches = copy_switches,
	.copy_events = copy_events,
	.free = emu_free,
};

#define SEALS (F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

static int map_pool(struct source_emu *e)
{
	void *map = mmap(NULL, e->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	e->map = map;
	return 0;
}

static int make_pool(struct source_emu *e)
{
	static const char name[] = "ptd-pool";
	int r;

	e->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (e->fd < 0 || ftruncate(e->fd, (off_t)e->map_size) < 0)
		return -errno;
	/* Without the seals a traced program could shrink it, and kill us by SIGBUS. */
	if (fcntl(e->fd, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	r = map_pool(e);
	if (r == 0)
		r = kept_new(&e->source.kept);
	if (r == 0)
		state_of(e)->born = e->writers.born = birth_of((uint32_t)getpid());
	return r;
}

/* How the pool and the kept state are laid out, and what else of the settings is in them. */
static void write_form(const struct emu_pool_layout *l, char ret_form[static KEEPER_FORM_SIZE])
{
	(void)snprintf(ret_form, KEEPER_FORM_SIZE,
		       "emu pool=%u kept=%u.%zu cpus=%" PRIu32 ",%" PRIu32 " aux=%" PRIu64
		       " switch=%" PRIu64 " event=%" PRIu64 " task=%" PRIu64 " code=%" PRIu64
		       " psb=%" PRIu32 " quantum=%" PRIu32 " compression=%d,%d mtc=%d,%u cyc=%d",
		       EMU_POOL_VERSION, KEPT_VERSION, sizeof(struct kept_state), l->n_cpus,
		       l->n_busy_max, l->aux_size, l->switch_size, l->event_size, l->task_size,
		       l->code_size, l->psb_period, l->quantum_us, l->return_compression,
		       l->long_tnt, l->timing.mtc, l->timing.mtc_period, l->timing.cyc);
}

static bool is_pool(const struct source_emu *e, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_size == e->map_size &&
	       ((unsigned)fcntl(fd, F_GET_SEALS) & SEALS) == SEALS;
}

/* Go on with the pool of an earlier process. Return: 0; -ENOENT if there is none; or negative
 * errno. */
static int resume_pool(struct source_emu *e, struct keeperlink *link, const char *form)
{
	_cleanup_(fd_closep) int fd = -1, kept_file = -1;
	const struct kept_state *state;
	struct keepable kept;
	int r;

	if (keeperlink_take(link, "pool", form, &kept))
		fd = kept.fd;
	if (keeperlink_take(link, "state", form, &kept))
		kept_file = kept.fd;
	if (fd < 0 || kept_file < 0)
		return -ENOENT;
	if (!is_pool(e, fd))
		return -EBADMSG;
	r = kept_resume(kept_file, &e->source.kept);
	if (r < 0)
		return r;
	kept_file = -1;
	state = state_of(e);
	e->writers.born = state->born;
	e->writers.n = state->n_writers < KEPT_WRITERS_MAX ? state->n_writers : KEPT_WRITERS_MAX;
	memcpy(e->writers.pids, state->writers, sizeof(e->writers.pids));
	atomic_store(&e->timing, state->timing);
	e->fd = fd;
	fd = -1;
	return map_pool(e);
}

/* Forget what could not be taken over. */
static void drop_pool(struct source_emu *e)
{
	e->fd = fd_close(e->fd);
	e->source.kept = kept_free(e->source.kept);
	e->writers = (struct poolwriters){};
	atomic_store(&e->timing, false);
}

static int open_pool(struct source_emu *e, struct keeperlink *link)
{
	char form[KEEPER_FORM_SIZE];
	int r;

	write_form(&e->layout, form);
	e->map_size = emu_pool_size(&e->layout);
	r = resume_pool(e, link, form);
	if (r == 0) {
		log_notice("took over the rings of the ptd that ran before");
	} else {
		if (r != -ENOENT) {
			errno = -r;
			log_warning("cannot take over the rings of the ptd that ran before: %m");
		}
		drop_pool(e);
		r = make_pool(e);
	}
	if (r < 0)
		return r;
	e->writers.pool_fd = e->fd;
	keeperlink_drop_rest(link);
	r = keeperlink_keep(link, "pool", form, &(struct keepable){ .fd = e->fd });
	if (r < 0)
		return r;
	return keeperlink_keep(link, "state", form,
			       &(struct keepable){ .fd = kept_fd(e->source.kept) });
}

int source_emu_new(const struct config *config, struct keeperlink *link, struct source **ret_source)
{
	struct source_emu *e;
	int r;

	if (!ptterms_get(&config->pt, PTTERM_TSC, 1))
		return -EOPNOTSUPP;

	e = malloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	*e = (struct source_emu){
		.source = { .ops = &emu_ops,
			    .facts = emuterms_facts(config),
			    .claims = { .is_writer = is_writer, .userdata = e },
			    .records_fd = -1 },
		.layout = emuterms_layout(config),
		.fd = -1,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	e->source.n_cpus = e->layout.n_cpus;

	r = open_pool(e, link);
	if (r < 0) {
		(void)emu_free(&e->source);
		return r;
	}
	pool(e)->header.magic = EMU_POOL_MAGIC;
	pool(e)->header.version = EMU_POOL_VERSION;
	pool(e)->header.layout = e->layout;
	pool(e)->header.home = emu_pool_here();

	*ret_source = &e->source;
	return 0;
}

/* Takes free CPUs for a moment as a program would, so that the next owner begins with a PSB. */
static void make_bookmark(struct source_emu *e)
{
	const uint64_t self = (uint64_t)getpid() << 32 | (uint64_t)getpid();
	struct bookmark *b;

	(void)pthread_mutex_lock(&e->lock);
	b = &e->bookmarks[e->n_bookmarks % BOOKMARKS_MAX];
	for (uint32_t i = 0; i < e->layout.n_cpus; i++) {
		struct emu_cpu *cpu = cpu_at(e, i);
		uint64_t owner = 0;

		if (atomic_compare_exchange_strong(&cpu->owner, &owner, self)) {
			if (cpu->encode.since_psb < e->layout.psb_period)
				cpu->encode.since_psb = e->layout.psb_period;
			atomic_store(&cpu->owner, 0);
		}
		b->heads[i].aux = atomic_load_explicit(&cpu->aux_head, memory_order_acquire);
		b->heads[i].switches =
		    atomic_load_explicit(&cpu->switch_head, memory_order_acquire);
		b->heads[i].events = atomic_load_explicit(&cpu->event_head, memory_order_acquire);
	}
	b->time_ns = now_ns();
	e->n_bookmarks++;
	(void)pthread_mutex_unlock(&e->lock);
}

int source_emu_share(struct source *source, bool timing)
{
	struct source_emu *e = emu(source);

	if (source->ops != &emu_ops)
		return -EOPNOTSUPP;
	if (timing) {
		atomic_store(&e->timing, true);
		state_of(e)->timing = true;
		/* The program may write such packets before anything else is published. */
		kept_publish(e->source.kept);
	}
	make_bookmark(e);
	return e->fd;
}
