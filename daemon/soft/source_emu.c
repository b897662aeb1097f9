/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/soft/source_emu.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/helper/keeper/link.h"
#include "daemon/helper/keeper/message.h"
#include "daemon/plugin/coderecord.h"
#include "daemon/plugin/pool.h"
#include "daemon/proc/process.h"
#include "daemon/sideband/tasks.h"
#include "daemon/soft/emuterms.h"
#include "daemon/soft/poolrecords.h"
#include "daemon/soft/poolrings.h"
#include "daemon/source/kept.h"
#include "daemon/source/ring.h"
#include "util/map.h"
#include "util/perf/codec.h"
#include "util/perf/record.h"

#define FLUSH_WAIT_US 10000u /* a CPU's owner may have lost the real CPU for a slice */
#define FLUSH_POLL_US 50u

#define SIGNAL_MAX 64u

/* Processes whose users are remembered. If there are more, all are asked for again. */
#define USERS_MAX 65536u

/* The name under which the keeper has the pool. */
#define POOL_NAME "pool"

struct source_emu {
	struct source source;
	struct emu_pool_layout layout; /* ours; the one in the pool is for the programs */
	struct keeperlink *link;       /* borrowed; may be NULL */
	int fd;                        /* of the pool */
	uint8_t *map;
	size_t map_size;
	struct poolrings rings;
	struct map users; /* process → user */
	bool said_code_lost, said_exhausted, said_refused;

	/* The event loop writes these, and the thread of a snapshot reads them, or both. */
	_Atomic uint64_t n_refused; /* records that made no sense */
	_Atomic uint64_t lost_ns;   /* kept_pool.lost_ns */
	_Atomic bool timing;        /* kept_pool.timing */
};

static struct source_emu *emu(struct source *source)
{
	return (struct source_emu *)source;
}

static struct emu_pool *pool_of(const struct source_emu *e)
{
	return (struct emu_pool *)e->map;
}

/* What is to be kept of the source. */
static struct kept_state *state_of(const struct source_emu *e)
{
	return kept_draft(e->source.kept);
}

/* The records' clock. */
static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static struct poolrecords records_of(const struct source_emu *e)
{
	return (struct poolrecords){ .n_cpus = e->layout.n_cpus, .now_ns = now_ns() };
}

/* --- rings ------------------------------------------------------------------------------------ */

static int hold(struct source *source, struct source_moment *ret_moment)
{
	struct source_emu *e = emu(source);

	poolrings_ask_flush(&e->rings);
	/* The owner of a CPU that does not answer is stopped, dead, or in one very long block: what
	 * it published is taken. */
	for (unsigned us = 0; us < FLUSH_WAIT_US && !poolrings_is_flushed(&e->rings);
	     us += FLUSH_POLL_US)
		(void)nanosleep(&(struct timespec){ .tv_nsec = FLUSH_POLL_US * 1000 }, NULL);
	poolrings_hold(&e->rings, &ret_moment->complete_until_ns);
	if (atomic_load(&e->timing))
		source->facts.attr_config |= emuterms_timing_config(&e->layout.timing);
	ret_moment->ns = ret_moment->monotonic_ns = now_ns();
	ret_moment->realtime_ns = clock_ns(CLOCK_REALTIME);
	return 0;
}

/* Views are exact always. */
static int view(struct source *source, uint32_t cpu, uint64_t since_ns, bool exact,
		struct source_view *ret_view)
{
	*ret_view = (struct source_view){};
	poolrings_view(&emu(source)->rings, cpu, since_ns, ret_view);
	return 0;
}

/*
 * When task records were lost, what ran before cannot be decoded. So switch records of that time
 * are left out, as if they had been overwritten; the last of them says who ran at @lost_ns.
 *
 * Return: how many bytes were left out of those at @bytes, or changed.
 */
