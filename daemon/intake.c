/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/intake.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-event.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/printable.h"
#include "daemon/objects/asker.h"
#include "daemon/objects/codestore.h"
#include "daemon/objects/copier.h"
#include "daemon/objects/jitfile.h"
#include "daemon/objects/objectstore.h"
#include "daemon/proc/journal.h"
#include "daemon/share/share.h"
#include "daemon/sideband/scanner.h"
#include "daemon/sideband/sideband.h"
#include "daemon/source/kept.h"
#include "daemon/source/source.h"
#include "ptd/control.h"
#include "util/map.h"
#include "util/mapname.h"
#include "util/perf/record.h"

#define DRAIN_US       UINT64_C(50000)
#define DRAIN_MIN_US   UINT64_C(1000) /* for a source with a descriptor */
#define DRAIN_PART     20u /* part of one CPU's time that draining such a source may take */
#define FAIR_AGAIN_NS  UINT64_C(1000000000)  /* between two attempts to take copies back */
#define STORM_AGAIN_NS UINT64_C(60000000000) /* between two messages about one process */
#define STORM_OTHER_NS UINT64_C(10000000000) /* between messages about two processes */
#define NAMED_MAX      10u                   /* files of one user that the log names in a minute */
#define NAMED_USERS    1024u
#define GRACE_US       UINT64_C(60000000) /* for a program that was given the pool to start */

/* Of whom the log said something last, and when it may say it again, of them or of another. */
struct pace {
	uint32_t who;
	uint64_t again_ns, other_ns;
};

struct intake {
	struct intake_options options;
	sd_event_source *timer;
	sd_event_source *records; /* the source's descriptor; NULL: it has none */
	sd_event_source *kept;    /* the object store has failed objects */
	uint64_t expected_us;     /* when programs were last expected */
	struct sideband *sideband;
	struct scanner *scanner;
	struct jitfiles *jitfiles;
	struct codestore *code; /* NULL: programs hand no code over */
	bool said_lost;         /* records were refused, and that was logged */
	bool said_no_room;      /* the same for objects */
	struct pace storm;      /* of messages about processes that repeat themselves */
	struct pace dropped;    /* of those about users whose task records were forgotten */
	bool said_no_code;      /* the same for code that ran */
	struct map named;       /* asker → files that could not be kept, in this minute */
	uint64_t named_since_ns;

	uint64_t drained_ns; /* when the records that came last were taken */
	uint64_t rate;       /* the most bytes of them that ever came in 1 us */

	uint64_t fair_again_ns; /* when copies may be taken back again */

	uint64_t n_epochs; /* epochs of the sideband that were noticed */
	uint64_t began;    /* the object store's moment when the last epoch began */
	uint64_t stale;    /* objects not named after this moment may be forgotten; 0: none */
};

/* Return: whether a file of this asker may be named in the log. One program may map thousands. */
static bool may_name(struct intake *intake, const struct object *object)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const uint64_t *before;
	uint64_t n;

	if (now - intake->named_since_ns > STORM_AGAIN_NS || intake->named.n_used >= NAMED_USERS) {
		map_deinit(&intake->named);
		intake->named_since_ns = now;
	}
	before = map_get(&intake->named, object->asker);
	n = before ? *before + 1 : 1;
	(void)!map_put(&intake->named, object->asker, n);
	if (n == NAMED_MAX + 1 && asker_is_unknown(object->asker))
		log_warning("more files cannot be kept, of programs that have ended: for a minute "
			    "no more of them are named here; objects.map of a snapshot has all");
	else if (n == NAMED_MAX + 1)
		log_warning("more files of programs of user %u cannot be kept: for a minute no "
			    "more of them are named here; objects.map of a snapshot has all",
			    (unsigned)object->asker);
	return n <= NAMED_MAX;
}

