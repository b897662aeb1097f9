/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/sideband/sideband.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/share/share.h"
#include "daemon/sideband/stream.h"
#include "daemon/sideband/userstreams.h"
#include "daemon/source/kept.h"
#include "daemon/source/source.h"
#include "util/perf/codec.h"
#include "util/perf/record.h"
#include "util/vec.h"

/* An epoch that is older ends even if it is not full, if the source looks at the tasks: what was
 * unmapped, or missed, is then known to be. */
#define EPOCH_NS_MAX (UINT64_C(3600) * 1000000000)

/* Epochs that a user's stream begins of itself count as new ones only after this time: what depends
 * on epochs need not be done so often. */
#define EPOCHS_COUNT_NS UINT64_C(10000000000)

struct sideband {
	uint64_t n_epochs;
	uint64_t counted_at; /* when the last of them began */
	uint64_t lost;
	uint64_t lost_unmarked; /* those of them that no LOST record counts yet */
	uint64_t n_repeats;
	uint64_t time; /* of the record added last */
	tasks_alive_fn alive;
	struct tasks *tasks;
	/* The streams begin epochs together, or one of them of itself. These two are of the epochs
	 * that all began: whether the older one is there, and when they were complete. */
	bool has_before;
	uint64_t before_since_ns, now_since_ns;
	struct userstreams streams;

	struct source *source;
	bool looks;         /* it has to look at the tasks to tell which live */
	bool asking;        /* it has not looked at all for the present epoch */
	bool torn;          /* records were lost: another epoch is to begin */
	uint64_t found;     /* the latest time of a record of a task that it found */
	struct tasks *next; /* what will be known when it has; NULL while it does not look */
};

static void ask_source(struct sideband *s);

int sideband_new(uint64_t bytes_max, tasks_alive_fn alive, struct source *source,
		 struct sideband **ret_sideband)
{
	_cleanup_(sideband_freep) struct sideband *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	*s = (struct sideband){ .n_epochs = 1, .alive = alive, .source = source };
	userstreams_init(&s->streams, source);
	sideband_set_max(s, bytes_max);
	r = tasks_new(alive, &s->tasks);
	if (r < 0)
		return r;
	ask_source(s);
	s->now_since_ns = s->looks ? SIDEBAND_NEVER : 0;
	*ret_sideband = TAKE(s);
	return 0;
}

struct sideband *sideband_free(struct sideband *sideband)
{
	if (!sideband)
		return NULL;

	userstreams_deinit(&sideband->streams);
	(void)tasks_free(sideband->tasks);
	(void)tasks_free(sideband->next);
	free(sideband);
	return NULL;
}

void sideband_set_max(struct sideband *sideband, uint64_t bytes_max)
{
	userstreams_set_max(&sideband->streams, bytes_max);
}

/* The table of what the present epoch says, and the older one as long as that is there. */
static struct tasks *present_tasks(const struct sideband *s)
{
	return s->next ? s->next : s->tasks;
}

/* Return: whether the records from some time on say all that the table of the last look does. */
static bool has_complete(const struct sideband *s)
{
	return !s->torn && (s->has_before || s->now_since_ns != SIDEBAND_NEVER);
}

/* Return: the table to begin an epoch with while the source has not looked at all tasks for the
 * present one. What it has not come to yet is only in the older table, if that was complete. */
static struct tasks *complete_tasks(const struct sideband *s)
{
	return has_complete(s) ? s->tasks : present_tasks(s);
}

/* --- room ------------------------------------------------------------------------------------- */

static void roll_stream(struct sideband *s, struct stream *st);

/* Have room for @n more chunks of the present epoch of a stream. Return: 0, or -ENOSPC. */
static int make_room(struct sideband *s, struct stream *st, size_t n)
{
	const uint64_t size = n * STREAM_CHUNK_SIZE;

	if (epoch_bytes(&st->now) + size > userstreams_limit(&s->streams, st) / 2)
		return -ENOSPC;
	while (s->streams.share.taken + size > s->streams.bytes_max) {
		struct stream *most = userstreams_largest(&s->streams);

		/* Root's epochs may still be those of a higher limit. */
		if (!most || most == st)
			return st->uid == USERSTREAMS_ROOT ? 0 : -ENOSPC;
		roll_stream(s, most);
	}
	return 0;
}

