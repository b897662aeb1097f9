/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/poked.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

#include "util/perf/perfabi.h"
#include "util/vec.h"

/* What a record says of bytes from an address on. */
struct change {
	uint64_t time, start, size;
	bool is_function, ends;
	bool is_program; /* it does not say what was there before */
	const uint8_t *old, *new;
	uint64_t n_old, n_new;
};

struct poked {
	struct mapfile kcore;
	bool is_last; /* the copy was made when all was over */
	VEC(struct change) changes;
};

static int on_ksymbol(struct poked *p, const struct recordwalk_record *record)
{
	struct change c = { .time = record->time, .is_function = true };
	uint32_t size;

	if (record->payload_size <= 16 ||
	    !memchr(record->payload + 16, 0, record->payload_size - 16))
		return 0;
	memcpy(&c.start, record->payload, 8);
	memcpy(&size, record->payload + 8, 4);
	c.size = size;
	/* Nobody's code goes beyond the end of memory: that says nothing. */
	if (size == 0 || size - 1 > UINT64_MAX - c.start)
		return 0;
	c.ends = record->payload[14] & 1;
	return vec_push(&p->changes, c);
}

static int on_poke(struct poked *p, const struct recordwalk_record *record)
{
	struct change c = { .time = record->time };
	uint16_t n[2];

	if (record->payload_size < 12)
		return 0;
	memcpy(&c.start, record->payload, 8);
	memcpy(n, record->payload + 8, sizeof(n));
	c.n_old = n[0];
	c.n_new = n[1];
	if (record->payload_size - 12 < c.n_old + c.n_new)
		return 0;
	c.old = record->payload + 12;
	c.new = c.old + c.n_old;
	c.size = c.n_old > c.n_new ? c.n_old : c.n_new;
	return vec_push(&p->changes, c);
}

/* The section of BPF programs. */
static struct perfabi_section find_programs(const struct mapfile *data)
{
	struct perfabi_section section = {};
	struct perfabi_header h;
	uint64_t at;

	if (data->size < sizeof(h))
		return section;
	memcpy(&h, data->bytes, sizeof(h));
	if (h.size != sizeof(h) || !(h.features[0] >> PERFABI_FEATURE_BPF_PROG_INFO & 1))
		return section;
	at = h.data.offset + h.data.size;
	for (unsigned i = 0; i < PERFABI_FEATURE_BPF_PROG_INFO; i++)
		at += (h.features[0] >> i & 1) * sizeof(section);
	if (at > data->size || data->size - at < sizeof(section))
		return section;
	memcpy(&section, (const uint8_t *)data->bytes + at, sizeof(section));
	if (section.offset > data->size || section.size > data->size - section.offset)
		section.size = 0;
	return section;
}

/* One program of it: its info, and all arrays lie in its data. */
struct program {
	struct bpf_prog_info info;
	const uint8_t *data;
	uint64_t size;
	uint64_t arrays;
};

static bool lies_in(const struct program *p, uint64_t offset, uint64_t size)
{
	return offset <= p->size && size <= p->size - offset;
}

static bool has_functions(const struct program *p)
{
	const struct bpf_prog_info *i = &p->info;
	uint64_t total = 0;

	if ((p->arrays & 0x19) != 0x19 || i->nr_jited_ksyms == 0 ||
	    i->nr_jited_ksyms != i->nr_jited_func_lens ||
	    !lies_in(p, i->jited_ksyms, UINT64_C(8) * i->nr_jited_ksyms) ||
	    !lies_in(p, i->jited_func_lens, UINT64_C(4) * i->nr_jited_ksyms) ||
	    !lies_in(p, i->jited_prog_insns, i->jited_prog_len))
		return false;
	for (uint32_t n = 0; n < i->nr_jited_ksyms; n++) {
		uint32_t size;

		memcpy(&size, p->data + i->jited_func_lens + 4 * n, sizeof(size));
		total += size;
	}
	return total <= i->jited_prog_len;
}

