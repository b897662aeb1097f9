/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/copier.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/collector/link.h"
#include "daemon/objects/asker.h"
#include "daemon/objects/object.h"
#include "daemon/proc/claimant.h"
#include "daemon/share/share.h"
#include "daemon/spool/spool.h"
#include "daemon/spool/storedir.h"
#include "util/cancel.h"
#include "util/map.h"

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

/* A snapshot does not wait for a file of which nothing was read for so long. */
#define STALL_NS UINT64_C(800000000)

/* If reading a file took longer than its patience, or a snapshot has given it up, snapshots do not
 * wait for other files of the same asker for a while. */
#define HUNG_NS UINT64_C(30000000000)

/* Lanes work at a time: for root or for those whose users are not known, half of them; for each
 * user, one. */
#define LANES      STOREDIR_SLOTS
#define LANES_HALF (LANES / 2)

/* Longest time to wait for a collector that is being started. If it does not come, the next object
 * does not wait for it. */
#define COLLECTOR_NS      UINT64_C(3000000000)
#define COLLECTOR_POLL_NS 50000000

/* How often a copy is tried again if it was removed just when it was found. */
#define TRIES 3u

struct queue {
	struct object *first, *last;
};

/* A thread that copies one object after the other. */
struct lane {
	struct copier *copier;
	unsigned slot; /* of its copies without a name */
	pthread_t thread;
	bool has_thread;

	/* The thread's own. */
	struct collectorlink *link;
	bool gave_up; /* the last request found no collector */

	/* The copier's lock is for these. */
	const struct object *taking; /* the one that is being copied, or NULL */
	int hashed_fd;               /* where the collector says how much it has read */
	bool waits;                  /* for the collector, which waits for a disk or a server */
	int copy_fd;                 /* to which the copy is being written; or -1 */
	uid_t reserved_by;           /* the owner of what is being copied */
	uint64_t reserved;           /* bytes that are in his share until the copy has a name */
	uint64_t done;               /* bytes that were read and copied at the last look */
	uint64_t done_at;            /* since when there have been no more */
};

struct copier {
	int store_fd; /* borrowed */
	struct claims claims;
	int event_fd;
	struct lane lanes[LANES];

	pthread_mutex_t lock; /* for what follows, and for the files in the store directory */
	pthread_cond_t change;
	atomic_bool stop; /* the copy that is being made stops, too */
	struct spool_limits limits;
	struct queue waiting, finished; /* which have a reference to each object */
	uint64_t served[N_OWNERS];      /* bytes copied since the queue was last empty */
	uint64_t hung[N_OWNERS];        /* when a file of these askers was not read on, or 0 */
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

/* --- askers ---------------------------------------------------------------------------------- */

/* A record could name a process of another user, whose files would then wait. */
static uint32_t asking_pid(const struct copier *c, const struct record_mmap2 *mmap)
{
	const uint32_t pid = mmap->pid;

	return pid <= INT32_MAX &&
		       (!c->claims.is_writer || c->claims.is_writer(c->claims.userdata, pid))
		   ? pid
		   : 0;
}

static uint64_t *hung_of(struct copier *c, uint64_t asker)
{
	return &c->hung[map_hash(&asker, sizeof(asker)) % N_OWNERS];
}

/* Return: whether another lane may work for the one who asks for the object. The lock is held. */
static bool may_take(const struct copier *c, const struct object *object)
{
	const bool is_unknown = asker_is_unknown(object->asker);
	unsigned n_same = 0, n_unknown = 0;

	for (unsigned i = 0; i < LANES; i++) {
		const struct object *taking = c->lanes[i].taking;

		n_same += taking && taking->asker == object->asker;
		n_unknown += taking && asker_is_unknown(taking->asker);
	}
	return n_same < (object->asker == ASKER_ROOT ? LANES_HALF : 1) &&
	       (!is_unknown || n_unknown < LANES_HALF);
}

/* Remove the first object of the owner with the fewest copied bytes, of those that may be taken.
 * The lock is held. */
static struct object *pop_waiting(struct copier *c)
{
	struct object *before_best = NULL, *best = NULL, *before = NULL;

