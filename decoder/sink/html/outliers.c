/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/html/outliers.h"

#include <errno.h>
#include <string.h>

void outliers_deinit(struct outliers *outliers)
{
	vec_deinit(&outliers->functions);
}

/* Return: whether @a is worse than @b; of equal ones, the one that began first. */
static bool is_worse(const struct outliers *outliers, const struct outlier *a,
		     const struct outlier *b)
{
	if (outliers->has_time && a->duration != b->duration)
		return a->duration > b->duration;
	return a->n_insns != b->n_insns ? a->n_insns > b->n_insns : a->t < b->t;
}

const struct outliers_function *outliers_of(const struct outliers *outliers, uint32_t function)
{
	static const struct outliers_function none = {};

	return function < outliers->functions.n ? &outliers->functions.items[function] : &none;
}

bool outliers_wants(const struct outliers *outliers, uint32_t function, const struct outlier *o)
{
	const struct outliers_function *f = outliers_of(outliers, function);

	return f->n < OUTLIERS_KEPT || is_worse(outliers, o, &f->slowest[OUTLIERS_KEPT - 1]);
}

int outliers_add(struct outliers *outliers, uint32_t function, const struct outlier *o)
{
	struct outliers_function *f;
	size_t i;

	while (outliers->functions.n <= function)
		if (vec_push(&outliers->functions, {}) < 0)
			return -ENOMEM;
	f = &outliers->functions.items[function];
	i = f->n;
	while (i > 0 && is_worse(outliers, o, &f->slowest[i - 1]))
		i--;
	if (i == OUTLIERS_KEPT)
		return 0;
	f->n += f->n < OUTLIERS_KEPT;
	memmove(&f->slowest[i + 1], &f->slowest[i], (f->n - 1 - i) * sizeof(*f->slowest));
	f->slowest[i] = *o;
	return 0;
}
