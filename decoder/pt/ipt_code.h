/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Code as libipt wants it: one image section cache for all files, and for each space an image that
 * is moved from one generation to the next.
 *
 * The limit of the cache is set so that files stay mapped: without that libipt maps and unmaps them
 * at each change of section.
 */

#include <intel-pt.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/image/layout.h"

struct ipt_code;

/* One space as libipt sees it. */
struct ipt_image {
	struct layout layout;
	struct pt_image *image;
};

_must_check_ int ipt_code_new(struct ipt_code **ret_code);
struct ipt_code *ipt_code_free(struct ipt_code *code);

/*
 * Make an image of @space as it is at generation 0.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int ipt_image_new(const struct space *space, struct ipt_image **ret_image);
struct ipt_image *ipt_image_free(struct ipt_image *image);

/*
 * Move @image on to @generation, with what it is up to that of @until in doubt; or, if that is lower, what it was since.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int ipt_image_advance(struct ipt_image *image, struct ipt_code *code,
				   size_t generation, size_t until);

DEFINE_CLEANUP(struct ipt_code *, ipt_code_free);
DEFINE_CLEANUP(struct ipt_image *, ipt_image_free);
