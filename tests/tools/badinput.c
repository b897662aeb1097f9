/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Bad input, in one table: what is spoiled, what ptdecode says and returns, and what it still
 * lists.
 *
 *	badinput PTDECODE SNAPSHOT VICTIM
 *
 * SNAPSHOT is a small one, of one thread; VICTIM is part of the path of one of its objects, which
 * is no longer where it was. In each row the account of bytes has to add up, both engines have to
 * satisfy tests/lib/follow.h, and what is listed has to begin as the undamaged list does.
 */

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/base.h"
#include "tests/lib/copydir.h"
#include "tests/lib/recordwalk.h"
#include "tests/lib/tempdir.h"
#include "tests/lib/trial.h"
#include "util/mapfile.h"
#include "util/perf/codec.h"
#include "util/perf/perfabi.h"

#define AUXTRACE_SIZE 48
#define GIB           (INT64_C(1) << 30)
#define PT_STEP       127 /* bytes from one place in the PT that is cut, or flipped, to the next */

static const char *const engines[] = { "flow", "insn" };

struct bench {
	const char *ptdecode, *snapshot, *victim;
	char dir[TEMPDIR_SIZE]; /* made anew for each row: the snapshot, without SHA256SUMS */
	char input[192];        /* what is decoded; dir, unless the row sets another */
	struct mapfile data;
	uint8_t *bytes; /* a copy to spoil */
	size_t size;
	struct recordwalk walk;
	const struct recordwalk_record *auxtrace;
	struct trial whole;
	const char *row;
	unsigned n_failed;
};

enum listing {
	NOTHING,
	BEGINNING, /* as the whole, but less */
	OTHER,     /* the judge is content */
	WHOLE,
};

struct row {
	const char *name;
	void (*make)(struct bench *b);
	const char *message; /* part of what is printed */
	const char *options;
	int status;
	enum listing listing;
};

/* Making. */

static void write_file(struct bench *b, const char *name, const void *bytes, size_t size)
{
	const int r = copydir_write(b->dir, name, bytes, size);

	if (r < 0)
		error(2, -r, "%s/%s", b->dir, name);
}

static void write_data(struct bench *b)
{
	write_file(b, "data", b->bytes, b->size);
}

/* The input is this file of the directory. */
static void use_file(struct bench *b, const char *name)
{
	(void)snprintf(b->input, sizeof(b->input), "%s/%s", b->dir, name);
}

/* Decode the directory, not a file in it. */
static void use_dir(struct bench *b)
{
	(void)snprintf(b->input, sizeof(b->input), "%s", b->dir);
}

static void link_sums(struct bench *b)
{
	char from[PATH_MAX], to[PATH_MAX];

	(void)snprintf(from, sizeof(from), "%s/SHA256SUMS", b->snapshot);
	(void)snprintf(to, sizeof(to), "%s/SHA256SUMS", b->dir);
	if (link(from, to) < 0)
		error(2, errno, "%s", to);
}

static void make_text(struct bench *b)
{
	write_file(b, "text", "Not for the decoder.\n", 21);
	use_file(b, "text");
}

static void make_elf(struct bench *b)
{
	struct mapfile elf;

	if (mapfile_read(&elf, AT_FDCWD, "/proc/self/exe") < 0)
		error(2, errno, "/proc/self/exe");
	write_file(b, "elf", elf.bytes, elf.size);
	mapfile_deinit(&elf);
	use_file(b, "elf");
}

static void make_empty(struct bench *b)
{
	write_file(b, "empty", NULL, 0);
	use_file(b, "empty");
}

static void make_seven(struct bench *b)
{
	write_file(b, "seven", b->bytes, 7);
	use_file(b, "seven");
}

static void make_no_data(struct bench *b)
{
	(void)b; /* the directory has everything else */
}

static void make_nothing(struct bench *b)
{
	use_file(b, "nothing");
}

static void make_data_fifo(struct bench *b)
{
	use_file(b, "data");
	if (mkfifo(b->input, 0600) < 0)
		error(2, errno, "%s", b->input);
	use_dir(b);
}

