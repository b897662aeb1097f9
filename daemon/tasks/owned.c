/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/tasks/owned.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/codec.h"
#include "record/record.h"
#include "util/map.h"
#include "util/vec.h"

#define LIVES_MAX 32768u /* that go on */
#define PAST_MAX  32768u /* that are over */

#define NO_USER ((uid_t)-1)

enum state {
	WAITING, /* it was not asked about, or there was no answer */
	HIS,
	REFUSED, /* until the process executes another program */
};

struct life {
	struct owned_life shown; /* until an answer settled, whose it is is a guess by the parent */
	enum state state;
	uint64_t birth;

	/* The process has no right that it could lose: it had none when it was asked about, and has
	 * executed nothing since; or it is the child of such a process. */
	bool is_plain;
	bool was_plain; /* the process was that when this life began */

	uint64_t asked_at; /* last; 0: never */
	bool has_answer;   /* that does not count yet: */
	struct owned_answer answer;
};

struct owned {
	VEC(struct life) lives;
	struct map by_pid;           /* → 1 + index in lives, or 0: there is none now */
	VEC(struct owned_life) past; /* those that are over, in the order of their ends */
	VEC(uint32_t) new;      /* processes of lives that have begun since the last question */
	VEC(uint32_t) answered; /* of lives with an answer that does not count yet */
	size_t next;            /* index of the life that is looked at next whether it is time */
	uint64_t looked_at;     /* when all had been looked at */
};

int owned_new(struct owned **ret_owned)
{
	struct owned *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	*ret_owned = o;
	return 0;
}

static void forget_all(struct owned *o)
{
	vec_deinit(&o->lives);
	vec_deinit(&o->past);
	vec_deinit(&o->new);
	vec_deinit(&o->answered);
	map_deinit(&o->by_pid);
	*o = (struct owned){};
}

struct owned *owned_free(struct owned *owned)
{
	if (!owned)
		return NULL;
	forget_all(owned);
	free(owned);
	return NULL;
}

static struct life *find_life(const struct owned *o, uint32_t pid)
{
	const uint64_t *at = map_get(&o->by_pid, pid);

	return at && *at > 0 ? &o->lives.items[*at - 1] : NULL;
}

static bool has_any(const struct owned_life *life)
{
	return life->from < life->until;
}

/* --- what is over ----------------------------------------------------------------------------- */

/* Return: the user who has the most lives that are over. */
static uid_t greediest(const struct owned *o)
{
	struct map counts = {};
	uint64_t most = 0;
	uid_t uid = NO_USER;

	for (size_t i = 0; i < o->past.n; i++) {
		const uint64_t *n = map_get(&counts, o->past.items[i].uid);
		const uint64_t now = n ? *n + 1 : 1;

		if (map_put(&counts, o->past.items[i].uid, now) < 0)
			break;
		if (now > most) {
			most = now;
			uid = o->past.items[i].uid;
		}
	}
	map_deinit(&counts);
	return uid;
}

/* The older half of what one user has goes, so that nobody loses it to others. */
static void make_room(struct owned *o)
{
	const uid_t uid = greediest(o);
	size_t n_his = 0, n = 0, left;

	for (size_t i = 0; i < o->past.n; i++)
		n_his += o->past.items[i].uid == uid;
	left = n_his / 2 + 1;
	for (size_t i = 0; i < o->past.n; i++) {
		if (left > 0 && (n_his == 0 || o->past.items[i].uid == uid)) {
			left--;
			continue;
		}
		o->past.items[n++] = o->past.items[i];
	}
	o->past.n = n;
}

static void settle_answer(struct life *l);

/* The life ends at @time. What was found out before that counts. */
static void end_life(struct owned *o, struct life *l, uint64_t time)
{
	if (l->has_answer && l->answer.answered_ns < time)
		settle_answer(l);
	l->has_answer = false;
	if (l->shown.until > time)
		l->shown.until = time;
	if (!has_any(&l->shown))
		l->shown.from = l->shown.until = 0;
	if (l->shown.uid == NO_USER)
		return;
	if (o->past.n == PAST_MAX)
		make_room(o);
	/* Without memory for it, it is nobody's. */
	(void)!vec_push(&o->past, l->shown);
}

