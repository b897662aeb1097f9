/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sources that have nothing but an answer to the question which tasks live, for the tests of those
 * who ask it.
 */

#include "daemon/sideband/tasks.h"
#include "daemon/source/source.h"

/* It tells what the records said. */
static inline int sources_tell_known(struct source *source, const struct tasks *known,
				     uint64_t budget_ns, record_put_fn put, void *userdata)
{
	(void)source;
	(void)budget_ns;
	(void)tasks_write(known, tasks_time(known), put, userdata);
	return 0;
}

/* It has to look at the tasks; what it sees the test gives to sideband_add_found(). */
static inline int sources_look(struct source *source, const struct tasks *known, uint64_t budget_ns,
			       record_put_fn put, void *userdata)
{
	(void)source;
	(void)known;
	(void)budget_ns;
	(void)put;
	(void)userdata;
	return SOURCE_MORE;
}

static const struct source_ops sources_knowing_ops = { .tasks = sources_tell_known };
static const struct source_ops sources_looking_ops = { .tasks = sources_look };

static struct source source_that_knows __attribute__((unused)) = { .ops = &sources_knowing_ops };
static struct source source_that_looks __attribute__((unused)) = { .ops = &sources_looking_ops };
