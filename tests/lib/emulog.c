/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/emulog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "daemon/emu/log.h"

#define WORD sizeof(uint32_t)

static int index_blocks(struct emulog *log)
{
	struct cursor c = cursor_from(log->blocks.bytes, log->blocks.size);
	int r;

	while (cursor_left(&c) > 0) {
		const size_t at = log->blocks.size - cursor_left(&c);
		struct cursor addresses;
		uint32_t head[2];

		r = cursor_get(&c, sizeof(head), head);
		if (r == 0)
			r = cursor_get_sub(&c, (size_t)head[0] * sizeof(uint64_t), &addresses);
		if (r == 0)
			r = vec_push(&log->block_at, at);
		if (r < 0)
			return r;
	}
	return 0;
}

int emulog_init(struct emulog *log, const char *dir, const char *name)
{
	char path[4096];
	int r;

	*log = (struct emulog){};
	(void)snprintf(path, sizeof(path), "%s/%.*s.blocks", dir, (int)strcspn(name, "."), name);
	r = mapfile_init(&log->blocks, AT_FDCWD, path);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/%s.log", dir, name);
	r = mapfile_init(&log->words, AT_FDCWD, path);
	if (r == 0)
		r = index_blocks(log);
	if (r < 0)
		emulog_deinit(log);
	return r;
}

void emulog_deinit(struct emulog *log)
{
	mapfile_deinit(&log->blocks);
	mapfile_deinit(&log->words);
	vec_deinit(&log->block_at);
	*log = (struct emulog){};
}

static int next_word(struct emulog *log, uint32_t *ret_word)
{
	if ((log->words.size - log->word) < WORD)
		return -EBADMSG;
	memcpy(ret_word, log->words.bytes + log->word, WORD);
	log->word += WORD;
	return 0;
}

static uint32_t block_size(const struct emulog *log, uint32_t block)
{
	uint32_t n;

	memcpy(&n, log->blocks.bytes + log->block_at.items[block], sizeof(n));
	return n;
}

/* Read the next entry: which block, and how much of it retired. */
static int next_entry(struct emulog *log)
{
	uint32_t word, block, n = UINT32_MAX;
	int r;

	if (log->word == log->words.size)
		return EMULOG_END;
	r = next_word(log, &word);
	block = word;
	if (r == 0 && (word == LOG_PARTIAL || word == LOG_UNREPORTED))
		r = next_word(log, &block);
	if (r == 0 && word == LOG_PARTIAL)
		r = next_word(log, &n);
	if (r < 0)
		return r;
	if (block >= log->block_at.n)
		return -EBADMSG;
	if (word != LOG_PARTIAL)
		n = block_size(log, block);
	if (n > block_size(log, block))
		return -EBADMSG;

	log->block = block;
	log->insn = 0;
	log->n = n;
	log->unreported = word == LOG_UNREPORTED;
	return 0;
}

int emulog_next(struct emulog *log, struct emulog_insn *ret_insn)
{
	const uint8_t *addresses;
	int r;

	while (log->insn == log->n) {
		r = next_entry(log);
		if (r != 0)
			return r;
	}
	addresses = log->blocks.bytes + log->block_at.items[log->block] + 2 * sizeof(uint32_t);
	memcpy(&ret_insn->ip, addresses + log->insn * sizeof(uint64_t), sizeof(ret_insn->ip));
	log->insn++;
	ret_insn->unreported = log->unreported && log->insn == log->n;
	return 0;
}
