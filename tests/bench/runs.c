/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * runs INPUT: decodes a snapshot into runs, does nothing with them, and prints how many
 * instructions they have and how many gaps are between them.
 * runs PT CODE: the same of a bare PT stream, with a list of its code as iptpeer takes it.
 */

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ptd/decode.h"
#include "util/vec.h"

struct code {
	VEC(struct ptd_raw_code) pieces;
	VEC(char *) paths;
};

static void read_code(const char *path, struct code *code)
{
	FILE *f = fopen(path, "re");
	char line[4096 + 64], name[4096];

	if (!f)
		error(1, errno, "%s", path);
	while (fgets(line, sizeof(line), f)) {
		struct ptd_raw_code piece;

		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %4095[^\n]", &piece.address,
			   &piece.size, &piece.offset, name) != 4)
			error(1, 0, "%s: no piece of code: %s", path, line);
		if (vec_push(&code->paths, strdup(name)) < 0)
			error(1, ENOMEM, "%s", path);
		piece.path = code->paths.items[code->paths.n - 1];
		if (!piece.path || vec_push(&code->pieces, piece) < 0)
			error(1, ENOMEM, "%s", path);
	}
	(void)fclose(f);
}

int main(int argc, char **argv)
{
	struct ptd_options options = { .size = sizeof(options) };
	struct ptd_decoder *decoder = NULL;
	const struct ptd_batch *batch;
	uint64_t n_insns = 0, n_gaps = 0;
	struct code code = {};
	char *message = NULL;
	int r;

	if (argc < 2 || argc > 3)
		error(2, 0, "usage: runs INPUT | runs PT CODE");
	if (argc == 2) {
		options.input = argv[1];
	} else {
		read_code(argv[2], &code);
		options.raw_pt = argv[1];
		options.raw_code = code.pieces.items;
		options.n_raw_code = code.pieces.n;
		options.cpu_family = 6;
		options.cpu_model = 94;
		options.cpu_stepping = 3;
	}
	if (ptd_decoder_new(&options, &decoder, &message) < 0)
		error(1, 0, "%s", message ? message : argv[1]);
	while ((r = ptd_decoder_next(decoder, &batch)) == 0) {
		for (size_t i = 0; i < batch->n_runs; i++)
			n_insns += batch->runs[i].n;
		for (size_t i = 0; i < batch->n_marks; i++)
			n_gaps += batch->marks[i].kind == PTD_MARK_GAP;
	}
	if (r < 0)
		error(1, -r, "%s", argv[1]);
	printf("%" PRIu64 " instructions, %" PRIu64 " gaps\n", n_insns, n_gaps);
	(void)ptd_decoder_free(decoder);
	for (size_t i = 0; i < code.paths.n; i++)
		free(code.paths.items[i]);
	vec_deinit(&code.paths);
	vec_deinit(&code.pieces);
	return 0;
}
