/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/emulog.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cursor.h"
#include "daemon/plugin/truthlog.h"

#define WORD        sizeof(uint32_t)
#define PARENTS_MAX 1000 /* a dictionary that inherits from itself must come to an end */

/* --- which logs there are --------------------------------------------------------------------- */

struct name {
	uint32_t pid;
	uint32_t tid;
	uint32_t generation;
};

static bool parse_name(const char *file, struct name *ret_name)
{
	int end = 0;

	return sscanf(file, "%" SCNu32 ".%" SCNu32 ".%" SCNu32 ".log%n", &ret_name->pid,
		      &ret_name->tid, &ret_name->generation, &end) == 3 &&
	       end > 0 && file[end] == '\0';
}

static int by_number(const void *a, const void *b)
{
	const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static int find_generations(struct emulog *log)
{
	DIR *d = opendir(log->dir);
	struct dirent *entry;
	struct name name;
	int r = 0;

	if (!d)
		return -errno;
	while (r == 0 && (entry = readdir(d)))
		if (parse_name(entry->d_name, &name) && name.pid == log->pid &&
		    name.tid == log->tid)
			r = vec_push(&log->generations, name.generation);
	(void)closedir(d);
	if (r == 0 && log->generations.n == 0)
		return -ENOENT;
	if (r == 0)
		qsort(log->generations.items, log->generations.n, sizeof(uint32_t), by_number);
	return r;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int add_name(struct emulog_names *names, const struct name *name)
{
	char *text;
	int r;

	if (asprintf(&text, "%" PRIu32 ".%" PRIu32, name->pid, name->tid) < 0)
		return -ENOMEM;
	for (size_t i = 0; i < names->list.n; i++) {
		if (strcmp(names->list.items[i], text) == 0) {
			free(text);
			return 0;
		}
	}
	r = vec_push(&names->list, text);
	if (r < 0)
		free(text);
	return r;
}

int emulog_list(const char *dir, struct emulog_names *ret_names)
{
	struct emulog_names names = {};
	DIR *d = opendir(dir);
	struct dirent *entry;
	struct name name;
	int r = 0;

	if (!d)
		return -errno;
	while (r == 0 && (entry = readdir(d)))
		if (parse_name(entry->d_name, &name))
			r = add_name(&names, &name);
	(void)closedir(d);
	if (r < 0) {
		emulog_names_deinit(&names);
		return r;
	}
	if (names.list.n > 0)
		qsort(names.list.items, names.list.n, sizeof(char *), by_text);
	*ret_names = names;
	return 0;
}

void emulog_names_deinit(struct emulog_names *names)
{
	for (size_t i = 0; i < names->list.n; i++)
		free(names->list.items[i]);
	vec_deinit(&names->list);
}

/* --- dictionaries ----------------------------------------------------------------------------- */

/* Take the first @n blocks of a dictionary. Those before the first of a child are its parent's. */
static int read_dictionary(struct emulog *log, uint32_t pid, uint32_t generation, size_t n)
{
	struct mapfile file;
	struct cursor c;
	char path[4096];
	int r;

	(void)snprintf(path, sizeof(path), "%s/%" PRIu32 ".%" PRIu32 ".blocks", log->dir, pid,
		       generation);
	r = mapfile_read(&file, AT_FDCWD, path);
	if (r < 0)
		return r;
	r = vec_push(&log->dictionaries, file);
	if (r < 0) {
		mapfile_deinit(&file);
		return r;
	}
	c = cursor_from(file.bytes, file.size);
	while (r == 0 && cursor_left(&c) > 0 && log->blocks.n < n) {
		const uint8_t *entry = file.bytes + (file.size - cursor_left(&c));
		struct cursor addresses;
		uint32_t head[2], parent[2];

		/* The kill of the process may have cut the last one off. */
		if (cursor_get(&c, sizeof(head), head) < 0)
			break;
		if (head[0] == TRUTHLOG_INHERITED) {
			r = cursor_get(&c, sizeof(parent), parent);
			if (r == 0 && (log->blocks.n > 0 || log->dictionaries.n > PARENTS_MAX))
				r = -EBADMSG;
			if (r == 0)
				r = read_dictionary(log, parent[0], parent[1],
						    head[1] < n ? head[1] : n);
			continue;
		}
		if (cursor_get_sub(&c, (size_t)head[0] * sizeof(uint64_t), &addresses) < 0)
			break;
		r = vec_push(&log->blocks, entry);
	}
	return r;
}

static void close_generation(struct emulog *log)
{
	for (size_t i = 0; i < log->dictionaries.n; i++)
		mapfile_deinit(&log->dictionaries.items[i]);
	vec_deinit(&log->dictionaries);
	vec_deinit(&log->blocks);
	mapfile_deinit(&log->words);
	log->word = 0;
}

static int open_generation(struct emulog *log)
{
	const uint32_t generation = log->generations.items[log->n_read];
	char path[4096];
	int r;

	r = read_dictionary(log, log->pid, generation, SIZE_MAX);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/%" PRIu32 ".%" PRIu32 ".%" PRIu32 ".log", log->dir,
		       log->pid, log->tid, generation);
	r = mapfile_read(&log->words, AT_FDCWD, path);
	if (r < 0)
		return r;
	log->n_read++;
	return 0;
}

int emulog_init(struct emulog *log, const char *dir, const char *name)
{
	int r;

	*log = (struct emulog){ .dir = dir };
	if (sscanf(name, "%" SCNu32 ".%" SCNu32, &log->pid, &log->tid) != 2)
		return -ENOENT;
	r = find_generations(log);
	if (r == 0)
		r = open_generation(log);
	if (r < 0)
		emulog_deinit(log);
	return r;
}

void emulog_deinit(struct emulog *log)
{
	close_generation(log);
	vec_deinit(&log->generations);
	vec_deinit(&log->holders);
	*log = (struct emulog){};
}

/* --- instructions ----------------------------------------------------------------------------- */

/* Return: 0; or EMULOG_END if the log was cut off before it. */
static int next_word(struct emulog *log, uint32_t *ret_word)
{
	if (log->words.size - log->word < WORD)
		return EMULOG_END;
	memcpy(ret_word, log->words.bytes + log->word, WORD);
	log->word += WORD;
	return 0;
}

static uint32_t block_size(const struct emulog *log, uint32_t block)
{
	uint32_t n;

	memcpy(&n, log->blocks.items[block], sizeof(n));
	return n;
}

/* Whether the last log says that it is complete. */
static bool is_complete(const struct emulog *log)
{
	uint32_t last = 0;

	if (log->words.size >= WORD)
		memcpy(&last, log->words.bytes + (log->words.size - WORD), WORD);
	return last == TRUTHLOG_END;
}

static int next_generation(struct emulog *log)
{
	if (log->n_read < log->generations.n) {
		close_generation(log);
		return open_generation(log);
	}
	log->over = true;
	log->cut = !is_complete(log);
	return EMULOG_END;
}

/*
 * Read an entry that begins with @word: which block, and how much of it retired. One that the kill
 * of the process cut off, or whose block it left without a description, is EMULOG_END.
 */
static int read_entry(struct emulog *log, uint32_t word)
{
	uint32_t block = word, n = UINT32_MAX;
	int r = 0;

	if (word == TRUTHLOG_PARTIAL || word == TRUTHLOG_UNREPORTED)
		r = next_word(log, &block);
	if (r == 0 && word == TRUTHLOG_PARTIAL)
		r = next_word(log, &n);
	if (r != 0)
		return r;
	if (block >= log->blocks.n)
		return is_complete(log) ? -EBADMSG : EMULOG_END;
	if (word != TRUTHLOG_PARTIAL)
		n = block_size(log, block);
	if (n > block_size(log, block))
		return -EBADMSG;

	log->block = block;
	log->insn = 0;
	log->n = n;
	log->unreported = word == TRUTHLOG_UNREPORTED;
	return 0;
}

static int next_entry(struct emulog *log)
{
	uint32_t word;
	int r;

	if (log->over)
		return EMULOG_END;
	r = next_word(log, &word);
	if (r == 0 && word != TRUTHLOG_END)
		r = read_entry(log, word);
	return r == EMULOG_END ? next_generation(log) : r;
}

static uint64_t insn_address(const struct emulog *log, uint32_t block, uint32_t insn)
{
	uint64_t ip;

	memcpy(&ip, log->blocks.items[block] + 2 * sizeof(uint32_t) + insn * sizeof(ip),
	       sizeof(ip));
	return ip;
}

int emulog_next(struct emulog *log, struct emulog_insn *ret_insn)
{
	int r;

	while (log->insn == log->n) {
		r = next_entry(log);
		if (r != 0)
			return r;
	}
	ret_insn->ip = insn_address(log, log->block, log->insn);
	log->insn++;
	ret_insn->unreported = log->unreported && log->insn == log->n;
	return 0;
}

int emulog_next_run(struct emulog *log, const uint8_t **ret_ips, size_t *ret_n)
{
	int r;

	while (log->insn == log->n) {
		r = next_entry(log);
		if (r != 0)
			return r;
	}
	*ret_ips =
	    log->blocks.items[log->block] + 2 * sizeof(uint32_t) + log->insn * sizeof(uint64_t);
	*ret_n = log->n - log->insn - log->unreported;
	log->insn = log->n;
	return 0;
}

static bool block_holds(const struct emulog *log, uint32_t block, uint64_t ip)
{
	for (uint32_t i = 0; i < block_size(log, block); i++)
		if (insn_address(log, block, i) == ip)
			return true;
	return false;
}

/* Look which blocks hold @ip, unless that was done. */
static int find_holders(struct emulog *log, uint64_t ip)
{
	int r;

	if (log->sought_in == log->n_read && log->sought == ip)
		return 0;
	r = vec_reserve(&log->holders, log->blocks.n);
	if (r < 0)
		return r;
	log->holders.n = 0;
	for (uint32_t block = 0; block < log->blocks.n; block++)
		log->holders.items[log->holders.n++] = block_holds(log, block, ip);
	log->sought = ip;
	log->sought_in = log->n_read;
	return 0;
}

int emulog_seek(struct emulog *log, uint64_t ip)
{
	int r;

	for (;;) {
		for (; log->insn < log->n; log->insn++)
			if (insn_address(log, log->block, log->insn) == ip)
				return 0;
		r = next_entry(log);
		if (r == 0)
			r = find_holders(log, ip);
		if (r != 0)
			return r;
		if (log->insn < log->n && !log->holders.items[log->block])
			log->insn = log->n;
	}
}
