/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/perfbpf.h"

#include <assert.h>
#include <string.h>

/* The arrays that perf asks the kernel for and are here: code, addresses, sizes. */
#define ARRAYS (1u << 0 | 1u << 3 | 1u << 4)

static void append_bytes(struct perfbpf *s, const void *bytes, size_t size)
{
	assert(size <= sizeof(s->bytes) - s->size);
	if (size > 0)
		memcpy(s->bytes + s->size, bytes, size);
	s->size += size;
}

void perfbpf_begin(struct perfbpf *section)
{
	*section = (struct perfbpf){ .size = sizeof(uint32_t) };
}

size_t perfbpf_add(struct perfbpf *s, uint32_t id, uint64_t tag,
		   const struct perfbpf_function *functions, size_t n)
{
	static const uint8_t zeros[8];
	const size_t at = s->size, data = at + sizeof(struct perfbpf_program);
	struct perfbpf_program p = {
		.info_size = sizeof(p.info),
		.arrays = ARRAYS,
		.info = { .id = id,
			  .nr_jited_ksyms = (uint32_t)n,
			  .nr_jited_func_lens = (uint32_t)n,
			  .jited_func_lens = n * sizeof(uint64_t),
			  .jited_prog_insns = n * (sizeof(uint64_t) + sizeof(uint32_t)) },
	};
	uint32_t n_programs;

	memcpy(p.info.tag, &tag, sizeof(tag));
	append_bytes(s, &p, sizeof(p));
	for (size_t i = 0; i < n; i++)
		append_bytes(s, &functions[i].address, sizeof(functions[i].address));
	for (size_t i = 0; i < n; i++)
		append_bytes(s, &functions[i].size, sizeof(functions[i].size));
	for (size_t i = 0; i < n; i++) {
		append_bytes(s, functions[i].code, functions[i].size);
		p.info.jited_prog_len += functions[i].size;
	}
	append_bytes(s, zeros, -(s->size - data) % 8);
	p.data_size = (uint32_t)(s->size - data);
	memcpy(s->bytes + at, &p, sizeof(p));
	memcpy(&n_programs, s->bytes, sizeof(n_programs));
	n_programs++;
	memcpy(s->bytes, &n_programs, sizeof(n_programs));
	return at;
}

void perfbpf_end(struct perfbuild *b, const struct perfbpf *section)
{
	uint8_t record[sizeof(uint64_t) + PERFBPF_SIZE_MAX] = { PERFABI_FEATURE_BPF_PROG_INFO };

	if (!b->pipe) {
		b->programs = section->bytes;
		b->programs_size = section->size;
		return;
	}
	memcpy(record + sizeof(uint64_t), section->bytes, section->size);
	perfbuild_record(b, PERFABI_HEADER_FEATURE, 0, record,
			 (sizeof(uint64_t) + section->size + 7) & ~(size_t)7, NULL);
}

void perfbpf_load(struct perfbuild *b, uint32_t id, uint64_t tag, uint64_t address, uint32_t size)
{
	perfbuild_ksymbol(b, &(struct record_ksymbol){ .addr = address,
						       .len = size,
						       .ksym_type = PERF_RECORD_KSYMBOL_TYPE_BPF,
						       .name = "bpf_prog" });
	perfbuild_bpf_event(b, &(struct record_bpf_event){
				   .type = PERF_BPF_EVENT_PROG_LOAD, .id = id, .tag = tag });
}
