/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/copier.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/objects/object.h"
#include "daemon/proc/claimant.h"
#include "daemon/share/share.h"
#include "daemon/spool/spool.h"
#include "daemon/spool/storedir.h"
#include "util/cancel.h"
#include "util/effort.h"

/* Number of originals that are open while they wait. If there are more, they are opened when it is
 * their turn. */
#define OPEN_MAX 256u

#define CANCEL_POLL_NS 50000000

/* Least number of bytes that a file counts, because copying even a small file takes a moment. */
#define COST_MIN (UINT64_C(256) << 10)

/* Number of owners of files that are distinguished. If there are more, some count as one. */
#define N_OWNERS 64u

/* Longest time for one original, while others wait. A slow disk can read the largest file in that
 * time. */
#define PATIENCE_NS UINT64_C(20000000000)

/* How often a copy is tried again if it was removed just when it was found. */
#define TRIES 3u

struct queue {
	struct object *first, *last;
};

struct copier {
	int store_fd; /* borrowed */
	struct claims claims;
	int event_fd;
	pthread_t thread;
	bool has_thread;

	pthread_mutex_t lock; /* for what follows, and for the files in the store directory */
	pthread_cond_t change;
	atomic_bool stop; /* the copy that is being made stops, too */
	struct spool_limits limits;
	struct queue waiting, finished; /* which have a reference to each object */
	const struct object *taking;    /* the one that is being copied, or NULL */
	uint64_t served[N_OWNERS];      /* bytes copied since the queue was last empty */
	unsigned n_open;
	struct share share; /* bytes on the disk of copies to which no snapshot linked at the last
			     * sweep, by the owners of their originals */
};

static void queue_push(struct queue *queue, struct object *object)
{
	object->queued = NULL;
	if (queue->last)
		queue->last->queued = object;
	else
		queue->first = object;
	queue->last = object;
}

static struct object *queue_pop(struct queue *queue)
{
	struct object *object = queue->first;

	if (!object)
		return NULL;
	queue->first = object->queued;
	if (!queue->first)
		queue->last = NULL;
	return object;
}

static uint64_t copy_cost(const struct object *object)
{
	return object->original.size > COST_MIN ? object->original.size : COST_MIN;
}

/* Remove the first object of the owner with the fewest copied bytes. The lock is held. */
static struct object *pop_waiting(struct copier *c)
{
	struct object *before_best = NULL, *best = c->waiting.first, *before = best;

	if (!best)
		return NULL;
	for (struct object *o = best->queued; o; before = o, o = o->queued)
		if (c->served[o->original.uid % N_OWNERS] <
		    c->served[best->original.uid % N_OWNERS]) {
			before_best = before;
			best = o;
		}
	if (before_best)
		before_best->queued = best->queued;
	else
		c->waiting.first = best->queued;
	if (c->waiting.last == best)
		c->waiting.last = before_best;
	c->served[best->original.uid % N_OWNERS] += copy_cost(best);
	if (!c->waiting.first)
		memset(c->served, 0, sizeof(c->served));
	return best;
}

/* --- the thread ------------------------------------------------------------------------------ */

static int check_build_id(int fd, const struct buildid *claimed, struct buildid *ret_id)
{
	int r;

	r = buildid_read(fd, ret_id);
	if (r == 0 && claimed->size > 0 && !buildid_equal(claimed, ret_id))
		return -ESTALE;
	return r;
}

/* What was found out about an original. */
struct content {
	uid_t owner;
	struct buildid build_id;
	char hash[SHA256_HEX_SIZE];
	bool copied; /* there is a copy without a name; if not, the store has the content already */
	uint64_t taken; /* bytes that the copy takes on the disk */
};

