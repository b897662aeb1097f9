/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/soft/source_emu.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/config/config.h"
#include "daemon/emu/pool.h"
#include "daemon/keeper/link.h"
#include "daemon/keeper/message.h"
#include "daemon/proc/claimant.h"
#include "daemon/share/share.h"
#include "daemon/soft/emuterms.h"
#include "daemon/soft/poolasker.h"
#include "daemon/soft/poolclaims.h"
#include "daemon/soft/poolrings.h"
#include "daemon/soft/poolwriters.h"
#include "daemon/soft/userpool.h"
#include "daemon/source/kept.h"
#include "daemon/tasks/tasks.h"

#define FLUSH_WAIT_US 10000u /* a CPU's owner may have lost the real CPU for a slice */
#define FLUSH_POLL_US 50u

/* CPUs of all pools. If a pool has many, there are fewer pools. */
#define CPUS_MAX 1024u

#define ROOT 0

static_assert(EMU_CPUS_MAX * 4 <= CPUS_MAX, "there are some pools in any case");

/* Where a pool can be. */
struct place {
	struct userpool *pool; /* NULL: there is none */
	bool is_held;          /* at the last hold it was there */
	bool said_a_lie;
};

struct source_emu {
	struct source source;
	struct emu_pool_layout layout, small; /* of pools; the number of their first CPU is 0 */
	struct keeperlink *link;              /* borrowed; may be NULL */
	struct poolclaims *claims;
	struct poolasker *asker;
	struct share share; /* bytes of pools */
	struct share lies;  /* refused: records about processes of others, in pools that have been
			     * freed */
	size_t n_places;
	bool said_code_lost, said_exhausted;

	pthread_mutex_t lock; /* of the next two, which the event loop changes */
	struct place places[KEPT_POOLS_MAX];
	bool is_held;
};

static struct source_emu *emu(struct source *source)
{
	return (struct source_emu *)source;
}

/* What is to be kept of the source. */
static struct kept_state *state_of(const struct source_emu *e)
{
	return kept_draft(e->source.kept);
}

/* Walk over the pools, in the event loop. */
#define each_pool(e, p)                               \
	for (size_t i_ = 0; i_ < (e)->n_places; i_++) \
		for (struct userpool *p = (e)->places[i_].pool; (p); (p) = NULL)

/* --- rings ------------------------------------------------------------------------------------ */

/* Begin a hold: no pool is freed before its end. Return: the number of pools, in @ret_pools. */
static size_t begin_hold(struct source_emu *e, struct userpool *ret_pools[static KEPT_POOLS_MAX])
{
	size_t n = 0;

	(void)pthread_mutex_lock(&e->lock);
	e->is_held = true;
	for (size_t i = 0; i < e->n_places; i++) {
		e->places[i].is_held = e->places[i].pool;
		if (e->places[i].pool)
			ret_pools[n++] = e->places[i].pool;
	}
	(void)pthread_mutex_unlock(&e->lock);
	return n;
}

static bool all_flushed(struct userpool *const *pools, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!poolrings_is_flushed(userpool_rings(pools[i])))
			return false;
	return true;
}

static int hold(struct source *source, struct source_moment *ret_moment)
{
	struct source_emu *e = emu(source);
	struct userpool *pools[KEPT_POOLS_MAX];
	const size_t n = begin_hold(e, pools);
	uint64_t complete_ns;

	for (size_t i = 0; i < n; i++)
		poolrings_ask_flush(userpool_rings(pools[i]));
	/* The owner of a CPU that does not answer is stopped, dead, or in one very long block: what
	 * it published is taken. */
	for (unsigned us = 0; us < FLUSH_WAIT_US && !all_flushed(pools, n); us += FLUSH_POLL_US)
		(void)nanosleep(&(struct timespec){ .tv_nsec = FLUSH_POLL_US * 1000 }, NULL);

	/* The pools are not read at quite the same moment, which does no harm: no thread goes from
	 * one pool to another. */
	ret_moment->complete_until_ns = clock_ns(CLOCK_MONOTONIC);
	for (size_t i = 0; i < n; i++) {
		poolrings_hold(userpool_rings(pools[i]), &complete_ns);
		if (i == 0)
			ret_moment->complete_until_ns = complete_ns;
	}
	for (size_t i = 0; i < n; i++)
		if (userpool_has_timing(pools[i]))
			source->facts.attr_config |= emuterms_timing_config(&e->layout.timing);
	ret_moment->ns = ret_moment->monotonic_ns = clock_ns(CLOCK_MONOTONIC);
	ret_moment->realtime_ns = clock_ns(CLOCK_REALTIME);
	return 0;
}

