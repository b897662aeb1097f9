/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/soft/userpool.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/cursor.h"
#include "daemon/emu/coderecord.h"
#include "daemon/proc/birth.h"
#include "daemon/soft/poolclaims.h"
#include "daemon/soft/poolrecords.h"
#include "daemon/soft/poolrings.h"
#include "daemon/soft/poolwriters.h"
#include "daemon/source/kept.h"
#include "daemon/source/ring.h"
#include "record/codec.h"
#include "record/record.h"

#define SIGNAL_MAX 64u

/* A pool without a living writer is at rest when nothing was written to it for so long. */
#define REST_NS UINT64_C(60000000000)

/* How many processes and threads are looked up at most, while the ring of tasks or of code is
 * drained, and while a ring of a CPU is copied. */
#define LOOKUPS_DRAIN 4096u
#define LOOKUPS_COPY  65536u

struct userpool {
	uint32_t number;
	uid_t uid;
	struct emu_pool_layout layout; /* ours; the one in the pool is for the programs */
	struct poolclaims *claims;     /* borrowed */
	struct kept_pool *kept;        /* borrowed */
	int fd;
	uint8_t *map;
	size_t map_size;
	struct poolrings rings;
	struct poolwriters writers; /* seen in task records */
	uint64_t code_drained_ns;   /* when the ring of code was drained last */
	_Atomic uint64_t n_refused;
	_Atomic uint64_t lost_ns; /* @kept->lost_ns, for other threads */
	_Atomic bool timing;      /* likewise */
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
		.writers = { .asker = options->asker },
		.kept = options->kept,
		.fd = -1,
		.map_size = emu_pool_size(options->layout),
		.code_drained_ns = now_ns(),
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
	poolrings_init(&p->rings, p->map, &p->layout);
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
	if (pool->map) {
		poolrings_deinit(&pool->rings);
		(void)munmap(pool->map, pool->map_size);
	}
	(void)fd_close(pool->fd);
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

struct poolrings *userpool_rings(struct userpool *pool)
{
	return &pool->rings;
}

/* --- who writes ------------------------------------------------------------------------------- */

void userpool_share(struct userpool *pool, bool timing)
{
	pool->kept->used_ns = now_ns();
	pool->kept->timing = pool->kept->timing || timing;
	atomic_store(&pool->timing, pool->kept->timing);
}

/* The count of programs alone does not suffice: one that was killed is still counted. */
bool userpool_is_active(struct userpool *p)
{
	return atomic_load_explicit(&pool(p)->n_attached, memory_order_relaxed) > 0 &&
	       poolwriters_alive(&p->writers);
}

/* It matters whether a process lives, and not whether it has the pool mapped: a program that is
 * just executing another one has not. */
bool userpool_is_at_rest(struct userpool *p, uint64_t now)
{
	return !poolwriters_alive(&p->writers) && now > p->kept->used_ns &&
	       now - p->kept->used_ns > REST_NS;
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

/*
 * Copy what lies between @tail and @head in the ring of a stream to the end of @to. It is not
 * counted in @to->size yet: the caller judges the copy, which programs cannot change any more.
 *
 * @more: bytes of room that are needed behind it
 * @ret_sane: false if @head makes no sense: then nothing is copied
 *
 * Return: 0, or -ENOMEM.
 */
static int copy_stream(struct userpool_bytes *to, const uint8_t *ring, uint64_t ring_size,
		       uint64_t tail, uint64_t head, size_t more, size_t *ret_n, bool *ret_sane)
{
	const bool sane = head - tail <= ring_size;
	const size_t n = sane ? (size_t)(head - tail) : 0;
	const struct source_view v = ring_span(ring, ring_size, tail, n);
	uint8_t *bytes = realloc(to->bytes, to->size + n + more + 1);

	if (!bytes)
		return -ENOMEM;
	ring_copy(&v, 0, n, bytes + to->size);
	to->bytes = bytes;
	*ret_n = n;
	*ret_sane = sane;
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
	struct noting noting = { .pool = p };
	struct poolrecords records;
	bool sane;
	size_t n;
	int r;

	r = copy_stream(to, p->map + emu_task_offset(&p->layout), p->layout.task_size,
			p->kept->task_tail, head, 0, &n, &sane);
	if (r < 0)
		return r;
	p->kept->task_tail = head;

	records = records_of(p, LOOKUPS_DRAIN);
	records.since_ns = p->kept->drained_ns;
	records.note_writer = note_writer;
	records.userdata = &noting;
	to->size += poolrecords_tasks(&records, to->bytes + to->size, n);
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
static void put_lost_code(struct userpool *p, struct userpool_bytes *to)
{
	const struct coderecord record = { .size = coderecord_size(0),
					   .kind = CODERECORD_LOST,
					   .time = p->code_drained_ns,
					   .uid = p->uid };

	memcpy(to->bytes + to->size, &record, sizeof(record));
	to->size += record.size;
}

static int drain_code(struct userpool *p, struct userpool_bytes *to)
{
	const uint64_t head = atomic_load_explicit(&pool(p)->code_head, memory_order_acquire);
	const uint64_t tail = p->kept->code_tail;
	struct poolrecords records;
	bool sane, torn;
	size_t n;
	int r;

	p->kept->code_tail = head;
	r = copy_stream(to, p->map + emu_code_offset(&p->layout), p->layout.code_size, tail, head,
			coderecord_size(0), &n, &sane);
	if (r < 0)
		return r;
	records = records_of(p, LOOKUPS_DRAIN);
	to->size += poolrecords_code(&records, to->bytes + to->size, n, &torn);
	if (torn || !sane)
		put_lost_code(p, to);
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

bool userpool_has_timing(const struct userpool *p)
{
	return atomic_load(&p->timing);
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
	size_t n;
	int r;

	r = poolrings_copy_switches(&p->rings, cpu, since_ns, ret_bytes, &n, ret_cut);
	if (r < 0)
		return r;
	n = poolrecords_switches(&records, *ret_bytes, n);
	atomic_fetch_add(&p->n_refused, records.n_refused);
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

int userpool_copy_events(struct userpool *p, uint32_t cpu, uint64_t since_ns,
			 struct source_event **ret_events, size_t *ret_n)
{
	struct poolrecords records = records_of(p, LOOKUPS_COPY);
	_cleanup_(freep) struct source_event *events = NULL;
	_cleanup_(freep) struct emu_event *written = NULL;
	size_t n, n_good = 0;
	int r;

	r = poolrings_copy_events(&p->rings, cpu, since_ns, &written, &n);
	if (r < 0)
		return r;
	events = calloc(n + 1, sizeof(*events));
	if (!events)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		n_good += take_event(&written[i], &events[n_good]);
	*ret_n = poolrecords_events(&records, events, n_good);
	atomic_fetch_add(&p->n_refused, records.n_refused);
	*ret_events = TAKE(events);
	return 0;
}