static void make_dev_zero(struct bench *b)
{
	(void)snprintf(b->input, sizeof(b->input), "/dev/zero");
}

static void make_zeros(struct bench *b)
{
	make_empty(b);
	if (truncate(b->input, GIB) < 0)
		error(2, errno, "%s", b->input);
}

/* A good header, and a data section that is large and empty. */
static void make_zero_records(struct bench *b)
{
	struct perfabi_header header;

	memcpy(&header, b->bytes, sizeof(header));
	header.data.size = (uint64_t)GIB - header.data.offset;
	memset(header.features, 0, sizeof(header.features));
	memcpy(b->bytes, &header, sizeof(header));
	b->size = header.data.offset;
	write_file(b, "zeros", b->bytes, b->size);
	use_file(b, "zeros");
	if (truncate(b->input, GIB) < 0)
		error(2, errno, "%s", b->input);
}

static void spoil_u64(struct bench *b, size_t offset, uint64_t value)
{
	memcpy(b->bytes + offset, &value, sizeof(value));
	write_data(b);
}

/* As what was killed leaves it: features stand behind the data, and are written last. */
static void make_unfinished(struct bench *b)
{
	struct perfabi_header header;

	memcpy(&header, b->bytes, sizeof(header));
	b->size = (size_t)(header.data.offset + header.data.size);
	header.data.size = 0;
	memset(header.features, 0, sizeof(header.features));
	memcpy(b->bytes, &header, sizeof(header));
	write_data(b);
}

static void make_swapped(struct bench *b)
{
	spoil_u64(b, 0, PERFABI_MAGIC_SWAPPED);
}

static void make_data_far(struct bench *b)
{
	spoil_u64(b, offsetof(struct perfabi_header, data.offset), UINT64_MAX - 5);
}

static void make_attrs_far(struct bench *b)
{
	spoil_u64(b, offsetof(struct perfabi_header, attrs.offset), b->size);
}

static const struct recordwalk_record *find_record(const struct bench *b, uint32_t type)
{
	for (size_t i = 0; i < b->walk.records.n; i++)
		if (b->walk.records.items[i].type == type)
			return &b->walk.records.items[i];
	error(2, 0, "%s: has no record of type %" PRIu32, b->snapshot, type);
	return NULL;
}

static void make_no_info(struct bench *b)
{
	b->bytes[find_record(b, PERFABI_AUXTRACE_INFO)->offset] = 0xff;
	write_data(b);
}

static void make_no_clock(struct bench *b)
{
	spoil_u64(b,
		  (size_t)find_record(b, PERFABI_AUXTRACE_INFO)->offset + 16 +
		      8 * PERFABI_PT_TIME_MULT,
		  0);
}

static void make_zero_record(struct bench *b)
{
	memset(b->bytes + find_record(b, PERF_RECORD_COMM)->offset + 6, 0, 2);
	write_data(b);
}

static void make_huge_piece(struct bench *b)
{
	spoil_u64(b, (size_t)b->auxtrace->offset + 8, UINT64_MAX - 7);
}

static void make_whole(struct bench *b)
{
	write_data(b);
	link_sums(b);
}

static void make_unsummed(struct bench *b)
{
	write_data(b);
}

static void make_no_manifest(struct bench *b)
{
	char path[PATH_MAX];

	make_whole(b);
	(void)snprintf(path, sizeof(path), "%s/manifest", b->dir);
	if (unlink(path) < 0)
		error(2, errno, "%s", path);
}

/* The last byte of the file belongs to the host's name, or another feature: no record. */
static void make_other_data(struct bench *b)
{
	b->bytes[b->size - 1] ^= 1;
	make_whole(b);
}

static void make_other_manifest(struct bench *b)
{
	make_whole(b);
	write_file(b, "manifest", "format=ptd-snapshot-1\nhost=other\n", 33);
}

static void make_other_format(struct bench *b)
{
	write_data(b);
	write_file(b, "manifest", "format=ptd-snapshot-9\n", 22);
}

