/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/codestore.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/cursor.h"
#include "daemon/emu/coderecord.h"
#include "daemon/objects/codeimage.h"
#include "daemon/objects/lostcode.h"
#include "daemon/share/share.h"
#include "ptd/snapshot.h"
#include "util/map.h"
#include "util/vec.h"

#define PAGE 4096u

#define BATCHES_MAX 32u

#define PROGRAMS_MAX 65536u /* including those that ended, or ran no such code */

/* Refused changes take memory, too. After so many changes, the code of a program is given up. */
#define REFUSED_MAX 65536u

/* The first bytes in a page. Forks share it until one of them adds to it. */
struct page {
	size_t n_refs;
	uid_t uid; /* who has it in his share */
	uint64_t address;
	uint8_t bytes[PAGE];
	uint8_t batch[PAGE];         /* the batch of each byte; 0: not known */
	uint64_t times[BATCHES_MAX]; /* of batch 1 and so on; the oldest are joined */
	uint8_t n_batches;
};

/* A change. Immutable, and shared by forks. */
struct change {
	size_t n_refs;
	uid_t uid; /* likewise */
	uint64_t time;
	uint64_t address;
	uint32_t size;
	bool known; /* the bytes follow */
	uint8_t bytes[];
};

struct program {
	struct codestore_program name;
	uid_t uid;
	VEC(struct page *) pages;     /* by address */
	VEC(struct change *) changes; /* by time */
	size_t n_unknown;             /* changes */

	/* The program has no pages and changes, and gets none any more. Only the places of changes
	 * are known. */
	bool given_up;
	struct lostcode lost;
};

struct codestore {
	pthread_mutex_t lock;
	struct share share; /* bytes */
	struct share n_programs;
	uint64_t bytes_max;
	uint64_t last_serial;
	uint64_t last_time;             /* of a record */
	VEC(struct program *) programs; /* by serial number */
	struct map by_name;             /* hash of pid and start → struct program * */
	const struct program
	    *busy; /* the program that is being added to, which is not forgotten meanwhile */
};

/* --- programs --------------------------------------------------------------------------------- */

static void page_unref(struct codestore *store, struct page *page)
{
	if (--page->n_refs > 0)
		return;
	share_give(&store->share, page->uid, sizeof(*page));
	free(page);
}

static void change_unref(struct codestore *store, struct change *change)
{
	if (--change->n_refs > 0)
		return;
	share_give(&store->share, change->uid,
		   sizeof(*change) + (change->known ? change->size : 0));
	free(change);
}

static void program_clear(struct codestore *store, struct program *program)
{
	for (size_t i = 0; i < program->pages.n; i++)
		page_unref(store, program->pages.items[i]);
	vec_deinit(&program->pages);
	for (size_t i = 0; i < program->changes.n; i++)
		change_unref(store, program->changes.items[i]);
	vec_deinit(&program->changes);
}

static size_t lost_size(const struct program *program)
{
	return program->lost.ranges.n * sizeof(*program->lost.ranges.items);
}

/* Count what the program's list of lost code takes, before it changes and afterwards. */
static void give_lost(struct codestore *store, const struct program *program)
{
	share_give(&store->share, program->uid, lost_size(program));
}

static void take_lost(struct codestore *store, const struct program *program)
{
	share_take(&store->share, program->uid, lost_size(program));
}

static struct program *program_free(struct codestore *store, struct program *program)
{
	program_clear(store, program);
	give_lost(store, program);
	lostcode_deinit(&program->lost);
	share_give(&store->n_programs, program->uid, 1);
	free(program);
	return NULL;
}

/* Return: 0 or -ENOMEM. */
static int lose_range(struct codestore *store, struct program *program, uint64_t address,
		      uint64_t size, uint64_t time)
{
	int r;

	give_lost(store, program);
	r = lostcode_add(&program->lost, address, size, time);
	take_lost(store, program);
	return r;
}

