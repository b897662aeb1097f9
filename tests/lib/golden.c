/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/golden.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "ptd/decode.h"
#include "tests/lib/packets.h"
#include "tests/lib/perfbuild.h"
#include "tests/lib/transcript.h"

/* --- reading ---------------------------------------------------------------------------------- */

enum section { SECTION_NONE, SECTION_CODE, SECTION_PT, SECTION_RECORDS, SECTION_EXPECT };

static int append_text(char **text, const char *line)
{
	const size_t n = *text ? strlen(*text) : 0;
	char *grown = realloc(*text, n + strlen(line) + 2);

	if (!grown)
		return -ENOMEM;
	*text = grown;
	(void)sprintf(grown + n, "%s\n", line);
	return 0;
}

static int add_bytes(struct golden_piece *piece, const uint8_t *bytes, size_t size)
{
	if (size > sizeof(piece->bytes) - piece->size)
		return -EFBIG;
	memcpy(piece->bytes + piece->size, bytes, size);
	piece->size += size;
	return 0;
}

static int read_code(struct golden_piece *piece, const char *line)
{
	for (;;) {
		uint8_t byte;
		unsigned value;
		int n;

		if (sscanf(line, " %2x%n", &value, &n) != 1)
			break;
		byte = (uint8_t)value;
		line += n;
		if (add_bytes(piece, &byte, 1) < 0)
			return -EFBIG;
	}
	return line[strspn(line, " \t")] ? -EINVAL : 0;
}

static int read_packet(struct golden_piece *piece, const char *line)
{
	uint8_t bytes[64];
	const int n = packets_write(line, bytes);

	return n < 0 ? n : add_bytes(piece, bytes, (size_t)n);
}

static int read_line(struct golden *g, enum section section, const char *line)
{
	switch (section) {
	case SECTION_CODE:
		return read_code(&g->code[g->n_code - 1], line);
	case SECTION_PT:
		return read_packet(&g->pt[g->n_pt - 1], line);
	case SECTION_RECORDS:
		return append_text(&g->records, line);
	case SECTION_EXPECT:
		return append_text(&g->expect, line);
	default:
		return -EINVAL;
	}
}

static int read_cpus(struct golden *g, const char *line)
{
	for (;;) {
		struct golden_cpu cpu;
		int n;

		if (sscanf(line, " %" SCNx16 "/%" SCNx8 "%n", &cpu.family, &cpu.model, &n) != 2)
			return *line ? -EINVAL : 0;
		if (g->n_cpus == GOLDEN_CPUS_MAX)
			return -EFBIG;
		g->cpus[g->n_cpus++] = cpu;
		line += n;
	}
}

static int begin_section(struct golden *g, const char *line, enum section *ret_section)
{
	struct golden_piece piece = {};

	*ret_section = SECTION_NONE;
	if (strncmp(line, "covers ", 7) == 0 ||
	    sscanf(line, "mtc %" SCNu8 " %" SCNu8 " %" SCNu32 " %" SCNu32, &g->mtc_freq,
		   &g->nom_freq, &g->cpuid_15_eax, &g->cpuid_15_ebx) == 4)
		return 0;
	if (strncmp(line, "cpus ", 5) == 0)
		return read_cpus(g, line + 5);
	if (sscanf(line, "code %31s %" SCNx64, piece.name, &piece.address) >= 1) {
		if (g->n_code == GOLDEN_PIECES_MAX)
			return -EFBIG;
		g->code[g->n_code++] = piece;
		*ret_section = SECTION_CODE;
	} else if (strncmp(line, "pt", 2) == 0) {
		if (g->n_pt == GOLDEN_PIECES_MAX)
			return -EFBIG;
		(void)sscanf(line, "pt %" SCNu64, &piece.address);
		g->pt[g->n_pt++] = piece;
		*ret_section = SECTION_PT;
	} else if (strcmp(line, "records") == 0) {
		*ret_section = SECTION_RECORDS;
	} else if (strcmp(line, "expect") == 0) {
		*ret_section = SECTION_EXPECT;
	} else {
		return -EINVAL;
	}
	return 0;
}

static int read_lines(struct golden *g, FILE *f, unsigned *n_line)
{
	enum section section = SECTION_NONE;
	char line[512];
	int r = 0;

	for (*n_line = 1; r == 0 && fgets(line, sizeof(line), f); (*n_line)++) {
		size_t n = strcspn(line, "#\n");

		while (n > 0 && isspace((unsigned char)line[n - 1]))
			n--;
		line[n] = 0;
		if (n == 0)
			continue;
		if (isspace((unsigned char)line[0]))
			r = read_line(g, section, line + strspn(line, " \t"));
		else
			r = begin_section(g, line, &section);
		if (r < 0)
			return r;
	}
	return g->n_pt > 0 && g->expect ? 0 : -EINVAL;
}

