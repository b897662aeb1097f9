/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Kernel code: a directory as perf makes it, with a kernel of some twenty bytes and two modules,
 * decoded; and by perf, which must find the same.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/kernel/kcore.h"
#include "ptd/decode.h"
#include "tests/lib/failing.h"
#include "tests/lib/packets.h"
#include "tests/lib/perfbuild.h"
#include "tests/lib/tempdir.h"

#define KERNEL  UINT64_C(0xffffffff81000000)
#define MODULE  UINT64_C(0xffffffffc0001000)
#define MODULE2 UINT64_C(0xffffffffc0002000)
#define PAGE    UINT64_C(4096)

#define MODULES_OFFSET (8 * PAGE) /* in kcore */

static const uint8_t kernel_code[] = {
	0xff, 0xd0, /* 0: call *%rax, into the module */
	0x90,       /* 2: nop */
	0x74, 0x01, /* 3: je 6 */
	0x90,       /* 5: nop */
	0x48, 0xcf, /* 6: iretq */
};
static const uint8_t module_code[] = {
	0x90,       /* 0: nop */
	0xff, 0xd0, /* 1: call *%rax, into the other */
	0xc3,       /* 3: ret */
};
static const uint8_t module2_code[] = { 0xc3 };

static const char packets[] = "psb\ntsc 1000\nmode.exec 64\npsbend\n"
			      "tsc 1001\ntip.pge ffffffff81000000\n"
			      "tip ffffffffc0001000\n" /* call */
			      "tip ffffffffc0002010\n" /* call */
			      "tip ffffffffc0001003\n" /* ret */
			      "tip ffffffff81000002\n" /* ret */
			      "tnt 1\n"                /* je */
			      "tip.pgd 401000\n";      /* iretq */

static const char kallsyms[] = "0000000000000000 A fixed_percpu_data\n"
			       "ffffffff81000000 T _text\n"
			       "ffffffff81000000 T _stext\n"
			       "ffffffff81000000 t entry\n"
			       "ffffffff81000005 W leave\n"
			       "ffffffff81000008 d not_code\n"
			       "ffffffff81001000 T _etext\n"
			       "ffffffffc0002010 t second_fn\t[mod_two]\n"
			       "ffffffffc0002000 t wrong_fn\t[mod_two]\n"
			       "ffffffffc0001000 t first_fn\t[one]\n"
			       "ffffffffc0001003 t first_end\t[one]\n"
			       "nonsense\n";

static const char modules[] = "mod_two 4096 0 - Live 0xffffffffc0002000\n"
			      "one 4096 1 - Live 0xffffffffc0001000\n";

struct fixture {
	char dir[TEMPDIR_SIZE];
};

static void put_kcore(const struct fixture *f)
{
	static uint8_t bytes[MODULES_OFFSET + 2 * PAGE];
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_CORE,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = 2,
	};
	const Elf64_Phdr segments[] = {
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W | PF_X,
		  .p_offset = PAGE,
		  .p_vaddr = KERNEL,
		  .p_filesz = PAGE,
		  .p_memsz = PAGE },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_W | PF_X,
		  .p_offset = MODULES_OFFSET,
		  .p_vaddr = MODULE,
		  .p_filesz = 2 * PAGE,
		  .p_memsz = 2 * PAGE },
	};

	memcpy(bytes, &header, sizeof(header));
	memcpy(bytes + sizeof(header), segments, sizeof(segments));
	memcpy(bytes + PAGE, kernel_code, sizeof(kernel_code));
	memcpy(bytes + MODULES_OFFSET, module_code, sizeof(module_code));
	memcpy(bytes + MODULES_OFFSET + PAGE + 0x10, module2_code, sizeof(module2_code));
	tempdir_put(f->dir, "kcore_dir/kcore", bytes, sizeof(bytes));
}

static void kernel_mmap(struct perfbuild *b, uint64_t start, uint64_t size, uint64_t pgoff,
			const char *name)
{
	perfbuild_mapping(b, PERF_RECORD_MMAP,
			  &(struct record_mmap2){ .misc = PERF_RECORD_MISC_KERNEL,
						  .pid = UINT32_MAX,
						  .addr = start,
						  .len = size,
						  .pgoff = pgoff,
						  .name = name });
}