static size_t drop_before(uint8_t *bytes, size_t *size, uint64_t lost_ns)
{
	struct cursor c = cursor_from(bytes, *size);
	size_t last_size = 0, end = 0;
	struct record record;
	struct trailer trailer;

	while (record_next(&c, &record) == 0 && record.trailer.time < lost_ns) {
		trailer = record.trailer;
		last_size = record.header.size;
		end += last_size;
	}
	if (end == 0)
		return 0;
	trailer.time = lost_ns;
	trailer_write(&trailer, bytes + end - TRAILER_SIZE);
	*size -= end - last_size;
	memmove(bytes, bytes + end - last_size, *size);
	return end;
}

static int copy_switches(struct source *source, uint32_t cpu, uint64_t since_ns,
			 uint8_t **ret_bytes, size_t *ret_size, bool *ret_cut)
{
	struct source_emu *e = emu(source);
	const uint64_t lost_ns = atomic_load(&e->lost_ns);
	struct poolrecords records = records_of(e);
	size_t n;
	int r;

	r = poolrings_copy_switches(&e->rings, cpu, since_ns, ret_bytes, &n, ret_cut);
	if (r < 0)
		return r;
	n = poolrecords_switches(&records, *ret_bytes, n);
	atomic_fetch_add(&e->n_refused, records.n_refused);
	if (drop_before(*ret_bytes, &n, lost_ns) > 0)
		*ret_cut = true;
	*ret_size = n;
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
	struct source_emu *e = emu(source);
	_cleanup_(freep) struct source_event *events = NULL;
	_cleanup_(freep) struct emu_event *written = NULL;
	size_t n, n_good = 0;
	int r;

	r = poolrings_copy_events(&e->rings, cpu, since_ns, &written, &n);
	if (r < 0)
		return r;
	events = calloc(n + 1, sizeof(*events));
	if (!events)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		n_good += take_event(&written[i], &events[n_good]);
	atomic_fetch_add(&e->n_refused, n - n_good);
	*ret_n = n_good;
	*ret_events = TAKE(events);
	return 0;
}

/* --- whose processes they are ----------------------------------------------------------------- */

static int owner(struct source *source, uint32_t pid, uid_t *ret_uid)
{
	const uint64_t *user = map_get(&emu(source)->users, pid);

	if (!user)
		return process_real_user_of(pid, ret_uid);
	*ret_uid = (uid_t)*user;
	return 0;
}

/* A record says that there is a new process, or names one. The kernel is asked whose it is, at the
 * first record of it, and if it has ended, it is as its parent is. Without memory, it is the user's
 * that ptd runs as. */
static void note_process(void *userdata, uint32_t pid, uint32_t parent, bool is_new)
{
	struct source_emu *e = userdata;
	uid_t user = geteuid();

	if (!is_new && map_get(&e->users, pid))
		return;
	if (e->users.n_used >= USERS_MAX)
		map_deinit(&e->users);
	if (process_real_user_of(pid, &user) < 0)
		(void)!owner(&e->source, parent, &user);
	(void)!map_put(&e->users, pid, user);
}

static uid_t user_of(void *userdata, uint32_t pid, uint32_t parent)
{
	struct source_emu *e = userdata;
	uid_t user = geteuid();

	note_process(e, pid, parent, false);
	(void)!owner(&e->source, pid, &user);
	return user;
}

/* --- who writes ------------------------------------------------------------------------------- */

static bool writes(const struct kept_pool *kept, uint32_t pid)
{
	for (size_t i = 0; i < kept->n_writers; i++)
		if (kept->writers[i] == pid)
			return true;
	return false;
}

/* A process wrote a record. Some of the processes that write are remembered: as long as one of
 * them lives, more records may come. */
static void note_writer(struct source_emu *e, uint32_t pid)
{
	struct kept_pool *kept = &state_of(e)->pool;

	if (writes(kept, pid))
		return;
	/* Trees of processes have many that are short-lived. */
	for (size_t i = kept->n_writers == KEPT_WRITERS_MAX ? KEPT_WRITERS_MAX : 0; i > 0; i--)
		if (!tasks_is_alive(kept->writers[i - 1]))
			kept->writers[i - 1] = kept->writers[--kept->n_writers];
	if (kept->n_writers < KEPT_WRITERS_MAX)
		kept->writers[kept->n_writers++] = pid;
}