int golden_read(const char *path, struct golden **ret_golden, unsigned *reterr_line)
{
	_cleanup_(golden_freep) struct golden *g = calloc(1, sizeof(*g));
	FILE *f;
	int r;

	*reterr_line = 0;
	if (!g)
		return -ENOMEM;
	f = fopen(path, "re");
	if (!f)
		return -errno;
	r = read_lines(g, f, reterr_line);
	(void)fclose(f);
	if (r < 0)
		return r;
	*ret_golden = TAKE(g);
	return 0;
}

struct golden *golden_free(struct golden *golden)
{
	if (!golden)
		return NULL;
	free(golden->records);
	free(golden->expect);
	free(golden);
	return NULL;
}

/* --- the input -------------------------------------------------------------------------------- */

static int complain(int error, const char *what)
{
	fprintf(stderr, "%s: %s\n", what, strerror(-error));
	return error;
}

static int write_file(const char *path, const void *bytes, size_t size)
{
	FILE *f = fopen(path, "we");
	int r = 0;

	if (!f)
		return complain(-errno, path);
	if (fwrite(bytes, 1, size, f) != size)
		r = -EIO;
	if (fclose(f) != 0)
		r = -EIO;
	return r < 0 ? complain(r, path) : 0;
}

static int put_mmap(struct perfbuild *b, const char *dir, const char *text, uint32_t pid,
		    uint32_t tid)
{
	struct {
		uint32_t pid, tid;
		uint64_t start, size, offset;
		uint32_t major, minor;
		uint64_t inode, generation;
		uint32_t prot, flags;
	} payload = { .pid = pid, .tid = tid, .prot = 5, .flags = 2 };
	char name[32], path[512];

	if (sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %31s", &payload.start, &payload.size,
		   &payload.offset, name) != 4)
		return -EINVAL;
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	perfbuild_record(b, PERF_RECORD_MMAP2, PERF_RECORD_MISC_USER, &payload, sizeof(payload),
			 path);
	return 0;
}

static int put_aux(struct perfbuild *b, const char *text)
{
	uint64_t payload[3];

	if (sscanf(text, "%" SCNx64 " %" SCNx64 " %" SCNx64, &payload[0], &payload[1],
		   &payload[2]) != 3)
		return -EINVAL;
	perfbuild_aux(b, payload[0], payload[1], payload[2]);
	return 0;
}

static int put_any(struct perfbuild *b, const char *text)
{
	uint64_t payload[8];
	size_t n_words = 0;
	uint32_t type;
	int n;

	if (sscanf(text, "%" SCNu32 "%n", &type, &n) != 1)
		return -EINVAL;
	for (text += n; n_words < ARRAY_LEN(payload); text += n, n_words++)
		if (sscanf(text, " %" SCNx64 "%n", &payload[n_words], &n) != 1)
			break;
	perfbuild_record(b, type, 0, payload, n_words * sizeof(*payload), NULL);
	return 0;
}

static int put_lost(struct perfbuild *b, bool samples, const char *text)
{
	uint64_t n;

	if (sscanf(text, "%" SCNu64, &n) != 1)
		return -EINVAL;
	if (samples)
		perfbuild_lost_samples(b, n);
	else
		perfbuild_lost(b, n);
	return 0;
}

static int put_switch(struct perfbuild *b, bool out, const char *text)
{
	uint32_t pid = 0, tid = 0;

	if (*text && sscanf(text, "%" SCNu32 "/%" SCNu32, &pid, &tid) != 2)
		return -EINVAL;
	perfbuild_switch_wide(b, out, pid, tid);
	return 0;
}

static int put_fork(struct perfbuild *b, const char *text, uint32_t ppid, uint32_t ptid)
{
	uint32_t pid, tid;

	if (sscanf(text, "%" SCNu32 "/%" SCNu32, &pid, &tid) != 2)
		return -EINVAL;
	perfbuild_fork(b, pid, ppid, tid, ptid);
	return 0;
}

