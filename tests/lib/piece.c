/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/piece.h"

#include <stdlib.h>
#include <string.h>

void pieces_deinit(struct pieces *pieces)
{
	for (size_t i = 0; i < pieces->list.n; i++)
		vec_deinit(&pieces->list.items[i].ips);
	vec_deinit(&pieces->list);
	free(pieces->fallback);
	*pieces = (struct pieces){};
}

int pieces_begin(struct pieces *pieces, uint64_t t0)
{
	if (pieces->list.n > 0 && pieces->list.items[pieces->list.n - 1].ips.n == 0)
		pieces->list.n--;
	return vec_push(&pieces->list, { .t0 = t0 });
}

int pieces_add(struct pieces *pieces, uint64_t ip)
{
	return vec_push(&pieces->list.items[pieces->list.n - 1].ips, ip);
}

static int append(struct piece *to, const struct piece *from)
{
	int r;

	r = vec_reserve(&to->ips, from->ips.n);
	if (r < 0 || from->ips.n == 0)
		return r;
	memcpy(to->ips.items + to->ips.n, from->ips.items, from->ips.n * sizeof(uint64_t));
	to->ips.n += from->ips.n;
	return 0;
}

int pieces_join(struct pieces *pieces, uint64_t from)
{
	size_t first = 0, i;
	int n;

	while (first < pieces->list.n && pieces->list.items[first].t0 <= from)
		first++;
	for (i = first + 1; i < pieces->list.n; i++) {
		if (append(&pieces->list.items[first], &pieces->list.items[i]) < 0)
			return -ENOMEM;
		vec_deinit(&pieces->list.items[i].ips);
	}
	n = (int)(pieces->list.n - first);
	if (n > 1)
		pieces->list.n = first + 1;
	return n;
}

/* For each length that may have matched: the next shorter one that then has, too. */
static int make_fallback(struct pieces *pieces)
{
	const struct piece *p = &pieces->list.items[pieces->at];
	uint32_t *f = realloc(pieces->fallback, (p->ips.n + 1) * sizeof(*f));
	size_t k = 0;

	if (!f)
		return -ENOMEM;
	pieces->fallback = f;
	f[0] = f[1] = 0;
	for (size_t i = 1; i < p->ips.n; i++) {
		while (k > 0 && p->ips.items[i] != p->ips.items[k])
			k = f[k];
		if (p->ips.items[i] == p->ips.items[k])
			k++;
		f[i + 1] = (uint32_t)k;
	}
	return 0;
}

int pieces_show(struct pieces *pieces, uint64_t ip)
{
	const struct piece *p = &pieces->list.items[pieces->at];
	size_t k = pieces->n_matched;

	pieces->n_logged++;
	if (pieces_found(pieces))
		return 0;
	if (!pieces->fallback && make_fallback(pieces) < 0)
		return -ENOMEM;

	while (k > 0 && p->ips.items[k] != ip) {
		k = pieces->fallback[k];
		pieces->between = true;
	}
	if (p->ips.items[k] == ip)
		k++;
	else
		pieces->between = true;
	pieces->n_matched = k;
	if (k < p->ips.n)
		return 0;

	pieces->n_jumps += pieces->at > 0 && pieces->between;
	pieces->at++;
	pieces->n_matched = 0;
	pieces->between = false;
	free(pieces->fallback);
	pieces->fallback = NULL;
	return 0;
}

bool pieces_found(const struct pieces *pieces)
{
	return pieces->at == pieces->list.n ||
	       (pieces->at + 1 == pieces->list.n && pieces->list.items[pieces->at].ips.n == 0);
}
