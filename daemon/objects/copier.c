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
#include "daemon/collector/link.h"
#include "daemon/objects/object.h"
#include "daemon/proc/claimant.h"
#include "daemon/share/share.h"
#include "daemon/spool/spool.h"
#include "daemon/spool/storedir.h"
#include "util/cancel.h"

/* Number of originals for which the copier has a descriptor while they wait. If there are more,
 * they are looked for again when it is their turn. */
#define OPEN_MAX 256u

#define CANCEL_POLL_NS 50000000

/* Least number of bytes that a file counts, because copying even a small file takes a moment. */
#define COST_MIN (UINT64_C(256) << 10)

/* Number of owners of files that are distinguished. If there are more, some count as one. */
#define N_OWNERS 64u

/* Longest time for reading one original, while others wait: even a slow disk can read it. */
#define PATIENCE_MS        5000u
#define PATIENCE_MS_MIB    40u
#define PATIENCE_BYTES_MAX STOREDIR_FILE_MAX

/* If reading a file took longer, snapshots do not wait for other files of its owner for a while. */
#define HUNG_NS UINT64_C(30000000000)

/* Longest time to wait for a collector that is being started. If it does not come, the next object
 * does not wait for it. */
#define COLLECTOR_NS      UINT64_C(3000000000)
#define COLLECTOR_POLL_NS 50000000

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

	/* The thread's own. */
	struct collectorlink *link;
	bool gave_up; /* the last request found no collector */

	pthread_mutex_t lock; /* for what follows, and for the files in the store directory */
	pthread_cond_t change;
	atomic_bool stop; /* the copy that is being made stops, too */
	struct spool_limits limits;
	struct queue waiting, finished; /* which have a reference to each object */
	const struct object *taking;    /* the one that is being copied, or NULL */
	uint64_t served[N_OWNERS];      /* bytes copied since the queue was last empty */
	uint64_t hung[N_OWNERS];        /* when one of their files took too long, or 0 */
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

/* Return: whether to ask once more, until then, after the collector said @r: if there is none, one
 * may be starting. */
static bool ask_again(struct copier *c, int r, uint64_t until)
{
	if (r != -ENOTCONN) {
		c->gave_up = false;
		return false;
	}
	c->gave_up = c->gave_up || clock_ns(CLOCK_MONOTONIC) >= until;
	if (c->gave_up || cancel_asked(&c->stop))
		return false;
	(void)nanosleep(&(struct timespec){ .tv_nsec = COLLECTOR_POLL_NS }, NULL);
	return true;
}

static int ask_collector(struct copier *c, struct collector_request *request, const int *fds,
			 struct collector_answer *ret_answer)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + COLLECTOR_NS;
	int fd = -1, r;

	do
		r = collectorlink_ask(c->link, request, fds, &c->stop, ret_answer, &fd);
	while (ask_again(c, r, until));
	/* None was asked for. */
	if (r == 0)
		(void)fd_close(fd);
	return r;
}

static int find_verified(struct copier *c, struct object *object, int *ret_fd)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + COLLECTOR_NS;
	struct original original;
	int r;

	do
		r = original_find(c->link, ORIGINAL_VERIFY, &c->claims, &object->mapped, &c->stop,
				  ret_fd, &original);
	while (ask_again(c, r, until));
	return r;
}

/* By what is known of the file before it is read. */
static uint32_t patience_ms(uint64_t size)
{
	const uint64_t most = size < PATIENCE_BYTES_MAX ? size : PATIENCE_BYTES_MAX;

	return PATIENCE_MS + (uint32_t)(most >> 20) * PATIENCE_MS_MIB;
}

/* A record could name a process of another user, whose files would then wait. */
static uint32_t asker(const struct copier *c, const struct object *object)
{
	const uint32_t pid = object->mapped.pid;

	return pid <= INT32_MAX &&
		       (!c->claims.is_writer || c->claims.is_writer(c->claims.userdata, pid))
		   ? pid
		   : 0;
}

/* Have the file read for which @fd stands. */
static int read_original(struct copier *c, const struct object *object, int fd,
			 struct collector_answer *ret_answer)
{
	const int fds[COLLECTOR_FDS_MAX] = { fd, -1 };
	struct collector_request request = {
		.verb = COLLECTOR_HASH,
		.timeout_ms = patience_ms(object->original.found ? object->original.size
								 : PATIENCE_BYTES_MAX),
		.pid = asker(c, object),
		.size_max = STOREDIR_FILE_MAX,
		.build_id = object->claimed,
		.path = "",
	};

	return ask_collector(c, &request, fds, ret_answer);
}

struct copying {
	struct copier *copier;
	const struct object *object;
	int fd;
	uint64_t size;
};

/* Have the bytes written to the copy. The file may grow meanwhile. */
static int copy_bytes(void *userdata, int to)
{
	const struct copying *copying = userdata;
	const int fds[COLLECTOR_FDS_MAX] = { copying->fd, to };
	struct collector_request request = {
		.verb = COLLECTOR_COPY,
		.timeout_ms = patience_ms(copying->size),
		.pid = asker(copying->copier, copying->object),
		.size_max = copying->size,
		.path = "",
	};
	struct collector_answer answer;

	return ask_collector(copying->copier, &request, fds, &answer);
}

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
	struct original file; /* as it was before it was read */
	struct buildid build_id;
	char hash[SHA256_HEX_SIZE];
	bool copied; /* there is a copy without a name; if not, the store has the content already */
	uint64_t taken; /* bytes that the copy takes on the disk */
};

