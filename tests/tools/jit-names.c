/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * jit-names ENGINE SNAPSHOT: decodes the snapshot and checks the name and the source line of each
 * instruction against the jitdumps in it, which it reads by itself.
 *
 * A version is one LOAD or MOVE; it holds from its stamp until the next one that overlaps it, or a
 * MOVE takes it away. At the time of its run, an instruction must have the name of the version that
 * holds at its address. If none holds and none was before, it must have that of the first one to
 * come (it is early), unless it is of a file. All others must have no name of JIT code. The dumps'
 * clock must be that of the records, as it is in the software PT source.
 *
 * The line is that of the last entry up to the instruction, in the DEBUG_INFO before the LOAD. If
 * the first entries are nowhere nearer than 64 bytes to the start of the code, these are too much.
 *
 * It prints how many instructions it met of each kind; exit status 1 if a name or a line was wrong,
 * or if no code of a JIT was met.
 */

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "ptd/decode.h"
#include "tests/lib/decoding.h"
#include "util/mapfile.h"
#include "util/vec.h"

#define FAULTS_SHOWN 20

struct version {
	uint64_t start, end; /* of its code */
	uint64_t from, to;   /* in time */
	uint64_t index;
	const char *name;
	uint64_t noted_at;    /* the address in the LOAD */
	const uint8_t *debug; /* its record DEBUG_INFO; NULL: there is none */
};

struct dump {
	uint32_t pid;
	struct mapfile file;
	uint64_t low, high;           /* all versions lie between */
	const uint8_t *debug;         /* the last record DEBUG_INFO */
	uint64_t nearest;             /* of its first entries to the start of the code */
	VEC(struct version) versions; /* in file order */
};

enum kind { KIND_UNCHECKED, KIND_OTHER, KIND_NAMED, KIND_EARLY, KIND_BEFORE, KIND_AFTER, N_KINDS };

/* What a block's instructions must be called, where it stands, in a stretch of time. */
struct checked {
	uint32_t pid;
	uint64_t base, from, to;
	bool is_checked;
	uint8_t kinds[64];
};

static struct ptd_decoder *decoder;
static VEC(struct dump) dumps;
static VEC(struct checked) blocks;
static uint64_t n_of[N_KINDS], n_faults, n_lines;

/* --- the jitdumps ----------------------------------------------------------------------------- */

static uint64_t get(const uint8_t *at, size_t width)
{
	uint64_t n = 0;

	memcpy(&n, at, width);
	return n;
}

/* A version begins: those that it overlaps end. */
static void begin(struct dump *d, const struct version *v)
{
	for (size_t i = 0; i < d->versions.n; i++) {
		struct version *old = &d->versions.items[i];

		if (old->to == UINT64_MAX && old->start < v->end && v->start < old->end)
			old->to = v->from;
	}
	if (d->versions.n == 0 || v->start < d->low)
		d->low = v->start;
	if (v->end > d->high)
		d->high = v->end;
	if (vec_push(&d->versions, *v) < 0)
		error(2, ENOMEM, "versions");
}

static void read_load(struct dump *d, const uint8_t *record)
{
	const uint64_t start = get(record + 32, 8), size = get(record + 40, 8);
	const bool has_lines = d->debug && get(d->debug + 16, 8) == start;

	if (size > 0)
		begin(d, &(struct version){ .start = start,
					    .end = start + size,
					    .from = get(record + 8, 8),
					    .to = UINT64_MAX,
					    .index = get(record + 48, 8),
					    .name = (const char *)record + 56,
					    .noted_at = start,
					    .debug = has_lines ? d->debug : NULL });
}

static void read_debug(struct dump *d, const uint8_t *record)
{
	const uint64_t start = get(record + 16, 8), n = get(record + 24, 8);

	d->debug = record;
	if (n > 0 && (get(record + 32, 8) < start || get(record + 32, 8) - start < d->nearest))
		d->nearest = get(record + 32, 8) < start ? 0 : get(record + 32, 8) - start;
}

static void read_move(struct dump *d, const uint8_t *record)
{
	const uint64_t start = get(record + 40, 8), index = get(record + 56, 8);

	for (size_t i = d->versions.n; i > 0; i--) {
		struct version v = d->versions.items[i - 1];

		if (v.index != index)
			continue;
		if (d->versions.items[i - 1].to == UINT64_MAX && v.start == get(record + 32, 8))
			d->versions.items[i - 1].to = get(record + 8, 8);
		v.end = start + (v.end - v.start);
		v.start = start;
		v.from = get(record + 8, 8);
		v.to = UINT64_MAX;
		begin(d, &v);
		return;
	}
}

