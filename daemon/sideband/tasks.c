/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/sideband/tasks.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>

#include "daemon/share/share.h"
#include "util/map.h"
#include "util/mapname.h"
#include "util/perf/record.h"
#include "util/vec.h"

/* What is counted, by user. */
enum counted { PROCESSES, THREADS, MAPS, _COUNTED };

static const uint64_t counted_max[] = {
	[PROCESSES] = 32768,
	[THREADS] = 131072,
	[MAPS] = 262144,
};

#define SECOND_NS UINT64_C(1000000000)

#define JITDUMPS_MAX 8u /* of one process */

/* An MMAP2 record that mappings were made by. */
struct origin {
	unsigned n_refs;
	bool anonymous; /* private: any two are alike */
	bool memory;    /* of no file */
	bool vdso;
	bool plain; /* a reader takes it as an executable mapping of a process */
	struct record_mmap2 mmap;
	char name[]; /* the mapping's */
};

struct mapped {
	uint64_t start;
	uint64_t end;
	uint64_t pgoff;
	uint32_t noted_in; /* the round in which a record said so, in the order of time; 0: none */
	struct origin *origin;
};

/* Neighbours: to put a mapping among tens of thousands, only those of its chunk are moved. */
#define CHUNK_MAX 256u
struct chunk {
	VEC(struct mapped) maps; /* at least one, unless there are none at all; at most CHUNK_MAX */
};

struct thread {
	uint32_t tid;
	char comm[RECORD_COMM_SIZE];
};

struct process {
	uint32_t pid;
	uid_t uid; /* whose it counts as */
	VEC(struct thread) threads;
	VEC(struct chunk) chunks; /* of mappings, by start; none overlaps another */
	size_t n_maps;
	VEC(struct origin *)
	jitdumps;               /* the records of their mappings, whatever is mapped there
					* later; at most JITDUMPS_MAX */
	uint64_t time;          /* of the latest record of a mapping */
	uint64_t repeats_since; /* the second in which they are counted */
	uint32_t n_repeats;
};

struct tasks {
	tasks_alive_fn alive;
	VEC(struct process *) processes;
	struct map by_pid; /* → index in processes, or SIZE_MAX: no longer there */
	uid_t uid;         /* of the processes that records are about which are added now */
	bool has_given;
	uid_t given_by; /* of whom a process was forgotten last */
	struct share counts[_COUNTED];
	uint64_t time;  /* of the latest record that was added */
	uint32_t round; /* from 1 on: when what was said before was doubted, another began */
	bool has_storm;
	struct tasks_storm storm;
};

/* --- where mappings come from ----------------------------------------------------------------- */

static bool is_task(uint32_t id)
{
	return id != 0 && id != UINT32_MAX;
}

static bool is_plain(const struct record_mmap2 *mmap)
{
	const uint16_t misc =
	    mmap->misc & (PERF_RECORD_MISC_CPUMODE_MASK | PERF_RECORD_MISC_MMAP_DATA);

	return misc == PERF_RECORD_MISC_USER && is_task(mmap->pid) && is_task(mmap->tid);
}

static struct origin *origin_new(const struct record_mmap2 *mmap)
{
	const size_t size = strlen(mmap->name) + 1;
	struct origin *o = malloc(sizeof(*o) + size);

	if (!o)
		return NULL;
	*o = (struct origin){
		.n_refs = 1,
		.anonymous = strcmp(mmap->name, "//anon") == 0,
		.memory = mapname_is_memory(mmap->name),
		.vdso = mapname_is_vdso(mmap->name),
		.plain = is_plain(mmap),
		.mmap = *mmap,
	};
	memcpy(o->name, mmap->name, size);
	o->mmap.name = o->name;
	return o;
}

static struct origin *origin_ref(struct origin *origin)
{
	origin->n_refs++;
	return origin;
}

static struct origin *origin_unref(struct origin *origin)
{
	if (origin && --origin->n_refs == 0)
		free(origin);
	return NULL;
}

DEFINE_CLEANUP(struct origin *, origin_unref);

