/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Reservoir
 *
 * A random sample of things of which it is not known beforehand how many there are: each has the
 * same chance to be in it. A seed decides which.
 */

#include <stddef.h>
#include <stdint.h>

struct reservoir {
	size_t n_max;    /* so many are picked */
	uint64_t random; /* the seed; then the state of the generator */
	uint64_t n_seen;
};

/* splitmix64 */
static inline uint64_t reservoir_random(struct reservoir *reservoir)
{
	uint64_t z = reservoir->random += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/*
 * One more was seen.
 *
 * Return: the place in the sample that it takes, from another one if that is taken; n_max or more
 *         if it is not picked.
 */
static inline uint64_t reservoir_place(struct reservoir *reservoir)
{
	const uint64_t i = reservoir->n_seen++;

	return i < reservoir->n_max ? i : reservoir_random(reservoir) % reservoir->n_seen;
}
