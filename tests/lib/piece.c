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

int pieces_begin(struct pieces *pieces, uint64_t t0, bool torn)
{
	if (pieces->list.n > 0 && pieces->list.items[pieces->list.n - 1].ips.n == 0)
		pieces->list.n--;
	return vec_push(&pieces->list, { .t0 = t0, .torn = torn });
}

int pieces_add(struct pieces *pieces, uint64_t ip)
{
	return vec_push(&pieces->list.items[pieces->list.n - 1].ips, ip);
}

static int append_piece(struct piece *to, const struct piece *from)
{
	int r;

	r = vec_reserve(&to->ips, from->ips.n);
	if (r < 0 || from->ips.n == 0)
		return r;
	memcpy(to->ips.items + to->ips.n, from->ips.items, from->ips.n * sizeof(uint64_t));
	to->ips.n += from->ips.n;
	return 0;
}

int pieces_join(struct pieces *pieces)
{
	size_t n = 0;

	for (size_t i = 0; i < pieces->list.n; i++) {
		struct piece *p = &pieces->list.items[i];

		if (n == 0 || !p->follows) {
			pieces->list.items[n++] = *p;
			continue;
		}
		if (append_piece(&pieces->list.items[n - 1], p) < 0)
			return -ENOMEM;
		vec_deinit(&p->ips);
	}
	for (size_t i = n; i < pieces->list.n; i++)
		pieces->list.items[i] = (struct piece){};
	pieces->list.n = n;
	return 0;
}

bool pieces_seek(const struct pieces *pieces, uint64_t *ret_ip)
{
	if (pieces->n_matched > 0 || !pieces->between || pieces_found(pieces))
		return false;
	*ret_ip = pieces->list.items[pieces->at].ips.items[0];
	return true;
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

static void next_piece(struct pieces *pieces)
{
	pieces->n_jumps += pieces->at > 0 && pieces->between;
	pieces->at++;
	pieces->n_matched = 0;
	pieces->between = false;
	free(pieces->fallback);
	pieces->fallback = NULL;
}

static uint64_t load_ip(const uint8_t *ips, size_t i)
{
	uint64_t ip;

	memcpy(&ip, ips + i * sizeof(ip), sizeof(ip));
	return ip;
}

int pieces_show(struct pieces *pieces, const uint8_t *ips, size_t n)
{
	size_t i = 0;

	while (i < n && !pieces_found(pieces)) {
		const struct piece *p = &pieces->list.items[pieces->at];
		size_t k = pieces->n_matched;

		if (!pieces->fallback && make_fallback(pieces) < 0)
			return -ENOMEM;
		while (i < n && k < p->ips.n && p->ips.items[k] == load_ip(ips, i)) {
			k++;
			i++;
		}
		pieces->n_matched = k;
		if (k == p->ips.n) {
			next_piece(pieces);
		} else if (i < n) {
			pieces->between = true;
			pieces->n_matched = pieces->fallback[k];
			i += k == 0;
		}
	}
	return 0;
}

bool pieces_found(const struct pieces *pieces)
{
	return pieces->at == pieces->list.n ||
	       (pieces->at + 1 == pieces->list.n && pieces->list.items[pieces->at].ips.n == 0);
}