static void read_dump(const char *path)
{
	struct dump d = { .nearest = UINT64_MAX };
	const uint8_t *at, *end;
	size_t size;
	int r;

	if (sscanf(strrchr(path, '/'), "/jit-%" SCNu32, &d.pid) != 1)
		error(2, 0, "%s: not a name of a jitdump", path);
	r = mapfile_read(&d.file, AT_FDCWD, path);
	if (r < 0)
		error(2, -r, "%s", path);
	if (d.file.size < 40 || get(d.file.bytes, 4) != 0x4a695444)
		error(2, 0, "%s: not a jitdump", path);

	end = d.file.bytes + d.file.size;
	for (at = d.file.bytes + get(d.file.bytes + 8, 4); end - at >= 16; at += size) {
		size = get(at + 4, 4);
		if (size < 16 || (size_t)(end - at) < size)
			break;
		if (get(at, 4) == 0)
			read_load(&d, at);
		else if (get(at, 4) == 1)
			read_move(&d, at);
		else if (get(at, 4) == 2)
			read_debug(&d, at);
	}
	printf("%s: %zu versions, %td bytes at its end are of no whole record\n", path,
	       d.versions.n, end - at);
	if (vec_push(&dumps, d) < 0)
		error(2, ENOMEM, "dumps");
}

static void read_dumps(const char *snapshot)
{
	char pattern[4096];
	glob_t found;

	snprintf(pattern, sizeof(pattern), "%s/jit/jit-*.dump", snapshot);
	if (glob(pattern, 0, NULL, &found) != 0)
		error(2, 0, "%s: no jitdump in it", snapshot);
	for (size_t i = 0; i < found.gl_pathc; i++)
		read_dump(found.gl_pathv[i]);
	globfree(&found);
}

/* --- the check -------------------------------------------------------------------------------- */

/* The line of the code at @ip in @v: file and number, or nothing. */
static void expect_line(const struct dump *d, const struct version *v, uint64_t ip,
			char ret_line[static 4200])
{
	const uint64_t bias = d->nearest == 64 ? 64 : 0, at = v->noted_at + (ip - v->start);
	const uint64_t n = v->debug ? get(v->debug + 24, 8) : 0;
	const uint8_t *entry = v->debug + 32;
	const char *file = "";

	ret_line[0] = '\0';
	for (uint64_t i = 0; i < n; i++) {
		const char *name = (const char *)entry + 16;

		if (strcmp(name, "\xff") != 0)
			file = name;
		if (get(entry, 8) - bias <= at)
			snprintf(ret_line, 4200, "%.4096s:%" PRIu64, file, get(entry + 8, 4));
		entry += 16 + strlen(name) + 1;
	}
}

/* Check the line of an instruction of JIT code in @v. */
static void check_line(const struct dump *d, const struct version *v, const struct ptd_block *block,
		       uint64_t address, uint64_t ip)
{
	struct ptd_position positions[PTD_POSITIONS_MAX];
	const int n = ptd_decoder_positions(decoder, block->object, address, positions);
	char expected[4200], got[4200] = "";

	expect_line(d, v, ip, expected);
	if (n == 1)
		snprintf(got, sizeof(got), "%.4096s:%" PRIu32, positions[0].file,
			 positions[0].line);
	n_lines += n == 1;
	if (strcmp(got, expected) != 0 && n_faults++ < FAULTS_SHOWN)
		printf("%#" PRIx64 " is line '%s', but must be '%s'\n", ip, got, expected);
}

/* What the instruction at @ip must be called at @t. */
static enum kind expect(const struct dump *d, uint64_t ip, uint64_t t, const char **ret_name,
			const struct version **ret_version)
{
	const struct version *next = NULL;
	bool was_one = false;

	for (size_t i = 0; i < d->versions.n; i++) {
		const struct version *v = &d->versions.items[i];

		if (ip < v->start || ip >= v->end)
			continue;
		*ret_name = v->name;
		*ret_version = v;
		if (v->from <= t && t < v->to)
			return KIND_NAMED;
		if (v->from <= t)
			was_one = true;
		else if (!next || v->from < next->from)
			next = v;
	}
	if (was_one)
		return KIND_AFTER;
	if (!next)
		return KIND_OTHER;
	*ret_name = next->name;
	return KIND_EARLY;
}