static void make_bad_manifest(struct bench *b)
{
	write_data(b);
	write_file(b, "manifest", "format=ptd-snapshot-1\nnonsense\n", 31);
}

static void make_bad_sums(struct bench *b)
{
	write_data(b);
	write_file(b, "SHA256SUMS", "12  data\n", 9);
}

static void make_sums_lead_out(struct bench *b)
{
	char line[80];

	write_data(b);
	memset(line, '0', 64);
	memcpy(line + 64, "  ../data\n", 10);
	write_file(b, "SHA256SUMS", line, 74);
}

/* Put the objects' tree anew, of links; only the victim's is a link to @instead, or not there. */
static void put_objects(struct bench *b, const char *instead)
{
	char path[PATH_MAX], id[128], name[PATH_MAX], target[PATH_MAX];
	FILE *map;

	(void)snprintf(path, sizeof(path), "%s/objects", b->dir);
	tempdir_remove(path);
	if (mkdir(path, 0700) < 0)
		error(2, errno, "%s", path);
	(void)snprintf(path, sizeof(path), "%s/objects/.build-id", b->dir);
	(void)mkdir(path, 0700);
	(void)snprintf(path, sizeof(path), "%s/objects.map", b->snapshot);
	map = fopen(path, "re");
	if (!map)
		error(2, errno, "%s", path);
	while (fscanf(map, "%127s %4095s", id, name) == 2) {
		(void)snprintf(path, sizeof(path), "%s/objects/.build-id/%.2s", b->dir, id);
		(void)mkdir(path, 0700);
		(void)snprintf(path, sizeof(path), "%s/objects/.build-id/%.2s/%s", b->dir, id,
			       id + 2);
		(void)mkdir(path, 0700);
		(void)snprintf(path, sizeof(path), "%s/objects/.build-id/%.2s/%s/elf", b->dir, id,
			       id + 2);
		(void)snprintf(target, sizeof(target), "%s/objects/.build-id/%.2s/%s/elf",
			       b->snapshot, id, id + 2);
		if (strstr(name, b->victim) && !instead)
			continue;
		if (link(strstr(name, b->victim) ? instead : target, path) < 0)
			error(2, errno, "%s", path);
	}
	(void)fclose(map);
}

static void make_object_missing(struct bench *b)
{
	write_data(b);
	put_objects(b, NULL);
}

static void make_object_other(struct bench *b)
{
	make_elf(b);
	write_data(b);
	put_objects(b, b->input);
	use_dir(b);
}

static void make_object_fifo(struct bench *b)
{
	static char fifo[80];

	write_data(b);
	(void)snprintf(fifo, sizeof(fifo), "%s/fifo", b->dir);
	if (mkfifo(fifo, 0600) < 0)
		error(2, errno, "%s", fifo);
	put_objects(b, fifo);
}

static void make_objects_map_bad(struct bench *b)
{
	write_data(b);
	write_file(b, "objects.map", "no tab\n", 7);
}

static void make_ring_empty(struct bench *b)
{
	memset(b->bytes + b->auxtrace->offset + AUXTRACE_SIZE, 0,
	       b->auxtrace->size - AUXTRACE_SIZE);
	write_data(b);
}

/* PSB is 02 82, eight times. */
static void make_ring_without_psb(struct bench *b)
{
	uint8_t *pt = b->bytes + b->auxtrace->offset + AUXTRACE_SIZE;

	for (size_t i = 0; i + 1 < b->auxtrace->size - AUXTRACE_SIZE; i++)
		if (pt[i] == 0x02 && pt[i + 1] == 0x82)
			pt[i] = pt[i + 1] = 0;
	write_data(b);
}

/* The record says that it has no bytes; what were its are read as records. A PSB is a long one. */
static void make_ring_of_no_bytes(struct bench *b)
{
	spoil_u64(b, (size_t)b->auxtrace->offset + 8, 0);
}

