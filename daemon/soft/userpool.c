/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/soft/userpool.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "daemon/emu/coderecord.h"
#include "daemon/proc/birth.h"
#include "daemon/soft/poolclaims.h"
#include "daemon/soft/poolrecords.h"
#include "daemon/soft/poolwriters.h"
#include "daemon/source/kept.h"
#include "daemon/source/ring.h"
#include "record/codec.h"
#include "record/record.h"

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

/* A pool of which so long nothing was heard is at rest. */
#define REST_NS UINT64_C(60000000000)

/* Processes and threads that are looked up while the task ring is drained, and while a ring of a
 * CPU is copied. */
#define LOOKUPS_DRAIN 4096u
#define LOOKUPS_COPY  65536u

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

struct userpool {
	uint32_t number;
	uid_t uid;
	struct emu_pool_layout layout; /* ours; the one in the pool is for the programs */
	struct poolclaims *claims;     /* borrowed */
	struct kept_pool *kept;        /* borrowed */
	int fd;
	uint8_t *map;
	size_t map_size;
	struct held held[EMU_CPUS_MAX];
	uint32_t generation;        /* of the last flush that was asked for */
	struct poolwriters writers; /* seen in task records */
	uint64_t code_drained_ns;   /* when the ring of code was drained last */
	_Atomic uint64_t n_refused;
	_Atomic uint64_t lost_ns; /* @kept->lost_ns, for other threads */
	_Atomic bool timing;      /* likewise */

	pthread_mutex_t lock; /* of the next two: a snapshot's threads read them */
	struct bookmark bookmarks[BOOKMARKS_MAX]; /* the latest ones */
	size_t n_bookmarks;                       /* ever made */
};

/* The records' clock. */
static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static struct emu_pool *pool(const struct userpool *p)
{
	return (struct emu_pool *)p->map;
}

static struct emu_cpu *cpu_at(const struct userpool *p, uint32_t cpu)
{
	return (struct emu_cpu *)(p->map + emu_cpu_offset(&p->layout, cpu));
}

/* --- life ------------------------------------------------------------------------------------- */

#define SEALS (F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL)

static struct userpool *make(const struct userpool_options *options)
{
	struct userpool *p = malloc(sizeof(*p));

