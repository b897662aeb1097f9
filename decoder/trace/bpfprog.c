/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/trace/bpfprog.h"

#include <errno.h>
#include <linux/bpf.h>
#include <string.h>

/* Bits of the head's arrays: the pointer in the info is an offset into the data. */
#define ARRAY_CODE      (UINT64_C(1) << 0)
#define ARRAY_ADDRESSES (UINT64_C(1) << 3)
#define ARRAY_SIZES     (UINT64_C(1) << 4)
#define ARRAYS          (ARRAY_CODE | ARRAY_ADDRESSES | ARRAY_SIZES)

struct head {
	uint32_t info_size, data_size;
	uint64_t arrays;
};

/* Older recorders know less of the info, newer ones more: what they do not have is zero. */
static int get_info(struct cursor *section, uint32_t size, struct bpf_prog_info *ret_info)
{
	struct cursor bytes;
	int r;

	r = cursor_get_sub(section, size, &bytes);
	if (r < 0)
		return r;
	memset(ret_info, 0, sizeof(*ret_info));
	return cursor_get(&bytes, size < sizeof(*ret_info) ? size : sizeof(*ret_info), ret_info);
}

static int get_array(struct cursor data, uint64_t offset, uint64_t size, struct cursor *ret_array)
{
	return cursor_skip(&data, offset) ?: cursor_get_sub(&data, size, ret_array);
}

static int check_sizes(const struct bpfprog *program)
{
	uint64_t left = cursor_left(&program->code);
	struct cursor sizes = program->sizes;
	uint32_t size;

	while (cursor_get(&sizes, sizeof(size), &size) == 0) {
		if (size > left)
			return -EBADMSG;
		left -= size;
	}
	return 0;
}

static int read_functions(const struct bpf_prog_info *info, struct cursor data,
			  struct bpfprog *program)
{
	const uint64_t n = info->nr_jited_ksyms;
	int r;

	if (info->nr_jited_func_lens != n)
		return -EBADMSG;
	r = get_array(data, info->jited_prog_insns, info->jited_prog_len, &program->code);
	if (r == 0)
		r = get_array(data, info->jited_ksyms, n * sizeof(uint64_t), &program->addresses);
	if (r == 0)
		r = get_array(data, info->jited_func_lens, n * sizeof(uint32_t), &program->sizes);
	return r ?: check_sizes(program);
}

int bpfprog_next(struct cursor *section, struct bpfprog *ret_program)
{
	struct bpfprog program = {};
	struct bpf_prog_info info;
	struct cursor data;
	struct head head;
	int r;

	r = cursor_get(section, sizeof(head), &head);
	if (r == 0)
		r = get_info(section, head.info_size, &info);
	if (r == 0)
		r = cursor_get_sub(section, head.data_size, &data);
	if (r < 0)
		return r;
	if ((head.arrays & ARRAYS) != ARRAYS || read_functions(&info, data, &program) < 0)
		program = (struct bpfprog){};
	program.id = info.id;
	memcpy(&program.tag, info.tag, sizeof(program.tag));
	*ret_program = program;
	return 0;
}

int bpfprog_next_function(struct bpfprog *program, struct bpfprog_function *ret_function)
{
	struct bpfprog_function function;
	struct cursor code;

	if (cursor_get(&program->addresses, sizeof(function.address), &function.address) < 0 ||
	    cursor_get(&program->sizes, sizeof(function.size), &function.size) < 0 ||
	    cursor_get_sub(&program->code, function.size, &code) < 0)
		return BPFPROG_END;
	function.code = code.pos;
	*ret_function = function;
	return 0;
}
