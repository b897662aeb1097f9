/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * golden [-p | -k DIR] CASE…: decodes each golden case with every engine, and compares with what
 * the case expects (tests/lib/golden.h). -p prints what was decoded instead, to be compared by eye
 * when a case is written. -k keeps instead the inputs as perf.data files in directories below DIR,
 * with the names of the cases; of a bare stream, with the records of a thread that runs its code.
 */

#include <ctype.h>
#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "decoder/pt/packet.h"
#include "ptd/decode.h"
#include "tests/lib/golden.h"
#include "tests/lib/golden_input.h"
#include "tests/lib/iptversion.h"
#include "tests/lib/tempdir.h"
#include "tests/lib/transcript.h"

static const char *const engines[] = { "flow", "insn" };

/* White space counts only as being there. */
static bool same_words(const char *a, const char *b)
{
	for (;;) {
		a += strspn(a, " \t\n");
		b += strspn(b, " \t\n");
		while (*a && !isspace((unsigned char)*a) && *a == *b)
			a++, b++;
		if ((*a && !isspace((unsigned char)*a)) || (*b && !isspace((unsigned char)*b)))
			return false;
		if (!*a || !*b)
			return !a[strspn(a, " \t\n")] && !b[strspn(b, " \t\n")];
	}
}

DEFINE_CLEANUP(struct ptd_decoder *, ptd_decoder_free);

static int print_to(const struct ptd_options *options, bool names, FILE *f)
{
	_cleanup_(ptd_decoder_freep) struct ptd_decoder *d = NULL;
	_cleanup_(freep) char *message = NULL;
	int r = ptd_decoder_new(options, &d, &message);

	if (r < 0) {
		fprintf(stderr, "%s\n", message ? message : strerror(-r));
		return r;
	}
	r = transcript_print(d, options->input, names, f);
	if (r < 0)
		fprintf(stderr, "decoding: %s\n", strerror(-r));
	return r;
}

