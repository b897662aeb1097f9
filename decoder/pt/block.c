/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The engine over libipt's block decoder. */

#include "decoder/pt/engine.h"

#include <intel-pt.h>

#include "decoder/pt/ipt.h"

IPT_CALLS(blk)

static int step(struct ipt_engine *engine, struct ipt_output *output)
{
	struct pt_block b;
	int status, r = 0;
	uint8_t mode;

	b.ninsn = 0; /* libipt may leave it as it is */
	status = pt_blk_next(engine->decoder, &b, sizeof(b));
	mode = ipt_mode_bits(b.mode);
	engine->ip = b.ip;

	/* On an error too, what was decoded before it was executed. */
	if (b.ninsn) {
		r = ipt_emit(engine, output, b.ip, b.ninsn - (b.truncated ? 1u : 0u), mode);
		if (r == 0 && b.truncated)
			r = ipt_emit_stitched(engine, output, b.end_ip, mode, b.raw, b.size);
	}
	return r < 0 ? r : status;
}

static const struct ipt_ops ops = { IPT_CALLS_OPS, .step = step };

static int start(const struct engine_config *config, struct engine **ret_engine)
{
	struct pt_conf_flags flags = {};

	flags.variant.block.enable_tick_events = 1;
	/* Of 2.0.5 the work-around of erratum SKL014 takes the first direct branch that ends a
	 * block for the one that leaves the filter's range. So none does then. */
	flags.variant.block.end_on_call = !ipt_has_skl014(config);
	flags.variant.block.end_on_jump = !ipt_has_skl014(config);
	return ipt_engine_new(&engine_block, &ops, &flags, config, ret_engine);
}

const struct engine_ops engine_block = {
	.name = "block",
	.start = start,
	.free = ipt_engine_free,
	.set_space = ipt_engine_set_space,
	.next = ipt_engine_next,
	.decoded = ipt_engine_decoded,
	.offset = ipt_engine_offset,
	.pause_at = ipt_engine_pause_at,
};
