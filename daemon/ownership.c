/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/ownership.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <systemd/sd-event.h>
#include <unistd.h>
#include <x86intrin.h>

#include "base/clock.h"
#include "daemon/collector/link.h"
#include "daemon/source/source.h"
#include "daemon/tasks/owned.h"
#include "record/record.h"
#include "record/tsc.h"
#include "util/vec.h"

#define TIMEOUT_MS 700u

static_assert(OWNED_ASK_MAX <= COLLECTOR_PROCESSES_MAX, "one request is enough for a question");

/* Whose processes are is looked up in /proc, and programs can make new ones at any rate: no more
 * than this part of the time is spent on that, or that one if a user waits. All users take turns in
 * it. */
#define LOOK_PART      20u
#define LOOK_PART_SOON 5u

/* For so long a user who asks for what is his waits. So do those who ask after him, since own
 * snapshots are taken one after another. */
#define PATIENCE_NS UINT64_C(1000000000)

/* A user is left alone for so many times as long as it took to answer about his processes, if that
 * took long. So nobody takes more than a part of the time in which others could be asked about. On
 * a machine that is busy the answer about anybody may take some 10 ms. */
#define LEAVE_TIMES 10u
#define LONG_NS     UINT64_C(50000000)

#define LOOK_US   (OWNED_AGAIN_NS / 4 / 1000) /* between two looks for whom it is time */
#define MORE_US   UINT64_C(5000)              /* the same if there were some */
#define ANSWER_US UINT64_C(1000)              /* or whether the answer has come */

/* A link to the collector, and those it was asked about who have not been answered. */
struct asker {
	struct collectorlink *link;
	int fd; /* has the processes; -1: there are none */
	size_t n;
	uid_t user; /* whose they seem to be */
	uint64_t asked_ns;
	uint64_t begun; /* CLOCK_MONOTONIC */
};

/* A user waits until his processes were asked about. */
struct waiting {
	bool on;
	uid_t uid;
	uint64_t since;
	uint64_t until; /* CLOCK_MONOTONIC */
	void (*done)(void *userdata);
	void *userdata; /* borrowed */
};

struct ownership {
	struct source *source; /* borrowed */
	struct owned *owned;
	sd_event_source *timer;
	struct asker asker;   /* for which nobody waits */
	struct asker patient; /* for a user who waits for what is his */
	struct waiting waiting;
	sd_event_source *soon; /* goes on with that */
	uint64_t rests_until;  /* CLOCK_MONOTONIC: whose processes are is not looked up before */
};

uint64_t ownership_now(const struct ownership *ownership)
{
	return tsc_to_ns(&ownership->source->facts.tsc, __rdtsc());
}

void ownership_add(struct ownership *ownership, const uint8_t *bytes, size_t size, uint64_t upto)
{
	owned_add(ownership->owned, bytes, size);
	owned_settle(ownership->owned, upto);
}

void ownership_add_found(struct ownership *ownership, const void *bytes, size_t size)
{
	owned_add(ownership->owned, bytes, size);
}

/* --- what was recorded before ----------------------------------------------------------------- */

struct slot {
	const uint8_t *record;
	size_t size;
	uint64_t time;
	size_t place; /* of those of the same time, the first one in its stream comes first */
};

