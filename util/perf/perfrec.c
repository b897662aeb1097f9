/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "util/perf/perfrec.h"

#include <errno.h>
#include <linux/perf_event.h>

int perfrec_next(struct cursor *c, struct perfrec *ret_rec)
{
	struct cursor at = *c, body;
	struct perf_event_header h;

	if (cursor_left(&at) == 0)
		return PERFREC_END;
	if (cursor_get(&at, sizeof(h), &h) < 0)
		return PERFREC_TRUNCATED;
	if (h.size < sizeof(h))
		return -EBADMSG;
	if (cursor_get_sub(&at, h.size - sizeof(h), &body) < 0)
		return PERFREC_TRUNCATED;

	*ret_rec = (struct perfrec){ .type = h.type, .misc = h.misc, .body = body };
	*c = at;
	return 0;
}