static void release(struct source *source)
{
	struct source_emu *e = emu(source);

	(void)pthread_mutex_lock(&e->lock);
	e->is_held = false;
	(void)pthread_mutex_unlock(&e->lock);
}

/* Memory is allocated while the rings are copied: the programs may have filled only a small part of
 * them. */
static uint64_t aux_room(struct source *source, uint32_t cpu)
{
	(void)source;
	(void)cpu;
	return 0;
}

/*
 * Find the pool of a CPU, and the number that the CPU has in the pool.
 *
 * @ret_pool: NULL if no pool had the CPU at the last hold
 *
 * Return: 0; or -EINVAL if there is no such CPU.
 */
static int find_pool(struct source_emu *e, uint32_t cpu, struct userpool **ret_pool,
		     uint32_t *ret_cpu)
{
	const struct place *place;

	if (cpu >= e->source.n_cpus)
		return -EINVAL;
	place = &e->places[cpu / e->layout.n_cpus];
	(void)pthread_mutex_lock(&e->lock);
	*ret_pool = place->is_held ? place->pool : NULL;
	(void)pthread_mutex_unlock(&e->lock);
	*ret_cpu = cpu % e->layout.n_cpus;
	return 0;
}

static int view(struct source *source, uint32_t cpu, uint64_t since_ns, bool exact,
		struct source_view *ret_view)
{
	struct userpool *pool;
	int r;

	(void)exact; /* they always are */
	r = find_pool(emu(source), cpu, &pool, &cpu);
	if (r < 0)
		return r;
	*ret_view = (struct source_view){};
	if (pool)
		poolrings_view(userpool_rings(pool), cpu, since_ns, ret_view);
	return 0;
}

static int copy_switches(struct source *source, uint32_t cpu, uint64_t since_ns,
			 uint8_t **ret_bytes, size_t *ret_size, bool *ret_cut)
{
	struct userpool *pool;
	int r;

	r = find_pool(emu(source), cpu, &pool, &cpu);
	if (r < 0)
		return r;
	if (pool)
		return userpool_copy_switches(pool, cpu, since_ns, ret_bytes, ret_size, ret_cut);
	*ret_bytes = NULL;
	*ret_size = 0;
	*ret_cut = false;
	return 0;
}

static int copy_events(struct source *source, uint32_t cpu, uint64_t since_ns,
		       struct source_event **ret_events, size_t *ret_n)
{
	struct userpool *pool;
	int r;

	r = find_pool(emu(source), cpu, &pool, &cpu);
	if (r < 0)
		return r;
	if (pool)
		return userpool_copy_events(pool, cpu, since_ns, ret_events, ret_n);
	*ret_events = NULL;
	*ret_n = 0;
	return 0;
}

/* --- streams ---------------------------------------------------------------------------------- */

static int drain(struct source *source, enum source_stream stream, uint8_t **ret_bytes,
		 size_t *ret_size)
{
	struct source_emu *e = emu(source);
	struct userpool_bytes bytes = { .bytes = malloc(1) };
	uint64_t n_lost = 0;
	int r = bytes.bytes ? 0 : -ENOMEM;

	each_pool(e, p) {
		if (r == 0)
			r = userpool_drain(p, stream, &bytes, &n_lost);
		if (r == 0)
			state_of(e)->n_tasks_lost += n_lost;
		n_lost = 0;
	}
	/* Task records of the other pools stay there. */
	if (r < 0 && (stream == SOURCE_CODE || bytes.size == 0)) {
		free(bytes.bytes);
		return r;
	}
	*ret_bytes = bytes.bytes;
	*ret_size = bytes.size;
	return 0;
}

static void give_room(struct source *source)
{
	each_pool(emu(source), p)
		userpool_give_room(p);
}

/* The programs name each task from its beginning; /proc would show QEMU in their place. */
static int tasks(struct source *source, const struct tasks *known, uint64_t budget_ns,
		 record_put_fn put, void *userdata)
{
	(void)source;
	(void)budget_ns;
	/* @put counts what it refuses. */
	(void)tasks_write(known, tasks_time(known), put, userdata);
	return 0;
}

