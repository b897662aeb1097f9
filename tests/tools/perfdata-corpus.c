/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Writes what fuzz-perfdata starts from into a directory: tests/fuzz/corpus/perfdata was made by
 * it.
 *
 *	perfdata-corpus DIRECTORY
 */

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <zstd.h>

#include "base/base.h"
#include "tests/lib/perfbpf.h"
#include "tests/lib/perfbuild.h"

static struct perfbuild b;
static struct perfbpf section;

static void file_form(void)
{
	perfbuild_example(&b, false);
}

static void pipe_form(void)
{
	perfbuild_example(&b, true);
}

static void cut_off(void)
{
	perfbuild_example(&b, false);
	b.size = b.size / 4 * 3;
}

/* With an address filter in its AUXTRACE_INFO. */
static void filter(void)
{
	perfbuild_begin(&b, false);
	perfbuild_filter(&b, "filter 0x1139/0x2a@/no/such/a,stop 0xffffffff81000000/0x10");
	perfbuild_comm(&b, false, 7, 7, "one");
	perfbuild_mmap2(&b, 7, 7, 0x400000, "/no/such/a");
	perfbuild_auxtrace(&b, 0, 0, -1, 0, "abcde", 5);
	perfbuild_end(&b);
}

/* Pieces to be joined, with padding, and a hole. */
static void pieces(void)
{
	perfbuild_begin(&b, false);
	perfbuild_auxtrace(&b, 0, 0, -1, 0, "abcde\0\0\0", 8);
	perfbuild_auxtrace(&b, 0, 0, -1, 5, "fghijklm", 8);
	perfbuild_auxtrace(&b, 1, -1, 7, 0, "xyz", 3);
	perfbuild_auxtrace(&b, 0, 0, -1, 99, "nop", 3);
	perfbuild_end(&b);
}

/* Forks, execs, threads, both kinds of switches. */
static void tasks(void)
{
	perfbuild_begin(&b, false);
	perfbuild_comm(&b, false, 7, 7, "one");
	perfbuild_mmap2(&b, 7, 7, 0x400000, "/no/such/a");
	perfbuild_at(&b, 5, 0, 7, 7);
	perfbuild_fork(&b, 8, 7, 8, 7);
	perfbuild_at(&b, 6, 1, 8, 8);
	perfbuild_comm(&b, true, 8, 8, "two");
	perfbuild_mmap2(&b, 8, 8, 0x500000, "//anon");
	perfbuild_fork(&b, 8, 8, 9, 8);
	perfbuild_at(&b, 9, 1, 8, 8);
	perfbuild_switch(&b, true);
	perfbuild_at(&b, 10, 1, 8, 9);
	perfbuild_switch(&b, false);
	perfbuild_at(&b, 11, 0, 7, 7);
	perfbuild_switch_wide(&b, true, 8, 8);
	perfbuild_exit(&b, 7, 7);
	perfbuild_end(&b);
}

/* Trailers without an identifier, build-ids in the mapping and in perf's table. */
static void other_layouts(void)
{
	static const struct record_mmap2 map = { .misc = PERF_RECORD_MISC_USER,
						 .pid = 7,
						 .tid = 7,
						 .addr = 0x1000,
						 .len = 0x1000,
						 .build_id = { { 1, 2, 3 }, 20 },
						 .prot = PROT_EXEC,
						 .flags = MAP_PRIVATE,
						 .name = "/no/such/b" };
	/* As an old perf wrote it: how long the id is, nothing says. */
	static const struct {
		int32_t pid;
		uint8_t id[20], size, reserved[3];
	} entry = { -1, { 1, 2, 3 }, 20, {} };

	perfbuild_begin(&b, false);
	b.bytes[PERFBUILD_ATTR + 26] = b.bytes[PERFBUILD_ATTR1 + 26] = 0;
	perfbuild_mapping(&b, PERF_RECORD_MMAP2, &map);
	perfbuild_record(&b, PERFABI_HEADER_BUILD_ID, PERF_RECORD_MISC_USER, &entry, sizeof(entry),
			 "/no/such/b");
	perfbuild_end(&b);
}

