/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ovni log
 *
 * A trace of ovni (decoder/util/ovni.h), version 1 or later, as a log of calls (calllog.h): see
 * ovnicalls.h. Each stream is gone through once when the trace is opened, so that names, and
 * damage, are known before anything is shown. A stream can be read forward only, so what is behind
 * damage is lost.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"

struct calllog;
struct objects;
struct resolver;

#define OVNILOG_STREAMS_MAX (1u << 17) /* more streams of one trace are refused */

/* Return: whether @path is a directory of such a trace: the whole, or that of a loom, a process or
 *         a thread. */
bool ovnilog_is(const char *path);

/*
 * Open the trace @path. Objects are added to @objects; both this and @resolver are borrowed.
 * @offset_ns is added to all times, which cannot become negative.
 *
 * Return: 0; or negative errno and @reterr_message.
 */
_must_check_ int ovnilog_open(const char *path, int64_t offset_ns, struct objects *objects,
			      struct resolver *resolver, struct calllog **ret_log,
			      char **reterr_message);