/* --- shares ----------------------------------------------------------------------------------- */

static void count(struct tasks *t, const struct process *p, enum counted what, size_t n)
{
	share_take(&t->counts[what], p->uid, n);
}

static void discount(struct tasks *t, const struct process *p, enum counted what, size_t n)
{
	share_give(&t->counts[what], p->uid, n);
}

static void forget_process(struct tasks *t, struct process *p);

/* Forget a process of the user who has most, if that is more than their part; but not process @but.
 * Return: whether there was one. */
static bool forget_one(struct tasks *t, enum counted what, uint32_t but)
{
	const struct share *share = &t->counts[what];
	const struct share_user *most = NULL;

	for (size_t i = 0; i < share->n_users; i++)
		if (share_exceeds(share, counted_max[what], share->users[i].uid) &&
		    (!most || share->users[i].taken > most->taken))
			most = &share->users[i];
	for (size_t i = t->processes.n; most && i-- > 0;) {
		struct process *p = t->processes.items[i];

		if (p->uid != most->uid || p->pid == but)
			continue;
		forget_process(t, p);
		t->has_given = true;
		t->given_by = most->uid;
		return true;
	}
	return false;
}

/* Return: whether process @pid of the user may have @n more. What others have beyond their parts
 * is forgotten for that. */
static bool has_room(struct tasks *t, uid_t uid, enum counted what, size_t n, uint32_t pid)
{
	const uint64_t max = counted_max[what];

	while (!share_allows(&t->counts[what], max, uid, n))
		if ((uid != 0 && !share_is_in_part(&t->counts[what], max, uid, n)) ||
		    !forget_one(t, what, pid))
			return false;
	return true;
}

/* The process executes a program of another user. */
static void move_process(struct tasks *t, struct process *p, uid_t uid)
{
	if (p->uid == uid)
		return;
	discount(t, p, PROCESSES, 1);
	p->uid = uid;
	count(t, p, PROCESSES, 1);
}

/* --- a process's list of mappings ------------------------------------------------------------- */

/* Return: the mapping, or NULL if there are fewer. */
static struct mapped *map_at(const struct process *p, size_t i)
{
	size_t c = 0;

	while (c < p->chunks.n && i >= p->chunks.items[c].maps.n)
		i -= p->chunks.items[c++].maps.n;
	return c < p->chunks.n ? &p->chunks.items[c].maps.items[i] : NULL;
}

/* Return: the mapping after @m, or NULL; the first one if @m is NULL. @chunk: where @m is; 0 at
 * first. */
static const struct mapped *next_map(const struct process *p, size_t *chunk, const struct mapped *m)
{
	const struct chunk *c = p->chunks.items + *chunk;

	if (p->n_maps == 0)
		return NULL;
	if (!m)
		return c->maps.items;
	if (m + 1 < c->maps.items + c->maps.n)
		return m + 1;
	return ++*chunk < p->chunks.n ? c[1].maps.items : NULL;
}

/* Index of the first mapping that ends behind @address. */
static size_t first_behind(const struct process *p, uint64_t address)
{
	size_t n = 0, at;

	if (p->n_maps == 0)
		return 0;
	at = vec_bisect(&p->chunks, c, c->maps.items[c->maps.n - 1].end <= address);
	for (size_t i = 0; i < at; i++)
		n += p->chunks.items[i].maps.n;
	if (at == p->chunks.n)
		return n;
	return n + vec_bisect(&p->chunks.items[at].maps, map, map->end <= address);
}

/* Find the chunk in which mapping @i is, or behind which it is to be put; *i is then its place
 * there. */
static struct chunk *chunk_for(const struct process *p, size_t *i)
{
	struct chunk *c = p->chunks.items;

	while (*i > c->maps.n)
		*i -= (c++)->maps.n;
	return c;
}

