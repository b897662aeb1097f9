/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/judge/judge.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

/* The only page above the middle of the address space where user code can run. */
#define VSYSCALL_PAGE 0xffffffffff600000u
#define PAGE_SIZE     4096

void judge_encoding(struct judge *judge, const struct record *rec)
{
	if (rec->size < 1 || rec->size > 8) {
		judge_fault(judge, "a piece of an encoding has 1 to 8 bytes, not %u", rec->size);
		return;
	}
	if (judge->n_piece_bytes % 8) {
		judge_fault(judge, "every piece of an encoding but the last has 8 bytes");
		judge->n_pieces = judge->n_piece_bytes = 0;
	}
	if (judge->n_piece_bytes + rec->size > INSN_SIZE_MAX) {
		judge_fault(judge, "an encoding has at most 15 bytes, not %u",
			    judge->n_piece_bytes + rec->size);
		judge->n_pieces = judge->n_piece_bytes = 0;
		return;
	}
	memcpy(judge->pieces + judge->n_piece_bytes, &rec->addr, rec->size);
	judge->n_piece_bytes += rec->size;
	judge->n_pieces++;
}

/* The instruction has come that an encoding waits for. */
static int announce_code(struct judge *judge, const struct record *rec, struct code *ret_code)
{
	const unsigned n_bytes = judge->n_piece_bytes;

	codes_decode(&judge->codes, rec->addr, judge->pieces, n_bytes, ret_code);
	if (n_bytes != rec->size)
		judge_fault(judge, "an encoding of %u bytes is given for an instruction of size %u",
			    n_bytes, rec->size);
	if (ret_code->class == CODE_UNKNOWN)
		judge_fault(judge, "the encoding is no instruction");
	else if (ret_code->size != n_bytes)
		judge_fault(judge, "the encoding has %u bytes, but its instruction only %u",
			    n_bytes, ret_code->size);
	judge->n_pieces = judge->n_piece_bytes = 0;
	return codes_put(&judge->codes, *ret_code);
}

static const struct {
	const char *name;
	uint16_t type;
} class_records[CODE_N_CLASSES] = {
	[CODE_PLAIN] = { "an instruction that is no branch", RECORD_INSN },
	[CODE_LOAD_EAX] = { "an instruction that is no branch", RECORD_INSN },
	[CODE_REP] = { "an instruction that is no branch", RECORD_INSN },
	[CODE_SYSCALL] = { "a syscall", RECORD_INSN },
	[CODE_INT80] = { "an int 0x80", RECORD_INSN },
	[CODE_SYSENTER] = { "a sysenter", RECORD_SYSENTER },
	[CODE_JUMP] = { "a direct jump", RECORD_JUMP },
	[CODE_JUMP_COND] = { "a conditional jump", RECORD_TAKEN },
	[CODE_CALL] = { "a direct call", RECORD_CALL },
	[CODE_JUMP_INDIRECT] = { "an indirect jump", RECORD_JUMP_INDIRECT },
	[CODE_CALL_INDIRECT] = { "an indirect call", RECORD_CALL_INDIRECT },
	[CODE_RETURN] = { "a return", RECORD_RETURN },
};

static void check_type(struct judge *judge, const struct record *rec, const struct code *code)
{
	const uint16_t type = class_records[code->class].type;

	if (rec->type == RECORD_JUMP_COND)
		judge_fault(
		    judge, "type 13 is the old form of conditional jumps; version 7 has 48 and 49");
	else if (type != 0 && rec->type != type &&
		 !(type == RECORD_TAKEN && rec->type == RECORD_UNTAKEN))
		judge_fault(judge, "%s at %#" PRIx64 " has type %u%s, not %u",
			    class_records[code->class].name, rec->addr, type,
			    type == RECORD_TAKEN ? " or 49" : "", rec->type);
}

static void check_target(struct judge *judge, const struct record *rec, const struct code *code)
{
	if (code->class == CODE_UNKNOWN)
		return;
	if (!code_is_indirect(code)) {
		if (judge->has_target)
			judge_fault(
			    judge,
			    "a marker 29 stands before an instruction that is no indirect branch");
	} else if (!judge->has_target) {
		judge_fault(judge, "the indirect branch at %#" PRIx64 " has no marker 29",
			    rec->addr);
	} else if (judge->target == 0) {
		judge_fault(judge,
			    "marker 29 is 0: an indirect branch's target is what really followed");
	}
}

static bool is_user_pc(uint64_t pc)
{
	return (pc != 0 && pc >> 63 == 0) || pc - VSYSCALL_PAGE < PAGE_SIZE;
}

/* Checks of what is rare, kept out of the way of the rest. */
static void check_insn(struct judge *judge, const struct record *rec, const struct code *code)
{
	if (rec->size < 1 || rec->size > INSN_SIZE_MAX)
		judge_fault(judge, "an instruction has 1 to 15 bytes, not %u", rec->size);
	if (!is_user_pc(rec->addr) && (rec->addr == 0 || !judge_in_kernel(judge)))
		judge_fault(judge, "%#" PRIx64 " is no address of user code", rec->addr);
	else if (is_user_pc(rec->addr) && judge_in_kernel(judge))
		judge_fault(judge,
			    "%#" PRIx64 " is no address of the kernel's code, whose part is "
			    "not over",
			    rec->addr);
	if (!judge->is_timed)
		judge_fault(judge, "the first timestamp and cpu come before the first instruction");
	judge->is_timed = true;
	check_type(judge, rec, code);
	check_target(judge, rec, code);
}

int judge_insn(struct judge *judge, const struct record *rec)
{
	struct code announced;
	const struct code *code;
	int r;

	if (judge->n_pieces) {
		r = announce_code(judge, rec, &announced);
		if (r < 0)
			return r;
		code = &announced;
	} else {
		code = codes_get(&judge->codes, rec->addr);
		if (!code) {
			judge_fault(judge,
				    "the first instruction at %#" PRIx64
				    " in this %s has no encoding",
				    rec->addr, judge->is_zip ? "component" : "file");
			announced = (struct code){ .pc = rec->addr,
						   .size = (uint8_t)rec->size,
						   .class = CODE_UNKNOWN };
			code = &announced;
		} else if (code->size != rec->size) {
			judge_fault(judge,
				    "the instruction at %#" PRIx64
				    " has size %u, but its last encoding "
				    "%u bytes",
				    rec->addr, rec->size, code->size);
		}
	}
	if (rec->type != RECORD_INSN || class_records[code->class].type != RECORD_INSN ||
	    rec->size - 1u >= INSN_SIZE_MAX || rec->addr - 1 >= INT64_MAX || judge->has_target ||
	    !judge->is_timed || judge_in_kernel(judge))
		check_insn(judge, rec, code);

	if (!judge_flow_insn(&judge->flow, code, rec->type, judge->has_target ? judge->target : 0))
		judge_fault(judge, "%s", judge->flow.why);
	judge_kernel_insn(judge, code);
	judge->has_target = false;
	judge->last_marker = -1;
	judge->after_insn = true;
	judge->file->n_insns++;
	if (judge->trace->addresses && fwrite(&rec->addr, 8, 1, judge->trace->addresses) != 1)
		return -EIO;
	return 0;
}
