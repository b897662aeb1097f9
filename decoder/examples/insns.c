/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Print the first thousand instructions of a recording, with their symbols; then how many
 * instructions each function executed. Several recordings are decoded at the same time, each by a
 * thread.
 *
 *	cc -std=c11 -pthread insns.c $(pkg-config --cflags --libs ptdecode) -o insns
 *	./insns INPUT OUTPUT [INPUT OUTPUT]...
 */

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <ptd/decode.h>

#define SHOWN 1000 /* instructions */

/* --- counting --------------------------------------------------------------------------------- */

struct count {
	FILE *output;
	uint64_t n_shown;
	uint64_t *n_insns;  /* of each function, by symbol id */
	const char **names; /* likewise; the decoder's */
	size_t n_symbols;
};

static void count_free(struct count *c)
{
	free(c->n_insns);
	free(c->names);
}

/* Make room for the symbols that were not there before: nothing was executed in them yet. */
static int count_grow(struct count *c, const struct ptd_batch *batch)
{
	uint64_t *n_insns = realloc(c->n_insns, batch->n_symbols * sizeof(*n_insns));
	const char **names;

	if (!n_insns)
		return -ENOMEM;
	c->n_insns = n_insns;
	names = realloc(c->names, batch->n_symbols * sizeof(*names));
	if (!names)
		return -ENOMEM;
	c->names = names;
	for (; c->n_symbols < batch->n_symbols; c->n_symbols++) {
		n_insns[c->n_symbols] = 0;
		names[c->n_symbols] = batch->symbols[c->n_symbols]->name;
	}
	names[PTD_NO_SYMBOL] = "[unknown]";
	return 0;
}

static int count_batch(struct count *c, const struct ptd_batch *batch)
{
	if (batch->n_symbols > c->n_symbols && count_grow(c, batch) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < batch->n_runs; i++) {
		const struct ptd_run *run = &batch->runs[i];

		for (size_t k = 0; k < run->n; k++) {
			const uint32_t symbol = run->block->insns[run->first + k].symbol;

			c->n_insns[symbol]++;
			if (c->n_shown < SHOWN)
				fprintf(c->output, "%" PRIx64 " %s\n", ptd_run_ip(run, k),
					c->names[symbol]);
			c->n_shown++;
		}
	}
	return 0;
}

static void count_finish(const struct count *c)
{
	for (size_t i = 0; i < c->n_symbols; i++)
		if (c->n_insns[i] > 0)
			fprintf(c->output, "%12" PRIu64 " %s\n", c->n_insns[i], c->names[i]);
}

/* --- one recording ---------------------------------------------------------------------------- */

struct job {
	pthread_t thread;
	const char *input, *output;
	int r;
};

static int decode(struct ptd_decoder *decoder, const char *output)
{
	struct count count = { .output = fopen(output, "w") };
	const struct ptd_batch *batch;
	int r;

	if (!count.output) {
		perror(output);
		return -1;
	}
	while ((r = ptd_decoder_next(decoder, &batch)) == 0 &&
	       (r = count_batch(&count, batch)) == 0)
		;
	if (ptd_decoder_message(decoder))
		fprintf(stderr, "%s\n", ptd_decoder_message(decoder));
	if (r == PTD_END)
		count_finish(&count);
	count_free(&count);
	if (fclose(count.output) != 0 && r >= 0) {
		perror(output);
		r = -1;
	}
	return r;
}

static void *run_job(void *userdata)
{
	struct job *job = userdata;
	const struct ptd_options options = { .size = sizeof(options), .input = job->input };
	struct ptd_decoder *decoder = NULL;
	char *message = NULL;

	job->r = ptd_decoder_new(&options, &decoder, &message);
	if (job->r < 0)
		fprintf(stderr, "%s\n", message ? message : "out of memory");
	else
		job->r = decode(decoder, job->output);
	free(message);
	ptd_decoder_free(decoder);
	return NULL;
}

int main(int argc, char **argv)
{
	struct job jobs[8] = { 0 };
	int n = 0, status = 0;

	if (argc < 3 || argc % 2 == 0 || argc > 2 * 8 + 1) {
		fprintf(stderr, "Usage: insns INPUT OUTPUT [INPUT OUTPUT]...\n");
		return 2;
	}
	for (int i = 1; i < argc; i += 2, n++) {
		jobs[n].input = argv[i];
		jobs[n].output = argv[i + 1];
		if (pthread_create(&jobs[n].thread, NULL, run_job, &jobs[n]) != 0)
			exit(1);
	}
	for (int i = 0; i < n; i++) {
		pthread_join(jobs[i].thread, NULL);
		if (jobs[i].r < 0)
			status = 1;
	}
	return status;
}
