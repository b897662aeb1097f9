/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Own part
 *
 * What of the records of hardware a user may see, in his own snapshot: only those of lives of
 * processes that are his (daemon/tasks/owned.h), and of the switch records only that he ran, that
 * nobody did, or that somebody else did: a process that does not exist, OWNPART_OTHERS. A decoder
 * takes what he may not see for code of that process, of which it knows nothing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "util/map.h"

#define OWNPART_OTHERS ((uint32_t)INT32_MAX) /* more than a process's number can be */

struct owned_life;
struct ownpart;
struct record;

/* @lives, in any order, are copied. Return: 0, or -ENOMEM. */
_must_check_ int ownpart_new(const struct owned_life *lives, size_t n, struct ownpart **ret_part);
struct ownpart *ownpart_free(struct ownpart *part);

DEFINE_CLEANUP(struct ownpart *, ownpart_free);

/*
 * Find out who ran on a CPU.
 *
 * @switches: its switch records, whole ones, oldest first
 * @ran: pids of the user's that ran are added
 * @left_out: pids of his that ran when it was not known to be him
 *
 * Return: 0, or -ENOMEM.
 */
_must_check_ int ownpart_find(const struct ownpart *part, struct cursor switches, struct map *ran,
			      struct map *left_out);

/* Gets whole records. */
typedef void (*ownpart_put_fn)(void *userdata, const void *bytes, size_t size);

/* Give @put switch records of CPU @cpu in the place of @switches. Before the first of them it is
 * not said who ran. */
void ownpart_write_switches(const struct ownpart *part, uint32_t cpu, struct cursor switches,
			    ownpart_put_fn put, void *userdata);

/*
 * Make a task record that the user may see of @record, which is the kernel's.
 *
 * @ret_bytes: RECORD_OWN_MAX bytes
 *
 * Return: its size; 0: he may not.
 */
size_t ownpart_show(const struct ownpart *part, const struct record *record, uint8_t *ret_bytes);