/* Snapshots that overlap, and all that can be lost. */
static void losses(void)
{
	static const uint8_t pt[] =
	    "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
	    "\x19\x05\0\0\0\0\0\0abcdefgh";

	perfbuild_begin(&b, false);
	b.bytes[PERFBUILD_SLOTS + 8 * PERFABI_PT_SNAPSHOT_MODE] = 1;
	perfbuild_at(&b, 5, 0, 7, 7);
	perfbuild_itrace(&b, 7, 7);
	perfbuild_lost(&b, 3);
	perfbuild_lost_samples(&b, 3);
	perfbuild_aux(&b, 0, 40, 15);
	perfbuild_auxtrace(&b, 0, 0, -1, 0, pt, sizeof(pt) - 4);
	perfbuild_auxtrace(&b, 0, 0, -1, 0, pt, sizeof(pt));
	perfbuild_end(&b);
}

static void samples(void)
{
	perfbuild_begin(&b, false);
	perfbuild_sampling(&b);
	perfbuild_at(&b, 5, 0, 7, 7);
	perfbuild_sample(&b, "abcdefgh", 8);
	perfbuild_aux(&b, 0, 4, 1);
	perfbuild_end(&b);
}

static void compressed(void)
{
	ZSTD_CCtx *stream = ZSTD_createCCtx();
	size_t at;

	perfbuild_example(&b, false);
	at = perfbuild_compress(&b, stream, PERFBUILD_FIRST, 50, false);
	(void)perfbuild_compress(&b, stream, at, 100, true);
	perfbuild_end(&b);
	ZSTD_freeCCtx(stream);
}

/* BPF programs that came to one address, the first with two functions. */
static void put_programs(bool pipe)
{
	static const struct perfbpf_function first[] = { { UINT64_C(0xffffffffc0001000), "ab", 2 },
							 { UINT64_C(0xffffffffc0002000), "c", 1 } },
					     second = { UINT64_C(0xffffffffc0001000), "def", 3 };

	perfbpf_begin(&section);
	(void)perfbpf_add(&section, 5, 1, first, 2);
	(void)perfbpf_add(&section, 6, 2, &second, 1);
	perfbuild_begin(&b, pipe);
	perfbpf_end(&b, &section);
	perfbuild_auxtrace(&b, 0, 0, -1, 0, "abcdefgh", 8);
	perfbpf_load(&b, 5, 1, first[0].address, 2);
	perfbuild_at(&b, 9, 0, 7, 7);
	perfbpf_load(&b, 6, 2, second.address, 3);
	perfbuild_end(&b);
}

static void programs(void)
{
	put_programs(false);
}

static void programs_pipe(void)
{
	put_programs(true);
}

static const struct {
	const char *name;
	void (*make)(void);
} seeds[] = {
	{ "losses", losses },         { "samples", samples },   { "compressed", compressed },
	{ "file", file_form },        { "pipe", pipe_form },    { "cut-off", cut_off },
	{ "filter", filter },         { "pieces", pieces },     { "tasks", tasks },
	{ "layouts", other_layouts }, { "programs", programs }, { "programs-pipe", programs_pipe },
};

int main(int argc, char **argv)
{
	char path[4096];

	if (argc != 2) {
		fprintf(stderr, "usage: %s DIRECTORY\n", argv[0]);
		return 2;
	}
	for (size_t i = 0; i < ARRAY_LEN(seeds); i++) {
		FILE *f;

		seeds[i].make();
		snprintf(path, sizeof(path), "%s/%s", argv[1], seeds[i].name);
		f = fopen(path, "we");
		if (!f || fwrite(b.bytes, 1, b.size, f) != b.size || fclose(f) != 0) {
			perror(path);
			return 1;
		}
	}
	return 0;
}
