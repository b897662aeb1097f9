/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/machine.h"

#include <string.h>

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
