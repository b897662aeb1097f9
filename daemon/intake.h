/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Intake
 *
 * Takes the task records from the source, as soon as they come, and gives them to all who remember
 * something of what they tell: the sideband, the keep, and the list of JITs' files; and the code
 * that programs hand over, for the code store. If the source can tell of tasks that were there
 * before, it is asked to (daemon/tasks/scanner.h).
 */

#include <stdint.h>

#include "base/base.h"

struct codestore;
struct intake;
struct jitfiles;
struct keep;
struct sideband;
struct source;
typedef struct sd_event sd_event;

struct intake_options {
	sd_event *event; /* borrowed, as are the next two */
	struct source *source;
	struct keep *keep;
	uint64_t sideband_max; /* bytes */
	uint64_t code_max;     /* bytes of code that was handed over */

	/* Called now and then, while there may be records. */
	void (*drained)(void *userdata);
	void *userdata; /* of drained(), borrowed */
};

/* Return: 0, or negative errno. */
_must_check_ int intake_new(const struct intake_options *options, struct intake **ret_intake);

/* Frees it; before the source and the keep. Return: NULL. */
struct intake *intake_free(struct intake *intake);

DEFINE_CLEANUP(struct intake *, intake_free);

/*
 * Programs may begin to write to the source from now on. For a source with a descriptor this is not
 * needed: it says itself when there are records.
 *
 * Return: 0, or negative errno.
 */
_must_check_ int intake_expect(struct intake *intake);

/* Take the records that there are by now. Who cannot take them all loses some, which is logged. */
void intake_drain(struct intake *intake);

/* Have the keep forget the objects that none of the sideband's records names any more, if an epoch
 * has ended since the last time; not while a snapshot is being written. */
void intake_forget(struct intake *intake);

/*
 * Have the keep forget programs that have ended, and remove their copies that no snapshot has,
 * until @bytes are free; none if they are not @least. Not while another thread links to copies.
 * What goes is logged.
 *
 * Return: how many bytes became free.
 */
uint64_t intake_shed(struct intake *intake, uint64_t bytes, uint64_t least);

/* What remembers the records; both are the intake's. */
struct sideband *intake_sideband(const struct intake *intake);
const struct jitfiles *intake_jitfiles(const struct intake *intake);

/* Return: the code that ran, which is the intake's; NULL if the source does not hand it over. */
struct codestore *intake_code(const struct intake *intake);
