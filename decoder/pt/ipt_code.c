/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_code.h"

#include <errno.h>
#include <intel-pt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "decoder/pt/ipt_newinsn.h"
#include "util/map.h"
#include "util/vec.h"

/* In the cache: each is a mapping of the process, which has room for 65530. */
#define SECTIONS_MAX (1u << 13)

/* Of one place; where there are more, libipt gets no section. */
#define HOLES_MAX 64

/* Places smaller than this are searched for holes whenever they are added; so many larger ones are
 * known. */
#define SEARCH_SIZE_MIN (UINT64_C(1) << 16)
#define SEARCHES_MAX    (1u << 16)

/* In one image, and in all. */
#define IMAGE_SECTIONS_MAX  (1u << 11)
#define IMAGES_SECTIONS_MAX (1u << 15)

/* For a section libipt has a table of 4 bytes for each byte of it, and some more. */
#define MEMORY_PER_BYTE 5u
#define MEMORY_MIN      (UINT64_C(1) << 20)

/* A piece of an object at an address. */
struct place {
	const struct object *object;
	uint64_t offset, size, start;
};

struct section {
	struct place place;
	int isid;
};

/* Part of an object that was searched for holes. */
struct search {
	const struct object *object;
	uint64_t offset, size;
	size_t n_holes;
};

struct ipt_code {
	struct pt_image_section_cache *cache;
	VEC(struct search) searches;  /* of large parts */
	struct map by_part;           /* hash of it → index */
	VEC(struct section) sections; /* of the cache */
	struct map by_place;          /* hash of it → index */
	struct ipt_image *images;
	size_t n_in_images;
	size_t n_extents;     /* of their layouts */
	uint64_t n_forgotten; /* mappings */
	uint64_t n_insns_left;
	uint64_t section_size_max; /* of all that were in the cache */
};

static struct pt_image_section_cache *make_cache(void)
{
	struct pt_image_section_cache *cache = pt_iscache_alloc(NULL);

	if (cache && pt_iscache_set_limit(cache, UINT64_MAX) == 0)
		return cache;
	pt_iscache_free(cache);
	return NULL;
}

int ipt_code_new(struct ipt_code **ret_code)
{
	_cleanup_(ipt_code_freep) struct ipt_code *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->n_insns_left = IPT_INSNS_MIN;
	c->cache = make_cache();
	if (!c->cache)
		return -ENOMEM;

	*ret_code = TAKE(c);
	return 0;
}

struct ipt_code *ipt_code_free(struct ipt_code *code)
{
	if (!code)
		return NULL;

	pt_iscache_free(code->cache);
	vec_deinit(&code->sections);
	map_deinit(&code->by_place);
	vec_deinit(&code->searches);
	map_deinit(&code->by_part);
	free(code);
	return NULL;
}

bool ipt_code_has_memory(const struct ipt_code *code)
{
	const size_t size = MEMORY_MIN + code->section_size_max * MEMORY_PER_BYTE;
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return false;
	(void)munmap(p, size);
	return true;
}

bool ipt_code_take(struct ipt_code *code, uint64_t n_insns, uint64_t n_bytes)
{
	code->n_insns_left += n_bytes * IPT_INSNS_PER_BYTE;
	if (n_insns > code->n_insns_left)
		return false;
	code->n_insns_left -= n_insns;
	return true;
}

/* Take all sections out of the image: libipt cannot take out one range. */
static void empty(struct ipt_image *image)
{
	(void)pt_image_remove_by_asid(image->image, NULL);
	image->code->n_in_images -= image->n_sections;
	image->n_sections = 0;
	image->mark++;
}

static void empty_all(struct ipt_code *code)
{
	for (struct ipt_image *i = code->images; i; i = i->next)
		empty(i);
}

/* Begin another cache. What a decoder still holds of the old one is its own. */
static int forget_sections(struct ipt_code *code)
{
	struct pt_image_section_cache *cache = make_cache();

	if (!cache)
		return -ENOMEM;
	empty_all(code);
	pt_iscache_free(code->cache);
	code->cache = cache;
	code->sections.n = 0;
	map_deinit(&code->by_place);
	return 0;
}

/* Return: 0 and @ret_isid, which is negative if the file cannot be had again; -ENOMEM. */
static int find_section(struct ipt_code *code, const struct place *place, int *ret_isid)
{
	const uint64_t key[] = { (uintptr_t)place->object, place->offset, place->size,
				 place->start };
	const uint64_t hash = map_hash(key, sizeof(key)), *known = map_get(&code->by_place, hash);
	int isid, r;

	if (known && memcmp(&code->sections.items[*known].place, place, sizeof(*place)) == 0) {
		*ret_isid = code->sections.items[*known].isid;
		return 0;
	}
	r = code->sections.n == SECTIONS_MAX ? forget_sections(code) : 0;
	if (r < 0)
		return r;
	isid = pt_iscache_add_file(code->cache, place->object->id.source, place->offset,
				   place->size, place->start);
	if (isid == -pte_nomem)
		return -ENOMEM;
	if (code->section_size_max < place->size)
		code->section_size_max = place->size;
	r = map_put(&code->by_place, hash, code->sections.n);
	if (r == 0)
		r = vec_push(&code->sections, { .place = *place, .isid = isid });
	*ret_isid = isid;
	return r;
}

