/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/runpool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* So many chunks that nobody uses are kept. */
#define SPARE_MAX 32

struct runpool {
	pthread_mutex_t mutex;
	struct runpool_chunk *spare;
	size_t n_spare, n_taken;
};

int runpool_new(struct runpool **ret_pool)
{
	struct runpool *pool = calloc(1, sizeof(*pool));

	if (!pool)
		return -ENOMEM;
	(void)pthread_mutex_init(&pool->mutex, NULL);
	*ret_pool = pool;
	return 0;
}

struct runpool *runpool_free(struct runpool *pool)
{
	if (!pool)
		return NULL;
	assert(pool->n_taken == 0);
	while (pool->spare) {
		struct runpool_chunk *chunk = pool->spare;

		pool->spare = chunk->next;
		free(chunk);
	}
	(void)pthread_mutex_destroy(&pool->mutex);
	free(pool);
	return NULL;
}

static void release(struct ptd_hold *hold)
{
	struct runpool_chunk *chunk = (struct runpool_chunk *)hold;
	struct runpool *pool = chunk->pool;

	(void)pthread_mutex_lock(&pool->mutex);
	pool->n_taken--;
	if (pool->n_spare < SPARE_MAX) {
		chunk->next = pool->spare;
		pool->spare = chunk;
		pool->n_spare++;
		chunk = NULL;
	}
	(void)pthread_mutex_unlock(&pool->mutex);
	free(chunk);
}

struct runpool_chunk *runpool_take(struct runpool *pool)
{
	struct runpool_chunk *chunk;

	(void)pthread_mutex_lock(&pool->mutex);
	chunk = pool->spare;
	if (chunk) {
		pool->spare = chunk->next;
		pool->n_spare--;
	}
	pool->n_taken++;
	(void)pthread_mutex_unlock(&pool->mutex);
	if (!chunk)
		chunk = malloc(sizeof(*chunk));
	if (!chunk) {
		(void)pthread_mutex_lock(&pool->mutex);
		pool->n_taken--;
		(void)pthread_mutex_unlock(&pool->mutex);
		return NULL;
	}
	chunk->pool = pool;
	chunk->hold = (struct ptd_hold){
		.runs = chunk->runs, .n_runs = RUNPOOL_CHUNK_RUNS, .n_users = 1, .release = release
	};
	return chunk;
}