	for (struct object *o = c->waiting.first; o; before = o, o = o->queued)
		if ((!best || c->served[o->original.uid % N_OWNERS] <
				  c->served[best->original.uid % N_OWNERS]) &&
		    may_take(c, o)) {
			before_best = before;
			best = o;
		}
	if (!best)
		return NULL;
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

/* --- the threads ----------------------------------------------------------------------------- */

/* @waits: whether the lane waits for the collector, from now on */
static void set_waits(struct lane *l, bool waits, int copy_fd)
{
	(void)pthread_mutex_lock(&l->copier->lock);
	l->waits = waits;
	l->copy_fd = copy_fd;
	l->done_at = clock_ns(CLOCK_MONOTONIC);
	(void)pthread_mutex_unlock(&l->copier->lock);
}

/* Return: whether to ask once more, until then, after the collector said @r: if there is none, one
 * may be starting. */
static bool ask_again(struct lane *l, int r, uint64_t until)
{
	if (r != -ENOTCONN) {
		l->gave_up = false;
		return false;
	}
	l->gave_up = l->gave_up || clock_ns(CLOCK_MONOTONIC) >= until;
	if (l->gave_up || cancel_asked(&l->copier->stop))
		return false;
	/* No file is the cause. */
	set_waits(l, false, -1);
	(void)nanosleep(&(struct timespec){ .tv_nsec = COLLECTOR_POLL_NS }, NULL);
	return true;
}

static int ask_collector(struct lane *l, struct collector_request *request, const int *fds,
			 struct collector_answer *ret_answer)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + COLLECTOR_NS;
	int fd = -1, r;

	do {
		set_waits(l, true, request->verb == COLLECTOR_COPY ? fds[1] : -1);
		r = collectorlink_ask(l->link, request, fds, &l->copier->stop, ret_answer, &fd);
	} while (ask_again(l, r, until));
	set_waits(l, false, -1);
	/* None was asked for. */
	if (r == 0)
		(void)fd_close(fd);
	return r;
}

static int find_verified(struct lane *l, struct object *object, int *ret_fd)
{
	const uint64_t until = clock_ns(CLOCK_MONOTONIC) + COLLECTOR_NS;
	struct original original;
	int r;

	do {
		set_waits(l, true, -1);
		r = original_find(l->link, ORIGINAL_VERIFY, &l->copier->claims, &object->mapped,
				  &l->copier->stop, ret_fd, &original);
	} while (ask_again(l, r, until));
	set_waits(l, false, -1);
	return r;
}

/* By what is known of the file before it is read. */
static uint32_t patience_ms(uint64_t size)
{
	const uint64_t most = size < PATIENCE_BYTES_MAX ? size : PATIENCE_BYTES_MAX;

	return PATIENCE_MS + (uint32_t)(most >> 20) * PATIENCE_MS_MIB;
}

/* Have the file read for which @fd stands. */
static int read_original(struct lane *l, const struct object *object, int fd,
			 struct collector_answer *ret_answer)
{
	const int fds[COLLECTOR_FDS_MAX] = { fd, l->hashed_fd };
	struct collector_request request = {
		.verb = COLLECTOR_HASH,
		.timeout_ms = patience_ms(object->original.found ? object->original.size
								 : PATIENCE_BYTES_MAX),
		.pid = asking_pid(l->copier, &object->mapped),
		.size_max = STOREDIR_FILE_MAX,
		.build_id = object->claimed,
		.path = "",
	};

	return ask_collector(l, &request, fds, ret_answer);
}

struct copying {
	struct lane *lane;
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
		.pid = asking_pid(copying->lane->copier, &copying->object->mapped),
		.size_max = copying->size,
		.path = "",
	};
	struct collector_answer answer;

	return ask_collector(copying->lane, &request, fds, &answer);
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
static void give_back_room(struct lane *l)
{
	share_give(&l->copier->share, l->reserved_by, l->reserved);
	l->reserved = 0;
}

/* Get the limits, and room in the owner's share, if a copy of the original may be made. Return: 0
 * or -EDQUOT. */
static int ask_for_room(struct lane *l, const struct collector_answer *original,
			struct spool_limits *ret_limits)
{
	struct copier *c = l->copier;
	const uint64_t bytes = original->disk_bytes;
	uint64_t max;
	bool allowed;