/* The count of programs alone does not suffice: one that was killed is still counted. */
static bool is_active(const struct source_emu *e)
{
	struct kept_pool *kept = &state_of(e)->pool;

	if (atomic_load_explicit(&pool_of(e)->n_attached, memory_order_relaxed) == 0)
		return false;
	while (kept->n_writers > 0 && !tasks_is_alive(kept->writers[kept->n_writers - 1]))
		kept->n_writers--;
	return kept->n_writers > 0;
}

/* --- streams ---------------------------------------------------------------------------------- */

/*
 * Copy what lies between @tail and @head in the ring of a stream. The caller judges the copy, which
 * programs cannot change any more.
 *
 * @more: bytes of room that are needed behind it
 * @ret_sane: false if @head makes no sense: then nothing is copied
 *
 * Return: 0, and @ret_bytes is the caller's; or -ENOMEM.
 */
static int copy_stream(const uint8_t *ring, uint64_t ring_size, uint64_t tail, uint64_t head,
		       size_t more, uint8_t **ret_bytes, size_t *ret_n, bool *ret_sane)
{
	const bool sane = head - tail <= ring_size;
	const size_t n = sane ? (size_t)(head - tail) : 0;
	const struct source_view v = ring_span(ring, ring_size, tail, n);
	uint8_t *bytes = malloc(n + more + 1);

	if (!bytes)
		return -ENOMEM;
	ring_copy(&v, 0, n, bytes);
	*ret_bytes = bytes;
	*ret_n = n;
	*ret_sane = sane;
	return 0;
}

static void on_task_record(void *userdata, const struct record *record)
{
	struct record_task task;

	note_writer(userdata, record->trailer.pid);
	if (record->header.type == PERF_RECORD_FORK && record_get_task(record, &task) == 0 &&
	    task.pid != task.ppid)
		note_process(userdata, task.pid, task.ppid, true);
	else
		note_process(userdata, record->trailer.pid, 0, false);
}

static int drain_tasks(struct source_emu *e, uint8_t **ret_bytes, size_t *ret_size)
{
	const uint64_t head = atomic_load_explicit(&pool_of(e)->task_head, memory_order_acquire);
	struct kept_pool *kept = &state_of(e)->pool;
	struct poolrecords records;
	bool sane;
	size_t n;
	int r;

	r = copy_stream(e->map + emu_task_offset(&e->layout), e->layout.task_size, kept->task_tail,
			head, 0, ret_bytes, &n, &sane);
	if (r < 0)
		return r;
	kept->task_tail = head;

	records = records_of(e);
	records.note_record = on_task_record;
	records.userdata = e;
	*ret_size = poolrecords_tasks(&records, *ret_bytes, n);
	if (!sane) {
		records.n_lost++;
		records.lost_ns = records.now_ns;
	}
	if (records.lost_ns > kept->lost_ns)
		kept->lost_ns = records.lost_ns;
	atomic_store(&e->lost_ns, kept->lost_ns);
	atomic_fetch_add(&e->n_refused, records.n_refused);
	state_of(e)->n_tasks_lost += records.n_lost;
	return 0;
}

/* Say that code of the programs is missing. */
static void put_lost_code(uint8_t *bytes, size_t *size, uint64_t since_ns)
{
	const struct coderecord record = { .size = coderecord_size(0),
					   .kind = CODERECORD_LOST,
					   .time = since_ns };

	memcpy(bytes + *size, &record, sizeof(record));
	*size += record.size;
}

static int drain_code(struct source_emu *e, uint8_t **ret_bytes, size_t *ret_size)
{
	const uint64_t head = atomic_load_explicit(&pool_of(e)->code_head, memory_order_acquire);
	struct kept_pool *kept = &state_of(e)->pool;
	const uint64_t tail = kept->code_tail;
	struct poolrecords records;
	bool sane, torn;
	size_t n;
	int r;

	kept->code_tail = head;
	r = copy_stream(e->map + emu_code_offset(&e->layout), e->layout.code_size, tail, head,
			coderecord_size(0), ret_bytes, &n, &sane);
	if (r < 0)
		return r;
	records = records_of(e);
	records.user_of = user_of;
	records.userdata = e;
	*ret_size = poolrecords_code(&records, *ret_bytes, n, &torn);
	if (torn || !sane)
		put_lost_code(*ret_bytes, ret_size, kept->code_drained_ns);
	kept->code_drained_ns = records.now_ns;
	atomic_fetch_add(&e->n_refused, records.n_refused);
	return 0;
}