/* Return: how many holes there are; HOLES_MAX + 1 if they are more than that. */
static size_t count_holes(const struct place *place)
{
	const uint8_t *bytes = place->object->bytes + place->offset;
	struct ipt_hole hole = {};
	size_t n = 0;

	while (n <= HOLES_MAX && ipt_newinsn_find(bytes, place->size, hole.end, &hole))
		n++;
	return n;
}

static void forget_searches(struct ipt_code *code)
{
	code->searches.n = 0;
	map_deinit(&code->by_part);
}

/* The same, but it is known of the large parts of files, which many processes map. */
static int find_holes(struct ipt_code *code, const struct place *place, size_t *ret_n_holes)
{
	const uint64_t key[] = { (uintptr_t)place->object, place->offset, place->size };
	const uint64_t hash = map_hash(key, sizeof(key)), *known = map_get(&code->by_part, hash);
	const struct search *search = known ? &code->searches.items[*known] : NULL;
	int r;

	if (search && search->object == place->object && search->offset == place->offset &&
	    search->size == place->size) {
		*ret_n_holes = search->n_holes;
		return 0;
	}
	*ret_n_holes = count_holes(place);
	if (place->size < SEARCH_SIZE_MIN)
		return 0;
	if (code->searches.n == SEARCHES_MAX)
		forget_searches(code);
	r = map_put(&code->by_part, hash, code->searches.n);
	if (r == 0)
		r = vec_push(&code->searches, { .object = place->object,
						.offset = place->offset,
						.size = place->size,
						.n_holes = *ret_n_holes });
	return r;
}

/* What @e, which has bytes, is a place of. */
static struct place place_of(const struct extent *e)
{
	const uint64_t size = e->last - e->start + 1, left = e->object->size - e->offset;

	return (struct place){ .object = e->object,
			       .offset = e->offset,
			       .size = size == 0 || size > left ? left : size,
			       .start = e->start };
}

/* Add one section. Return: 0, also if libipt cannot have it: then it is read as it is needed; or
 * -ENOMEM. */
static int add_section(struct ipt_image *image, const struct place *place)
{
	struct ipt_code *code = image->code;
	int isid, r;

	r = find_section(code, place, &isid);
	if (r < 0 || isid < 0)
		return r;
	r = pt_image_add_cached(image->image, code->cache, isid, NULL);
	if (r < 0)
		return r == -pte_nomem ? -ENOMEM : 0;
	image->n_sections++;
	code->n_in_images++;
	return 0;
}

/* Add what is between the holes. */
static int add_sections(struct ipt_image *image, const struct place *place)
{
	const uint8_t *bytes = place->object->bytes + place->offset;
	bool has_hole;
	uint64_t at = 0;
	int r = 0;

	do {
		struct ipt_hole hole = {};
		uint64_t end;

		has_hole = ipt_newinsn_find(bytes, place->size, at, &hole);
		end = has_hole ? hole.start : place->size;
		if (end > at)
			r = add_section(image, &(struct place){ .object = place->object,
								.offset = place->offset + at,
								.size = end - at,
								.start = place->start + at });
		at = hole.end;
	} while (r == 0 && has_hole);
	return r;
}

/* Add what @e has bytes of, which is something, to the image. Return: 0 or -ENOMEM. */
static int add(struct ipt_image *image, const struct extent *e)
{
	const struct place place = place_of(e);
	struct ipt_code *code = image->code;
	size_t n_holes;
	int r;

	r = find_holes(code, &place, &n_holes);
	if (r < 0)
		return r;
	if (code->n_in_images + n_holes >= IMAGES_SECTIONS_MAX)
		empty_all(code);
	if (image->n_sections + n_holes >= IMAGE_SECTIONS_MAX)
		empty(image);
	layout_mark(&image->layout, e->start, image->mark);
	if (n_holes == 0)
		return add_section(image, &place);
	/* Where there are too many, all is read as it is needed. */
	return n_holes > HOLES_MAX ? 0 : add_sections(image, &place);
}

static bool has_bytes(const struct extent *e)
{
	return e->object->state == OBJECT_OK && e->offset < e->object->size;
}

/*
 * Give libipt the code at @ip that it has no section of, and the section for the next time. It
 * reckons with 64 bits in all code: a branch of 32-bit code that goes beyond either end of its 4
 * GiB leads it to where nothing is mapped. What is at the address that is meant is given to it
 * then; whoever takes its instructions cuts their addresses.
 */
