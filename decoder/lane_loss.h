/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Lane loss
 *
 * What the recorder says that it lost, on its way to the stream: each loss of a lane's queue is a
 * gap in the place that the record tells, or at its time.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/lane.h"

/*
 * Tell the losses up to the lane's time, or all if it has ended: gaps before run @run of the batch.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int lane_tell_losses(struct lane *lane, size_t run);

/*
 * Tell the losses up to where the engine stands, before run @run, and let it stop where the next
 * one is. Those at the end of a span are told behind it. Return: as above.
 */
_must_check_ int lane_tell_losses_in(struct lane *lane, size_t run);

/* Tell why the bytes before @span, which is the next, are not there. Return: as above. */
_must_check_ int lane_tell_hole(struct lane *lane, const struct trace_span *span);

/* The queue is over: tell what is left. Return: as above. */
_must_check_ int lane_tell_rest(struct lane *lane);