	if (!p)
		return NULL;
	*p = (struct userpool){
		.number = options->number,
		.uid = options->uid,
		.layout = *options->layout,
		.claims = options->claims,
		.kept = options->kept,
		.fd = -1,
		.map_size = emu_pool_size(options->layout),
		.code_drained_ns = now_ns(),
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	return p;
}

static int map_pool(struct userpool *p)
{
	void *map = mmap(NULL, p->map_size, PROT_READ | PROT_WRITE, MAP_SHARED, p->fd, 0);

	if (map == MAP_FAILED)
		return -errno;
	p->map = map;
	pool(p)->header = (struct emu_pool_header){ .magic = EMU_POOL_MAGIC,
						    .version = EMU_POOL_VERSION,
						    .layout = p->layout,
						    .home = emu_pool_here() };
	return 0;
}

int userpool_new(const struct userpool_options *options, struct userpool **ret_pool)
{
	static const char name[] = "ptd-pool";
	_cleanup_(userpool_freep) struct userpool *p = make(options);
	int r;

	if (!p)
		return -ENOMEM;
	p->fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (p->fd < 0 || ftruncate(p->fd, (off_t)p->map_size) < 0)
		return -errno;
	/* Without the seals a traced program could shrink it, and kill us by SIGBUS. */
	if (fcntl(p->fd, F_ADD_SEALS, SEALS) < 0)
		return -errno;
	r = map_pool(p);
	if (r < 0)
		return r;
	p->writers.pool_fd = p->fd;
	p->writers.born = birth_of((uint32_t)getpid());
	*p->kept = (struct kept_pool){ .is_there = true,
				       .uid = p->uid,
				       .drained_ns = now_ns(),
				       .used_ns = now_ns(),
				       .born = p->writers.born };
	*ret_pool = TAKE(p);
	return 0;
}

static bool is_pool(const struct userpool *p, int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (uint64_t)st.st_size == p->map_size &&
	       ((unsigned)fcntl(fd, F_GET_SEALS) & SEALS) == SEALS;
}

int userpool_resume(const struct userpool_options *options, int fd, struct userpool **ret_pool)
{
	_cleanup_(userpool_freep) struct userpool *p = make(options);
	const struct kept_pool *kept = options->kept;
	int r;

	if (!p)
		return -ENOMEM;
	if (!is_pool(p, fd))
		return -EBADMSG;
	p->fd = fd;
	r = map_pool(p);
	if (r < 0) {
		p->fd = -1;
		return r;
	}
	static_assert(sizeof(p->writers.pids) == sizeof(kept->writers), "all of them are kept");
	p->writers.pool_fd = fd;
	p->writers.born = kept->born;
	p->writers.n = kept->n_writers < KEPT_WRITERS_MAX ? kept->n_writers : KEPT_WRITERS_MAX;
	memcpy(p->writers.pids, kept->writers, sizeof(p->writers.pids));
	atomic_store(&p->lost_ns, kept->lost_ns);
	atomic_store(&p->timing, kept->timing);
	*ret_pool = TAKE(p);
	return 0;
}

struct userpool *userpool_free(struct userpool *pool)
{
	if (!pool)
		return NULL;
	if (pool->map)
		(void)munmap(pool->map, pool->map_size);
	(void)fd_close(pool->fd);
	(void)pthread_mutex_destroy(&pool->lock);
	free(pool);
	return NULL;
}

int userpool_fd(const struct userpool *pool)
{
	return pool->fd;
}

uid_t userpool_uid(const struct userpool *pool)
{
	return pool->uid;
}

uint64_t userpool_size(const struct userpool *pool)
{
	return pool->map_size;
}

/* --- who writes ------------------------------------------------------------------------------- */

void userpool_share(struct userpool *pool, bool timing)
{
	pool->kept->used_ns = now_ns();
	pool->kept->timing = pool->kept->timing || timing;
	atomic_store(&pool->timing, pool->kept->timing);
}

/* Takes free CPUs for a moment as a program would, so that the next owner begins with a PSB. */
void userpool_mark(struct userpool *p)
{
	const uint64_t self = (uint64_t)getpid() << 32 | (uint64_t)getpid();
	struct bookmark *b;

	(void)pthread_mutex_lock(&p->lock);
	b = &p->bookmarks[p->n_bookmarks % BOOKMARKS_MAX];
	for (uint32_t i = 0; i < p->layout.n_cpus; i++) {
		struct emu_cpu *cpu = cpu_at(p, i);
		uint64_t owner = 0;

		if (atomic_compare_exchange_strong(&cpu->owner, &owner, self)) {
			if (cpu->encode.since_psb < p->layout.psb_period)
				cpu->encode.since_psb = p->layout.psb_period;
			atomic_store(&cpu->owner, 0);
		}
		b->heads[i].aux = atomic_load_explicit(&cpu->aux_head, memory_order_acquire);
		b->heads[i].switches =
		    atomic_load_explicit(&cpu->switch_head, memory_order_acquire);
		b->heads[i].events = atomic_load_explicit(&cpu->event_head, memory_order_acquire);
	}
	b->time_ns = now_ns();
	p->n_bookmarks++;
	(void)pthread_mutex_unlock(&p->lock);
}

/* Processes that were killed did not count themselves out. */
bool userpool_is_active(struct userpool *p)
{
	return atomic_load_explicit(&pool(p)->n_attached, memory_order_relaxed) > 0 &&
	       poolwriters_alive(&p->writers);
}

/* A program that is just executing another one has not mapped the pool; but it lives. */
bool userpool_is_at_rest(struct userpool *p, uint64_t now)
{
	return !poolwriters_alive(&p->writers) && now > p->kept->used_ns &&
	       now - p->kept->used_ns > REST_NS;
}

uint64_t userpool_bytes_held(const struct userpool *p)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < p->layout.n_cpus; i++) {
		const struct emu_cpu *cpu = cpu_at(p, i);
		const uint64_t aux = atomic_load_explicit(&cpu->aux_head, memory_order_relaxed);
		const uint64_t switches =
		    atomic_load_explicit(&cpu->switch_head, memory_order_relaxed);
		const uint64_t events =
		    atomic_load_explicit(&cpu->event_head, memory_order_relaxed);

		bytes += aux < p->layout.aux_size ? aux : p->layout.aux_size;
		bytes += switches < p->layout.switch_size ? switches : p->layout.switch_size;
		bytes += events < p->layout.event_size ? events : p->layout.event_size;
	}
	return bytes;
}

