/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Source pt
 *
 * Hardware: the intel_pt PMU on every online CPU, through perf_event_open(2). It says what it does
 * and what it cannot do in the log.
 *
 * Two threads use it. A snapshot's holds the rings from freeze() to thaw(); meanwhile the event
 * loop does not open or close any.
 */

#include <stdbool.h>

#include "base/base.h"
#include "daemon/source/source.h"

struct config;

#define SOURCE_PT_DEVICE "/sys/bus/event_source/devices/intel_pt"

/* Return: whether this machine has the device. */
bool source_pt_exists(void);

/*
 * Open all CPUs.
 *
 * Return: 0, though not all of them may be recording; or negative errno, and why has been logged.
 */
_must_check_ int source_pt_new(const struct config *config, struct source **ret_source);
