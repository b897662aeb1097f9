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
		[PTD_GAP_TRUNCATED] = "AUX buffer full",
		[PTD_GAP_PARTIAL] = "AUX data with gaps",
		[PTD_GAP_COLLISION] = "AUX samples collided",
		[PTD_GAP_OVERWRITTEN] = "older data overwritten",
		[PTD_GAP_LOST_RECORDS] = "records lost",
		[PTD_GAP_LOST_SAMPLES] = "samples lost",
		[PTD_GAP_RECORDS_DROPPED] = "records dropped",
		[PTD_GAP_UNKNOWN_INSN] = "instruction unknown",
		[PTD_GAP_STEPPED] = "stepped for a uprobe",
	};

	return (size_t)reason < ARRAY_LEN(names) ? names[reason] : "unknown";
}

const char *ptd_mark_kind_name(enum ptd_mark_kind kind)
{
	static const char *const names[_PTD_MARK_KINDS] = {
		[PTD_MARK_GAP] = "gap",
		[PTD_MARK_ASYNC] = "async",
		[PTD_MARK_OFF] = "off",
		[PTD_MARK_STOP] = "stop",
		[PTD_MARK_OUT_OF_SCOPE] = "out of scope",
		[PTD_MARK_TSX] = "tsx",
		[PTD_MARK_CBR] = "cbr",
		[PTD_MARK_PTWRITE] = "ptwrite",
		[PTD_MARK_PAGING] = "paging",
		[PTD_MARK_VMCS] = "vmcs",
		[PTD_MARK_MWAIT] = "mwait",
		[PTD_MARK_PWRE] = "pwre",
		[PTD_MARK_PWRX] = "pwrx",
		[PTD_MARK_EXSTOP] = "exstop",
		[PTD_MARK_CFE] = "cfe",
		[PTD_MARK_EVD] = "evd",
		[PTD_MARK_PEBS] = "pebs",
		[PTD_MARK_TRIG] = "trig",
		[PTD_MARK_BEGIN] = "begin",
		[PTD_MARK_END] = "end",
		[PTD_MARK_POINT] = "point",
		[PTD_MARK_PROBE] = "probe",
	};

	return (size_t)kind < ARRAY_LEN(names) ? names[kind] : "unknown";
}