static void make_bad_opcode(struct bench *b)
{
	uint8_t *pt = b->bytes + b->auxtrace->offset + AUXTRACE_SIZE;
	const size_t size = b->auxtrace->size - AUXTRACE_SIZE;
	uint8_t *at = memmem(pt + size / 2, size / 2, "\x02\x82\x02\x82\x02\x82\x02\x82", 8);

	/* Where a packet begins, and not in the middle of one: behind a PSB+, which ends with 02
	 * 23. */
	at = at ? memmem(at, (size_t)(pt + size - at), "\x02\x23", 2) : NULL;
	if (!at || pt + size - at < 8)
		error(2, 0, "%s: there is no PSB+ in the second half", b->row);
	/* 02 0b is none of the extended ones. */
	memcpy(at + 2, "\x02\x0b\x02\x0b\x02\x0b", 6);
	write_data(b);
}

/* Put @size bytes, records, before the first AUXTRACE. */
static void insert_records(struct bench *b, const void *bytes, size_t size)
{
	const size_t at = (size_t)b->auxtrace->offset;
	struct perfabi_section *table;
	struct perfabi_header header;

	b->bytes = realloc(b->bytes, b->size + size);
	if (!b->bytes)
		error(2, ENOMEM, "%s", b->row);
	memmove(b->bytes + at + size, b->bytes + at, b->size - at);
	memcpy(b->bytes + at, bytes, size);
	b->size += size;

	memcpy(&header, b->bytes, sizeof(header));
	header.data.size += size;
	memcpy(b->bytes, &header, sizeof(header));
	table = (struct perfabi_section *)(b->bytes + header.data.offset + header.data.size);
	for (size_t i = 0; i < ARRAY_LEN(header.features); i++)
		for (uint64_t bits = header.features[i]; bits; bits &= bits - 1, table++)
			table->offset += size;
}

/* The process maps a jitdump, which is this in the snapshot; NULL: it is not there. */
static void put_jitdump(struct bench *b, const void *dump, size_t size)
{
	const uint32_t pid = b->whole.threads.items[0].pid;
	const struct recordwalk_record *comm = find_record(b, PERF_RECORD_COMM);
	struct cursor c = cursor_from(comm->payload + comm->payload_size, TRAILER_SIZE);
	char path[32];
	const struct record_mmap2 mmap = {
		.misc = PERF_RECORD_MISC_USER,
		.pid = pid,
		.tid = pid,
		.addr = 0x7fffff000000,
		.len = 4096,
		.prot = PROT_READ | PROT_EXEC,
		.flags = MAP_PRIVATE,
		.name = path,
	};
	uint8_t record[RECORD_OWN_MAX];
	struct trailer trailer;
	char name[96];

	if (trailer_take(&c, PERFABI_SAMPLE_TYPE, &trailer) < 0)
		abort();
	(void)snprintf(path, sizeof(path), "/no/jit-%" PRIu32 ".dump", pid);
	insert_records(b, record, record_write_mmap2(&mmap, &trailer, record, sizeof(record)));
	write_data(b);

	(void)snprintf(name, sizeof(name), "%s/jit", b->dir);
	tempdir_remove(name); /* the snapshot's, if it has one */
	if (mkdir(name, 0700) < 0)
		error(2, errno, "%s", name);
	(void)snprintf(name, sizeof(name), "jit/jit-%" PRIu32 ".dump", pid);
	if (dump)
		write_file(b, name, dump, size);
	use_file(b, name);
}

static void make_jit_missing(struct bench *b)
{
	put_jitdump(b, NULL, 0);
	use_dir(b);
}

static void make_jit_text(struct bench *b)
{
	put_jitdump(b, "Not for the decoder, and more than forty bytes long.\n", 53);
	use_dir(b);
}

static void make_jit_fifo(struct bench *b)
{
	put_jitdump(b, NULL, 0);
	if (mkfifo(b->input, 0600) < 0)
		error(2, errno, "%s", b->input);
	use_dir(b);
}

static void make_jit_dangling(struct bench *b)
{
	put_jitdump(b, NULL, 0);
	if (symlink("/dev/zero", b->input) < 0)
		error(2, errno, "%s", b->input);
	use_dir(b);
}