static int put_record(struct perfbuild *b, const char *dir, const char *line)
{
	uint32_t cpu, pid, tid;
	char what[16];
	uint64_t time;
	int n = 0;

	if (sscanf(line, "@%" SCNu64 " %" SCNu32 " %" SCNu32 "/%" SCNu32 " %15s %n", &time, &cpu,
		   &pid, &tid, what, &n) < 5)
		return -EINVAL;
	line += n;
	perfbuild_at(b, time, cpu, pid, tid);
	if (strcmp(what, "comm") == 0 || strcmp(what, "exec") == 0)
		perfbuild_comm(b, what[0] == 'e', pid, tid, line);
	else if (strcmp(what, "exit") == 0)
		perfbuild_exit(b, pid, tid);
	else if (strcmp(what, "itrace") == 0)
		perfbuild_itrace(b, pid, tid);
	else if (strcmp(what, "fork") == 0)
		return put_fork(b, line, pid, tid);
	else if (strcmp(what, "mmap") == 0)
		return put_mmap(b, dir, line, pid, tid);
	else if (strcmp(what, "in") == 0 || strcmp(what, "out") == 0)
		return put_switch(b, what[0] == 'o', line);
	else if (strcmp(what, "enter") == 0 || strcmp(what, "leave") == 0)
		perfbuild_switch(b, what[0] == 'l');
	else if (strcmp(what, "aux") == 0)
		return put_aux(b, line);
	else if (strcmp(what, "record") == 0)
		return put_any(b, line);
	else if (strcmp(what, "lost") == 0 || strcmp(what, "lost_samples") == 0)
		return put_lost(b, what[4], line);
	else
		return -EINVAL;
	return 0;
}

/* A TSC tick is a nanosecond. */
static void set_clock(struct perfbuild *b)
{
	const uint64_t conversion[] = { 0, 1, 0 };

	memcpy(b->bytes + PERFBUILD_SLOTS + 8 * PERFABI_PT_TIME_SHIFT, conversion,
	       sizeof(conversion));
}

static int write_perfdata(const struct golden *g, const char *dir, const char *path)
{
	_cleanup_(freep) struct perfbuild *b = malloc(sizeof(*b));
	_cleanup_(freep) char *lines = strdup(g->records);

	if (!b || !lines)
		return -ENOMEM;
	perfbuild_begin(b, false);
	set_clock(b);
	for (char *rest, *line = strtok_r(lines, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		if (put_record(b, dir, line) < 0)
			return complain(-EINVAL, line);
	for (size_t i = 0; i < g->n_pt; i++)
		perfbuild_auxtrace(b, (uint32_t)i, (int32_t)g->pt[i].address, -1, 0, g->pt[i].bytes,
				   g->pt[i].size);
	perfbuild_end(b);
	return write_file(path, b->bytes, b->size);
}

/* --- decoding --------------------------------------------------------------------------------- */

static int decode(const struct ptd_options *options, bool slices, char **ret_transcript)
{
	struct ptd_decoder *d = NULL;
	_cleanup_(freep) char *message = NULL;
	_cleanup_(freep) char *text = NULL;
	size_t size;
	FILE *f;
	int r;

	r = ptd_decoder_new(options, &d, &message);
	if (r < 0) {
		fprintf(stderr, "%s\n", message ? message : strerror(-r));
		return r;
	}
	f = open_memstream(&text, &size);
	r = f ? transcript_print(d, slices, f) : -ENOMEM;
	if (f)
		(void)fclose(f);
	(void)ptd_decoder_free(d);
	if (r < 0)
		return complain(r, "decoding");
	*ret_transcript = TAKE(text);
	return 0;
}

int golden_decode(const struct golden *g, const char *dir, const char *engine,
		  const struct golden_cpu *cpu, char **ret_transcript)
{
	struct ptd_raw_code code[GOLDEN_PIECES_MAX];
	char paths[GOLDEN_PIECES_MAX][512], input[512];
	struct ptd_options options = {
		.size = sizeof(options),
		.engine = engine,
		.mtc_freq = g->mtc_freq,
		.nom_freq = g->nom_freq,
		.cpuid_15_eax = g->cpuid_15_eax,
		.cpuid_15_ebx = g->cpuid_15_ebx,
	};
	int r;

	if (cpu) {
		options.cpu_family = cpu->family;
		options.cpu_model = cpu->model;
	}
	for (size_t i = 0; i < g->n_code; i++) {
		(void)snprintf(paths[i], sizeof(paths[i]), "%s/%s", dir, g->code[i].name);
		r = write_file(paths[i], g->code[i].bytes, g->code[i].size);
		if (r < 0)
			return r;
		code[i] = (struct ptd_raw_code){ .path = paths[i],
						 .size = g->code[i].size,
						 .address = g->code[i].address };
	}

	(void)snprintf(input, sizeof(input), "%s/input", dir);
	if (g->records) {
		r = write_perfdata(g, dir, input);
		options.input = input;
	} else {
		r = write_file(input, g->pt[0].bytes, g->pt[0].size);
		options.raw_pt = input;
		options.raw_code = code;
		options.n_raw_code = g->n_code;
	}
	return r < 0 ? r : decode(&options, g->records, ret_transcript);
}
