/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/kernellack.h"

#include <stddef.h>

const char *kernellack_text(enum kernellack lack)
{
	switch (lack) {
	case KERNELLACK_NO_NAMES:
		return "/proc/kallsyms is not there: under systemd, ProcSubset=pid hides it";
	case KERNELLACK_EMPTY_NAMES:
		return "/proc/kallsyms is empty: under systemd, ProtectKernelTunables=yes does "
		       "that; set it to no";
	case KERNELLACK_NO_ADDRESS:
		return "/proc/kallsyms shows no addresses: CAP_SYSLOG is missing (under systemd, "
		       "ProtectKernelLogs=yes takes it away), or sysctl kernel.kptr_restrict is 2";
	case KERNELLACK_ODD_NAMES:
		return "/proc/kallsyms does not say where the kernel's code is";
	case KERNELLACK_NO_CODE:
		return "/proc/kcore cannot be read: CAP_SYS_RAWIO is missing (under systemd, "
		       "PrivateDevices=yes takes it away), or the kernel is locked down";
	case KERNELLACK_ODD_CODE:
		return "/proc/kcore is no ELF file of the kernel's memory";
	case KERNELLACK_NONE:
	case _KERNELLACKS:
		break;
	}
	return NULL;
}