static void say_not_kept(struct intake *intake, const struct object *object)
{
	char user[32] = "";

	if (!may_name(intake, object))
		return;
	/* Of a file that was found it is known. */
	if (object->error == -EDQUOT)
		(void)snprintf(user, sizeof(user), " of user %u", (unsigned)object->original.uid);
	journal_log_one(LOG_WARNING, PTD_MESSAGE_NOT_KEPT, "PTD_OBJECT", object->path,
			"%s: cannot keep a copy of this object%s, snapshots will miss it: %s",
			object->path, user, object_why(object->error));
}

static void touch_object(void *store, const struct record_mmap2 *mmap)
{
	objectstore_touch(store, mmap);
}

/* Objects that living processes have mapped stay, however long ago they were mapped: no record
 * names them again before the next epoch begins. */
static void make_object_room(struct intake *intake)
{
	struct objectstore *store = intake->options.store;
	const uint64_t moment = objectstore_moment(store);
	int r;

	sideband_list_mapped(intake->sideband, touch_object, store);
	r = objectstore_make_room(store, moment);
	if (r < 0)
		(void)log_warning_errno(
		    r, "there are too many objects, and none can be forgotten, ignoring: %m");
}

uint64_t intake_evict(struct intake *intake, uint64_t bytes, uint64_t least)
{
	struct objectstore *store = intake->options.store;
	const uint64_t moment = objectstore_moment(store);
	uint64_t freed = 0;
	int r;

	sideband_list_mapped(intake->sideband, touch_object, store);
	r = objectstore_evict(store, moment, bytes, least, &freed);
	if (r < 0) {
		(void)log_warning_errno(
		    r, "cannot remove copies to which no snapshot links, ignoring: %m");
	} else if (freed > 0) {
		log_notice(
		    "removed %.1f MiB of copies to which no snapshot links, of programs that "
		    "have ended: the disk is full, or MaxUse= or KeepFree= was reached",
		    (double)freed / (1 << 20));
	}
	return freed;
}

void intake_share_out(struct intake *intake)
{
	struct objectstore *store = intake->options.store;
	const uint64_t moment = objectstore_moment(store), now = clock_ns(CLOCK_MONOTONIC);
	uint64_t freed = 0;
	uid_t uid = 0;
	int r;

	if (now < intake->fair_again_ns || !objectstore_is_unfair(store))
		return;
	intake->fair_again_ns = now + FAIR_AGAIN_NS;
	sideband_list_mapped(intake->sideband, touch_object, store);
	r = objectstore_take_back(store, moment, &freed, &uid);
	if (r < 0) {
		(void)log_warning_errno(
		    r, "cannot take copies back from users who have many, ignoring: %m");
	} else if (freed > 0) {
		log_notice("removed %.1f MiB of copies, to which no snapshot links, of files of "
			   "user %u%s need the room",
			   (double)freed / (1 << 20), (unsigned)uid,
			   uid == 0 ? ": snapshots" : ", who has more than their share: others");
	}
}

/* Log that there is no room, or no memory, for more objects. */
static void say_no_room(struct intake *intake, const char *path, int error)
{
	if (intake->said_no_room)
		return;
	intake->said_no_room = true;
	journal_log_one(LOG_WARNING, PTD_MESSAGE_NOT_KEPT, "PTD_OBJECT", path,
			"%s: cannot keep a copy of this object, and maybe not of later ones: %s",
			path, error == -ENOBUFS ? "too many are in use" : strerror(-error));
}

/* Return: whether the records at @bytes have had the same record with another time: looking once at
 * what is mapped now suffices for both. @seen maps the hash of a record to its place. Without
 * memory for it, a record is looked at again. */
static bool is_seen(struct map *seen, const uint8_t *bytes, const struct record *record)
{
	const size_t size = record->header.size - sizeof(record->trailer);
	const uint64_t key = map_hash(record->bytes, size);
	const uint64_t *at = map_get(seen, key);

	if (at)
		return memcmp(bytes + *at, record->bytes, size) == 0;
	(void)!map_put(seen, key, (uint64_t)(record->bytes - bytes));
	return false;
}

