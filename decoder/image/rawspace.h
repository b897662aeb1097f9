/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Raw space
 *
 * The address space of a bare PT stream: no records say what was mapped, so the caller of the
 * library says which pieces of files were at which addresses.
 */

#include <stddef.h>

#include "base/base.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"
#include "ptd/decode.h"

/*
 * Make a space in which the @n_code pieces of @code are mapped, a later piece over earlier ones.
 * The files become objects of @objects, which must outlive the space; the caller frees the space.
 *
 * Return: 0; or negative errno and @reterr_message, which names the file; the caller frees it.
 */
_must_check_ int rawspace_new(const struct ptd_raw_code *code, size_t n_code,
			      struct objects *objects, struct space **ret_space,
			      char **reterr_message);
