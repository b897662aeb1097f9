/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Place
 *
 * Where in the code an event belongs (enum walk_place). The event says it by an address, or by what
 * an instruction can do: only some instructions switch packets off, change the page table or the
 * VMCS, or write a PTW packet.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct engine;
struct seg;
struct walk_event;

/*
 * Find the place of @event in @seg, where @engine stands. @is_done: the first instruction was given
 * out before.
 *
 * Return: the number of the instruction; seg->n_insns if it is not there.
 */
size_t place_find(const struct engine *engine, const struct walk_event *event,
		  const struct seg *seg, bool is_done);

/* Return: whether the last instruction of @seg enters a virtual machine. */
bool place_is_vm_entry(const struct seg *seg);