static void make_jit_zeros(struct bench *b)
{
	put_jitdump(b, "", 0);
	if (truncate(b->input, GIB) < 0)
		error(2, errno, "%s", b->input);
	use_dir(b);
}

/* A good header, and a LOAD that says that it has more than there is. */
static void make_jit_claims(struct bench *b)
{
	const struct {
		uint32_t magic, version, header_size, machine, pad, pid;
		uint64_t time, flags;
		uint32_t id, size;
		uint64_t load_time;
		uint32_t load_pid, load_tid;
		uint64_t vma, address, code_size, index;
		char name[8];
	} dump = { 0x4a695444, 1, 40, 62, 0,      1,      1,          0, 0,
		   UINT32_MAX, 1, 1,  1,  0x1000, 0x1000, UINT64_MAX, 1, "f" };

	put_jitdump(b, &dump, sizeof(dump));
	use_dir(b);
}

static const struct row rows[] = {
	{ "as it was", make_whole, "Gaps: 0", "", 0, WHOLE },
	{ "a text file", make_text, "text: not a perf.data file: it does not begin with PERFILE2",
	  "", 1, NOTHING },
	{ "an ELF file", make_elf, "elf: not a perf.data file", "", 1, NOTHING },
	{ "an empty file", make_empty, "empty: not a perf.data file: it has only 0 bytes", "", 1,
	  NOTHING },
	{ "seven bytes", make_seven, "seven: not a perf.data file: it has only 7 bytes", "", 1,
	  NOTHING },
	{ "a directory without data", make_no_data, "/data: No such file", "--force", 1, NOTHING },
	{ "no file", make_nothing, "/nothing: No such file", "", 1, NOTHING },
	{ "data is a FIFO", make_data_fifo, "/data: not a regular file", "--force", 1, NOTHING },
	{ "/dev/zero", make_dev_zero, "/dev/zero: not a regular file", "", 1, NOTHING },
	{ "1 GiB of zeros", make_zeros, "it does not begin with PERFILE2", "", 1, NOTHING },
	{ "a header, and 1 GiB of zeros", make_zero_records,
	  "says that it is shorter than its header of 8 bytes", "", 1, NOTHING },
	{ "data.size 0", make_unfinished,
	  ": the recording was not finished: its header says that there are no data.", "--force", 0,
	  WHOLE },
	{ "foreign byte order", make_swapped,
	  "/data: recorded on a machine of the other byte order: not supported", "--force", 1,
	  NOTHING },
	{ "data section outside", make_data_far,
	  "/data: the data section (offset 18446744073709551610) lies outside of the file",
	  "--force", 1, NOTHING },
	{ "attrs outside", make_attrs_far, "/data: the ", "--force", 1, NOTHING },
	{ "no AUXTRACE_INFO", make_no_info, "/data: holds no Intel PT (no AUXTRACE_INFO record)",
	  "--force", 1, NOTHING },
	{ "a clock that cannot be", make_no_clock, "time shift", "--force", 1, NOTHING },
	{ "a record of size 0", make_zero_record, "says that it is shorter than its header",
	  "--force", 1, NOTHING },
	{ "a piece of 2^64 bytes", make_huge_piece, "ends inside the record at byte ", "--force", 3,
	  NOTHING },
	{ "no sums", make_unsummed, "SHA256SUMS is missing", "", 1, NOTHING },
	{ "no sums, forced", make_unsummed, "Gaps: 0", "--force", 0, WHOLE },
	{ "no manifest", make_no_manifest, "manifest is missing", "", 1, NOTHING },
	{ "no manifest, forced", make_no_manifest, "Gaps: 0", "--force", 0, WHOLE },
	{ "data with another hash", make_other_data, "data is not the file that was written", "", 1,
	  NOTHING },
	{ "data with another hash, forced", make_other_data, "Gaps: 0", "--force", 0, WHOLE },
	{ "manifest with another hash", make_other_manifest,
	  "manifest is not the file that was written", "", 1, NOTHING },
	{ "manifest with another hash, forced", make_other_manifest, "Gaps: 0", "--force", 0,
	  WHOLE },
	{ "manifest of a later format", make_other_format,
	  "manifest begins with format=ptd-snapshot-9; this program reads format=ptd-snapshot-1",
	  "--force", 1, NOTHING },
	{ "manifest with nonsense", make_bad_manifest, "manifest line 2: expected key=value",
	  "--force", 1, NOTHING },
	{ "sums with nonsense", make_bad_sums, "SHA256SUMS line 1: expected a SHA-256", "", 1,
	  NOTHING },
	{ "sums that lead out", make_sums_lead_out, "SHA256SUMS line 1: expected a SHA-256", "", 1,
	  NOTHING },
	{ "an object is missing", make_object_missing, "object not found", "--force", 3,
	  BEGINNING },
	{ "an object has another build-id", make_object_other, "object has another build-id",
	  "--force", 3, BEGINNING },
	{ "an object is a FIFO", make_object_fifo, "object not found", "--force", 3, BEGINNING },
	{ "objects.map with nonsense", make_objects_map_bad, "objects.map", "--force", 1, NOTHING },
	{ "an empty ring", make_ring_empty, "its PT has no PSB", "--force", 3, NOTHING },
	{ "a ring without a PSB", make_ring_without_psb, "its PT has no PSB", "--force", 3,
	  NOTHING },
	{ "a piece of 0 bytes", make_ring_of_no_bytes, "ends inside the record at byte ", "--force",
	  3, NOTHING },
	{ "no jitdump", make_jit_missing, ".dump: this jitdump is not used: No such file",
	  "--force", 0, WHOLE },
	{ "a jitdump of text", make_jit_text,
	  ".dump: this jitdump is not used: byte 0: not a jitdump: expected DTiJ", "--force", 0,
	  WHOLE },
	{ "a jitdump that is a FIFO", make_jit_fifo,
	  ".dump: this jitdump is not used: expected a regular file", "--force", 0, WHOLE },
	{ "a jitdump that is a link to /dev/zero", make_jit_dangling,
	  ".dump: this jitdump is not used: ", "--force", 0, WHOLE },
	{ "a jitdump of 1 GiB of zeros", make_jit_zeros,
	  ".dump: this jitdump is not used: byte 0: not a jitdump: expected DTiJ", "--force", 0,
	  WHOLE },
	{ "a jitdump that claims more than it holds", make_jit_claims,
	  ".dump: ends inside the record at byte 40: expected a whole one", "--force", 0, WHOLE },
	{ "a packet that is none", make_bad_opcode, "bad packet", "--force", 3, BEGINNING },
};

