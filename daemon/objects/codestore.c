/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/codestore.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>

#include "base/cursor.h"
#include "daemon/emu/coderecord.h"
#include "decoder/util/map.h"
#include "decoder/util/vec.h"
#include "ptd/snapshot.h"

#define PAGE 4096u

#define PROGRAMS_MAX 65536u /* those that ended and ran no such code count, too */

/* What is refused takes memory as well; behind so many changes a program is given up. */
#define REFUSED_MAX 65536u

/* The first bytes that were in a page. Forks share it until one of them adds to it. */
struct page {
	size_t n_refs;
	uint64_t address;
	uint8_t bytes[PAGE];
	bool known[PAGE];
};

/* Immutable, and shared by forks. */
struct change {
	size_t n_refs;
	uint64_t time;
	uint64_t address;
	uint32_t size;
	bool known; /* the bytes follow */
	uint8_t bytes[];
};

struct program {
	struct codestore_program name;
	VEC(struct page *) pages;     /* by address */
	VEC(struct change *) changes; /* by time */
	size_t n_unknown;             /* changes */
	bool given_up;                /* what comes of it is not taken any more */
};

struct codestore {
	pthread_mutex_t lock;
	uint64_t bytes, bytes_max;
	uint64_t last_serial;
	VEC(struct program *) programs; /* by serial number */
	struct map by_name;             /* hash of pid and start → struct program * */
	const struct program *busy;     /* is being added to, and is not forgotten meanwhile */
};

/* --- programs --------------------------------------------------------------------------------- */

static void page_unref(struct codestore *store, struct page *page)
{
	if (--page->n_refs > 0)
		return;
	store->bytes -= sizeof(*page);
	free(page);
}

static void change_unref(struct codestore *store, struct change *change)
{
	if (--change->n_refs > 0)
		return;
	store->bytes -= sizeof(*change) + (change->known ? change->size : 0);
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

static struct program *program_free(struct codestore *store, struct program *program)
{
	program_clear(store, program);
	free(program);
	return NULL;
}

static uint64_t key_of(uint32_t pid, uint64_t start)
{
	const uint64_t key[] = { pid, start };

	return map_hash(key, sizeof(key));
}

static struct program *find_program(const struct codestore *store, uint32_t pid, uint64_t start)
{
	const uint64_t *slot = map_get(&store->by_name, key_of(pid, start));
	struct program *program = slot ? (struct program *)(uintptr_t)*slot : NULL;

	return program && program->name.pid == pid && program->name.start == start ? program : NULL;
}

static void clear(struct codestore *store)
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

/* The map never forgets: it is made anew. Return: 0 or -ENOMEM. */
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
		r = map_put(&store->by_name, key_of(programs[k]->name.pid, programs[k]->name.start),
			    (uintptr_t)programs[k]);
	return r;
}

/*
 * Forget the oldest program that has ended and, if @has_code, has code. Of one that only began that
 * is worth knowing: it says that what the process ran before is over.
 *
 * Return: 0; -ENOENT if there is none; or -ENOMEM.
 */
static int forget_oldest(struct codestore *store, bool has_code)
{
	for (size_t i = 0; i < store->programs.n; i++) {
		const struct program *p = store->programs.items[i];

		if (p != store->busy && (!has_code || p->pages.n > 0 || p->changes.n > 0) &&
		    has_ended(store, i))
			return forget_program(store, i);
	}
	return -ENOENT;
}

/* Return: 0; -ENOBUFS; or -ENOMEM. */
static int make_room(struct codestore *store, size_t size)
{
	int r = 0;

	while (r == 0 && (size > store->bytes_max || store->bytes > store->bytes_max - size))
		r = forget_oldest(store, true);
	return r == -ENOENT ? -ENOBUFS : r;
}

/* --- what is added ---------------------------------------------------------------------------- */

/* The child has all that its parent has until then. */
static int inherit(struct program *child, const struct program *parent, uint64_t time)
{
	int r;

	r = vec_reserve(&child->pages, parent->pages.n);
	if (r == 0)
		r = vec_reserve(&child->changes, parent->changes.n);
	if (r < 0)
		return r;
	for (size_t i = 0; i < parent->pages.n; i++) {
		parent->pages.items[i]->n_refs++;
		child->pages.items[child->pages.n++] = parent->pages.items[i];
	}
	for (size_t i = 0; i < parent->changes.n && parent->changes.items[i]->time <= time; i++) {
		parent->changes.items[i]->n_refs++;
		child->changes.items[child->changes.n++] = parent->changes.items[i];
	}
	child->n_unknown = parent->n_unknown;
	child->given_up = parent->given_up;
	return 0;
}