/* Return: the transcript, to be freed; NULL if there is none. */
static char *decode(const struct golden *golden, const char *engine, const struct golden_cpu *cpu)
{
	char dir[TEMPDIR_SIZE];
	struct golden_input input;
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int r;

	if (!f)
		error(1, errno, "cannot begin");
	tempdir_make("golden", dir);
	r = golden_input_write(golden, dir, &input);
	if (r == 0) {
		input.options.engine = engine;
		input.options.cpu_family = cpu ? cpu->family : 0;
		input.options.cpu_model = cpu ? cpu->model : 0;
		r = print_to(&input.options, golden->names, f);
	}
	tempdir_remove(dir);
	(void)fclose(f);
	if (r < 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* Take the marks that engine insn does not report out of @text, a transcript. */
static void remove_left_out(char *text)
{
	static const enum ptd_mark_kind left_out[] = { PTD_MARK_CFE,    PTD_MARK_EVD,
						       PTD_MARK_PEBS,   PTD_MARK_TRIG,
						       PTD_MARK_MWAIT,  PTD_MARK_PWRE,
						       PTD_MARK_EXSTOP, PTD_MARK_PWRX };
	bool is_left_out;

	for (char *line = text, *next; *line; line = is_left_out ? line : next) {
		const char *word = line + strspn(line, " \t");
		const size_t n = strcspn(word, " \n");

		next = line + strcspn(line, "\n");
		next += *next == '\n';
		is_left_out = false;
		for (size_t i = 0; i < ARRAY_LEN(left_out); i++) {
			const char *name = ptd_mark_kind_name(left_out[i]);

			is_left_out =
			    is_left_out || (strlen(name) == n && memcmp(word, name, n) == 0);
		}
		if (is_left_out)
			memmove(line, next, strlen(next) + 1);
	}
}

/* Leave only the addresses of instructions in @text, a transcript. */
static void keep_addresses(char *text)
{
	char *to = text;

	for (char *line = text, *next; *line; line = next) {
		const size_t n = strspn(line + strspn(line, " \t"), "0123456789abcdef");

		next = line + strcspn(line, "\n");
		next += *next == '\n';
		if (n < 4)
			continue;
		memmove(to, line, (size_t)(next - line));
		to += next - line;
	}
	*to = '\0';
}

/* Return: whether what comes out is @wanted to be what the case expects, and is, or neither. */
static bool try(const struct golden *golden, const char *path, const char *engine,
		const struct golden_cpu *cpu, bool wanted, bool print)
{
	_cleanup_(freep) char *got = decode(golden, engine, cpu);
	const bool is_insn = strcmp(engine, "insn") == 0, is_ahead = is_insn && ipt_reads_ahead();
	_cleanup_(freep) char *expected =
	    strdup(is_insn && golden->libipt ? golden->libipt : golden->expect);
	bool same;

	if (!got || !expected)
		return false;
	if (is_insn && !golden->libipt)
		remove_left_out(expected);
	if (is_ahead) {
		keep_addresses(expected);
		keep_addresses(got);
	}
	same = same_words(got, expected);
	if (is_ahead && (golden->is_not_for_ahead || !wanted))
		same = wanted;
	if (print || same != wanted)
		printf("%s, engine %s", path, engine);
	if ((print || same != wanted) && cpu)
		printf(", CPU %x/%x", cpu->family, cpu->model);
	if (print)
		printf(":\n%s", got);
	else if (same && !wanted)
		printf(": comes out the same without the errata of its CPU\n");
	else if (!same && wanted)
		printf(": expected\n%sbut there was\n%s", expected, got);
	return same == wanted;
}

/* Return: how many ways of decoding it failed. */
static unsigned try_all(const struct golden *golden, const char *path, bool print)
{
	const bool has_errata = golden->n_cpus > 0;
	unsigned n_failed = 0;

	for (size_t e = 0; e < ARRAY_LEN(engines); e++) {
		/* An erratum that libipt does not know makes no difference to engine insn. */
		if (!has_errata || !golden->libipt || strcmp(engines[e], "insn") != 0)
			n_failed += !try(golden, path, engines[e], NULL, !has_errata, print);
		for (size_t i = 0; i < golden->n_cpus; i++)
			n_failed += !try(golden, path, engines[e], &golden->cpus[i], true, print);
	}
	return n_failed;
}

static bool has_time(const struct golden_piece *pt)
{
	struct packet_reader reader = {};
	struct packet packet;

	for (size_t at = 0; at < pt->size; at += packet.size) {
		if (packet_read(&reader, pt->bytes + at, pt->size - at, &packet) != 0)
			packet = (struct packet){ .size = 1 };
		if (packet.type == PACKET_TSC && packet.size > 1)
			return true;
	}
	return false;
}

/* The kernel's code is in a copy of its memory. */
static void be_of_kernel(struct golden *golden, const struct golden_piece *code, FILE *records)
{
	const uint64_t end = code->address + 0x1000;

	golden->kcore[golden->n_kcore++] = *code;
	fprintf(records, "@0 0 0/0 kernel %" PRIx64 " 1000 %" PRIx64 " [kernel.kallsyms]_text\n",
		code->address, code->address);
	free(golden->kallsyms);
	if (asprintf(&golden->kallsyms,
		     "%" PRIx64 " T _text\n%" PRIx64 " T _stext\n%" PRIx64 " T _etext\n",
		     code->address, code->address, end) < 0)
		error(1, ENOMEM, "names");
}

/* Let the bare stream @golden be that of a thread. */
static void add_records(struct golden *golden)
{
	size_t size;
	FILE *f = open_memstream(&golden->records, &size);

	if (!f)
		error(1, errno, "records");
	fprintf(f, "@1 0 10/10 comm demo\n");
	for (size_t i = 0; i < golden->n_code; i++) {
		const struct golden_piece *code = &golden->code[i];

		if (code->address >> 63)
			be_of_kernel(golden, code, f);
		else
			fprintf(f, "@1 0 10/10 mmap %" PRIx64 " %zx 0 %s\n", code->address,
				code->size, code->name);
	}
	golden->events = true;
	golden->timeless = golden->threads = !has_time(&golden->pt[0]);
	if (!golden->timeless)
		fprintf(f, "@1 0 10/10 in 0/0\n");
	(void)fclose(f);
	golden->pt[0].cpu = golden->timeless ? -1 : 0;
	golden->pt[0].tid = golden->timeless ? 10 : -1;
}

static void keep(struct golden *golden, const char *path, const char *dir)
{
	struct golden_input input;
	char kept[4096];
	int r;

	if (!golden->records)
		add_records(golden);
	(void)snprintf(kept, sizeof(kept), "%s/%.*s", dir, (int)strcspn(basename(path), "."),
		       basename(path));
	if (mkdir(kept, 0777) < 0)
		error(1, errno, "%s", kept);
	golden->is_known = true;
	r = golden_input_write(golden, kept, &input);
	if (r < 0)
		error(1, -r, "%s", kept);
	printf("%s\n", input.options.input);
}

int main(int argc, char **argv)
{
	unsigned n_cases = 0, n_failed = 0;
	const char *dir = NULL;
	bool print = false;
	int opt;

	while ((opt = getopt(argc, argv, "k:p")) != -1) {
		if (opt == 'k')
			dir = optarg;
		else if (opt == 'p')
			print = true;
		else
			return 1;
	}
	for (int i = optind; i < argc; i++) {
		_cleanup_(golden_freep) struct golden *golden = NULL;
		unsigned line;
		const int r = golden_read(argv[i], &golden, &line);

		if (r < 0)
			error_at_line(1, -r, argv[i], line, "makes no sense as a golden case");
		if (dir) {
			keep(golden, argv[i], dir);
			continue;
		}
		n_cases++;
		n_failed += try_all(golden, argv[i], print);
	}
	if (dir)
		return 0;
	printf("%u golden cases on %zu engines, %u failed\n", n_cases, ARRAY_LEN(engines),
	       n_failed);
	return n_cases == 0 || n_failed > 0;
}
