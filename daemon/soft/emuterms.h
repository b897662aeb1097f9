/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Emuterms
 *
 * What the software source makes of the settings: the layout of its pool, and what its virtual CPUs
 * are to a decoder.
 */

#include <stdbool.h>

#include "daemon/config/ptterms.h"
#include "daemon/emu/pool.h"
#include "daemon/source/source.h"

struct config;

/* Return: whether the software source writes what a term asks for; the others it leaves alone. */
bool emuterms_knows(enum ptterm term);

struct emu_pool_layout emuterms_layout(const struct config *config);
struct source_facts emuterms_facts(const struct config *config);