/*
 * Return: the user who started the process, should it have ended; 0: root, or not known. Of
 * programs that write the records themselves, the source knows; of others, the records say who made
 * them.
 *
 * @made: of processes that were made by records which the sideband has not been given yet → user
 */
static struct jitfile_user user_of(const struct intake *intake, const struct map *made,
				   uint32_t pid)
{
	struct source *source = intake->options.source;
	const uint64_t *user = map_get(made, pid);
	uid_t uid = 0;

	if (source->facts.is_claimed && source->ops->owner)
		return source->ops->owner(source, pid, &uid) == 0
			   ? (struct jitfile_user){ .uid = uid, .is_known = true }
			   : (struct jitfile_user){};
	uid = user ? (uid_t)*user : sideband_user(intake->sideband, pid);
	return (struct jitfile_user){ .uid = uid };
}

/* Without memory for it, the user of a process that ends soon is not known. */
static void note_made(struct intake *intake, struct map *made, const struct record *record)
{
	struct jitfile_user user;
	struct record_task task;

	if (record->header.type != PERF_RECORD_FORK || record_get_task(record, &task) < 0 ||
	    task.pid == task.ppid)
		return;
	user = user_of(intake, made, task.ppid);
	(void)!map_put(made, task.pid, user.uid);
	jitfiles_fork(intake->jitfiles, task.pid, task.ppid, &user);
}

/* Records of files that only their inodes tell apart are changed at @own, which is where @bytes
 * are, or NULL if they stay as they are. */
static void store_mapped(struct intake *intake, const uint8_t *bytes, size_t size, uint8_t *own)
{
	_cleanup_(map_deinit) struct map seen = {}, made = {};
	struct cursor c = cursor_from(bytes, size);
	struct record_mmap2 mmap;
	struct object *object;
	struct record record;
	struct jitfile_user user;
	int r;

	while (record_next(&c, &record) == 0) {
		note_made(intake, &made, &record);
		if (record_get_mmap2(&record, &mmap) < 0 || is_seen(&seen, bytes, &record))
			continue;
		user = user_of(intake, &made, mmap.pid);
		/* Jitdumps are no code. */
		if (jitfiles_add(intake->jitfiles, &mmap, record.trailer.time, &user))
			continue;
		if (objectstore_is_full(intake->options.store))
			make_object_room(intake);
		r = objectstore_add(intake->options.store, &mmap, user.uid, &object);
		if (r < 0)
			say_no_room(intake, mmap.name, r);
		else if (own && object && mmap.build_id.size > 0 && object_is_by_inode(object))
			record_set_inode(own + (record.bytes - bytes), object->mapped.maj,
					 object->mapped.min, object->mapped.ino);
	}
}

/* If an epoch of the sideband has begun, note that records before @moment belong to earlier
 * epochs. */
static void note_epoch(struct intake *intake, uint64_t moment)
{
	const uint64_t n = sideband_epochs(intake->sideband);

	if (n == intake->n_epochs)
		return;
	intake->n_epochs = n;
	intake->stale = intake->began;
	intake->began = moment;
}

/* Gets a record of a task that existed before recording began, before the sideband does. */
static int on_task(void *userdata, void *bytes, size_t size)
{
	struct intake *intake = userdata;

	note_epoch(intake, objectstore_moment(intake->options.store));
	store_mapped(intake, bytes, size, bytes);
	return 0;
}

static int on_kept(sd_event_source *source, int fd, uint32_t revents, void *userdata)
{
	struct intake *intake = userdata;
	const struct object *object;

	while ((object = objectstore_next_failed(intake->options.store)))
		say_not_kept(intake, object);
	return 0;
}

static bool may_say(struct pace *pace, uint32_t who)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (now < (who == pace->who ? pace->again_ns : pace->other_ns))
		return false;
	*pace = (struct pace){ who, now + STORM_AGAIN_NS, now + STORM_OTHER_NS };
	return true;
}

