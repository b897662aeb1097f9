/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Probes
 *
 * The static probes of the objects that ran (symbol/stapsdt.h), and each of their executions, which
 * becomes a mark of the thread: PT shows it, though nobody had enabled the probe. A hit is the nop
 * itself; code jumps to the byte behind it, too.
 *
 * The mark stands behind the run that has the nop. Only the last instruction of a run may be a
 * call, so that it stands in the function that executed it.
 */

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/base.h"
#include "ptd/record.h"
#include "util/map.h"
#include "util/vec.h"

struct object;
struct probes_of;
struct ptd_probe;
struct resolver;

struct probes {
	struct resolver *resolver;  /* borrowed, for the names */
	pthread_mutex_t mutex;      /* of the next */
	struct map objects;         /* id of an object → struct probes_of * */
	bool have_run;              /* some block that is to come, or has come, has a probe */
	VEC(struct ptd_mark) marks; /* of the batch */
};

void probes_init(struct probes *probes, struct resolver *resolver);
void probes_deinit(struct probes *probes);

/* Find the probes of @object, as ptd_decoder_probes(). Any thread may ask. */
_must_check_ int probes_find(struct probes *probes, const struct object *object,
			     const struct ptd_probe **ret_probes, size_t *ret_n);

/* Find out whether @block, which is new, has probes. Return: 0 and @ret_has; or -ENOMEM. */
_must_check_ int probes_look_at(struct probes *probes, const struct object *object,
				const struct ptd_block *block, bool *ret_has);

/*
 * Put the marks into @batch, the next one of the stream. They are valid until the next call.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int probes_batch(struct probes *probes, struct ptd_batch *batch);
