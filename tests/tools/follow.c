/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Judges every instruction that is decoded from a snapshot or perf.data (see tests/lib/follow.h).
 * What is not justified is printed; the exit status is then 1.
 *
 *	follow [-e ENGINE] [--force] INPUT
 */

#include <errno.h>
#include <error.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>

#include "ptd/decode.h"
#include "tests/lib/decoding.h"
#include "tests/lib/follow.h"

int main(int argc, char **argv)
{
	static const struct option long_options[] = { { "force", no_argument, NULL, 'f' }, {} };
	struct ptd_options options = { .size = sizeof(options) };
	const struct ptd_batch *batch;
	struct follow *follow;
	struct ptd_decoder *d;
	uint64_t n_faults;
	int option, r;

	while ((option = getopt_long(argc, argv, "e:f", long_options, NULL)) != -1) {
		if (option == 'e')
			options.engine = optarg;
		else if (option == 'f')
			options.force = true;
		else
			return 2;
	}
	if (argc - optind != 1)
		error(2, 0, "usage: follow [-e ENGINE] [--force] INPUT");
	options.input = argv[optind];

	d = decoding_new(&options);
	r = follow_new(&options, ptd_decoder_info(d), stdout, &follow);
	if (r < 0)
		error(2, -r, "%s: the checker cannot read it", options.input);
	while ((batch = decoding_next(d, options.input))) {
		r = follow_batch(follow, batch);
		if (r < 0)
			error(2, -r, "%s", options.input);
	}

	n_faults = follow_n_faults(follow);
	printf("%" PRIu64 " instructions, %" PRIu64 " of them not justified\n",
	       follow_n_insns(follow), n_faults);
	follow_free(follow);
	ptd_decoder_free(d);
	return n_faults ? 1 : 0;
}
