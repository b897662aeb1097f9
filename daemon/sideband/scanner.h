/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Scanner
 *
 * Has the source look at all tasks when the sideband wants that for a new epoch. It looks for some
 * milliseconds at a time, so that the event loop goes on. Between two scans it waits, so that they
 * take at most a twentieth of one CPU however often records are lost. All of it happens in the
 * event loop.
 */

#include "base/base.h"
#include "util/perf/codec.h"

struct scanner;
struct sideband;
struct source;
typedef struct sd_event sd_event;

struct scanner_options {
	sd_event *event; /* borrowed, as are the next two */
	struct source *source;
	struct sideband *sideband;
	/* Is given each record before the sideband, and may change it. */
	int (*put)(void *userdata, void *bytes, size_t size);
	void *userdata; /* of put(), borrowed */
};

/* Return: 0, or negative errno. */
_must_check_ int scanner_new(const struct scanner_options *options, struct scanner **ret_scanner);
struct scanner *scanner_free(struct scanner *scanner);

DEFINE_CLEANUP(struct scanner *, scanner_free);

/* After records were added to the sideband: begin a scan if it wants one. */
void scanner_check(struct scanner *scanner);
