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
#include "daemon/collector/hungusers.h"
#include "daemon/collector/link.h"
#include "daemon/source/source.h"
#include "daemon/tasks/owned.h"
#include "record/tsc.h"

#define TIMEOUT_MS 700u
#define BATCH_MAX  64u

static_assert(BATCH_MAX <= COLLECTOR_PROCESSES_MAX, "one question is enough for a batch");

/* Whose processes seem to be is looked up in /proc, and programs can make new ones at any rate: no
 * more than this part of the time is spent on that. */
#define LOOK_PART 20u

/* For so long a user who asks for what is his waits. So do those who ask after him, since own
 * snapshots are taken one after another. */
#define PATIENCE_NS UINT64_C(1000000000)

#define HUNG_NS UINT64_C(5000000000) /* for which a user who let the collector wait is left */

#define LOOK_US   (OWNED_AGAIN_NS / 4 / 1000) /* between two looks for whom it is time */
#define ANSWER_US UINT64_C(5000)              /* or whether the answer has come */
#define SOON_US   UINT64_C(1000)              /* the same if a user waits for it */

/* A link to the collector, and those it was asked about who have not been answered. */
struct asker {
	struct collectorlink *link;
	int fd; /* has the processes; -1: there are none */
	size_t n;
	uid_t user; /* whose they seem to be */
	uint64_t asked_ns;
};

/* Processes to be asked about, and whose they seem to be. */
struct batch {
	uint32_t pids[BATCH_MAX];
	uid_t users[BATCH_MAX];
	size_t n;
};

/* A user waits until his processes were asked about. */
struct waiting {
	bool on;
	struct owned_wish wish;
	unsigned n_passes; /* over all processes */
	uint64_t until;    /* CLOCK_MONOTONIC */
	void (*done)(void *userdata);
	void *userdata; /* borrowed */
};

struct ownership {
	struct source *source; /* borrowed */
	struct owned *owned;
	sd_event_source *timer;
	struct batch batch;   /* who is asked about when the collector has answered */
	struct asker asker;   /* for which nobody waits */
	struct asker patient; /* for a user who waits for what is his */
	struct waiting waiting;
	sd_event_source *soon; /* goes on with that */
	struct hungusers hung;
	uint64_t hung_until;  /* CLOCK_MONOTONIC */
	uint64_t rests_until; /* CLOCK_MONOTONIC: nobody is looked for before */
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

/* --- questions -------------------------------------------------------------------------------- */

static void note_hung(struct ownership *o, uid_t user)
{
	hungusers_note_user(&o->hung, user);
	o->hung_until = clock_ns(CLOCK_MONOTONIC) + HUNG_NS;
}

static bool is_hung(struct ownership *o, uid_t user)
{
	if (o->hung_until > 0 && clock_ns(CLOCK_MONOTONIC) >= o->hung_until) {
		hungusers_deinit(&o->hung);
		o->hung = (struct hungusers){};
		o->hung_until = 0;
	}
	return hungusers_has_user(&o->hung, user);
}

/* Nobody need be asked about root's. */
static void refuse(struct ownership *o, uint32_t pid, uint64_t now)
{
	owned_answer(o->owned, &(struct owned_answer){
				   .pid = pid,
				   .error = -EPERM,
				   .asked_ns = now,
				   .answered_ns = now,
			       });
}

/* Take the user's processes out of the batch, to @processes. Return: how many there are. */
static size_t take_user(struct batch *batch, uid_t user,
			struct collector_process processes[static BATCH_MAX])
{
	size_t n = 0, n_others = 0;

