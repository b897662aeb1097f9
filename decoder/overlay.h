/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Overlay
 *
 * What a program noted in a log of its own (calllog/), laid over the stream of its PT: each call
 * becomes a mark of the thread that noted it, the beginning or end of a region or a point. It
 * stands before the first run of the thread that is as late as it or later, behind other marks
 * there that are not later. What a thread noted before its first run or behind its last one is left
 * out, since it was not recorded.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/record.h"

struct calllog;
struct overlay;

/* @log belongs to the overlay on success. Return: 0 or -ENOMEM. */
_must_check_ int overlay_new(struct calllog *log, struct overlay **ret_overlay);
struct overlay *overlay_free(struct overlay *overlay);

/* The stream begins, or begins anew. Return: 0; or negative errno and @reterr_message. */
_must_check_ int overlay_start(struct overlay *overlay, char **reterr_message);

/*
 * Put the marks into @batch, the next one of the stream. They are valid until the next call.
 *
 * Return: 0; or negative errno and @reterr_message.
 */
_must_check_ int overlay_batch(struct overlay *overlay, struct ptd_batch *batch,
			       char **reterr_message);

/* Return: how many calls the log has. */
uint64_t overlay_n_calls(const struct overlay *overlay);

/* Return: how many lanes are of threads that the stream did not have, and one of those threads. */
size_t overlay_n_unknown(const struct overlay *overlay, uint32_t *ret_pid, uint32_t *ret_tid);

DEFINE_CLEANUP(struct overlay *, overlay_free);
