/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Writer
 *
 * What a program of ours can do with a writer (ptd/sink.h) that others cannot.
 */

#include "ptd/sink.h"
#include "util/expander.h"

/*
 * Return: what expands runs for the writer early; NULL if its sinks need more than runs, or there
 *         is one thread. Whoever uses it must have stopped that before the writer is freed.
 */
const struct expander *writer_expander(const struct ptd_writer *writer);
