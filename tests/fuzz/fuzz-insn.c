/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Bytes as code: every place decoded and disassembled in each mode; nobody reads beyond the end. */

#include <string.h>

#include "decoder/x86/insn.h"
#include "decoder/x86/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(uint8_t mode, const uint8_t *bytes, size_t size)
{
	struct insn insn;
	char text[TEXT_MAX];

	if (insn_decode(mode, bytes, size, &insn) < 0)
		return;
	if (insn.size < 1 || insn.size > 15 || insn.size > size || insn.class > PTD_INSN_PTWRITE)
		abort();
	/* One byte less is not enough, and what follows does not matter. */
	if (insn_decode(mode, bytes, insn.size - 1u, &insn) == 0)
		abort();
	if (text_format(mode, 0x1000, bytes, insn.size, text) >= TEXT_MAX)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint8_t modes[] = { 64, 32, 16 };

	for (size_t at = 0; at < size; at++) {
		/* A copy of just the bytes there are, so that a sanitizer sees a read beyond them.
		 */
		const size_t n = size - at < 16 ? size - at : 16;
		uint8_t *bytes = malloc(n);

		if (!bytes)
			abort();
		memcpy(bytes, data + at, n);
		for (size_t i = 0; i < ARRAY_LEN(modes); i++)
			check(modes[i], bytes, n);
		free(bytes);
	}
	return 0;
}
