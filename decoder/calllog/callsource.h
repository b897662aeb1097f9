/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Call source
 *
 * A source (decoder/util/batchsource.h) of the calls of a log (calllog.h). Its lanes are
 * merged: a piece of a lane is a slice, and slices come in the order of the times at which they
 * begin.
 */

#include "base/base.h"
#include "decoder/util/batchsource.h"

struct calllog;

/*
 * Make a source of the lanes of @log, which belongs to it on success.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int callsource_new(struct calllog *log, struct batchsource **ret_source);