/* Put an empty chunk that has room for @room mappings before chunk @at. */
static int add_chunk(struct process *p, size_t at, size_t room)
{
	struct chunk new = {};

	if (vec_reserve(&p->chunks, 1) < 0 || vec_reserve(&new.maps, room) < 0)
		return -ENOMEM;
	memmove(p->chunks.items + at + 1, p->chunks.items + at,
		(p->chunks.n - at) * sizeof(*p->chunks.items));
	p->chunks.items[at] = new;
	p->chunks.n++;
	return 0;
}

/* Move the second half of the chunk into one of its own. */
static int split_chunk(struct process *p, size_t at)
{
	const size_t n = p->chunks.items[at].maps.n, half = n / 2;
	struct chunk *low, *high;

	if (add_chunk(p, at + 1, n - half) < 0)
		return -ENOMEM;
	low = p->chunks.items + at;
	high = low + 1;
	high->maps.n = n - half;
	memcpy(high->maps.items, low->maps.items + half, high->maps.n * sizeof(struct mapped));
	low->maps.n = half;
	return 0;
}

/* Make room for @more mappings at index @i: at most 3. */
static int reserve_maps(struct process *p, size_t i, size_t more)
{
	struct chunk *c;

	if (p->chunks.n == 0 && add_chunk(p, 0, 0) < 0)
		return -ENOMEM;
	c = chunk_for(p, &i);
	if (c->maps.n + more > CHUNK_MAX) {
		const size_t at = (size_t)(c - p->chunks.items);

		if (split_chunk(p, at) < 0)
			return -ENOMEM;
		c = p->chunks.items + at;
		if (i > c->maps.n)
			c++;
	}
	return vec_reserve(&c->maps, more);
}

static void insert_maps(struct process *p, size_t i, const struct mapped *with, size_t n)
{
	struct chunk *c = chunk_for(p, &i);
	struct mapped *at = c->maps.items + i;

	memmove(at + n, at, (c->maps.n - i) * sizeof(*at));
	memcpy(at, with, n * sizeof(*at));
	c->maps.n += n;
	p->n_maps += n;
}

/* The last chunk stays, with its room. */
static void remove_maps(struct process *p, size_t i, size_t n)
{
	size_t c = 0;

	p->n_maps -= n;
	while (n > 0 && i >= p->chunks.items[c].maps.n)
		i -= p->chunks.items[c++].maps.n;
	while (n > 0) {
		struct chunk *chunk = p->chunks.items + c;
		const size_t here = chunk->maps.n - i < n ? chunk->maps.n - i : n;

		chunk->maps.n -= here;
		memmove(chunk->maps.items + i, chunk->maps.items + i + here,
			(chunk->maps.n - i) * sizeof(struct mapped));
		n -= here;
		i = 0;
		if (chunk->maps.n > 0 || p->chunks.n == 1) {
			c++;
			continue;
		}
		vec_deinit(&chunk->maps);
		memmove(chunk, chunk + 1, (--p->chunks.n - c) * sizeof(*chunk));
	}
}

static void free_chunks(struct process *p)
{
	vec_deinit_each(&p->chunks, chunk, vec_deinit(&chunk->maps));
	p->n_maps = 0;
}

/* --- processes -------------------------------------------------------------------------------- */

static void forget_maps(struct tasks *t, struct process *p)
{
	size_t chunk = 0;

	for (const struct mapped *m = NULL; (m = next_map(p, &chunk, m));)
		(void)origin_unref(m->origin);
	discount(t, p, MAPS, p->n_maps);
	free_chunks(p);
	vec_deinit_each(&p->jitdumps, jitdump, origin_unref(*jitdump));
}

/* The record says that the process has mapped the jitdump. Of more than there is room for, the
 * first is forgotten. */
static int put_jitdump(struct process *p, struct origin **origin)
{
	size_t i = 0;

	while (i < p->jitdumps.n && strcmp(p->jitdumps.items[i]->name, (*origin)->name) != 0)
		i++;
	if (i == p->jitdumps.n && i < JITDUMPS_MAX) {
		if (vec_push(&p->jitdumps, *origin) < 0)
			return -ENOMEM;
	} else {
		i = i < JITDUMPS_MAX ? i : 0;
		(void)origin_unref(p->jitdumps.items[i]);
		p->jitdumps.items[i] = *origin;
	}
	*origin = NULL;
	return 0;
}

