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

struct engine_filter;
struct seg;
struct walk_event;

struct place {
	const struct walk_event *event; /* borrowed */
	bool is_done;                   /* the first instruction was given out before */

	/* The recording's address filter; borrowed. */
	const struct engine_filter *filters;
	size_t n_filters;
	bool lacks_ip; /* erratum SKL014: a TIP.PGD at its border may have no address */
};

/* Return: the number of the instruction in @seg that is the event's place, or seg->n_insns. */
size_t place_find(const struct place *place, const struct seg *seg);

/* Return: whether instruction @i of @seg enters a virtual machine. */
bool place_is_vm_entry(const struct seg *seg, size_t i);
