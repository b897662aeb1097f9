/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/soft/poolrings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/source/ring.h"
#include "util/mutex.h"
#include "util/perf/record.h"

/* A pass over all heads that took longer was interrupted. */
#define PASS_NS    20000u
#define PASS_TRIES 16u

/* Bytes a writer may have put behind the head it published last: less than a PSB+ and some TIPs,
 * one record. */
#define UNPUBLISHED_AUX    4096u
#define UNPUBLISHED_SWITCH 256u
#define UNPUBLISHED_EVENT  sizeof(struct emu_event)

#define HOLES_MAX 1024u /* in one ring; with more, nothing of it is taken */

/* The records' clock. */
static uint64_t now_ns(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

static struct emu_cpu *cpu_at(const struct poolrings *r, uint32_t cpu)
{
	return (struct emu_cpu *)(r->map + emu_cpu_offset(r->layout, cpu));
}

static uint64_t min(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t max(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

void poolrings_init(struct poolrings *rings, int fd, uint8_t *map,
		    const struct emu_pool_layout *layout)
{
	*rings = (struct poolrings){
		.fd = fd, .map = map, .layout = layout, .lock = PTHREAD_MUTEX_INITIALIZER
	};
}

void poolrings_deinit(struct poolrings *rings)
{
	(void)pthread_mutex_destroy(&rings->lock);
}

/* --- heads ------------------------------------------------------------------------------------ */

static struct poolrings_heads heads_of(const struct emu_cpu *cpu)
{
	struct poolrings_heads heads;

	heads.aux = atomic_load_explicit(&cpu->aux_head, memory_order_acquire);
	heads.switches = atomic_load_explicit(&cpu->switch_head, memory_order_acquire);
	heads.events = atomic_load_explicit(&cpu->event_head, memory_order_acquire);
	return heads;
}

uint64_t poolrings_bytes_held(const struct poolrings *r)
{
	uint64_t bytes = 0;

	for (uint32_t i = 0; i < r->layout->n_cpus; i++) {
		const struct poolrings_heads heads = heads_of(cpu_at(r, i));

		bytes += min(heads.aux, r->layout->aux_size);
		bytes += min(heads.switches, r->layout->switch_size);
		bytes += min(heads.events, r->layout->event_size);
	}
	return bytes;
}

/* --- bookmarks -------------------------------------------------------------------------------- */

/* Take a free CPU for a moment as a program would, so that its next owner begins with a PSB. */
static void ask_psb(const struct poolrings *r, struct emu_cpu *cpu)
{
	const uint64_t self = (uint64_t)getpid() << 32 | (uint64_t)getpid();
	uint64_t owner = 0;

	if (!atomic_compare_exchange_strong(&cpu->owner, &owner, self))
		return;
	/* Of a CPU that was used it is due at once. */
	if (cpu->encode.next_psb > 1)
		cpu->encode.next_psb = 1;
	atomic_store(&cpu->owner, 0);
}

void poolrings_mark(struct poolrings *r)
{
	struct poolrings_bookmark *b;

	HOLD(&r->lock);
	b = &r->bookmarks[r->n_bookmarks % POOLRINGS_BOOKMARKS];
	for (uint32_t i = 0; i < r->layout->n_cpus; i++) {
		ask_psb(r, cpu_at(r, i));
		b->heads[i] = heads_of(cpu_at(r, i));
	}
	b->time_ns = now_ns();
	r->n_bookmarks++;
}

/* The heads of @cpu at the last bookmark that is not later than @time_ns; 0 if there is none, or if
 * @time_ns is 0. */
static struct poolrings_heads heads_at(struct poolrings *r, uint32_t cpu, uint64_t time_ns)
{
	size_t n;

	if (time_ns == 0)
		return (struct poolrings_heads){};
	HOLD(&r->lock);
	n = min(r->n_bookmarks, POOLRINGS_BOOKMARKS);
	for (size_t i = 1; i <= n; i++) {
		const struct poolrings_bookmark *b =
		    &r->bookmarks[(r->n_bookmarks - i) % POOLRINGS_BOOKMARKS];

		if (b->time_ns <= time_ns)
			return b->heads[cpu];
	}
	return (struct poolrings_heads){};
}

/* --- holds ------------------------------------------------------------------------------------ */

static enum source_end end_of(const struct poolrings *r, uint32_t i)
{
	struct emu_cpu *cpu = cpu_at(r, i);

	if (atomic_load_explicit(&cpu->owner, memory_order_acquire) == 0)
		return SOURCE_END_IDLE;
	return atomic_load_explicit(&cpu->flush_done, memory_order_acquire) == r->generation
		   ? SOURCE_END_FLUSHED
		   : SOURCE_END_LATE;
}

void poolrings_ask_flush(struct poolrings *r)
{
	struct emu_pool *pool = (struct emu_pool *)r->map;

	r->generation = atomic_fetch_add_explicit(&pool->flush, 1, memory_order_acq_rel) + 1;
	atomic_fetch_add(&pool->news, 1);
}

bool poolrings_is_flushed(const struct poolrings *r)
{
	for (uint32_t i = 0; i < r->layout->n_cpus; i++)
		if (end_of(r, i) == SOURCE_END_LATE)
			return false;
	return true;
}

static void read_heads(struct poolrings *r)
{
	for (uint32_t i = 0; i < r->layout->n_cpus; i++) {
		r->held[i].end = end_of(r, i);
		r->held[i].heads.aux =
		    atomic_load_explicit(&cpu_at(r, i)->aux_head, memory_order_acquire);
	}
	/* After the PT, so that no packet is newer than the switch that explains it. */
	for (uint32_t i = 0; i < r->layout->n_cpus; i++) {
		r->held[i].heads.switches =
		    atomic_load_explicit(&cpu_at(r, i)->switch_head, memory_order_acquire);
		r->held[i].heads.events =
		    atomic_load_explicit(&cpu_at(r, i)->event_head, memory_order_acquire);
	}
}

/* If we were interrupted meanwhile, a thread may have gone from a CPU that was read to one that was
 * not, and what it did on the first would be missing between. */
void poolrings_hold(struct poolrings *r, uint64_t *ret_complete_ns)
{
	for (unsigned i = 0; i < PASS_TRIES; i++) {
		*ret_complete_ns = now_ns();
		read_heads(r);
		if (now_ns() - *ret_complete_ns < PASS_NS)
			break;
	}
}

/*
 * The oldest bytes of a view lie where the writer goes on writing once the ring is full. @now is
 * its head after they were copied; a head that went back is a scribbled one.
 */
static uint64_t lost_since(uint64_t size, uint64_t held, uint64_t now, uint64_t unpublished)
{
	const uint64_t n = min(held, size);
	const uint64_t room = size - n;
	uint64_t written = now - held;

	if (now < held || written >= size)
		return n;
	written += unpublished;
	return written <= room ? 0 : min(written - room, n);
}

/* How many bytes at the start of what the rings of @cpu held are overwritten by now. */
static struct poolrings_heads overwritten(const struct poolrings *r, uint32_t cpu)
{
	const struct poolrings_heads *held = &r->held[cpu].heads;
	const struct emu_cpu *c = cpu_at(r, cpu);
	struct poolrings_heads now;
	bool owned;

	/* The owner first: if there is none now, whoever came and went has moved the heads. */
	atomic_thread_fence(memory_order_seq_cst);
	owned = atomic_load_explicit(&c->owner, memory_order_acquire) != 0;
	now = heads_of(c);

	return (struct poolrings_heads){
		.aux = lost_since(r->layout->aux_size, held->aux, now.aux,
				  owned ? UNPUBLISHED_AUX : 0),
		.switches = lost_since(r->layout->switch_size, held->switches, now.switches,
				       owned ? UNPUBLISHED_SWITCH : 0),
		.events = lost_since(r->layout->event_size, held->events, now.events,
				     owned ? UNPUBLISHED_EVENT : 0),
	};
}

/* --- what they hold --------------------------------------------------------------------------- */

/*
 * Return: how many of the last bytes of @n at @at in the pool have memory. A program that scribbles
 * over a head claims bytes which were never written; reading them would allocate their memory, and
 * have it count for us. The memory has holes only where nothing was written: before the first byte
 * of a ring that is not full, which the head leaves out.
 */
static uint64_t written_of(const struct poolrings *r, uint64_t at, uint64_t n)
{
	const off_t end = (off_t)(at + n);
	off_t data = (off_t)at, hole;

	for (unsigned i = 0; i < HOLES_MAX && data < end; i++) {
		hole = lseek(r->fd, data, SEEK_HOLE);
		if (hole < 0 || hole >= end)
			return hole < 0 ? n : (uint64_t)(end - data);
		data = lseek(r->fd, hole, SEEK_DATA);
		if (data < 0)
			return 0;
	}
	return 0;
}

/* The last bytes of the ring at @at of the pool, at most its @size (a power of two), that end at
 * @head. */
static struct source_view ring_view(const struct poolrings *r, uint64_t at, uint64_t size,
				    uint64_t head)
{
	const uint64_t n = min(head, size);
	struct source_view view = ring_span(r->map + at, size, head - n, n);
	uint64_t written = written_of(r, at, view.b_size);

	if (written == view.b_size)
		written += written_of(r, at + (size_t)(view.a - (r->map + at)), view.a_size);
	if (written < n)
		view = ring_span(r->map + at, size, head - written, written);
	view.head = head;
	return view;
}

/* The heads say exactly what is overwritten at any time. */
void poolrings_view(struct poolrings *r, uint32_t cpu, uint64_t since_ns,
		    struct source_view *ret_view)
{
	*ret_view = ring_view(r, emu_aux_offset(r->layout, cpu), r->layout->aux_size,
			      r->held[cpu].heads.aux);
	ret_view->end = r->held[cpu].end;
	ret_view->since = heads_at(r, cpu, since_ns).aux;
	ret_view->overwritten = overwritten(r, cpu).aux;
}

int poolrings_copy_switches(struct poolrings *r, uint32_t cpu, uint64_t since_ns,
			    uint8_t **ret_bytes, size_t *ret_size, bool *ret_cut)
{
	const struct source_view v = ring_view(r, emu_switch_offset(r->layout, cpu),
					       r->layout->switch_size, r->held[cpu].heads.switches);
	const size_t n = v.a_size + v.b_size;
	_cleanup_(freep) uint8_t *bytes = malloc(n + 1);
	size_t gone, start;
	int result;

	if (!bytes)
		return -ENOMEM;
	ring_copy(&v, 0, n, bytes);
	gone =
	    max(overwritten(r, cpu).switches, ring_before(&v, heads_at(r, cpu, since_ns).switches));
	result = record_resync(bytes + gone, n - gone, cpu, &start);
	if (result < 0)
		return result;
	start += gone;
	memmove(bytes, bytes + start, n - start);
	*ret_cut = v.head > n || start > 0;
	*ret_size = n - start;
	*ret_bytes = TAKE(bytes);
	return 0;
}

int poolrings_copy_events(struct poolrings *r, uint32_t cpu, uint64_t since_ns,
			  struct emu_event **ret_events, size_t *ret_n)
{
	const size_t size = sizeof(struct emu_event);
	/* A head that is no multiple was scribbled. */
	const struct source_view v =
	    ring_view(r, emu_event_offset(r->layout, cpu), r->layout->event_size,
		      r->held[cpu].heads.events / size * size);
	const size_t n = (v.a_size + v.b_size) / size;
	_cleanup_(freep) struct emu_event *events = calloc(n + 1, size);
	size_t gone;

	if (!events)
		return -ENOMEM;
	ring_copy(&v, 0, n * size, (uint8_t *)events);
	gone = max(overwritten(r, cpu).events, ring_before(&v, heads_at(r, cpu, since_ns).events));
	gone = min((gone + size - 1) / size, n);
	memmove(events, events + gone, (n - gone) * size);
	*ret_n = n - gone;
	*ret_events = TAKE(events);
	return 0;
}