/* All records that are drained are about processes that a pool was believed about. */
static int owner(struct source *source, uint32_t pid, uid_t *ret_uid)
{
	const struct source_emu *e = emu(source);
	uint32_t number;

	if (!poolclaims_find(e->claims, pid, &number) || number >= e->n_places ||
	    !e->places[number].pool)
		return -ESRCH;
	*ret_uid = userpool_uid(e->places[number].pool);
	return 0;
}

/* Return: whether the user's process @pid has the pool of @uid mapped. */
static bool has_pool_of(struct source_emu *e, uid_t uid, uint32_t pid)
{
	struct poolwriters writers = { .asker = e->asker, .pool_fd = -1 };
	bool has_it;

	(void)pthread_mutex_lock(&e->lock);
	for (size_t i = 0; writers.pool_fd < 0 && i < e->n_places; i++) {
		const struct userpool *p = e->places[i].pool;

		if (p && userpool_uid(p) == uid)
			writers.pool_fd = fcntl(userpool_fd(p), F_DUPFD_CLOEXEC, 0);
	}
	(void)pthread_mutex_unlock(&e->lock);
	has_it = writers.pool_fd >= 0 && poolwriters_has_pool(&writers, pid);
	(void)fd_close(writers.pool_fd);
	return has_it;
}

/* A process that is recorded has the pool of its own user mapped, or root's if root started it.
 * Another pool proves nothing: its user may have given it to the process. */
static bool is_writer(void *userdata, uint32_t pid)
{
	_cleanup_(claimant_deinit) struct claimant process = claimant_find(NULL, pid);
	uid_t uid;

	if (process.pid_fd < 0 || claimant_user(&process, &uid) < 0)
		return false;
	return has_pool_of(userdata, uid, pid) || (uid != ROOT && has_pool_of(userdata, ROOT, pid));
}

/* --- state ------------------------------------------------------------------------------------ */

static struct source_status status(struct source *source)
{
	struct source_emu *e = emu(source);
	struct source_status s = {
		.aux_size = e->layout.aux_size,
		.switch_size = e->layout.switch_size,
		.n_tasks_lost = state_of(e)->n_tasks_lost,
	};
	uint32_t n = 1;

	for (uint32_t i = 0; i < e->n_places; i++)
		n = e->places[i].pool ? i + 1 : n;
	s.n_online = s.n_recording = n * e->layout.n_cpus;
	each_pool(e, p) {
		s.is_active = userpool_is_active(p) || s.is_active;
		s.bytes_held += poolrings_bytes_held(userpool_rings(p));
	}
	return s;
}

static void say_lies(struct source_emu *e)
{
	for (size_t i = 0; i < e->n_places; i++) {
		struct place *place = &e->places[i];

		if (!place->pool || place->said_a_lie || userpool_n_refused(place->pool) == 0)
			continue;
		log_warning("records in the pool of user %u name processes that are not his: they "
			    "are left out",
			    (unsigned)userpool_uid(place->pool));
		place->said_a_lie = true;
	}
}

/* The programs count what they could not record. That is logged once, however often it happens. */
static void look_after(struct source *source)
{
	struct source_emu *e = emu(source);
	bool code_lost = false, exhausted = false;

	each_pool(e, p) {
		code_lost = code_lost || userpool_lost_code(p);
		exhausted = exhausted || userpool_was_exhausted(p);
	}
	if (!e->said_code_lost && code_lost) {
		log_warning("some code that is in no file ran unrecorded: more of it was made than "
			    "the ring of code holds (TaskSize= may be too small)");
		e->said_code_lost = true;
	}
	if (!e->said_exhausted && exhausted) {
		log_warning("some threads ran unrecorded for a while: no virtual CPU became free "
			    "for them (Cpus= may be too small)");
		e->said_exhausted = true;
	}
	say_lies(e);
}

static int refuse_pause(struct source *source, bool pause)
{
	(void)source;
	(void)pause;
	return -EOPNOTSUPP;
}

/* --- pools ------------------------------------------------------------------------------------ */

/* Describe how a pool, or the kept state, is laid out, and the settings that what is in it depends
 * on: only what has the same form is taken over. */