/* Get the limits, if a copy of the original @st may be made. Return: 0 or -EDQUOT. */
static int ask_for_room(struct copier *c, const struct stat *st, struct spool_limits *ret_limits)
{
	const uint64_t bytes = (uint64_t)st->st_blocks * 512;
	uint64_t max;
	bool allowed;

	(void)pthread_mutex_lock(&c->lock);
	*ret_limits = c->limits;
	max = c->limits.max_use / COPIER_PART;
	allowed = share_allows(&c->share, max, st->st_uid, bytes);
	if (!allowed)
		share_refuse(&c->share, max, st->st_uid, bytes);
	(void)pthread_mutex_unlock(&c->lock);
	return allowed ? 0 : -EDQUOT;
}

/* Copy the content of @fd, unless the store has it already. */
static int copy_in(struct copier *c, int fd, const struct buildid *claimed,
		   struct content *ret_content)
{
	_cleanup_(fd_closep) int copy = -1;
	struct content content = {};
	struct spool_limits limits;
	struct effort effort = { .cancel = &c->stop };
	struct stat st;
	uint64_t size;
	int r;

	r = check_build_id(fd, claimed, &content.build_id);
	if (r < 0)
		return r;
	if (fstat(fd, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size > STOREDIR_FILE_MAX)
		return -EFBIG;
	content.owner = st.st_uid;
	/* The file may grow while it is read. */
	effort.size_max = (uint64_t)st.st_size;
	effort.until_ns = clock_ns(CLOCK_MONOTONIC) + PATIENCE_NS;
	r = sha256_fd(fd, &effort, NULL, content.hash, &size);
	if (r == 0 && !storedir_has(c->store_fd, content.hash)) {
		r = ask_for_room(c, &st, &limits);
		if (r == 0)
			r = storedir_copy(c->store_fd, fd, &limits, &effort, &copy, content.hash,
					  &content.taken);
		content.copied = r == 0;
		/* The original may have been written to while it was copied. */
		if (r == 0)
			r = check_build_id(copy, claimed, &content.build_id);
		if (r < 0)
			(void)storedir_forget(c->store_fd, NULL);
	}
	if (r == 0)
		*ret_content = content;
	return r;
}

/* Give the copy its name. The lock is held. Return: 0; -EAGAIN if there is no copy because the
 * store had the content, but has removed it since; or another negative errno. */
static int name_copy(struct copier *c, const struct content *content)
{
	int r;

	if (storedir_has(c->store_fd, content->hash)) {
		if (content->copied)
			(void)storedir_forget(c->store_fd, NULL);
		return 0;
	}
	if (!content->copied)
		return -EAGAIN;
	r = storedir_name(c->store_fd, content->hash);
	if (r == 0)
		share_take(&c->share, content->owner, content->taken);
	return r;
}

/* Copy the object's original @fd, which may be -1. The copy gets its name only when the lock is
 * held. */
static void take_in(struct copier *c, struct object *object, int fd)
{
	_cleanup_(fd_closep) int original = fd;
	struct content content = {};
	struct original which;
	int r = -ESTALE;

	if (original >= 0)
		r = copy_in(c, original, &object->claimed, &content);
	/* The build-id of the open file was not compared yet: another place may have the right
	 * file. */
	if (r == -ESTALE) {
		original = fd_close(original);
		r = original_open_verified(&c->claims, &object->mapped, &original, &which);
		if (r == 0)
			r = copy_in(c, original, &object->claimed, &content);
	}
	for (unsigned i = 0;; i++) {
		if (r == 0 && i > 0)
			r = copy_in(c, original, &object->claimed, &content);
		(void)pthread_mutex_lock(&c->lock);
		if (r == 0)
			r = name_copy(c, &content);
		if (r != -EAGAIN || i == TRIES)
			break;
		(void)pthread_mutex_unlock(&c->lock);
		r = 0;
	}
	if (r == 0) {
		object->build_id = content.build_id;
		object->owner = content.owner;
		memcpy(object->sha256, content.hash, sizeof(content.hash));
	}
	object->error = r;
	object->done = true;
	queue_push(&c->finished, object);
	c->taking = NULL;
	(void)pthread_cond_broadcast(&c->change);
	(void)pthread_mutex_unlock(&c->lock);
	(void)eventfd_write(c->event_fd, 1);
}

static void *run_copier(void *userdata)
{
	struct copier *c = userdata;
	struct object *object;
	int fd;

	for (;;) {
		(void)pthread_mutex_lock(&c->lock);
		while (!c->stop && !c->waiting.first)
			(void)pthread_cond_wait(&c->change, &c->lock);
		object = c->stop ? NULL : pop_waiting(c);
		c->taking = object;
		if (object) {
			fd = object->fd;
			object->fd = -1;
			c->n_open -= fd >= 0;
		}
		(void)pthread_mutex_unlock(&c->lock);
		if (!object)
			return NULL;
		take_in(c, object, fd);
	}
}

/* The event loop handles signals, so the thread blocks them. */
static int start_copier(struct copier *c)
{
	sigset_t all, before;
	int r;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&c->thread, NULL, run_copier, c);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	c->has_thread = r == 0;
	return r;
}

