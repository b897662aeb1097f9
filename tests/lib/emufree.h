/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/* Frees what the parts of the plugin have. The plugin itself ends with its process. */

#include <sys/mman.h>

#include "daemon/plugin/attach.h"
#include "daemon/plugin/block.h"
#include "daemon/plugin/handover.h"
#include "daemon/plugin/maps.h"
#include "daemon/plugin/target.h"

static inline void attach_deinit(struct attach *attach)
{
	if (attach->pool)
		(void)munmap(attach->pool, emu_pool_size(&attach->layout));
	*attach = (struct attach){};
}

static inline void blocks_deinit(struct blocks *blocks)
{
	map_deinit(&blocks->by_ip);
	arena_deinit(&blocks->arena);
	*blocks = (struct blocks){};
}

static inline void shadow_deinit(struct shadow *shadow)
{
	map_deinit(&shadow->pages);
	arena_deinit(&shadow->arena);
	*shadow = (struct shadow){};
}

static inline void handover_deinit(struct handover *handover)
{
	shadow_deinit(&handover->shadow);
}

static inline void watch_deinit(struct watch *watch)
{
	vec_deinit(&watch->places);
}

static inline void maps_deinit(struct maps *maps)
{
	vec_deinit(&maps->known.list);
	vec_deinit(&maps->writable.list);
	vec_deinit(&maps->files);
	watch_deinit(&maps->watch);
	(void)pthread_mutex_destroy(&maps->lock);
}

static inline void target_handlers_deinit(struct target_handlers *handlers)
{
	vec_deinit(&handlers->known);
}
