/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The engine over libipt's instruction decoder. */

#include "decoder/pt/engine.h"

#include <intel-pt.h>

#include "decoder/pt/ipt.h"

IPT_CALLS(insn)

static int step(struct ipt_engine *engine, struct ipt_output *output)
{
	struct pt_insn insn = { .iclass = ptic_error }; /* libipt may leave it as it is */
	int status, r = 0;
	uint8_t mode;

	status = pt_insn_next(engine->decoder, &insn, sizeof(insn));
	mode = ipt_mode_bits(insn.mode);
	engine->ip = insn.ip;

	/* On an error the instruction is given too, if it was executed: then it has a class. */
	if (insn.iclass != ptic_error) {
		if (insn.truncated)
			r = ipt_emit_stitched(engine, output, insn.ip, mode, insn.raw, insn.size);
		else
			r = ipt_emit(engine, output, insn.ip, 1, mode);
	}
	return r < 0 ? r : status;
}

static const struct ipt_ops ops = { IPT_CALLS_OPS, .step = step };

static int start(const struct engine_config *config, struct engine **ret_engine)
{
	struct pt_conf_flags flags = {};

	flags.variant.insn.enable_tick_events = 1;
	return ipt_engine_new(&engine_insn, &ops, &flags, config, ret_engine);
}

const struct engine_ops engine_insn = {
	.name = "insn",
	.start = start,
	.free = ipt_engine_free,
	.set_space = ipt_engine_set_space,
	.next = ipt_engine_next,
	.decoded = ipt_engine_decoded,
	.offset = ipt_engine_offset,
	.pause_at = ipt_engine_pause_at,
};
