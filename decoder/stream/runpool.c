/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/stream/runpool.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

/* How many unused chunks are kept for each thread. */
#define SPARE_MAX 12

struct spare {
	struct runpool_chunk *first;
	size_t n;
};

struct runpool {
	pthread_mutex_t mutex;
	size_t n_taken;
	size_t n_threads;
	struct spare spare[]; /* of each thread */
};

int runpool_new(size_t n_threads, struct runpool **ret_pool)
{
	struct runpool *pool = calloc(1, sizeof(*pool) + n_threads * sizeof(pool->spare[0]));

	if (!pool)
		return -ENOMEM;
	(void)pthread_mutex_init(&pool->mutex, NULL);
	pool->n_threads = n_threads;
	*ret_pool = pool;
	return 0;
}

struct runpool *runpool_free(struct runpool *pool)
{
	if (!pool)
		return NULL;
	assert(pool->n_taken == 0);
	for (size_t i = 0; i < pool->n_threads; i++) {
		while (pool->spare[i].first) {
			struct runpool_chunk *chunk = pool->spare[i].first;

			pool->spare[i].first = chunk->next;
			free(chunk);
		}
	}
	(void)pthread_mutex_destroy(&pool->mutex);
	free(pool);
	return NULL;
}

static void release(struct ptd_hold *hold)
{
	struct runpool_chunk *chunk = (struct runpool_chunk *)hold;
	struct runpool *pool = chunk->pool;
	struct spare *spare = &pool->spare[hold->thread];

	(void)pthread_mutex_lock(&pool->mutex);
	pool->n_taken--;
	if (spare->n < SPARE_MAX) {
		chunk->next = spare->first;
		spare->first = chunk;
		spare->n++;
		chunk = NULL;
	}
	(void)pthread_mutex_unlock(&pool->mutex);
	free(chunk);
}

struct runpool_chunk *runpool_take(struct runpool *pool, size_t thread)
{
	struct spare *spare = &pool->spare[thread];
	struct runpool_chunk *chunk;

	(void)pthread_mutex_lock(&pool->mutex);
	chunk = spare->first;
	if (chunk) {
		spare->first = chunk->next;
		spare->n--;
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
	chunk->hold = (struct ptd_hold){ .runs = chunk->runs,
					 .n_runs = RUNPOOL_CHUNK_RUNS,
					 .thread = thread,
					 .n_users = 1,
					 .release = release };
	return chunk;
}
