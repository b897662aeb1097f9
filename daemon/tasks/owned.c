/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/tasks/owned.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/tasks/turns.h"
#include "record/codec.h"
#include "record/record.h"
#include "util/map.h"
#include "util/vec.h"

#define PAST_MAX 32768u /* lives that are over */

/* So often a process is asked about at once again that executes a program at each look. */
#define SOON_MAX 8u

#define NO_USER OWNED_STRANGER

static_assert(NO_USER == TURNS_OTHERS, "of strangers the user is not known");

enum state {
	WAITING, /* it was not asked about, or there was no answer */
	HIS,
	REFUSED, /* until the process executes another program */
};

struct life {
	struct owned_life shown; /* until an answer settled, whose it is is a guess by the parent */
	bool goes_on;            /* else the place is free */
	enum state state;
	bool is_started; /* by a process that was his who is shown, and not by another one since */
	uid_t user;      /* the real one, if it is known */
	uint64_t birth;

	/* The process has no right that it could lose: it had none when it was asked about, and has
	 * executed nothing since; or it is the child of such a process. */
	bool is_plain;
	bool was_plain; /* the process was that when this life began */

	uint64_t asked_at; /* last; 0: never */
	unsigned n_soon;   /* so often it was to be asked about at once again */
	bool has_answer;   /* that does not count yet: */
	struct owned_answer answer;
};

struct owned {
	VEC(struct life) lives;
	VEC(uint32_t) free;          /* indices of places in lives, with room for all of them */
	struct turns turns;          /* of the indices of lives that go on */
	struct map by_pid;           /* → 1 + index in lives, or 0: there is none now */
	VEC(struct owned_life) past; /* those that are over, in the order of their ends */
	VEC(uint32_t) answered;      /* processes of lives with an answer that does not count yet */
};

int owned_new(struct owned **ret_owned)
{
	struct owned *o = calloc(1, sizeof(*o));

	if (!o)
		return -ENOMEM;
	turns_init(&o->turns);
	*ret_owned = o;
	return 0;
}

