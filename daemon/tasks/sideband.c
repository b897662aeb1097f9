/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/tasks/sideband.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "daemon/source/kept.h"
#include "daemon/source/source.h"
#include "record/codec.h"
#include "record/record.h"
#include "util/vec.h"

#define CHUNK_SIZE (KEPT_SLOT_SIZE - 32) /* what remains of a slot */

/* An epoch that is older ends even if it is not full, if the source looks at the tasks: what was
 * unmapped, or missed, is then known to be. */
#define EPOCH_NS_MAX (UINT64_C(3600) * 1000000000)

/* One for what was known, one for what is new. */
#define EPOCH_CHUNKS_MIN 2u

static_assert(CHUNK_SIZE >= RECORD_SIZE_MAX, "a record must fit a chunk");

/* Where a chunk belongs. */
struct place {
	uint64_t epoch;
	uint32_t is_head;
	uint32_t index; /* in the head or body of the epoch */
};

/* In a slot of the kept state. */
struct sideband_chunk {
	struct kept *kept; /* borrowed; NULL: the slot is none of its own */
	struct place place;
	uint32_t n_refs; /* counted in the sideband's thread only */
	uint32_t used;
	uint8_t bytes[CHUNK_SIZE];
};

static_assert(sizeof(struct sideband_chunk) == KEPT_SLOT_SIZE, "a chunk fills a slot");

struct chunks {
	VEC(struct sideband_chunk *) list;
};

struct epoch {
	struct chunks head; /* what was known when it began, as records */
	struct chunks body; /* what was added since */
	uint64_t since_ns;  /* when it was complete */
};

struct sideband {
	uint64_t bytes_max;
	uint64_t n_epochs;
	uint64_t lost;
	uint64_t lost_unmarked; /* those of them that no LOST record counts yet */
	uint64_t n_repeats;
	uint64_t time; /* of the record added last */
	tasks_alive_fn alive;
	struct tasks *tasks;
	bool has_before;
	struct epoch before;
	struct epoch now;

	struct source *source;
	bool looks;         /* it has to look at the tasks to tell which live */
	bool asking;        /* it has not looked at all for the present epoch */
	bool torn;          /* records were lost: another epoch is to begin */
	uint64_t found;     /* the latest time of a record of a task that it found */
	struct tasks *next; /* what will be known when it has; NULL while it does not look */
};

static void chunk_unref(struct sideband_chunk *chunk)
{
	assert(chunk->n_refs > 0);
	if (--chunk->n_refs == 0)
		(void)kept_slot_free(chunk->kept, chunk);
}

/* Return: an empty chunk with one reference; NULL: there is no memory. */
static struct sideband_chunk *chunk_new(struct kept *kept, const struct place *place)
{
	struct sideband_chunk *chunk = kept_slot_new(kept);

	if (chunk) {
		chunk->kept = kept;
		chunk->place = *place;
		chunk->n_refs = 1;
	}
	return chunk;
}

static void chunks_deinit(struct chunks *chunks)
{
	for (size_t i = 0; i < chunks->list.n; i++)
		chunk_unref(chunks->list.items[i]);
	vec_deinit(&chunks->list);
}

static void epoch_deinit(struct epoch *epoch)
{
	chunks_deinit(&epoch->head);
	chunks_deinit(&epoch->body);
}

static uint64_t epoch_bytes(const struct epoch *epoch)
{
	return (epoch->head.list.n + epoch->body.list.n) * sizeof(struct sideband_chunk);
}

static void ask_source(struct sideband *s);

int sideband_new(uint64_t bytes_max, tasks_alive_fn alive, struct source *source,
		 struct sideband **ret_sideband)
{
	_cleanup_(sideband_freep) struct sideband *s = malloc(sizeof(*s));
	int r;

	if (!s)
		return -ENOMEM;
	*s = (struct sideband){ .n_epochs = 1, .alive = alive, .source = source };
	sideband_set_max(s, bytes_max);
	r = tasks_new(alive, &s->tasks);
	if (r < 0)
		return r;
	ask_source(s);
	*ret_sideband = TAKE(s);
	return 0;
}

