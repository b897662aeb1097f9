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

/*
 * Return: whether the instruction, one of class @iclass for which the CPU writes packets, may also
 *         have gone on to the next one without any: an INTO that found no overflow, or a call of a
 *         hypervisor that is hidden from the trace, or failed.
 */
bool system_may_go_on(uint8_t iclass, const uint8_t *bytes, size_t size);

/* Return: whether it, one of class PTD_INSN_VM, enters a guest: VMLAUNCH or VMRESUME. */
bool system_enters_vm(const uint8_t *bytes, size_t size);
