/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * iptpeer insn|block PT CODE: decodes a bare PT stream by libipt's instruction or block decoder, as
 * a program does that wants to go as fast as libipt can, and prints how many instructions ran, and
 * how often decoding had to begin anew. CODE is a list of the code: a line for each piece, with
 * address, size, offset and file. The CPU is that of the software source, and its time is not asked
 * for.
 */

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <intel-pt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"

struct count {
	uint64_t n_insns, n_errors;
};

static void map_pt(const char *path, struct pt_config *config)
{
	_cleanup_(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	void *bytes;

	if (fd < 0 || fstat(fd, &st) < 0)
		error(1, errno, "%s", path);
	/* libipt does not write to it, but wants that it could. */
	bytes = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		error(1, errno, "%s", path);
	config->begin = bytes;
	config->end = config->begin + st.st_size;
}

static void check(int r, const char *what)
{
	if (r < 0)
		error(1, 0, "%s: %s", what, pt_errstr(pt_errcode(r)));
}

static struct pt_image *read_code(const char *path, struct pt_image_section_cache *cache)
{
	struct pt_image *image = pt_image_alloc(NULL);
	FILE *f = fopen(path, "re");
	char line[4096 + 64], name[4096];
	uint64_t address, size, offset;

	if (!f || !image)
		error(1, errno, "%s", path);
	while (fgets(line, sizeof(line), f)) {
		int id;

		if (sscanf(line, "%" SCNx64 " %" SCNx64 " %" SCNx64 " %4095[^\n]", &address, &size,
			   &offset, name) != 4)
			error(1, 0, "%s: no piece of code: %s", path, line);
		id = pt_iscache_add_file(cache, name, offset, size, address);
		check(id, name);
		check(pt_image_add_cached(image, cache, id, NULL), name);
	}
	(void)fclose(f);
	return image;
}

static struct count decode_insns(const struct pt_config *config, struct pt_image *image)
{
	struct pt_insn_decoder *decoder = pt_insn_alloc_decoder(config);
	struct count count = {};
	struct pt_event event;
	struct pt_insn insn;
	int r;

	if (!decoder)
		error(1, ENOMEM, "libipt");
	check(pt_insn_set_image(decoder, image), "libipt");
	while ((r = pt_insn_sync_forward(decoder)) >= 0) {
		while (r >= 0 && !(r & pts_eos)) {
			while (r >= 0 && r & pts_event_pending)
				r = pt_insn_event(decoder, &event, sizeof(event));
			if (r < 0 || r & pts_eos)
				break;
			r = pt_insn_next(decoder, &insn, sizeof(insn));
			count.n_insns += r >= 0;
		}
		count.n_errors += r < 0 && r != -pte_eos;
	}
	pt_insn_free_decoder(decoder);
	return count;
}

static struct count decode_blocks(const struct pt_config *config, struct pt_image *image)
{
	struct pt_block_decoder *decoder = pt_blk_alloc_decoder(config);
	struct count count = {};
	struct pt_event event;
	int r;

	if (!decoder)
		error(1, ENOMEM, "libipt");
	check(pt_blk_set_image(decoder, image), "libipt");
	while ((r = pt_blk_sync_forward(decoder)) >= 0) {
		while (r >= 0 && !(r & pts_eos)) {
			struct pt_block block = {};

			while (r >= 0 && r & pts_event_pending)
				r = pt_blk_event(decoder, &event, sizeof(event));
			if (r < 0 || r & pts_eos)
				break;
			r = pt_blk_next(decoder, &block, sizeof(block));
			count.n_insns += block.ninsn;
		}
		count.n_errors += r < 0 && r != -pte_eos;
	}
	pt_blk_free_decoder(decoder);
	return count;
}

int main(int argc, char **argv)
{
	struct pt_image_section_cache *cache;
	struct pt_config config;
	struct pt_image *image;
	struct count count;
	bool is_block;

	if (argc != 4)
		error(2, 0, "usage: iptpeer insn|block PT CODE");
	is_block = strcmp(argv[1], "block") == 0;
	pt_config_init(&config);
	map_pt(argv[2], &config);
	config.cpu =
	    (struct pt_cpu){ .vendor = pcv_intel, .family = 6, .model = 94, .stepping = 3 };
	check(pt_cpu_errata(&config.errata, &config.cpu), "the CPU");
	/* Blocks are what ptdecode's runs are: they end where a branch goes. */
	config.flags.variant.block.end_on_call = is_block;
	config.flags.variant.block.end_on_jump = is_block;
	cache = pt_iscache_alloc(NULL);
	if (!cache)
		error(1, ENOMEM, "libipt");
	check(pt_iscache_set_limit(cache, UINT64_MAX), "libipt");
	image = read_code(argv[3], cache);
	count = is_block ? decode_blocks(&config, image) : decode_insns(&config, image);
	printf("%" PRIu64 " instructions, %" PRIu64 " errors\n", count.n_insns, count.n_errors);
	pt_image_free(image);
	pt_iscache_free(cache);
	return 0;
}