struct sideband *sideband_free(struct sideband *sideband)
{
	if (!sideband)
		return NULL;

	epoch_deinit(&sideband->before);
	epoch_deinit(&sideband->now);
	(void)tasks_free(sideband->tasks);
	(void)tasks_free(sideband->next);
	free(sideband);
	return NULL;
}

void sideband_set_max(struct sideband *sideband, uint64_t bytes_max)
{
	const uint64_t least = EPOCH_CHUNKS_MIN * 2 * sizeof(struct sideband_chunk);

	sideband->bytes_max = bytes_max < least ? least : bytes_max;
}

/* Add to @to, a part of the present epoch, so that @n_spare chunks would still fit the epoch. */
static int append(struct sideband *s, struct chunks *to, const void *bytes, size_t size,
		  size_t n_spare)
{
	struct sideband_chunk *chunk = to->list.n ? to->list.items[to->list.n - 1] : NULL;
	int r;

	if (!chunk || CHUNK_SIZE - chunk->used < size) {
		if (epoch_bytes(&s->now) + (1 + n_spare) * sizeof(*chunk) > s->bytes_max / 2)
			return -ENOSPC;
		chunk =
		    chunk_new(s->source->kept, &(struct place){ .epoch = s->n_epochs,
								.is_head = to == &s->now.head,
								.index = (uint32_t)to->list.n });
		if (!chunk)
			return -ENOMEM;
		r = vec_push(&to->list, chunk);
		if (r < 0) {
			chunk_unref(chunk);
			return r;
		}
	}
	memcpy(chunk->bytes + chunk->used, bytes, size);
	chunk->used += (uint32_t)size;
	return 0;
}

static int append_head(struct sideband *s, const void *bytes, size_t size)
{
	return append(s, &s->now.head, bytes, size, s->now.body.list.n == 0);
}

/* A record of what the table holds. What finds no room is unknown from now on. */
static int append_known(void *userdata, const void *bytes, size_t size)
{
	struct sideband *s = userdata;
	const int r = append_head(s, bytes, size);

	if (r < 0) {
		s->lost++;
		tasks_reset_repeats(s->tasks);
	}
	return r;
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
	s->now.since_ns = SIDEBAND_NEVER;
	s->next = tasks_free(s->next);
	/* Without memory for another table, the old one goes on, with what is no longer true. */
	if (tasks_new(s->alive, &s->next) < 0) {
		s->next = NULL;
		tasks_reset_repeats(s->tasks);
	}
}

/* The table of what the present epoch says, and the older one as long as that is there. */
static struct tasks *present_tasks(const struct sideband *s)
{
	return s->next ? s->next : s->tasks;
}

/* Begin a new epoch. When records were lost, the old ones are of no more use. */
static void begin_epoch(struct sideband *s, bool lost)
{
	epoch_deinit(&s->before);
	s->before = s->now;
	s->has_before = !lost;
	if (lost) {
		epoch_deinit(&s->before);
		s->before = (struct epoch){};
	}
	s->now = (struct epoch){ .since_ns = s->time };
	s->n_epochs++;
	s->torn = false;
	tasks_forget_dead(s->tasks);
	ask_source(s);
}

/* Nothing was found yet, so the records of this epoch are of no use before something is. Without
 * this, a process that adds too many records before the look begins would have some lost, and the
 * source look again, for ever. */
static void forget_body(struct sideband *s)
{
	chunks_deinit(&s->now.body);
	s->torn = false;
	tasks_reset_repeats(present_tasks(s));
}

