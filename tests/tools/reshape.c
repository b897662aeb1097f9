/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * reshape [-p] FORM DATA OUT: writes the perf.data of a snapshot in another form in which perf may
 * have recorded the same:
 *
 *	pipe      the pipe form
 *	threads   OUT is a directory, with the switches in files of their own (perf record
 *	          --threads; the PT is where perf can read it)
 *	zstd      the kernel's records compressed (perf record -z)
 *	zstd2     the same as newer perfs write it
 *	full      full-trace mode: each CPU's PT in several pieces, cut anywhere
 *	overlap   snapshot mode: each CPU's PT in several pieces that overlap
 *	sample    each CPU's PT in overlapping samples (perf record --aux-sample)
 *	repeat=N  full-trace mode: PT and switches N times, each time later
 *	ctc=N     by a CPU that says of its TSC that it ticks N times with each tick of the crystal
 *	uncycled  without CYC packets: padding is in their place
 *
 * Pieces and samples end anywhere, which is harder to read than what perf writes; and a record of a
 * type that nobody knows leads the full trace. With -p they end between packets, and there is no
 * such record.
 */

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <intel-pt.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/base.h"
#include "tests/lib/recordwalk.h"
#include "util/mapfile.h"
#include "util/perf/codec.h"
#include "util/perf/perfabi.h"

#define N_FILES      3     /* of threads */
#define CHUNK        30000 /* of records to be compressed, at the most */
#define OVERLAP_MIN  32768 /* of one CPU's PT */
#define SAMPLE_SIZE  48000
#define SAMPLE_STEP  24000
#define UNKNOWN_TYPE 200
#define SAMPLE_ID    UINT64_C(0x5a)
#define ATTR_SIZE    120
#define FEATURES_MAX 32
#define CPUS_MAX     4 /* whose PT is put into samples */

enum form { PIPE, THREADS, ZSTD, ZSTD2, FULL, OVERLAP, SAMPLE, UNCYCLED, REPEAT, CTC };

struct reshape {
	enum form form;
	bool between_packets;
	unsigned int n_times, ctc;
	struct mapfile in;
	struct perfabi_header header;
	struct recordwalk walk;
	const char *out_path;
	FILE *out, *parts[N_FILES];

	/* zstd */
	ZSTD_CCtx *stream;
	uint8_t chunk[CHUNK + UINT16_MAX];
	size_t chunk_size;
};

static void put(FILE *f, const void *bytes, size_t size)
{
	if (size > 0 && fwrite(bytes, 1, size, f) != size)
		error(1, errno, "write");
}

static void put_header(FILE *f, uint32_t type, uint16_t misc, size_t size)
{
	const struct perf_event_header header = { .type = type,
						  .misc = misc,
						  .size = (uint16_t)(sizeof(header) + size) };

	put(f, &header, sizeof(header));
}

/* PT of the AUXTRACE record @r: its head, and what follows it. */
static struct record_auxtrace aux_of(const struct reshape *s, const struct recordwalk_record *r,
				     const uint8_t **ret_bytes)
{
	struct record_auxtrace a;

	if (record_read_auxtrace(cursor_from(s->in.bytes + r->offset + 8, RECORD_AUXTRACE_SIZE - 8),
				 &a) < 0)
		error(1, 0, "an AUXTRACE is too short");
	*ret_bytes = s->in.bytes + r->offset + RECORD_AUXTRACE_SIZE;
	return a;
}

static void put_aux_head(FILE *f, const struct record_auxtrace *a)
{
	uint8_t record[RECORD_AUXTRACE_SIZE];

	put(f, record, record_write_auxtrace(a, record, sizeof(record)));
}

static void put_aux(FILE *f, struct record_auxtrace a, uint64_t offset, const uint8_t *bytes,
		    size_t size)
{
	a.offset = offset;
	a.size = size;
	put_aux_head(f, &a);
	put(f, bytes, size);
}

/* Where the packets of @pt begin: a decoder, to be freed. */
static struct pt_packet_decoder *open_packets(const uint8_t *pt, size_t size)
{
	struct pt_config config;
	struct pt_packet_decoder *d;