static int read_code(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip,
		     void *context)
{
	struct ipt_image *image = context;
	const struct extent *e = layout_find(&image->layout, ip);
	uint64_t offset, left;

	(void)asid;
	if (e && has_bytes(e) && ip - e->start < e->object->size - e->offset) {
		if (e->mark != image->mark && add(image, e) < 0) {
			image->no_memory = true;
			return -pte_nomem;
		}
	} else {
		ip = (uint32_t)ip;
		e = layout_find(&image->layout, ip);
	}
	if (!e || !has_bytes(e) || ip - e->start >= e->object->size - e->offset)
		return -pte_nomap;
	offset = e->offset + (ip - e->start);
	left = e->object->size - offset;
	if (left - 1 > e->last - ip)
		left = e->last - ip + 1;
	if (size > left)
		size = (size_t)left;
	memcpy(buffer, e->object->bytes + offset, size);
	if (image->mode == 64)
		ipt_newinsn_disguise(buffer, size);
	return (int)size;
}

int ipt_image_new(struct ipt_code *code, const struct space *space, struct ipt_image **ret_image)
{
	struct ipt_image *i = calloc(1, sizeof(*i));

	if (!i)
		return -ENOMEM;
	layout_init(&i->layout, space);
	i->mark = 1;
	i->mode = 64;
	i->image = pt_image_alloc(NULL);
	if (!i->image || pt_image_set_callback(i->image, read_code, i) < 0) {
		pt_image_free(i->image);
		free(i);
		return -ENOMEM;
	}
	i->code = code;
	i->next = code->images;
	if (i->next)
		i->next->previous = i;
	code->images = i;
	*ret_image = i;
	return 0;
}

struct ipt_image *ipt_image_free(struct ipt_image *image)
{
	if (!image)
		return NULL;

	if (image->previous)
		image->previous->next = image->next;
	else
		image->code->images = image->next;
	if (image->next)
		image->next->previous = image->previous;
	ipt_image_rewind(image);
	pt_image_free(image->image);
	free(image);
	return NULL;
}

void ipt_image_rewind(struct ipt_image *image)
{
	const struct space *space = image->layout.space;

	empty(image);
	image->code->n_extents -= image->layout.extents.n;
	layout_deinit(&image->layout);
	layout_init(&image->layout, space);
}

/* Has all of what was added bytes, and no hole? Return: 1 or 0; -ENOMEM. */
static int has_all_bytes(struct ipt_code *code, const struct layout *layout)
{
	for (size_t i = 0; i < layout->added.n; i++) {
		const struct extent *e = &layout->added.items[i];
		struct place place;
		size_t n_holes;
		int r;

		if (!has_bytes(e) || e->last - e->start >= e->object->size - e->offset)
			return 0;
		place = place_of(e);
		r = find_holes(code, &place, &n_holes);
		if (r < 0)
			return r;
		if (n_holes > 0)
			return 0;
	}
	return 1;
}

/*
 * What is added over something else takes its place in libipt's image, too; but that which has no
 * bytes cannot be added. Where more mappings come than there are sections, most of these are
 * replaced at once.
 */
static int advance(struct ipt_image *image, size_t generation, size_t until)
{
	struct layout *layout = &image->layout;
	int r;

	if (until < generation) {
		if (layout->generation == generation)
			return 0;
		empty(image);
		return layout_advance_doubting(layout, generation);
	}
	if (generation > layout->generation && generation - layout->generation > image->n_sections)
		empty(image);
	while (layout->generation < generation) {
		r = layout_advance(layout);
		if (r < 0)
			return r;
		if (layout->covered != image->mark)
			continue;
		r = has_all_bytes(image->code, layout);
		if (r < 0)
			return r;
		if (!r) {
			empty(image);
			continue;
		}
		for (size_t i = 0; i < layout->added.n; i++) {
			r = add(image, &layout->added.items[i]);
			if (r < 0)
				return r;
		}
	}
	return layout_doubt(layout, until);
}

static void forget(struct ipt_image *image)
{
	image->code->n_forgotten += image->layout.generation;
	image->was_forgotten = true;
	ipt_image_rewind(image);
}

/* Forget the spaces that are not in use. */
static void make_room(struct ipt_code *code)
{
	for (struct ipt_image *i = code->images; i; i = i->next)
		if (!i->in_use && i->layout.generation > 0)
			forget(i);
}

int ipt_image_advance(struct ipt_image *image, size_t generation, size_t until)
{
	const size_t n_before = image->layout.extents.n;
	struct ipt_code *code = image->code;
	int r;

	if (image->was_forgotten && code->n_forgotten > IPT_FORGOTTEN_MAX)
		return IPT_IMAGE_FULL;
	r = advance(image, generation, until);
	code->n_extents += image->layout.extents.n - n_before;
	if (r < 0 || code->n_extents <= IPT_EXTENTS_MAX)
		return r;
	make_room(code);
	if (code->n_extents <= IPT_EXTENTS_MAX)
		return 0;
	forget(image);
	return IPT_IMAGE_FULL;
}