/* Get the limits, if a copy of the original may be made. Return: 0 or -EDQUOT. */
static int ask_for_room(struct copier *c, const struct collector_answer *original,
			struct spool_limits *ret_limits)
{
	const uint64_t bytes = original->disk_bytes;
	uint64_t max;
	bool allowed;

	(void)pthread_mutex_lock(&c->lock);
	*ret_limits = c->limits;
	max = c->limits.max_use / COPIER_PART;
	allowed = share_allows(&c->share, max, original->uid, bytes);
	if (!allowed)
		share_refuse(&c->share, max, original->uid, bytes);
	(void)pthread_mutex_unlock(&c->lock);
	return allowed ? 0 : -EDQUOT;
}

/* Copy the content of the file for which @fd stands, unless the store has it already. */
static int copy_in(struct copier *c, const struct object *object, int fd,
		   struct content *ret_content)
{
	_cleanup_(fd_closep) int copy = -1;
	struct collector_answer answer;
	struct content content = {};
	struct spool_limits limits;
	struct copying copying;
	int r;

	r = read_original(c, object, fd, &answer);
	if (r < 0)
		return r;
	content.file = original_of(&answer);
	content.build_id = answer.build_id;
	memcpy(content.hash, answer.sha256, sizeof(content.hash));
	if (content.hash[0] == '\0' || !storedir_has(c->store_fd, content.hash)) {
		copying = (struct copying){ c, object, fd, answer.size };
		r = ask_for_room(c, &answer, &limits);
		if (r == 0)
			r = storedir_make(c->store_fd, &limits, answer.disk_bytes, copy_bytes,
					  &copying, &copy, content.hash, &content.taken);
		content.copied = r == 0;
		/* The original may have been written to while it was copied. */
		if (r == 0)
			r = check_build_id(copy, &object->claimed, &content.build_id);
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
		share_take(&c->share, content->file.uid, content->taken);
	return r;
}

/* Copy the object's original, for which @fd stands, which may be -1. The copy gets its name only
 * when the lock is held. */
static void take_in(struct copier *c, struct object *object, int fd)
{
	_cleanup_(fd_closep) int original = fd;
	struct content content = {};
	int r = -ESTALE;

	if (original >= 0)
		r = copy_in(c, object, original, &content);
	/* The file was not opened until now, nor its build-id compared: the right one may be at
	 * another place. */
	if (r == -ESTALE || r == -EACCES || r == -EPERM) {
		original = fd_close(original);
		r = find_verified(c, object, &original);
		if (r == 0)
			r = copy_in(c, object, original, &content);
	}
	for (unsigned i = 0;; i++) {
		if (r == 0 && i > 0)
			r = copy_in(c, object, original, &content);
		(void)pthread_mutex_lock(&c->lock);
		if (r == 0)
			r = name_copy(c, &content);
		if (r != -EAGAIN || i == TRIES)
			break;
		(void)pthread_mutex_unlock(&c->lock);
		r = 0;
	}
	original = fd_close(original);
	if (r == 0) {
		object->build_id = content.build_id;
		object->owner = content.file.uid;
		object->copied = content.file;
		memcpy(object->sha256, content.hash, sizeof(content.hash));
	}
	if (r == -ETIMEDOUT)
		c->hung[object->original.uid % N_OWNERS] = clock_ns(CLOCK_MONOTONIC);
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

int copier_new(int store_fd, const struct spool_limits *limits, const char *runtime_dir,
	       struct copier **ret_copier)
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
	r = collectorlink_new(runtime_dir, false, &c->link);
	if (r < 0)
		return r;
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
	(void)collectorlink_free(copier->link);
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

void copier_add(struct copier *copier, struct object *object, int fd, int error)
{
	object->ahead = 0;
	object->fd = fd;

	(void)pthread_mutex_lock(&copier->lock);
	object->error = error;
	object->done = error < 0;
	if (error == 0 && copier->n_open >= OPEN_MAX)
		object->fd = fd_close(object->fd);
	copier->n_open += object->fd >= 0;
	queue_push(error < 0 ? &copier->finished : &copier->waiting, object_ref(object));
	(void)pthread_cond_broadcast(&copier->change);
	(void)pthread_mutex_unlock(&copier->lock);
	if (error < 0)
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

/* Return: whether a file of that owner took too long lately. The lock is held. */
static bool has_hung(const struct copier *c, uid_t owner)
{
	const uint64_t at = c->hung[owner % N_OWNERS];

	return at > 0 && clock_ns(CLOCK_MONOTONIC) - at < HUNG_NS;
}

bool copier_is_near(struct copier *copier, const struct object *object)
{
	const uid_t owner = object->original.uid;
	bool near;

	(void)pthread_mutex_lock(&copier->lock);
	near = object->done || owner == 0 ||
	       (object->ahead <= COPIER_NEAR_MAX && !has_hung(copier, owner));
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
