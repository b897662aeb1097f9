/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What is found in files that are to be executed: good ones, then spoiled in one place.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "util/execfile.h"

static char path[] = "/tmp/test-execfile-XXXXXX";

static int make_file(void **state)
{
	const int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static void write_file(const void *bytes, size_t size)
{
	_cleanup_(fd_closep) int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), size);
}

static void scripts(void **state)
{
	static const struct {
		const char *text;
		enum execfile_kind kind;
		const char *interpreter, *argument;
	} rows[] = {
		{ "#!/bin/sh\n", EXECFILE_SCRIPT, "/bin/sh", "" },
		{ "#! \t/bin/sh \t\n", EXECFILE_SCRIPT, "/bin/sh", "" },
		{ "#!/bin/sh -e -x \necho", EXECFILE_SCRIPT, "/bin/sh", "-e -x" },
		{ "#!sh\n", EXECFILE_SCRIPT, "sh", "" },
		{ "#!\n/bin/sh\n", EXECFILE_OTHER, "", "" },
		{ "#! \t \n", EXECFILE_OTHER, "", "" },
		{ "#!/bin/sh", EXECFILE_OTHER, "", "" },
		{ "#/bin/sh\n", EXECFILE_OTHER, "", "" },
		{ "#", EXECFILE_OTHER, "", "" },
		{ "", EXECFILE_OTHER, "", "" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct execfile file;

		print_message("  \"%s\"\n", rows[i].text);
		write_file(rows[i].text, strlen(rows[i].text));
		assert_int_equal(execfile_read(path, &file), 0);
		assert_int_equal(file.kind, rows[i].kind);
		assert_string_equal(file.interpreter, rows[i].interpreter);
		assert_string_equal(file.argument, rows[i].argument);
	}
}

/* A name of the whole head; one byte more, and its end is not seen. */
static void long_script(void **state)
{
	char text[EXECFILE_HEAD + 1];
	struct execfile file;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[0] = '#';
	text[1] = '!';
	text[EXECFILE_HEAD - 1] = '\n';
	write_file(text, EXECFILE_HEAD);
	assert_int_equal(execfile_read(path, &file), 0);
	assert_int_equal(file.kind, EXECFILE_SCRIPT);
	assert_int_equal(strlen(file.interpreter), EXECFILE_HEAD - 3);

	text[EXECFILE_HEAD - 1] = 'x';
	text[EXECFILE_HEAD] = '\n';
	write_file(text, sizeof(text));
	assert_int_equal(execfile_read(path, &file), 0);
	assert_int_equal(file.kind, EXECFILE_OTHER);
}

struct program {
	Elf64_Ehdr elf;
	Elf64_Phdr p;
	char loader[16];
};

static void programs(void **state)
{
	static const struct program good = {
		.elf = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			 .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_phoff = offsetof(struct program, p),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1 },
		.p = { .p_type = PT_INTERP,
		       .p_offset = offsetof(struct program, loader),
		       .p_filesz = 9 },
		.loader = "/lib/ld",
	};
	struct program bad;
	struct execfile file;

#define READS_AS(expected, spoil)                                \
	do {                                                     \
		bad = good;                                      \
		spoil;                                           \
		write_file(&bad, sizeof(bad));                   \
		assert_int_equal(execfile_read(path, &file), 0); \
		assert_int_equal(file.kind, expected);           \
	} while (0)

	(void)state;
	READS_AS(EXECFILE_X86_64, (void)0);
	assert_string_equal(file.loader, "/lib/ld");
	assert_false(file.privileged);
	READS_AS(EXECFILE_X86_64, bad.p.p_type = PT_LOAD);
	assert_string_equal(file.loader, "");
	READS_AS(EXECFILE_X86_64, bad.elf.e_type = ET_EXEC);
	READS_AS(EXECFILE_FOREIGN, bad.elf.e_ident[EI_CLASS] = ELFCLASS32);
	READS_AS(EXECFILE_FOREIGN, bad.elf.e_ident[EI_DATA] = ELFDATA2MSB);
	READS_AS(EXECFILE_FOREIGN, bad.elf.e_machine = EM_AARCH64);
	READS_AS(EXECFILE_FOREIGN, bad.elf.e_phentsize = 8);
	READS_AS(EXECFILE_OTHER, bad.elf.e_ident[EI_MAG0] = 'x');
	READS_AS(EXECFILE_OTHER, bad.elf.e_type = ET_REL);
	READS_AS(EXECFILE_OTHER, bad.elf.e_phoff = UINT64_MAX);
	READS_AS(EXECFILE_OTHER, bad.elf.e_phoff = sizeof(bad) - 8);
	READS_AS(EXECFILE_OTHER, bad.p.p_filesz = 0);
	READS_AS(EXECFILE_OTHER, bad.p.p_filesz = EXECFILE_LOADER_MAX);
	READS_AS(EXECFILE_OTHER, bad.p.p_offset = sizeof(bad));

	write_file(&good, sizeof(good.elf) - 1);
	assert_int_equal(execfile_read(path, &file), 0);
	assert_int_equal(file.kind, EXECFILE_OTHER);
}

