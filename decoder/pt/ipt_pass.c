/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Where that begins which packets behind an offset tell: libipt reads packets ahead. */

#include "decoder/pt/ipt.h"

#define EXT      0x02
#define EXT_TNT  0xa3
#define NOT_TNT  0x01
#define TIP_MASK 0x1f
#define TIP      0x0d

/* Return: whether a packet at @offset tells of branches: a TNT or a TIP. */
static bool is_branch(const struct ipt_engine *e, uint64_t offset)
{
	const uint8_t *p;

	/* UINT64_MAX is none: not even the address of what is there may be computed. */
	if (offset >= e->config.pt.size)
		return false;
	p = ipt_bytes(&e->config) + offset;
	if (p[0] == 0)
		return false;
	if (p[0] == EXT)
		return e->config.pt.size - offset > 1 && p[1] == EXT_TNT;
	return !(p[0] & NOT_TNT) || (p[0] & TIP_MASK) == TIP;
}

/* Let the last instruction be a run of its own. Return: the index of that. */
static size_t cut_last(struct ipt_output *output)
{
	struct ptd_run *last = &output->runs[output->n - 1];

	if (last->n == 1 || output->n == output->n_max)
		return output->n - 1;
	last->n--;
	last[1] = *last;
	last[1].first = (uint16_t)(last->first + last->n);
	last[1].n = 1;
	return output->n++;
}

void ipt_pass(struct ipt_engine *engine, size_t n_before, struct engine_step *ret_step)
{
	engine->passed = false;
	engine->pause = UINT64_MAX;
	ret_step->stop = ENGINE_ASK;
	ret_step->t = engine->t;
	ret_step->passed = true;
	ret_step->n_before = n_before;
}

bool ipt_pass_branch(struct ipt_engine *engine, struct ipt_output *output, uint64_t offset,
		     struct engine_step *ret_step)
{
	/* If it is not used up, a branch was that an earlier one told; what follows it may be an
	 * event. */
	if (offset < engine->pause || !is_branch(engine, offset) || ipt_offset(engine) == offset)
		return false;
	ipt_pass(engine, cut_last(output), ret_step);
	return true;
}
