/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * cuts [-q] RECORDING…: decodes recordings with spans cut at every PSB, and at fewer, by 1, 2, 3
 * and 8 threads: what comes out must not depend on the number of threads. It prints how many parts
 * were begun, and how many of them joined; the exit status is 1 if none did. -q: only some of
 * these, for what is large.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/stream/ahead.h"
#include "ptd/decode.h"
#include "tests/lib/digest.h"

/* How far apart cuts are, and how many threads decode. */
static const uint64_t sizes[] = { 1, LANE_CUT_SIZE, 100, 5000 };
static const size_t counts[] = { 3, 2, 8 };
static struct ahead_counts parts;
static size_t n_sizes = ARRAY_LEN(sizes), n_counts = ARRAY_LEN(counts);

/* Return: how many things are wrong. */
static int try(const char *name, struct ptd_options *options)
{
	int n_wrong = 0;

	options->force = true;
	for (size_t i = 0; i < n_sizes; i++) {
		const struct digest alone = digest_of(options, 1, sizes[i]);

		for (size_t k = 0; k < n_counts; k++) {
			const struct digest d = digest_of(options, counts[k], sizes[i]);

			parts.n_begun += d.parts.n_begun;
			parts.n_used += d.parts.n_used;
			if (d.hash == alone.hash && d.n_items == alone.n_items && d.r == alone.r)
				continue;
			printf("%s, cut every %" PRIu64 " bytes: %zu threads decode %" PRIu64
			       " items (%d), and one %" PRIu64 " (%d), which differ\n",
			       name, sizes[i], counts[k], d.n_items, d.r, alone.n_items, alone.r);
			n_wrong++;
		}
	}
	return n_wrong;
}

int main(int argc, char **argv)
{
	int n_wrong = 0, first = 1;

	if (argc > 1 && strcmp(argv[1], "-q") == 0) {
		n_sizes = 2;
		n_counts = 1;
		first++;
	}
	for (int i = first; i < argc; i++) {
		struct ptd_options options = { .size = sizeof(options), .input = argv[i] };

		n_wrong += try(argv[i], &options);
	}
	printf("%d inputs, %" PRIu64 " parts decoded ahead, %" PRIu64 " of them joined\n",
	       argc - first, parts.n_begun, parts.n_used);
	return n_wrong > 0 || parts.n_used == 0;
}