/* Add to a part of the present epoch, so that @n_spare chunks would still fit the epoch. */
static int append(struct sideband *s, struct stream *st, bool is_head, const void *bytes,
		  size_t size, size_t n_spare)
{
	const int r = stream_fits(st, is_head, size) ? 0 : make_room(s, st, 1 + n_spare);

	return r < 0 ? r : userstreams_append(&s->streams, st, is_head, bytes, size);
}

/* What a user's stream begins with leaves half of the epoch to what is new: without that, a user
 * with very many mappings could have them written all the time. But that much it has, whatever was
 * added before it was found. */
static int append_head(struct sideband *s, struct stream *st, const void *bytes, size_t size)
{
	const size_t n = st->now.head.list.n;

	if (st->uid == USERSTREAMS_ROOT || stream_fits(st, true, size))
		return append(s, st, true, bytes, size, st->now.body.list.n == 0);
	if (n > 0 && (n + 1) * STREAM_CHUNK_SIZE > userstreams_limit(&s->streams, st) / 4)
		return -ENOSPC;
	(void)!make_room(s, st, 1);
	return userstreams_append(&s->streams, st, true, bytes, size);
}

/* --- epochs ----------------------------------------------------------------------------------- */

/* A record of what the table holds. What finds no room is unknown from now on. */
static int put_known(struct sideband *s, struct stream *st, uint32_t pid, const void *bytes,
		     size_t size)
{
	int r = append_head(s, st, bytes, size);

	if (r == 0 && userstreams_is_task(pid))
		r = stream_learn(st, pid);
	if (r == 0)
		return 0;
	if (st->uid == USERSTREAMS_ROOT)
		s->lost++;
	else
		userstreams_count_dropped(&s->streams, st, 1);
	tasks_reset_repeats(present_tasks(s));
	return r;
}

static int append_known(void *userdata, const void *bytes, size_t size)
{
	struct sideband *s = userdata;
	struct cursor c = cursor_from(bytes, size);
	struct stream *st;
	struct record record;
	uint32_t pid;
	int r;

	r = record_next(&c, &record);
	assert(r == 0);
	st = userstreams_choose(&s->streams, &record, &pid);
	return put_known(s, st, pid, bytes, size);
}

/* A stream that begins an epoch of itself. */
struct rolling {
	struct sideband *sideband;
	struct stream *stream;
};

static bool is_of_stream(void *userdata, uint32_t pid)
{
	const struct rolling *rolling = userdata;

	return stream_has(rolling->stream, pid);
}

static int append_own(void *userdata, const void *bytes, size_t size)
{
	const struct rolling *rolling = userdata;
	struct cursor c = cursor_from(bytes, size);
	struct record record;
	uint32_t pid = 0;
	int r;

	r = record_next(&c, &record);
	assert(r == 0);
	r = record_read_pid(record.header.type, record.body, &pid);
	return r < 0 ? r : put_known(rolling->sideband, rolling->stream, pid, bytes, size);
}

/* Epochs of streams count as epochs of all only now and then. */
static void count_epoch(struct sideband *s)
{
	if (s->time < s->counted_at + EPOCHS_COUNT_NS)
		return;
	s->counted_at = s->time;
	s->n_epochs++;
	tasks_forget_dead(s->tasks);
}

/* Return: whether the stream's present epoch began with nothing, since the source is to look at the
 * tasks for it. It is of no use without the epoch before it. */
static bool is_unseen(const struct sideband *s, const struct stream *st)
{
	return s->asking && s->now_since_ns == SIDEBAND_NEVER && st->now.since_ns == 0;
}

/* Such an epoch ends: the stream still has the processes that the one before has records of. */
static void learn_unseen(const struct sideband *s, struct stream *st)
{
	/* Without memory, the source is asked whose the processes are. */
	if (is_unseen(s, st))
		(void)!stream_learn_before(st);
}

/* A user's stream begins an epoch of itself, and forgets its oldest records, so that those of
 * others stay. */
static void roll_stream(struct sideband *s, struct stream *st)
{
	struct rolling rolling = { .sideband = s, .stream = st };
	const uint64_t before = stream_bytes(st);
	/* If room is needed, and there is no older epoch, there is nothing else to free. */
	const bool forget = is_unseen(s, st) ||
			    (epoch_bytes(&st->before) == 0 &&
			     s->streams.share.taken + 2 * STREAM_CHUNK_SIZE > s->streams.bytes_max);

	learn_unseen(s, st);
	count_epoch(s);
	userstreams_count_dropped(&s->streams, st, stream_begin(st, st->time, forget));
	share_give(&s->streams.share, st->uid, before - stream_bytes(st));
	if (forget)
		tasks_reset_repeats(present_tasks(s));
	(void)tasks_write_some(complete_tasks(s), st->time, is_of_stream, append_own, &rolling);
}