static void write_form(const struct emu_pool_layout *l, char ret_form[static KEEPER_FORM_SIZE])
{
	(void)snprintf(ret_form, KEEPER_FORM_SIZE,
		       "emu pool=%u kept=%u.%zu cpus=%" PRIu32 ",%" PRIu32 " aux=%" PRIu64
		       " switch=%" PRIu64 " event=%" PRIu64 " task=%" PRIu64 " code=%" PRIu64
		       " psb=%" PRIu32 " quantum=%" PRIu32 " compression=%d,%d mtc=%d,%u cyc=%d",
		       EMU_POOL_VERSION, KEPT_VERSION, sizeof(struct kept_state), l->n_cpus,
		       l->n_busy_max, l->aux_size, l->switch_size, l->event_size, l->task_size,
		       l->code_size, l->psb_period, l->quantum_us, l->return_compression,
		       l->long_tnt, l->timing.mtc, l->timing.mtc_period, l->timing.cyc);
}

/* The name under which the keeper has the pool. */
static void write_name(size_t number, char ret_name[static KEEPER_NAME_SIZE])
{
	(void)snprintf(ret_name, KEEPER_NAME_SIZE, "pool.%zu", number);
}

static struct emu_pool_layout layout_at(const struct source_emu *e, size_t number, bool is_small)
{
	struct emu_pool_layout layout = is_small ? e->small : e->layout;

	layout.first_cpu = (uint32_t)number * layout.n_cpus;
	return layout;
}

static void place_pool(struct source_emu *e, size_t number, struct userpool *pool)
{
	(void)pthread_mutex_lock(&e->lock);
	e->places[number] = (struct place){ .pool = pool };
	(void)pthread_mutex_unlock(&e->lock);
	share_take(&e->share, userpool_uid(pool), userpool_size(pool));
}

static int keep_pool(const struct source_emu *e, size_t number)
{
	const struct emu_pool_layout layout =
	    layout_at(e, number, state_of(e)->pools[number].is_small);
	char name[KEEPER_NAME_SIZE], form[KEEPER_FORM_SIZE];

	write_name(number, name);
	write_form(&layout, form);
	return keeperlink_keep(e->link, name, form,
			       &(struct keepable){ .fd = userpool_fd(e->places[number].pool) });
}

/* Make the pool of a user. */
static int make_pool(struct source_emu *e, size_t number, uid_t uid, bool is_small)
{
	const struct emu_pool_layout layout = layout_at(e, number, is_small);
	struct kept_pool *kept = &state_of(e)->pools[number];
	struct userpool *pool;
	int r;

	r = userpool_new(&(struct userpool_options){ .number = (uint32_t)number,
						     .uid = uid,
						     .layout = &layout,
						     .claims = e->claims,
						     .asker = e->asker,
						     .kept = kept },
			 &pool);
	if (r < 0)
		return r;
	kept->is_small = is_small;
	place_pool(e, number, pool);
	return keep_pool(e, number);
}

static void free_pool(struct source_emu *e, size_t number)
{
	struct userpool *pool = e->places[number].pool;
	char name[KEEPER_NAME_SIZE];

	log_notice(
	    "freed the rings of user %u: no program writes to them, and others need the room",
	    (unsigned)userpool_uid(pool));
	/* First of all, so that a ptd that is started later does not look for a pool that the
	 * keeper no longer has. */
	state_of(e)->pools[number] = (struct kept_pool){};
	kept_publish(e->source.kept);
	write_name(number, name);
	keeperlink_drop(e->link, name);
	share_give(&e->share, userpool_uid(pool), userpool_size(pool));
	share_count_refused(&e->lies, userpool_uid(pool), SHARE_REASON_FOREIGN,
			    userpool_n_refused(pool));
	poolclaims_forget(e->claims, (uint32_t)number);
	(void)pthread_mutex_lock(&e->lock);
	e->places[number] = (struct place){};
	(void)pthread_mutex_unlock(&e->lock);
	(void)userpool_free(pool);
}

/* Free the pool that has been at rest for the longest time. Return: whether there was one. */
static bool free_one_at_rest(struct source_emu *e)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const struct kept_pool *kept = state_of(e)->pools;
	size_t oldest = e->n_places;

	/* A snapshot reads them. */
	if (e->is_held)
		return false;
	for (size_t i = 0; i < e->n_places; i++) {
		struct userpool *p = e->places[i].pool;

		if (p && userpool_is_at_rest(p, now) &&
		    (oldest == e->n_places || kept[i].used_ns < kept[oldest].used_ns))
			oldest = i;
	}
	if (oldest < e->n_places)
		free_pool(e, oldest);
	return oldest < e->n_places;
}

