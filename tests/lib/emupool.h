/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pool of the software source
 *
 * A pool for the tests of the software source, made like ptd makes one, and attached to like a
 * recorded program does. What cannot be had ends the test program.
 */

#include "daemon/plugin/attach.h"

/* Return: the descriptor of a new pool, which the caller closes. */
int emupool_fd(const struct emu_pool_layout *layout);

/* Attach to a new pool; attach_deinit() ends that. */
void emupool_attach(const struct emu_pool_layout *layout, struct attach *ret_attach);

/* A test that finds a new pool with the layout @l attached as emupool. */
#define emupool_test(f, l)                                                           \
	cmocka_unit_test_prestate_setup_teardown(f, emupool_setup, emupool_teardown, \
						 (void *)(uintptr_t) & (l))
extern struct attach emupool;

int emupool_setup(void **state);
int emupool_teardown(void **state);