bool userpool_lost_code(const struct userpool *p)
{
	return atomic_load(&pool(p)->code_lost) > 0;
}

bool userpool_was_exhausted(const struct userpool *p)
{
	return atomic_load(&pool(p)->exhausted) > 0;
}

uint64_t userpool_n_refused(const struct userpool *p)
{
	return atomic_load(&p->n_refused);
}

/* --- streams ---------------------------------------------------------------------------------- */

static int append(struct userpool_bytes *to, size_t more, uint8_t **ret_room)
{
	uint8_t *bytes = realloc(to->bytes, to->size + more + 1);

	if (!bytes)
		return -ENOMEM;
	to->bytes = bytes;
	*ret_room = bytes + to->size;
	return 0;
}

static struct poolrecords records_of(struct userpool *p, unsigned n_lookups)
{
	return (struct poolrecords){
		.walk = poolclaims_begin(p->claims, p->number, p->uid, n_lookups),
		.first_cpu = p->layout.first_cpu,
		.n_cpus = p->layout.n_cpus,
		.now_ns = now_ns(),
	};
}

struct noting {
	struct userpool *pool;
	unsigned n_checks;
};

static void note_writer(void *userdata, uint32_t pid)
{
	struct noting *n = userdata;

	poolwriters_note(&n->pool->writers, pid, &n->n_checks);
}

static void keep_writers(struct userpool *p)
{
	p->kept->n_writers = (uint32_t)p->writers.n;
	memcpy(p->kept->writers, p->writers.pids, sizeof(p->kept->writers));
}

static int drain_tasks(struct userpool *p, struct userpool_bytes *to, uint64_t *ret_n_lost)
{
	const uint64_t head = atomic_load_explicit(&pool(p)->task_head, memory_order_acquire);
	const uint64_t tail = p->kept->task_tail;
	const bool sane = head - tail <= p->layout.task_size;
	const size_t n = sane ? (size_t)(head - tail) : 0;
	struct noting noting = { .pool = p };
	struct poolrecords records;
	struct source_view v;
	uint8_t *bytes;

	if (append(to, n, &bytes) < 0)
		return -ENOMEM;
	/* Copied first and judged then, so that what was judged cannot change. */
	v = ring_span(p->map + emu_task_offset(&p->layout), p->layout.task_size, tail, n);
	ring_copy(&v, 0, n, bytes);
	p->kept->task_tail = head;

	records = records_of(p, LOOKUPS_DRAIN);
	records.since_ns = p->kept->drained_ns;
	records.note_writer = note_writer;
	records.userdata = &noting;
	to->size += poolrecords_tasks(&records, bytes, n);
	if (!sane) {
		records.n_lost++;
		records.lost_ns = records.now_ns;
	}
	keep_writers(p);
	p->kept->drained_ns = records.now_ns;
	if (n > 0)
		p->kept->used_ns = records.now_ns;
	if (records.lost_ns > p->kept->lost_ns)
		p->kept->lost_ns = records.lost_ns;
	atomic_store(&p->lost_ns, p->kept->lost_ns);
	atomic_fetch_add(&p->n_refused, records.n_refused);
	*ret_n_lost = records.n_lost;
	return 0;
}

/* Say that code of the user's programs is missing. */
static void put_lost_code(struct userpool *p, struct userpool_bytes *to, uint8_t *at)
{
	const struct coderecord record = { .size = coderecord_size(0),
					   .kind = CODERECORD_LOST,
					   .time = p->code_drained_ns,
					   .uid = p->uid };

	memcpy(at, &record, sizeof(record));
	to->size += record.size;
}

static int drain_code(struct userpool *p, struct userpool_bytes *to)
{
	const uint64_t head = atomic_load_explicit(&pool(p)->code_head, memory_order_acquire);
	const uint64_t tail = p->kept->code_tail, size = p->layout.code_size;
	const bool sane = head - tail <= size;
	const size_t n = sane ? (size_t)(head - tail) : 0;
	struct poolrecords records;
	struct source_view v;
	size_t n_taken;
	uint8_t *bytes;
	bool torn;
	int r;

	p->kept->code_tail = head;
	r = append(to, n + coderecord_size(0), &bytes);
	if (r < 0)
		return r;
	v = ring_span(p->map + emu_code_offset(&p->layout), size, tail, n);
	ring_copy(&v, 0, n, bytes);
	records = records_of(p, LOOKUPS_DRAIN);
	n_taken = poolrecords_code(&records, bytes, n, &torn);
	to->size += n_taken;
	if (torn || !sane)
		put_lost_code(p, to, bytes + n_taken);
	p->code_drained_ns = records.now_ns;
	atomic_fetch_add(&p->n_refused, records.n_refused);
	return 0;
}

