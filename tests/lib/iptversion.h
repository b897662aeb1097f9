/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Ipt version
 *
 * libipt 2.1 reads the next packet ahead, and gives its events at other offsets than 2.0: where an
 * error begins, and which time is known there, engine insn says otherwise then. So with another
 * libipt than 2.0 that engine is judged by the instructions that it lists.
 */

#include <intel-pt.h>
#include <stdbool.h>

static inline bool ipt_reads_ahead(void)
{
	const struct pt_version version = pt_library_version();

	return version.major > 2 || (version.major == 2 && version.minor > 0);
}