/* The present epoch begins with all tasks that live. If the source does not know them, it has to
 * look at them, and another table is made of what it finds. */
static void ask_source(struct sideband *s)
{
	const int r = s->source->ops->tasks(s->source, s->tasks, 0, append_known, s);

	s->looks = r != 0;
	if (r == 0)
		return;
	s->asking = true;
	s->found = 0;
	s->next = tasks_free(s->next);
	/* Without memory for another table, the old one goes on, with what is no longer true. */
	if (tasks_new(s->alive, &s->next) < 0) {
		s->next = NULL;
		tasks_reset_repeats(s->tasks);
	}
}

/* All streams begin a new epoch, and with @forget the one before is freed at once. */
static void begin_streams(struct sideband *s, bool forget)
{
	each_stream(&s->streams, st)
		(void)stream_begin(st, 0, forget);
	userstreams_count(&s->streams);
	s->has_before = !forget;
	s->before_since_ns = s->now_since_ns;
	s->counted_at = s->time;
	s->n_epochs++;
	tasks_forget_dead(s->tasks);
}

/* Begin a new epoch. When records were lost, the old ones are of no more use. */
static void begin_epoch(struct sideband *s, bool lost)
{
	begin_streams(s, lost);
	s->torn = false;
	ask_source(s);
	s->now_since_ns = s->looks ? SIDEBAND_NEVER : s->time;
}

/*
 * The present epoch is full before the source has looked at all tasks. Begin another one with what
 * the records have said, so that they need not be refused. That is as good as a look, but for what
 * was unmapped, and the look goes on.
 *
 * The epoch that the look was for goes with the one before it, for there is no room for three.
 */
static void begin_unseen(struct sideband *s)
{
	const bool complete = has_complete(s);
	const struct tasks *tasks = complete_tasks(s);

	each_stream(&s->streams, st)
		learn_unseen(s, st);
	begin_streams(s, s->now_since_ns == SIDEBAND_NEVER);
	s->now_since_ns = complete ? s->time : SIDEBAND_NEVER;
	(void)tasks_write(tasks, s->time, append_known, s);
	/* What was found meanwhile, and no record had said, is among the next epoch's. */
	tasks_reset_repeats(present_tasks(s));
}

/* Nothing was found yet, so the records of this epoch are of no use before something is. Without
 * this, a process that adds too many records before the look begins would have some lost, and the
 * source look again, for ever. */
static void forget_bodies(struct sideband *s)
{
	each_stream(&s->streams, st)
		stream_clear(st);
	userstreams_count(&s->streams);
	s->torn = false;
	tasks_reset_repeats(present_tasks(s));
}

/* There is no more room for records of a user in the present epoch. */
static int append_rolled(struct sideband *s, struct stream *st, const void *bytes, size_t size)
{
	int r;

	roll_stream(s, st);
	r = append(s, st, false, bytes, size, 0);
	if (r == -ENOSPC && !s->asking) {
		/* Root has so much that there is no room for a user's part. */
		begin_epoch(s, false);
		r = append(s, st, false, bytes, size, 0);
	}
	return r == -ENOSPC ? userstreams_append(&s->streams, st, false, bytes, size) : r;
}

static int append_body(struct sideband *s, struct stream *st, const void *bytes, size_t size)
{
	const bool old = s->looks && !s->asking && s->time > s->now_since_ns &&
			 s->time - s->now_since_ns > EPOCH_NS_MAX;
	const size_t n_spare = s->asking && st->now.head.list.n == 0;
	int r = old ? -ENOSPC : append(s, st, false, bytes, size, n_spare);

	if (r != -ENOSPC)
		return r;
	if (!old && st->uid != USERSTREAMS_ROOT)
		return append_rolled(s, st, bytes, size);
	if (!s->asking)
		begin_epoch(s, false);
	else if (s->found == 0 && !s->has_before && s->now_since_ns == SIDEBAND_NEVER)
		forget_bodies(s);
	else if (!s->torn)
		begin_unseen(s);
	else
		/* Records were lost since the older epoch: when the look ends, all goes. */
		return r;
	return append(s, st, false, bytes, size, s->asking && st->now.head.list.n == 0);
}

/* Add a record to the stream: another one has later records of the process. Return: 0, or negative
 * errno. */