	pt_config_init(&config);
	config.begin = (uint8_t *)(uintptr_t)pt;
	config.end = config.begin + size;
	d = pt_pkt_alloc_decoder(&config);
	if (!d || pt_pkt_sync_set(d, 0) < 0)
		error(1, 0, "cannot decode the packets");
	return d;
}

/* Where a piece of @pt ends that is to end at @at. */
static size_t end_of_piece(const struct reshape *s, const uint8_t *pt, size_t size, size_t at)
{
	struct pt_packet_decoder *d;
	struct pt_packet packet;
	uint64_t offset = 0;

	if (!s->between_packets || at >= size)
		return at < size ? at : size;
	d = open_packets(pt, size);
	while (offset < at && pt_pkt_next(d, &packet, sizeof(packet)) > 0)
		(void)pt_pkt_get_offset(d, &offset);
	pt_pkt_free_decoder(d);
	return offset < at ? size : offset;
}

/* Forms of one CPU's PT. */

static void put_full(const struct reshape *s, const struct recordwalk_record *r)
{
	static const size_t steps[] = { 4001, 1, 33333, 7, 4096 };
	const uint8_t *bytes;
	const struct record_auxtrace a = aux_of(s, r, &bytes);
	size_t n;

	for (size_t at = 0, i = 0; at < a.size; at += n, i++) {
		n = end_of_piece(s, bytes, a.size, at + steps[i % ARRAY_LEN(steps)]) - at;
		put_aux(s->out, a, at, bytes + at, n);
	}
}

/* perf reads pipes in multiples of eight. */
static void put_padded(const struct reshape *s, const struct recordwalk_record *r)
{
	const uint8_t *bytes;
	struct record_auxtrace a = aux_of(s, r, &bytes);
	const size_t size = a.size, padding = (8 - size % 8) % 8;

	a.size += padding;
	put_aux_head(s->out, &a);
	put(s->out, bytes, size);
	put(s->out, (const uint8_t[8]){}, padding);
}

static void put_overlapping(const struct reshape *s, const struct recordwalk_record *r)
{
	const uint8_t *bytes;
	const struct record_auxtrace a = aux_of(s, r, &bytes);
	const size_t third = a.size / 3;
	size_t end;

	/* Where there is no PSB in an overlap, nothing proves it. */
	if (a.size < OVERLAP_MIN) {
		put_aux(s->out, a, 0, bytes, a.size);
		return;
	}
	/* The offsets are those in a ring, and say nothing. */
	put_aux(s->out, a, 0, bytes, end_of_piece(s, bytes, a.size, 2 * third));
	end = end_of_piece(s, bytes, a.size, third / 2 + 2 * third);
	put_aux(s->out, a, 0, bytes + third / 2, end - third / 2);
	put_aux(s->out, a, 0, bytes + third, a.size - third);
}

static void put_samples(const struct reshape *s, const struct recordwalk_record *r)
{
	const uint8_t *bytes;
	const struct record_auxtrace a = aux_of(s, r, &bytes);

	for (size_t at = 0;; at += SAMPLE_STEP) {
		const size_t n = end_of_piece(s, bytes, a.size, at + SAMPLE_SIZE) - at;
		/* identifier, IP, thread, time, CPU, PT */
		const uint64_t fields[] = {
			SAMPLE_ID + (uint32_t)a.cpu, 0, 0, 1 + at, (uint32_t)a.cpu, (n + 7) / 8 * 8
		};

		put_header(s->out, PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
			   sizeof(fields) + fields[ARRAY_LEN(fields) - 1]);
		put(s->out, fields, sizeof(fields));
		put(s->out, bytes + at, n);
		put(s->out, (const uint8_t[8]){}, fields[ARRAY_LEN(fields) - 1] - n);
		if (n == a.size - at)
			return;
	}
}