static void forget_threads(struct tasks *t, struct process *p)
{
	discount(t, p, THREADS, p->threads.n);
	p->threads.n = 0;
}

static void process_free(struct tasks *t, struct process *p)
{
	forget_maps(t, p);
	forget_threads(t, p);
	discount(t, p, PROCESSES, 1);
	vec_deinit(&p->threads);
	free(p);
}

bool tasks_is_alive(uint32_t pid)
{
	return pid > 0 && pid <= INT32_MAX && (kill((pid_t)pid, 0) == 0 || errno != ESRCH);
}

int tasks_new(tasks_alive_fn alive, struct tasks **ret_tasks)
{
	struct tasks *t = malloc(sizeof(*t));

	if (!t)
		return -ENOMEM;
	*t = (struct tasks){ .alive = alive, .round = 1 };
	*ret_tasks = t;
	return 0;
}

struct tasks *tasks_free(struct tasks *tasks)
{
	if (!tasks)
		return NULL;

	vec_deinit_each(&tasks->processes, process, process_free(tasks, *process));
	map_deinit(&tasks->by_pid);
	free(tasks);
	return NULL;
}

static struct process *find_process(const struct tasks *t, uint32_t pid)
{
	const uint64_t *i = map_get(&t->by_pid, pid);

	return i && *i < t->processes.n ? t->processes.items[*i] : NULL;
}

/* Get the process that a record is about. */
static int get_process(struct tasks *t, uint32_t pid, struct process **ret_process)
{
	struct process *p = find_process(t, pid);
	int r;

	if (!p) {
		if (!has_room(t, t->uid, PROCESSES, 1, pid))
			return -ENOSPC;
		r = vec_reserve(&t->processes, 1);
		if (r == 0)
			r = map_put(&t->by_pid, pid, t->processes.n);
		if (r < 0)
			return r;
		p = calloc(1, sizeof(*p));
		if (!p) {
			*map_get(&t->by_pid, pid) = SIZE_MAX;
			return -ENOMEM;
		}
		p->pid = pid;
		p->uid = t->uid;
		count(t, p, PROCESSES, 1);
		t->processes.items[t->processes.n++] = p;
	}
	*ret_process = p;
	return 0;
}

static void forget_process(struct tasks *t, struct process *p)
{
	uint64_t *at = map_get(&t->by_pid, p->pid);
	struct process *last = t->processes.items[t->processes.n - 1];
	const uint64_t i = *at;

	t->processes.items[i] = last;
	*map_get(&t->by_pid, last->pid) = i;
	*at = SIZE_MAX;
	t->processes.n--;
	process_free(t, p);
}

void tasks_forget_dead(struct tasks *tasks)
{
	struct map by_pid = {};
	int r = 0;

	for (size_t i = tasks->processes.n; i-- > 0;)
		if (tasks->alive && !tasks->alive(tasks->processes.items[i]->pid))
			forget_process(tasks, tasks->processes.items[i]);

	/* The map remembers all pids there ever were: begin another. Without memory for it the old
	 * one goes on. */
	for (size_t i = 0; r == 0 && i < tasks->processes.n; i++)
		r = map_put(&by_pid, tasks->processes.items[i]->pid, i);
	if (r < 0) {
		map_deinit(&by_pid);
		return;
	}
	map_deinit(&tasks->by_pid);
	tasks->by_pid = by_pid;
}

/* --- threads ---------------------------------------------------------------------------------- */

static struct thread *find_thread(const struct process *p, uint32_t tid)
{
	for (size_t i = 0; i < p->threads.n; i++)
		if (p->threads.items[i].tid == tid)
			return &p->threads.items[i];
	return NULL;
}

