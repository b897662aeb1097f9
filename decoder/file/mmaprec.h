/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Mmap record
 *
 * MMAP and MMAP2, taken apart: what was mapped where, by whom.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/trace/trace.h"
#include "util/buildid.h"

struct mmaprec {
	uint32_t pid;
	uint32_t tid;
	uint64_t start;
	uint64_t size;
	uint64_t offset;         /* in the file */
	const char *path;        /* in the record's bytes */
	struct buildid build_id; /* size 0: the record has none */
	uint32_t prot;           /* as of mmap(2), like flags; of an MMAP unknown, and 0 */
	uint32_t flags;
	uint32_t major, minor; /* of the file; 0 if the record has a build-id or is an MMAP */
	uint64_t inode, inode_generation;
	bool executable;
	bool kernel; /* of the kernel's own address space, or of a guest */
};

/* Return: 0; -EBADMSG if the record is too short or its path does not end. */
_must_check_ int mmaprec_read(const struct trace_record *record, struct mmaprec *ret_map);
