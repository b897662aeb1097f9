/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Machine
 *
 * State of an emulated CPU that QEMU's plugin interface does not show.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/emu/qemu.h"

/* Return: a register of @vcpu, as it is between two blocks; 0 if it cannot be read. */
uint64_t machine_register(unsigned vcpu, enum qemu_x86_register which);

/*
 * Where the interrupt or exception took @vcpu away from, given that its handler's first instruction
 * has not run yet: what the CPU pushed tells.
 *
 * Return: whether that is there.
 */
bool machine_interrupted_at(unsigned vcpu, uint64_t *ret_ip);