	for (size_t i = 0; i < batch->n; i++) {
		if (batch->users[i] == user) {
			processes[n++] = (struct collector_process){ .pid = batch->pids[i] };
			continue;
		}
		batch->pids[n_others] = batch->pids[i];
		batch->users[n_others++] = batch->users[i];
	}
	batch->n = n_others;
	return n;
}

/* Ask about those of @batch whose the first one seems to be, and take them out of it. Return: 0,
 * also if he is left for a while; or negative errno: the collector cannot be asked. */
static int begin_asking(struct ownership *o, struct asker *asker, struct batch *batch)
{
	struct collector_process processes[BATCH_MAX];
	const uid_t user = batch->users[0];
	const size_t n = take_user(batch, user, processes), size = n * sizeof(*processes);
	_cleanup_(fd_closep) int fd = -1;
	struct collector_request request = {
		.verb = COLLECTOR_TRACEABLE,
		.timeout_ms = TIMEOUT_MS,
		.uid = user,
		.size_max = n,
		.path = "",
	};
	int r;

	if (is_hung(o, user))
		return 0;
	fd = memfd_create("processes", MFD_CLOEXEC);
	errno = EIO;
	if (fd < 0 || pwrite(fd, processes, size, 0) != (ssize_t)size)
		return -errno;
	asker->n = n;
	asker->user = user;
	asker->asked_ns = ownership_now(o);
	r = collectorlink_begin(asker->link, &request, (const int[COLLECTOR_FDS_MAX]){ fd, -1 });
	if (r < 0)
		return r;
	asker->fd = fd;
	fd = -1;
	return 0;
}

/* Take the answer if it has come. Return: 0, whatever it is; or -EAGAIN. */
static int finish_asking(struct ownership *o, struct asker *asker)
{
	struct collector_process processes[BATCH_MAX];
	const size_t size = asker->n * sizeof(*processes);
	struct collector_answer answer;
	int none = -1, r;

	r = collectorlink_finish(asker->link, 0, &answer, &none);
	(void)fd_close(none);
	if (r == -EAGAIN)
		return r;
	if (r == -ETIMEDOUT)
		note_hung(o, asker->user);
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
	asker->fd = fd_close(asker->fd);
	return 0;
}

/* Find processes for which it is time. Return: whether there may be more. */
static bool find_batch(struct ownership *o, const struct owned_wish *wish, struct batch *batch)
{
	uint32_t pids[BATCH_MAX];
	const uint64_t now = ownership_now(o);
	size_t n;

	batch->n = 0;
	n = owned_ask(o->owned, now, wish, pids, BATCH_MAX);
	for (size_t i = 0; i < n; i++) {
		uid_t user;

		if (o->source->ops->owner(o->source, pids[i], &user) < 0)
			continue;
		if (user == 0) {
			refuse(o, pids[i], now);
			continue;
		}
		/* Others' can wait, and he need not. */
		if (wish && user != wish->uid)
			continue;
		batch->pids[batch->n] = pids[i];
		batch->users[batch->n++] = user;
	}
	return n == BATCH_MAX;
}

/* Find those to be asked about next, unless that took much of the time of late. */
static void look(struct ownership *o)
{
	const uint64_t begun = clock_ns(CLOCK_MONOTONIC);

	if (begun < o->rests_until)
		return;
	(void)find_batch(o, NULL, &o->batch);
	o->rests_until = begun + LOOK_PART * (clock_ns(CLOCK_MONOTONIC) - begun);
}

void ownership_ask(struct ownership *ownership)
{
	struct ownership *o = ownership;
	struct batch *batch = &o->batch;

	if (o->asker.fd >= 0 && finish_asking(o, &o->asker) < 0)
		return;
	if (batch->n == 0)
		look(o);
	while (batch->n > 0 && o->asker.fd < 0)
		if (begin_asking(o, &o->asker, batch) < 0)
			batch->n = 0;
}

/* Ask, and look for the answer. */
static int on_timer(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct ownership *o = userdata;
	int r;

	(void)usec;
	ownership_ask(o);
	r = sd_event_source_set_time_relative(timer, o->asker.fd >= 0 ? ANSWER_US : LOOK_US);
	return r < 0 ? r : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

/* Ask about more of his processes. Return: whether an answer is to come. */
static bool ask_some_of(struct ownership *o)
{
	struct waiting *w = &o->waiting;
	struct batch batch = {};

	/* The first pass may begin in the middle; what it has asked about is not asked again. */
	while (w->n_passes < 2 && batch.n == 0)
		w->n_passes += !find_batch(o, &w->wish, &batch);
	return batch.n > 0 && begin_asking(o, &o->patient, &batch) == 0 && o->patient.fd >= 0;
}

/* Go on asking for the user who waits, or let him go on. */
static int on_soon(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct ownership *o = userdata;
	const struct waiting waiting = o->waiting;
	int r;

	(void)usec;
	if (!waiting.on)
		return 0;
	if (clock_ns(CLOCK_MONOTONIC) < waiting.until &&
	    ((o->patient.fd >= 0 && finish_asking(o, &o->patient) < 0) || ask_some_of(o))) {
		r = sd_event_source_set_time_relative(timer, SOON_US);
		return r < 0 ? r : sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
	}
	o->waiting = (struct waiting){};
	if (waiting.done)
		waiting.done(waiting.userdata);
	return 0;
}

int ownership_ask_of(struct ownership *ownership, uid_t uid, void (*done)(void *userdata),
		     void *userdata)
{
	int r;

	r = sd_event_source_set_time_relative(ownership->soon, 0);
	if (r >= 0)
		r = sd_event_source_set_enabled(ownership->soon, SD_EVENT_ONESHOT);
	if (r < 0)
		return r;
	/* He does not wait for another user's answer, which is given up with the next question. */
	if (ownership->patient.user != uid)
		ownership->patient.fd = fd_close(ownership->patient.fd);
	ownership->waiting = (struct waiting){
		.on = true,
		.wish = { .uid = uid, .since = ownership_now(ownership) },
		.until = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS,
		.done = done,
		.userdata = userdata,
	};
	return 0;
}

void ownership_stop_asking(struct ownership *ownership)
{
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
					       LOOK_US / 10, on_timer, o);
	if (r >= 0)
		r = sd_event_add_time_relative(event, &o->soon, CLOCK_MONOTONIC, 0, SOON_US / 10,
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
	hungusers_deinit(&ownership->hung);
	free(ownership);
	return NULL;
}

int ownership_list(const struct ownership *ownership, uid_t uid, gid_t gid,
		   struct owned_life **ret_lives, size_t *ret_n)
{
	return owned_list(ownership->owned, uid, gid, ret_lives, ret_n);
}