static void stop_thread(struct copier *c)
{
	if (!c->has_thread)
		return;
	(void)pthread_mutex_lock(&c->lock);
	atomic_store(&c->stop, true);
	(void)pthread_cond_broadcast(&c->change);
	(void)pthread_mutex_unlock(&c->lock);
	(void)pthread_join(c->thread, NULL);
}

/* --- who has it copy -------------------------------------------------------------------------- */

int copier_new(int store_fd, const struct spool_limits *limits, struct copier **ret_copier)
{
	_cleanup_(copier_freep) struct copier *c = malloc(sizeof(*c));
	int r;

	if (!c)
		return -ENOMEM;
	*c = (struct copier){
		.store_fd = store_fd,
		.limits = *limits,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.change = PTHREAD_COND_INITIALIZER,
	};
	c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->event_fd < 0)
		return -errno;
	(void)storedir_forget(store_fd, NULL);
	r = start_copier(c);
	if (r < 0)
		return r;
	*ret_copier = TAKE(c);
	return 0;
}

struct copier *copier_free(struct copier *copier)
{
	struct object *object;

	if (!copier)
		return NULL;

	stop_thread(copier);
	while ((object = queue_pop(&copier->waiting)) || (object = queue_pop(&copier->finished)))
		(void)object_unref(object);
	(void)fd_close(copier->event_fd);
	(void)pthread_cond_destroy(&copier->change);
	(void)pthread_mutex_destroy(&copier->lock);
	free(copier);
	return NULL;
}

void copier_set_limits(struct copier *copier, const struct spool_limits *limits)
{
	(void)pthread_mutex_lock(&copier->lock);
	copier->limits = *limits;
	(void)pthread_mutex_unlock(&copier->lock);
}

void copier_set_claims(struct copier *copier, const struct claims *claims)
{
	copier->claims = *claims;
}

void copier_add(struct copier *copier, struct object *object, const struct record_mmap2 *mmap)
{
	int r;

	object->ahead = 0;
	object->mapped = *mmap; /* which may be the same */
	object->mapped.name = object->path;
	object->original = original_look(mmap);
	r = original_open(&copier->claims, mmap, &object->fd, &object->original);

	(void)pthread_mutex_lock(&copier->lock);
	object->error = r;
	object->done = r < 0;
	if (r == 0 && copier->n_open >= OPEN_MAX)
		object->fd = fd_close(object->fd);
	copier->n_open += object->fd >= 0;
	queue_push(r < 0 ? &copier->finished : &copier->waiting, object_ref(object));
	(void)pthread_cond_broadcast(&copier->change);
	(void)pthread_mutex_unlock(&copier->lock);
	if (r < 0)
		(void)eventfd_write(copier->event_fd, 1);
}

bool copier_was_refused(struct copier *copier, const struct object *object)
{
	bool refused;

	(void)pthread_mutex_lock(&copier->lock);
	refused = object->done && object->error == -EDQUOT;
	(void)pthread_mutex_unlock(&copier->lock);
	return refused;
}