static int mark_left(struct sideband *s, struct stream *st, uint32_t pid, uint64_t time)
{
	uint8_t record[RECORD_OWN_MAX];
	const size_t size =
	    userstreams_write_mark(pid, time > 0 ? time - 1 : 0, record, sizeof(record));
	const int r = append_body(s, st, record, size);

	stream_unlearn(st, pid);
	return r;
}

/* @st is about to get records of the process. What another stream has of it was before; should @st
 * forget the new ones, a reader must not take the old ones for true. */
static int leave_others(struct sideband *s, const struct stream *st, uint32_t pid, uint64_t time)
{
	int r = 0;

	if (pid == 0 || stream_has(st, pid))
		return 0;
	each_stream(&s->streams, other)
		if (r == 0 && other != st && stream_has(other, pid))
			r = mark_left(s, other, pid, time);
	return r;
}

/* Write the record that counts those that were refused. Return: its size. */
static size_t write_unmarked(const struct sideband *s, uint64_t time, void *to, size_t room)
{
	const struct record_lost lost = { .id = RECORD_ID_SIDEBAND, .lost = s->lost_unmarked };
	const struct trailer trailer = record_trailer(0, 0, time);

	return record_write_lost(&lost, &trailer, to, room);
}

/* Add a record that counts those that were refused, as soon as something fits again. */
static int mark_lost(struct sideband *s, uint64_t time)
{
	uint8_t record[RECORD_OWN_MAX];
	int r;

	if (s->lost_unmarked == 0)
		return 0;
	r = append_body(s, &s->streams.all[USERSTREAMS_ROOT], record,
			write_unmarked(s, time, record, sizeof(record)));
	if (r == 0)
		s->lost_unmarked = 0;
	return r;
}

/* Records that the source itself had to drop. */
static void count_lost(struct sideband *s, const struct record *record)
{
	struct record_lost lost;

	if (record->header.type != PERF_RECORD_LOST || record_read_lost(record->body, &lost) < 0)
		return;
	s->lost += lost.lost;
	s->torn = true;
}

/* Take note of what the record says, in both tables. */
static int note_record(struct sideband *s, const struct record *record, uid_t uid, bool is_kept)
{
	int r, r_next = 0;

	tasks_set_user(s->tasks, uid);
	r = tasks_add(s->tasks, record);
	if (s->next) {
		tasks_set_user(s->next, uid);
		r_next = tasks_add(s->next, record);
	}
	if (!is_kept || r < 0)
		tasks_reset_repeats(s->tasks);
	if (s->next && (!is_kept || r_next < 0))
		tasks_reset_repeats(s->next);
	return r ? r : r_next;
}

/* Add the record to the stream of its process. */
static int append_record(struct sideband *s, const struct record *record, uid_t *ret_uid)
{
	uint32_t pid;
	struct stream *st = userstreams_choose(&s->streams, record, &pid);
	int r;

	*ret_uid = st->uid;
	r = leave_others(s, st, pid, record->trailer.time);
	if (r == 0)
		r = append_body(s, st, record->bytes, record->header.size);
	if (r == 0 && pid != 0)
		r = stream_learn(st, pid);
	if (record->trailer.time > st->time)
		st->time = record->trailer.time;
	return r;
}

/* Count the user's processes beyond the limit of the table: their state will be unknown when the
 * next epoch begins. Return: 0 if @known is -ENOSPC, which is then handled; or @known. */
static int count_unknown(struct sideband *s, uid_t uid, int known)
{
	uid_t given_by;

	if (known == -ENOSPC && uid != USERSTREAMS_ROOT) {
		userstreams_count_dropped(&s->streams, userstreams_of(&s->streams, uid), 1);
		known = 0;
	}
	while (tasks_next_given(s->tasks, &given_by))
		userstreams_count_dropped(&s->streams, userstreams_of(&s->streams, given_by), 1);
	return known;
}

static int add_record(struct sideband *s, const struct record *record)
{
	uid_t uid = USERSTREAMS_ROOT;
	int r, known;

	if (tasks_repeats(present_tasks(s), record)) {
		s->n_repeats++;
		if (record->trailer.time > s->time)
			s->time = record->trailer.time;
		return 0;
	}
	r = mark_lost(s, record->trailer.time);
	if (r == 0)
		r = append_record(s, record, &uid);
	if (r < 0) {
		s->lost++;
		s->lost_unmarked++;
		s->torn = true;
	}
	if (record->trailer.time > s->time)
		s->time = record->trailer.time;
	count_lost(s, record);
	known = count_unknown(s, uid, note_record(s, record, uid, r == 0));
	/* A new epoch begins with the record that counts the loss; but not while another epoch is
	 * just beginning. */
	if (s->torn && !s->asking) {
		begin_epoch(s, true);
		if (r == 0)
			r = append_record(s, record, &uid);
	}
	return r ? r : known;
}