/* Add the places where @program changed its code. Return: 0 or -ENOMEM. */
static int add_changed(struct lostcode *lost, const struct program *program)
{
	int r = lostcode_add_all(lost, &program->lost);

	for (size_t i = 0; r == 0 && i < program->changes.n; i++) {
		const struct change *c = program->changes.items[i];

		r = lostcode_add(lost, c->address, c->size, c->time);
	}
	return r;
}

/* Forget the program's code except the places of changes. Return: 0 or -ENOMEM. */
static int give_up_program(struct codestore *store, struct program *program)
{
	struct lostcode lost = {};
	const int r = add_changed(&lost, program);

	if (r < 0) {
		lostcode_deinit(&lost);
		return r;
	}
	program_clear(store, program);
	give_lost(store, program);
	lostcode_deinit(&program->lost);
	program->lost = lost;
	take_lost(store, program);
	program->given_up = true;
	return 0;
}

static uint64_t program_key(uint32_t pid, uint64_t start)
{
	const uint64_t key[] = { pid, start };

	return map_hash(key, sizeof(key));
}

static struct program *find_program(const struct codestore *store, uint32_t pid, uint64_t start)
{
	const uint64_t *slot = map_get(&store->by_name, program_key(pid, start));
	struct program *program = slot ? (struct program *)(uintptr_t)*slot : NULL;

	return program && program->name.pid == pid && program->name.start == start ? program : NULL;
}

static void clear_programs(struct codestore *store)
{
	for (size_t i = 0; i < store->programs.n; i++)
		(void)program_free(store, store->programs.items[i]);
	store->programs.n = 0;
	map_deinit(&store->by_name);
	store->by_name = (struct map){};
}

/* --- room ------------------------------------------------------------------------------------- */