/* Judging. */

_printf_(2, 3) static void failed(struct bench *b, const char *format, ...)
{
	va_list ap;

	b->n_failed++;
	printf("FAIL: %s: ", b->row);
	va_start(ap, format);
	(void)vprintf(format, ap);
	va_end(ap);
	putchar('\n');
}

/* Run ptdecode as a user does. Return: its exit status. */
static int run_ptdecode(const struct bench *b, const char *options, char *ret_text, size_t size)
{
	char command[3 * PATH_MAX];
	size_t n;
	FILE *f;
	int r;

	(void)snprintf(command, sizeof(command), "timeout 60 '%s' summary %s '%s' 2>&1",
		       b->ptdecode, options, b->input);
	f = popen(command, "re");
	if (!f)
		error(2, errno, "%s", command);
	n = fread(ret_text, 1, size - 1, f);
	ret_text[n] = 0;
	while (fgetc(f) != EOF)
		;
	r = pclose(f);
	return WIFEXITED(r) ? WEXITSTATUS(r) : 128 + WTERMSIG(r);
}

/* How many instructions the lists have in common at their beginning. */
static size_t common(const struct trial_thread *a, const struct trial_thread *b)
{
	size_t n = 0;

	while (n < a->ips.n && n < b->ips.n && a->ips.items[n] == b->ips.items[n])
		n++;
	return n;
}

