/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/ipt_code.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct ipt_code {
	struct pt_image_section_cache *sections;
};

int ipt_code_new(struct ipt_code **ret_code)
{
	_cleanup_(ipt_code_freep) struct ipt_code *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->sections = pt_iscache_alloc(NULL);
	if (!c->sections || pt_iscache_set_limit(c->sections, UINT64_MAX) < 0)
		return -ENOMEM;

	*ret_code = TAKE(c);
	return 0;
}

struct ipt_code *ipt_code_free(struct ipt_code *code)
{
	if (!code)
		return NULL;

	pt_iscache_free(code->sections);
	free(code);
	return NULL;
}

/*
 * libipt reckons with 64 bits in all code: a branch of 32-bit code that goes beyond either end of its 4
 * GiB leads it to where nothing is mapped. What is at the address that is meant is given to it; whoever takes
 * its instructions cuts their addresses.
 */
static int read_beyond(uint8_t *buffer, size_t size, const struct pt_asid *asid, uint64_t ip,
		       void *context)
{
	struct ipt_image *image = context;
	const uint64_t meant = (uint32_t)ip;
	const struct extent *e = ip == meant ? NULL : layout_find(&image->layout, meant);
	uint64_t offset, left;

	(void)asid;
	if (!e || e->object->state != OBJECT_OK)
		return -pte_nomap;
	offset = e->offset + (meant - e->start);
	if (offset >= e->object->size)
		return -pte_nomap;
	left = e->object->size - offset;
	if (left - 1 > e->last - meant)
		left = e->last - meant + 1;
	if (size > left)
		size = (size_t)left;
	memcpy(buffer, e->object->bytes + offset, size);
	return (int)size;
}

int ipt_image_new(const struct space *space, struct ipt_image **ret_image)
{
	_cleanup_(ipt_image_freep) struct ipt_image *i = calloc(1, sizeof(*i));

	if (!i)
		return -ENOMEM;
	layout_init(&i->layout, space);
	i->image = pt_image_alloc(NULL);
	if (!i->image || pt_image_set_callback(i->image, read_beyond, i) < 0)
		return -ENOMEM;

	*ret_image = TAKE(i);
	return 0;
}

struct ipt_image *ipt_image_free(struct ipt_image *image)
{
	if (!image)
		return NULL;

	pt_image_free(image->image);
	layout_deinit(&image->layout);
	free(image);
	return NULL;
}

/* What cannot be added (no file, or beyond its end) is simply not there: libipt says "nomap". */
static int add(struct ipt_image *image, struct ipt_code *code, const struct extent *e)
{
	const struct object *object = e->object;
	uint64_t size = e->last - e->start + 1;
	int isid, r;

	if (object->state != OBJECT_OK || e->offset >= object->size)
		return 0;
	if (size == 0 || size > object->size - e->offset)
		size = object->size - e->offset;

	isid = pt_iscache_add_file(code->sections, object->id.source, e->offset, size, e->start);
	if (isid < 0)
		return isid == -pte_nomem ? -ENOMEM : 0;
	r = pt_image_add_cached(image->image, code->sections, isid, NULL);
	return r == -pte_nomem ? -ENOMEM : 0;
}

/* libipt cannot take a range out of an image: make it anew from what is visible. */
static int rebuild(struct ipt_image *image, struct ipt_code *code)
{
	int r;

	(void)pt_image_remove_by_asid(image->image, NULL);
	for (size_t i = 0; i < image->layout.extents.n; i++) {
		r = add(image, code, &image->layout.extents.items[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_new(struct ipt_image *image, struct ipt_code *code)
{
	for (size_t i = 0; i < image->layout.added.n; i++) {
		const int r = add(image, code, &image->layout.added.items[i]);

		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * What is added over something else takes its place, in libipt's image too; only what has no bytes
 * cannot be added. Where more is to be added than there is, most of it is replaced at once.
 */
int ipt_image_advance(struct ipt_image *image, struct ipt_code *code, size_t generation,
		      size_t until)
{
	struct layout *layout = &image->layout;
	bool rebuild_needed =
	    generation > layout->generation && generation - layout->generation > layout->extents.n;
	int r;

	if (until < generation) {
		if (layout->generation == generation)
			return 0;
		r = layout_advance_doubting(layout, generation);
		return r < 0 ? r : rebuild(image, code);
	}
	while (layout->generation < generation) {
		r = layout_advance(layout);
		if (r < 0)
			return r;
		rebuild_needed = rebuild_needed || layout->bared;
		r = rebuild_needed ? 0 : add_new(image, code);
		if (r < 0)
			return r;
	}
	r = rebuild_needed ? rebuild(image, code) : 0;
	return r < 0 ? r : layout_doubt(layout, until);
}
