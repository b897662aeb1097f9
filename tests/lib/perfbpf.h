/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * BPF programs of a perf.data file
 *
 * Builds the section of BPF programs for perfbuild.h, as perf record writes it.
 */

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

#include "tests/lib/perfbuild.h"

#define PERFBPF_SIZE_MAX (1u << 14)

/* A program, which its data follow: addresses, sizes, code. */
struct perfbpf_program {
	uint32_t info_size, data_size;
	uint64_t arrays;
	struct bpf_prog_info info;
};

struct perfbpf {
	uint8_t bytes[PERFBPF_SIZE_MAX]; /* first how many there are, uint32_t */
	size_t size;
};

struct perfbpf_function {
	uint64_t address;
	const void *code;
	uint32_t size;
};

void perfbpf_begin(struct perfbpf *section);

/* Add a program. Return: the offset of its struct perfbpf_program in the section. */
size_t perfbpf_add(struct perfbpf *section, uint32_t id, uint64_t tag,
		   const struct perfbpf_function *functions, size_t n_functions);

/* Put the section, which is borrowed, into the file. In the pipe form it is a record. */
void perfbpf_end(struct perfbuild *b, const struct perfbpf *section);

/* Add the records of a program that is loaded: KSYMBOL and BPF_EVENT. */
void perfbpf_load(struct perfbuild *b, uint32_t id, uint64_t tag, uint64_t address, uint32_t size);
