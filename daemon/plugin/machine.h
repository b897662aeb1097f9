/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * Machine
 *
 * Registers of an emulated CPU, to which QEMU's plugin interface gives no access.
 */

#include <stdint.h>

#include "base/base.h"
#include "daemon/plugin/qemu.h"

/* Return: the value of a register of @vcpu between two blocks; 0 if it cannot be read. */
uint64_t machine_register(unsigned vcpu, enum qemu_x86_register which);
