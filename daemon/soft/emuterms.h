/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Terms of the software source
 *
 * Derives from the settings what the software source is: the layout of its pool, and the facts by
 * which a decoder reads its PT.
 */

#include <stdbool.h>

#include "daemon/config/ptterms.h"
#include "daemon/plugin/pool.h"
#include "daemon/source/source.h"

struct config;

/* Return: whether the software source writes the packets that @term asks for. It ignores the other
 * terms. */
bool emuterms_knows(enum ptterm term);

/* Return: the layout of the pool, as the settings ask for it. */
struct emu_pool_layout emuterms_layout(const struct config *config);

struct source_facts emuterms_facts(const struct config *config);

/* Return: the bits of attr_config which say that there are MTC and CYC packets, the former as often
 * as @timing says. */
uint64_t emuterms_timing_config(const struct encode_timing *timing);
