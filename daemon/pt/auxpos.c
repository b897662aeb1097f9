/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/pt/auxpos.h"

#include <string.h>

void auxpos_read_end(const uint8_t *ring, size_t size, struct auxpos_end *ret_end)
{
	memcpy(ret_end->bytes, ring + size - sizeof(ret_end->bytes), sizeof(ret_end->bytes));
}

/* Return: whether there was anything behind the offset @head, which the writer does not reach
 * before it has gone round. */
static bool written_behind(const struct auxpos *pos, uint64_t head, const struct auxpos_end *end)
{
	const uint64_t start = pos->size - sizeof(end->bytes);

	for (uint64_t i = head > start ? head - start : 0; i < sizeof(end->bytes); i++)
		if (end->bytes[i])
			return true;
	return false;
}

void auxpos_move(struct auxpos *pos, uint64_t head, const struct auxpos_end *end)
{
	/* Gone round at least once: seen by the head, or the first time by the bytes. */
	if (head < pos->head || (!pos->wrapped && written_behind(pos, head, end))) {
		pos->written += pos->size;
		pos->wrapped = true;
	}
	pos->written += head - pos->head;
	pos->head = head;
}

/* Bytes that are PT at @pos. */
static uint64_t filled(const struct auxpos *pos)
{
	return pos->wrapped ? pos->size : pos->head;
}

static uint64_t probe_step(const struct auxpos *pos)
{
	return pos->size / AUXPOS_PROBES;
}

/* The word @i steps after the head. */
static uint64_t read_probe(const struct auxpos *pos, const uint8_t *ring, size_t i)
{
	const uint64_t at = (pos->head + i * probe_step(pos)) & (pos->size - 1) & ~UINT64_C(7);
	uint64_t word;

	memcpy(&word, ring + at, sizeof(word));
	return word;
}

/* Copy @n bytes that end at the head. */
static void copy_newest(const struct auxpos *pos, const uint8_t *ring, size_t n, uint8_t *to)
{
	const size_t first = n < pos->head ? n : pos->head;

	memcpy(to + (n - first), ring + (pos->head - first), first);
	memcpy(to, ring + (pos->size - (n - first)), n - first);
}

void auxpos_take_fingerprint(const struct auxpos *pos, const uint8_t *ring,
			     struct auxpos_fingerprint *ret_fingerprint)
{
	const uint64_t n = filled(pos) / 2;

	ret_fingerprint->n_newest = n < AUXPOS_NEWEST ? n : AUXPOS_NEWEST;
	copy_newest(pos, ring, ret_fingerprint->n_newest, ret_fingerprint->newest);
	for (size_t i = 0; i < AUXPOS_PROBES; i++)
		ret_fingerprint->probes[i] = read_probe(pos, ring, i);
}

static bool lapped(const struct auxpos *pos, const struct auxpos_fingerprint *fingerprint,
		   const uint8_t *ring)
{
	uint8_t now[AUXPOS_NEWEST];

	copy_newest(pos, ring, fingerprint->n_newest, now);
	return memcmp(now, fingerprint->newest, fingerprint->n_newest) != 0;
}

/* The writer put @n bytes behind the head. */
static uint64_t gone_by(const struct auxpos *pos, uint64_t n)
{
	const uint64_t room = pos->size - filled(pos);

	return n > room ? n - room : 0;
}

uint64_t auxpos_overwritten(const struct auxpos *pos, const struct auxpos_fingerprint *fingerprint,
			    const uint8_t *ring, uint64_t head)
{
	if (lapped(pos, fingerprint, ring))
		return filled(pos);
	return gone_by(pos, (head - pos->head) & (pos->size - 1));
}

uint64_t auxpos_estimate_overwritten(const struct auxpos *pos,
				     const struct auxpos_fingerprint *fingerprint,
				     const uint8_t *ring)
{
	size_t n = AUXPOS_PROBES;

	if (lapped(pos, fingerprint, ring))
		return filled(pos);
	while (n > 0 && read_probe(pos, ring, n - 1) == fingerprint->probes[n - 1])
		n--;
	/* It is somewhere before the first probe that it left alone. */
	return gone_by(pos, n * probe_step(pos));
}