/* Decode it with both engines. Return: instructions that are those of the whole, of the worse. */
static size_t judge(struct bench *b, bool force, enum listing listing)
{
	const struct trial_thread *whole = &b->whole.threads.items[0];
	size_t least = SIZE_MAX;

	for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
		const struct ptd_options options = { .size = sizeof(options),
						     .input = b->input,
						     .engine = engines[i],
						     .force = force };
		const struct trial_thread *thread;
		struct trial trial;
		size_t n;
		int r;

		r = trial_run(&options, TRIAL_THREADS, stdout, &trial);
		if (r < 0)
			error(2, -r, "%s", b->input);
		if (trial.n_faults > 0)
			failed(b, "%s: what does not hold is above", engines[i]);
		thread = trial_find(&trial, whole->pid, whole->tid);
		n = thread ? common(thread, whole) : 0;
		least = n < least ? n : least;
		if ((listing == NOTHING && trial.n_insns > 0) ||
		    (listing == BEGINNING && (n == 0 || n == whole->ips.n)) ||
		    (listing == WHOLE && (n != whole->ips.n || trial.n_insns != n)))
			failed(b, "%s lists %" PRIu64 " instructions, the first %zu as the whole",
			       engines[i], trial.n_insns, n);
		trial_deinit(&trial);
	}
	return least;
}

static void begin(struct bench *b, const char *name)
{
	int r;

	b->row = name;
	memcpy(b->bytes, b->data.bytes, b->data.size);
	b->size = b->data.size;
	tempdir_remove(b->dir);
	r = copydir_new(b->snapshot, b->dir);
	if (r < 0)
		error(2, -r, "%s", b->dir);
	(void)snprintf(b->input, sizeof(b->input), "%s", b->dir);
}

static void try_row(struct bench *b, const struct row *row)
{
	static char text[1 << 16];
	int status;

	begin(b, row->name);
	row->make(b);
	status = run_ptdecode(b, row->options, text, sizeof(text));
	if (status != row->status)
		failed(b, "exit status %d instead of %d:\n%s", status, row->status, text);
	if (!strstr(text, row->message))
		failed(b, "expected \"%s\" in:\n%s", row->message, text);
	if (status == 1 && !strstr(text, b->input))
		failed(b, "expected the name of the input in:\n%s", text);
	(void)judge(b, row->options[0] != '\0', row->listing);
}

/* Cutting off. */

/* What is said about a file of @size bytes. Return: the exit status. */
static int expect_cut(const struct bench *b, size_t size, char *ret_message, size_t message_size)
{
	const struct recordwalk_record *info = find_record(b, PERFABI_AUXTRACE_INFO);
	uint64_t at = size;

	if (size < b->walk.data_offset || size < info->offset + info->size) {
		(void)snprintf(ret_message, message_size, "%s/data: ", b->dir);
		return 1;
	}
	for (size_t i = 0; i < b->walk.records.n; i++) {
		const struct recordwalk_record *r = &b->walk.records.items[i];

		if (r->offset < size && size < r->offset + r->size)
			at = r->offset;
	}
	(void)snprintf(ret_message, message_size, "%s: ends inside the record at byte %" PRIu64,
		       b->dir, at);
	return 3;
}

/* Return: how much of the whole is listed. */
static size_t try_cut(struct bench *b, size_t size)
{
	static char text[1 << 16];
	char name[64], message[256];
	int status, expected;

	(void)snprintf(name, sizeof(name), "data cut off at %zu", size);
	begin(b, name);
	b->size = size;
	write_data(b);
	expected = expect_cut(b, size, message, sizeof(message));
	status = run_ptdecode(b, "--force", text, sizeof(text));
	if (status != expected || !strstr(text, message))
		failed(b, "exit status %d; expected %d and \"%s\" in:\n%s", status, expected,
		       message, text);
	return judge(b, true, OTHER);
}

/*
 * At every record, inside of each, and all through the PT: more bytes are never less of the list;
 * but for the switches, which come last: where the next one is cut off, the last word is that
 * another task runs.
 */
