/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/ownership.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <x86intrin.h>

#include "base/clock.h"
#include "daemon/collector/hungusers.h"
#include "daemon/collector/link.h"
#include "daemon/source/source.h"
#include "daemon/tasks/owned.h"
#include "record/tsc.h"

#define TIMEOUT_MS 700u
#define BATCH_MAX  COLLECTOR_PROCESSES_MAX

/* About so many processes is asked at most: whose they seem to be is looked up in /proc, as the
 * sideband does it, and programs can make new ones at any rate. */
#define ASKS_A_SECOND 1000u
#define SECOND_NS     UINT64_C(1000000000)
#define HUNG_NS       UINT64_C(5000000000) /* for which a user who let the collector wait is left */

struct ownership {
	struct source *source; /* borrowed */
	struct owned *owned;
	struct collectorlink *link;    /* which must not make the event loop wait for long */
	struct collectorlink *patient; /* for a user who waits for what is his */
	struct hungusers hung;
	uint64_t hung_until; /* CLOCK_MONOTONIC */

	/* About how many was asked since when, on the records' clock. */
	size_t n_asks;
	uint64_t asks_since;
};

/* Processes to be asked about, and whose they seem to be. */
struct batch {
	uint32_t pids[BATCH_MAX];
	uid_t users[BATCH_MAX];
	size_t n;
};

int ownership_new(struct source *source, const char *runtime_dir, struct ownership **ret_ownership)
{
	_cleanup_(ownership_freep) struct ownership *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return -ENOMEM;
	o->source = source;
	r = owned_new(&o->owned);
	if (r == 0)
		r = collectorlink_new(runtime_dir, true, &o->link);
	if (r == 0)
		r = collectorlink_new(runtime_dir, false, &o->patient);
	if (r < 0)
		return r;
	*ret_ownership = TAKE(o);
	return 0;
}

struct ownership *ownership_free(struct ownership *ownership)
{
	if (!ownership)
		return NULL;
	(void)owned_free(ownership->owned);
	(void)collectorlink_free(ownership->link);
	(void)collectorlink_free(ownership->patient);
	hungusers_deinit(&ownership->hung);
	free(ownership);
	return NULL;
}

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

/* Have the collector fill in the @n processes, all of one user. Return: 0, or negative errno. */
static int ask_collector(struct collectorlink *link, uid_t user,
			 struct collector_process *processes, size_t n)
{
	_cleanup_(fd_closep) int fd = memfd_create("processes", MFD_CLOEXEC);
	const int fds[COLLECTOR_FDS_MAX] = { fd, -1 };
	const size_t size = n * sizeof(*processes);
	struct collector_request request = {
		.verb = COLLECTOR_TRACEABLE,
		.timeout_ms = TIMEOUT_MS,
		.uid = user,
		.size_max = n,
		.path = "",
	};
	struct collector_answer answer;
	int none = -1, r;

	errno = EIO;
	if (fd < 0 || pwrite(fd, processes, size, 0) != (ssize_t)size)
		return -errno;
	r = collectorlink_ask(link, &request, fds, NULL, &answer, &none);
	(void)fd_close(none);
	if (r < 0)
		return r;
	errno = EIO;
	return pread(fd, processes, size, 0) == (ssize_t)size ? 0 : -errno;
}

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

/* Ask about those of @batch that are of the user, and take them out of it. @link: NULL: nobody is
 * asked. Return: 0, or negative errno. */
static int ask_user(struct ownership *o, struct collectorlink *link, struct batch *batch,
		    uid_t user)
{
	struct collector_process processes[BATCH_MAX];
	size_t n = 0, n_others = 0;
	uint64_t asked;
	int r;

	for (size_t i = 0; i < batch->n; i++) {
		if (batch->users[i] == user) {
			processes[n++] = (struct collector_process){ .pid = batch->pids[i] };
			continue;
		}
		batch->pids[n_others] = batch->pids[i];
		batch->users[n_others++] = batch->users[i];
	}
	batch->n = n_others;
	if (!link || is_hung(o, user))
		return 0;
	asked = ownership_now(o);
	r = ask_collector(link, user, processes, n);
	if (r == -ETIMEDOUT)
		note_hung(o, user);
	for (size_t i = 0; r == 0 && i < n; i++)
		owned_answer(o->owned, &(struct owned_answer){
					   .pid = processes[i].pid,
					   .error = processes[i].error,
					   .uid = processes[i].uid,
					   .gid = processes[i].gid,
					   .birth = processes[i].birth,
					   .asked_ns = asked,
					   .answered_ns = ownership_now(o),
				       });
	return r;
}

/* Return: whether there may be more. */
static bool ask_some(struct ownership *o, const uid_t *of)
{
	uint32_t pids[BATCH_MAX];
	const uint64_t now = ownership_now(o);
	struct batch batch = {};
	bool has_failed = false;
	size_t n;

	if (now - o->asks_since > SECOND_NS) {
		o->asks_since = now;
		o->n_asks = 0;
	}
	if (!of && o->n_asks >= ASKS_A_SECOND)
		return false;
	n = owned_ask(o->owned, now, of, pids, BATCH_MAX);
	o->n_asks += n;

	for (size_t i = 0; i < n; i++) {
		uid_t user;

		if (o->source->ops->owner(o->source, pids[i], &user) < 0)
			continue;
		if (user == 0) {
			refuse(o, pids[i], now);
			continue;
		}
		batch.pids[batch.n] = pids[i];
		batch.users[batch.n++] = user;
	}
	while (batch.n > 0) {
		const uid_t user = batch.users[0];
		const bool is_patient = of && user == *of;
		/* If the collector is not there, it is not asked for each of the others. */
		struct collectorlink *link = is_patient ? o->patient : has_failed ? NULL : o->link;
		const int r = ask_user(o, link, &batch, user);

		has_failed = has_failed || (!is_patient && r < 0 && r != -ETIMEDOUT);
	}
	return n == BATCH_MAX;
}

void ownership_ask(struct ownership *ownership)
{
	(void)ask_some(ownership, NULL);
}

void ownership_ask_of(struct ownership *ownership, uid_t uid)
{
	/* The first pass may begin in the middle; what it has asked about is not asked again. */
	for (unsigned pass = 0; pass < 2; pass++)
		while (ask_some(ownership, &uid))
			;
}

int ownership_list(const struct ownership *ownership, uid_t uid, gid_t gid,
		   struct owned_life **ret_lives, size_t *ret_n)
{
	return owned_list(ownership->owned, uid, gid, ret_lives, ret_n);
}
