/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Fetch
 *
 * How files that are nowhere here are got from elsewhere, by their build-ids: the caller of the
 * library says, in its options.
 */

#include <errno.h>

#include "base/base.h"
#include "ptd/decode.h"
#include "util/buildid.h"

struct fetch {
	/* NULL: nothing is asked for. */
	int (*get)(void *userdata, enum ptd_fetch what, const uint8_t *build_id, size_t size,
		   char **ret_path);
	void *userdata; /* borrowed */
};

/*
 * Get the file with @id.
 *
 * Return: the file, open; the caller closes it and frees @ret_path. Or negative errno: -ENOENT if
 *         it is not to be had.
 */
_must_check_ static inline int fetch_get(const struct fetch *fetch, enum ptd_fetch what,
					 const struct buildid *id, char **ret_path)
{
	return fetch->get && id->size >= 2
		   ? fetch->get(fetch->userdata, what, id->bytes, id->size, ret_path)
		   : -ENOENT;
}