int sideband_add(struct sideband *sideband, const uint8_t *bytes, size_t size)
{
	struct cursor c = cursor_from(bytes, size);
	struct record record;
	int first = 0;

	while (record_next(&c, &record) == 0) {
		const int r = add_record(sideband, &record);

		first = first ? first : r;
	}
	return first;
}

bool sideband_wants_look(const struct sideband *sideband)
{
	return sideband->asking;
}

uid_t sideband_user(const struct sideband *sideband, uint32_t pid)
{
	each_stream(&sideband->streams, st)
		if (stream_has(st, pid))
			return st->uid == SHARE_OTHERS ? 0 : st->uid;
	return 0;
}

const struct tasks *sideband_known(const struct sideband *sideband)
{
	return sideband->tasks;
}

int sideband_add_found(void *sideband, const void *bytes, size_t size)
{
	struct sideband *s = sideband;
	struct cursor c = cursor_from(bytes, size);
	struct record record;
	struct stream *st;
	uint32_t pid;
	int r, known;

	r = record_next(&c, &record);
	assert(r == 0);
	st = userstreams_choose(&s->streams, &record, &pid);
	/* Without room for it its task will be unknown, which does no harm to the others. */
	r = put_known(s, st, pid, bytes, size);
	if (record.trailer.time > s->found)
		s->found = record.trailer.time;
	tasks_set_user(present_tasks(s), st->uid);
	known = count_unknown(s, st->uid, tasks_add_found(present_tasks(s), &record));
	return r ? r : known;
}

void sideband_end_look(struct sideband *sideband)
{
	struct sideband *s = sideband;

	s->asking = false;
	if (s->now_since_ns == SIDEBAND_NEVER)
		s->now_since_ns = s->found ? s->found : s->time;
	if (s->next) {
		(void)tasks_free(s->tasks);
		s->tasks = TAKE(s->next);
	}
	if (s->torn)
		begin_epoch(s, true);
}

/* --- what is kept ----------------------------------------------------------------------------- */

void sideband_publish(const struct sideband *sideband)
{
	const struct sideband *s = sideband;
	struct kept *kept = s->source->kept;

	if (!kept)
		return;
	kept_draft(kept)->sideband = (struct kept_sideband){
		.n_epochs = s->n_epochs,
		.time = s->time,
		.lost = s->lost,
		.lost_unmarked = s->lost_unmarked,
		.n_repeats = s->n_repeats,
		.before_since_ns = s->before_since_ns,
		.now_since_ns = s->now_since_ns,
		.has_before = s->has_before,
		.asking = s->asking,
		.torn = s->torn,
	};
	for (size_t i = 0; i < KEPT_STREAMS_MAX; i++)
		kept_draft(kept)->sideband.streams[i] = stream_keep(&s->streams.all[i]);
	kept_publish(kept);
}

/* The source did not end its look at the tasks: it has to begin again. What was known before is
 * what the older epoch says, unless the present one began with it. */
static int note_interrupted(struct sideband *s)
{
	struct userstreams *u = &s->streams;
	const bool is_whole = s->now_since_ns != SIDEBAND_NEVER;
	int r = is_whole ? userstreams_note(u, STREAM_NOW_HEAD, STREAM_NOW_HEAD, s->tasks)
			 : userstreams_note(u, STREAM_BEFORE_HEAD, STREAM_BEFORE_BODY, s->tasks);
	int other = userstreams_note(u, STREAM_NOW_BODY, STREAM_NOW_BODY, s->tasks);

	if (!is_whole)
		each_stream(u, st)
			stream_forget_head(st);
	userstreams_count(u);
	ask_source(s);
	if (s->next && userstreams_note(u, STREAM_NOW_BODY, STREAM_NOW_BODY, s->next) < 0)
		tasks_reset_repeats(s->next);
	return r ? r : other;
}