static int append_body(struct sideband *s, const void *bytes, size_t size)
{
	const bool old = s->looks && !s->asking && s->time > s->now.since_ns &&
			 s->time - s->now.since_ns > EPOCH_NS_MAX;
	const size_t n_spare = s->asking && s->now.head.list.n == 0;
	int r = old ? -ENOSPC : append(s, &s->now.body, bytes, size, n_spare);

	if (r != -ENOSPC)
		return r;
	if (!s->asking)
		begin_epoch(s, false);
	else if (s->found == 0 && !s->has_before)
		forget_body(s);
	else
		/* The older epoch cannot go before the present one is complete. */
		return r;
	return append(s, &s->now.body, bytes, size, s->asking);
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
	r = append_body(s, record, write_unmarked(s, time, record, sizeof(record)));
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
static int note_record(struct sideband *s, const struct record *record, bool is_kept)
{
	int r = tasks_add(s->tasks, record), r_next = s->next ? tasks_add(s->next, record) : 0;

	if (!is_kept || r < 0)
		tasks_reset_repeats(s->tasks);
	if (s->next && (!is_kept || r_next < 0))
		tasks_reset_repeats(s->next);
	return r ? r : r_next;
}

static int add_record(struct sideband *s, const struct record *record)
{
	int r, known;

	if (tasks_repeats(present_tasks(s), record)) {
		s->n_repeats++;
		if (record->trailer.time > s->time)
			s->time = record->trailer.time;
		return 0;
	}
	r = mark_lost(s, record->trailer.time);
	if (r == 0)
		r = append_body(s, record->bytes, record->header.size);
	if (r < 0) {
		s->lost++;
		s->lost_unmarked++;
		s->torn = true;
	}
	if (record->trailer.time > s->time)
		s->time = record->trailer.time;
	count_lost(s, record);
	known = note_record(s, record, r == 0);
	/* A new epoch begins with the record that counts the loss; but not while another epoch is
	 * just beginning. */
	if (s->torn && !s->asking) {
		begin_epoch(s, true);
		if (r == 0)
			r = append_body(s, record->bytes, record->header.size);
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

const struct tasks *sideband_known(const struct sideband *sideband)
{
	return sideband->tasks;
}

int sideband_add_found(void *sideband, const void *bytes, size_t size)
{
	struct sideband *s = sideband;
	struct cursor c = cursor_from(bytes, size);
	struct record record;
	int r, known;

	r = record_next(&c, &record);
	assert(r == 0);
	r = append_head(s, bytes, size);
	/* Its task will be unknown, which does no harm to the others. */
	s->lost += r < 0;
	if (record.trailer.time > s->found)
		s->found = record.trailer.time;
	known = tasks_add_found(present_tasks(s), &record);
	return r ? r : known;
}

void sideband_end_look(struct sideband *sideband)
{
	struct sideband *s = sideband;

	s->asking = false;
	s->now.since_ns = s->found ? s->found : s->time;
	if (s->next) {
		(void)tasks_free(s->tasks);
		s->tasks = TAKE(s->next);
	}
	if (s->torn)
		begin_epoch(s, true);
}

/* --- what is kept ----------------------------------------------------------------------------- */

static struct kept_row row_of(const struct chunks *chunks)
{
	const size_t n = chunks->list.n;

	return (struct kept_row){ .n_slots = (uint32_t)n,
				  .last_used = n > 0 ? chunks->list.items[n - 1]->used : 0 };
}

static struct kept_epoch epoch_of(const struct epoch *epoch)
{
	return (struct kept_epoch){ .since_ns = epoch->since_ns,
				    .head = row_of(&epoch->head),
				    .body = row_of(&epoch->body) };
}

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
		.has_before = s->has_before,
		.asking = s->asking,
		.before = epoch_of(&s->before),
		.now = epoch_of(&s->now),
	};
	kept_publish(kept);
}

/* Make room for the chunks of a row, none of which is there yet. */
static int expect_row(const struct kept_row *row, struct chunks *ret_chunks)
{
	const struct chunks none = {};
	int r;

	*ret_chunks = none;
	/* More slots than any file has: what was kept makes no sense. */
	if (row->n_slots > UINT32_MAX / KEPT_SLOT_SIZE)
		return -EBADMSG;
	r = vec_reserve(&ret_chunks->list, row->n_slots);
	for (size_t i = 0; r == 0 && i < row->n_slots; i++)
		ret_chunks->list.items[i] = NULL;
	return r;
}

static int expect_rows(struct epoch epochs[static 2], const struct kept_sideband *kept)
{
	int r = expect_row(&kept->before.head, &epochs[0].head);

	if (r == 0)
		r = expect_row(&kept->before.body, &epochs[0].body);
	if (r == 0)
		r = expect_row(&kept->now.head, &epochs[1].head);
	return r ? r : expect_row(&kept->now.body, &epochs[1].body);
}

/* Put the chunk where it belongs. Return: whether it belongs anywhere. */
static bool put_chunk(struct epoch epochs[static 2], const struct kept_sideband *kept,
		      struct sideband_chunk *chunk)
{
	const struct place *place = &chunk->place;
	const bool is_now = place->epoch == kept->n_epochs;
	const struct kept_epoch *of = is_now ? &kept->now : &kept->before;
	const struct kept_row *row = place->is_head ? &of->head : &of->body;
	struct epoch *epoch = &epochs[is_now];
	struct chunks *chunks = place->is_head ? &epoch->head : &epoch->body;

	if ((!is_now && (!kept->has_before || place->epoch + 1 != kept->n_epochs)) ||
	    place->index >= row->n_slots || chunks->list.items[place->index])
		return false;
	if (place->index + 1 == row->n_slots)
		chunk->used = row->last_used;
	chunks->list.items[place->index] = chunk;
	return true;
}

static int find_chunks(struct kept *kept, struct epoch epochs[static 2])
{
	size_t at = 0;
	void *slot;
	int r;

	while ((r = kept_slot_next(kept, &at, &slot)) == 0) {
		struct sideband_chunk *chunk = slot;

		chunk->kept = kept;
		chunk->n_refs = 1;
		if (!put_chunk(epochs, &kept_draft(kept)->sideband, chunk))
			chunk_unref(chunk);
	}
	return r == -ENOENT ? 0 : r;
}

/* Have the row hold the chunks that were found. Return: 0, or -EBADMSG if one is missing or does
 * not hold whole records. */
static int settle_row(struct chunks *chunks, const struct kept_row *row)
{
	int r = 0;

	for (size_t i = 0; i < row->n_slots; i++) {
		struct sideband_chunk *chunk = chunks->list.items[i];
		struct record record;
		struct cursor c;

		if (!chunk) {
			r = -EBADMSG;
			continue;
		}
		chunks->list.items[chunks->list.n++] = chunk;
		if (chunk->used > CHUNK_SIZE) {
			r = -EBADMSG;
			continue;
		}
		c = cursor_from(chunk->bytes, chunk->used);
		while (record_next(&c, &record) == 0)
			;
		if (cursor_left(&c) > 0)
			r = -EBADMSG;
	}
	return r;
}

static int settle_rows(struct epoch epochs[static 2], const struct kept_sideband *kept)
{
	const int r[] = { settle_row(&epochs[0].head, &kept->before.head),
			  settle_row(&epochs[0].body, &kept->before.body),
			  settle_row(&epochs[1].head, &kept->now.head),
			  settle_row(&epochs[1].body, &kept->now.body) };

	return r[0] ? r[0] : r[1] ? r[1] : r[2] ? r[2] : r[3];
}

/* Have the table hold what the records say. */
static int note_chunks(struct tasks *tasks, const struct chunks *chunks,
		       int (*note)(struct tasks *tasks, const struct record *record))
{
	int r = 0;

	for (size_t i = 0; i < chunks->list.n; i++) {
		struct cursor c =
		    cursor_from(chunks->list.items[i]->bytes, chunks->list.items[i]->used);
		struct record record;

		while (record_next(&c, &record) == 0) {
			const int one = note(tasks, &record);

			r = r ? r : one;
		}
	}
	return r;
}

/* The source did not end its look at the tasks: it has to begin again. What was known before is
 * what the older epoch says. */
static int note_interrupted(struct sideband *s)
{
	int r = note_chunks(s->tasks, &s->before.head, tasks_add_found);
	int other = note_chunks(s->tasks, &s->before.body, tasks_add);

	r = r ? r : other;
	other = note_chunks(s->tasks, &s->now.body, tasks_add);
	chunks_deinit(&s->now.head);
	ask_source(s);
	if (s->next && note_chunks(s->next, &s->now.body, tasks_add) < 0)
		tasks_reset_repeats(s->next);
	return r ? r : other;
}

int sideband_resume(struct sideband *sideband)
{
	struct sideband *s = sideband;
	struct kept *kept = s->source->kept;
	const struct kept_sideband *k = &kept_draft(kept)->sideband;
	struct epoch epochs[2] = {};
	int r, found, noted;

	/* The chunks of a state that makes no sense are never found again. */
	s->n_epochs = k->n_epochs + 1;
	s->time = s->now.since_ns = k->time;
	r = expect_rows(epochs, k);
	if (r == 0) {
		found = find_chunks(kept, epochs);
		r = settle_rows(epochs, k);
		r = found ? found : r;
	}
	if (r < 0) {
		epoch_deinit(&epochs[0]);
		epoch_deinit(&epochs[1]);
		return r;
	}
	epoch_deinit(&s->now);
	epochs[0].since_ns = k->before.since_ns;
	epochs[1].since_ns = k->now.since_ns;
	s->before = epochs[0];
	s->now = epochs[1];
	s->n_epochs = k->n_epochs;
	s->has_before = k->has_before;
	s->lost = k->lost;
	s->lost_unmarked = k->lost_unmarked;
	s->n_repeats = k->n_repeats;
	if (k->asking) {
		noted = note_interrupted(s);
	} else {
		s->next = tasks_free(s->next);
		s->asking = false;
		noted = note_chunks(s->tasks, &s->now.head, tasks_add_found);
		found = note_chunks(s->tasks, &s->now.body, tasks_add);
		noted = noted ? noted : found;
	}
	if (noted < 0)
		tasks_reset_repeats(s->tasks);
	return noted == -ENOMEM ? noted : 0;
}

static void view_chunks(const struct chunks *chunks, struct sideband_view *view)
{
	for (size_t i = 0; i < chunks->list.n; i++) {
		struct sideband_chunk *chunk = chunks->list.items[i];

		chunk->n_refs++;
		view->chunks[view->n_spans] = chunk;
		view->spans[view->n_spans++] = cursor_from(chunk->bytes, chunk->used);
	}
}

/* Records were refused, and no room has come since for one that says so: the view's own does. */
static int view_lost(const struct sideband *s, struct sideband_view *view)
{
	struct sideband_chunk *chunk;

	if (s->lost_unmarked == 0)
		return 0;
	chunk = chunk_new(NULL, &(struct place){});
	if (!chunk)
		return -ENOMEM;
	chunk->used = (uint32_t)write_unmarked(s, s->time, chunk->bytes, sizeof(chunk->bytes));
	view->chunks[view->n_spans] = chunk;
	view->spans[view->n_spans++] = cursor_from(chunk->bytes, chunk->used);
	return 0;
}

int sideband_view_init(const struct sideband *sideband, struct sideband_view *ret_view)
{
	/* What the later epoch began with is said by the earlier one's records. */
	const struct epoch *first = sideband->has_before ? &sideband->before : &sideband->now;
	const size_t n =
	    first->head.list.n + sideband->before.body.list.n + sideband->now.body.list.n + 1;
	struct sideband_view v = {
		.spans = calloc(n, sizeof(*v.spans)),
		.chunks = calloc(n, sizeof(struct sideband_chunk *)),
		.since_ns = first->since_ns,
	};
	int r = v.spans && v.chunks ? 0 : -ENOMEM;

	if (r == 0)
		r = tasks_ranges(sideband->tasks, &v.ranges, &v.n_ranges);
	if (r == 0) {
		view_chunks(&first->head, &v);
		view_chunks(&sideband->before.body, &v);
		view_chunks(&sideband->now.body, &v);
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

uint64_t sideband_epochs(const struct sideband *sideband)
{
	return sideband->n_epochs;
}

struct sideband_stats sideband_stats(const struct sideband *sideband)
{
	return (struct sideband_stats){
		.bytes = epoch_bytes(&sideband->before) + epoch_bytes(&sideband->now),
		.bytes_max = sideband->bytes_max,
		.lost = sideband->lost,
		.n_repeats = sideband->n_repeats,
	};
}