static void put_data(const struct fixture *f)
{
	static struct perfbuild b;
	const uint64_t clock[] = { 0, 1, 0 }; /* a tick is a ns */
	uint8_t pt[256];
	size_t size = 0;
	char text[sizeof(packets)], *rest;

	perfbuild_begin(&b, false);
	memcpy(b.bytes + PERFBUILD_SLOTS + 8, clock, sizeof(clock));
	kernel_mmap(&b, KERNEL, PAGE, KERNEL, "[kernel.kallsyms]_text");
	kernel_mmap(&b, MODULE, PAGE, 0, "[one]");
	kernel_mmap(&b, MODULE2, PAGE, 0, "/lib/modules/6.1/kernel/mod-two.ko.xz");
	perfbuild_at(&b, 0xf00, 0, 7, 7);
	(void)perfbuild_comm(&b, false, 7, 7, "kworker");
	(void)perfbuild_itrace(&b, 7, 7);
	strcpy(text, packets);
	for (char *line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		const int n = packets_write(line, pt + size);

		assert_true(n > 0);
		size += (size_t)n;
	}
	while (size % 8)
		pt[size++] = 0;
	(void)perfbuild_auxtrace(&b, 0, 0, -1, 0, pt, size);
	perfbuild_end(&b);
	tempdir_put(f->dir, "data", b.bytes, b.size);
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make("kcore", f->dir);
	put_kcore(f);
	tempdir_put(f->dir, "kcore_dir/kallsyms", kallsyms, strlen(kallsyms));
	tempdir_put(f->dir, "kcore_dir/modules", modules, strlen(modules));
	put_data(f);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	tempdir_remove(f->dir);
	free(f);
	return 0;
}

/* All instructions, a line each, as perf script prints them; or what is lost. Return: 0, or
 * negative errno. */
static int try_decode(const struct fixture *f, const char *engine, char **ret_text)
{
	const struct ptd_options options = { .size = sizeof(options),
					     .input = f->dir,
					     .engine = engine };
	struct ptd_decoder *decoder;
	const struct ptd_batch *batch;
	char *message = NULL;
	size_t size;
	FILE *out;
	int r;

	r = ptd_decoder_new(&options, &decoder, &message);
	free(message);
	if (r < 0)
		return r;
	out = open_memstream(ret_text, &size);
	assert_non_null(out);
	while ((r = ptd_decoder_next(decoder, &batch)) == 0) {
		for (size_t i = 0; i < batch->n_marks; i++)
			if (batch->marks[i].kind == PTD_MARK_GAP)
				fprintf(out, "gap %s %" PRIx64 "\n",
					ptd_gap_reason_name(batch->marks[i].reason),
					batch->marks[i].ip);
		for (size_t i = 0; i < batch->n_runs; i++)
			for (size_t k = 0; k < batch->runs[i].n; k++) {
				const struct ptd_run *run = &batch->runs[i];
				const struct ptd_insn *insn = &run->block->insns[run->first + k];

				fprintf(out, "%" PRIx64 " %s (%s)\n", ptd_run_ip(run, k),
					insn->symbol ? batch->symbols[insn->symbol]->name
						     : "[unknown]",
					run->block->object->name);
			}
	}
	(void)ptd_decoder_free(decoder);
	assert_int_equal(fclose(out), 0);
	if (r == PTD_END)
		return 0;
	assert_true(r < 0);
	free(*ret_text);
	return r;
}

static char *decode(const struct fixture *f, const char *engine)
{
	char *text;

	assert_int_equal(try_decode(f, engine, &text), 0);
	return text;
}

static const char expected[] = "ffffffff81000000 entry ([kernel.kallsyms])\n"
			       "ffffffffc0001000 first_fn ([one])\n"
			       "ffffffffc0001001 first_fn ([one])\n"
			       "ffffffffc0002010 second_fn ([mod_two])\n"
			       "ffffffffc0001003 first_end ([one])\n"
			       "ffffffff81000002 entry ([kernel.kallsyms])\n"
			       "ffffffff81000003 entry ([kernel.kallsyms])\n"
			       "ffffffff81000006 leave ([kernel.kallsyms])\n";

static void decodes(void **state)
{
	static const char *const engines[] = { "flow", "insn" };

	for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
		char *text = decode(*state, engines[i]);

		assert_string_equal(text, expected);
		free(text);
	}
}

