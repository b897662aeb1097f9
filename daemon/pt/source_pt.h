/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Source pt
 *
 * The hardware as a source: the intel_pt PMU on every online CPU, opened by perf_event_open(2).
 * What it does and what it cannot do goes to the log.
 *
 * Two threads use it. A snapshot's thread holds the rings between hold() and release(). Meanwhile
 * the event loop neither opens nor closes any.
 */

#include <stdbool.h>

#include "base/base.h"
#include "daemon/source/source.h"

struct config;
struct keeperlink;

#define SOURCE_PT_DEVICE "/sys/bus/event_source/devices/intel_pt"

/* Return: whether this machine has the device. */
bool source_pt_exists(void);

/*
 * Open all CPUs; or go on with the rings that @link, which may be NULL, has from an earlier
 * process, if they are what the settings ask for. The keeper gets the rings.
 *
 * @runtime_dir: where the collector's socket is; borrowed as long as the source lives
 *
 * Return: 0 if at least one CPU is recorded or busy; or negative errno, and the log says why.
 */
_must_check_ int source_pt_new(const struct config *config, struct keeperlink *link,
			       const char *runtime_dir, struct source **ret_source);