static void check_insn(const struct dump *d, const struct ptd_batch *batch,
		       const struct ptd_run *run, size_t i, struct checked *c)
{
	const struct ptd_block *block = run->block;
	const uint64_t ip = run->base + block->insns[i].offset;
	const char *name = batch->symbols[block->insns[i].symbol]->name, *expected = "";
	const bool is_jit = strcmp(block->object->name, "[jit]") == 0;
	const struct version *version = NULL;
	enum kind kind = expect(d, ip, run->t, &expected, &version);
	bool right;

	if (kind == KIND_EARLY && !is_jit)
		kind = KIND_BEFORE;
	if (kind == KIND_NAMED || kind == KIND_EARLY)
		right = is_jit && strcmp(name, expected) == 0;
	else
		right = !is_jit || name[0] == '\0';
	c->kinds[i] = (uint8_t)kind;
	if (kind == KIND_NAMED && right)
		check_line(d, version, block, block->address + block->insns[i].offset, ip);
	if (right || n_faults++ >= FAULTS_SHOWN)
		return;
	printf("%#" PRIx64 " at %" PRIu64 " is '%s' of %s, but must be '%s' (%d)\n", ip, run->t,
	       name, block->object->name, expected, kind);
}

/* When, around @t, the same versions hold as at @t, for the block at @base. */
static void find_window(const struct dump *d, uint64_t base, size_t size, uint64_t t,
			struct checked *c)
{
	c->from = 0;
	c->to = UINT64_MAX;
	for (size_t i = 0; i < d->versions.n; i++) {
		const struct version *v = &d->versions.items[i];
		const uint64_t times[] = { v->from, v->to };

		if (v->start >= base + size || base >= v->end)
			continue;
		for (size_t k = 0; k < 2; k++) {
			if (times[k] <= t && times[k] > c->from)
				c->from = times[k];
			if (times[k] > t && times[k] < c->to)
				c->to = times[k];
		}
	}
}

static struct checked *check_block(const struct dump *d, const struct ptd_batch *batch,
				   const struct ptd_run *run)
{
	const struct ptd_block *block = run->block;
	struct checked *c;

	while (blocks.n <= block->id)
		if (vec_push(&blocks, {}) < 0)
			error(2, ENOMEM, "blocks");
	c = &blocks.items[block->id];
	if (!c->is_checked || c->pid != d->pid || c->base != run->base || run->t < c->from ||
	    run->t >= c->to) {
		*c = (struct checked){ .pid = d->pid, .base = run->base };
		find_window(d, run->base, block->size, run->t, c);
	}
	/* A block may reach further than the code that ran of it: only that is checked. */
	for (size_t i = run->first; i < (size_t)run->first + run->n; i++)
		if (c->kinds[i] == KIND_UNCHECKED)
			check_insn(d, batch, run, i, c);
	c->is_checked = true;
	return c;
}

static void check_run(const struct ptd_batch *batch, const struct ptd_run *run)
{
	const struct dump *d = NULL;
	struct checked *c;

	for (size_t i = 0; i < dumps.n; i++)
		if (dumps.items[i].pid == batch->slice->pid)
			d = &dumps.items[i];
	if (!d || (run->block->object->name[0] != '[' &&
		   (run->base >= d->high || run->base + run->block->size <= d->low))) {
		n_of[KIND_OTHER] += run->n;
		return;
	}
	c = check_block(d, batch, run);
	for (size_t i = run->first; i < (size_t)run->first + run->n; i++)
		n_of[c->kinds[i]]++;
}

static bool report(uint64_t n_early)
{
	printf("%" PRIu64 " named, %" PRIu64 " early, %" PRIu64
	       " of files before their stamp, %" PRIu64 " after their time, %" PRIu64
	       " others, %" PRIu64 " of different code have lines, %" PRIu64 " wrong\n",
	       n_of[KIND_NAMED], n_of[KIND_EARLY], n_of[KIND_BEFORE], n_of[KIND_AFTER],
	       n_of[KIND_OTHER], n_lines, n_faults);
	if (n_early != n_of[KIND_EARLY])
		printf("the decoder counted %" PRIu64 " early ones\n", n_early);
	return n_faults > 0 || n_early != n_of[KIND_EARLY] || n_of[KIND_NAMED] == 0;
}

int main(int argc, char **argv)
{
	struct ptd_options options = { .size = sizeof(options), .force = true };
	const struct ptd_batch *batch;
	uint64_t n_early;

	if (argc != 3)
		error(2, 0, "usage: jit-names ENGINE SNAPSHOT");
	options.engine = argv[1];
	options.input = argv[2];

	read_dumps(options.input);
	decoder = decoding_new(&options);
	while ((batch = decoding_next(decoder, options.input)))
		for (size_t i = 0; i < batch->n_runs; i++)
			check_run(batch, &batch->runs[i]);
	n_early = ptd_decoder_stats(decoder)->n_insns_early;
	ptd_decoder_free(decoder);
	return report(n_early);
}
