/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code as libipt wants it: an image section cache for all files, and for each space an image that
 * is moved from one generation to the next.
 *
 * libipt searches its sections one by one, has room for 65528 of them, and for as many users of
 * one. So an image has only those that code ran in, and when they become too many they are all
 * forgotten, to come back one by one.
 *
 * The limit of the cache is set so that files stay mapped: without that libipt maps and unmaps them
 * at each change of section.
 *
 * Sections have holes where code may have branches that libipt does not know (ipt_newinsn.h).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/layout.h"

/*
 * Of all spaces, as far as they are looked at: there are as many layouts of one as CPUs that it ran
 * on.
 */
#define IPT_EXTENTS_MAX (1u << 25)

/* Mappings that are applied once more because they were forgotten to make room. */
#define IPT_FORGOTTEN_MAX (UINT64_C(1) << 25)

/*
 * Instructions that all engines may take: so many before any packet, and for each byte of packets.
 * Real code takes less than 1000 a byte; a file that is made for it can have a million, and would
 * be decoded for hours.
 */
#define IPT_INSNS_MIN      (UINT64_C(1) << 32)
#define IPT_INSNS_PER_BYTE (UINT64_C(1) << 16)

enum {
	IPT_IMAGE_FULL = 1, /* there would be too many: nothing of the space is known */
};

struct ipt_code;
struct pt_image;

/* One space as libipt sees it. */
struct ipt_image {
	struct layout layout;
	struct pt_image *image;
	struct ipt_code *code;             /* borrowed */
	struct ipt_image *previous, *next; /* of the code's */
	size_t n_sections;
	uint32_t mark;      /* of the extents that @image has */
	uint8_t mode;       /* the caller's: of the code that is read, 16, 32 or 64 */
	bool no_memory;     /* while libipt read code */
	bool in_use;        /* the caller's: it is not forgotten to make room for others */
	bool was_forgotten; /* it was */
};

_must_check_ int ipt_code_new(struct ipt_code **ret_code);
struct ipt_code *ipt_code_free(struct ipt_code *code);

/*
 * Return: whether there is memory for what libipt makes of the largest section that it was given.
 * It says pte_nomem of other things, too.
 */
_must_check_ bool ipt_code_has_memory(const struct ipt_code *code);

/* Take @n_insns for which @n_bytes of packets were used up. Return: whether there were as many. */
_must_check_ bool ipt_code_take(struct ipt_code *code, uint64_t n_insns, uint64_t n_bytes);

/*
 * Make an image of @space as it is at generation 0; @code must outlive it.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int ipt_image_new(struct ipt_code *code, const struct space *space,
			       struct ipt_image **ret_image);
struct ipt_image *ipt_image_free(struct ipt_image *image);

/*
 * Move @image on to @generation, with what it is up to that of @until in doubt; or, if that is
 * lower, what it was since.
 *
 * Return: 0; IPT_IMAGE_FULL; -ENOMEM.
 */
_must_check_ int ipt_image_advance(struct ipt_image *image, size_t generation, size_t until);

/* Go back to generation 0. */
void ipt_image_rewind(struct ipt_image *image);

DEFINE_CLEANUP(struct ipt_code *, ipt_code_free);
DEFINE_CLEANUP(struct ipt_image *, ipt_image_free);
