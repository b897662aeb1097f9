/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/copier.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>

#include "base/clock.h"
#include "daemon/helper/collector/link.h"
#include "daemon/objects/asker.h"
#include "daemon/objects/copylane.h"
#include "daemon/objects/copyqueue.h"
#include "daemon/objects/object.h"
#include "daemon/share/share.h"
#include "daemon/spool/spool.h"
#include "daemon/spool/storedir.h"
#include "util/cancel.h"
#include "util/map.h"
#include "util/mutex.h"
#include "util/quietthread.h"

/* Number of originals for which the copier has a descriptor while they wait. If there are more,
 * they are looked for again when it is their turn. */
#define OPEN_MAX 256u

#define CANCEL_POLL_NS 50000000

/* How often a copy is tried again if it was removed just when it was found. */
#define TRIES 3u

/* A thread that copies one object after the other. */
struct worker {
	struct copier *copier;
	unsigned slot; /* of its copies without a name; and its place in the queue */
	pthread_t thread;
	bool has_thread;
	struct copylane lane;

	/* The copier's lock is for these. */
	uid_t reserved_by; /* who pays for what is being copied */
	uint64_t reserved; /* bytes that are in their share until the copy has a name */
};

struct copier {
	int store_fd; /* borrowed */
	int event_fd;
	struct askers askers; /* the event loop's */
	struct worker workers[COPYQUEUE_LANES];

	pthread_mutex_t lock;  /* for what follows, and for the files in the store directory */
	pthread_cond_t work;   /* there is an object that a lane may take */
	pthread_cond_t change; /* an object is finished, or asked for by another */
	atomic_bool stop;      /* the copy that is being made stops, too */
	struct spool_limits limits;
	uint64_t room; /* that snapshots leave for copies */
	struct copyqueue queue;
	struct copylist finished;
	unsigned n_open;
	struct share share; /* bytes on the disk of copies to which no snapshot linked at the last
			     * sweep, by those who pay for them */
};

/* --- the threads ----------------------------------------------------------------------------- */

struct copying {
	struct copylane *lane;
	const struct object *object;
	int fd;
	uint64_t size;
};