/* Return: the size of what is at @bytes; 0 if that is no whole program. */
static uint64_t read_program(const uint8_t *bytes, uint64_t size, struct program *ret)
{
	uint32_t n[2];

	*ret = (struct program){};
	if (size < 16)
		return 0;
	memcpy(n, bytes, sizeof(n));
	memcpy(&ret->arrays, bytes + 8, sizeof(ret->arrays));
	if (size - 16 < (uint64_t)n[0] + n[1])
		return 0;
	memcpy(&ret->info, bytes + 16, n[0] < sizeof(ret->info) ? n[0] : sizeof(ret->info));
	ret->data = bytes + 16 + n[0];
	ret->size = n[1];
	return 16 + (uint64_t)n[0] + n[1];
}

static int add_functions(struct poked *p, uint64_t time, const struct program *program)
{
	const struct bpf_prog_info *info = &program->info;
	const uint8_t *code = program->data + info->jited_prog_insns;
	int r = 0;

	for (uint32_t i = 0; i < info->nr_jited_ksyms && r == 0; i++) {
		struct change c = { .time = time, .is_program = true, .new = code };
		uint32_t size;

		memcpy(&c.start, program->data + info->jited_ksyms + 8 * i, sizeof(c.start));
		memcpy(&size, program->data + info->jited_func_lens + 4 * i, sizeof(size));
		c.size = c.n_new = size;
		code += size;
		r = vec_push(&p->changes, c);
	}
	return r;
}

static int on_bpf_event(struct poked *p, const struct mapfile *data,
			const struct recordwalk_record *record)
{
	const struct perfabi_section section = find_programs(data);
	const uint8_t *bytes = (const uint8_t *)data->bytes + section.offset;
	struct program program;
	uint16_t type;
	uint32_t id, n;

	if (record->payload_size < 16 || section.size < sizeof(n))
		return 0;
	memcpy(&type, record->payload, sizeof(type));
	memcpy(&id, record->payload + 4, sizeof(id));
	memcpy(&n, bytes, sizeof(n));
	if (type != PERF_BPF_EVENT_PROG_LOAD)
		return 0;
	for (uint64_t at = sizeof(n), size; n > 0; n--, at += size) {
		size = read_program(bytes + at, section.size - at, &program);
		if (size == 0)
			return 0;
		if (program.info.id != id || !has_functions(&program))
			continue;
		return memcmp(program.info.tag, record->payload + 8, BPF_TAG_SIZE) == 0
			   ? add_functions(p, record->time, &program)
			   : 0;
	}
	return 0;
}

int poked_new(const char *dir, const struct mapfile *data, const struct recordwalk *walk,
	      struct poked **ret_poked)
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
		(void)!mapfile_read(&p->kcore, AT_FDCWD, path);
	}
	for (size_t i = 0; i < walk->records.n && r == 0; i++) {
		const struct recordwalk_record *record = &walk->records.items[i];

		if (record->type == PERF_RECORD_KSYMBOL)
			r = on_ksymbol(p, record);
		else if (record->type == PERF_RECORD_TEXT_POKE)
			r = on_poke(p, record);
		else if (record->type == PERF_RECORD_BPF_EVENT)
			r = on_bpf_event(p, data, record);
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
static int copied_byte(const struct poked *p, uint64_t address)
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
	if (after && !after->is_function && !after->is_program) {
		if (address - after->start >= after->n_old ||
		    after->old[address - after->start] != byte)
			return false;
		told = true;
	}
	return told || (copy_counts && copied_byte(p, address) == byte);
}

bool poked_have(const struct poked *poked, uint64_t time, uint64_t address, const uint8_t *bytes,
		size_t size, uint64_t *from, uint64_t *to)
{
	for (size_t i = 0; i < size; i++)
		if (!have_byte(poked, time, address + i, bytes[i], from, to))
			return false;
	return true;
}