static int name_thread(struct tasks *t, struct process *p, uint32_t tid, const char *comm)
{
	struct thread *thread = find_thread(p, tid);
	int r;

	if (!thread) {
		if (!has_room(t, p->uid, THREADS, 1, p->pid))
			return -ENOSPC;
		r = vec_push(&p->threads, { .tid = tid });
		if (r < 0)
			return r;
		count(t, p, THREADS, 1);
		thread = &p->threads.items[p->threads.n - 1];
	}
	(void)strncpy(thread->comm, comm, RECORD_COMM_SIZE - 1);
	return 0;
}

static int on_comm(struct tasks *t, const struct record *record)
{
	struct record_comm comm;
	struct process *p;
	int r;

	if (record_read_comm(record->header.misc, record->body, &comm) < 0)
		return 0;
	r = get_process(t, comm.pid, &p);
	if (r < 0)
		return r;
	if (comm.exec) {
		/* Of the threads, one is left. */
		forget_maps(t, p);
		forget_threads(t, p);
		move_process(t, p, t->uid);
	}
	return name_thread(t, p, comm.tid, comm.comm);
}

/* Give the empty chunk @i the mappings of its parent's. */
static void insert_chunk(struct process *p, size_t i, const struct chunk *from)
{
	struct chunk *to = &p->chunks.items[i];

	for (size_t k = 0; k < from->maps.n; k++) {
		to->maps.items[k] = from->maps.items[k];
		/* A reader may not have followed the fork. */
		to->maps.items[k].noted_in = 0;
		(void)origin_ref(to->maps.items[k].origin);
	}
	to->maps.n = from->maps.n;
	p->n_maps += to->maps.n;
}

static int copy_maps(struct tasks *t, struct process *p, uint32_t ppid)
{
	const struct process *parent = find_process(t, ppid);

	if (!parent)
		return 0;
	if (!has_room(t, p->uid, MAPS, parent->n_maps, p->pid))
		return -ENOSPC;
	/* Room may have been made at its cost. */
	parent = find_process(t, ppid);
	if (!parent)
		return 0;
	for (size_t i = 0; i < parent->chunks.n; i++) {
		const struct chunk *from = &parent->chunks.items[i];

		if (add_chunk(p, i, from->maps.n) < 0)
			break;
		insert_chunk(p, i, from);
	}
	count(t, p, MAPS, p->n_maps);
	return p->n_maps == parent->n_maps ? 0 : -ENOMEM;
}

static int on_fork(struct tasks *t, const struct record_task *fork)
{
	const struct process *parent = find_process(t, fork->ppid);
	const struct thread *by = parent ? find_thread(parent, fork->ptid) : NULL;
	struct process *p;
	char comm[RECORD_COMM_SIZE] = "";
	int r;

	if (by)
		memcpy(comm, by->comm, RECORD_COMM_SIZE);
	r = get_process(t, fork->pid, &p);
	if (r == 0 && fork->pid != fork->ppid) {
		/* Whatever had the pid before is no more. */
		forget_maps(t, p);
		forget_threads(t, p);
		move_process(t, p, t->uid);
		r = copy_maps(t, p, fork->ppid);
	}
	return r < 0 ? r : name_thread(t, p, fork->tid, comm);
}

static void on_exit_(struct tasks *t, const struct record_task *gone)
{
	struct process *p = find_process(t, gone->pid);
	struct thread *thread = p ? find_thread(p, gone->tid) : NULL;

	if (!thread)
		return;
	*thread = p->threads.items[--p->threads.n];
	discount(t, p, THREADS, 1);
	if (p->threads.n == 0)
		forget_process(t, p);
}

/* --- mappings --------------------------------------------------------------------------------- */

/* Put @n mappings in the place of those from index @from to before @to; there is room. */
static void replace_maps(struct tasks *t, struct process *p, size_t from, size_t to,
			 const struct mapped *with, size_t n)
{
	if (n > 0)
		insert_maps(p, from, with, n);
	remove_maps(p, from + n, to - from);
	discount(t, p, MAPS, to - from);
	count(t, p, MAPS, n);
}

static bool continues(const struct mapped *a, const struct mapped *b)
{
	return a->end == b->start && a->origin->anonymous && b->origin->anonymous &&
	       a->origin->mmap.prot == b->origin->mmap.prot;
}

