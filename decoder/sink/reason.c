/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "base/base.h"
#include "ptd/record.h"

const char *ptd_gap_reason_name(enum ptd_gap_reason reason)
{
	static const char *const names[_PTD_GAP_REASONS] = {
		[PTD_GAP_OVERFLOW] = "overflow",
		[PTD_GAP_NO_CODE] = "code not mapped",
		[PTD_GAP_NO_OBJECT] = "object not found",
		[PTD_GAP_WRONG_OBJECT] = "object has another build-id",
		[PTD_GAP_THREAD_UNKNOWN] = "thread unknown",
		[PTD_GAP_BEFORE_SIDEBAND] = "before the sideband",
		[PTD_GAP_BAD_PACKET] = "bad packet",
		[PTD_GAP_BAD_FLOW] = "packets contradict the code",
		[PTD_GAP_NO_PROGRESS] = "no progress",
		[PTD_GAP_NO_SYNC] = "before the first PSB",
		[PTD_GAP_EMPTY] = "no PSB at all",
		[PTD_GAP_LOST] = "lost by the recorder",
		[PTD_GAP_CUT] = "cut off inside a packet",
	};

	return (size_t)reason < ARRAY_LEN(names) ? names[reason] : "unknown";
}