int userpool_drain(struct userpool *pool, enum source_stream stream, struct userpool_bytes *bytes,
		   uint64_t *ret_n_lost)
{
	return stream == SOURCE_CODE ? drain_code(pool, bytes)
				     : drain_tasks(pool, bytes, ret_n_lost);
}

/* If we are killed before this, the next process drains the same bytes again. */
void userpool_give_room(struct userpool *p)
{
	atomic_store_explicit(&pool(p)->task_tail, p->kept->task_tail, memory_order_release);
	atomic_store_explicit(&pool(p)->code_tail, p->kept->code_tail, memory_order_release);
}

/* --- rings ------------------------------------------------------------------------------------ */

static enum source_end end_of(const struct userpool *p, uint32_t i)
{
	struct emu_cpu *cpu = cpu_at(p, i);

	if (atomic_load_explicit(&cpu->owner, memory_order_acquire) == 0)
		return SOURCE_END_IDLE;
	return atomic_load_explicit(&cpu->flush_done, memory_order_acquire) == p->generation
		   ? SOURCE_END_FLUSHED
		   : SOURCE_END_LATE;
}

void userpool_ask_flush(struct userpool *p)
{
	p->generation = atomic_fetch_add_explicit(&pool(p)->flush, 1, memory_order_acq_rel) + 1;
}

bool userpool_is_flushed(const struct userpool *p)
{
	for (uint32_t i = 0; i < p->layout.n_cpus; i++)
		if (end_of(p, i) == SOURCE_END_LATE)
			return false;
	return true;
}

static void read_heads(struct userpool *p)
{
	for (uint32_t i = 0; i < p->layout.n_cpus; i++) {
		p->held[i].end = end_of(p, i);
		p->held[i].aux_head =
		    atomic_load_explicit(&cpu_at(p, i)->aux_head, memory_order_acquire);
	}
	/* After the PT, so that no packet is newer than the switch that explains it. */
	for (uint32_t i = 0; i < p->layout.n_cpus; i++) {
		p->held[i].switch_head =
		    atomic_load_explicit(&cpu_at(p, i)->switch_head, memory_order_acquire);
		p->held[i].event_head =
		    atomic_load_explicit(&cpu_at(p, i)->event_head, memory_order_acquire);
	}
}

/* If we were interrupted meanwhile, a thread may have gone from a CPU that was read to one that was
 * not, and what it did on the first would be missing between. */
