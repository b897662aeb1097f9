/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/codestore.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/cursor.h"
#include "daemon/objects/codeimage.h"
#include "daemon/objects/codeprogram.h"
#include "daemon/plugin/coderecord.h"
#include "daemon/share/share.h"
#include "util/map.h"
#include "util/mutex.h"
#include "util/vec.h"

#define PROGRAMS_MAX 65536u /* including those that ended, or ran no such code */

struct codestore {
	pthread_mutex_t lock;
	struct coderoom room;
	struct share n_programs;
	uint64_t bytes_max;
	uint64_t last_serial;
	uint64_t last_time;                 /* of a record */
	VEC(struct codeprogram *) programs; /* by serial number */
	struct map by_name;                 /* hash of pid and start → struct codeprogram * */
	const struct codeprogram *busy;     /* is being added to, and not forgotten meanwhile */
};

/* --- programs --------------------------------------------------------------------------------- */

static uint64_t program_key(uint32_t pid, uint64_t start)
{
	const uint64_t key[] = { pid, start };

	return map_hash(key, sizeof(key));
}

static struct codeprogram *find_program(const struct codestore *store, uint32_t pid, uint64_t start)
{
	struct codeprogram *program = map_pointer(&store->by_name, program_key(pid, start));

	return program && program->info.pid == pid && program->info.start == start ? program : NULL;
}

static void remove_program(struct codestore *store, struct codeprogram *program)
{
	share_give(&store->n_programs, program->info.uid, 1);
	(void)codeprogram_free(&store->room, program);
}

static void clear_programs(struct codestore *store)
{
	for (size_t i = 0; i < store->programs.n; i++)
		remove_program(store, store->programs.items[i]);
	store->programs.n = 0;
	map_deinit(&store->by_name);
}

/* --- room ------------------------------------------------------------------------------------- */

static bool has_ended(const struct codestore *store, size_t i)
{
	const uint32_t pid = store->programs.items[i]->info.pid;

	for (size_t next = i + 1; next < store->programs.n; next++)
		if (store->programs.items[next]->info.pid == pid)
			return true;
	return kill((pid_t)pid, 0) < 0 && errno == ESRCH;
}

/* Rebuild the map, because entries of a map cannot be removed. Return: 0 or -ENOMEM. */
static int forget_program(struct codestore *store, size_t i)
{
	struct codeprogram **programs = store->programs.items;
	int r = 0;

	remove_program(store, programs[i]);
	store->programs.n--;
	memmove(programs + i, programs + i + 1, (store->programs.n - i) * sizeof(*programs));
	map_deinit(&store->by_name);
	for (size_t k = 0; r == 0 && k < store->programs.n; k++)
		r = map_put(&store->by_name,
			    program_key(programs[k]->info.pid, programs[k]->info.start),
			    (uintptr_t)programs[k]);
	return r;
}

/* Forget the oldest program of the user, or of anybody if that is NULL, that has ended. Return: 0;
 * -ENOENT if there is none; or -ENOMEM. */
static int forget_oldest(struct codestore *store, const uid_t *uid)
{
	for (size_t i = 0; i < store->programs.n; i++) {
		const struct codeprogram *p = store->programs.items[i];

		if ((!uid || p->info.uid == *uid) && p != store->busy && has_ended(store, i))
			return forget_program(store, i);
	}
	return -ENOENT;
}

/* Have room for another program of the user: at the cost of who has most, if that is above their
 * part; else of the user himself; else of anybody, if the user has less than their part. Return: as
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
		share_count_taken_back(&store->room.share, uid);
	return r;
}

static bool has_code(const struct codestore *store, const struct codeprogram *program)
{
	return program != store->busy && (program->pages.n > 0 || program->changes.n > 0);
}

/* Forget the code of the oldest program that has ended and has some, of the user or of one who has
 * more than their part; if @of_all, of anybody. Return: 0; -ENOENT if there is none; or -ENOMEM. */
static int forget_ended(struct codestore *store, uid_t uid, bool of_all)
{
	const uint64_t max = store->bytes_max;

	for (size_t i = 0; i < store->programs.n; i++) {
		struct codeprogram *p = store->programs.items[i];

		if ((of_all || p->info.uid == uid ||
		     share_exceeds(&store->room.share, max, p->info.uid)) &&
		    has_code(store, p) && has_ended(store, i))
			return codeprogram_give_up(&store->room, p);
	}
	return -ENOENT;
}

/*
 * Forget code of a program that has ended: not that it ran, which says that what the process ran
 * before is over. If there is none, say less of what was lost. A user who wants more than their
 * part takes nothing from those who have less than theirs. Code of programs that live stays: a
 * program hands it over only once.
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
		struct codeprogram *p = store->programs.items[i];

		if ((in_part || p->info.uid == uid) && codeprogram_join_lost(&store->room, p))
			r = 0;
	}
	return r;
}

/* See struct coderoom. */
static int make_code_room(void *userdata, uid_t uid, size_t size)
{
	struct codestore *store = userdata;
	const uint64_t max = store->bytes_max;
	int r = 0;

	while (r == 0 && !share_allows(&store->room.share, max, uid, size))
		r = forget_code(store, uid,
				uid == 0 || share_is_in_part(&store->room.share, max, uid, size));
	if (r != -ENOENT)
		return r;
	share_refuse(&store->room.share, max, uid, size);
	return -ENOBUFS;
}

