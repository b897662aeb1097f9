/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * System instructions
 *
 * Recognises the instructions by which a kernel or a hypervisor changes which code runs, because
 * the CPU writes packets for them. The decoder and the software source both use this.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Return: whether the instruction of @size bytes, a valid one, sets CR3: MOV to CR3. */
bool system_sets_cr3(const uint8_t *bytes, size_t size);

/* Return: whether it takes another VMCS: VMPTRLD. */
bool system_sets_vmcs(const uint8_t *bytes, size_t size);

/* Return: whether it, one of class PTD_INSN_VM, enters a guest: VMLAUNCH or VMRESUME. */
bool system_enters_vm(const uint8_t *bytes, size_t size);