static int by_time(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static bool is_of_life(uint32_t type)
{
	return type == PERF_RECORD_FORK || type == PERF_RECORD_COMM || type == PERF_RECORD_EXIT ||
	       type == PERF_RECORD_LOST;
}

/* A process may have records in several streams: if a later one came before an earlier one, what it
 * was before would be taken for what it is. */
int ownership_resume(struct ownership *ownership, const struct cursor *spans, size_t n_spans)
{
	VEC(struct slot) slots = {};
	int r = 0;

	for (size_t i = 0; i < n_spans; i++) {
		struct cursor c = spans[i];
		struct record record;

		while (r == 0 && record_next(&c, &record) == 0)
			if (is_of_life(record.header.type))
				r = vec_push(&slots, { record.bytes, record.header.size,
						       record.trailer.time, slots.n });
	}
	if (r == 0 && slots.n > 0)
		qsort(slots.items, slots.n, sizeof(*slots.items), by_time);
	for (size_t i = 0; r == 0 && i < slots.n; i++)
		owned_add(ownership->owned, slots.items[i].record, slots.items[i].size);
	vec_deinit(&slots);
	return r;
}

static int wake_in(sd_event_source *timer, uint64_t us)
{
	int r;

	r = sd_event_source_set_time(timer, clock_ns(CLOCK_MONOTONIC) / 1000 + us);
	if (r >= 0)
		r = sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
	return r < 0 ? r : 0;
}

/* --- questions -------------------------------------------------------------------------------- */

/* Find out whose the processes are. Return: how long that took, in ns. */
static uint64_t look_up(struct ownership *o, const struct owned_question *q)
{
	const uint64_t begun = clock_ns(CLOCK_MONOTONIC), now = ownership_now(o);
	uid_t user;

	for (size_t i = 0; i < q->n; i++)
		if (o->source->ops->owner(o->source, q->pids[i], &user) == 0)
			owned_note_user(o->owned, q->pids[i], user, now);
	return clock_ns(CLOCK_MONOTONIC) - begun;
}

/* Return: 0, or negative errno: the collector cannot be asked. */
static int begin_asking(struct ownership *o, struct asker *asker, const struct owned_question *q)
{
	struct collector_process processes[OWNED_ASK_MAX];
	const size_t size = q->n * sizeof(*processes);
	_cleanup_(fd_closep) int fd = -1;
	struct collector_request request = {
		.verb = COLLECTOR_TRACEABLE,
		.timeout_ms = TIMEOUT_MS,
		.uid = q->user,
		.size_max = q->n,
		.path = "",
	};
	int r;

	for (size_t i = 0; i < q->n; i++)
		processes[i] = (struct collector_process){ .pid = q->pids[i] };
	fd = memfd_create("processes", MFD_CLOEXEC);
	errno = EIO;
	if (fd < 0 || pwrite(fd, processes, size, 0) != (ssize_t)size)
		return -errno;
	asker->n = q->n;
	asker->user = q->user;
	asker->asked_ns = ownership_now(o);
	asker->begun = clock_ns(CLOCK_MONOTONIC);
	r = collectorlink_begin(asker->link, &request, (const int[COLLECTOR_FDS_MAX]){ fd, -1 });
	if (r < 0)
		return r;
	asker->fd = fd;
	fd = -1;
	return 0;
}

/* Nothing more is to be answered. */
static void end_asking(struct ownership *o, struct asker *asker)
{
	const uint64_t took = clock_ns(CLOCK_MONOTONIC) - asker->begun;

	if (took > LONG_NS)
		owned_leave(o->owned, asker->user, ownership_now(o) + LEAVE_TIMES * took);
	asker->fd = fd_close(asker->fd);
}

/* Take the answer if it has come. Return: 0, whatever it is; or -EAGAIN. */
static int finish_asking(struct ownership *o, struct asker *asker)
{
	struct collector_process processes[OWNED_ASK_MAX];
	const size_t size = asker->n * sizeof(*processes);
	struct collector_answer answer;
	int none = -1, r;

	r = collectorlink_finish(asker->link, 0, &answer, &none);
	(void)fd_close(none);
	if (r == -EAGAIN)
		return r;
	if (r == 0 && pread(asker->fd, processes, size, 0) != (ssize_t)size)
		r = -EIO;
	for (size_t i = 0; r == 0 && i < asker->n; i++)
		owned_answer(o->owned, &(struct owned_answer){
					   .pid = processes[i].pid,
					   .error = processes[i].error,
					   .uid = processes[i].uid,
					   .gid = processes[i].gid,
					   .birth = processes[i].birth,
					   .asked_ns = asker->asked_ns,
					   .answered_ns = ownership_now(o),
				       });
	end_asking(o, asker);
	return 0;
}

/* Ask about those whose turn it is, and look up who strangers are. Return: whether there were
 * any. */
static bool ask_next(struct ownership *o)
{
	struct owned_question q;
	bool found = true, any = false;

	/* Strangers are looked up first, and asked about if it is the turn of their users. */
	for (unsigned i = 0; i < 2 && found && o->asker.fd < 0; i++) {
		const uint64_t now = clock_ns(CLOCK_MONOTONIC);

		found = owned_ask(o->owned, ownership_now(o), now >= o->rests_until, &q);
		if (found && q.user == OWNED_STRANGER)
			o->rests_until = now + LOOK_PART * look_up(o, &q);
		else if (found)
			(void)!begin_asking(o, &o->asker, &q);
		any |= found;
	}
	return any;
}

void ownership_ask(struct ownership *ownership)
{
	struct ownership *o = ownership;
	uint64_t us = LOOK_US;

	if (o->asker.fd < 0 || finish_asking(o, &o->asker) == 0)
		us = ask_next(o) ? MORE_US : LOOK_US;
	(void)!wake_in(o->timer, o->asker.fd >= 0 ? ANSWER_US : us);
}

/* Ask, and look for the answer. */
static int on_timer(sd_event_source *timer, uint64_t usec, void *userdata)
{
	(void)timer;
	(void)usec;
	ownership_ask(userdata);
	return 0;
}

/* Ask about more processes of the user who waits. Return: whether there are any, or there is an
 * answer to come, for which @ret_us is to be waited. */
static bool ask_some_of(struct ownership *o, uint64_t *ret_us)
{
	const uint64_t now = ownership_now(o);
	struct owned_question q;

	*ret_us = ANSWER_US;
	if (o->patient.fd >= 0 && finish_asking(o, &o->patient) < 0)
		return true;
	/* Some may have been asked about for nobody in particular. */
	if (!owned_ask_of(o->owned, now, o->waiting.uid, o->waiting.since, &q))
		return o->asker.fd >= 0 && o->asker.user == o->waiting.uid;
	if (q.user != OWNED_STRANGER)
		return begin_asking(o, &o->patient, &q) == 0;
	*ret_us += LOOK_PART_SOON * look_up(o, &q) / 1000;
	return true;
}

/* Go on asking for the user who waits, or let him go on. */
static int on_soon(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct ownership *o = userdata;
	const struct waiting waiting = o->waiting;
	uint64_t us;

	(void)usec;
	if (!waiting.on)
		return 0;
	if (clock_ns(CLOCK_MONOTONIC) < waiting.until && ask_some_of(o, &us))
		return wake_in(timer, us);
	ownership_stop_asking(o);
	if (waiting.done)
		waiting.done(waiting.userdata);
	return 0;
}

int ownership_ask_of(struct ownership *ownership, uid_t uid, void (*done)(void *userdata),
		     void *userdata)
{
	int r;

	r = wake_in(ownership->soon, 0);
	if (r < 0)
		return r;
	ownership->waiting = (struct waiting){
		.on = true,
		.uid = uid,
		.since = ownership_now(ownership),
		.until = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS,
		.done = done,
		.userdata = userdata,
	};
	return 0;
}

/* Who asks next does not wait for this answer, which is given up with the next question. */
void ownership_stop_asking(struct ownership *ownership)
{
	if (ownership->patient.fd >= 0)
		end_asking(ownership, &ownership->patient);
	ownership->waiting = (struct waiting){};
}

int ownership_new(sd_event *event, struct source *source, const char *runtime_dir,
		  struct ownership **ret_ownership)
{
	_cleanup_(ownership_freep) struct ownership *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->source = source;
	o->asker.fd = o->patient.fd = -1;
	r = owned_new(&o->owned);
	if (r == 0)
		r = collectorlink_new(runtime_dir, false, &o->asker.link);
	if (r == 0)
		r = collectorlink_new(runtime_dir, false, &o->patient.link);
	if (r == 0)
		r = sd_event_add_time_relative(event, &o->timer, CLOCK_MONOTONIC, LOOK_US,
					       ANSWER_US / 10, on_timer, o);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &o->soon, CLOCK_MONOTONIC, 0, ANSWER_US / 10,
					       on_soon, o);
	if (r < 0)
		return r;
	*ret_ownership = TAKE(o);
	return 0;
}

static void asker_deinit(struct asker *asker)
{
	(void)fd_close(asker->fd);
	(void)collectorlink_free(asker->link);
}

struct ownership *ownership_free(struct ownership *ownership)
{
	if (!ownership)
		return NULL;
	sd_event_source_disable_unref(ownership->timer);
	sd_event_source_disable_unref(ownership->soon);
	(void)owned_free(ownership->owned);
	asker_deinit(&ownership->asker);
	asker_deinit(&ownership->patient);
	free(ownership);
	return NULL;
}

int ownership_list(const struct ownership *ownership, uid_t uid, gid_t gid,
		   struct owned_life **ret_lives, size_t *ret_n)
{
	return owned_list(ownership->owned, uid, gid, ret_lives, ret_n);
}

struct owned_count ownership_count(const struct ownership *ownership)
{
	return owned_count(ownership->owned);
}
