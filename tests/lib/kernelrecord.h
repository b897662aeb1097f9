/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernel's records
 *
 * Writers of the perf records (util/perf/codec.h) that ptd only reads.
 */

#include <stddef.h>
#include <stdint.h>

#include "util/perf/codec.h"

/* SWITCH: the same without saying who the other one is. */
size_t record_write_switch(const struct record_switch *sw, const struct trailer *trailer, void *to,
			   size_t room);

size_t record_write_aux(const struct record_aux *aux, const struct trailer *trailer, void *to,
			size_t room);

size_t record_write_lost_samples(uint64_t lost, const struct trailer *trailer, void *to,
				 size_t room);

size_t record_write_ksymbol(const struct record_ksymbol *ksymbol, const struct trailer *trailer,
			    void *to, size_t room);

size_t record_write_bpf_event(const struct record_bpf_event *bpf, const struct trailer *trailer,
			      void *to, size_t room);

size_t record_write_text_poke(const struct record_text_poke *poke, const struct trailer *trailer,
			      void *to, size_t room);
