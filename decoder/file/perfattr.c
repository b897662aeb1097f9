/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/perfattr.h"

#include <errno.h>
#include <linux/perf_event.h>

#include "util/perf/trailer.h"

void perfattrs_deinit(struct perfattrs *attrs)
{
	vec_deinit(&attrs->list);
	map_deinit(&attrs->by_id);
}

int perfattrs_add(struct perfattrs *attrs, struct cursor *c)
{
	struct cursor at = *c, own;
	struct perf_event_attr attr = {};
	size_t size;
	int r;

	/* The size is the second field; a zero there means the first version of the struct. */
	if (cursor_left(&at) < PERF_ATTR_SIZE_VER0)
		return -EBADMSG;
	memcpy(&attr, at.pos, PERF_ATTR_SIZE_VER0);
	size = attr.size ?: PERF_ATTR_SIZE_VER0;
	if (size < PERF_ATTR_SIZE_VER0)
		return -EBADMSG;

	r = cursor_get_sub(&at, size, &own);
	if (r < 0)
		return r;
	r = cursor_get(&own, size < sizeof(attr) ? size : sizeof(attr), &attr);
	if (r < 0)
		return r;

	r = vec_push(&attrs->list, { .type = attr.type,
				     .config = attr.config,
				     .sample_type = attr.sample_type,
				     .read_format = attr.read_format,
				     .branch_sample_type = attr.branch_sample_type,
				     .regs_user = attr.sample_regs_user,
				     .regs_intr = attr.sample_regs_intr,
				     .sample_id_all = attr.sample_id_all,
				     .use_clockid = attr.use_clockid });
	if (r < 0)
		return r;
	*c = at;
	return 0;
}

int perfattrs_add_ids(struct perfattrs *attrs, struct cursor ids)
{
	uint64_t id;
	int r;

	while (cursor_get(&ids, sizeof(id), &id) == 0) {
		r = map_put(&attrs->by_id, id, attrs->list.n - 1);
		if (r < 0)
			return r;
	}
	return 0;
}

const struct perfattr *perfattrs_of_id(const struct perfattrs *attrs, uint64_t id)
{
	const uint64_t *index = id ? map_get(&attrs->by_id, id) : NULL;

	return attrs->list.n > 0 ? &attrs->list.items[index ? *index : 0] : NULL;
}

const struct perfattr *perfattrs_of_record(const struct perfattrs *attrs, struct cursor body)
{
	/* All attrs agree on where the id is. */
	if (attrs->list.n == 0)
		return NULL;
	return perfattrs_of_id(attrs, trailer_id(body, attrs->list.items[0].sample_type));
}
