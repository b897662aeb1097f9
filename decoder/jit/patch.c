/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/patch.h"

#include <string.h>

#include "decoder/x86/insn.h"

#define INSN_MAX 15 /* a patch ends before this number of equal bytes */

void patches_deinit(struct patches *patches)
{
	vec_deinit(&patches->list);
}

static bool is_direct(const struct insn *insn)
{
	return insn->class == PTD_INSN_JUMP || insn->class == PTD_INSN_JUMP_COND ||
	       insn->class == PTD_INSN_CALL;
}

/* Return: whether @insn at @noted is, at @now, the same branch to somewhere else. */
static bool is_link(const uint8_t *noted, const struct insn *insn, const uint8_t *now, size_t left,
		    struct insn *ret_now)
{
	const size_t opcode_size = insn->size > 4 ? insn->size - 4u : insn->size - 1u;

	return is_direct(insn) && memcmp(noted, now, opcode_size) == 0 &&
	       insn_decode(64, now, left, ret_now) == 0 && ret_now->size == insn->size;
}

/* Return: the offset at which the bytes are equal again after the difference at @from. */
static size_t end_of_difference(const uint8_t *noted, const uint8_t *now, size_t size, size_t from)
{
	size_t end = from + 1;

	for (size_t i = end; i < size && i - end < INSN_MAX; i++)
		if (noted[i] != now[i])
			end = i + 1;
	return end;
}

/*
 * Compilers keep data between functions. Data decode to instructions of wrong lengths, but soon
 * after them the lengths are right again.
 */
int patches_find(const uint8_t *noted, const uint8_t *now, size_t size, uint64_t address,
		 struct patches *ret_patches)
{
	size_t at = 0;

	*ret_patches = (struct patches){};
	if (memcmp(noted, now, size) == 0)
		return 0;
	while (at < size) {
		struct patch patch = { .offset = at };
		struct insn insn, linked;
		int r;

		if (insn_decode(64, noted + at, size - at, &insn) < 0)
			insn = (struct insn){ .size = 1 };
		if (memcmp(noted + at, now + at, insn.size) == 0) {
			at += insn.size;
			continue;
		}

		patch.is_link = is_link(noted + at, &insn, now + at, size - at, &linked);
		if (patch.is_link) {
			patch.size = insn.size;
			patch.target = address + at + insn.size + (uint64_t)linked.disp;
		} else {
			patch.size = end_of_difference(noted, now, size, at + insn.size - 1) - at;
		}
		for (size_t i = at; i < at + patch.size; i++)
			ret_patches->n_bytes += noted[i] != now[i];
		r = vec_push(&ret_patches->list, patch);
		if (r < 0)
			return r;
		at += patch.size;
	}
	return 0;
}