static void forget_all(struct owned *o)
{
	vec_deinit(&o->lives);
	vec_deinit(&o->free);
	vec_deinit(&o->past);
	vec_deinit(&o->answered);
	map_deinit(&o->by_pid);
	turns_deinit(&o->turns);
	*o = (struct owned){};
	turns_init(&o->turns);
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

static uint32_t index_of(const struct owned *o, const struct life *l)
{
	return (uint32_t)(l - o->lives.items);
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

static void settle_answer(struct owned *o, struct life *l);

/* The life ends at @time. What was found out before that counts. */
static void end_life(struct owned *o, struct life *l, uint64_t time)
{
	if (l->has_answer && l->answer.answered_ns < time)
		settle_answer(o, l);
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

	if (o->by_pid.n_used < 4 * (size_t)OWNED_LIVES_MAX)
		return 0;
	for (size_t i = 0; r == 0 && i < o->lives.n; i++)
		if (o->lives.items[i].goes_on)
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
	*map_get(&o->by_pid, l->shown.pid) = 0;
	turns_remove(&o->turns, index_of(o, l));
	l->goes_on = false;
	o->free.items[o->free.n++] = index_of(o, l); /* there is room */
}

/* A life of the user who has the most goes, if he has more than this one: best one that is refused,
 * or of which nothing is known yet. */
static void take_back(struct owned *o, uid_t uid, uint64_t time)
{
	static const enum turns_line lines[] = { TURNS_SETTLED, TURNS_STRANGERS, TURNS_NEW,
						 TURNS_AGAIN };
	const uid_t giver = turns_greediest(&o->turns);
	uint32_t i = TURNS_NONE;

	if (turns_count(&o->turns, uid) >= turns_count(&o->turns, giver))
		return;
	for (size_t k = 0; i == TURNS_NONE; k++)
		i = turns_last(&o->turns, giver, lines[k]);
	end_life(o, &o->lives.items[i], time);
	remove_life(o, &o->lives.items[i]);
}

/* Find a place for a life that counts for the user. Return: its index; TURNS_NONE if there is none.
 */
static uint32_t find_place(struct owned *o, uid_t uid, uint64_t time)
{
	if (o->free.n == 0 && o->lives.n == OWNED_LIVES_MAX)
		take_back(o, uid, time);
	if (o->free.n > 0)
		return o->free.items[--o->free.n];
	if (o->lives.n == OWNED_LIVES_MAX || vec_reserve(&o->free, o->lives.n + 1) < 0 ||
	    vec_push(&o->lives, {}) < 0)
		return TURNS_NONE;
	return (uint32_t)o->lives.n - 1;
}

static int add_life(struct owned *o, uint32_t i, uint32_t pid, uid_t uid, enum turns_line line)
{
	int r;

	r = tidy_map(o);
	if (r == 0)
		r = turns_add(&o->turns, i, uid, line);
	if (r < 0)
		return r;
	r = map_put(&o->by_pid, pid, i + 1);
	if (r < 0)
		turns_remove(&o->turns, i);
	return r;
}

/* If there are too many, or there is no memory, the process is nobody's. @uid: for whom the life
 * counts */
static void begin_life(struct owned *o, const struct life *new, uid_t uid)
{
	const enum turns_line line = new->user == NO_USER ? TURNS_STRANGERS : TURNS_NEW;
	struct life *l = find_life(o, new->shown.pid);
	uint32_t i = l ? index_of(o, l) : TURNS_NONE;

	if (l) {
		end_life(o, l, new->shown.begun);
		turns_move(&o->turns, i, uid, line);
	} else {
		i = find_place(o, uid, new->shown.begun);
		if (i == TURNS_NONE)
			return;
		if (add_life(o, i, new->shown.pid, uid, line) < 0) {
			o->free.items[o->free.n++] = i;
			return;
		}
	}
	o->lives.items[i] = *new;
	o->lives.items[i].goes_on = true;
}

/* What a life has by that of the parent, or the one that the process had before, if that is known.
 * @ret_uid: for whom it counts */
static struct life make_life(const struct owned *o, uint32_t pid, uint64_t time,
			     const struct life *by, uid_t *ret_uid)
{
	struct life new = { .shown = { .pid = pid, .uid = NO_USER, .begun = time },
			    .user = NO_USER };

	*ret_uid = NO_USER;
	if (!by)
		return new;
	*ret_uid = turns_user(&o->turns, index_of(o, by));
	/* What a program that gives rights starts is no business of who started that program. */
	if (by->state == REFUSED)
		return new;
	new.shown.uid = by->shown.uid;
	new.shown.gid = by->shown.gid;
	/* Who has no other rights cannot become another user's. */
	if (by->state == HIS)
		new.user = by->user;
	new.is_started = by->state == HIS || (by->is_started && by->shown.pid == pid);
	return new;
}

static void on_fork(struct owned *o, const struct record_task *fork, uint64_t time)
{
	const struct life *parent = find_life(o, fork->ppid);
	struct life new;
	uid_t uid;

	if (fork->pid == fork->ppid)
		return;
	new = make_life(o, fork->pid, time, parent, &uid);
	if (parent) {
		new.is_plain = parent->is_plain;
		/* A child of one that was not asked about yet is what that one will turn out to
		 * be. */
		new.was_plain = parent->is_plain || (parent->state == WAITING && parent->was_plain);
	}
	begin_life(o, &new, uid);
}

static void on_exec(struct owned *o, uint32_t pid, uint64_t time)
{
	const struct life *before = find_life(o, pid);
	struct life new;
	uid_t uid;

	new = make_life(o, pid, time, before, &uid);
	new.was_plain = before && before->is_plain;
	begin_life(o, &new, uid);
}

static void on_comm(struct owned *o, const struct record *record)
{
	struct record_comm comm;
	uid_t uid;

	if (record_read_comm(record->header.misc, record->body, &comm) < 0)
		return;
	if (comm.exec)
		on_exec(o, comm.pid, record->trailer.time);
	else if (!find_life(o, comm.pid)) {
		const struct life new = make_life(o, comm.pid, record->trailer.time, NULL, &uid);

		begin_life(o, &new, uid);
	}
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
static void settle_answer(struct owned *o, struct life *l)
{
	const struct owned_answer *a = &l->answer;
	const uint32_t i = index_of(o, l);

	l->has_answer = false;
	if (a->error != 0 || (l->state == HIS && !is_same(l, a)) || l->state == REFUSED) {
		if (l->state == WAITING && !l->is_started)
			l->shown.uid = NO_USER;
		l->state = REFUSED;
		l->is_plain = false;
		turns_move(&o->turns, i, turns_user(&o->turns, i), TURNS_SETTLED);
		return;
	}
	if (l->state == WAITING) {
		l->state = HIS;
		l->is_plain = true;
		l->birth = a->birth;
		l->user = l->shown.uid = a->uid;
		l->shown.gid = a->gid;
		l->shown.from = l->was_plain ? l->shown.begun : a->answered_ns;
		if (turns_user(&o->turns, i) != a->uid)
			turns_move(&o->turns, i, a->uid, TURNS_AGAIN);
	}
	l->shown.until = a->asked_ns;
}

void owned_settle(struct owned *owned, uint64_t time)
{
	size_t n = 0;

	for (size_t i = 0; i < owned->answered.n; i++) {
		struct life *l = find_life(owned, owned->answered.items[i]);

		if (l && l->has_answer && l->answer.answered_ns < time)
			settle_answer(owned, l);
		else if (l && l->has_answer)
			owned->answered.items[n++] = l->shown.pid;
	}
	owned->answered.n = n;
}

/* Of two answers that do not count yet the later one says until when it holds. If one of them says
 * no, or they do not say the same, it is no. */
static void join_answers(struct owned_answer *first, const struct owned_answer *second)
{
	if (first->error != 0)
		return;
	if (second->error != 0 || second->uid != first->uid || second->gid != first->gid ||
	    second->birth != first->birth)
		first->error = second->error != 0 ? second->error : -EPERM;
	first->asked_ns = second->asked_ns;
	first->answered_ns = second->answered_ns;
}

/* Nothing is known of a life that has just begun, or is about to end. */
static void ask_soon(struct owned *o, struct life *l)
{
	const uint32_t i = index_of(o, l);

	if (l->state != WAITING || l->n_soon == SOON_MAX)
		return;
	l->n_soon++;
	turns_move(&o->turns, i, turns_user(&o->turns, i), TURNS_NEW);
}

void owned_answer(struct owned *owned, const struct owned_answer *answer)
{
	struct life *l = find_life(owned, answer->pid);

	/* It may be about the program before. */
	if (!l || answer->asked_ns < l->shown.begun)
		return;
	if (answer->error == -EAGAIN) {
		ask_soon(owned, l);
		return;
	}
	if (l->has_answer) {
		join_answers(&l->answer, answer);
		return;
	}
	if (vec_push(&owned->answered, answer->pid) < 0)
		return;
	l->answer = *answer;
	l->has_answer = true;
}

/* --- questions -------------------------------------------------------------------------------- */

/* Add the first processes of a line, as long as they are of one user, and were not asked about at
 * @since or later. */
static void take(struct owned *o, uid_t uid, enum turns_line line, uint64_t now, uint64_t since,
		 struct owned_question *q)
{
	while (q->n < OWNED_ASK_MAX) {
		const uint32_t i = turns_first(&o->turns, uid, line);
		struct life *l = i == TURNS_NONE ? NULL : &o->lives.items[i];

		if (!l || (line == TURNS_AGAIN && l->asked_at >= since) ||
		    (q->n > 0 && l->user != q->user))
			return;
		q->user = l->user;
		q->pids[q->n++] = l->shown.pid;
		l->asked_at = now;
		turns_move(&o->turns, i, turns_user(&o->turns, i), TURNS_AGAIN);
	}
}

bool owned_ask(struct owned *owned, uint64_t now, bool look, struct owned_question *ret_question)
{
	static const enum turns_line lines[] = { TURNS_NEW, TURNS_AGAIN, TURNS_STRANGERS };
	const uint64_t since = now < OWNED_AGAIN_NS ? 0 : now - OWNED_AGAIN_NS + 1;
	struct owned_question *q = ret_question;

	q->n = 0;
	for (size_t i = 0; i < TURNS_USERS_MAX && q->n == 0; i++) {
		const struct turns_user *user = turns_next(&owned->turns, now);

		if (!user)
			break;
		/* Those of one line do not keep those of another waiting. */
		for (size_t k = 0; k < ARRAY_LEN(lines) && q->n == 0; k++) {
			const enum turns_line line = lines[(user->turn + k) % ARRAY_LEN(lines)];

			if (look || line != TURNS_STRANGERS)
				take(owned, user->uid, line, now, since, q);
		}
	}
	return q->n > 0;
}

bool owned_ask_of(struct owned *owned, uint64_t now, uid_t uid, uint64_t since,
		  struct owned_question *ret_question)
{
	/* Strangers that count for another user are not his, or are asked about soon. */
	const struct {
		uid_t uid;
		enum turns_line line;
	} order[] = { { uid, TURNS_NEW },
		      { uid, TURNS_AGAIN },
		      { uid, TURNS_STRANGERS },
		      { TURNS_OTHERS, TURNS_STRANGERS },
		      { 0, TURNS_STRANGERS } };

	ret_question->n = 0;
	for (size_t i = 0; i < ARRAY_LEN(order) && ret_question->n == 0; i++)
		take(owned, order[i].uid, order[i].line, now, since, ret_question);
	return ret_question->n > 0;
}

void owned_note_user(struct owned *owned, uint32_t pid, uid_t user, uint64_t now)
{
	struct life *l = find_life(owned, pid);

	if (!l || l->state != WAITING)
		return;
	l->user = user;
	turns_move(&owned->turns, index_of(owned, l), user, user == 0 ? TURNS_AGAIN : TURNS_NEW);
	if (user == 0)
		owned_answer(
		    owned, &(struct owned_answer){
			       .pid = pid, .error = -EPERM, .asked_ns = now, .answered_ns = now });
}

void owned_leave(struct owned *owned, uid_t uid, uint64_t until)
{
	turns_leave(&owned->turns, uid, until);
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

		if (owned->lives.items[i].goes_on && shown->uid == uid && shown->gid == gid)
			lives[n++] = *shown;
	}
	for (size_t i = 0; i < n; i++)
		if (!has_any(&lives[i]))
			lives[i].from = lives[i].until = 0;
	*ret_lives = lives;
	*ret_n = n;
	return 0;
}

struct owned_count owned_count(const struct owned *owned)
{
	struct owned_count count = {};

	for (size_t i = 0; i < owned->lives.n; i++) {
		const struct life *l = &owned->lives.items[i];

		count.known += l->goes_on && l->state == HIS;
		count.unknown += l->goes_on && l->state == WAITING;
	}
	return count;
}