/* What JITs map page by page becomes one mapping again. */
static void join_maps(struct tasks *t, struct process *p, size_t i)
{
	struct mapped *const m = map_at(p, i), *const next = map_at(p, i + 1);

	if (!m || !next || !continues(m, next))
		return;
	m->end = next->end;
	if (next->noted_in != m->noted_in || next->origin->plain != m->origin->plain)
		m->noted_in = 0;
	(void)origin_unref(next->origin);
	replace_maps(t, p, i + 1, i + 2, NULL, 0);
}

/* Forget the mappings that overlap the range. */
static void forget_range(struct tasks *t, struct process *p, uint64_t start, uint64_t end)
{
	const size_t from = first_behind(p, start);
	const struct mapped *m;
	size_t to = from;

	for (; (m = map_at(p, to)) && m->start < end; to++)
		(void)origin_unref(m->origin);
	if (to > from)
		replace_maps(t, p, from, to, NULL, 0);
}

/* A new mapping takes the place of what it overlaps; what sticks out of it on both sides stays. */
static int put_map(struct tasks *t, struct process *p, const struct mapped *new)
{
	const size_t from = first_behind(p, new->start);
	const struct mapped *m;
	struct mapped with[3];
	size_t to = from, n = 0, at;
	int r;

	r = reserve_maps(p, from, ARRAY_LEN(with));
	if (r < 0)
		return r;
	if (!has_room(t, p->uid, MAPS, 2, p->pid))
		return -ENOSPC;
	m = map_at(p, from);
	if (m && m->start < new->start) {
		with[n] = *m;
		with[n].end = new->start;
		(void)origin_ref(with[n++].origin);
	}
	at = from + n;
	with[n] = *new;
	(void)origin_ref(with[n++].origin);
	for (; (m = map_at(p, to)) && m->start < new->end; to++) {
		struct mapped rest = *m;

		if (rest.end > new->end) {
			rest.pgoff += new->end - rest.start;
			rest.start = new->end;
			with[n++] = rest;
		} else {
			(void)origin_unref(rest.origin);
		}
	}
	replace_maps(t, p, from, to, with, n);
	join_maps(t, p, at);
	if (at > 0)
		join_maps(t, p, at - 1);
	return 0;
}

/* Return: the round in which it is noted. */
static uint32_t note_mapping(const struct tasks *t, struct process *p, const struct origin *origin,
			     uint64_t time)
{
	/* One that comes late was, by its time, covered by one that came before it. */
	if (time < p->time)
		return 0;
	p->time = time;
	return origin->plain ? t->round : 0;
}

static int on_mmap2(struct tasks *t, const struct record *record, bool is_found)
{
	_cleanup_(origin_unrefp) struct origin *origin = NULL;
	struct record_mmap2 mmap;
	struct process *p;
	uint32_t noted_in;
	int r;

	if (record_get_mmap2(record, &mmap) < 0 || !(mmap.prot & PROT_EXEC) || mmap.len == 0 ||
	    mmap.len > UINT64_MAX - mmap.addr)
		return 0;
	r = get_process(t, mmap.pid, &p);
	if (r < 0)
		return r;
	origin = origin_new(&mmap);
	if (!origin)
		return -ENOMEM;
	if (mapname_is_jitdump(mmap.name))
		return put_jitdump(p, &origin);
	noted_in = note_mapping(t, p, origin, record->trailer.time);
	r = put_map(t, p,
		    &(struct mapped){
			.start = mmap.addr,
			.end = mmap.addr + mmap.len,
			.pgoff = mmap.pgoff,
			.noted_in = is_found ? 0 : noted_in,
			.origin = origin,
		    });
	/* What was mapped there before is no longer true. */
	if (r < 0)
		forget_range(t, p, mmap.addr, mmap.addr + mmap.len);
	return r;
}

