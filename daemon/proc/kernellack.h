/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernel lack
 *
 * Why the code of the kernel, or where it is, cannot be read: what is missing, and how to mend it.
 * Each is an outcome that an administrator can change, not an error.
 */

enum kernellack {
	KERNELLACK_NONE,
	KERNELLACK_NO_NAMES,    /* /proc/kallsyms is not there */
	KERNELLACK_EMPTY_NAMES, /* it is empty */
	KERNELLACK_NO_ADDRESS,  /* it shows no addresses */
	KERNELLACK_ODD_NAMES,   /* it has no beginning and end of the kernel's code */
	KERNELLACK_NO_CODE,     /* /proc/kcore cannot be opened, or has no code */
	KERNELLACK_ODD_CODE,    /* it is no ELF file */
	_KERNELLACKS,
};

/* Return: a constant that says so; NULL for KERNELLACK_NONE. */
const char *kernellack_text(enum kernellack lack);
