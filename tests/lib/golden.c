/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/golden.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "decoder/pt/packet.h"
#include "tests/lib/packets.h"

enum section {
	SECTION_NONE,
	SECTION_CODE,
	SECTION_KCORE,
	SECTION_BPF,
	SECTION_KALLSYMS,
	SECTION_PT,
	SECTION_RECORDS,
	SECTION_MANIFEST,
	SECTION_EXPECT,
	SECTION_LIBIPT,
};

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
	case SECTION_KCORE:
		return read_code(&g->kcore[g->n_kcore - 1], line);
	case SECTION_BPF:
		return read_code(&g->bpf[g->n_bpf - 1], line);
	case SECTION_KALLSYMS:
		return append_text(&g->kallsyms, line);
	case SECTION_PT:
		return read_packet(&g->pt[g->n_pt - 1], line);
	case SECTION_RECORDS:
		return append_text(&g->records, line);
	case SECTION_MANIFEST:
		return append_text(&g->manifest, line);
	case SECTION_EXPECT:
		return append_text(&g->expect, line);
	case SECTION_LIBIPT:
		return append_text(&g->libipt, line);
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

static int read_form(struct golden *g, char *line)
{
	for (char *rest, *word = strtok_r(line, " ", &rest); word;
	     word = strtok_r(NULL, " ", &rest)) {
		if (strcmp(word, "snapshot") == 0)
			g->snapshot = true;
		else if (strcmp(word, "threads") == 0)
			g->threads = true;
		else if (strcmp(word, "timeless") == 0)
			g->timeless = true;
		else if (strcmp(word, "events") == 0)
			g->events = true;
		else if (strcmp(word, "own") == 0)
			g->own = true;
		else if (strcmp(word, "names") == 0)
			g->names = true;
		else if (strcmp(word, "all") == 0)
			g->all = true;
		else
			return -EINVAL;
	}
	return 0;
}

static int begin_section(struct golden *g, char *line, enum section *ret_section)
{
	struct golden_piece piece = { .cpu = -1, .tid = -1 };

	*ret_section = SECTION_NONE;
	if (strncmp(line, "covers ", 7) == 0)
		return 0;
	if (sscanf(line, "mtc %" SCNu8 " %" SCNu8 " %" SCNu32 " %" SCNu32, &g->mtc_freq,
		   &g->nom_freq, &g->cpuid_15_eax, &g->cpuid_15_ebx) == 4) {
		g->has_mtc = g->cpuid_15_eax > 0;
		g->has_cyc = true;
		return 0;
	}
	if (strncmp(line, "cpus ", 5) == 0)
		return read_cpus(g, line + 5);
	if (strncmp(line, "ahead ", 6) == 0) {
		g->is_not_for_ahead = true;
		return 0;
	}
	if (strncmp(line, "filter ", 7) == 0) {
		g->filter = strdup(line + 7);
		return g->filter ? 0 : -ENOMEM;
	}
	if (strncmp(line, "form ", 5) == 0)
		return read_form(g, line + 5);
	if (sscanf(line, "code %31s %" SCNx64, piece.name, &piece.address) >= 1) {
		if (g->n_code == GOLDEN_PIECES_MAX)
			return -EFBIG;
		g->code[g->n_code++] = piece;
		*ret_section = SECTION_CODE;
	} else if (sscanf(line, "kcore %" SCNx64, &piece.address) == 1) {
		if (g->n_kcore == GOLDEN_PIECES_MAX)
			return -EFBIG;
		g->kcore[g->n_kcore++] = piece;
		*ret_section = SECTION_KCORE;
	} else if (sscanf(line, "bpf %" SCNu32 " %" SCNx64 " %" SCNx64, &piece.id, &piece.tag,
			  &piece.address) == 3) {
		if (g->n_bpf == GOLDEN_PIECES_MAX)
			return -EFBIG;
		g->bpf[g->n_bpf++] = piece;
		*ret_section = SECTION_BPF;
	} else if (strcmp(line, "kallsyms") == 0) {
		*ret_section = SECTION_KALLSYMS;
	} else if (strncmp(line, "pt", 2) == 0) {
		if (g->n_pt == GOLDEN_PIECES_MAX)
			return -EFBIG;
		if (sscanf(line, "pt tid %" SCNd32 " %" SCNx64, &piece.tid, &piece.offset) < 1)
			(void)sscanf(line, "pt %" SCNd32 " %" SCNx64, &piece.cpu, &piece.offset);
		g->pt[g->n_pt++] = piece;
		*ret_section = SECTION_PT;
	} else if (strcmp(line, "records") == 0) {
		*ret_section = SECTION_RECORDS;
	} else if (strcmp(line, "manifest") == 0) {
		*ret_section = SECTION_MANIFEST;
	} else if (strcmp(line, "expect") == 0) {
		*ret_section = SECTION_EXPECT;
	} else if (strcmp(line, "libipt") == 0) {
		*ret_section = SECTION_LIBIPT;
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
	free(golden->kallsyms);
	free(golden->records);
	free(golden->manifest);
	free(golden->filter);
	free(golden->expect);
	free(golden->libipt);
	free(golden);
	return NULL;
}

/* Make the TSCs among the @size bytes of packets at @p later by @ticks. */
static void make_later(uint8_t *p, size_t size, uint64_t ticks)
{
	struct packet_reader reader = {};
	struct packet packet;

	for (size_t at = 0; packet_read(&reader, p + at, size - at, &packet) == 0;
	     at += packet.size) {
		const uint64_t tsc = packet.value + ticks;

		if (packet.type == PACKET_TSC)
			memcpy(p + at + 1, &tsc, 7);
	}
}

void golden_repeat(struct golden *golden, unsigned n, uint64_t ticks)
{
	for (size_t i = 0; i < golden->n_pt; i++) {
		struct golden_piece *pt = &golden->pt[i];
		const size_t size = pt->size;

		for (unsigned k = 1; k < n && pt->size + size <= sizeof(pt->bytes); k++) {
			memcpy(pt->bytes + pt->size, pt->bytes, size);
			make_later(pt->bytes + pt->size, size, k * ticks);
			pt->size += size;
		}
	}
}
