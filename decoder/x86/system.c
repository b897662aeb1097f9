/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/x86/system.h"

#include "ptd/record.h"

static bool is_rex(uint8_t byte)
{
	return (byte & 0xf0) == 0x40;
}

/* 0f 22 /3. */
bool system_sets_cr3(const uint8_t *bytes, size_t size)
{
	size_t i = 0;

	while (i < size && (is_rex(bytes[i]) || bytes[i] == 0xf0))
		i++;
	return size - i == 3 && bytes[i] == 0x0f && bytes[i + 1] == 0x22 &&
	       (bytes[i + 2] & 0x38) == 0x18;
}

/* 0f c7 /6 with memory, and neither 66 nor f3, which make other instructions of it. */
bool system_sets_vmcs(const uint8_t *bytes, size_t size)
{
	size_t i = 0;

	while (i < size &&
	       (is_rex(bytes[i]) || bytes[i] == 0x67 || bytes[i] == 0x2e || bytes[i] == 0x36 ||
		bytes[i] == 0x3e || bytes[i] == 0x26 || (bytes[i] & 0xfe) == 0x64))
		i++;
	return size - i >= 3 && bytes[i] == 0x0f && bytes[i + 1] == 0xc7 &&
	       (bytes[i + 2] & 0x38) == 0x30 && bytes[i + 2] < 0xc0;
}

/* INTO is ce, which may also be the number of an INT. */
bool system_may_go_on(uint8_t iclass, const uint8_t *bytes, size_t size)
{
	return iclass == PTD_INSN_VM || (iclass == PTD_INSN_INTERRUPT && bytes[size - 1] == 0xce &&
					 (size == 1 || bytes[size - 2] != 0xcd));
}

/* 0f 01 c2 and c3. */
bool system_enters_vm(const uint8_t *bytes, size_t size)
{
	return size >= 3 && bytes[size - 3] == 0x0f && bytes[size - 2] == 0x01 &&
	       (bytes[size - 1] == 0xc2 || bytes[size - 1] == 0xc3);
}