bool copier_has_failed(struct copier *copier, const struct object *object)
{
	bool failed;

	(void)pthread_mutex_lock(&copier->lock);
	failed = object->done && object->error < 0;
	(void)pthread_mutex_unlock(&copier->lock);
	return failed;
}

void copier_measure(struct copier *copier)
{
	uint64_t ahead[N_OWNERS] = {};

	(void)pthread_mutex_lock(&copier->lock);
	if (copier->taking)
		ahead[copier->taking->original.uid % N_OWNERS] = copy_cost(copier->taking);
	for (struct object *o = copier->waiting.first; o; o = o->queued)
		o->ahead = ahead[o->original.uid % N_OWNERS] += copy_cost(o);
	(void)pthread_mutex_unlock(&copier->lock);
}

bool copier_is_near(struct copier *copier, const struct object *object)
{
	bool near;

	(void)pthread_mutex_lock(&copier->lock);
	near = object->done || object->original.uid == 0 || object->ahead <= COPIER_NEAR_MAX;
	(void)pthread_mutex_unlock(&copier->lock);
	return near;
}

int copier_wait(struct copier *copier, const struct object *object, const atomic_bool *cancel)
{
	struct timespec until;
	bool done;

	(void)pthread_mutex_lock(&copier->lock);
	while (!(done = object->done) && !cancel_asked(cancel)) {
		(void)clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += CANCEL_POLL_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		(void)pthread_cond_clockwait(&copier->change, &copier->lock, CLOCK_MONOTONIC,
					     &until);
	}
	(void)pthread_mutex_unlock(&copier->lock);
	return done ? 0 : -ECANCELED;
}

int copier_fd(const struct copier *copier)
{
	return copier->event_fd;
}

struct object *copier_next_finished(struct copier *copier)
{
	struct object *object;
	eventfd_t n;

	(void)eventfd_read(copier->event_fd, &n);
	(void)pthread_mutex_lock(&copier->lock);
	object = queue_pop(&copier->finished);
	(void)pthread_mutex_unlock(&copier->lock);
	return object;
}

/* A sweep. */
struct sweep {
	struct copier *copier;
	const struct copier_names *names;
};

static bool is_needed(const char *hash, void *userdata)
{
	const struct sweep *sweep = userdata;

	return sweep->names->needed(hash, sweep->names->userdata);
}

static void count_alone(const char *hash, uint64_t bytes, void *userdata)
{
	const struct sweep *sweep = userdata;

	share_take(&sweep->copier->share, sweep->names->owner(hash, sweep->names->userdata), bytes);
}

int copier_sweep(struct copier *copier, const struct copier_names *names)
{
	struct sweep sweep = { copier, names };
	int r;

	(void)pthread_mutex_lock(&copier->lock);
	share_restart(&copier->share);
	r = storedir_sweep(copier->store_fd, is_needed, count_alone, &sweep);
	(void)pthread_mutex_unlock(&copier->lock);
	return r;
}

void copier_get_share(struct copier *copier, struct share *ret_share, uint64_t *ret_max)
{
	(void)pthread_mutex_lock(&copier->lock);
	*ret_share = copier->share;
	*ret_max = copier->limits.max_use / COPIER_PART;
	(void)pthread_mutex_unlock(&copier->lock);
}

void copier_take_back(struct copier *copier, struct object *object)
{
	(void)pthread_mutex_lock(&copier->lock);
	share_count_taken_back(&copier->share, object->owner);
	object->error = -EDQUOT;
	object->sha256[0] = '\0';
	(void)pthread_mutex_unlock(&copier->lock);
}

uint64_t copier_alone(struct copier *copier, const struct object *object)
{
	uint64_t bytes;

	(void)pthread_mutex_lock(&copier->lock);
	bytes = object->done && object->error == 0
		    ? storedir_alone(copier->store_fd, object->sha256)
		    : 0;
	(void)pthread_mutex_unlock(&copier->lock);
	return bytes;
}