/* Return: the number of the user's pool, or of a free place if @uid is NULL; n_places if there is
 * none. */
static size_t find_place(const struct source_emu *e, const uid_t *uid)
{
	size_t i = 0;

	while (i < e->n_places &&
	       (uid ? !e->places[i].pool || userpool_uid(e->places[i].pool) != *uid
		    : e->places[i].pool != NULL))
		i++;
	return i;
}

/* Each user has a quarter of what all may have. */
static bool has_room(const struct source_emu *e, uid_t uid)
{
	const uint64_t size = emu_pool_size(&e->layout);

	return share_allows(&e->share, SHARE_PART * size, uid, size);
}

static void refuse(struct source_emu *e, uid_t uid)
{
	const uint64_t size = emu_pool_size(&e->layout);

	share_refuse(&e->share, SHARE_PART * size, uid, size);
}

/* Return: 0; -EDQUOT; or another negative errno. */
static int add_pool(struct source_emu *e, uid_t uid, size_t *ret_number)
{
	bool is_small;
	int r;

	while (find_place(e, NULL) == e->n_places || !has_room(e, uid))
		if (!free_one_at_rest(e))
			break;
	*ret_number = find_place(e, NULL);
	is_small = !has_room(e, uid);
	if (is_small || *ret_number == e->n_places)
		refuse(e, uid);
	if (*ret_number == e->n_places) {
		log_warning("user %u cannot be recorded: %zu other users are, and each needs rings "
			    "of his own",
			    (unsigned)uid, e->n_places);
		return -EDQUOT;
	}
	r = make_pool(e, *ret_number, uid, is_small);
	if (r == 0 && is_small)
		log_warning("the rings of user %u are smaller than AuxSize=, SwitchSize= and "
			    "TaskSize= say: those of %u others take the room",
			    (unsigned)uid, SHARE_PART);
	return r;
}

int source_emu_share(struct source *source, uid_t uid, bool timing)
{
	struct source_emu *e = emu(source);
	size_t number;
	int r;

	if (source->ops->hold != hold)
		return -EOPNOTSUPP;
	number = find_place(e, &uid);
	if (number == e->n_places) {
		r = add_pool(e, uid, &number);
		if (r < 0)
			return r;
	}
	userpool_share(e->places[number].pool, timing);
	/* The program may write such packets before anything else is published. */
	kept_publish(source->kept);
	poolrings_mark(userpool_rings(e->places[number].pool));
	return userpool_fd(e->places[number].pool);
}

void source_emu_mark_all(struct source *source)
{
	if (source->ops->hold == hold)
		each_pool(emu(source), p)
			poolrings_mark(userpool_rings(p));
}

void source_emu_get_share(const struct source *source, enum source_emu_account account,
			  struct share *ret_share)
{
	const struct source_emu *e = (const struct source_emu *)source;

	*ret_share = (struct share){};
	if (source->ops->hold != hold)
		return;
	if (account == SOURCE_EMU_RINGS) {
		*ret_share = e->share;
		return;
	}
	*ret_share = e->lies;
	each_pool(e, p) {
		/* Opens the account. */
		share_take(ret_share, userpool_uid(p), 0);
		share_count_refused(ret_share, userpool_uid(p), SHARE_REASON_FOREIGN,
				    userpool_n_refused(p));
	}
}

/* --- life ------------------------------------------------------------------------------------- */

static struct source *emu_free(struct source *source)
{
	struct source_emu *e = emu(source);

	if (!e)
		return NULL;
	each_pool(e, p)
		(void)userpool_free(p);
	e->source.kept = kept_free(e->source.kept);
	(void)poolclaims_free(e->claims);
	(void)poolasker_free(e->asker);
	(void)pthread_mutex_destroy(&e->lock);
	free(e);
	return NULL;
}

static const struct source_ops emu_ops = {
	.status = status,
	.look_after = look_after,
	.pause = refuse_pause,
	.drain = drain,
	.give_room = give_room,
	.tasks = tasks,
	.owner = owner,
	.aux_room = aux_room,
	.hold = hold,
	.release = release,
	.view = view,
	.copy_switches = copy_switches,
	.copy_events = copy_events,
	.free = emu_free,
};