/* Have the bytes written to the copy. */
static int copy_bytes(void *userdata, int to)
{
	const struct copying *copying = userdata;

	return copylane_copy(copying->lane, copying->object, copying->fd, copying->size, to);
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

/* The lock is held. */
static void give_back_room(struct worker *w)
{
	share_give(&w->copier->share, w->reserved_by, w->reserved);
	w->reserved = 0;
}

/* Return: in whose share a copy of the object's original is, which belongs to @owner. The lock is
 * held. */
static uid_t find_payer(const struct object *object, uid_t owner)
{
	return owner != 0 || object->is_shared || asker_is_unknown(object->asker)
		   ? owner
		   : (uid_t)object->asker;
}

/* Return: the bytes that copies to which no snapshot links may take. The lock is held. */
static uint64_t copies_max(const struct copier *c)
{
	const uint64_t part = c->limits.max_use / COPIER_PART;

	return part < c->room ? part : c->room;
}

/* Get the limits, and room in the share of who pays, if a copy of the original may be made. Return:
 * 0 or -EDQUOT. */
static int ask_for_room(struct worker *w, const struct object *object,
			const struct collector_answer *original, struct spool_limits *ret_limits)
{
	struct copier *c = w->copier;
	const uint64_t bytes = original->disk_bytes;
	uint64_t max;
	bool allowed;
	uid_t payer;
	HOLD(&c->lock);

	give_back_room(w); /* of an attempt that failed */
	*ret_limits = c->limits;
	max = copies_max(c);
	payer = find_payer(object, original->uid);
	allowed = share_allows(&c->share, max, payer, bytes);
	if (allowed) {
		share_take(&c->share, payer, bytes);
		w->reserved_by = payer;
		w->reserved = bytes;
	} else {
		share_refuse(&c->share, max, payer, bytes);
	}
	return allowed ? 0 : -EDQUOT;
}

/* Copy the content of the file for which @fd stands, unless the store has it already. The hash is
 * known, too, if there is no room for the copy. */
static int copy_in(struct worker *w, const struct object *object, int fd,
		   struct content *ret_content)
{
	struct copier *c = w->copier;
	_cleanup_(fd_closep) int copy = -1;
	struct collector_answer answer;
	struct content content = {};
	struct spool_limits limits;
	struct copying copying;
	int r;

	r = copylane_hash(&w->lane, object, fd, &answer);
	if (r < 0)
		return r;
	content.file = original_of(&answer);
	content.build_id = answer.build_id;
	memcpy(content.hash, answer.sha256, sizeof(content.hash));
	if (content.hash[0] == '\0' || !storedir_has(c->store_fd, content.hash)) {
		copying = (struct copying){ &w->lane, object, fd, answer.size };
		r = ask_for_room(w, object, &answer, &limits);
		if (r == 0)
			r = storedir_make(c->store_fd, w->slot, &limits, answer.disk_bytes,
					  copy_bytes, &copying, &copy, content.hash,
					  &content.taken);
		content.copied = r == 0;
		/* The original may have been written to while it was copied. */
		if (r == 0)
			r = check_build_id(copy, &object->claimed, &content.build_id);
		if (r < 0)
			storedir_drop(c->store_fd, w->slot);
	}
	if (r == 0)
		*ret_content = content;
	else if (r == -ENOSPC || r == -EDQUOT)
		memcpy(ret_content->hash, answer.sha256, sizeof(answer.sha256));
	return r;
}

/* Give the copy its name. The lock is held. Return: 0; -EAGAIN if there is no copy because the
 * store had the content, but has removed it since; or another negative errno. */
static int name_copy(struct worker *w, const struct object *object, const struct content *content)
{
	struct copier *c = w->copier;
	int r;

	if (storedir_has(c->store_fd, content->hash)) {
		if (content->copied)
			storedir_drop(c->store_fd, w->slot);
		return 0;
	}
	if (!content->copied)
		return -EAGAIN;
	r = storedir_name(c->store_fd, w->slot, content->hash);
	if (r == 0)
		share_take(&c->share, find_payer(object, content->file.uid), content->taken);
	return r;
}

/* Count that the object could not be copied. A copy that takes too long counts for the user whose
 * process mapped the file, not for its owner. The lock is held. */
static void count_failed(struct copier *c, const struct object *object, int error)
{
	const bool is_asker_known = !asker_is_unknown(object->asker);

	switch (-error) {
	case 0:
	case ECANCELED:
	case EDQUOT: /* has been counted */
	case ENOMEM:
	case ENOTCONN:
	case ENOEXEC: /* it is nothing to copy */
		return;
	case ENOSPC:
		share_count_refused(&c->share, object->original.uid, SHARE_REASON_DISK, 1);
		return;
	case ETIMEDOUT:
		if (is_asker_known)
			share_count_refused(&c->share, (uid_t)object->asker, SHARE_REASON_TIME, 1);
		return;
	default:
		if (object->original.found || is_asker_known)
			share_count_refused(&c->share,
					    object->original.found ? object->original.uid
								   : (uid_t)object->asker,
					    SHARE_REASON_UNREADABLE, 1);
	}
}

/* Copy the object's original, for which @fd stands, which may be -1. The copy gets its name only
 * when the lock is held. */
static void take_in(struct worker *w, struct object *object, int fd)
{
	struct copier *c = w->copier;
	_cleanup_(fd_closep) int original = fd;
	struct content content = {};
	int r = -ESTALE;

	if (original >= 0)
		r = copy_in(w, object, original, &content);
	/* The file was not opened until now, nor its build-id compared: the right one may be at
	 * another place. */
	if (r == -ESTALE || r == -EACCES || r == -EPERM) {
		original = fd_close(original);
		r = copylane_find(&w->lane, object, &original);
		if (r == 0)
			r = copy_in(w, object, original, &content);
	}
	for (unsigned i = 0;; i++) {
		if (r == 0 && i > 0)
			r = copy_in(w, object, original, &content);
		(void)pthread_mutex_lock(&c->lock);
		give_back_room(w);
		if (r == 0)
			r = name_copy(w, object, &content);
		if (r != -EAGAIN || i == TRIES)
			break;
		(void)pthread_mutex_unlock(&c->lock);
		r = 0;
	}
	original = fd_close(original);
	if (r == 0) {
		object->build_id = content.build_id;
		object->payer = find_payer(object, content.file.uid);
		object->copied = content.file;
	}
	memcpy(object->sha256, content.hash, sizeof(content.hash));
	if (r == -ETIMEDOUT)
		copyqueue_note_hung(&c->queue, object->asker);
	count_failed(c, object, r);
	object->error = r;
	object->done = true;
	copylist_push(&c->finished, object);
	if (copyqueue_leave(&c->queue, w->slot))
		(void)pthread_cond_signal(&c->work);
	(void)pthread_cond_broadcast(&c->change);
	(void)pthread_mutex_unlock(&c->lock);
	(void)eventfd_write(c->event_fd, 1);
}

/* Wait for an object. The lock is held. Return: NULL once the copier stops. */
static struct object *next_object(struct worker *w)
{
	struct copier *c = w->copier;
	struct object *object = NULL;

	while (!c->stop && !(object = copyqueue_take(&c->queue, w->slot)))
		(void)pthread_cond_wait(&c->work, &c->lock);
	return object;
}

static void *run_worker(void *userdata)
{
	struct worker *w = userdata;
	struct copier *c = w->copier;
	struct object *object;
	int fd;

	for (;;) {
		(void)pthread_mutex_lock(&c->lock);
		object = next_object(w);
		if (object) {
			copylane_begin(&w->lane);
			fd = TAKE_FD(object->fd);
			c->n_open -= fd >= 0;
		}
		(void)pthread_mutex_unlock(&c->lock);
		if (!object)
			return NULL;
		take_in(w, object, fd);
	}
}

static int start_worker(struct worker *w, const char *runtime_dir)
{
	int r;

	r = copylane_init(&w->lane, &w->copier->stop, runtime_dir);
	if (r < 0)
		return r;
	r = quietthread_start(&w->thread, NULL, run_worker, w);
	w->has_thread = r == 0;
	return r;
}

static void stop_workers(struct copier *c)
{
	(void)pthread_mutex_lock(&c->lock);
	atomic_store(&c->stop, true);
	(void)pthread_cond_broadcast(&c->work);
	(void)pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < COPYQUEUE_LANES; i++)
		if (c->workers[i].has_thread)
			(void)pthread_join(c->workers[i].thread, NULL);
}