static int drain(struct source *source, enum source_stream stream, uint8_t **ret_bytes,
		 size_t *ret_size)
{
	return stream == SOURCE_CODE ? drain_code(emu(source), ret_bytes, ret_size)
				     : drain_tasks(emu(source), ret_bytes, ret_size);
}

/* Let programs use the room again. If we are killed before this, the next process drains the same
 * bytes again. */
static void give_room(struct source *source)
{
	const struct source_emu *e = emu(source);
	const struct kept_pool *kept = &state_of(e)->pool;

	atomic_store_explicit(&pool_of(e)->task_tail, kept->task_tail, memory_order_release);
	atomic_store_explicit(&pool_of(e)->code_tail, kept->code_tail, memory_order_release);
}

/* The programs name each task from its beginning; /proc would show QEMU in their place. */
static int tasks(struct source *source, const struct tasks *known, uint64_t budget_ns,
		 record_put_fn put, void *userdata)
{
	/* @put counts what it refuses. */
	(void)tasks_write(known, tasks_time(known), put, userdata);
	return 0;
}

/* --- state ------------------------------------------------------------------------------------ */

static struct source_status status(struct source *source)
{
	struct source_emu *e = emu(source);

	return (struct source_status){
		.n_online = e->layout.n_cpus,
		.n_recording = e->layout.n_cpus,
		.is_active = is_active(e),
		.aux_size = e->layout.aux_size,
		.switch_size = e->layout.switch_size,
		.bytes_held = poolrings_bytes_held(&e->rings),
		.n_tasks_lost = state_of(e)->n_tasks_lost,
	};
}

static void say_once(bool *said, bool happened, const char *text)
{
	if (happened && !*said)
		log_warning("%s", text);
	*said = *said || happened;
}

/* The programs count what they could not record. That is logged once, however often it happens. */
static void look_after(struct source *source)
{
	struct source_emu *e = emu(source);

	say_once(&e->said_code_lost, atomic_load(&pool_of(e)->code_lost) > 0,
		 "some code that is in no file ran unrecorded: more of it was made than the ring "
		 "of code holds (TaskSize= may be too small)");
	say_once(&e->said_exhausted, atomic_load(&pool_of(e)->exhausted) > 0,
		 "some threads ran unrecorded for a while: no virtual CPU became free for them "
		 "(Cpus= may be too small)");
	say_once(&e->said_refused, atomic_load(&e->n_refused) > 0,
		 "a recorded program has written records that make no sense: they are left out");
}

/* --- the pool --------------------------------------------------------------------------------- */

/* Describe how the pool and the kept state are laid out, and the settings on which their content
 * depends: only what has the same form is taken over. */
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

#define SEALS (F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

