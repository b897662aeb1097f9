/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trigger
 *
 * The conditions (util/condition.h) of `ptctl record --when`, and the snapshots that are taken when
 * they hold. A thread of ptctl listens for the recorded processes while the command runs.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "util/condition.h"

struct client_scope;
struct context;
struct trigger;

/* What is waited for, and what is done then. Everything is borrowed while the trigger lives. */
struct trigger_wish {
	const char *conditions[CONDITIONS_MAX]; /* they can all be parsed */
	uint32_t n_conditions;
	uint32_t count; /* of snapshots, at most */
	const struct context *context;
	const char *output; /* directory for the snapshot, if @count is 1; NULL: it is not copied */
	const struct client_scope *scope;
};

/* Begin to listen. Errors are reported on standard error. Return: 0, or negative errno. */
_must_check_ int trigger_new(const struct trigger_wish *wish, struct trigger **ret_trigger);

/* Return: the options for the plugin, ",when=…,trigger=…". They belong to @trigger. */
const char *trigger_options(const struct trigger *trigger);

/*
 * The command has ended: stop listening. A snapshot that is being taken is completed.
 *
 * Return: EXIT_OK and the number of snapshots taken; or the exit status of the first that failed.
 */
_must_check_ int trigger_finish(struct trigger *trigger, uint32_t *ret_n_taken);

struct trigger *trigger_free(struct trigger *trigger);

DEFINE_CLEANUP(struct trigger *, trigger_free);