/* Which event's samples are which CPU's. */
static void put_id_index(const struct reshape *s)
{
	struct record_id_index_entry entries[CPUS_MAX];
	static uint8_t record[16 + sizeof(entries)];

	for (uint32_t cpu = 0; cpu < CPUS_MAX; cpu++)
		entries[cpu] = (struct record_id_index_entry){
			.id = SAMPLE_ID + cpu, .idx = cpu, .cpu = cpu, .tid = -1
		};
	put(s->out, record, record_write_id_index(entries, CPUS_MAX, record, sizeof(record)));
}

/* Compression. */

static void flush_chunk(struct reshape *s)
{
	static uint8_t packed[2 * (CHUNK + UINT16_MAX)];
	ZSTD_inBuffer in = { .src = s->chunk, .size = s->chunk_size };
	ZSTD_outBuffer out = { .dst = packed, .size = sizeof(packed) };
	uint64_t size;

	if (s->chunk_size == 0)
		return;
	while (in.pos < in.size)
		if (ZSTD_isError(ZSTD_compressStream2(s->stream, &out, &in, ZSTD_e_flush)))
			error(1, 0, "zstd");
	size = out.pos;
	if (s->form == ZSTD) {
		put_header(s->out, PERFABI_COMPRESSED, 0, size);
		put(s->out, packed, size);
	} else {
		put_header(s->out, PERFABI_COMPRESSED2, 0, sizeof(size) + (size + 7) / 8 * 8);
		put(s->out, &size, sizeof(size));
		put(s->out, packed, size);
		put(s->out, (const uint8_t[8]){}, (8 - size % 8) % 8);
	}
	s->chunk_size = 0;
}

/* Chunks end anywhere, not only between records. */
static void compress(struct reshape *s, const struct recordwalk_record *r)
{
	memcpy(s->chunk + s->chunk_size, s->in.bytes + r->offset, r->size);
	s->chunk_size += r->size;
	if (s->chunk_size < CHUNK)
		return;
	const size_t rest = 11;
	uint8_t kept[11];

	s->chunk_size -= rest;
	memcpy(kept, s->chunk + s->chunk_size, rest);
	flush_chunk(s);
	memcpy(s->chunk, kept, rest);
	s->chunk_size = rest;
}

/* Repetition. */

/* When the trace ends, and the next one may begin. */
static uint64_t period_of(const struct reshape *s)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < s->walk.records.n; i++) {
		const uint64_t t = s->walk.records.items[i].time;

		first = t && t < first ? t : first;
		last = t > last ? t : last;
	}
	return last - first + 1000000;
}

/* Add @ticks to each TSC packet. */
static void shift_tsc(uint8_t *pt, size_t size, uint64_t ticks)
{
	struct pt_packet_decoder *d = open_packets(pt, size);
	struct pt_packet packet;
	uint64_t offset, tsc;

	while (pt_pkt_get_offset(d, &offset) == 0 && pt_pkt_next(d, &packet, sizeof(packet)) > 0) {
		if (packet.type != ppt_tsc)
			continue;
		tsc = packet.payload.tsc.tsc + ticks;
		memcpy(pt + offset + 1, &tsc, 7);
	}
	pt_pkt_free_decoder(d);
}

/* The clock of the emulator ticks once a nanosecond. */
static void put_repeated(struct reshape *s)
{
	const uint64_t period = period_of(s);

	for (unsigned int k = 0; k < s->n_times; k++) {
		for (size_t i = 0; i < s->walk.records.n; i++) {
			const struct recordwalk_record *r = &s->walk.records.items[i];
			_cleanup_(freep) uint8_t *copy = malloc(r->size);
			struct trailer trailer;
			struct cursor body;
			const uint8_t *bytes;

			if (!copy)
				error(1, ENOMEM, "copy");
			memcpy(copy, s->in.bytes + r->offset, r->size);
			if (r->type == PERFABI_AUXTRACE) {
				struct record_auxtrace a = aux_of(s, r, &bytes);

				a.reference += k * period;
				shift_tsc(copy + RECORD_AUXTRACE_SIZE, a.size, k * period);
				put_aux(s->out, a, k * a.size, copy + RECORD_AUXTRACE_SIZE, a.size);
			} else if (r->type == PERF_RECORD_SWITCH_CPU_WIDE && k > 0) {
				body = cursor_from(copy, r->size);
				if (trailer_take(&body, PERFABI_SAMPLE_TYPE, &trailer) < 0)
					error(1, 0, "a switch without a trailer");
				trailer.time += k * period;
				trailer_write(&trailer, copy + r->size - TRAILER_SIZE);
				put(s->out, copy, r->size);
			}
		}
	}
}

