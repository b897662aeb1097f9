/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Tracing data
 *
 * The feature TRACING_DATA of a snapshot's perf.data file: where the raw data of its samples of
 * tracepoints (util/perf/codec.h) have their fields, in the words in which the kernel describes its
 * own in tracefs. perf reads no sample of a tracepoint without it.
 *
 * Source: the kernel's tools/perf/util/trace-event-info.c, which writes it, and
 * trace-event-read.c.
 */

#include <stddef.h>
#include <stdint.h>

#define TRACINGDATA_MAX 4096

/* Write it. Return: its size. */
size_t tracingdata_write(uint8_t ret_bytes[static TRACINGDATA_MAX]);
