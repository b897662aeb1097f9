/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Functions that the compiler inlines into each other, three deep and in several places. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct list {
	uint32_t *items;
	size_t n, n_max;
};

static inline uint32_t mix(uint32_t x)
{
	x ^= x >> 16;
	x *= 0x7feb352d;
	return x ^ x >> 15;
}

static inline uint32_t next_random(uint32_t *state)
{
	*state = mix(*state + 0x9e3779b9);
	return *state;
}

static inline void push(struct list *list, uint32_t item)
{
	if (list->n == list->n_max) {
		list->n_max = list->n_max ? list->n_max * 2 : 8;
		list->items = (uint32_t *)realloc(list->items, list->n_max * sizeof(*list->items));
		if (!list->items)
			abort();
	}
	list->items[list->n++] = item;
}

static inline void push_random(struct list *list, uint32_t *state)
{
	push(list, next_random(state) % 1000);
}

static inline void swap(uint32_t *a, uint32_t *b)
{
	const uint32_t was = *a;

	*a = *b;
	*b = was;
}

static __attribute__((__noinline__)) void sort(struct list *list)
{
	for (size_t i = 1; i < list->n; i++)
		for (size_t k = i; k > 0 && list->items[k - 1] > list->items[k]; k--)
			swap(&list->items[k - 1], &list->items[k]);
}

static __attribute__((__noinline__)) uint32_t sum(const struct list *list)
{
	uint32_t total = 0;

	for (size_t i = 0; i < list->n; i++)
		total = mix(total + list->items[i]);
	return total;
}

int main(void)
{
	struct list list = {};
	uint32_t state = 1;

	for (int i = 0; i < 50; i++)
		push_random(&list, &state);
	sort(&list);
	for (int i = 0; i < 5; i++)
		push(&list, mix((uint32_t)i));
	printf("%u\n", sum(&list));
	free(list.items);
	return 0;
}
