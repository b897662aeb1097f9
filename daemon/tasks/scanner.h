/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Scanner
 *
 * Has a source look at all tasks when an epoch of the sideband wants them: a little at a time, so
 * that the event loop goes on, and not again at once however often records are lost.
 */

#include "base/base.h"
#include "record/codec.h"

struct scanner;
struct sideband;
struct source;
typedef struct sd_event sd_event;

struct scanner_options {
	sd_event *event; /* borrowed, as are the next two */
	struct source *source;
	struct sideband *sideband;
	record_put_fn put; /* is given each record after the sideband */
	void *userdata;    /* of put(), borrowed */
};

/* Return: 0, or negative errno. */
_must_check_ int scanner_new(const struct scanner_options *options, struct scanner **ret_scanner);
struct scanner *scanner_free(struct scanner *scanner);

DEFINE_CLEANUP(struct scanner *, scanner_free);

/* Begin if the sideband wants it; to be called when records have been added to it. */
void scanner_check(struct scanner *scanner);
