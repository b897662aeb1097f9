/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * A program of small functions, static and global, that call each other and the C library: what a
 * strip takes the names from.
 */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 400

struct word {
	char text[12];
	uint32_t hash;
};

__attribute__((noinline)) uint32_t hash_word(const char *text)
{
	uint32_t hash = 2166136261;

	for (; *text; text++)
		hash = (hash ^ (uint8_t)*text) * 16777619;
	return hash;
}

__attribute__((noinline)) static void make_word(uint32_t i, struct word *ret_word)
{
	snprintf(ret_word->text, sizeof(ret_word->text), "w%u", i * i % 211);
	ret_word->hash = hash_word(ret_word->text);
}

__attribute__((noinline)) static int by_hash(const void *pa, const void *pb)
{
	const struct word *a = pa, *b = pb;

	return a->hash < b->hash ? -1 : a->hash > b->hash;
}

__attribute__((noinline)) static int by_text(const void *pa, const void *pb)
{
	const struct word *a = pa, *b = pb;

	return strcmp(a->text, b->text);
}

__attribute__((noinline)) static size_t count_unique(const struct word *words, size_t n)
{
	size_t unique = n > 0;

	for (size_t i = 1; i < n; i++)
		unique += words[i].hash != words[i - 1].hash;
	return unique;
}

/* Its branches call in both directions, so that it has a .cold part where the compiler makes
 * one. */
__attribute__((noinline)) int sort_words(struct word *words, size_t n,
					 int (*compare)(const void *, const void *))
{
	qsort(words, n, sizeof(*words), compare);
	for (size_t i = 1; i < n; i++)
		if (compare(&words[i - 1], &words[i]) > 0)
			abort();
	return 0;
}

int main(void)
{
	struct word *words = calloc(N, sizeof(*words));

	if (!words)
		return 1;
	for (uint32_t i = 0; i < N; i++)
		make_word(i, &words[i]);
	if (sort_words(words, N, by_text) || sort_words(words, N, by_hash))
		return 1;
	printf("names: %zu of %d words are different\n", count_unique(words, N), N);
	free(words);
	return 0;
}