static int add_start(struct codestore *store, const struct coderecord *record)
{
	const struct program *parent;
	struct program *program;
	int r;

	if (find_program(store, record->pid, record->start))
		return 0;
	while (store->programs.n >= PROGRAMS_MAX) {
		r = forget_oldest(store, false);
		if (r < 0)
			return r == -ENOENT ? -ENOBUFS : r;
	}
	r = vec_reserve(&store->programs, 1);
	if (r < 0)
		return r;
	program = calloc(1, sizeof(*program));
	if (!program)
		return -ENOMEM;
	program->name = (struct codestore_program){ .serial = ++store->last_serial,
						    .pid = record->pid,
						    .start = record->start };
	parent =
	    record->parent_pid ? find_program(store, record->parent_pid, record->address) : NULL;
	if (parent)
		r = inherit(program, parent, record->time);
	if (r == 0)
		r = map_put(&store->by_name, key_of(record->pid, record->start),
			    (uintptr_t)program);
	if (r < 0) {
		(void)program_free(store, program);
		return r;
	}
	store->programs.items[store->programs.n++] = program;
	return 0;
}

static size_t place_of(const struct program *program, uint64_t address)
{
	return vec_bisect(&program->pages, page, (*page)->address < address);
}

/* Return: the program's page at @address, which may be shared; NULL if it has none. */
static struct page *page_at(const struct program *program, uint64_t address)
{
	const size_t i = place_of(program, address);

	return i < program->pages.n && program->pages.items[i]->address == address
		   ? program->pages.items[i]
		   : NULL;
}

/* The program's own page at @address. Return: 0, -ENOBUFS or -ENOMEM. */
static int own_page(struct codestore *store, struct program *program, uint64_t address,
		    struct page **ret_page)
{
	const size_t i = place_of(program, address);
	struct page *shared = page_at(program, address), *page;
	int r;

	if (shared && shared->n_refs == 1) {
		*ret_page = shared;
		return 0;
	}
	r = make_room(store, sizeof(*page));
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
	store->bytes += sizeof(*page);
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

	if (!bytes && ++program->n_unknown > REFUSED_MAX) {
		program_clear(store, program);
		program->given_up = true;
		return 0;
	}
	if (vec_reserve(&program->changes, 1) < 0)
		return -ENOMEM;
	change = malloc(sizeof(*change) + n_bytes);
	if (!change)
		return -ENOMEM;
	/* They come by time, unless another process has written to the ring, too. */
	if (n > 0 && program->changes.items[n - 1]->time > time)
		time = program->changes.items[n - 1]->time;
	*change = (struct change){ .n_refs = 1,
				   .time = time,
				   .address = record->address,
				   .size = record->n_bytes,
				   .known = bytes };
	if (bytes)
		memcpy(change->bytes, bytes, n_bytes);
	store->bytes += sizeof(*change) + n_bytes;
	program->changes.items[program->changes.n++] = change;
	return 0;
}

/* Return: 0; -ENOBUFS if some of the bytes were refused; or -ENOMEM. */
static int add_first(struct codestore *store, struct program *program,
		     const struct coderecord *record, const uint8_t *bytes)
{
	for (size_t done = 0, n; done < record->n_bytes; done += n) {
		const uint64_t address = record->address + done;
		const size_t at = address % PAGE;
		struct page *page;
		int r;

		n = record->n_bytes - done < PAGE - at ? record->n_bytes - done : PAGE - at;
		r = own_page(store, program, address - at, &page);
		if (r < 0)
			return r;
		for (size_t i = 0; i < n; i++) {
			if (page->known[at + i])
				continue;
			page->bytes[at + i] = bytes[done + i];
			page->known[at + i] = true;
		}
	}
	return 0;
}

/* Return: 0; -ENOBUFS if it was refused; or -ENOMEM. */
static int add_code(struct codestore *store, const struct coderecord *record, const uint8_t *bytes)
{
	struct program *program = find_program(store, record->pid, record->start);
	int r = -ENOBUFS;

	/* It was forgotten, or had no room when it began. */
	if (!program || program->given_up)
		return -ENOBUFS;
	store->busy = program;
	if (record->kind == CODERECORD_NEW)
		r = add_first(store, program, record, bytes);
	else if (make_room(store, sizeof(struct change) + record->n_bytes) == 0)
		r = add_change(store, program, record, bytes);
	/* What is refused now may be in the place of what is known. */
	if (r == -ENOBUFS && add_change(store, program, record, NULL) < 0)
		r = -ENOMEM;
	store->busy = NULL;
	program->name.n_refused += r == -ENOBUFS;
	return r;
}

static bool makes_sense(const struct coderecord *record)
{
	return record->n_bytes <= CODERECORD_BYTES_MAX &&
	       record->size == coderecord_size(record->n_bytes) &&
	       record->address <= UINT64_MAX - CODERECORD_BYTES_MAX;
}

