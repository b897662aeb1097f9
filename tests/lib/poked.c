/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/poked.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "decoder/util/mapfile.h"
#include "decoder/util/vec.h"

/* What a record says of bytes from an address on. */
struct change {
	uint64_t time, start, size;
	bool is_function, ends;
	const uint8_t *old, *new;
	uint16_t n_old, n_new;
};

struct poked {
	struct mapfile kcore;
	bool is_last; /* the copy was made when all was over */
	VEC(struct change) changes;
};

static int on_ksymbol(struct poked *p, const struct walk_record *record)
{
	struct change c = { .time = record->time, .is_function = true };
	uint32_t size;

	if (record->payload_size <= 16 ||
	    !memchr(record->payload + 16, 0, record->payload_size - 16))
		return 0;
	memcpy(&c.start, record->payload, 8);
	memcpy(&size, record->payload + 8, 4);
	c.size = size;
	c.ends = record->payload[14] & 1;
	return vec_push(&p->changes, c);
}

static int on_poke(struct poked *p, const struct walk_record *record)
{
	struct change c = { .time = record->time };

	if (record->payload_size < 12)
		return 0;
	memcpy(&c.start, record->payload, 8);
	memcpy(&c.n_old, record->payload + 8, 2);
	memcpy(&c.n_new, record->payload + 10, 2);
	if (record->payload_size - 12 < (size_t)c.n_old + c.n_new)
		return 0;
	c.old = record->payload + 12;
	c.new = c.old + c.n_old;
	c.size = c.n_old > c.n_new ? c.n_old : c.n_new;
	return vec_push(&p->changes, c);
}

int poked_new(const char *dir, const struct walk *walk, struct poked **ret_poked)
{
	_cleanup_(poked_freep) struct poked *p = calloc(1, sizeof(*p));
	char path[8192];
	int r = 0;

	if (!p)
		return -ENOMEM;
	if (dir) {
		(void)snprintf(path, sizeof(path), "%s/manifest", dir);
		p->is_last = access(path, F_OK) == 0;
		(void)snprintf(path, sizeof(path), "%s/kcore_dir/kcore", dir);
		(void)!mapfile_init(&p->kcore, AT_FDCWD, path);
	}
	for (size_t i = 0; i < walk->records.n && r == 0; i++) {
		const struct walk_record *record = &walk->records.items[i];

		if (record->type == PERF_RECORD_KSYMBOL)
			r = on_ksymbol(p, record);
		else if (record->type == PERF_RECORD_TEXT_POKE)
			r = on_poke(p, record);
	}
	if (r < 0)
		return r;
	*ret_poked = TAKE(p);
	return 0;
}

struct poked *poked_free(struct poked *poked)
{
	if (!poked)
		return NULL;
	mapfile_deinit(&poked->kcore);
	vec_deinit(&poked->changes);
	free(poked);
	return NULL;
}

/* Return: the byte that the copy has at @address; -1 if it has none. */
static int copied(const struct poked *p, uint64_t address)
{
	const uint8_t *bytes = p->kcore.bytes;
	Elf64_Ehdr e;
	int byte = -1;

	if (p->kcore.size < sizeof(e))
		return -1;
	memcpy(&e, bytes, sizeof(e));
	for (size_t i = 0; i < e.e_phnum; i++) {
		const uint64_t at = e.e_phoff + i * sizeof(Elf64_Phdr);
		Elf64_Phdr h;

		if (at > p->kcore.size || p->kcore.size - at < sizeof(h))
			break;
		memcpy(&h, bytes + at, sizeof(h));
		if (address >= h.p_vaddr && address - h.p_vaddr < h.p_filesz &&
		    h.p_offset + (address - h.p_vaddr) < p->kcore.size)
			byte = bytes[h.p_offset + (address - h.p_vaddr)];
	}
	return byte;
}

static bool have_byte(const struct poked *p, uint64_t time, uint64_t address, uint8_t byte,
		      uint64_t *from, uint64_t *to)
{
	bool told = false, copy_counts = true;
	const struct change *before = NULL, *after = NULL;

	for (size_t i = 0; i < p->changes.n; i++) {
		const struct change *c = &p->changes.items[i];

		if (address < c->start || address - c->start >= c->size)
			continue;
		if (c->time <= time)
			before = c;
		else if (!after)
			after = c;
		/* A copy is not of what came after it, or went before. */
		if (c->time > 0 && !p->is_last && c->time <= time)
			copy_counts = false;
		if (p->is_last && c->time > time)
			copy_counts = false;
	}
	if (before && before->time > *from)
		*from = before->time;
	if (after && after->time < *to)
		*to = after->time;
	if (before && before->is_function && before->ends)
		return false;
	if (after && after->is_function && !after->ends)
		return false;
	if (before && !before->is_function) {
		if (address - before->start >= before->n_new ||
		    before->new[address - before->start] != byte)
			return false;
		told = true;
	}
	if (after && !after->is_function) {
		if (address - after->start >= after->n_old ||
		    after->old[address - after->start] != byte)
			return false;
		told = true;
	}
	return told || (copy_counts && copied(p, address) == byte);
}

bool poked_have(const struct poked *poked, uint64_t time, uint64_t address, const uint8_t *bytes,
		size_t size, uint64_t *from, uint64_t *to)
{
	for (size_t i = 0; i < size; i++)
		if (!have_byte(poked, time, address + i, bytes[i], from, to))
			return false;
	return true;
}