/* --- lives ------------------------------------------------------------------------------------ */

/* The map remembers all numbers there ever were: make another one. */
static int tidy_map(struct owned *o)
{
	struct map by_pid = {};
	int r = 0;

	if (o->by_pid.n_used < 4 * (size_t)LIVES_MAX)
		return 0;
	for (size_t i = 0; r == 0 && i < o->lives.n; i++)
		r = map_put(&by_pid, o->lives.items[i].shown.pid, i + 1);
	if (r < 0) {
		map_deinit(&by_pid);
		return r;
	}
	map_deinit(&o->by_pid);
	o->by_pid = by_pid;
	return 0;
}

static void remove_life(struct owned *o, struct life *l)
{
	struct life *last = &o->lives.items[o->lives.n - 1];
	uint64_t *at = map_get(&o->by_pid, l->shown.pid);

	*at = 0;
	if (l != last) {
		*l = *last;
		*map_get(&o->by_pid, l->shown.pid) = (uint64_t)(l - o->lives.items) + 1;
	}
	o->lives.n--;
}

/* If there are too many, or there is no memory, the process is nobody's. */
static void begin_life(struct owned *o, const struct life *new)
{
	struct life *l = find_life(o, new->shown.pid);

	if (l)
		end_life(o, l, new->shown.begun);
	if (!l && (o->lives.n == LIVES_MAX || tidy_map(o) < 0 || vec_reserve(&o->lives, 1) < 0 ||
		   map_put(&o->by_pid, new->shown.pid, o->lives.n + 1) < 0))
		return;
	if (!l)
		l = &o->lives.items[o->lives.n++];
	*l = *new;
	/* If too many have not been asked about, or without memory, it is asked about later. */
	if (o->new.n < LIVES_MAX)
		(void)!vec_push(&o->new, l->shown.pid);
}

static void on_fork(struct owned *o, const struct record_task *fork, uint64_t time)
{
	const struct life *parent = find_life(o, fork->ppid);
	struct life new = { .shown = { .pid = fork->pid, .uid = NO_USER, .begun = time } };

	if (fork->pid == fork->ppid)
		return;
	if (parent) {
		new.shown.uid = parent->shown.uid;
		new.shown.gid = parent->shown.gid;
		new.is_plain = parent->is_plain;
		/* A child of one that was not asked about yet is what that one will turn out to
		 * be. */
		new.was_plain = parent->is_plain || (parent->state == WAITING && parent->was_plain);
	}
	begin_life(o, &new);
}

static void on_exec(struct owned *o, uint32_t pid, uint64_t time)
{
	const struct life *before = find_life(o, pid);
	struct life new = { .shown = { .pid = pid, .uid = NO_USER, .begun = time } };

	if (before) {
		new.shown.uid = before->shown.uid;
		new.shown.gid = before->shown.gid;
		new.was_plain = before->is_plain;
	}
	begin_life(o, &new);
}

static void on_comm(struct owned *o, const struct record *record)
{
	struct record_comm comm;

	if (record_read_comm(record->header.misc, record->body, &comm) < 0)
		return;
	if (comm.exec)
		on_exec(o, comm.pid, record->trailer.time);
	else if (!find_life(o, comm.pid))
		begin_life(o, &(struct life){ .shown = { .pid = comm.pid,
							 .uid = NO_USER,
							 .begun = record->trailer.time } });
}

/* Threads that go on without the first one of their process are nobody's. */
static void on_exit_(struct owned *o, const struct record_task *gone, uint64_t time)
{
	struct life *l = find_life(o, gone->pid);

	if (!l || gone->tid != gone->pid)
		return;
	end_life(o, l, time);
	remove_life(o, l);
}

void owned_add(struct owned *owned, const uint8_t *bytes, size_t size)
{
	struct cursor c = cursor_from(bytes, size);
	struct record_task task;
	struct record record;

	while (record_next(&c, &record) == 0) {
		switch (record.header.type) {
		case PERF_RECORD_FORK:
			if (record_get_task(&record, &task) == 0)
				on_fork(owned, &task, record.trailer.time);
			break;
		case PERF_RECORD_COMM:
			on_comm(owned, &record);
			break;
		case PERF_RECORD_EXIT:
			if (record_get_task(&record, &task) == 0)
				on_exit_(owned, &task, record.trailer.time);
			break;
		case PERF_RECORD_LOST:
			forget_all(owned);
			break;
		default:
			break;
		}
	}
}