static int add_record(struct codestore *store, struct cursor *cursor)
{
	struct coderecord record;
	struct cursor rest;
	int r;

	r = cursor_get(cursor, sizeof(record), &record);
	if (r < 0 || !makes_sense(&record))
		return -EBADMSG;
	r = cursor_get_sub(cursor, record.size - sizeof(record), &rest);
	if (r < 0)
		return r;
	switch (record.kind) {
	case CODERECORD_START:
		return add_start(store, &record);
	case CODERECORD_NEW:
	case CODERECORD_CHANGED:
		return add_code(store, &record, rest.pos);
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
		clear(store);
	(void)pthread_mutex_unlock(&store->lock);
	return r < 0 ? r : refused ? -ENOBUFS : 0;
}

uint64_t codestore_size(struct codestore *store)
{
	uint64_t bytes;

	(void)pthread_mutex_lock(&store->lock);
	bytes = store->bytes;
	(void)pthread_mutex_unlock(&store->lock);
	return bytes;
}

void codestore_clear(struct codestore *store)
{
	(void)pthread_mutex_lock(&store->lock);
	clear(store);
	(void)pthread_mutex_unlock(&store->lock);
}

/* --- what is copied --------------------------------------------------------------------------- */

/* A file that is being made. */
struct image {
	VEC(struct ptd_code_piece) pieces;
	VEC(uint8_t) bytes;
};

static void image_deinit(struct image *image)
{
	vec_deinit(&image->pieces);
	vec_deinit(&image->bytes);
}

/* The offset counts from the first byte behind the pieces; print_image() adds what is before. */
static int add_piece(struct image *image, uint64_t time, uint64_t address, const uint8_t *bytes,
		     size_t size)
{
	int r;

	r = vec_reserve(&image->bytes, bytes ? size : 0);
	if (r == 0)
		r = vec_push(
		    &image->pieces,
		    { .time = time, .address = address, .offset = image->bytes.n, .size = size });
	if (r < 0 || !bytes)
		return r;
	memcpy(image->bytes.items + image->bytes.n, bytes, size);
	image->bytes.n += size;
	return 0;
}

static int add_bytes(struct image *image, uint64_t address, const uint8_t *bytes, size_t size)
{
	struct ptd_code_piece *last =
	    image->pieces.n > 0 ? &image->pieces.items[image->pieces.n - 1] : NULL;
	int r;

	if (!last || last->address + last->size != address)
		return add_piece(image, 0, address, bytes, size);
	r = vec_reserve(&image->bytes, size);
	if (r < 0)
		return r;
	memcpy(image->bytes.items + image->bytes.n, bytes, size);
	image->bytes.n += size;
	last->size += size;
	return 0;
}

static int add_page(struct image *image, const struct page *page)
{
	int r = 0;

	for (size_t at = 0, n; r == 0 && at < PAGE; at += n) {
		for (n = 1; at + n < PAGE && page->known[at + n] == page->known[at]; n++)
			;
		if (page->known[at])
			r = add_bytes(image, page->address + at, page->bytes + at, n);
	}
	return r;
}

static int make_image(const struct program *program, struct image *image)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < program->pages.n; i++)
		r = add_page(image, program->pages.items[i]);
	for (size_t i = 0; r == 0 && i < program->changes.n; i++) {
		const struct change *c = program->changes.items[i];

		r = add_piece(image, c->time ?: 1, c->address, c->known ? c->bytes : NULL, c->size);
	}
	return r;
}

/* Return: 0 or -ENOMEM. */
static int print_image(const struct image *image, const struct program *program,
		       uint8_t **ret_bytes, size_t *ret_size)
{
	const struct ptd_code_header header = {
		.magic = PTD_CODE_MAGIC,
		.version = PTD_CODE_VERSION,
		.n_pieces = (uint32_t)image->pieces.n,
	};
	const size_t n_pieces_bytes = image->pieces.n * sizeof(*image->pieces.items);
	const size_t n_before = sizeof(header) + n_pieces_bytes;
	uint8_t *bytes = malloc(n_before + image->bytes.n);
	size_t n_first = 0;

	if (!bytes)
		return -ENOMEM;
	while (n_first < image->pieces.n && image->pieces.items[n_first].time == 0)
		n_first++;
	for (size_t i = 0; i < image->pieces.n; i++) {
		const bool known = i < n_first || program->changes.items[i - n_first]->known;

		image->pieces.items[i].offset =
		    known ? n_before + image->pieces.items[i].offset : 0;
	}
	memcpy(bytes, &header, sizeof(header));
	if (image->pieces.n > 0)
		memcpy(bytes + sizeof(header), image->pieces.items, n_pieces_bytes);
	if (image->bytes.n > 0)
		memcpy(bytes + n_before, image->bytes.items, image->bytes.n);
	*ret_bytes = bytes;
	*ret_size = n_before + image->bytes.n;
	return 0;
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
		   uint8_t **ret_bytes, size_t *ret_size)
{
	_cleanup_(image_deinit) struct image image = {};
	const struct program *p;
	int r = -ENOENT;

	(void)pthread_mutex_lock(&store->lock);
	p = find_program(store, program->pid, program->start);
	if (p)
		r = make_image(p, &image);
	if (r == 0)
		r = print_image(&image, p, ret_bytes, ret_size);
	(void)pthread_mutex_unlock(&store->lock);
	return r;
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
	clear(store);
	vec_deinit(&store->programs);
	(void)pthread_mutex_destroy(&store->lock);
	free(store);
	return NULL;
}

void codestore_set_max(struct codestore *store, uint64_t bytes_max)
{
	(void)pthread_mutex_lock(&store->lock);
	store->bytes_max = bytes_max;
	(void)pthread_mutex_unlock(&store->lock);
}