static int apply_record(struct tasks *tasks, const struct record *record, bool is_found)
{
	struct record_task task;

	if (record->trailer.time > tasks->time)
		tasks->time = record->trailer.time;
	switch (record->header.type) {
	case PERF_RECORD_COMM:
		return on_comm(tasks, record);
	case PERF_RECORD_MMAP2:
		return on_mmap2(tasks, record, is_found);
	case PERF_RECORD_FORK:
		return record_get_task(record, &task) < 0 ? 0 : on_fork(tasks, &task);
	case PERF_RECORD_EXIT:
		if (record_get_task(record, &task) == 0)
			on_exit_(tasks, &task);
		return 0;
	default:
		return 0;
	}
}

void tasks_set_user(struct tasks *tasks, uid_t uid)
{
	tasks->uid = uid;
}

bool tasks_next_given(struct tasks *tasks, uid_t *ret_uid)
{
	if (!tasks->has_given)
		return false;
	tasks->has_given = false;
	*ret_uid = tasks->given_by;
	return true;
}

int tasks_add(struct tasks *tasks, const struct record *record)
{
	return apply_record(tasks, record, false);
}

int tasks_add_found(struct tasks *tasks, const struct record *record)
{
	return apply_record(tasks, record, true);
}

/* --- what says nothing new -------------------------------------------------------------------- */

/* Of the same file, with the same rights: all but where it is mapped, and by whom. */
static bool is_alike(const struct record_mmap2 *a, const struct record_mmap2 *b)
{
	return a->misc == b->misc && a->maj == b->maj && a->min == b->min && a->ino == b->ino &&
	       a->ino_generation == b->ino_generation &&
	       buildid_equal(&a->build_id, &b->build_id) && a->prot == b->prot &&
	       a->flags == b->flags && strcmp(a->name, b->name) == 0;
}

static bool mapping_says(const struct tasks *t, const struct mapped *m,
			 const struct record_mmap2 *mmap)
{
	const uint64_t end = mmap->addr + mmap->len;

	if (m->noted_in != t->round || m->start > mmap->addr || m->end < end)
		return false;
	/* Parts of it that were joined are as good as one. */
	if (m->origin->anonymous)
		return m->origin->mmap.prot == mmap->prot && strcmp(mmap->name, "//anon") == 0;
	return m->start == mmap->addr && m->end == end && m->pgoff == mmap->pgoff &&
	       is_alike(&m->origin->mmap, mmap);
}

static void count_repeat(struct tasks *t, struct process *p, const struct thread *thread,
			 uint64_t time)
{
	if (time - p->repeats_since > SECOND_NS) {
		p->repeats_since = time;
		p->n_repeats = 0;
	}
	if (++p->n_repeats != TASKS_STORM)
		return;
	t->has_storm = true;
	t->storm.pid = p->pid;
	memcpy(t->storm.comm, thread->comm, RECORD_COMM_SIZE);
}

bool tasks_repeats(struct tasks *tasks, const struct record *record)
{
	const struct thread *thread;
	struct record_mmap2 mmap;
	const struct mapped *m;
	struct process *p;

	if (record->header.type != PERF_RECORD_MMAP2 || record_get_mmap2(record, &mmap) < 0 ||
	    !(mmap.prot & PROT_EXEC) || mmap.len == 0 || mmap.len > UINT64_MAX - mmap.addr ||
	    !is_plain(&mmap))
		return false;
	p = find_process(tasks, mmap.pid);
	/* A record of a thread that is not known begins one. */
	thread = p ? find_thread(p, mmap.tid) : NULL;
	if (!thread || p->jitdumps.n > 0 || record->trailer.time < p->time)
		return false;
	m = map_at(p, first_behind(p, mmap.addr));
	if (!m || !mapping_says(tasks, m, &mmap))
		return false;
	p->time = record->trailer.time;
	count_repeat(tasks, p, thread, p->time);
	return true;
}

void tasks_reset_repeats(struct tasks *tasks)
{
	tasks->round++;
}

bool tasks_next_storm(struct tasks *tasks, struct tasks_storm *ret_storm)
{
	if (!tasks->has_storm)
		return false;
	tasks->has_storm = false;
	*ret_storm = tasks->storm;
	return true;
}