static void try_cuts(struct bench *b)
{
	size_t n_cuts = 0, last = 0;
	bool grows = true;

	for (size_t i = 0; i < b->walk.records.n; i++) {
		const struct recordwalk_record *r = &b->walk.records.items[i];
		const size_t places[] = { 0, 4, r->type == PERFABI_AUXTRACE ? 48 : 16 };

		grows = grows && r->type != PERF_RECORD_SWITCH_CPU_WIDE;

		for (size_t k = 0; k < ARRAY_LEN(places); k++, n_cuts++) {
			const size_t n = try_cut(b, (size_t)r->offset + places[k]);

			if (grows && n < last)
				failed(b, "lists %zu instructions, with fewer bytes %zu", n, last);
			last = n;
		}
		for (size_t at = AUXTRACE_SIZE + 1; at < r->size; at += PT_STEP, n_cuts++) {
			const size_t n = try_cut(b, (size_t)r->offset + at);

			if (grows && n < last)
				failed(b, "lists %zu instructions, with fewer bytes %zu", n, last);
			last = n;
		}
	}
	if (last != b->whole.threads.items[0].ips.n)
		failed(b, "lists %zu instructions, though only features are missing", last);
	for (size_t size = 0; size < b->walk.data_offset; size += 47, n_cuts++)
		(void)try_cut(b, size);
	printf("data cut off at %zu places\n", n_cuts);
}

/* Flipping. */

/* What was good before the packet that is hit is listed as if nothing had been hit. */
static void try_flips(struct bench *b)
{
	const size_t pt = (size_t)b->auxtrace->offset + AUXTRACE_SIZE;
	const size_t end = (size_t)(b->auxtrace->offset + b->auxtrace->size);
	size_t n_flips = 0;

	for (size_t at = pt + 16; at < end; at += PT_STEP, n_flips++) {
		char name[64];
		size_t before, n;

		before = try_cut(b, at - 16);
		(void)snprintf(name, sizeof(name), "a bit flipped at %zu", at);
		begin(b, name);
		b->bytes[at] ^= (uint8_t)(1u << (at % 8));
		write_data(b);
		n = judge(b, true, OTHER);
		if (n < before)
			failed(b, "lists %zu instructions as they were, and %zu if cut off there",
			       n, before);
	}
	printf("a bit of the PT flipped at %zu places\n", n_flips);
}

static void open_snapshot(struct bench *b)
{
	const struct ptd_options options = { .size = sizeof(options), .input = b->snapshot };
	char path[PATH_MAX];
	int r;

	(void)snprintf(path, sizeof(path), "%s/data", b->snapshot);
	r = mapfile_read(&b->data, AT_FDCWD, path);
	if (r == 0)
		r = recordwalk_read(b->data.bytes, b->data.size, &b->walk);
	if (r == 0)
		r = trial_run(&options, TRIAL_THREADS, stdout, &b->whole);
	if (r < 0)
		error(2, -r, "%s", path);
	if (b->whole.refusal || b->whole.n_faults || b->whole.threads.n != 1)
		error(2, 0, "%s: not a good snapshot of one thread", path);
	b->auxtrace = find_record(b, PERFABI_AUXTRACE);
	b->bytes = malloc(b->data.size);
	if (!b->bytes)
		error(2, errno, "cannot begin");
	tempdir_make("badinput", b->dir);
}

int main(int argc, char **argv)
{
	struct bench b = {};

	if (argc != 4)
		error(2, 0, "usage: badinput PTDECODE SNAPSHOT VICTIM");
	b.ptdecode = argv[1];
	b.snapshot = argv[2];
	b.victim = argv[3];
	open_snapshot(&b);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		try_row(&b, &rows[i]);
	printf("%zu rows\n", ARRAY_LEN(rows));
	try_cuts(&b);
	try_flips(&b);

	tempdir_remove(b.dir);
	trial_deinit(&b.whole);
	recordwalk_deinit(&b.walk);
	mapfile_deinit(&b.data);
	free(b.bytes);
	printf("%u failed\n", b.n_failed);
	return b.n_failed > 0;
}
