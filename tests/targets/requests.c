/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Handles 2000 requests. Each looks one key up in a table; at request 731 the table is full, and is
 * made anew.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define N_REQUESTS 2000
#define SPIKE_AT   731

static uint64_t *table;
static size_t n_table = 1024;

__attribute__((__noinline__)) static void grow_table(void)
{
	uint64_t *grown = calloc(2 * n_table, sizeof(*grown));

	if (!grown)
		abort();
	for (size_t i = 0; i < n_table; i++)
		grown[table[i] * 7 % (2 * n_table)] = table[i];
	free(table);
	table = grown;
	n_table *= 2;
}

__attribute__((__noinline__)) static uint64_t find_key(uint64_t key)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < 20; i++)
		sum += table[(key + i) % n_table];
	return sum;
}

__attribute__((__noinline__)) static uint64_t handle_request(unsigned int number)
{
	if (number == SPIKE_AT)
		for (size_t i = 0; i < 10; i++)
			grow_table();
	return find_key(number * UINT64_C(2654435761)) + number;
}

int main(void)
{
	uint64_t sum = 0;

	table = calloc(n_table, sizeof(*table));
	if (!table)
		return 1;
	for (unsigned int i = 1; i <= N_REQUESTS; i++)
		sum += handle_request(i);
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
