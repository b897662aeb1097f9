/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Intake
 *
 * Takes the task records from the source as soon as they come, and gives them to the modules that
 * remember something of them: the sideband, the object store and the list of JIT compilers' files.
 * Takes also the code that programs hand over, for the code store. If the source has to look at the
 * tasks to know which live, the intake has it do so (daemon/sideband/scanner.h). All of it happens
 * in the event loop.
 */

#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"

struct codestore;
struct intake;
struct jitfiles;
struct objectstore;
struct sideband;
struct source;
typedef struct sd_event sd_event;

struct intake_options {
	sd_event *event; /* borrowed, as are the next two */
	struct source *source;
	struct objectstore *store;
	const char *runtime_dir; /* where the collector's socket is; borrowed for the call */
	uint64_t sideband_max;   /* bytes */
	uint64_t code_max;       /* bytes of code that was handed over */

	/* Called from time to time while there may be records. */
	void (*drained)(void *userdata);
	void *userdata; /* of drained(), borrowed */
};

/* Return: 0, or negative errno. */
_must_check_ int intake_new(const struct intake_options *options, struct intake **ret_intake);

/* Free it, before the source and the object store are freed. Return: NULL. */
struct intake *intake_free(struct intake *intake);

DEFINE_CLEANUP(struct intake *, intake_free);

/*
 * A program may begin to write to the source from now on: take the records that others have left,
 * and drain records for a while even if the source is not active yet, as long as it takes a program
 * to start.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int intake_expect(struct intake *intake);

/* Take the records that have come by now. Records that could not be taken are lost, which is
 * logged. */
void intake_drain(struct intake *intake);

/* If an epoch has ended since the last call, have the object store forget the objects that no
 * record of the sideband names any more. Not to be called while a snapshot is being written. */
void intake_forget(struct intake *intake);

/* Take copies back from users who have more than their share, if others need the room, and log
 * that. Not to be called while a snapshot is being written. */
void intake_share_out(struct intake *intake);

/*
 * Remove copies to which no snapshot links, of programs that have ended, until @bytes are free. If
 * less than @least would become free, nothing is removed. What is removed is logged. No other
 * thread may link to copies meanwhile.
 *
 * Return: how many bytes became free.
 */
uint64_t intake_evict(struct intake *intake, uint64_t bytes, uint64_t least);

/* Return: what remembers the records, which is the intake's. */
struct sideband *intake_sideband(const struct intake *intake);
struct jitfiles *intake_jitfiles(const struct intake *intake);

/* Return: the code that programs handed over, which belongs to the intake; NULL if the source has
 *         none. */
struct codestore *intake_code(const struct intake *intake);
