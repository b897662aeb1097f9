/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/piece.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void deinit_piece(struct piece *piece)
{
	vec_deinit(&piece->ips);
	vec_deinit(&piece->seams);
}

void pieces_deinit(struct pieces *pieces)
{
	for (size_t i = 0; i < pieces->list.n; i++)
		deinit_piece(&pieces->list.items[i]);
	vec_deinit(&pieces->list);
	free(pieces->fallback);
	*pieces = (struct pieces){};
}

int pieces_begin(struct pieces *pieces, uint64_t t0, uint32_t cpu, bool torn)
{
	int r;

	if (pieces->list.n > 0 && pieces->list.items[pieces->list.n - 1].ips.n == 0)
		deinit_piece(&pieces->list.items[--pieces->list.n]);
	r = vec_push(&pieces->list, { .t0 = t0, .torn = torn });
	return r < 0 ? r
		     : vec_push(&pieces->list.items[pieces->list.n - 1].seams,
				{ .t0 = t0, .cpu = cpu });
}

int pieces_add(struct pieces *pieces, uint64_t ip)
{
	return vec_push(&pieces->list.items[pieces->list.n - 1].ips, ip);
}

static int append_piece(struct piece *to, const struct piece *from)
{
	int r;

	r = vec_reserve(&to->ips, from->ips.n);
	for (size_t i = 0; r == 0 && i < from->seams.n; i++) {
		struct piece_seam seam = from->seams.items[i];

		seam.at += to->ips.n;
		r = vec_push(&to->seams, seam);
	}
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
		deinit_piece(p);
	}
	for (size_t i = n; i < pieces->list.n; i++)
		pieces->list.items[i] = (struct piece){};
	pieces->list.n = n;
	return 0;
}

bool pieces_seek(const struct pieces *pieces, uint64_t *ret_ip)
{
	const struct piece_nearest *nearest = &pieces->nearest;

	if (pieces->n_matched > 0 || !pieces->between || pieces_found(pieces))
		return false;
	if (nearest->n > 0 && nearest->n_logged < PIECE_CONTEXT)
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
	pieces->nearest = (struct piece_nearest){};
	free(pieces->fallback);
	pieces->fallback = NULL;
}

static uint64_t load_ip(const uint8_t *ips, size_t i)
{
	uint64_t ip;

	memcpy(&ip, ips + i * sizeof(ip), sizeof(ip));
	return ip;
}

/* Take what the log has at its nearest place, as far as it is among the @n instructions. */
static void take_logged(struct pieces *pieces, const uint8_t *ips, size_t n)
{
	struct piece_nearest *nearest = &pieces->nearest;

	while (nearest->n > 0 && nearest->n_logged < PIECE_CONTEXT) {
		const uint64_t at = nearest->from + nearest->n_logged;

		if (at >= pieces->n_shown + n)
			break;
		nearest->logged[nearest->n_logged++] = load_ip(ips, at - pieces->n_shown);
	}
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
			if (k > pieces->nearest.n)
				pieces->nearest =
				    (struct piece_nearest){ .n = k, .from = pieces->n_shown + i };
			pieces->between = true;
			pieces->n_matched = pieces->fallback[k];
			i += k == 0;
		}
	}
	take_logged(pieces, ips, n);
	pieces->n_shown += n;
	return 0;
}

bool pieces_found(const struct pieces *pieces)
{
	return pieces->at == pieces->list.n ||
	       (pieces->at + 1 == pieces->list.n && pieces->list.items[pieces->at].ips.n == 0);
}

static void print_stay(const struct piece *p, size_t n, FILE *f)
{
	const struct piece_seam *seams = p->seams.items;
	size_t i = p->seams.n - 1;

	while (i > 0 && seams[i].at > n)
		i--;
	fprintf(f,
		"  the first %zu instructions are equal; the next is number %zu of a stay on CPU "
		"%" PRIu32 " that began at %" PRIu64,
		n, n - seams[i].at, seams[i].cpu, seams[i].t0);
	if (i > 0)
		fprintf(f, ", after one on CPU %" PRIu32 " that began at %" PRIu64,
			seams[i - 1].cpu, seams[i - 1].t0);
	fputc('\n', f);
}

void pieces_print_nearest(const struct pieces *pieces, FILE *f)
{
	const struct piece *p = &pieces->list.items[pieces->at];
	/* The log may have ended in the midst of the piece. */
	const size_t n =
	    pieces->n_matched > pieces->nearest.n ? pieces->n_matched : pieces->nearest.n;
	const size_t n_logged = n == pieces->nearest.n ? pieces->nearest.n_logged : 0;

	print_stay(p, n, f);
	for (size_t i = n > PIECE_CONTEXT ? n - PIECE_CONTEXT : 0; i < n; i++)
		fprintf(f, "  both     %#" PRIx64 "\n", p->ips.items[i]);
	for (size_t i = n; i < p->ips.n && i < n + PIECE_CONTEXT; i++)
		fprintf(f, "  decoded  %#" PRIx64 "\n", p->ips.items[i]);
	for (size_t i = 0; i < n_logged; i++)
		fprintf(f, "  logged   %#" PRIx64 "\n", pieces->nearest.logged[i]);
	if (n_logged < PIECE_CONTEXT)
		fprintf(f, "  logged   nothing more\n");
}