/* Records. */

static void put_info(const struct reshape *s, const struct recordwalk_record *r)
{
	uint8_t copy[UINT16_MAX];
	const uint64_t off = 0, ratio[] = { s->ctc, 1 };

	memcpy(copy, s->in.bytes + r->offset, r->size);
	if (s->form == FULL || s->form == REPEAT)
		memcpy(copy + 16 + 8 * PERFABI_PT_SNAPSHOT_MODE, &off, sizeof(off));
	if (s->form == CTC)
		memcpy(copy + 16 + 8 * PERFABI_PT_TSC_CTC_N, ratio, sizeof(ratio));
	put(s->out, copy, r->size);
}

static void put_record(struct reshape *s, const struct recordwalk_record *r)
{
	const bool is_aux = r->type == PERFABI_AUXTRACE;
	const bool is_switch = r->type == PERF_RECORD_SWITCH_CPU_WIDE;

	if (r->type == PERFABI_AUXTRACE_INFO)
		put_info(s, r);
	else if (is_aux && s->form == PIPE)
		put_padded(s, r);
	else if (is_aux && s->form == FULL)
		put_full(s, r);
	else if (is_aux && s->form == OVERLAP)
		put_overlapping(s, r);
	else if (is_aux && s->form == SAMPLE)
		put_samples(s, r);
	else if (is_aux && s->form == REPEAT)
		return;
	else if (r->type < PERF_RECORD_MAX && (s->form == ZSTD || s->form == ZSTD2))
		compress(s, r);
	else if (s->form == THREADS && is_switch)
		put(s->parts[r->time % N_FILES], s->in.bytes + r->offset, r->size);
	else
		put(s->out, s->in.bytes + r->offset, r->size);
}

static void put_records(struct reshape *s)
{
	/* What nobody knows is skipped, but perf gives up on it. */
	if (s->form == FULL && !s->between_packets)
		put_header(s->out, UNKNOWN_TYPE, 0, 0);
	if (s->form == SAMPLE)
		put_id_index(s);
	for (size_t i = 0; i < s->walk.records.n; i++) {
		if (s->walk.records.items[i].type == PERFABI_AUXTRACE)
			flush_chunk(s);
		put_record(s, &s->walk.records.items[i]);
	}
	flush_chunk(s);
	if (s->form == REPEAT)
		put_repeated(s);
}

/* The file around them. */

struct feature {
	unsigned int number;
	const uint8_t *bytes;
	uint64_t size;
};

static size_t features_of(const struct reshape *s, struct feature features[static FEATURES_MAX + 1])
{
	static const uint64_t version = 1;
	static const uint32_t zstd[] = { 1, 1, 1, 1, CHUNK + UINT16_MAX };
	const uint8_t *at = s->in.bytes + s->header.data.offset + s->header.data.size;
	size_t n = 0;

	for (unsigned int i = 0; i < FEATURES_MAX; i++) {
		struct perfabi_section section;

		if (i == PERFABI_FEATURE_DIR_FORMAT && s->form == THREADS)
			features[n++] =
			    (struct feature){ i, (const uint8_t *)&version, sizeof(version) };
		if (i == PERFABI_FEATURE_COMPRESSED && (s->form == ZSTD || s->form == ZSTD2))
			features[n++] = (struct feature){ i, (const uint8_t *)zstd, sizeof(zstd) };
		if (!(s->header.features[0] >> i & 1))
			continue;
		memcpy(&section, at, sizeof(section));
		at += sizeof(section);
		/* The index of AUXTRACE records is another one now. */
		if (i != PERFABI_FEATURE_AUXTRACE)
			features[n++] =
			    (struct feature){ i, s->in.bytes + section.offset, section.size };
	}
	return n;
}