/* It says of modules' code, too, that it is the kernel's. */
static void as_perf(void **state)
{
	const struct fixture *f = *state;
	char command[256], line[256];
	const char *at = expected;
	FILE *perf;

	if (system("perf --version >/dev/null 2>&1") != 0) {
		print_message("perf is not here\n");
		skip();
	}
	(void)snprintf(command, sizeof(command),
		       "HOME=%s perf script -i %s --itrace=i1i -F ip,sym,dso 2>%s/errors", f->dir,
		       f->dir, f->dir);
	perf = popen(command, "r");
	assert_non_null(perf);
	while (fgets(line, sizeof(line), perf)) {
		const char *text = line + strspn(line, " ");
		const size_t n = strcspn(at, "(");

		print_message("%s", line);
		assert_memory_equal(text, at, n);
		at += strcspn(at, "\n") + 1;
	}
	assert_int_equal(pclose(perf), 0);
	assert_string_equal(at, "");
}

/* Without names there is code; without code there are gaps, and nothing breaks. */
static void less_of_it(void **state)
{
	const struct fixture *f = *state;
	char *text;

	tempdir_put(f->dir, "kcore_dir/kallsyms", "", 0);
	text = decode(f, "flow");
	assert_non_null(strstr(text, "ffffffffc0002010 [unknown] ([mod_two])\n"));
	free(text);
	tempdir_put(f->dir, "kcore_dir/kcore", "", 0);
	text = decode(f, "flow");
	assert_string_equal(text, "gap code not mapped ffffffff81000000\n");
	free(text);
}

struct attempt {
	const struct fixture *f;
	const char *engine;
	char *text;
};

/* A kcore that is cut off after it was opened has the bytes that were read before, and no more. */
static void is_cut_off(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	uint16_t kernel[2] = { 1000, 1000 }, module[2] = { 1000, 1000 };
	struct kcore_mappings mappings = {};
	char path[TEMPDIR_SIZE + 32];
	struct kcore kcore;

	(void)snprintf(path, sizeof(path), "%s/kcore_dir/kcore", f->dir);
	assert_int_equal(objects_new(f->dir, &objects), 0);
	assert_int_equal(kcore_init(&kcore, objects), 0);
	assert_int_equal(kcore_map_module(&kcore, "[mod_one]", MODULE, PAGE, 0, &mappings), 0);
	assert_int_equal(mappings.list.n, 1);
	assert_int_equal(truncate(path, PAGE + 1), 0);

	kcore_read(&kcore, KERNEL, ARRAY_LEN(kernel), kernel);
	assert_int_equal(kernel[0], kernel_code[0]);
	assert_int_equal(kernel[1], kernel_code[1]);
	assert_null(objects_failure(objects));
	kcore_read(&kcore, MODULE, ARRAY_LEN(module), module);
	assert_int_equal(module[0], 1000);
	assert_int_equal(module[1], 1000);
	/* Both objects have the same file. */
	assert_null(object_bytes(mappings.list.items[0].object, MODULES_OFFSET, 1));
	assert_non_null(object_bytes(mappings.list.items[0].object, PAGE, 1));
	assert_non_null(strstr(objects_failure(objects),
			       "kcore_dir/kcore: was cut off at byte 4097 while it was read"));
	vec_deinit(&mappings.list);
	kcore_deinit(&kcore);
}

static int attempt(void *userdata)
{
	struct attempt *a = userdata;

	return try_decode(a->f, a->engine, &a->text);
}

/* A file that cannot be read is one that is not there; but without memory there is an error. */
static void is_as_expected(void *userdata)
{
	struct attempt *a = userdata;
	const char *name = failing_name();

	if (strcmp(a->text, expected) != 0 && failing_is_memory())
		fail_msg("%s failed, and there is:\n%s", name, a->text);
	/* What ran is known all the same, though not what it is called. */
	for (const char *x = expected, *y = a->text; *x && !strstr(a->text, "gap ");
	     x += strcspn(x, "\n") + 1, y += strcspn(y, "\n") + 1)
		if (strncmp(x, y, sizeof("ffffffff81000000")) != 0)
			fail_msg("%s failed, and nothing says so:\n%s", name, a->text);
	free(a->text);
}

static void calls_that_fail(void **state)
{
	static const char *const engines[] = { "flow", "insn" };

	for (size_t i = 0; i < ARRAY_LEN(engines); i++) {
		struct attempt a = { .f = *state, .engine = engines[i] };

		failing_each(attempt, is_as_expected, &a);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(decodes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(as_perf, set_up, tear_down),
		cmocka_unit_test_setup_teardown(less_of_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(is_cut_off, set_up, tear_down),
		cmocka_unit_test_setup_teardown(calls_that_fail, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
