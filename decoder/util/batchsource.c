/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/util/batchsource.h"

#include <string.h>

/* How many CPUs there are statistics of their own of; others count as the last one. */
#define CPUS_MAX 4096

void batchsource_reset(struct batchsource *source)
{
	source->cpus.n = 0;
	source->cpu = 0;
	memset(source->n_gaps, 0, sizeof(source->n_gaps));
}

int batchsource_count(struct batchsource *source, const struct batchsource_count *count)
{
	struct ptd_cpu_stats *stats;
	size_t i = 0;

	while (i < source->cpus.n && i < CPUS_MAX - 1 && source->cpus.items[i].cpu != count->cpu)
		i++;
	if (i == source->cpus.n &&
	    vec_push(&source->cpus, { .cpu = count->cpu, .t_first = count->t_first }) < 0)
		return -ENOMEM;
	source->cpu = i;
	stats = &source->cpus.items[i];
	stats->n_insns += count->n_insns;
	stats->t_last = count->t_last > stats->t_last ? count->t_last : stats->t_last;
	for (size_t k = 0; k < _PTD_GAP_REASONS; k++) {
		stats->n_gaps += count->n_gaps[k];
		source->n_gaps[k] += count->n_gaps[k];
	}
	return 0;
}

struct batchsource *batchsource_free(struct batchsource *source)
{
	if (!source)
		return NULL;
	vec_deinit(&source->cpus);
	source->ops->free(source);
	return NULL;
}