/* A user may do that with many processes. */
static void say_storm(struct intake *intake)
{
	struct tasks_storm storm;

	if (!sideband_next_storm(intake->sideband, &storm) || !may_say(&intake->storm, storm.pid))
		return;
	printable_clean(storm.comm, strnlen(storm.comm, sizeof(storm.comm)));
	log_warning("process %" PRIu32 " (%s) maps the same code more than %u times a second: "
		    "repeated records are left out",
		    storm.pid, storm.comm, TASKS_STORM);
}

static void say_dropped(struct intake *intake)
{
	struct sideband_dropped dropped;

	if (!sideband_next_dropped(intake->sideband, &dropped) ||
	    !may_say(&intake->dropped, dropped.uid))
		return;
	journal_log(LOG_WARNING, PTD_MESSAGE_LOST, NULL, 0,
		    "user %u has more than their share of SidebandMax=: %" PRIu64
		    " of their task records were forgotten by now, the oldest first; what their "
		    "programs ran before cannot be decoded",
		    (unsigned)dropped.uid, dropped.n_records);
}

/* Return: the user of whose code most was refused. */
static uid_t refused_user(const struct intake *intake)
{
	const struct share_user *most = NULL;
	struct share share;

	codestore_get_share(intake->code, &share);
	for (size_t i = 0; i < share.n_users; i++)
		if (!most || share_n_refused(&share.users[i]) > share_n_refused(most))
			most = &share.users[i];
	return most ? most->uid : SHARE_OTHERS;
}

static void say_no_code(struct intake *intake, int error)
{
	char user[64] = "";

	if (error == -ENOBUFS)
		(void)snprintf(user, sizeof(user), " to user %u", (unsigned)refused_user(intake));
	journal_log(LOG_WARNING, PTD_MESSAGE_LOST, NULL, 0,
		    "code that was in no file was lost, and cannot be decoded: %s%s",
		    error == -ENOBUFS   ? "it is more than MemMax= leaves"
		    : error == -EBADMSG ? "the program that handed it over wrote nonsense"
					: strerror(-error),
		    user);
}

static void drain_code(struct intake *intake)
{
	struct source *source = intake->options.source;
	_cleanup_(freep) uint8_t *bytes = NULL;
	size_t size;
	int r;

	r = source->ops->drain(source, SOURCE_CODE, &bytes, &size);
	if (r == 0)
		r = codestore_add(intake->code, bytes, size);
	else
		codestore_lose(intake->code);
	if (r < 0 && !intake->said_no_code) {
		say_no_code(intake, r);
		intake->said_no_code = true;
	}
	if (source->kept)
		kept_draft(source->kept)->code_bytes = codestore_size(intake->code);
}

/* Note how quickly records came that were taken now, if there are enough for it to matter. */
static void note_rate(struct intake *intake, size_t size)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const uint64_t rate = size / ((now - intake->drained_ns) / 1000 + 1);

	if (size >= intake->options.source->records_room / 8 && rate > intake->rate)
		intake->rate = rate;
	intake->drained_ns = now;
}

void intake_drain(struct intake *intake)
{
	struct source *source = intake->options.source;
	const uint64_t moment = objectstore_moment(intake->options.store);
	_cleanup_(freep) uint8_t *bytes = NULL;
	size_t size;
	int r;

	r = source->ops->drain(source, SOURCE_TASKS, &bytes, &size);
	if (r == 0) {
		note_rate(intake, size);
		store_mapped(intake, bytes, size, bytes);
		r = sideband_add(intake->sideband, bytes, size);
	}
	say_storm(intake);
	say_dropped(intake);
	if (intake->code)
		drain_code(intake);
	sideband_publish(intake->sideband);
	if (source->ops->give_room)
		source->ops->give_room(source);
	note_epoch(intake, moment);
	scanner_check(intake->scanner);
	if (r < 0 && !intake->said_lost) {
		errno = -r;
		journal_log(
		    LOG_WARNING, PTD_MESSAGE_LOST, NULL, 0,
		    "cannot take all task records; code that they describe cannot be decoded "
		    "(SidebandMax= may be too small): %m");
		intake->said_lost = true;
	}
}