/* --- answers ---------------------------------------------------------------------------------- */

static bool is_same(const struct life *l, const struct owned_answer *a)
{
	return l->shown.uid == a->uid && l->shown.gid == a->gid && l->birth == a->birth;
}

/* The answer is about this life. */
static void settle_answer(struct life *l)
{
	const struct owned_answer *a = &l->answer;

	l->has_answer = false;
	if (a->error != 0 || (l->state == HIS && !is_same(l, a)) || l->state == REFUSED) {
		l->state = REFUSED;
		l->is_plain = false;
		return;
	}
	if (l->state == WAITING) {
		l->state = HIS;
		l->is_plain = true;
		l->birth = a->birth;
		l->shown.uid = a->uid;
		l->shown.gid = a->gid;
		l->shown.from = l->was_plain ? l->shown.begun : a->answered_ns;
	}
	l->shown.until = a->asked_ns;
}

void owned_settle(struct owned *owned, uint64_t time)
{
	size_t n = 0;

	for (size_t i = 0; i < owned->answered.n; i++) {
		struct life *l = find_life(owned, owned->answered.items[i]);

		if (l && l->has_answer && l->answer.answered_ns < time)
			settle_answer(l);
		else if (l && l->has_answer)
			owned->answered.items[n++] = l->shown.pid;
	}
	owned->answered.n = n;
}

static bool is_due(const struct life *l, uint64_t now, const struct owned_wish *wish)
{
	if (l->has_answer || l->state == REFUSED)
		return false;
	if (wish)
		return l->asked_at < wish->since &&
		       (l->shown.uid == wish->uid || l->shown.uid == NO_USER);
	return l->asked_at == 0 || now - l->asked_at >= OWNED_AGAIN_NS;
}

static size_t ask(struct life *l, uint64_t now, const struct owned_wish *wish, uint32_t *ret_pid)
{
	if (!l || !is_due(l, now, wish))
		return 0;
	l->asked_at = now;
	*ret_pid = l->shown.pid;
	return 1;
}

size_t owned_ask(struct owned *owned, uint64_t now, const struct owned_wish *wish,
		 uint32_t *ret_pids, size_t n_max)
{
	size_t n = 0;

	while (owned->new.n > 0 && n < n_max)
		n += ask(find_life(owned, owned->new.items[--owned->new.n]), now, wish,
			 ret_pids + n);
	if (!wish && now - owned->looked_at < OWNED_AGAIN_NS / 4)
		return n;
	for (; owned->next < owned->lives.n && n < n_max; owned->next++)
		n += ask(&owned->lives.items[owned->next], now, wish, ret_pids + n);
	if (n < n_max) {
		owned->looked_at = now;
		owned->next = 0;
	}
	return n;
}

void owned_answer(struct owned *owned, const struct owned_answer *answer)
{
	struct life *l = find_life(owned, answer->pid);

	/* It may be about the program before. */
	if (!l || answer->asked_ns < l->shown.begun)
		return;
	if (!l->has_answer && vec_push(&owned->answered, answer->pid) < 0)
		return;
	l->answer = *answer;
	l->has_answer = true;
}

int owned_list(const struct owned *owned, uid_t uid, gid_t gid, struct owned_life **ret_lives,
	       size_t *ret_n)
{
	struct owned_life *lives = calloc(owned->past.n + owned->lives.n + 1, sizeof(*lives));
	size_t n = 0;

	if (!lives)
		return -ENOMEM;
	for (size_t i = 0; i < owned->past.n; i++)
		if (owned->past.items[i].uid == uid && owned->past.items[i].gid == gid)
			lives[n++] = owned->past.items[i];
	for (size_t i = 0; i < owned->lives.n; i++) {
		const struct owned_life *shown = &owned->lives.items[i].shown;

		if (shown->uid == uid && shown->gid == gid)
			lives[n++] = *shown;
	}
	for (size_t i = 0; i < n; i++)
		if (!has_any(&lives[i]))
			lives[i].from = lives[i].until = 0;
	*ret_lives = lives;
	*ret_n = n;
	return 0;
}
