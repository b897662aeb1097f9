/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * branchy: a program for benchmarks, most of whose work is to branch, by numbers that no predictor
 * knows: it sorts such numbers, and walks through a tree of them by a function that calls itself.
 */

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define NUMBERS 40000
#define ROUNDS  7

struct node {
	struct node *children[2];
	uint32_t key;
};

static struct node nodes[NUMBERS];
static uint32_t numbers[NUMBERS];

static uint32_t next_number(void)
{
	static uint64_t state = 1;

	state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(state >> 33);
}

static int compare(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void insert(struct node **root, struct node *node)
{
	while (*root)
		root = &(*root)->children[node->key > (*root)->key];
	*root = node;
}

static uint64_t sum(const struct node *node)
{
	if (!node)
		return 0;
	if (node->key & 1)
		return sum(node->children[0]) + sum(node->children[1]) + node->key;
	return sum(node->children[1]) ^ (sum(node->children[0]) + 1);
}

int main(void)
{
	uint64_t result = 0;

	for (int round = 0; round < ROUNDS; round++) {
		struct node *root = NULL;

		for (size_t i = 0; i < NUMBERS; i++) {
			numbers[i] = next_number();
			nodes[i] = (struct node){ .key = next_number() };
			insert(&root, &nodes[i]);
		}
		qsort(numbers, NUMBERS, sizeof(*numbers), compare);
		result += sum(root) + numbers[NUMBERS / 2];
	}
	printf("%" PRIu64 "\n", result);
	return 0;
}