int sideband_resume(struct sideband *sideband)
{
	struct sideband *s = sideband;
	const struct kept_sideband *k = &kept_draft(s->source->kept)->sideband;
	int r, noted;

	s->n_epochs = k->n_epochs + 1;
	s->time = k->time;
	s->now_since_ns = s->looks ? SIDEBAND_NEVER : k->time;
	r = userstreams_resume(&s->streams, k);
	if (r < 0)
		return r;
	s->n_epochs = k->n_epochs;
	s->has_before = k->has_before;
	s->before_since_ns = k->before_since_ns;
	s->now_since_ns = k->now_since_ns;
	s->lost = k->lost;
	s->lost_unmarked = k->lost_unmarked;
	s->n_repeats = k->n_repeats;
	s->torn = k->torn;
	if (k->asking) {
		noted = note_interrupted(s);
	} else {
		s->next = tasks_free(s->next);
		s->asking = false;
		noted = userstreams_note(&s->streams, STREAM_NOW_HEAD, STREAM_NOW_BODY, s->tasks);
	}
	if (noted < 0)
		tasks_reset_repeats(s->tasks);
	return noted == -ENOMEM ? noted : 0;
}

static size_t write_unmarked_now(const void *userdata, void *to, size_t room)
{
	const struct sideband *s = userdata;

	return write_unmarked(s, s->time, to, room);
}

/* Records were refused, and no room has come since for one that says so: the view's own does. */
static int view_lost(const struct sideband *s, struct sideband_view *view)
{
	struct sideband_chunk *chunk;

	if (s->lost_unmarked == 0)
		return 0;
	chunk = chunk_of(write_unmarked_now, s);
	if (!chunk)
		return -ENOMEM;
	chunk_view(chunk, view);
	return 0;
}

/* Note whose records begin later than those of others. */
static void view_cut(const struct stream *st, struct sideband_view *view)
{
	const uint64_t since_ns = stream_first(st)->since_ns;

	if (st->n_dropped > 0 && since_ns > view->since_ns)
		view->cuts[view->n_cuts++] = (struct sideband_cut){ .uid = st->uid,
								    .since_ns = since_ns,
								    .n_dropped = st->n_dropped };
}

int sideband_view_init(const struct sideband *sideband, struct sideband_view *ret_view)
{
	struct sideband_view v = {
		.since_ns =
		    sideband->has_before ? sideband->before_since_ns : sideband->now_since_ns,
	};
	size_t n = 1;
	int r;

	for (size_t i = 0; i < KEPT_STREAMS_MAX; i++)
		n += stream_n_chunks(&sideband->streams.all[i]);
	v.spans = calloc(n, sizeof(*v.spans));
	v.chunks = calloc(n, sizeof(struct sideband_chunk *));
	r = v.spans && v.chunks ? 0 : -ENOMEM;
	if (r == 0)
		r = tasks_ranges(sideband->tasks, &v.ranges, &v.n_ranges);
	if (r == 0) {
		for (size_t i = 0; i < KEPT_STREAMS_MAX; i++) {
			stream_view(&sideband->streams.all[i], &v);
			view_cut(&sideband->streams.all[i], &v);
		}
		r = view_lost(sideband, &v);
	}
	if (r < 0) {
		sideband_view_deinit(&v);
		return r;
	}
	*ret_view = v;
	return 0;
}

void sideband_view_deinit(struct sideband_view *view)
{
	for (size_t i = 0; i < view->n_spans; i++)
		chunk_unref(view->chunks[i]);
	free(view->chunks);
	free(view->spans);
	free(view->ranges);
	*view = (struct sideband_view){};
}

void sideband_list_mapped(const struct sideband *sideband,
			  void (*list)(void *userdata, const struct record_mmap2 *mmap),
			  void *userdata)
{
	tasks_list_mapped(sideband->tasks, list, userdata);
	if (sideband->next)
		tasks_list_mapped(sideband->next, list, userdata);
}

bool sideband_next_storm(struct sideband *sideband, struct tasks_storm *ret_storm)
{
	return tasks_next_storm(present_tasks(sideband), ret_storm);
}

bool sideband_next_dropped(struct sideband *sideband, struct sideband_dropped *ret_dropped)
{
	if (!sideband->streams.has_dropped)
		return false;
	sideband->streams.has_dropped = false;
	*ret_dropped = sideband->streams.dropped;
	return true;
}

const struct share *sideband_share(const struct sideband *sideband)
{
	return &sideband->streams.share;
}

uint64_t sideband_epochs(const struct sideband *sideband)
{
	return sideband->n_epochs;
}

struct sideband_stats sideband_stats(const struct sideband *sideband)
{
	return (struct sideband_stats){
		.bytes = sideband->streams.share.taken,
		.bytes_max = sideband->streams.bytes_max,
		.lost = sideband->lost,
		.n_repeats = sideband->n_repeats,
	};
}