void userpool_hold(struct userpool *p, uint64_t *ret_complete_ns)
{
	for (unsigned i = 0; i < PASS_TRIES; i++) {
		*ret_complete_ns = now_ns();
		read_heads(p);
		if (now_ns() - *ret_complete_ns < PASS_NS)
			break;
	}
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
static struct heads heads_at(struct userpool *p, uint32_t cpu, uint64_t time_ns)
{
	struct heads heads = {};
	size_t n;

	(void)pthread_mutex_lock(&p->lock);
	n = p->n_bookmarks < BOOKMARKS_MAX ? p->n_bookmarks : BOOKMARKS_MAX;
	for (size_t i = 1; i <= n; i++) {
		const struct bookmark *b = &p->bookmarks[(p->n_bookmarks - i) % BOOKMARKS_MAX];

		if (b->time_ns <= time_ns) {
			heads = b->heads[cpu];
			break;
		}
	}
	(void)pthread_mutex_unlock(&p->lock);
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
static struct heads overwritten(const struct userpool *p, uint32_t cpu)
{
	const struct emu_cpu *c = cpu_at(p, cpu);
	uint64_t aux, switches, events;
	bool owned;

	/* The owner first: if there is none now, whoever came and went has moved the heads. */
	atomic_thread_fence(memory_order_seq_cst);
	owned = atomic_load_explicit(&c->owner, memory_order_acquire) != 0;
	aux = atomic_load_explicit(&c->aux_head, memory_order_acquire);
	switches = atomic_load_explicit(&c->switch_head, memory_order_acquire);
	events = atomic_load_explicit(&c->event_head, memory_order_acquire);

	return (struct heads){
		.aux = lost_since(p->layout.aux_size, p->held[cpu].aux_head, aux,
				  owned ? UNPUBLISHED_AUX : 0),
		.switches = lost_since(p->layout.switch_size, p->held[cpu].switch_head, switches,
				       owned ? UNPUBLISHED_SWITCH : 0),
		.events = lost_since(p->layout.event_size, p->held[cpu].event_head, events,
				     owned ? UNPUBLISHED_EVENT : 0),
	};
}

bool userpool_has_timing(const struct userpool *p)
{
	return atomic_load(&p->timing);
}

/* The heads say exactly what is overwritten at any time. */
void userpool_view(struct userpool *p, uint32_t cpu, uint64_t since_ns,
		   struct source_view *ret_view)
{
	*ret_view = ring_view(p->map + emu_aux_offset(&p->layout, cpu), p->layout.aux_size,
			      p->held[cpu].aux_head);
	ret_view->end = p->held[cpu].end;
	ret_view->since = since_ns > 0 ? heads_at(p, cpu, since_ns).aux : 0;
	ret_view->overwritten = overwritten(p, cpu).aux;
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

int userpool_copy_switches(struct userpool *p, uint32_t cpu, uint64_t since_ns, uint8_t **ret_bytes,
			   size_t *ret_size, bool *ret_cut)
{
	const uint64_t lost_ns = atomic_load(&p->lost_ns);
	struct poolrecords records = records_of(p, LOOKUPS_COPY);
	_cleanup_(freep) uint8_t *bytes = NULL;
	struct source_view v;
	size_t n, gone, unwanted, start;
	uint64_t since;
	int r;

	v = ring_view(p->map + emu_switch_offset(&p->layout, cpu), p->layout.switch_size,
		      p->held[cpu].switch_head);
	n = v.a_size + v.b_size;
	bytes = malloc(n + 1);
	if (!bytes)
		return -ENOMEM;
	ring_copy(&v, 0, n, bytes);

	gone = (size_t)overwritten(p, cpu).switches;
	since = since_ns > 0 ? heads_at(p, cpu, since_ns).switches : 0;
	unwanted = ring_before(&v, since);
	gone = gone < unwanted ? unwanted : gone;
	r = record_resync(bytes + gone, n - gone, p->layout.first_cpu + cpu, &start);
	if (r < 0)
		return r;
	start += gone;
	memmove(bytes, bytes + start, n - start);
	*ret_cut = v.head > n || start > 0;
	n = poolrecords_switches(&records, bytes, n - start);
	atomic_fetch_add(&p->n_refused, records.n_refused);
	if (drop_before(bytes, &n, lost_ns) > 0)
		*ret_cut = true;
	*ret_size = n;
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

int userpool_copy_events(struct userpool *p, uint32_t cpu, uint64_t since_ns,
			 struct source_event **ret_events, size_t *ret_n)
{
	const size_t size = sizeof(struct emu_event);
	struct poolrecords records = records_of(p, LOOKUPS_COPY);
	_cleanup_(freep) struct source_event *events = NULL;
	_cleanup_(freep) struct emu_event *written = NULL;
	struct source_view v;
	size_t n, gone, unwanted, n_good = 0;

	/* A head that is no multiple was scribbled. */
	v = ring_view(p->map + emu_event_offset(&p->layout, cpu), p->layout.event_size,
		      p->held[cpu].event_head / size * size);
	n = (v.a_size + v.b_size) / size;
	written = calloc(n + 1, size);
	events = calloc(n + 1, sizeof(*events));
	if (!written || !events)
		return -ENOMEM;
	ring_copy(&v, 0, n * size, (uint8_t *)written);

	gone = (size_t)overwritten(p, cpu).events;
	unwanted = ring_before(&v, since_ns > 0 ? heads_at(p, cpu, since_ns).events : 0);
	gone = ((gone < unwanted ? unwanted : gone) + size - 1) / size;
	for (size_t i = gone; i < n; i++)
		n_good += take_event(&written[i], &events[n_good]);
	*ret_n = poolrecords_events(&records, events, n_good);
	atomic_fetch_add(&p->n_refused, records.n_refused);
	*ret_events = TAKE(events);
	return 0;
}
