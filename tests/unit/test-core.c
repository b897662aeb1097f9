/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Core files: one that is well-formed, and the same spoiled in one place each. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <assert.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/file/core.h"

#define STACK UINT64_C(0x7ffc00001000)

/* The kernel's struct elf_prstatus and elf_prpsinfo. */
struct status {
	uint8_t before[12];
	uint16_t signal;
	uint8_t between[18];
	uint32_t pid;
	uint8_t more[76];
	uint64_t regs[27];
	uint8_t after[8];
};
static_assert(sizeof(struct status) == 336, "as the kernel has it");

struct info {
	uint8_t before[24];
	uint32_t pid;
	uint8_t after[108];
};

struct signal {
	int32_t number, error, code, unused;
	uint64_t address;
	uint8_t after[104];
};

#define NOTE(type)                           \
	struct __attribute__((__packed__)) { \
		Elf64_Nhdr head;             \
		char name[8];                \
		struct type body;            \
	}

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr segments[3];
	Elf64_Shdr section;
	NOTE(status) first;
	NOTE(info) info;
	NOTE(signal) signal;
	NOTE(status) second;
	uint64_t stack[4], other[2];
} __attribute__((__packed__));

#define HEAD(type, number)                                                              \
	.head = { .n_namesz = 5, .n_descsz = sizeof(struct type), .n_type = (number) }, \
	.name = "CORE"

static struct image make(void)
{
	struct image image = {
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, 1 },
			    .e_type = ET_CORE,
			    .e_machine = EM_X86_64,
			    .e_phoff = offsetof(struct image, segments),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 3 },
		.segments = { { .p_type = PT_NOTE,
				.p_offset = offsetof(struct image, first),
				.p_filesz =
				    offsetof(struct image, stack) - offsetof(struct image, first) },
			      { .p_type = PT_LOAD,
				.p_vaddr = STACK,
				.p_offset = offsetof(struct image, stack),
				.p_filesz = 32,
				.p_memsz = 4096 },
			      { .p_type = PT_LOAD,
				.p_vaddr = 0x400000,
				.p_offset = offsetof(struct image, other),
				.p_filesz = 16,
				.p_memsz = 16 } },
		.section = { .sh_info = 3 },
		.first = { HEAD(status, NT_PRSTATUS), .body = { .signal = 11, .pid = 101 } },
		.info = { HEAD(info, NT_PRPSINFO), .body = { .pid = 100 } },
		.signal = { HEAD(signal, NT_SIGINFO),
			    .body = { .number = 7, .code = 2, .address = 0xdead } },
		.second = { HEAD(status, NT_PRSTATUS), .body = { .signal = 11, .pid = 100 } },
		.stack = { 1, 2, 3, 4 },
		.other = { 5, 6 },
	};

	for (uint64_t i = 0; i < 27; i++)
		image.first.body.regs[i] = 1000 + i;
	return image;
}

/* Open the first @size bytes of @image. */
static int open_image(const struct image *image, size_t size, struct core **ret_core,
		      char **reterr_message)
{
	struct filebytes *file;

	assert_int_equal(filebytes_new_in_memory(image, size, &file), 0);
	return core_open_bytes(file, "core", ret_core, reterr_message);
}

static void whole(void **state)
{
	const struct image image = make();
	_cleanup_(core_closep) struct core *core = NULL;
	/* In the order of DWARF, of the order of struct user_regs_struct. */
	static const uint8_t order[] = { 10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16 };
	uint64_t values[3] = {};
	char *message = NULL;

	(void)state;
	assert_int_equal(open_image(&image, sizeof(image), &core, &message), 0);
	assert_null(message);
	assert_int_equal(core->pid, 100);
	assert_int_equal(core->threads.n, 2);
	assert_int_equal(core->threads.items[0].tid, 101);
	assert_int_equal(core->threads.items[1].tid, 100);
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		assert_int_equal(core->threads.items[0].regs[i], 1000 + order[i]);
	assert_int_equal(core->signal, 7);
	assert_int_equal(core->signal_code, 2);
	assert_int_equal(core->signal_address, 0xdead);

	assert_true(core_read(core, STACK + 8, values, 24));
	assert_int_equal(values[0], 2);
	assert_int_equal(values[2], 4);
	assert_true(core_read(core, 0x400008, values, 8));
	assert_int_equal(values[0], 6);
	assert_false(core_read(core, STACK + 16, values, 24));
	assert_false(core_read(core, STACK - 8, values, 8));
	assert_false(core_read(core, STACK + 32, values, 8));
	assert_false(core_read(core, 0x3fffff, values, 8));
	assert_false(core_read(core, UINT64_MAX, values, 8));
	assert_int_equal(values[0], 6);
}