/* In a pipe, the description of tracepoints is a record whose size does not count it. */
static void put_tracing_data(const struct reshape *s, const struct feature *feature)
{
	const uint32_t padding = (uint32_t)(-feature->size % 8);
	const uint32_t size = (uint32_t)feature->size + padding;

	put_header(s->out, PERFABI_HEADER_TRACING_DATA, 0, sizeof(size));
	put(s->out, &size, sizeof(size));
	put(s->out, feature->bytes, feature->size);
	put(s->out, (const uint8_t[8]){}, padding);
}

static void put_pipe(struct reshape *s)
{
	const uint64_t head[] = { PERFABI_MAGIC, PERFABI_PIPE_HEADER };
	struct feature features[FEATURES_MAX + 1];
	const size_t n = features_of(s, features);
	const uint8_t *attr = s->in.bytes + s->header.attrs.offset;

	put(s->out, head, sizeof(head));
	for (uint64_t left = s->header.attrs.size; left > 0; left -= s->header.attr_size) {
		const size_t size = s->header.attr_size - sizeof(struct perfabi_section);
		struct perfabi_section ids;

		memcpy(&ids, attr + size, sizeof(ids));
		put_header(s->out, PERFABI_HEADER_ATTR, 0, size + ids.size);
		put(s->out, attr, size);
		put(s->out, s->in.bytes + ids.offset, ids.size);
		attr += s->header.attr_size;
	}
	for (size_t i = 0; i < n; i++) {
		const uint64_t number = features[i].number;

		if (number == PERFABI_FEATURE_TRACING_DATA) {
			put_tracing_data(s, &features[i]);
			continue;
		}
		/* In pipes these are records. */
		if (number == PERFABI_FEATURE_BUILD_ID || features[i].size > UINT16_MAX - 16)
			continue;
		put_header(s->out, PERFABI_HEADER_FEATURE, 0, sizeof(number) + features[i].size);
		put(s->out, &number, sizeof(number));
		put(s->out, features[i].bytes, features[i].size);
	}
	put_records(s);
}

/* Another event, of samples that carry PT. */
static void put_sample_attr(struct reshape *s)
{
	const struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = ATTR_SIZE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_type = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID |
			       PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_AUX,
		.sample_id_all = 1,
		.aux_sample_size = SAMPLE_SIZE,
	};
	const struct perfabi_section ids = { (uint64_t)ftell(s->out), CPUS_MAX * sizeof(uint64_t) };

	for (uint64_t cpu = 0; cpu < CPUS_MAX; cpu++)
		put(s->out, &(uint64_t){ SAMPLE_ID + cpu }, sizeof(uint64_t));
	s->header.attrs.offset = (uint64_t)ftell(s->out);
	put(s->out, s->in.bytes + ((struct perfabi_header *)(uintptr_t)s->in.bytes)->attrs.offset,
	    s->header.attrs.size);
	put(s->out, &attr, ATTR_SIZE);
	put(s->out, &ids, sizeof(ids));
	s->header.attrs.size += ATTR_SIZE + sizeof(ids);
}

static void put_file(struct reshape *s)
{
	struct feature features[FEATURES_MAX + 1];
	const size_t n = features_of(s, features);
	uint64_t at;

	s->header.features[0] = 0;
	for (size_t i = 0; i < n; i++)
		s->header.features[0] |= UINT64_C(1) << features[i].number;
	put(s->out, s->in.bytes, s->header.data.offset);
	if (s->form == SAMPLE)
		put_sample_attr(s);
	s->header.data.offset = (uint64_t)ftell(s->out);
	put_records(s);
	s->header.data.size = (uint64_t)ftell(s->out) - s->header.data.offset;

	at = (uint64_t)ftell(s->out) + n * sizeof(struct perfabi_section);
	for (size_t i = 0; i < n; i++) {
		put(s->out, &(struct perfabi_section){ at, features[i].size },
		    sizeof(struct perfabi_section));
		at += features[i].size;
	}
	for (size_t i = 0; i < n; i++)
		put(s->out, features[i].bytes, features[i].size);
	if (fseek(s->out, 0, SEEK_SET) != 0)
		error(1, errno, "seek");
	put(s->out, &s->header, sizeof(s->header));
}