/* --- who has it copy -------------------------------------------------------------------------- */

/* Find file systems whose speed is not up to a user: those of the system and of the store. */
static void find_disks(const struct copier *c, uint64_t disks[static COPYQUEUE_DISKS])
{
	struct stat st;

	static_assert(COPYQUEUE_DISKS == 3, "all are set");
	disks[0] = stat("/", &st) == 0 ? st.st_dev : 0;
	disks[1] = stat("/usr", &st) == 0 ? st.st_dev : 0;
	disks[2] = fstat(c->store_fd, &st) == 0 ? st.st_dev : 0;
}

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
		.room = UINT64_MAX,
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.work = PTHREAD_COND_INITIALIZER,
		.change = PTHREAD_COND_INITIALIZER,
	};
	find_disks(c, c->queue.disks);
	for (unsigned i = 0; i < COPYQUEUE_LANES; i++) {
		c->workers[i] = (struct worker){ .copier = c, .slot = i, .lane = COPYLANE_NONE };
		c->queue.lanes[i] = &c->workers[i].lane;
	}
	c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->event_fd < 0)
		return -errno;
	for (unsigned i = 0; i < COPYQUEUE_LANES; i++) {
		storedir_drop(store_fd, i);
		r = start_worker(&c->workers[i], runtime_dir);
		if (r < 0)
			return r;
	}
	*ret_copier = TAKE(c);
	return 0;
}

struct copier *copier_free(struct copier *copier)
{
	struct object *object;

	if (!copier)
		return NULL;

	stop_workers(copier);
	while ((object = copyqueue_remove_any(&copier->queue)) ||
	       (object = copylist_pop(&copier->finished)))
		(void)object_unref(object);
	for (unsigned i = 0; i < COPYQUEUE_LANES; i++)
		copylane_deinit(&copier->workers[i].lane);

	askers_deinit(&copier->askers);
	(void)fd_close(copier->event_fd);
	(void)pthread_cond_destroy(&copier->work);
	(void)pthread_cond_destroy(&copier->change);
	(void)pthread_mutex_destroy(&copier->lock);
	free(copier);
	return NULL;
}

void copier_set_limits(struct copier *copier, const struct spool_limits *limits)
{
	HOLD(&copier->lock);

	copier->limits = *limits;
}

bool copier_set_room(struct copier *copier, uint64_t bytes)
{
	bool more;
	HOLD(&copier->lock);

	more = bytes > copier->room;
	copier->room = bytes;
	return more;
}

void copier_set_claimed(struct copier *copier)
{
	HOLD(&copier->lock);

	for (unsigned i = 0; i < COPYQUEUE_LANES; i++)
		copier->workers[i].lane.is_claimed = true;
}

/* Have a lane look for something to do if it may take the object. The lock is held. */
static void wake_lane(struct copier *c, const struct object *object)
{
	if (copyqueue_may_take(&c->queue, object))
		(void)pthread_cond_signal(&c->work);
}

void copier_add(struct copier *copier, struct object *object, int fd, int error)
{
	object->ahead = 0;
	object->asker = asker_find(&copier->askers, object->mapped.pid, object->user,
				   object->original.dev, object->path);
	object->fd = fd;

	(void)pthread_mutex_lock(&copier->lock);
	count_failed(copier, object, error);
	object->error = error;
	object->done = error < 0;
	if (error == 0 && copier->n_open >= OPEN_MAX)
		object->fd = fd_close(object->fd);
	copier->n_open += object->fd >= 0;
	if (error < 0) {
		copylist_push(&copier->finished, object_ref(object));
	} else {
		copyqueue_add(&copier->queue, object_ref(object));
		wake_lane(copier, object);
	}
	(void)pthread_mutex_unlock(&copier->lock);
	if (error < 0)
		(void)eventfd_write(copier->event_fd, 1);
}