/* Go on with one pool of an earlier process. Return: 0, or negative errno. */
static int resume_pool(struct source_emu *e, size_t number)
{
	struct kept_pool *kept = &state_of(e)->pools[number];
	const struct emu_pool_layout layout = layout_at(e, number, kept->is_small);
	char name[KEEPER_NAME_SIZE], form[KEEPER_FORM_SIZE];
	struct keepable keepable;
	struct userpool *pool;
	int r;

	write_name(number, name);
	write_form(&layout, form);
	if (!keeperlink_take(e->link, name, form, &keepable))
		return -EBADMSG;
	r = userpool_resume(&(struct userpool_options){ .number = (uint32_t)number,
							.uid = kept->uid,
							.layout = &layout,
							.claims = e->claims,
							.asker = e->asker,
							.kept = kept },
			    keepable.fd, &pool);
	if (r < 0) {
		(void)fd_close(keepable.fd);
		return r;
	}
	place_pool(e, number, pool);
	return 0;
}

/* Go on with the pools of an earlier process. Return: 0; -ENOENT if there are none; or negative
 * errno. */
static int resume(struct source_emu *e, const char *form)
{
	struct keepable kept;
	int r;

	if (!keeperlink_take(e->link, "state", form, &kept))
		return -ENOENT;
	r = kept_resume(kept.fd, &e->source.kept);
	if (r < 0) {
		(void)fd_close(kept.fd);
		return r;
	}
	for (size_t i = 0; r == 0 && i < e->n_places; i++)
		if (state_of(e)->pools[i].is_there)
			r = resume_pool(e, i);
	return r;
}

/* Forget what could not be taken over. */
static void drop_all(struct source_emu *e)
{
	for (size_t i = 0; i < e->n_places; i++) {
		(void)userpool_free(e->places[i].pool);
		e->places[i] = (struct place){};
	}
	e->share = (struct share){};
	e->source.kept = kept_free(e->source.kept);
}

static int open_pools(struct source_emu *e)
{
	char form[KEEPER_FORM_SIZE];
	int r;

	write_form(&e->layout, form);
	r = resume(e, form);
	if (r == 0) {
		log_notice("took over the rings of the ptd that ran before");
	} else {
		if (r != -ENOENT) {
			errno = -r;
			log_warning("cannot take over the rings of the ptd that ran before: %m");
		}
		drop_all(e);
		r = kept_new(&e->source.kept);
	}
	keeperlink_drop_rest(e->link);
	for (size_t i = 0; r == 0 && i < e->n_places; i++)
		if (e->places[i].pool)
			r = keep_pool(e, i);
	if (r < 0)
		return r;
	return keeperlink_keep(e->link, "state", form,
			       &(struct keepable){ .fd = kept_fd(e->source.kept) });
}

int source_emu_new(const struct config *config, struct keeperlink *link, const char *runtime_dir,
		   struct source **ret_source)
{
	struct source_emu *e;
	int r;

	if (!ptterms_get(&config->pt, PTTERM_TSC, 1))
		return -EOPNOTSUPP;

	e = malloc(sizeof(*e));
	if (!e)
		return -ENOMEM;
	*e = (struct source_emu){
		.source = { .ops = &emu_ops,
			    .facts = emuterms_facts(config),
			    .claims = { .is_writer = is_writer, .userdata = e },
			    .records_fd = -1 },
		.layout = emuterms_layout(config),
		.small = emuterms_small_layout(config),
		.link = link,
		.lock = PTHREAD_MUTEX_INITIALIZER,
	};
	e->n_places = CPUS_MAX / e->layout.n_cpus;
	e->n_places = e->n_places < KEPT_POOLS_MAX ? e->n_places : KEPT_POOLS_MAX;
	e->source.n_cpus = (uint32_t)e->n_places * e->layout.n_cpus;

	r = poolclaims_new(&e->claims);
	if (r == 0)
		r = poolasker_new(runtime_dir, &e->asker);
	if (r == 0)
		r = open_pools(e);
	if (r < 0) {
		(void)emu_free(&e->source);
		return r;
	}
	*ret_source = &e->source;
	return 0;
}