struct program32 {
	Elf32_Ehdr elf;
	Elf32_Phdr p;
	char loader[24];
};

static void programs32(void **state)
{
	static const struct program32 good = {
		.elf = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS32, ELFDATA2LSB, EV_CURRENT },
			 .e_type = ET_EXEC,
			 .e_machine = EM_386,
			 .e_phoff = offsetof(struct program32, p),
			 .e_phentsize = sizeof(Elf32_Phdr),
			 .e_phnum = 1 },
		.p = { .p_type = PT_INTERP,
		       .p_offset = offsetof(struct program32, loader),
		       .p_filesz = 19 },
		.loader = "/lib/ld-linux.so.2",
	};
	struct program32 bad;
	struct execfile file;

	(void)state;
	READS_AS(EXECFILE_I386, (void)0);
	assert_string_equal(file.loader, "/lib/ld-linux.so.2");
	assert_string_equal(execfile_emulator(file.kind), "qemu-i386");
	READS_AS(EXECFILE_I386, bad.elf.e_phnum = 0);
	assert_string_equal(file.loader, "");
	/* x32 */
	READS_AS(EXECFILE_FOREIGN, bad.elf.e_machine = EM_X86_64);
	assert_null(execfile_emulator(file.kind));
	READS_AS(EXECFILE_FOREIGN, bad.elf.e_machine = EM_ARM);
	READS_AS(EXECFILE_FOREIGN, bad.elf.e_ident[EI_DATA] = ELFDATA2MSB);
	READS_AS(EXECFILE_FOREIGN, bad.elf.e_phentsize = sizeof(Elf64_Phdr));
	READS_AS(EXECFILE_OTHER, bad.elf.e_phoff = UINT32_MAX);
	READS_AS(EXECFILE_OTHER, bad.p.p_filesz = 0);
	READS_AS(EXECFILE_OTHER, bad.p.p_offset = UINT32_MAX);

	write_file(&good, sizeof(good.elf) - 1);
	assert_int_equal(execfile_read(path, &file), 0);
	assert_int_equal(file.kind, EXECFILE_OTHER);
}

static void unseen(void **state)
{
	static const struct {
		struct execfile file;
		const char *why;
	} rows[] = {
		{ { .kind = EXECFILE_X86_64 }, NULL },
		{ { .kind = EXECFILE_I386 }, NULL },
		{ { .kind = EXECFILE_SCRIPT }, NULL },
		{ { .kind = EXECFILE_OTHER }, NULL },
		{ { .kind = EXECFILE_FOREIGN, .privileged = true },
		  "it is no program for x86 that QEMU runs" },
		{ { .kind = EXECFILE_X86_64, .privileged = true },
		  "it gains privileges, which it would not under the emulator" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *why = execfile_unseen(&rows[i].file);

		if (rows[i].why)
			assert_string_equal(why, rows[i].why);
		else
			assert_null(why);
	}
}

static void rights(void **state)
{
	static const struct {
		uid_t uid;
		gid_t gid;
		mode_t mode;
		bool privileged;
	} rows[] = {
		{ 65534, 0, 0755, false },     { 65534, 0, 04755, true },
		{ 0, 65534, 04755, false },    { 0, 65534, 02755, true },
		{ 65534, 0, 02755, false },    { 0, 65534, 02745, false }, /* mandatory locks */
		{ 65534, 65534, 06755, true },
	};
	struct execfile file;

	(void)state;
	/* Whoever has them already gains nothing. */
	assert_int_equal(chmod(path, 06755), 0);
	assert_int_equal(execfile_check(path), 0);
	assert_int_equal(execfile_read(path, &file), 0);
	assert_false(file.privileged);
	if (geteuid() == 0) {
		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			print_message("  row %zu\n", i);
			assert_int_equal(chown(path, rows[i].uid, rows[i].gid), 0);
			assert_int_equal(chmod(path, rows[i].mode), 0);
			assert_int_equal(execfile_read(path, &file), 0);
			assert_int_equal(file.privileged, rows[i].privileged);
		}
		assert_int_equal(chown(path, 0, 0), 0);
	} else {
		print_message("  not root: files of others are not tested\n");
	}
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(execfile_check(path), -EACCES);
	assert_int_equal(execfile_check("/tmp"), -EACCES);
	assert_int_equal(execfile_check("/no/such/file"), -ENOENT);
	assert_int_equal(execfile_read("/no/such/file", &file), -ENOENT);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(scripts),  cmocka_unit_test(long_script),
		cmocka_unit_test(programs), cmocka_unit_test(programs32),
		cmocka_unit_test(rights),   cmocka_unit_test(unseen),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