/* Write padding over the CYC packets of @pt. */
static void remove_cycles(uint8_t *pt, size_t size)
{
	struct pt_packet_decoder *d = open_packets(pt, size);
	struct pt_packet packet;
	uint64_t offset;

	while (pt_pkt_get_offset(d, &offset) == 0 && pt_pkt_next(d, &packet, sizeof(packet)) > 0)
		if (packet.type == ppt_cyc)
			memset(pt + offset, 0, packet.size);
	pt_pkt_free_decoder(d);
}

static void put_uncycled(const struct reshape *s)
{
	_cleanup_(freep) uint8_t *copy = malloc(s->in.size);
	const uint8_t *pt;

	if (!copy)
		error(1, ENOMEM, "copy");
	memcpy(copy, s->in.bytes, s->in.size);
	for (size_t i = 0; i < s->walk.records.n; i++) {
		const struct recordwalk_record *r = &s->walk.records.items[i];

		if (r->type == PERFABI_AUXTRACE)
			remove_cycles(copy + r->offset + RECORD_AUXTRACE_SIZE,
				      aux_of(s, r, &pt).size);
	}
	put(s->out, copy, s->in.size);
}

static FILE *create(const struct reshape *s, const char *name)
{
	char path[4096];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s%s", s->out_path, name);
	f = fopen(path, "we");
	if (!f)
		error(1, errno, "%s", path);
	return f;
}

static void open_out(struct reshape *s)
{
	char name[32];

	if (s->form != THREADS) {
		s->out = create(s, "");
		return;
	}
	if (mkdir(s->out_path, 0777) < 0)
		error(1, errno, "%s", s->out_path);
	s->out = create(s, "/data");
	for (size_t i = 0; i < N_FILES; i++) {
		(void)snprintf(name, sizeof(name), "/data.%zu", i);
		s->parts[i] = create(s, name);
	}
}

static void close_out(struct reshape *s)
{
	for (size_t i = 0; i < N_FILES; i++)
		if (s->parts[i] && fclose(s->parts[i]) != 0)
			error(1, errno, "write");
	if (fclose(s->out) != 0)
		error(1, errno, "write");
}

static void parse_form(struct reshape *s, const char *text)
{
	static const char *const names[] = { "pipe", "threads", "zstd",   "zstd2",
					     "full", "overlap", "sample", "uncycled" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		if (strcmp(text, names[i]) == 0) {
			s->form = (enum form)i;
			return;
		}
	}
	if (sscanf(text, "repeat=%u", &s->n_times) == 1)
		s->form = REPEAT;
	else if (sscanf(text, "ctc=%u", &s->ctc) == 1)
		s->form = CTC;
	else
		error(2, 0, "%s: no such form", text);
}

int main(int argc, char **argv)
{
	static struct reshape s;
	int option, r;

	while ((option = getopt(argc, argv, "p")) != -1) {
		if (option != 'p')
			return 2;
		s.between_packets = true;
	}
	argv += optind;
	if (argc - optind != 3)
		error(2, 0, "usage: reshape [-p] FORM DATA OUT");
	parse_form(&s, argv[0]);
	r = mapfile_read(&s.in, AT_FDCWD, argv[1]);
	if (r == 0)
		r = recordwalk_read(s.in.bytes, s.in.size, &s.walk);
	if (r < 0)
		error(1, -r, "%s", argv[1]);
	memcpy(&s.header, s.in.bytes, sizeof(s.header));
	s.out_path = argv[2];
	s.stream = ZSTD_createCCtx();
	open_out(&s);
	if (s.form == PIPE)
		put_pipe(&s);
	else if (s.form == UNCYCLED)
		put_uncycled(&s);
	else
		put_file(&s);
	close_out(&s);
	ZSTD_freeCCtx(s.stream);
	recordwalk_deinit(&s.walk);
	mapfile_deinit(&s.in);
	return 0;
}