static bool has_ended(const struct codestore *store, size_t i)
{
	const uint32_t pid = store->programs.items[i]->name.pid;

	for (size_t next = i + 1; next < store->programs.n; next++)
		if (store->programs.items[next]->name.pid == pid)
			return true;
	return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

/* Rebuild the map, because entries of a map cannot be removed. Return: 0 or -ENOMEM. */
static int forget_program(struct codestore *store, size_t i)
{
	struct program **programs = store->programs.items;
	int r = 0;

	(void)program_free(store, programs[i]);
	store->programs.n--;
	memmove(programs + i, programs + i + 1, (store->programs.n - i) * sizeof(*programs));
	map_deinit(&store->by_name);
	store->by_name = (struct map){};
	for (size_t k = 0; r == 0 && k < store->programs.n; k++)
		r = map_put(&store->by_name,
			    program_key(programs[k]->name.pid, programs[k]->name.start),
			    (uintptr_t)programs[k]);
	return r;
}

/* Forget the oldest program of the user, or of anybody if that is NULL, that has ended. Return: 0;
 * -ENOENT if there is none; or -ENOMEM. */
static int forget_oldest(struct codestore *store, const uid_t *uid)
{
	for (size_t i = 0; i < store->programs.n; i++) {
		const struct program *p = store->programs.items[i];

		if ((!uid || p->uid == *uid) && p != store->busy && has_ended(store, i))
			return forget_program(store, i);
	}
	return -ENOENT;
}

/* Have room for another program of the user: at the cost of who has most, if that is more than his
 * part; else of the user himself; else of anybody, if the user has less than his part. Return: as
 * forget_oldest(). */
static int make_program_room(struct codestore *store, uid_t uid)
{
	const struct share *share = &store->n_programs;
	const struct share_user *most = NULL;
	int r = -ENOENT;

	for (size_t i = 0; i < share->n_users; i++)
		if (share_exceeds(share, PROGRAMS_MAX, share->users[i].uid) &&
		    (!most || share->users[i].taken > most->taken))
			most = &share->users[i];
	if (most)
		r = forget_oldest(store, &most->uid);
	if (r == -ENOENT)
		r = forget_oldest(store, &uid);
	if (r == -ENOENT && (uid == 0 || share_is_in_part(share, PROGRAMS_MAX, uid, 1)))
		r = forget_oldest(store, NULL);
	if (r == -ENOENT)
		share_count_taken_back(&store->share, uid);
	return r;
}

static bool has_code(const struct codestore *store, const struct program *program)
{
	return program != store->busy && (program->pages.n > 0 || program->changes.n > 0);
}

/* Forget the code of the oldest program that has ended and has some, of the user or of one who has
 * more than his part; if @of_all, of anybody. Return: 0; -ENOENT if there is none; or -ENOMEM. */
static int forget_ended(struct codestore *store, uid_t uid, bool of_all)
{
	const uint64_t max = store->bytes_max;

	for (size_t i = 0; i < store->programs.n; i++) {
		struct program *p = store->programs.items[i];

		if ((of_all || p->uid == uid || share_exceeds(&store->share, max, p->uid)) &&
		    has_code(store, p) && has_ended(store, i))
			return give_up_program(store, p);
	}
	return -ENOENT;
}

/*
 * Forget code of a program that has ended: not that it ran, which says that what the process ran
 * before is over. If there is none, say less of what was lost. A user who wants more than his part
 * takes nothing from those who have less than theirs. Code of programs that live stays: a program
 * hands it over only once.
 *
 * Return: 0; -ENOENT if there is nothing to forget; or -ENOMEM.
 */
static int forget_code(struct codestore *store, uid_t uid, bool in_part)
{
	int r;

	r = forget_ended(store, uid, false);
	if (r == -ENOENT && in_part)
		r = forget_ended(store, uid, true);
	for (size_t i = 0; r == -ENOENT && i < store->programs.n; i++) {
		struct program *p = store->programs.items[i];

		if ((in_part || p->uid == uid) && p->lost.ranges.n > 1) {
			give_lost(store, p);
			lostcode_join(&p->lost);
			take_lost(store, p);
			r = 0;
		}
	}
	return r;
}

/* Return: 0; -ENOBUFS; or -ENOMEM. */
static int make_code_room(struct codestore *store, uid_t uid, size_t size)
{
	const uint64_t max = store->bytes_max;
	int r = 0;

	while (r == 0 && !share_allows(&store->share, max, uid, size))
		r = forget_code(store, uid,
				uid == 0 || share_is_in_part(&store->share, max, uid, size));
	if (r != -ENOENT)
		return r;
	share_refuse(&store->share, max, uid, size);
	return -ENOBUFS;
}

/* --- what is added ---------------------------------------------------------------------------- */

/* Return: 0, the parent's page as it was at @time; -ENOBUFS or -ENOMEM. */
static int inherit_page(struct codestore *store, struct page *page, uid_t uid, uint64_t time,
			struct page **ret_page)
{
	struct page *own;
	int r;

	if (page->times[page->n_batches - 1] <= time) {
		page->n_refs++;
		*ret_page = page;
		return 0;
	}
	/* The beginning of the child was handed over late. */
	r = make_code_room(store, uid, sizeof(*own));
	if (r < 0)
		return r;
	own = malloc(sizeof(*own));
	if (!own)
		return -ENOMEM;
	*own = *page;
	own->n_refs = 1;
	own->uid = uid;
	share_take(&store->share, own->uid, sizeof(*own));
	for (size_t i = 0; i < PAGE; i++)
		if (own->batch[i] > 0 && own->times[own->batch[i] - 1] > time)
			own->batch[i] = 0;
	*ret_page = own;
	return 0;
}

/* Give the child the code that its parent had at @time. */
static int inherit_code(struct codestore *store, struct program *child,
			const struct program *parent, uint64_t time)
{
	int r;

	r = vec_reserve(&child->pages, parent->pages.n);
	if (r == 0)
		r = vec_reserve(&child->changes, parent->changes.n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < parent->pages.n; i++) {
		r = inherit_page(store, parent->pages.items[i], child->uid, time,
				 &child->pages.items[child->pages.n]);
		if (r == -ENOMEM)
			return r;
		child->pages.n += r == 0;
	}
	for (size_t i = 0; i < parent->changes.n && parent->changes.items[i]->time <= time; i++) {
		parent->changes.items[i]->n_refs++;
		child->changes.items[child->changes.n++] = parent->changes.items[i];
	}
	child->n_unknown = parent->n_unknown;
	child->given_up = parent->given_up;
	r = lostcode_add_all(&child->lost, &parent->lost);
	take_lost(store, child);
	return r;
}

/*
 * Make the program that the record names, which has no code.
 *
 * Return: 0; -ENOBUFS if there are too many; or -ENOMEM.
 */
static int add_program(struct codestore *store, const struct coderecord *record,
		       struct program **ret_program)
{
	const uint64_t start = record->start;
	const uint32_t pid = record->pid;
	struct program *program;
	int r = 0;

	while (r == 0 && store->programs.n >= PROGRAMS_MAX)
		r = make_program_room(store, record->uid);
	if (r == 0)
		r = vec_reserve(&store->programs, 1);
	if (r < 0)
		return r == -ENOENT ? -ENOBUFS : r;
	program = calloc(1, sizeof(*program));
	if (!program)
		return -ENOMEM;
	program->name =
	    (struct codestore_program){ .pid = pid, .uid = record->uid, .start = start };
	program->uid = record->uid;
	r = map_put(&store->by_name, program_key(pid, start), (uintptr_t)program);
	if (r < 0) {
		free(program);
		return r;
	}
	program->name.serial = ++store->last_serial;
	share_take(&store->n_programs, program->uid, 1);
	store->programs.items[store->programs.n++] = program;
	*ret_program = program;
	return 0;
}

static int add_start(struct codestore *store, const struct coderecord *record)
{
	const struct program *parent =
	    record->parent_pid ? find_program(store, record->parent_pid, record->address) : NULL;
	struct program *program;
	int r;

	if (find_program(store, record->pid, record->start))
		return 0;
	/* Nobody inherits code of another user, whatever his record says. */
	if (parent && parent->uid != record->uid)
		parent = NULL;
	store->busy = parent;
	r = add_program(store, record, &program);
	store->busy = NULL;
	return r == 0 && parent ? inherit_code(store, program, parent, record->time) : r;
}

/* Add a program whose beginning was lost, with all code that it handed over before. */
static int add_unheard(struct codestore *store, const struct coderecord *record,
		       struct program **ret_program)
{
	const int r = add_program(store, record, ret_program);

	if (r < 0)
		return r;
	(*ret_program)->given_up = true;
	return lose_range(store, *ret_program, 0, UINT64_MAX, record->start);
}

static size_t page_index(const struct program *program, uint64_t address)
{
	return vec_bisect(&program->pages, page, (*page)->address < address);
}

/* Return: the program's page at @address, which may be shared; NULL if it has none. */
static struct page *page_at(const struct program *program, uint64_t address)
{
	const size_t i = page_index(program, address);

	return i < program->pages.n && program->pages.items[i]->address == address
		   ? program->pages.items[i]
		   : NULL;
}

/* Get a page at @address that the program does not share. Return: 0, -ENOBUFS or -ENOMEM. */
static int own_page(struct codestore *store, struct program *program, uint64_t address,
		    struct page **ret_page)
{
	const size_t i = page_index(program, address);
	struct page *shared = page_at(program, address), *page;
	int r;

	if (shared && shared->n_refs == 1) {
		*ret_page = shared;
		return 0;
	}
	r = make_code_room(store, program->uid, sizeof(*page));
	if (r == 0)
		r = vec_reserve(&program->pages, 1);
	if (r < 0)
		return r;
	page = calloc(1, sizeof(*page));
	if (!page)
		return -ENOMEM;
	if (shared) {
		*page = *shared;
		program->pages.items[i] = page;
		page_unref(store, shared);
	} else {
		page->address = address;
		memmove(program->pages.items + i + 1, program->pages.items + i,
			(program->pages.n - i) * sizeof(page));
		program->pages.items[i] = page;
		program->pages.n++;
	}
	page->n_refs = 1;
	page->uid = program->uid;
	share_take(&store->share, page->uid, sizeof(*page));
	*ret_page = page;
	return 0;
}

/* @bytes: NULL if they are not known. Return: 0 or -ENOMEM. */
static int add_change(struct codestore *store, struct program *program,
		      const struct coderecord *record, const uint8_t *bytes)
{
	const size_t n_bytes = bytes ? record->n_bytes : 0, n = program->changes.n;
	uint64_t time = record->time;
	struct change *change;

	if (vec_reserve(&program->changes, 1) < 0)
		return -ENOMEM;
	change = malloc(sizeof(*change) + n_bytes);
	if (!change)
		return -ENOMEM;
	/* Changes come in the order of time, unless another process has written to the ring,
	 * too. */
	if (n > 0 && program->changes.items[n - 1]->time > time)
		time = program->changes.items[n - 1]->time;
	*change = (struct change){ .n_refs = 1,
				   .uid = program->uid,
				   .time = time,
				   .address = record->address,
				   .size = record->n_bytes,
				   .known = bytes };
	if (bytes)
		memcpy(change->bytes, bytes, n_bytes);
	share_take(&store->share, change->uid, sizeof(*change) + n_bytes);
	program->changes.items[program->changes.n++] = change;
	return 0;
}

/* Begin another batch of the page's bytes. Return: its number. */
static uint8_t begin_batch(struct page *page, uint64_t time)
{
	const uint8_t n_older = BATCHES_MAX / 2;

	if (page->n_batches == BATCHES_MAX) {
		for (size_t i = 0; i < PAGE; i++)
			if (page->batch[i] > 0)
				page->batch[i] =
				    page->batch[i] <= n_older ? 1 : page->batch[i] - n_older + 1;
		page->n_batches = BATCHES_MAX - n_older + 1;
		memmove(page->times, page->times + n_older - 1,
			page->n_batches * sizeof(*page->times));
	}
	if (page->n_batches > 0 && page->times[page->n_batches - 1] > time)
		time = page->times[page->n_batches - 1];
	page->times[page->n_batches] = time;
	return ++page->n_batches;
}

/* Return: 0; -ENOBUFS if some of the bytes were refused; or -ENOMEM. */
static int add_first(struct codestore *store, struct program *program,
		     const struct coderecord *record, const uint8_t *bytes)
{
	for (size_t done = 0, n; done < record->n_bytes; done += n) {
		const uint64_t address = record->address + done;
		const size_t at = address % PAGE;
		struct page *page;
		uint8_t batch;
		int r;

		n = record->n_bytes - done < PAGE - at ? record->n_bytes - done : PAGE - at;
		r = own_page(store, program, address - at, &page);
		if (r < 0)
			return r;
		batch = begin_batch(page, record->time);
		for (size_t i = 0; i < n; i++) {
			if (page->batch[at + i] > 0)
				continue;
			page->bytes[at + i] = bytes[done + i];
			page->batch[at + i] = batch;
		}
	}
	return 0;
}

/* Refuse the bytes of @record, which may have replaced known bytes. Return: 0 or -ENOMEM. */
static int refuse_code(struct codestore *store, struct program *program,
		       const struct coderecord *record)
{
	int r = 0;

	if (!program->given_up && ++program->n_unknown > REFUSED_MAX)
		r = give_up_program(store, program);
	if (r < 0)
		return r;
	if (!program->given_up)
		return add_change(store, program, record, NULL);
	/* There were no known bytes that a decoder could take for these. */
	return record->kind == CODERECORD_NEW
		   ? 0
		   : lose_range(store, program, record->address, record->n_bytes, record->time);
}

/* Return: 0; -ENOBUFS if it was refused; or -ENOMEM. */
static int add_code_record(struct codestore *store, const struct coderecord *record,
			   const uint8_t *bytes)
{
	struct program *program = find_program(store, record->pid, record->start);
	int r = 0;

	if (!program)
		r = add_unheard(store, record, &program);
	if (r < 0)
		return r;
	if (record->time > store->last_time)
		store->last_time = record->time;
	store->busy = program;
	if (program->given_up)
		r = -ENOBUFS;
	else if (record->kind == CODERECORD_NEW)
		r = add_first(store, program, record, bytes);
	else
		r = make_code_room(store, program->uid, sizeof(struct change) + record->n_bytes)
			?: add_change(store, program, record, bytes);
	if (r == -ENOBUFS) {
		program->name.n_refused++;
		r = refuse_code(store, program, record) ?: -ENOBUFS;
	}
	store->busy = NULL;
	return r;
}

/* From @time on, it is not known what the programs have changed: those of the user, or all of them
 * if @uid is NULL. */
static void lose_programs(struct codestore *store, const uid_t *uid, uint64_t time)
{
	for (size_t i = 0; i < store->programs.n; i++) {
		struct program *p = store->programs.items[i];

		if (uid && p->uid != *uid)
			continue;
		if (give_up_program(store, p) < 0 ||
		    lose_range(store, p, 0, UINT64_MAX, time) < 0) {
			clear_programs(store);
			return;
		}
	}
}

static int add_record(struct codestore *store, struct cursor *cursor)
{
	struct coderecord record;
	struct cursor rest;
	int r;

	r = cursor_get(cursor, sizeof(record), &record);
	if (r < 0 || !coderecord_makes_sense(&record))
		return -EBADMSG;
	r = cursor_get_sub(cursor, record.size - sizeof(record), &rest);
	if (r < 0)
		return r;
	switch (record.kind) {
	case CODERECORD_START:
		return add_start(store, &record);
	case CODERECORD_NEW:
	case CODERECORD_CHANGED:
		return add_code_record(store, &record, rest.pos);
	case CODERECORD_LOST:
		lose_programs(store, &record.uid, record.time);
		return 0;
	default:
		return -EBADMSG;
	}
}

int codestore_add(struct codestore *store, const uint8_t *bytes, size_t size)
{
	struct cursor cursor = cursor_from(bytes, size);
	bool refused = false;
	int r = 0;

	(void)pthread_mutex_lock(&store->lock);
	while (r == 0 && cursor_left(&cursor) > 0) {
		r = add_record(store, &cursor);
		refused = refused || r == -ENOBUFS;
		r = r == -ENOBUFS ? 0 : r;
	}
	if (r < 0)
		lose_programs(store, NULL, store->last_time);
	(void)pthread_mutex_unlock(&store->lock);
	return r < 0 ? r : refused ? -ENOBUFS : 0;
}

uint64_t codestore_size(struct codestore *store)
{
	uint64_t bytes;

	(void)pthread_mutex_lock(&store->lock);
	bytes = store->share.taken;
	(void)pthread_mutex_unlock(&store->lock);
	return bytes;
}

void codestore_lose(struct codestore *store)
{
	(void)pthread_mutex_lock(&store->lock);
	lose_programs(store, NULL, store->last_time);
	(void)pthread_mutex_unlock(&store->lock);
}

/* --- what is copied --------------------------------------------------------------------------- */

static int add_page(struct codeimage *image, const struct page *page)
{
	int r = 0;

	for (size_t at = 0, n; r == 0 && at < PAGE; at += n) {
		for (n = 1; at + n < PAGE && (page->batch[at + n] > 0) == (page->batch[at] > 0);
		     n++)
			;
		if (page->batch[at] > 0)
			r = codeimage_add_first(image, page->address + at, page->bytes + at, n);
	}
	return r;
}

/* Return: 0; CODEIMAGE_FULL; -ENOMEM. */
static int make_image(const struct program *program, struct codeimage *image)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < program->pages.n; i++)
		r = add_page(image, program->pages.items[i]);
	for (size_t i = 0; r == 0 && i < program->changes.n; i++) {
		const struct change *c = program->changes.items[i];

		r = codeimage_add(image, c->time, c->address, c->known ? c->bytes : NULL, c->size);
	}
	return r;
}