/* --- what is known, as records ---------------------------------------------------------------- */

static int write_comm(const struct process *p, const struct thread *thread, uint64_t time,
		      record_put_fn put, void *userdata)
{
	const struct record_comm comm = { .pid = p->pid, .tid = thread->tid, .comm = thread->comm };
	const struct trailer trailer = record_trailer(p->pid, thread->tid, time);
	uint8_t record[RECORD_OWN_MAX];

	return put(userdata, record, record_write_comm(&comm, &trailer, record, sizeof(record)));
}

/* As the record that it came by, but for where it is and whose. */
static int write_map(const struct process *p, const struct origin *origin,
		     const struct mapped *mapped, uint64_t time, record_put_fn put, void *userdata)
{
	const struct trailer trailer = record_trailer(p->pid, p->pid, time);
	struct record_mmap2 mmap = origin->mmap;
	uint8_t record[RECORD_OWN_MAX];

	mmap.pid = mmap.tid = p->pid;
	if (mapped) {
		mmap.addr = mapped->start;
		mmap.len = mapped->end - mapped->start;
		mmap.pgoff = mapped->pgoff;
	}
	return put(userdata, record, record_write_mmap2(&mmap, &trailer, record, sizeof(record)));
}

size_t tasks_write_some(const struct tasks *tasks, uint64_t time,
			bool (*wants)(void *userdata, uint32_t pid), record_put_fn put,
			void *userdata)
{
	size_t n_failed = 0;

	for (size_t i = 0; i < tasks->processes.n; i++) {
		const struct process *p = tasks->processes.items[i];
		size_t chunk = 0;

		if (wants && !wants(userdata, p->pid))
			continue;

		for (size_t k = 0; k < p->threads.n; k++)
			n_failed += write_comm(p, &p->threads.items[k], time, put, userdata) < 0;
		for (const struct mapped *m = NULL; (m = next_map(p, &chunk, m));)
			n_failed += write_map(p, m->origin, m, time, put, userdata) < 0;
		for (size_t k = 0; k < p->jitdumps.n; k++)
			n_failed +=
			    write_map(p, p->jitdumps.items[k], NULL, time, put, userdata) < 0;
	}
	return n_failed;
}

size_t tasks_write(const struct tasks *tasks, uint64_t time, record_put_fn put, void *userdata)
{
	return tasks_write_some(tasks, time, NULL, put, userdata);
}

uint64_t tasks_time(const struct tasks *tasks)
{
	return tasks->time;
}

void tasks_list_mapped(const struct tasks *tasks,
		       void (*list)(void *userdata, const struct record_mmap2 *mmap),
		       void *userdata)
{
	for (size_t i = 0; i < tasks->processes.n; i++) {
		const struct process *p = tasks->processes.items[i];
		size_t chunk = 0;

		if (tasks->alive && !tasks->alive(p->pid))
			continue;
		for (const struct mapped *m = NULL; (m = next_map(p, &chunk, m));)
			if (!m->origin->anonymous)
				list(userdata, &m->origin->mmap);
	}
}

int tasks_ranges(const struct tasks *tasks, struct tasks_range **ret_ranges, size_t *ret_n_ranges)
{
	struct tasks_range *ranges = calloc(tasks->counts[MAPS].taken + 1, sizeof(*ranges));
	size_t n = 0;

	if (!ranges)
		return -ENOMEM;
	for (size_t i = 0; i < tasks->processes.n; i++) {
		const struct process *p = tasks->processes.items[i];
		size_t chunk = 0;

		for (const struct mapped *m = NULL; (m = next_map(p, &chunk, m));)
			if (m->origin->memory || m->origin->vdso)
				ranges[n++] = (struct tasks_range){
					.pid = p->pid,
					.uid = p->uid,
					.start = m->start,
					.size = m->end - m->start,
					.vdso = m->origin->vdso,
				};
	}
	*ret_ranges = ranges;
	*ret_n_ranges = n;
	return 0;
}
