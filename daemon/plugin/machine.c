/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/machine.h"

#include <string.h>

/* Selectors of Linux's code segments. */
#define KERNEL_CS 0x10
#define USER32_CS 0x23
#define USER_CS   0x33

uint64_t machine_register(unsigned vcpu, enum qemu_x86_register which)
{
	static __thread struct byte_array *bytes __attribute__((__tls_model__("initial-exec")));
	struct CPUState *cpu = qemu_get_cpu((int)vcpu);
	uint64_t value = 0;
	int size;

	if (!bytes)
		bytes = g_byte_array_new();
	if (!cpu || !bytes)
		return 0;
	g_byte_array_set_size(bytes, 0);
	size = x86_cpu_gdb_read_register(cpu, bytes, which);
	if (size == 8 || size == 4)
		memcpy(&value, bytes->data, (size_t)size);
	return value;
}

static bool is_code_segment(uint64_t selector)
{
	return selector == KERNEL_CS || selector == USER32_CS || selector == USER_CS;
}

bool machine_interrupted_at(unsigned vcpu, uint64_t *ret_ip)
{
	uint64_t words[3]; /* for some exceptions an error code, then RIP, then CS */

	if (cpu_memory_rw_debug(qemu_get_cpu((int)vcpu), machine_register(vcpu, QEMU_X86_RSP),
				words, sizeof(words), false) != 0)
		return false;
	for (int i = 0; i < 2; i++) {
		if (is_code_segment(words[i + 1])) {
			*ret_ip = words[i];
			return true;
		}
	}
	return false;
}
