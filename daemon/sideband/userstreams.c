/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/sideband/userstreams.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/sideband/tasks.h"
#include "daemon/source/source.h"
#include "util/map.h"
#include "util/perf/codec.h"
#include "util/perf/record.h"

#define ROOT USERSTREAMS_ROOT

/* The last stream is of all users for whom there is no other. */
#define STREAM_OTHERS (KEPT_STREAMS_MAX - 1)

/* The least that one stream takes: two epochs of two chunks, one for what was known, one for what
 * is new. */
#define STREAM_MIN (UINT64_C(4) * STREAM_CHUNK_SIZE)

/* How often a source may be asked whose a process is, if it has to look for that. */
#define ASK_A_SECOND 5000u
#define SECOND_NS    UINT64_C(1000000000)

void userstreams_init(struct userstreams *u, struct source *source)
{
	*u = (struct userstreams){ .source = source };
	for (uint32_t i = 0; i < KEPT_STREAMS_MAX; i++)
		u->all[i].number = i;
	u->all[ROOT].is_used = true;
}

void userstreams_deinit(struct userstreams *u)
{
	each_stream(u, st)
		stream_clear(st);
}

void userstreams_set_max(struct userstreams *u, uint64_t bytes_max)
{
	u->bytes_max = bytes_max < STREAM_MIN ? STREAM_MIN : bytes_max;
}

/* --- whose records they are ------------------------------------------------------------------- */

/* How many streams there may be: each has room for two epochs. */
static size_t streams_max(const struct userstreams *u)
{
	const uint64_t n = u->bytes_max / STREAM_MIN;

	return n < KEPT_STREAMS_MAX ? (size_t)n : KEPT_STREAMS_MAX;
}

static struct stream *use_stream(struct userstreams *u, size_t i, uid_t uid)
{
	struct stream *st = &u->all[i];

	if (!st->is_used) {
		st->is_used = true;
		st->uid = uid;
		st->n_dropped = 0;
		/* Opens the account. */
		share_take(&u->share, uid, 0);
	}
	return st;
}

static struct stream *others_stream(struct userstreams *u)
{
	return streams_max(u) == 1 ? &u->all[ROOT] : use_stream(u, STREAM_OTHERS, SHARE_OTHERS);
}

struct stream *userstreams_of(struct userstreams *u, uid_t uid)
{
	size_t i = 1, unused = 0;

	if (uid == ROOT || streams_max(u) == 1)
		return &u->all[ROOT];
	for (; i < STREAM_OTHERS && (!u->all[i].is_used || u->all[i].uid != uid); i++) {
		/* Nothing is left of the records of a user who was here. */
		if (u->all[i].is_used && stream_n_chunks(&u->all[i]) == 0) {
			stream_clear(&u->all[i]);
			u->all[i].is_used = false;
		}
		if (unused == 0 && !u->all[i].is_used && i + 2 <= streams_max(u))
			unused = i;
	}
	if (i < STREAM_OTHERS)
		return &u->all[i];
	return unused > 0 ? use_stream(u, unused, uid) : others_stream(u);
}

/* Return: the stream that has the latest records of the process; NULL: none has any. */
static struct stream *holding_stream(struct userstreams *u, uint32_t pid)
{
	each_stream(u, st)
		if (stream_has(st, pid))
			return st;
	return NULL;
}

/* Return: whether the source may be asked once more. Users need no parts of that: while one of them
 * executes very many programs, those of others count for who executed them, who is hardly ever
 * another user. */
static bool may_ask(struct userstreams *u)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (now - u->asked_since > SECOND_NS) {
		u->asked_since = now;
		u->n_asked = 0;
	}
	return u->n_asked++ < ASK_A_SECOND;
}

/* Ask the source whose the process is. Return: the user's stream; NULL: it does not know. */
static struct stream *find_stream(struct userstreams *u, uint32_t pid)
{
	uid_t uid;

	if (!u->source->ops->owner || streams_max(u) == 1)
		return &u->all[ROOT];
	return may_ask(u) && u->source->ops->owner(u->source, pid, &uid) == 0
		   ? userstreams_of(u, uid)
		   : NULL;
}

bool userstreams_is_task(uint32_t pid)
{
	return pid != 0 && pid != UINT32_MAX;
}

struct stream *userstreams_choose(struct userstreams *u, const struct record *record,
				  uint32_t *ret_pid)
{
	struct stream *st = NULL;
	struct record_task task;
	struct record_comm comm;

	if (record_read_pid(record->header.type, record->body, ret_pid) < 0 ||
	    !userstreams_is_task(*ret_pid)) {
		*ret_pid = 0;
		return &u->all[ROOT];
	}
	if (record->header.type == PERF_RECORD_FORK && record_get_task(record, &task) == 0 &&
	    task.pid != task.ppid)
		st = holding_stream(u, task.ppid);
	else if (record->header.type == PERF_RECORD_COMM &&
		 record_read_comm(record->header.misc, record->body, &comm) == 0 && comm.exec)
		st = find_stream(u, comm.pid);
	if (!st)
		st = holding_stream(u, *ret_pid);
	if (!st)
		st = find_stream(u, *ret_pid);
	return st ? st : others_stream(u);
}

/* --- room ------------------------------------------------------------------------------------- */

/* Bytes that all users may have together. */
static uint64_t users_max(const struct userstreams *u)
{
	return u->bytes_max - u->bytes_max / SHARE_RESERVE;
}

/* Return: how much users have that they need not give to root. */
static uint64_t users_parts(struct userstreams *u)
{
	uint64_t sum = 0;

	each_stream(u, st) {
		const uint64_t bytes = stream_bytes(st);
		const uint64_t part = share_part(&u->share, users_max(u), st->uid);

		if (st->uid != ROOT)
			sum += bytes < part ? bytes : part;
	}
	return sum;
}

