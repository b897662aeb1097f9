/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/cmd/asked.h"

#include <errno.h>
#include <stdlib.h>

void asked_deinit(struct asked *asked)
{
	vec_deinit(&asked->cpus.list);
	vec_deinit(&asked->pids.list);
	vec_deinit(&asked->tids.list);
	vec_deinit(&asked->comms.list);
	vec_deinit(&asked->symbols.list);
	vec_deinit(&asked->objects.list);
}

/* Read the id at @at, and go behind it. Return: whether there is one that can be known. */
static bool read_id(const char **at, uint32_t *ret_id)
{
	unsigned long long n;
	char *end;

	if (**at < '0' || **at > '9')
		return false;
	errno = 0;
	n = strtoull(*at, &end, 10);
	if (errno || n >= PTD_ID_UNKNOWN)
		return false;
	*at = end;
	*ret_id = (uint32_t)n;
	return true;
}

int asked_add_ids(struct asked_ids *ids, const char *text)
{
	for (;; text++) {
		uint32_t first, last;

		if (!read_id(&text, &first))
			return -EINVAL;
		last = first;
		if (*text == '-') {
			text++;
			if (!read_id(&text, &last) || last < first)
				return -EINVAL;
		}
		if (last - first >= ASKED_IDS_MAX - ids->list.n)
			return -EINVAL;
		for (uint32_t id = first; id <= last; id++) {
			const int r = vec_push(&ids->list, id);

			if (r < 0)
				return r;
		}
		if (*text != ',')
			return *text ? -EINVAL : 0;
	}
}

int asked_add_name(struct asked_names *names, const char *name)
{
	return vec_push(&names->list, name);
}

void asked_fill_in(const struct asked *asked, struct ptd_part *part)
{
	part->cpus = asked->cpus.list.items;
	part->n_cpus = asked->cpus.list.n;
	part->pids = asked->pids.list.items;
	part->n_pids = asked->pids.list.n;
	part->tids = asked->tids.list.items;
	part->n_tids = asked->tids.list.n;
	part->comms = asked->comms.list.items;
	part->n_comms = asked->comms.list.n;
	part->symbols = asked->symbols.list.items;
	part->n_symbols = asked->symbols.list.n;
	part->objects = asked->objects.list.items;
	part->n_objects = asked->objects.list.n;
}