#define FIELD(of) offsetof(struct image, of), sizeof(((struct image *)NULL)->of)

static void spoiled(void **state)
{
	static const struct {
		const char *what;
		size_t offset, size;
		uint64_t value;
		int expected;
		size_t n_threads;
		const char *message;
	} rows[] = {
		{ "another magic", FIELD(header.e_ident[1]), 'F', -EBADMSG, 0, "is no core file" },
		{ "32 bits", FIELD(header.e_ident[EI_CLASS]), 1, -EBADMSG, 0, "is no core file" },
		{ "a program", FIELD(header.e_type), ET_EXEC, -EBADMSG, 0, "is no core file" },
		{ "another machine", FIELD(header.e_machine), 183, -EBADMSG, 0, "is no core file" },
		{ "headers of another size", FIELD(header.e_phentsize), 32, -EBADMSG, 0,
		  "no core" },
		{ "no segments", FIELD(header.e_phnum), 0, -ENODATA, 0, "has no threads" },
		{ "headers outside", FIELD(header.e_phoff), UINT64_MAX - 20, -ENODATA, 0,
		  "no thr" },
		{ "many segments", FIELD(header.e_phnum), 0xfffe, 0, 2, NULL },
		{ "notes outside", FIELD(segments[0].p_offset), 1 << 20, -ENODATA, 0,
		  "no threads" },
		{ "notes without an end", FIELD(segments[0].p_filesz), UINT64_MAX, -ENODATA, 0,
		  "no threads" },
		{ "a status that is too short", FIELD(first.head.n_descsz), 332, -ENODATA, 0,
		  "no" },
		{ "a note of another's", FIELD(first.name[0]), 'X', 0, 1, NULL },
		{ "a name without an end", FIELD(info.head.n_namesz), UINT32_MAX, 0, 1, NULL },
		{ "a body without an end", FIELD(info.head.n_descsz), UINT32_MAX - 2, 0, 1, NULL },
		{ "a stack outside", FIELD(segments[1].p_offset), UINT64_MAX, 0, 2, NULL },
		{ "a stack beyond the end", FIELD(segments[1].p_filesz), UINT64_MAX, 0, 2, NULL },
		{ "a stack at the end", FIELD(segments[1].p_vaddr), UINT64_MAX - 3, 0, 2, NULL },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(core_closep) struct core *core = NULL;
		_cleanup_(freep) char *message = NULL;
		struct image image = make();
		int r;

		memcpy((uint8_t *)&image + rows[i].offset, &rows[i].value, rows[i].size);
		r = open_image(&image, sizeof(image), &core, &message);
		if (r != rows[i].expected || (core ? core->threads.n : 0) != rows[i].n_threads)
			fail_msg("%s: %d, %zu threads", rows[i].what, r,
				 core ? core->threads.n : 0);
		assert_true(!rows[i].message == !message);
		if (message)
			assert_non_null(strstr(message, rows[i].message));
	}
}

/* More segments than the header can count. */
static void many(void **state)
{
	struct image image = make();
	_cleanup_(core_closep) struct core *core = NULL;
	char *message = NULL;

	(void)state;
	image.header.e_phnum = PN_XNUM;
	image.header.e_shoff = offsetof(struct image, section);
	assert_int_equal(open_image(&image, sizeof(image), &core, &message), 0);
	assert_int_equal(core->segments.n, 2);
}

/* A file that was cut anywhere is read as far as it goes. */
static void cut(void **state)
{
	const struct image image = make();

	(void)state;
	for (size_t size = 1; size <= sizeof(image); size++) {
		_cleanup_(core_closep) struct core *core = NULL;
		_cleanup_(freep) char *message = NULL;
		uint64_t value = 0;
		const int r = open_image(&image, size, &core, &message);

		assert_true(r == 0 || r == -EBADMSG || r == -ENODATA);
		assert_true((r == 0) == (core != NULL));
		if (core && core_read(core, STACK, &value, 8))
			assert_int_equal(value, 1);
	}
}

static void no_file(void **state)
{
	_cleanup_(freep) char *message = NULL;
	struct core *core = NULL;

	(void)state;
	assert_int_equal(core_open("/no/such/core", &core, &message), -ENOENT);
	assert_string_equal(message, "/no/such/core: No such file or directory");
	assert_null(core);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole), cmocka_unit_test(spoiled), cmocka_unit_test(many),
		cmocka_unit_test(cut),   cmocka_unit_test(no_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
