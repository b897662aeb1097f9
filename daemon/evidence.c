/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/evidence.h"

void evidence_init(struct evidence *evidence)
{
	*evidence = (struct evidence){};
	(void)pthread_mutex_init(&evidence->lock, NULL);
}

void evidence_deinit(struct evidence *evidence)
{
	map_deinit(&evidence->held);
	(void)pthread_mutex_destroy(&evidence->lock);
}

void evidence_get_share(struct evidence *evidence, struct share *ret_share)
{
	(void)pthread_mutex_lock(&evidence->lock);
	*ret_share = evidence->share;
	(void)pthread_mutex_unlock(&evidence->lock);
}

void evidence_count(struct evidence *evidence, uid_t uid, enum share_reason reason)
{
	(void)pthread_mutex_lock(&evidence->lock);
	share_count_refused(&evidence->share, uid, reason, 1);
	(void)pthread_mutex_unlock(&evidence->lock);
}

void evidence_set_taken(struct evidence *evidence, uint64_t taken)
{
	(void)pthread_mutex_lock(&evidence->lock);
	evidence->taken = taken;
	(void)pthread_mutex_unlock(&evidence->lock);
}

void evidence_set_held(struct evidence *evidence, const struct share *others, struct map *held)
{
	struct map before;

	(void)pthread_mutex_lock(&evidence->lock);
	before = evidence->held;
	evidence->held = *held;
	evidence->others = *others;
	(void)pthread_mutex_unlock(&evidence->lock);
	*held = (struct map){};
	map_deinit(&before);
}

void evidence_get_use(struct evidence *evidence, uint64_t *ret_taken, struct share *ret_others)
{
	(void)pthread_mutex_lock(&evidence->lock);
	*ret_taken = evidence->taken;
	*ret_others = evidence->others;
	(void)pthread_mutex_unlock(&evidence->lock);
}

bool evidence_holds(struct evidence *evidence, uint64_t stored)
{
	bool holds;

	(void)pthread_mutex_lock(&evidence->lock);
	holds = map_get(&evidence->held, stored);
	(void)pthread_mutex_unlock(&evidence->lock);
	return holds;
}