/* --- what is added ---------------------------------------------------------------------------- */

/*
 * Make the program that the record names, which has no code.
 *
 * Return: 0; -ENOBUFS if there are too many; or -ENOMEM.
 */
static int add_program(struct codestore *store, const struct coderecord *record,
		       struct codeprogram **ret_program)
{
	const uint64_t start = record->start;
	const uint32_t pid = record->pid;
	struct codeprogram *program;
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
	program->info =
	    (struct codestore_program){ .pid = pid, .uid = record->uid, .start = start };
	r = map_put(&store->by_name, program_key(pid, start), (uintptr_t)program);
	if (r < 0) {
		free(program);
		return r;
	}
	program->info.serial = ++store->last_serial;
	share_take(&store->n_programs, program->info.uid, 1);
	store->programs.items[store->programs.n++] = program;
	*ret_program = program;
	return 0;
}

static int add_start(struct codestore *store, const struct coderecord *record)
{
	const struct codeprogram *parent =
	    record->parent_pid ? find_program(store, record->parent_pid, record->address) : NULL;
	struct codeprogram *program;
	int r;

	if (find_program(store, record->pid, record->start))
		return 0;
	store->busy = parent;
	r = add_program(store, record, &program);
	store->busy = NULL;
	return r == 0 && parent ? codeprogram_inherit(&store->room, program, parent, record->time)
				: r;
}

/* Add a program whose beginning was lost, with all code that it handed over before. */
static int add_unheard(struct codestore *store, const struct coderecord *record,
		       struct codeprogram **ret_program)
{
	const int r = add_program(store, record, ret_program);

	if (r < 0)
		return r;
	(*ret_program)->given_up = true;
	return codeprogram_lose(&store->room, *ret_program, 0, UINT64_MAX, record->start);
}

/* Return: 0; -ENOBUFS if it was refused; or -ENOMEM. */
static int add_code_record(struct codestore *store, const struct coderecord *record,
			   const uint8_t *bytes)
{
	struct codeprogram *program = find_program(store, record->pid, record->start);
	int r = 0;

	if (!program)
		r = add_unheard(store, record, &program);
	if (r < 0)
		return r;
	if (record->time > store->last_time)
		store->last_time = record->time;
	store->busy = program;
	r = codeprogram_add(&store->room, program, record, bytes);
	if (r == -ENOBUFS) {
		program->info.n_refused++;
		r = codeprogram_refuse(&store->room, program, record) ?: -ENOBUFS;
	}
	store->busy = NULL;
	return r;
}

/* From @time on, it is not known what the programs have changed. */
static void lose_programs(struct codestore *store, uint64_t time)
{
	for (size_t i = 0; i < store->programs.n; i++) {
		struct codeprogram *p = store->programs.items[i];

		if (codeprogram_give_up(&store->room, p) < 0 ||
		    codeprogram_lose(&store->room, p, 0, UINT64_MAX, time) < 0) {
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
		lose_programs(store, record.time);
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
	HOLD(&store->lock);

	while (r == 0 && cursor_left(&cursor) > 0) {
		r = add_record(store, &cursor);
		refused = refused || r == -ENOBUFS;
		r = r == -ENOBUFS ? 0 : r;
	}
	if (r < 0)
		lose_programs(store, store->last_time);
	return r < 0 ? r : refused ? -ENOBUFS : 0;
}

uint64_t codestore_size(struct codestore *store)
{
	HOLD(&store->lock);

	return store->room.share.taken;
}

void codestore_lose(struct codestore *store)
{
	HOLD(&store->lock);

	lose_programs(store, store->last_time);
}

/* --- what is copied --------------------------------------------------------------------------- */

bool codestore_next(struct codestore *store, struct codestore_program *program)
{
	size_t i;
	bool found;
	HOLD(&store->lock);

	i = vec_bisect(&store->programs, p, (*p)->info.serial <= program->serial);
	found = i < store->programs.n;
	if (found)
		*program = store->programs.items[i]->info;
	return found;
}

int codestore_copy(struct codestore *store, const struct codestore_program *program,
		   uint64_t size_max, uint8_t **ret_bytes, size_t *ret_size)
{
	_cleanup_(codeimage_deinit) struct codeimage image = { .size_max = size_max };
	const struct codeprogram *p;
	bool is_whole = false;
	int r = -ENOENT;

	(void)pthread_mutex_lock(&store->lock);
	p = find_program(store, program->pid, program->start);
	if (p)
		r = p->given_up ? CODEIMAGE_FULL : codeprogram_make_image(p, &image);
	is_whole = r == 0 && codeimage_size(&image) <= size_max;
	if (r == CODEIMAGE_FULL || (r == 0 && !is_whole)) {
		codeimage_deinit(&image);
		image = (struct codeimage){ .size_max = UINT64_MAX };
		r = codeprogram_make_lost_image(p, &image);
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
	store->room.make = make_code_room;
	store->room.userdata = store;
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
	HOLD(&store->lock);

	*ret_share = store->room.share;
}

void codestore_set_max(struct codestore *store, uint64_t bytes_max)
{
	HOLD(&store->lock);

	store->bytes_max = bytes_max;
}