	(void)pthread_mutex_lock(&c->lock);
	give_back_room(l); /* of an attempt that failed */
	*ret_limits = c->limits;
	max = c->limits.max_use / COPIER_PART;
	allowed = share_allows(&c->share, max, original->uid, bytes);
	if (allowed) {
		share_take(&c->share, original->uid, bytes);
		l->reserved_by = original->uid;
		l->reserved = bytes;
	} else {
		share_refuse(&c->share, max, original->uid, bytes);
	}
	(void)pthread_mutex_unlock(&c->lock);
	return allowed ? 0 : -EDQUOT;
}

/* Copy the content of the file for which @fd stands, unless the store has it already. */
static int copy_in(struct lane *l, const struct object *object, int fd, struct content *ret_content)
{
	struct copier *c = l->copier;
	_cleanup_(fd_closep) int copy = -1;
	struct collector_answer answer;
	struct content content = {};
	struct spool_limits limits;
	struct copying copying;
	int r;

	r = read_original(l, object, fd, &answer);
	if (r < 0)
		return r;
	content.file = original_of(&answer);
	content.build_id = answer.build_id;
	memcpy(content.hash, answer.sha256, sizeof(content.hash));
	if (content.hash[0] == '\0' || !storedir_has(c->store_fd, content.hash)) {
		copying = (struct copying){ l, object, fd, answer.size };
		r = ask_for_room(l, &answer, &limits);
		if (r == 0)
			r = storedir_make(c->store_fd, l->slot, &limits, answer.disk_bytes,
					  copy_bytes, &copying, &copy, content.hash,
					  &content.taken);
		content.copied = r == 0;
		/* The original may have been written to while it was copied. */
		if (r == 0)
			r = check_build_id(copy, &object->claimed, &content.build_id);
		if (r < 0)
			storedir_drop(c->store_fd, l->slot);
	}
	if (r == 0)
		*ret_content = content;
	return r;
}

/* Give the copy its name. The lock is held. Return: 0; -EAGAIN if there is no copy because the
 * store had the content, but has removed it since; or another negative errno. */
static int name_copy(struct lane *l, const struct content *content)
{
	struct copier *c = l->copier;
	int r;

	if (storedir_has(c->store_fd, content->hash)) {
		if (content->copied)
			storedir_drop(c->store_fd, l->slot);
		return 0;
	}
	if (!content->copied)
		return -EAGAIN;
	r = storedir_name(c->store_fd, l->slot, content->hash);
	if (r == 0)
		share_take(&c->share, content->file.uid, content->taken);
	return r;
}

/* Copy the object's original, for which @fd stands, which may be -1. The copy gets its name only
 * when the lock is held. */
static void take_in(struct lane *l, struct object *object, int fd)
{
	struct copier *c = l->copier;
	_cleanup_(fd_closep) int original = fd;
	struct content content = {};
	int r = -ESTALE;

	if (original >= 0)
		r = copy_in(l, object, original, &content);
	/* The file was not opened until now, nor its build-id compared: the right one may be at
	 * another place. */
	if (r == -ESTALE || r == -EACCES || r == -EPERM) {
		original = fd_close(original);
		r = find_verified(l, object, &original);
		if (r == 0)
			r = copy_in(l, object, original, &content);
	}
	for (unsigned i = 0;; i++) {
		if (r == 0 && i > 0)
			r = copy_in(l, object, original, &content);
		(void)pthread_mutex_lock(&c->lock);
		give_back_room(l);
		if (r == 0)
			r = name_copy(l, &content);
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
		*hung_of(c, object->asker) = clock_ns(CLOCK_MONOTONIC);
	object->error = r;
	object->done = true;
	queue_push(&c->finished, object);
	l->taking = NULL;
	(void)pthread_cond_broadcast(&c->change);
	(void)pthread_mutex_unlock(&c->lock);
	(void)eventfd_write(c->event_fd, 1);
}

/* Wait for an object. The lock is held. Return: NULL once the copier stops. */
static struct object *next_object(struct lane *l)
{
	struct copier *c = l->copier;
	struct object *object = NULL;

	while (!c->stop && !(object = pop_waiting(c)))
		(void)pthread_cond_wait(&c->change, &c->lock);
	return object;
}

static void *run_lane(void *userdata)
{
	const uint64_t nothing = 0;
	struct lane *l = userdata;
	struct copier *c = l->copier;
	struct object *object;
	int fd;

	for (;;) {
		(void)pthread_mutex_lock(&c->lock);
		object = next_object(l);
		l->taking = object;
		l->done = 0;
		l->done_at = clock_ns(CLOCK_MONOTONIC);
		(void)!pwrite(l->hashed_fd, &nothing, sizeof(nothing), 0);
		if (object) {
			fd = object->fd;
			object->fd = -1;
			c->n_open -= fd >= 0;
		}
		(void)pthread_mutex_unlock(&c->lock);
		if (!object)
			return NULL;
		take_in(l, object, fd);
	}
}

/* The event loop handles signals, so the threads block them. */
static int start_lane(struct lane *l, const char *runtime_dir)
{
	sigset_t all, before;
	int r;

	l->hashed_fd = memfd_create("hashed", MFD_CLOEXEC);
	if (l->hashed_fd < 0)
		return -errno;
	r = collectorlink_new(runtime_dir, false, &l->link);
	if (r < 0)
		return r;
	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = -pthread_create(&l->thread, NULL, run_lane, l);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	l->has_thread = r == 0;
	return r;
}

static void stop_lanes(struct copier *c)
{
	(void)pthread_mutex_lock(&c->lock);
	atomic_store(&c->stop, true);
	(void)pthread_cond_broadcast(&c->change);
	(void)pthread_mutex_unlock(&c->lock);
	for (unsigned i = 0; i < LANES; i++)
		if (c->lanes[i].has_thread)
			(void)pthread_join(c->lanes[i].thread, NULL);
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
	for (unsigned i = 0; i < LANES; i++)
		c->lanes[i] =
		    (struct lane){ .copier = c, .slot = i, .hashed_fd = -1, .copy_fd = -1 };
	c->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->event_fd < 0)
		return -errno;
	for (unsigned i = 0; i < LANES; i++) {
		storedir_drop(store_fd, i);
		r = start_lane(&c->lanes[i], runtime_dir);
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

	stop_lanes(copier);
	while ((object = queue_pop(&copier->waiting)) || (object = queue_pop(&copier->finished)))
		(void)object_unref(object);
	for (unsigned i = 0; i < LANES; i++) {
		(void)collectorlink_free(copier->lanes[i].link);
		(void)fd_close(copier->lanes[i].hashed_fd);
	}
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
	object->asker =
	    asker_find(asking_pid(copier, &object->mapped), object->original.dev, object->path);
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
	for (unsigned i = 0; i < LANES; i++) {
		const struct object *taking = copier->lanes[i].taking;

		if (taking)
			ahead[taking->original.uid % N_OWNERS] += copy_cost(taking);
	}
	for (struct object *o = copier->waiting.first; o; o = o->queued)
		o->ahead = ahead[o->original.uid % N_OWNERS] += copy_cost(o);
	(void)pthread_mutex_unlock(&copier->lock);
}

/* Return: whether a file was not read on lately that the same one asked for. The lock is held. */
static bool has_hung(struct copier *c, uint64_t asker)
{
	const uint64_t at = *hung_of(c, asker);

	return asker != ASKER_ROOT && at > 0 && clock_ns(CLOCK_MONOTONIC) - at < HUNG_NS;
}

const char *copier_why_not_near(struct copier *copier, const struct object *object)
{
	const char *why = NULL;

	(void)pthread_mutex_lock(&copier->lock);
	if (!object->done && has_hung(copier, object->asker))
		why = COPIER_WHY_STALLED;
	else if (!object->done && object->original.uid != 0 && object->ahead > COPIER_NEAR_MAX)
		why = "more than 768 MiB of its owner's files wait to be copied";
	(void)pthread_mutex_unlock(&copier->lock);
	return why;
}

/* Return: since when nothing of the lane's object has been read or copied. The lock is held. */
static uint64_t stands_since(struct lane *l)
{
	uint64_t done = 0;
	struct stat st;

	if (pread(l->hashed_fd, &done, sizeof(done), 0) != (ssize_t)sizeof(done))
		done = 0;
	if (l->copy_fd >= 0 && fstat(l->copy_fd, &st) == 0)
		done += (uint64_t)st.st_size + (uint64_t)st.st_blocks;
	if (done != l->done) {
		l->done = done;
		l->done_at = clock_ns(CLOCK_MONOTONIC);
	}
	return l->done_at;
}

/* Which lanes are before an object: the one that has it; those that work for the same asker; those
 * for which its kind has no other lane; or all. */
enum before { BEFORE_ITSELF, BEFORE_ASKER, BEFORE_UNKNOWN, BEFORE_ALL, _BEFORES };

static bool is_before(const struct lane *l, const struct object *object, enum before before)
{
	const struct object *taking = l->taking;

	switch (before) {
	case BEFORE_ITSELF:
		return taking == object;
	case BEFORE_ASKER:
		return taking && taking->asker == object->asker;
	case BEFORE_UNKNOWN:
		return taking && asker_is_unknown(taking->asker) && asker_is_unknown(object->asker);
	default:
		return taking;
	}
}

/* Return: whether all lanes stand still that are before the object. The lock is held. */
static bool is_stalled(struct copier *c, const struct object *object)
{
	static const unsigned least[] = { 1, 1, LANES_HALF, LANES };
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (object->asker == ASKER_ROOT)
		return false;
	for (enum before before = BEFORE_ITSELF; before < _BEFORES; before++) {
		unsigned n = 0, n_standing = 0;

		for (unsigned i = 0; i < LANES; i++) {
			struct lane *l = &c->lanes[i];

			if (!is_before(l, object, before))
				continue;
			n++;
			n_standing += l->waits && now >= stands_since(l) + STALL_NS;
		}
		if (n >= least[before])
			return n_standing == n;
	}
	return false;
}

/* The lock is held. */
static bool still_waits(const struct copier *c, const struct object *object)
{
	bool waits = !object->done;

	for (unsigned i = 0; i < LANES; i++)
		waits = waits && c->lanes[i].taking != object;
	return waits;
}

void copier_ask_too(struct copier *copier, struct object *object, const struct record_mmap2 *mmap)
{
	uint64_t asker;
	bool waits;

	(void)pthread_mutex_lock(&copier->lock);
	waits = still_waits(copier, object);
	(void)pthread_mutex_unlock(&copier->lock);
	if (!waits)
		return;
	asker = asker_find(asking_pid(copier, mmap), object->original.dev, object->path);
	(void)pthread_mutex_lock(&copier->lock);
	if (still_waits(copier, object) && asker != object->asker &&
	    (asker == ASKER_ROOT || (!has_hung(copier, asker) && (has_hung(copier, object->asker) ||
								  is_stalled(copier, object))))) {
		object->asker = asker;
		object->mapped = *mmap;
		object->mapped.name = object->path;
		(void)pthread_cond_broadcast(&copier->change);
	}
	(void)pthread_mutex_unlock(&copier->lock);
}

int copier_wait(struct copier *copier, const struct object *object, const atomic_bool *cancel)
{
	bool done, stalled = false;
	struct timespec until;

	(void)pthread_mutex_lock(&copier->lock);
	while (!(done = object->done) && !(stalled = is_stalled(copier, object)) &&
	       !cancel_asked(cancel)) {
		(void)clock_gettime(CLOCK_MONOTONIC, &until);
		until.tv_nsec += CANCEL_POLL_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		(void)pthread_cond_clockwait(&copier->change, &copier->lock, CLOCK_MONOTONIC,
					     &until);
	}
	for (unsigned i = 0; stalled && i < LANES; i++)
		if (is_before(&copier->lanes[i], object, BEFORE_ASKER))
			*hung_of(copier, object->asker) = clock_ns(CLOCK_MONOTONIC);
	(void)pthread_mutex_unlock(&copier->lock);
	return done ? 0 : stalled ? COPIER_STALLED : -ECANCELED;
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
	for (unsigned i = 0; i < LANES; i++)
		share_take(&copier->share, copier->lanes[i].reserved_by, copier->lanes[i].reserved);
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
