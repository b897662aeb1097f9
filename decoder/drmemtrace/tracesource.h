/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Trace source
 *
 * A drmemtrace directory, ptd's or DynamoRIO's, as a source of batches
 * (decoder/util/batchsource.h): its files are merged by the times that they state.
 *
 * Only files whose time has come are open, and each is read as a stream, so memory depends on how
 * many threads run at the same time and on how much code they execute, not on the length of the
 * trace.
 */

#include "base/base.h"

struct batchsource;
struct objects;
struct resolver;

/*
 * Open the directory @dir, whose objects are added to @objects; both this and @resolver are
 * borrowed.
 *
 * Return: 0; or negative errno and @reterr_message.
 */
_must_check_ int tracesource_new(const char *dir, struct objects *objects,
				 struct resolver *resolver, struct batchsource **ret_source,
				 char **reterr_message);
