/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/image/rawspace.h"

#include <inttypes.h>
#include <string.h>

#include "util/message.h"

int rawspace_new(const struct ptd_raw_code *code, size_t n_code, struct objects *objects,
		 struct space **ret_space, char **reterr_message)
{
	_cleanup_(space_freep) struct space *space = NULL;
	const struct object *object = NULL;
	int r;

	r = space_new(0, NULL, 0, &space);
	if (r < 0)
		return r;

	for (size_t i = 0; i < n_code; i++) {
		if (i == 0 || strcmp(code[i].path, code[i - 1].path) != 0) {
			r = objects_add_file(objects, code[i].path, &object);
			if (r < 0)
				return message_set(reterr_message, r, "%s: cannot read: %s",
						   code[i].path, strerror(-r));
		}
		r = space_map(space, &(struct mapping){ .start = code[i].address,
							.size = code[i].size,
							.offset = code[i].offset,
							.object = object });
		if (r < 0)
			return message_set(reterr_message, r,
					   "%s: %#" PRIx64 " bytes do not fit at %#" PRIx64,
					   code[i].path, code[i].size, code[i].address);
	}

	*ret_space = TAKE(space);
	return 0;
}