/* Map the pool, which is the source's from then on. On failure it is still the caller's. */
static int map_pool(struct source_emu *e, int fd)
{
	void *map = mmap(NULL, e->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	e->fd = fd;
	e->map = map;
	pool_of(e)->header = (struct emu_pool_header){ .magic = EMU_POOL_MAGIC,
						       .version = EMU_POOL_VERSION,
						       .layout = e->layout,
						       .home = emu_pool_here() };
	poolrings_init(&e->rings, fd, e->map, &e->layout);
	return 0;
}

static void unmap_pool(struct source_emu *e)
{
	if (e->map) {
		poolrings_deinit(&e->rings);
		(void)munmap(e->map, e->map_size);
	}
	e->map = NULL;
	e->fd = fd_close(e->fd);
}

static int make_pool(struct source_emu *e)
{
	_cleanup_(fd_closep) int fd = memfd_create("ptd-pool", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0 || ftruncate(fd, (off_t)e->map_size) < 0)
		return -errno;
	/* Without the seals a traced program could shrink it, and kill us by SIGBUS. */
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	r = map_pool(e, fd);
	if (r < 0)
		return r;
	fd = -1;
	state_of(e)->pool = (struct kept_pool){ .code_drained_ns = now_ns() };
	return 0;
}

int source_emu_share(struct source *source, bool timing)
{
	struct source_emu *e = emu(source);

	if (source->ops->hold != hold)
		return -EOPNOTSUPP;
	state_of(e)->pool.timing = state_of(e)->pool.timing || timing;
	atomic_store(&e->timing, state_of(e)->pool.timing);
	/* The program may write such packets before anything else is published. */
	kept_publish(source->kept);
	poolrings_mark(&e->rings);
	return e->fd;
}

/* --- life ------------------------------------------------------------------------------------- */

static struct source *emu_free(struct source *source)
{
	struct source_emu *e = emu(source);

	if (!e)
		return NULL;
	unmap_pool(e);
	map_deinit(&e->users);
	e->source.kept = kept_free(e->source.kept);
	free(e);
	return NULL;
}

static const struct source_ops emu_ops = {
	.status = status,
	.look_after = look_after,
	.drain = drain,
	.give_room = give_room,
	.tasks = tasks,
	.owner = owner,
	.hold = hold,
	.view = view,
	.copy_switches = copy_switches,
	.copy_events = copy_events,
	.free = emu_free,
};

static bool is_pool(const struct source_emu *e, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_size == e->map_size &&
	       ((unsigned)fcntl(fd, F_GET_SEALS) & SEALS) == SEALS;
}

static int resume_pool(struct source_emu *e, const char *form)
{
	struct keepable keepable;
	int r;

	if (!keeperlink_take(e->link, POOL_NAME, form, &keepable))
		return -EBADMSG;
	r = is_pool(e, keepable.fd) ? map_pool(e, keepable.fd) : -EBADMSG;
	if (r < 0) {
		(void)fd_close(keepable.fd);
		return r;
	}
	atomic_store(&e->lost_ns, state_of(e)->pool.lost_ns);
	atomic_store(&e->timing, state_of(e)->pool.timing);
	return 0;
}

/* Go on with the pool of an earlier process. Return: 0; -ENOENT if there is none; or negative
 * errno. */
static int resume(struct source_emu *e, const char *form)
{
	struct keepable kept;
	int r;

	if (!keeperlink_take(e->link, "state", form, &kept))
		return -ENOENT;
	r = kept_resume(kept.fd, &e->source.kept);
	if (r < 0) {
		(void)fd_close(kept.fd);
		return r;
	}
	if (state_of(e)->pool.n_writers > KEPT_WRITERS_MAX)
		return -EBADMSG;
	return resume_pool(e, form);
}

static int open_pool(struct source_emu *e)
{
	char form[KEEPER_FORM_SIZE];
	int r;

	write_form(&e->layout, form);
	r = resume(e, form);
	if (r == 0) {
		log_notice("took over the rings of the ptd that ran before");
	} else {
		if (r != -ENOENT)
			(void)log_warning_errno(
			    r, "cannot take over the rings of the ptd that ran before: %m");
		e->source.kept = kept_free(e->source.kept);
		r = kept_new(&e->source.kept);
		if (r == 0)
			r = make_pool(e);
	}
	keeperlink_drop_rest(e->link);
	if (r == 0)
		r = keeperlink_keep(e->link, POOL_NAME, form, &(struct keepable){ .fd = e->fd });
	if (r < 0)
		return r;
	return keeperlink_keep(e->link, "state", form,
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
		.source = { .ops = &emu_ops, .facts = emuterms_facts(config), .records_fd = -1 },
		.layout = emuterms_layout(config),
		.link = link,
		.fd = -1,
	};
	e->map_size = emu_pool_size(&e->layout);
	e->source.n_cpus = e->layout.n_cpus;
	r = open_pool(e);
	if (r < 0) {
		(void)emu_free(&e->source);
		return r;
	}
	*ret_source = &e->source;
	return 0;
}
