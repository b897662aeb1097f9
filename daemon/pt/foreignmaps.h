/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Foreign mappings
 *
 * Has the collector (daemon/helper/collector/link.h) write the records of what other users'
 * processes have mapped, for a scan of /proc (daemon/pt/procscan.h).
 */

#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

struct foreignmaps;
struct tsc_conv;

/* Return: 0, or negative errno. */
_must_check_ int foreignmaps_new(const char *runtime_dir, struct foreignmaps **ret_maps);
struct foreignmaps *foreignmaps_free(struct foreignmaps *maps);

DEFINE_CLEANUP(struct foreignmaps *, foreignmaps_free);

/* A scan begins: users whose processes took too long in the last one are waited for again. */
void foreignmaps_begin(struct foreignmaps *maps);

/* What procscan_maps_fn does. @clock: of the records. */
_must_check_ int foreignmaps_get(struct foreignmaps *maps, const struct tsc_conv *clock,
				 uint32_t pid, uint64_t wait_ns, uint8_t **ret_bytes,
				 size_t *ret_size);
