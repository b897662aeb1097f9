/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * memtrace-pick -n N -s SEED [-p PID] LOW-HIGH... FILE...: picks N of the instructions of the
 * drmemtrace files whose addresses lie in one of the ranges (hexadecimal, without the end), each
 * with the same chance, and prints a line for each:
 *
 *	ADDRESS SYMBOL SINCE UNTIL BYTES
 *
 * the value of the last marker 101, 0 if there was none; the timestamps before and behind it, as in
 * marker 2, 0 if there is none behind it; and its bytes in hexadecimal. -p takes only files of that
 * process.
 */

#include <errno.h>
#include <error.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "decoder/drmemtrace/container.h"
#include "decoder/drmemtrace/tracerecord.h"
#include "tests/lib/reservoir.h"
#include "util/map.h"
#include "util/vec.h"

#define PICKS_MAX  100000
#define INSN_BYTES 16 /* bytes of an instruction, rounded up */
#define READ_SIZE  (RECORD_SIZE * 8192)

struct pick {
	uint64_t address, symbol;
	uint64_t since, until;
	size_t stamp; /* number of the timestamp before it, in its file */
	size_t file;
	uint8_t bytes[INSN_BYTES];
	size_t n_bytes;
};

struct range {
	uint64_t low, high;
};

/* A file that is being read. */
struct reading {
	size_t file;
	uint64_t pid, symbol, now;
	size_t n_stamps;
	uint8_t bytes[INSN_BYTES]; /* that the next instruction has, if any */
	size_t n_bytes;
	struct map known; /* address → index of its bytes */
	VEC(struct code { uint8_t bytes[INSN_BYTES]; }) codes;
};

static struct reservoir reservoir;
static struct pick *picks;
static size_t n_picks;
static uint64_t only_pid;
static VEC(struct range) ranges;

static bool is_wanted(uint64_t address)
{
	for (size_t i = 0; i < ranges.n; i++)
		if (address >= ranges.items[i].low && address < ranges.items[i].high)
			return true;
	return false;
}

/* The bytes of the instruction at @address, as they were announced last. */
static const uint8_t *bytes_at(struct reading *reading, uint64_t address)
{
	const uint64_t *index = map_get(&reading->known, address);

	if (reading->n_bytes > 0) {
		if (!index && (map_put(&reading->known, address, reading->codes.n) < 0 ||
			       vec_push(&reading->codes, {}) < 0))
			error(2, ENOMEM, "codes");
		index = map_get(&reading->known, address);
		memcpy(reading->codes.items[*index].bytes, reading->bytes, INSN_BYTES);
		reading->n_bytes = 0;
	}
	if (!index)
		error(1, 0, "the instruction at %#" PRIx64 " has no bytes", address);
	return reading->codes.items[*index].bytes;
}

static void take_insn(struct reading *reading, const struct record *rec)
{
	const uint8_t *bytes;
	uint64_t i;

	if (!is_wanted(rec->addr) || (only_pid && only_pid != reading->pid)) {
		reading->n_bytes = 0;
		return;
	}
	bytes = bytes_at(reading, rec->addr);
	i = reservoir_place(&reservoir);
	if (i >= reservoir.n_max)
		return;
	picks[i] = (struct pick){ .address = rec->addr,
				  .symbol = reading->symbol,
				  .since = reading->now,
				  .stamp = reading->n_stamps,
				  .file = reading->file,
				  .n_bytes = rec->size < INSN_BYTES ? rec->size : INSN_BYTES };
	memcpy(picks[i].bytes, bytes, INSN_BYTES);
	if (n_picks <= i)
		n_picks = i + 1;
}

/* A timestamp: it is the one behind what was picked since the last. */
static void take_time(struct reading *reading, uint64_t time)
{
	for (size_t i = 0; i < n_picks; i++)
		if (picks[i].file == reading->file && picks[i].stamp == reading->n_stamps)
			picks[i].until = time;
	reading->now = time;
	reading->n_stamps++;
}

static void take_record(struct reading *reading, const struct record *rec)
{
	if (record_is_insn(rec)) {
		take_insn(reading, rec);
	} else if (rec->type == RECORD_ENCODING) {
		if (rec->size > INSN_BYTES - reading->n_bytes || rec->size > 8)
			error(1, 0, "an encoding is too long");
		memcpy(reading->bytes + reading->n_bytes, &rec->addr, rec->size);
		reading->n_bytes += rec->size;
	} else if (rec->type == RECORD_PID) {
		reading->pid = rec->addr;
	} else if (record_is_marker(rec, MARKER_TIME)) {
		take_time(reading, rec->addr);
	} else if (record_is_marker(rec, MARKER_USER)) {
		reading->symbol = rec->addr;
	}
}

static void read_file(const char *path, size_t number)
{
	struct reading reading = { .file = number };
	struct container *container;
	static uint8_t bytes[READ_SIZE];
	size_t n;
	int r;

	r = container_open(path, &container);
	if (r < 0)
		error(2, -r, "%s", path);
	do {
		/* Components end with whole records. */
		r = container_read(container, bytes, sizeof(bytes), &n);
		if (r < 0)
			error(2, -r, "%s", path);
		for (size_t at = 0; at + RECORD_SIZE <= n; at += RECORD_SIZE) {
			const struct record rec = record_read(bytes + at);

			take_record(&reading, &rec);
		}
	} while (n > 0);
	container_free(container);
	map_deinit(&reading.known);
	vec_deinit(&reading.codes);
}

static bool read_range(const char *text)
{
	struct range range;
	int n = 0;

	if (sscanf(text, "%" SCNx64 "-%" SCNx64 "%n", &range.low, &range.high, &n) != 2 || text[n])
		return false;
	if (vec_push(&ranges, range) < 0)
		error(2, ENOMEM, "ranges");
	return true;
}

int main(int argc, char **argv)
{
	int option, i;

	while ((option = getopt(argc, argv, "n:s:p:")) != -1) {
		if (option == 'n')
			reservoir.n_max = strtoul(optarg, NULL, 0);
		else if (option == 's')
			reservoir.random = strtoull(optarg, NULL, 0);
		else if (option == 'p')
			only_pid = strtoull(optarg, NULL, 0);
		else
			return 2;
	}
	for (i = optind; i < argc && read_range(argv[i]); i++)
		;
	if (ranges.n == 0 || i == argc || reservoir.n_max == 0 || reservoir.n_max > PICKS_MAX)
		error(2, 0, "usage: memtrace-pick -n N -s SEED [-p PID] LOW-HIGH... FILE...");
	picks = calloc(reservoir.n_max, sizeof(*picks));
	if (!picks)
		error(2, ENOMEM, "picks");
	for (; i < argc; i++)
		read_file(argv[i], (size_t)i);
	for (size_t k = 0; k < n_picks; k++) {
		const struct pick *p = &picks[k];

		printf("%" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " ", p->address, p->symbol,
		       p->since, p->until);
		for (size_t b = 0; b < p->n_bytes; b++)
			printf("%02x", p->bytes[b]);
		putchar('\n');
	}
	free(picks);
	vec_deinit(&ranges);
	return 0;
}
