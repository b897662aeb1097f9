/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Estimate
 *
 * How much room a snapshot will need, before it is written.
 */

#include "daemon/spool/diskuse.h"

struct snapshot_known;
struct snapshot_request;

/* Return: the disk space that the snapshot will need, as a rule at most: a scope may leave out most
 * of it. What the snapshot only links to is not counted. */
struct diskuse_amount estimate_snapshot(const struct snapshot_request *request,
					const struct snapshot_known *known);
