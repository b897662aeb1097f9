/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Machine
 *
 * Registers and memory of an emulated CPU, to which QEMU's plugin interface gives no access.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/plugin/qemu.h"

/* Return: the value of a register of @vcpu between two blocks; 0 if it cannot be read. */
uint64_t machine_register(unsigned vcpu, enum qemu_x86_register which);

/*
 * Find the address at which an interrupt or exception interrupted @vcpu, from what the CPU pushed
 * on the stack. The first instruction of the handler must not have run yet.
 *
 * Return: whether the address could be read.
 */
bool machine_interrupted_at(unsigned vcpu, uint64_t *ret_ip);
