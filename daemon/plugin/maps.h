/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Maps
 *
 * Executable memory of the recorded process, and the MMAP2 records for it. Mappings are read from
 * /proc/self/maps; but QEMU removes the permission to execute, so that comes from the program's own
 * system calls. All functions may be called from any thread.
 */

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/plugin/handover.h"
#include "daemon/plugin/poolrecord.h"
#include "daemon/plugin/target.h"
#include "util/buildid.h"
#include "util/condition.h"
#include "util/vec.h"

/*
 * The functions whose entry a condition (util/condition.h) waits for, and the addresses at which
 * the program has mapped them. The caller does the locking.
 */

/* More places are not watched. */
#define WATCH_PLACES_MAX 1024

struct watch_place {
	uint64_t address;
	uint32_t condition; /* index */
};

struct watch {
	const struct condition *conditions; /* borrowed */
	size_t n_conditions;
	VEC(struct watch_place) places;
};

/* What the program has mapped executable. */
struct watch_mapping {
	const char *path;    /* NULL: no file */
	uint64_t start, end; /* addresses */
	uint64_t offset;     /* in the file, of @start */
};

/* Note where the functions lie that are in @mapping. What was at these addresses is forgotten. */
void watch_map(struct watch *watch, const struct watch_mapping *mapping);

/* Return: the index of the condition that waits for the entry at @address, plus 1; 0: none does. */
uint32_t watch_at(const struct watch *watch, uint64_t address);

struct maps_range {
	uint64_t start;
	uint64_t end;
	enum handover_place place; /* HANDOVER_FILE even if part of it was written to */
};

/* By address; no two touch each other. */
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
	struct maps_ranges writable; /* that could be written to at some time */
	bool forgot_writable;        /* @writable is incomplete for want of memory */
	struct watch watch;          /* functions for whose entry a condition waits */
	VEC(struct maps_file) files; /* whose build-ids were read */
};

void maps_init(struct maps *maps, const struct attach *attach, const struct target *target);

/* Around a fork: take the lock before it; release it in the parent; and in the child. */
void maps_fork_prepare(struct maps *maps);
void maps_fork_parent(struct maps *maps);
void maps_fork_child(struct maps *maps);

/*
 * The memory at [@start, @start + @size) became executable, with protection @prot. Write a record
 * for each mapping in it.
 *
 * Return: how many records were written.
 */
size_t maps_add(struct maps *maps, struct poolrecord_who who, uint64_t start, uint64_t size,
		uint32_t prot);

/*
 * Return: a number that changes when records were written. A thread that sees another number than
 *         before may run what was mapped, and needs a time packet after the time of the records, as
 *         a CPU has that is interrupted by the CPU that changes the mappings.
 */
static inline uint32_t maps_version(const struct maps *maps)
{
	return atomic_load_explicit(&maps->n_adds, memory_order_acquire);
}

/* The memory is not executable any more. There are no records for that. */
void maps_remove(struct maps *maps, uint64_t start, uint64_t size);

/* Return: whether [@start, @start + @size), or part of it, is known to be executable. */
bool maps_has(struct maps *maps, uint64_t start, uint64_t size);

/* The memory at [@start, @start + @size) can be written to. */
void maps_note_writable(struct maps *maps, uint64_t start, uint64_t size);

/* Return: where the code at [@start, @start + @size) is; see handover.h. */
enum handover_place maps_place(struct maps *maps, uint64_t start, uint64_t size);

/* Return: as watch_at(). */
uint32_t maps_watched(struct maps *maps, uint64_t ip);

/* Add the executable segments of the ELF file that is mapped at @address. */
void maps_add_image(struct maps *maps, struct poolrecord_who who, uint64_t address);