static int compare_times(const void *pa, const void *pb)
{
	const struct lostcode_range *a = pa, *b = pb;

	return a->time < b->time ? -1 : a->time > b->time;
}

/* Make an image that has only the places of changes. */
static int make_lost_image(const struct program *program, struct codeimage *image)
{
	_cleanup_(lostcode_deinit) struct lostcode lost = {};
	int r = add_changed(&lost, program);

	if (lost.ranges.n > 0)
		qsort(lost.ranges.items, lost.ranges.n, sizeof(*lost.ranges.items), compare_times);
	for (size_t i = 0; r == 0 && i < lost.ranges.n; i++) {
		const struct lostcode_range *range = &lost.ranges.items[i];

		r = codeimage_add(image, range->time, range->start, NULL,
				  range->last - range->start + 1 ?: UINT64_MAX);
	}
	return r;
}

bool codestore_next(struct codestore *store, struct codestore_program *program)
{
	size_t i;
	bool found;

	(void)pthread_mutex_lock(&store->lock);
	i = vec_bisect(&store->programs, p, (*p)->name.serial <= program->serial);
	found = i < store->programs.n;
	if (found)
		*program = store->programs.items[i]->name;
	(void)pthread_mutex_unlock(&store->lock);
	return found;
}

int codestore_copy(struct codestore *store, const struct codestore_program *program,
		   uint64_t size_max, uint8_t **ret_bytes, size_t *ret_size)
{
	_cleanup_(codeimage_deinit) struct codeimage image = { .size_max = size_max };
	const struct program *p;
	bool is_whole = false;
	int r = -ENOENT;

	(void)pthread_mutex_lock(&store->lock);
	p = find_program(store, program->pid, program->start);
	if (p)
		r = p->given_up ? CODEIMAGE_FULL : make_image(p, &image);
	is_whole = r == 0 && codeimage_size(&image) <= size_max;
	if (r == CODEIMAGE_FULL || (r == 0 && !is_whole)) {
		codeimage_deinit(&image);
		image = (struct codeimage){ .size_max = UINT64_MAX };
		r = make_lost_image(p, &image);
	}
	(void)pthread_mutex_unlock(&store->lock);
	if (r == 0)
		r = codeimage_print(&image, ret_bytes, ret_size);
	return r < 0 ? r : is_whole;
}

/* --- the store -------------------------------------------------------------------------------- */

int codestore_new(uint64_t bytes_max, struct codestore **ret_store)
{
	struct codestore *store = calloc(1, sizeof(*store));

	if (!store)
		return -ENOMEM;
	(void)pthread_mutex_init(&store->lock, NULL);
	store->bytes_max = bytes_max;
	*ret_store = store;
	return 0;
}

struct codestore *codestore_free(struct codestore *store)
{
	if (!store)
		return NULL;
	clear_programs(store);
	vec_deinit(&store->programs);
	(void)pthread_mutex_destroy(&store->lock);
	free(store);
	return NULL;
}

void codestore_get_share(struct codestore *store, struct share *ret_share)
{
	(void)pthread_mutex_lock(&store->lock);
	*ret_share = store->share;
	(void)pthread_mutex_unlock(&store->lock);
}

void codestore_set_max(struct codestore *store, uint64_t bytes_max)
{
	(void)pthread_mutex_lock(&store->lock);
	store->bytes_max = bytes_max;
	(void)pthread_mutex_unlock(&store->lock);
}
