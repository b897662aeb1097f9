/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/util/map.h"
#include "decoder/util/vec.h"

/* In the cache: each is a mapping of the process, which has room for 65530. */
#define SECTIONS_MAX (1u << 13)

/* In one image, and in all. */
#define IMAGE_SECTIONS_MAX  (1u << 11)
#define IMAGES_SECTIONS_MAX (1u << 15)

/* A piece of an object at an address. */
struct place {
	const struct object *object;
	uint64_t offset, size, start;
};

struct section {
	struct place place;
	int isid;
};

struct ipt_code {
	struct pt_image_section_cache *cache;
	VEC(struct section) sections; /* of the cache */
	struct map by_place;          /* hash of it → index */
	struct ipt_image *images;
	size_t n_in_images;
	size_t n_extents;     /* of their layouts */
	uint64_t n_forgotten; /* mappings */
	uint64_t n_insns_left;
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
	free(code);
	return NULL;
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
	r = map_put(&code->by_place, hash, code->sections.n);
	if (r == 0)
		r = vec_push(&code->sections, { .place = *place, .isid = isid });
	*ret_isid = isid;
	return r;
}

/* Add what @e has bytes of, which is something, to the image. Return: 0 or -ENOMEM. */
static int add(struct ipt_image *image, const struct extent *e)
{
	const struct object *object = e->object;
	struct place place = { .object = object, .offset = e->offset, .start = e->start };
	struct ipt_code *code = image->code;
	int isid, r;

	place.size = e->last - e->start + 1;
	if (place.size == 0 || place.size > object->size - e->offset)
		place.size = object->size - e->offset;
	if (code->n_in_images >= IMAGES_SECTIONS_MAX)
		empty_all(code);
	if (image->n_sections >= IMAGE_SECTIONS_MAX)
		empty(image);
	r = find_section(code, &place, &isid);
	if (r < 0)
		return r;
	/* What it cannot have is read as it is needed. */
	if (isid < 0)
		return 0;
	r = pt_image_add_cached(image->image, code->cache, isid, NULL);
	if (r < 0)
		return r == -pte_nomem ? -ENOMEM : 0;
	layout_mark(&image->layout, e->start, image->mark);
	image->n_sections++;
	code->n_in_images++;
	return 0;
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
	return (int)size;
}

int ipt_image_new(struct ipt_code *code, const struct space *space, struct ipt_image **ret_image)
{
	struct ipt_image *i = calloc(1, sizeof(*i));

	if (!i)
		return -ENOMEM;
	layout_init(&i->layout, space);
	i->mark = 1;
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

/* Return: whether all of what was added has bytes. */
static bool has_all_bytes(const struct layout *layout)
{
	for (size_t i = 0; i < layout->added.n; i++) {
		const struct extent *e = &layout->added.items[i];

		if (!has_bytes(e) || e->last - e->start >= e->object->size - e->offset)
			return false;
	}
	return true;
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
		if (!has_all_bytes(layout)) {
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
