/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/ownpart.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tasks/owned.h"
#include "record/codec.h"
#include "record/record.h"

struct ownpart {
	size_t n;
	struct owned_life lives[]; /* by pid, then by their beginnings */
};

static int by_beginning(const void *a, const void *b)
{
	const struct owned_life *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return x->begun < y->begun ? -1 : x->begun > y->begun;
}

int ownpart_new(const struct owned_life *lives, size_t n, struct ownpart **ret_part)
{
	struct ownpart *p = malloc(sizeof(*p) + n * sizeof(*lives));

	if (!p)
		return -ENOMEM;
	p->n = n;
	if (n > 0)
		memcpy(p->lives, lives, n * sizeof(*lives));
	qsort(p->lives, n, sizeof(*lives), by_beginning);
	*ret_part = p;
	return 0;
}

struct ownpart *ownpart_free(struct ownpart *part)
{
	free(part);
	return NULL;
}

/* Return: the index of the first life of process @pid that begins after @time, or of the life
 * that would follow it. */
static size_t first_after(const struct ownpart *p, uint32_t pid, uint64_t time)
{
	size_t low = 0, high = p->n;

	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		const struct owned_life *life = &p->lives[middle];

		if (life->pid < pid || (life->pid == pid && life->begun <= time))
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Return: the life that process @pid had at @time, as far as it is one of the part; NULL: none. */
static const struct owned_life *find_life(const struct ownpart *p, uint32_t pid, uint64_t time)
{
	const size_t i = first_after(p, pid, time);

	return i > 0 && p->lives[i - 1].pid == pid ? &p->lives[i - 1] : NULL;
}

/* --- who ran ---------------------------------------------------------------------------------- */

/* A thread that runs on a CPU from @time on. */
struct turn {
	uint64_t time;
	struct record_ids who;
};

/* Read who comes to the CPU. Return: whether the record says that. */
static bool read_turn(const struct record *record, struct turn *ret_turn)
{
	struct record_switch sw;

	if (record->header.type != PERF_RECORD_SWITCH_CPU_WIDE ||
	    record_read_switch(record->header.type, record->header.misc, record->body, &sw) < 0)
		return false;
	ret_turn->time = record->trailer.time;
	if (sw.out)
		ret_turn->who = sw.other;
	else
		ret_turn->who = (struct record_ids){ record->trailer.pid, record->trailer.tid };
	return true;
}

/*
 * What of the time from @turn on and before @end a thread is shown: the first stretch in which that
 * does not change.
 *
 * Return: when it ends.
 */
static uint64_t show_turn(const struct ownpart *p, const struct turn *turn, uint64_t end,
			  struct record_ids *ret_shown)
{
	static const struct record_ids others = { OWNPART_OTHERS, OWNPART_OTHERS };
	const uint32_t pid = turn->who.pid;
	const size_t i = first_after(p, pid, turn->time);
	const struct owned_life *life = find_life(p, pid, turn->time);

	*ret_shown = pid == 0 ? (struct record_ids){} : others;
	if (pid == 0)
		return end;
	if (i < p->n && p->lives[i].pid == pid && p->lives[i].begun < end)
		end = p->lives[i].begun;
	if (!life || turn->time >= life->until)
		return end;
	if (turn->time < life->from)
		return life->from < end ? life->from : end;
	*ret_shown = turn->who;
	return life->until < end ? life->until : end;
}

/* Call @show for each stretch of time of a CPU in which the same thread is shown, but for what is
 * before the first record. @real is who really ran. */
static int walk_turns(const struct ownpart *p, struct cursor switches,
		      int (*show)(void *userdata, uint64_t time, const struct record_ids *shown,
				  const struct turn *real),
		      void *userdata)
{
	struct turn turn = {}, next = {};
	bool has_turn = false, has_next = true;
	struct record record;
	int r = 0;

	while (r == 0 && has_next) {
		has_next = false;
		while (!has_next && record_next(&switches, &record) == 0)
			has_next = read_turn(&record, &next);
		while (r == 0 && has_turn && (!has_next || turn.time < next.time)) {
			struct record_ids shown;
			const uint64_t end =
			    show_turn(p, &turn, has_next ? next.time : UINT64_MAX, &shown);

			r = show(userdata, turn.time, &shown, &turn);
			turn.time = end;
			if (end == UINT64_MAX)
				break;
		}
		turn = next;
		has_turn = true;
	}
	return r;
}

struct finding {
	const struct ownpart *part;
	struct map *ran, *left_out;
};

static int find_shown(void *userdata, uint64_t time, const struct record_ids *shown,
		      const struct turn *real)
{
	const struct finding *f = userdata;
	const uint32_t pid = real->who.pid;

	if (shown->pid == pid)
		return pid == 0 ? 0 : map_put(f->ran, pid, 1);
	return find_life(f->part, pid, time) ? map_put(f->left_out, pid, 1) : 0;
}

int ownpart_find(const struct ownpart *part, struct cursor switches, struct map *ran,
		 struct map *left_out)
{
	struct finding finding = { .part = part, .ran = ran, .left_out = left_out };

	return walk_turns(part, switches, find_shown, &finding);
}

struct writing {
	uint32_t cpu;
	bool has_before;
	struct record_ids before; /* who was shown last */
	ownpart_put_fn put;
	void *userdata;
};

static int write_shown(void *userdata, uint64_t time, const struct record_ids *shown,
		       const struct turn *real)
{
	struct writing *w = userdata;
	struct trailer trailer = record_trailer(shown->pid, shown->tid, time);
	const struct record_switch sw = { .other = w->before };
	uint8_t bytes[RECORD_OWN_MAX];
	size_t size;

	(void)real;
	if (w->has_before && w->before.pid == shown->pid && w->before.tid == shown->tid)
		return 0;
	trailer.cpu = w->cpu;
	size = w->has_before ? record_write_switch_cpu_wide(&sw, &trailer, bytes, sizeof(bytes))
			     : record_write_itrace_start(shown, &trailer, bytes, sizeof(bytes));
	w->put(w->userdata, bytes, size);
	w->before = *shown;
	w->has_before = true;
	return 0;
}

void ownpart_write_switches(const struct ownpart *part, uint32_t cpu, struct cursor switches,
			    ownpart_put_fn put, void *userdata)
{
	struct writing writing = { .cpu = cpu, .put = put, .userdata = userdata };

	(void)!walk_turns(part, switches, write_shown, &writing);
}

/* --- task records ----------------------------------------------------------------------------- */

/* Return: whether records of the process of that time are the user's. Those of a life from before
 * it was known to be his name what is mapped then. */
static bool is_his(const struct ownpart *p, uint32_t pid, uint64_t time)
{
	const struct owned_life *life = find_life(p, pid, time);

	return life && life->from < life->until && time <= life->until;
}

/* The thread that made the record, who may be anybody. */
static struct trailer show_trailer(const struct ownpart *p, const struct record *record)
{
	struct trailer t = record->trailer;

	if (is_his(p, t.pid, t.time))
		return t;
	t.pid = t.tid = OWNPART_OTHERS;
	return t;
}

static size_t show_fork(const struct ownpart *p, const struct record *record,
			const struct trailer *trailer, uint8_t *ret_bytes)
{
	struct record_task task;

	if (record_get_task(record, &task) < 0)
		return 0;
	if (!is_his(p, task.ppid, record->trailer.time))
		task.ppid = task.ptid = OWNPART_OTHERS;
	return record->header.type == PERF_RECORD_FORK
		   ? record_write_fork(&task, trailer, ret_bytes, RECORD_OWN_MAX)
		   : record_write_exit(&task, trailer, ret_bytes, RECORD_OWN_MAX);
}

static size_t show_lost(const struct record *record, const struct trailer *trailer,
			uint8_t *ret_bytes)
{
	struct record_lost lost;

	return record_read_lost(record->body, &lost) < 0
		   ? 0
		   : record_write_lost(&lost, trailer, ret_bytes, RECORD_OWN_MAX);
}

static size_t show_comm(const struct record *record, const struct trailer *trailer,
			uint8_t *ret_bytes)
{
	struct record_comm comm;

	return record_read_comm(record->header.misc, record->body, &comm) < 0 || !comm.comm
		   ? 0
		   : record_write_comm(&comm, trailer, ret_bytes, RECORD_OWN_MAX);
}

static size_t show_mmap(const struct record *record, const struct trailer *trailer,
			uint8_t *ret_bytes)
{
	struct record_mmap2 mmap;

	return record_get_mmap2(record, &mmap) < 0
		   ? 0
		   : record_write_mmap2(&mmap, trailer, ret_bytes, RECORD_OWN_MAX);
}

size_t ownpart_show(const struct ownpart *part, const struct record *record, uint8_t *ret_bytes)
{
	const struct trailer trailer = show_trailer(part, record);
	uint32_t pid;

	if (record->header.type == PERF_RECORD_LOST)
		return show_lost(record, &trailer, ret_bytes);
	if (record_read_pid(record->header.type, record->body, &pid) < 0 ||
	    !is_his(part, pid, record->trailer.time))
		return 0;
	switch (record->header.type) {
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		return show_fork(part, record, &trailer, ret_bytes);
	case PERF_RECORD_COMM:
		return show_comm(record, &trailer, ret_bytes);
	case PERF_RECORD_MMAP2:
		return show_mmap(record, &trailer, ret_bytes);
	default:
		return 0;
	}
}