/* Tasks with which an epoch began are in the sideband, even if no record named them since. */
static int touch_known(struct intake *intake)
{
	struct sideband_view view;
	int r;

	r = sideband_view_init(intake->sideband, &view);
	if (r < 0)
		return r;
	for (size_t i = 0; i < view.n_spans; i++) {
		struct cursor c = view.spans[i];
		struct record_mmap2 mmap;
		struct record record;

		while (record_next(&c, &record) == 0)
			if (record_get_mmap2(&record, &mmap) == 0)
				objectstore_touch(intake->options.store, &mmap);
	}
	sideband_view_deinit(&view);
	return 0;
}

void intake_forget(struct intake *intake)
{
	int r;

	if (intake->stale == 0)
		return;
	r = touch_known(intake);
	if (r == 0)
		r = objectstore_forget(intake->options.store, intake->stale);
	if (r < 0)
		(void)log_warning_errno(r,
					"cannot remove copies that are not needed, ignoring: %m");
	intake->stale = 0;
}

static int on_timer(sd_event_source *timer, uint64_t usec, void *userdata)
{
	struct intake *intake = userdata;
	struct source *source = intake->options.source;
	/* This is checked before the last records are taken, not after. */
	const bool is_active = source->ops->status(source).is_active;
	int r = 0;

	/* The descriptor is enabled before the records are taken, because perf reports records only
	 * once. */
	if (intake->records)
		r = sd_event_source_set_enabled(intake->records, SD_EVENT_ON);
	intake_drain(intake);
	intake->options.drained(intake->options.userdata);
	if (intake->records)
		return r;
	if (!is_active && usec > intake->expected_us + GRACE_US)
		return 0;
	(void)sd_event_source_set_time(timer, usec + DRAIN_US);
	return sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);
}

/*
 * Return: for how long no records need be taken after that took @spent_ns. It is to take a small
 * part of a CPU's time, but no more than a quarter of a ring may be filled meanwhile, as quickly as
 * records have ever come: if a ring overflows, the records of all users are lost.
 */
static uint64_t pause_us(const struct intake *intake, uint64_t spent_ns)
{
	const uint64_t room = intake->options.source->records_room / 4;
	uint64_t pause = DRAIN_PART * spent_ns / 1000;

	if (room > 0 && pause > room / (intake->rate + 1))
		pause = room / (intake->rate + 1);
	return pause < DRAIN_MIN_US ? DRAIN_MIN_US : pause < DRAIN_US ? pause : DRAIN_US;
}

/* Take records at once, since what is mapped may disappear soon; and again soon, unless that takes
 * too much time. */
static int on_records(sd_event_source *records, int fd, uint32_t revents, void *userdata)
{
	struct intake *intake = userdata;
	const uint64_t begun = clock_ns(CLOCK_MONOTONIC);
	int r;

	intake_drain(intake);
	r = sd_event_source_set_time_relative(intake->timer,
					      pause_us(intake, clock_ns(CLOCK_MONOTONIC) - begun));
	if (r >= 0)
		r = sd_event_source_set_enabled(intake->timer, SD_EVENT_ONESHOT);
	if (r >= 0)
		r = sd_event_source_set_enabled(records, SD_EVENT_OFF);
	return r;
}

static int drain_for_a_while(struct intake *intake)
{
	int r;

	r = sd_event_now(intake->options.event, CLOCK_MONOTONIC, &intake->expected_us);
	if (r >= 0)
		r = sd_event_source_set_time(intake->timer, intake->expected_us + DRAIN_US);
	if (r >= 0)
		r = sd_event_source_set_enabled(intake->timer, SD_EVENT_ONESHOT);
	return r < 0 ? r : 0;
}

int intake_expect(struct intake *intake)
{
	/* What a program has left that had no business to write leaves no room for others, and what
	 * comes behind it cannot be told from it. */
	intake_drain(intake);
	return drain_for_a_while(intake);
}

