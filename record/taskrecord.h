/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Task record
 *
 * COMM and MMAP2 records that the daemon makes itself, as the kernel would have: for what began
 * before anybody listened. And LOST records: for what it could not listen to.
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "util/perfabi.h"

struct record_mmap2;

#define TASKRECORD_COMM_SIZE 16 /* of a thread's name, with its end */

/* Says that @lost records are missing. */
struct taskrecord_lost {
	struct perf_event_header header;
	uint64_t id, lost;
	struct perfabi_trailer trailer;
};

struct taskrecord_lost taskrecord_lost(uint64_t lost, uint64_t time);

/* Takes one whole record. Return: 0, or negative errno. */
typedef int (*taskrecord_put_fn)(void *userdata, const void *bytes, size_t size);

/* Say that thread @tid of process @pid has been called @comm since @time. Return: what @put
 * does. */
_must_check_ int taskrecord_comm(uint32_t pid, uint32_t tid, const char *comm, uint64_t time,
				 taskrecord_put_fn put, void *userdata);

/* Say that @mmap has been mapped since @time; a name too long for the kernel is "//toolong", as it
 * has it. Return: what @put does. */
_must_check_ int taskrecord_mmap2(const struct record_mmap2 *mmap, uint64_t time,
				  taskrecord_put_fn put, void *userdata);
