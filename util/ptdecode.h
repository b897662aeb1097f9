/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ptdecode
 *
 * What programs that execute ptdecode, or have it executed, know of its command line: see
 * ptdecode(1).
 */

/* Exit statuses. */
enum {
	PTDECODE_OK = 0,
	PTDECODE_FAILED = 1,
	PTDECODE_USAGE = 2,
	PTDECODE_GAPS = 3,  /* decoded, but the input was damaged or code was missing */
	PTDECODE_EMPTY = 4, /* decoded, but nothing of what was asked for is in the recording */
};
