/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Copied
 *
 * Waits for the copier (daemon/objects/copier.h) on a machine that may be busy.
 */

#include "base/base.h"

struct object;
struct objectstore;

/* Wait until the object was copied or could not be, however long its lane stands still, as it also
 * does without a CPU. Return: as copier_wait(), but never COPIER_STALLED. */
_must_check_ int copied_wait(struct objectstore *store, const struct object *object);