uint64_t userstreams_limit(struct userstreams *u, const struct stream *st)
{
	const uint64_t least = STREAM_MIN;
	const bool root = st->uid == ROOT;
	const uint64_t max = root ? u->bytes_max : users_max(u);
	const uint64_t others = root ? users_parts(u) : u->share.taken - stream_bytes(st);
	const uint64_t part = root ? 0 : share_part(&u->share, max, st->uid);
	const uint64_t left = max > others ? max - others : 0;

	return left > part && left > least ? left : part > least ? part : least;
}

struct stream *userstreams_largest(struct userstreams *u)
{
	struct stream *most = NULL;

	each_stream(u, st)
		if (st->uid != ROOT && (!most || stream_bytes(st) > stream_bytes(most)))
			most = st;
	return most && share_exceeds(&u->share, u->bytes_max, most->uid) ? most : NULL;
}

int userstreams_append(struct userstreams *u, struct stream *st, bool is_head, const void *bytes,
		       size_t size)
{
	const uint64_t before = epoch_bytes(&st->now);
	const int r = stream_append(st, is_head, u->source->kept, bytes, size);

	share_take(&u->share, st->uid, epoch_bytes(&st->now) - before);
	return r;
}

void userstreams_count(struct userstreams *u)
{
	share_restart(&u->share);
	each_stream(u, st)
		share_take(&u->share, st->uid, stream_bytes(st));
}

void userstreams_count_dropped(struct userstreams *u, struct stream *st, uint64_t n)
{
	if (n == 0)
		return;
	st->n_dropped += n;
	share_count_taken_back(&u->share, st->uid);
	u->has_dropped = true;
	u->dropped = (struct sideband_dropped){ .uid = st->uid, .n_records = st->n_dropped };
}

/* --- what is kept ----------------------------------------------------------------------------- */

size_t userstreams_write_mark(uint32_t pid, uint64_t time, void *to, size_t room)
{
	const struct record_comm comm = { .exec = true, .pid = pid, .tid = pid, .comm = "" };
	const struct trailer trailer = record_trailer(pid, pid, time);

	return record_write_comm(&comm, &trailer, to, room);
}

/* A record that userstreams_write_mark() made. */
static bool is_mark(const struct record *record)
{
	struct record_comm comm;

	return record->header.type == PERF_RECORD_COMM &&
	       record_read_comm(record->header.misc, record->body, &comm) == 0 && comm.exec &&
	       (!comm.comm || comm.comm[0] == '\0');
}

/* Which stream has the latest records of each process, from the earliest record on. */
static int learn_record(void *userdata, struct stream *stream, enum stream_row row,
			const struct record *record)
{
	struct userstreams *u = userdata;
	struct epoch *epoch = row < STREAM_NOW_HEAD ? &stream->before : &stream->now;
	uint32_t pid;

	if (record_read_pid(record->header.type, record->body, &pid) < 0 ||
	    !userstreams_is_task(pid) || is_mark(record))
		return 0;
	each_stream(u, other)
		if (other != stream)
			stream_unlearn(other, pid);
	return map_put(&epoch->pids, pid, 1);
}

/* Find the chunks of the process before. Return: 0; or as userstreams_resume(), and there are
 * none. */
static int find_streams(const struct userstreams *u, const struct kept_sideband *k,
			struct stream ret_streams[static KEPT_STREAMS_MAX])
{
	int r = 0, settled;

	for (uint32_t i = 0; i < KEPT_STREAMS_MAX; i++)
		ret_streams[i] = (struct stream){ .number = i };
	for (size_t i = 0; r == 0 && i < KEPT_STREAMS_MAX; i++)
		r = stream_expect(&ret_streams[i], &k->streams[i]);
	if (r == 0) {
		r = streams_find(ret_streams, u->source->kept, k->streams);
		for (size_t i = 0; i < KEPT_STREAMS_MAX; i++) {
			settled = stream_settle(&ret_streams[i], &k->streams[i]);
			r = r ? r : settled;
		}
	}
	for (size_t i = 0; r < 0 && i < KEPT_STREAMS_MAX; i++)
		stream_clear(&ret_streams[i]);
	return r;
}

int userstreams_resume(struct userstreams *u, const struct kept_sideband *kept)
{
	struct stream streams[KEPT_STREAMS_MAX];
	int r;

	/* The chunks of a state that makes no sense are never found again. */
	for (size_t i = 0; i < KEPT_STREAMS_MAX; i++)
		u->all[i].n_epochs = kept->streams[i].n_epochs + 2;
	r = find_streams(u, kept, streams);
	if (r < 0)
		return r;
	for (size_t i = 0; i < KEPT_STREAMS_MAX; i++) {
		stream_clear(&u->all[i]);
		u->all[i] = streams[i];
	}
	u->all[ROOT].is_used = true;
	userstreams_count(u);
	return streams_walk(u->all, STREAM_BEFORE_HEAD, STREAM_NOW_BODY, learn_record, u);
}

static int note_kept(void *userdata, struct stream *stream, enum stream_row row,
		     const struct record *record)
{
	struct tasks *tasks = userdata;
	const bool is_head = row == STREAM_BEFORE_HEAD || row == STREAM_NOW_HEAD;

	if (is_mark(record))
		return 0;
	tasks_set_user(tasks, stream->uid);
	return is_head ? tasks_add_found(tasks, record) : tasks_add(tasks, record);
}

int userstreams_note(struct userstreams *u, enum stream_row first, enum stream_row last,
		     struct tasks *tasks)
{
	return streams_walk(u->all, first, last, note_kept, tasks);
}