int copier_result(struct copier *copier, const struct object *object)
{
	HOLD(&copier->lock);

	return object->done ? object->error : COPIER_WAITS;
}

void copier_measure(struct copier *copier)
{
	HOLD(&copier->lock);

	copyqueue_measure(&copier->queue);
}

const char *copier_why_not_near(struct copier *copier, const struct object *object)
{
	HOLD(&copier->lock);

	return copyqueue_why_not_near(&copier->queue, object);
}

void copier_ask_too(struct copier *copier, struct object *object, const struct record_mmap2 *mmap,
		    uid_t user)
{
	bool waits, is_paid;
	uint64_t asker;

	(void)pthread_mutex_lock(&copier->lock);
	waits = copyqueue_waits(&copier->queue, object);
	is_paid = !object->is_shared && object->original.uid == 0 && object->asker != ASKER_ROOT;
	(void)pthread_mutex_unlock(&copier->lock);
	if (!waits && !is_paid)
		return;
	asker = asker_find(&copier->askers, mmap->pid, user, object->original.dev, object->path);
	(void)pthread_mutex_lock(&copier->lock);
	if (is_paid && asker != object->asker && !asker_is_unknown(asker)) {
		object->is_shared = true;
		object->payer = object->original.uid;
	}
	if (copyqueue_waits(&copier->queue, object) &&
	    copyqueue_passes_to(&copier->queue, object, asker)) {
		copyqueue_pass_to(&copier->queue, object, asker);
		object->mapped = *mmap;
		object->mapped.name = object->path;
		object->user = user;
		wake_lane(copier, object);
		(void)pthread_cond_broadcast(&copier->change);
	}
	(void)pthread_mutex_unlock(&copier->lock);
}

/* Wait for a change, for a short time. The lock is held. */
static void await_change(struct copier *c, const struct object *object)
{
	const uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	const struct timespec until = clock_timespec(begun + CANCEL_POLL_NS);

	(void)pthread_cond_clockwait(&c->change, &c->lock, CLOCK_MONOTONIC, &until);
	copyqueue_note_wait(&c->queue, object, clock_ns(CLOCK_MONOTONIC) - begun);
}

int copier_wait(struct copier *copier, const struct object *object, const atomic_bool *cancel)
{
	bool done, stalled = false, overdue = false;
	HOLD(&copier->lock);

	while (!(done = object->done) &&
	       !(stalled = copyqueue_is_stalled(&copier->queue, object)) &&
	       !(overdue = copyqueue_is_overdue(&copier->queue, object)) && !cancel_asked(cancel))
		await_change(copier, object);
	if (stalled || overdue)
		copyqueue_give_up(&copier->queue, object);
	return done ? 0 : stalled || overdue ? COPIER_STALLED : -ECANCELED;
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
	object = copylist_pop(&copier->finished);
	(void)pthread_mutex_unlock(&copier->lock);
	return object;
}

/* A sweep. */
struct sweep {
	struct copier *copier;
	const struct copier_names *names;
};

/* Called for each copy that is there. */
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
	struct sweep sweep = { .copier = copier, .names = names };
	int r;
	HOLD(&copier->lock);

	share_restart(&copier->share);
	r = storedir_sweep(copier->store_fd, is_needed, count_alone, &sweep);
	for (unsigned i = 0; i < COPYQUEUE_LANES; i++)
		share_take(&copier->share, copier->workers[i].reserved_by,
			   copier->workers[i].reserved);
	return r;
}

void copier_get_share(struct copier *copier, struct share *ret_share, uint64_t *ret_max)
{
	HOLD(&copier->lock);

	*ret_share = copier->share;
	*ret_max = copies_max(copier);
}

void copier_take_back(struct copier *copier, struct object *object)
{
	HOLD(&copier->lock);

	share_count_taken_back(&copier->share, object->payer);
	object->error = -EDQUOT;
}

uint64_t copier_bytes(struct copier *copier, const struct object *object, uid_t *ret_payer)
{
	(void)pthread_mutex_lock(&copier->lock);
	*ret_payer = object->payer;
	(void)pthread_mutex_unlock(&copier->lock);
	return storedir_alone(copier->store_fd, object->sha256);
}

void copier_count_left_out(struct copier *copier, uid_t payer)
{
	HOLD(&copier->lock);

	share_count_refused(&copier->share, payer, SHARE_REASON_SHARE, 1);
}

uint64_t copier_alone(struct copier *copier, const struct object *object)
{
	HOLD(&copier->lock);

	return object->done && object->error == 0 ? storedir_alone(copier->store_fd, object->sha256)
						  : 0;
}