/* Records of hardware are drained as long as the daemon runs. */
static int watch_source(struct intake *intake)
{
	struct source *source = intake->options.source;
	sd_event *event = intake->options.event;
	int r;

	r = sd_event_add_time(event, &intake->timer, CLOCK_MONOTONIC, 0, DRAIN_US / 10, on_timer,
			      intake);
	if (r >= 0)
		r = sd_event_source_set_enabled(intake->timer, SD_EVENT_OFF);
	if (r >= 0)
		r = sd_event_add_io(event, &intake->kept,
				    copier_fd(objectstore_copier(intake->options.store)), EPOLLIN,
				    on_kept, intake);
	if (r >= 0 && source->records_fd >= 0)
		r = sd_event_add_io(event, &intake->records, source->records_fd, EPOLLIN,
				    on_records, intake);
	return r < 0 ? r : 0;
}

/* Go on from where the process before us was. */
static int resume_intake(struct intake *intake)
{
	struct sideband_view view;
	int r;

	r = sideband_resume(intake->sideband);
	if (r == -EBADMSG) {
		log_warning("the task records of the ptd that ran before make no sense: what ran "
			    "before cannot be decoded");
		r = 0;
	}
	if (r == 0)
		r = sideband_view_init(intake->sideband, &view);
	if (r < 0)
		return r;
	/* The sideband has these records: what the process before us has changed stays. */
	for (size_t i = 0; i < view.n_spans; i++)
		store_mapped(intake, view.spans[i].pos, cursor_left(&view.spans[i]), NULL);
	sideband_view_deinit(&view);
	if (intake->code)
		codestore_lose(intake->code);
	return r < 0 ? r : drain_for_a_while(intake);
}

/* Scan the existing tasks as soon as the event loop runs. */
static int make_scanner(struct intake *intake)
{
	int r;

	r = scanner_new(&(struct scanner_options){ .event = intake->options.event,
						   .source = intake->options.source,
						   .sideband = intake->sideband,
						   .put = on_task,
						   .userdata = intake },
			&intake->scanner);
	if (r == 0)
		scanner_check(intake->scanner);
	return r;
}

int intake_new(const struct intake_options *options, struct intake **ret_intake)
{
	_cleanup_(intake_freep) struct intake *intake = calloc(1, sizeof(*intake));
	struct source *source = options->source;
	int r;

	if (!intake)
		return -ENOMEM;
	intake->options = *options;
	r = sideband_new(options->sideband_max, tasks_is_alive, source, &intake->sideband);
	if (source->facts.is_claimed)
		objectstore_set_claimed(options->store);
	if (r == 0)
		r = jitfiles_new(source->facts.is_claimed, options->runtime_dir, &intake->jitfiles);
	if (r == 0 && source->facts.gives_code)
		r = codestore_new(options->code_max, &intake->code);
	if (r == 0)
		r = watch_source(intake);
	if (r == 0 && source->kept && kept_is_resumed(source->kept))
		r = resume_intake(intake);
	if (r == 0)
		r = make_scanner(intake);
	if (r < 0)
		return r;
	sideband_publish(intake->sideband);
	*ret_intake = TAKE(intake);
	return 0;
}

struct intake *intake_free(struct intake *intake)
{
	if (!intake)
		return NULL;
	sd_event_source_disable_unref(intake->kept);
	sd_event_source_disable_unref(intake->records);
	sd_event_source_disable_unref(intake->timer);
	(void)scanner_free(intake->scanner);
	(void)jitfiles_free(intake->jitfiles);
	map_deinit(&intake->named);
	(void)codestore_free(intake->code);
	(void)sideband_free(intake->sideband);
	free(intake);
	return NULL;
}

struct sideband *intake_sideband(const struct intake *intake)
{
	return intake->sideband;
}

struct jitfiles *intake_jitfiles(const struct intake *intake)
{
	return intake->jitfiles;
}

struct codestore *intake_code(const struct intake *intake)
{
	return intake->code;
}
