/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Maps
 *
 * Which executable memory the recorded process has, and the MMAP2 records that say so. What is
 * mapped is read from /proc/self/maps, except for the permission to execute: QEMU takes it away,
 * the program's own calls tell about it. All functions may be called from any thread.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/handover.h"
#include "daemon/emu/poolrecord.h"
#include "daemon/emu/target.h"
#include "util/buildid.h"
#include "util/vec.h"

struct maps_range {
	uint64_t start;
	uint64_t end;
	enum handover_place place; /* HANDOVER_FILE also if some of it was written to */
};

/* Apart from each other, by address. */
struct maps_ranges {
	VEC(struct maps_range) list;
};

struct maps_file {
	uint64_t dev;
	uint64_t ino;
	int64_t mtime_ns;
	struct buildid buildid;
};

struct maps {
	const struct attach *attach; /* borrowed */
	const struct target *target; /* borrowed */
	_Atomic uint32_t n_adds;     /* calls of maps_add() that wrote their records */
	pthread_mutex_t lock;
	struct maps_ranges known;    /* executable */
	struct maps_ranges writable; /* was so at some time */
	bool forgot_writable;        /* there was no memory for all of them */
	VEC(struct maps_file) files; /* whose build-ids were read */
};

void maps_init(struct maps *maps, const struct attach *attach, const struct target *target);
void maps_deinit(struct maps *maps);

/* Around a fork: hold still, go on in the parent, go on in the child. */
void maps_fork_prepare(struct maps *maps);
void maps_fork_parent(struct maps *maps);
void maps_fork_child(struct maps *maps);

/*
 * The memory at [@start, @start + @size) became executable, with protection @prot: write a record
 * for each mapping in it.
 *
 * Return: how many records were written.
 */
size_t maps_add(struct maps *maps, struct poolrecord_who who, uint64_t start, uint64_t size,
		uint32_t prot);

/*
 * Return: a number that changes when records were written. Who sees another one than before may run
 * what they tell of, and its packets need a time behind theirs: a CPU would be interrupted by the
 * one that changes what is mapped.
 */
static inline uint32_t maps_version(const struct maps *maps)
{
	return atomic_load_explicit(&maps->n_adds, memory_order_acquire);
}

/* It is not executable any more; records of that there are none. */
void maps_remove(struct maps *maps, uint64_t start, uint64_t size);

/* Return: whether all or part of [@start, @start + @size) is known to be executable. */
bool maps_has(struct maps *maps, uint64_t start, uint64_t size);

/* The memory at [@start, @start + @size) can be written to. */
void maps_note_writable(struct maps *maps, uint64_t start, uint64_t size);

/* Return: of what the code at [@start, @start + @size) is: see handover.h. */
enum handover_place maps_place(struct maps *maps, uint64_t start, uint64_t size);

/* Add the executable segments of the ELF file that is mapped at @address, as the kernel does it. */
void maps_add_image(struct maps *maps, struct poolrecord_who who, uint64_t address);
