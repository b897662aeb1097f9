/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Asked
 *
 * The lists of numbers and names by which a command line asks for a part of the trace. Each option
 * may be given several times, and adds to its list.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/decode.h"
#include "util/vec.h"

/* Numbers that one option may ask for. */
#define ASKED_IDS_MAX 65536

struct asked_ids {
	VEC(uint32_t) list;
};

struct asked_names {
	VEC(const char *) list; /* borrowed from the command line */
};

struct asked {
	struct asked_ids cpus, pids, tids;
	struct asked_names comms, symbols, objects;
};

void asked_deinit(struct asked *asked);

/*
 * Add the numbers of @text, such as "3" or "0-3,8".
 *
 * Return: 0; -EINVAL if it is no such list, or asks for too many; -ENOMEM.
 */
_must_check_ int asked_add_ids(struct asked_ids *ids, const char *text);

/* Add @name. Return: 0 or -ENOMEM. */
_must_check_ int asked_add_name(struct asked_names *names, const char *name);

/* Let @part have the lists, which it borrows. */
void asked_fill_in(const struct asked *asked, struct ptd_part *part);
