/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/memtrace/operands.h"

#include <string.h>

#include "base/base.h"
#include "util/map.h"

bool memtrace_operands_find(struct memtrace_operands *operands, const uint8_t *bytes, size_t size,
			    struct operand *ret_operand)
{
	__typeof__(operands->lately[0]) *lately;

	if (size > MEMTRACE_INSN_BYTES)
		return false;
	lately = &operands->lately[map_hash(bytes, size) % ARRAY_LEN(operands->lately)];
	if (lately->size != size || memcmp(lately->bytes, bytes, size) != 0) {
		lately->size = (uint8_t)size;
		memcpy(lately->bytes, bytes, size);
		lately->has_operand = operand_rip(bytes, size, &lately->operand);
	}
	if (lately->has_operand)
		*ret_operand = lately->operand;
	return lately->has_operand;
}
