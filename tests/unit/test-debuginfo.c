/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Debuginfo: what it says of this program, and of a file with another kind of DWARF, against what
 * addr2line of binutils or llvm-symbolizer says; and files whose DWARF is spoiled.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "decoder/symbol/debugfile.h"
#include "decoder/symbol/debuginfo.h"
#include "decoder/symbol/elfsym.h"
#include "decoder/util/filebytes.h"
#include "tests/lib/sanitized.h"
#include "tests/lib/tempdir.h"

#define N_ADDRESSES 2000u

struct fixture {
	char dir[TEMPDIR_SIZE];
	struct fileset set;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	tempdir_make("debuginfo", f->dir);
	fileset_init(&f->set);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	fileset_deinit(&f->set);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static struct filebytes *open_file(struct fixture *f, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct filebytes *file = NULL;

	assert_true(fd >= 0);
	assert_int_equal(filebytes_new(&f->set, path, &fd, false, &file), 0);
	return file;
}

/* Run a command of the shell in the fixture's directory. Return: whether it succeeded. */
static __attribute__((__format__(__printf__, 2, 3))) bool run(const struct fixture *f,
							      const char *format, ...)
{
	char command[2048], whole[2200];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(command, sizeof(command), format, ap);
	va_end(ap);
	(void)snprintf(whole, sizeof(whole), "cd %s && %s", f->dir, command);
	return system(whole) == 0;
}

static bool have(const char *tool)
{
	char command[64];

	(void)snprintf(command, sizeof(command), "command -v %s >/dev/null", tool);
	if (system(command) == 0)
		return true;
	print_message("%s is missing\n", tool);
	return false;
}

/* --- the judges ------------------------------------------------------------------------------- */

struct judge {
	const char *tool, *options;
};

static const struct judge addr2line = { "addr2line", "-afiC -e " };
/* addr2line of binutils 2.40 does not read the lists of ranges that clang writes in DWARF 5. */
static const struct judge llvm = { "llvm-symbolizer", "--output-style=GNU -a -f -i -C --obj=" };

/* Who knows the DWARF of this program. */
#ifdef __clang__
static const struct judge *const own_judge = &llvm;
#else
static const struct judge *const own_judge = &addr2line;
#endif

/* Read the frames of one address from a judge: lines "function at file:line". */
static void read_frames(FILE *answers, char *next, char ret_text[static 16384])
{
	size_t n = 0;

	ret_text[0] = '\0';
	/* The lines up to the next address are pairs. */
	while (fgets(next, 4096, answers) && strncmp(next, "0x", 2) != 0) {
		char place[4096], *end;

		next[strcspn(next, "\n")] = '\0';
		assert_non_null(fgets(place, sizeof(place), answers));
		end = strstr(place, " (discriminator");
		if (!end)
			end = place + strcspn(place, "\n");
		*end = '\0';
		/* A line that is not known is ? to the one and 0 to the other. */
		if (end - place >= 2 && strcmp(end - 2, ":0") == 0 && place[0] != '?')
			end[-1] = '?';
		n += (size_t)snprintf(ret_text + n, 16384 - n, "%s at %s\n", next, place);
		assert_true(n < 16384);
	}
}

static void write_frames(const struct ptd_position *positions, int n, char ret_text[static 16384])
{
	size_t size = 0;

	ret_text[0] = '\0';
	for (int i = 0; i < n; i++) {
		char line[16] = "?";

		if (positions[i].line)
			(void)snprintf(line, sizeof(line), "%" PRIu32, positions[i].line);
		size += (size_t)snprintf(ret_text + size, 16384 - size, "%s at %s:%s\n",
					 positions[i].function ?: "??", positions[i].file ?: "??",
					 line);
		assert_true(size < 16384);
	}
}

/* Where the code of @file is. */
static void find_text(struct filebytes *file, uint64_t *ret_start, uint64_t *ret_size)
{
	_cleanup_(elfsym_deinit) struct elfsym elf = {};
	const struct elfsym_section *text;

	assert_int_equal(elfsym_init(&elf, file), 0);
	text = elfsym_find(&elf, SHT_PROGBITS, ".text") ?: elfsym_find(&elf, SHT_NOBITS, ".text");
	assert_non_null(text);
	*ret_start = text->header.sh_addr;
	*ret_size = text->header.sh_size;
}

struct agreement {
	size_t n_known, n_inlined, n_different;
};

/* Compare addresses of @path, which debug file @debug belongs to, with what @judge says. */
static void compare(const struct fixture *f, struct debuginfo *debuginfo, const struct judge *judge,
		    const char *path, uint64_t start, uint64_t size,
		    struct agreement *ret_agreement)
{
	static char expected[16384], got[16384], next[4096];
	struct agreement agreement = {};
	uint64_t addresses[N_ADDRESSES];
	char name[512];
	FILE *list, *answers;

	(void)snprintf(name, sizeof(name), "%s/addresses", f->dir);
	list = fopen(name, "we");
	assert_non_null(list);
	srand(1);
	for (size_t i = 0; i < N_ADDRESSES; i++) {
		addresses[i] = start + (uint64_t)rand() % size;
		fprintf(list, "%#" PRIx64 "\n", addresses[i]);
	}
	fclose(list);
	(void)snprintf(name, sizeof(name), "%s %s%s < %s/addresses", judge->tool, judge->options,
		       path, f->dir);
	answers = popen(name, "re");
	assert_non_null(answers);
	assert_non_null(fgets(next, sizeof(next), answers));
	for (size_t i = 0; i < N_ADDRESSES; i++) {
		struct ptd_position positions[PTD_POSITIONS_MAX];
		const int n = debuginfo_find(debuginfo, addresses[i], positions);
		const char *at;

		assert_in_range(n, 0, PTD_POSITIONS_MAX);
		assert_true(strtoull(next, NULL, 16) == addresses[i]);
		read_frames(answers, next, expected);
		write_frames(positions, n, got);
		/* Of code without DWARF it says what the symbol table has, or nothing. */
		if (n == 0 && (strstr(expected, ":?\n") || strstr(expected, "?\?:0\n")))
			continue;
		agreement.n_known++;
		agreement.n_inlined += n > 1;
		/* To the bytes between two functions it gives the name of the first. */
		at = n == 1 && !positions[0].function ? strstr(expected, " at ") : expected;
		if (strcmp(at ?: "", at == expected ? got : got + strlen("??")) == 0)
			continue;
		if (agreement.n_different++ < 5)
			print_message("0x%" PRIx64 ": %s says\n%sand here it is\n%s", addresses[i],
				      judge->tool, expected, got);
	}
	(void)pclose(answers);
	*ret_agreement = agreement;
}

/* A row of the line table says of its first address what that has as its position. */
static void compare_rows(struct debuginfo *debuginfo, const struct ptd_line_table *table)
{
	size_t n_inlined = 0;

	for (size_t i = 0; i < table->n_rows; i++) {
		const struct ptd_line_row *row = &table->rows[i];
		struct ptd_position positions[PTD_POSITIONS_MAX];
		const int n = debuginfo_find(debuginfo, row->address, positions);

		assert_in_range(n, 1, PTD_POSITIONS_MAX);
		assert_int_equal(row->line, positions[0].line);
		assert_string_equal(row->file, positions[0].file);
		assert_int_equal(row->function != UINT32_MAX, positions[n - 1].function != NULL);
		if (row->function == UINT32_MAX)
			continue;
		assert_string_equal(table->functions[row->function].name,
				    positions[n - 1].function);
		assert_int_equal(row->is_inlined, n > 1);
		n_inlined += row->is_inlined;
	}
	assert_true(n_inlined > 10);
}

/*
 * The places that are inlined at an address are the functions of its positions but for the last, of
 * which each place has one entry, and the answer is the same up to its end.
 */
static void compare_inlined(struct debuginfo *debuginfo, uint64_t start, uint64_t size)
{
	const uint64_t step = size > 8192 ? 61 : 1;
	const struct ptd_inlined *last = NULL;
	size_t n_inlined = 0, n_entered = 0;
	uint64_t last_end = 0;

	for (uint64_t address = start; address < start + size; address += step) {
		struct ptd_position positions[PTD_POSITIONS_MAX];
		const int n = debuginfo_find(debuginfo, address, positions);
		const struct ptd_inlined *inlined, *at;
		uint64_t end;

		assert_in_range(debuginfo_inlined(debuginfo, address, &inlined, &end), 0, 1);
		assert_true(end > address);
		if (address < last_end)
			assert_ptr_equal(inlined, last);
		last = inlined;
		last_end = end;
		at = inlined;
		for (int i = 0; i + 1 < n; i++, at = at->outer) {
			assert_non_null(at);
			assert_int_equal(at->depth, n - 1 - i);
			assert_string_equal(at->name, positions[i].function);
			assert_string_equal(at->linkage_name, positions[i].linkage_name);
			n_entered += at->has_entry && at->entry == address;
		}
		if (n > 0)
			assert_null(at);
		n_inlined += inlined != NULL;
	}
	print_message("  %zu bytes of %zu inlined, %zu entries\n", n_inlined, (size_t)(size / step),
		      n_entered);
	assert_true(n_inlined > 10);
}

/* And every address that has a position is in a row. */
static void compare_lines(struct debuginfo *debuginfo, uint64_t start, uint64_t size)
{
	struct ptd_line_table table;
	size_t i = 0;

	assert_int_equal(debuginfo_lines(debuginfo, &table), 0);
	assert_true(table.n_rows > 100 && table.n_functions > 1);
	compare_rows(debuginfo, &table);
	for (uint64_t address = start; address < start + size; address += 3) {
		struct ptd_position positions[PTD_POSITIONS_MAX];

		if (debuginfo_find(debuginfo, address, positions) == 0 || positions[0].line == 0)
			continue;
		while (i < table.n_rows && table.rows[i].end <= address)
			i++;
		assert_true(i < table.n_rows && table.rows[i].address <= address);
		assert_int_equal(table.rows[i].line, positions[0].line);
	}
}

static void agree(struct fixture *f, struct filebytes *file, struct filebytes *debug,
		  const struct debugfile_places *places, const struct judge *judge,
		  const char *path)
{
	_cleanup_(debuginfo_freep) struct debuginfo *debuginfo = NULL;
	struct agreement agreement;
	uint64_t start, size;

	find_text(file, &start, &size);
	assert_int_equal(debuginfo_new(debug, places, &debuginfo), 0);
	assert_non_null(debuginfo);
	compare(f, debuginfo, judge, path, start, size, &agreement);
	print_message("  %zu places, %zu of them inlined, %zu differ\n", agreement.n_known,
		      agreement.n_inlined, agreement.n_different);
	assert_true(agreement.n_known > 100);
	assert_int_equal(agreement.n_different, 0);
	compare_lines(debuginfo, start, size);
	compare_inlined(debuginfo, start, size);
}

/* --- this program ----------------------------------------------------------------------------- */

static bool has_dwarf(struct filebytes *file)
{
	if (debugfile_has(file, DEBUGFILE_DWARF))
		return true;
	print_message("this program was compiled without -g\n");
	return false;
}

/* Skip the test if it cannot run, with what it has of @file. */
static void need(bool can, struct filebytes **file)
{
	if (can)
		return;
	*file = filebytes_unref(*file);
	skip();
}

static void this_program(void **state)
{
	struct fixture *f = *state;
	_cleanup_(filebytes_unrefp) struct filebytes *file = open_file(f, "/proc/self/exe");
	char path[64];

	need(have(own_judge->tool) && has_dwarf(file), &file);
	(void)snprintf(path, sizeof(path), "/proc/%d/exe", (int)getpid());
	agree(f, file, file, NULL, own_judge, path);
}

/* Debug files of Debian's are compressed, and without code. */
static void compressed(void **state)
{
	struct fixture *f = *state;
	_cleanup_(filebytes_unrefp) struct filebytes *file = open_file(f, "/proc/self/exe");
	_cleanup_(filebytes_unrefp) struct filebytes *debug = NULL;
	char path[128];

	need(have("objcopy") && have(own_judge->tool) && has_dwarf(file), &file);
	assert_true(run(f, "objcopy --only-keep-debug --compress-debug-sections /proc/%d/exe debug",
			(int)getpid()));
	(void)snprintf(path, sizeof(path), "%s/debug", f->dir);
	debug = open_file(f, path);
	agree(f, file, debug, NULL, own_judge, path);
}

/* Compilers that one may meet, as far as they are installed. */
static void other_dwarf(void **state)
{
	static const struct {
		const char *compiler, *flags;
		const struct judge *judge;
	} rows[] = {
		{ "gcc", "-gdwarf-4", &addr2line },
		{ "gcc", "-gdwarf-5 -ffunction-sections", &addr2line },
		{ "gcc", "-gdwarf-3 -fno-pie -no-pie", &addr2line },
		{ "clang", "-gdwarf-4", &addr2line },
		{ "clang", "-gdwarf-5", &llvm },
	};
	struct fixture *f = *state;
	char self[512] = "";

	if (!getcwd(self, sizeof(self)) || access("decoder/symbol/symtab.c", R_OK) < 0)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;
		char path[128];

		if (!have(rows[i].compiler) || !have(rows[i].judge->tool))
			continue;
		print_message("  %s %s\n", rows[i].compiler, rows[i].flags);
		assert_true(run(f,
				"%s -O2 %s -std=gnu17 -D_GNU_SOURCE -I%s -I%s/include -shared "
				"-fPIC -o other%zu.so %s/decoder/symbol/symtab.c "
				"%s/decoder/symbol/source.c",
				rows[i].compiler, rows[i].flags, self, self, i, self, self));
		(void)snprintf(path, sizeof(path), "%s/other%zu.so", f->dir, i);
		file = open_file(f, path);
		agree(f, file, file, NULL, rows[i].judge, path);
	}
}

/* DWARF whose rest is in an alternate file is used only if that is found. */
static void alternate(void **state)
{
	struct fixture *f = *state;
	_cleanup_(filebytes_unrefp) struct filebytes *file = open_file(f, "/proc/self/exe");
	_cleanup_(filebytes_unrefp) struct filebytes *debug = NULL;
	_cleanup_(debuginfo_freep) struct debuginfo *debuginfo = NULL;
	const char *const dirs[] = { f->dir };
	const struct debugfile_places places = { .dirs = dirs, .n_dirs = 1, .fileset = &f->set };
	char path[128], exe[64];

	(void)snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)getpid());
#ifdef __clang__
	/* dwz 0.15 does not take the sections that clang writes in DWARF 5. */
	need(false, &file);
#endif
	need(have("dwz") && have(own_judge->tool) && has_dwarf(file), &file);
	assert_true(run(f,
			"mkdir .dwz && cp %s one && cp one two && "
			"dwz -m .dwz/common -M /usr/lib/debug/.dwz/common one two",
			exe));
	(void)snprintf(path, sizeof(path), "%s/one", f->dir);
	debug = open_file(f, path);
	assert_int_equal(debuginfo_new(debug, NULL, &debuginfo), 0);
	assert_null(debuginfo);
	agree(f, file, debug, &places, own_judge, exe);
}

/* --- damage ----------------------------------------------------------------------------------- */

/* A unit of one instruction. Its directory of compilation goes between the two parts. */
static const char unit_start[] = "\t.text\n"
				 "f:\t.file 1 \"a.c\"\n"
				 "\t.loc 1 5\n"
				 "\tnop\n"
				 ".Lend:\n"
				 "\t.section .debug_info,\"\",@progbits\n"
				 "\t.4byte .Linfo_end - .Linfo\n"
				 ".Linfo:\t.2byte 4\n"
				 "\t.4byte .Labbrev\n"
				 "\t.byte 8, 1\n"
				 "\t.8byte f, .Lend - f\n"
				 "\t.4byte .Lline\n";
static const char unit_end[] =
    ".Linfo_end:\n"
    "\t.section .debug_abbrev,\"\",@progbits\n"
    ".Labbrev:\n"
    "\t.byte 1, 0x11, 0, 0x11, 1, 0x12, 7, 0x10, 0x17, 0x1b, 8, 0, 0, 0\n"
    "\t.section .debug_line,\"\",@progbits\n"
    ".Lline:\n";

struct unit_row {
	const char *title;
	const char *directory; /* as the assembler takes it */
	const char *more;      /* at the end of the source */
	const char *command;   /* makes out.so from unit.so */
	int n;                 /* of positions; -1: the DWARF is not used */
};

static const struct unit_row unit_rows[] = {
	{ "a good unit", ".asciz \"/src\"", "", "cp unit.so out.so", 1 },
	{ "a string that does not end", ".ascii \"/src\"", "", "cp unit.so out.so", 0 },
	/* libdw would open the file that the section names, whatever its type is. */
	{ "an alternate file", ".asciz \"/src\"",
	  ".section .gnu_debugaltlink,\"\",@progbits\n.asciz \"x\"\n.8byte 1, 2\n",
	  "cp unit.so out.so", -1 },
	{ "an alternate file in a section of another type", ".asciz \"/src\"",
	  ".section .gnu_debugaltlink,\"\",@note\n.asciz \"x\"\n.8byte 1, 2\n", "cp unit.so out.so",
	  -1 },
	{ "two line tables", ".asciz \"/src\"", ".section .other,\"\",@progbits\n.8byte 1\n",
	  "objcopy --rename-section .other=.debug_line unit.so out.so", -1 },
};

static void units(void **state)
{
	struct fixture *f = *state;
	char path[128];

	if (!have("gcc") || !have("objcopy"))
		skip();
	for (size_t i = 0; i < ARRAY_LEN(unit_rows); i++) {
		const struct unit_row *row = &unit_rows[i];
		_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;
		_cleanup_(debuginfo_freep) struct debuginfo *debuginfo = NULL;
		struct ptd_position positions[PTD_POSITIONS_MAX];
		uint64_t start, size;
		FILE *source;

		print_message("  %s\n", row->title);
		(void)snprintf(path, sizeof(path), "%s/unit.s", f->dir);
		source = fopen(path, "we");
		assert_non_null(source);
		fprintf(source, "%s\t%s\n%s%s", unit_start, row->directory, unit_end, row->more);
		fclose(source);
		assert_true(run(f, "gcc -shared -nostdlib -o unit.so unit.s && rm -f out.so && %s",
				row->command));
		(void)snprintf(path, sizeof(path), "%s/out.so", f->dir);
		file = open_file(f, path);
		find_text(file, &start, &size);
		assert_int_equal(debuginfo_new(file, NULL, &debuginfo), 0);
		assert_int_equal(debuginfo ? debuginfo_find(debuginfo, start, positions) : -1,
				 row->n);
		if (row->n == 1) {
			assert_string_equal(positions[0].file, "/src/a.c");
			assert_int_equal(positions[0].line, 5);
		}
	}
}

/* What is said of damaged DWARF may be wrong, but nothing breaks. */
static void damaged(void **state)
{
	struct fixture *f = *state;
	_cleanup_(filebytes_unrefp) struct filebytes *whole = NULL;
	_cleanup_(elfsym_deinit) struct elfsym elf = {};
	_cleanup_(freep) uint8_t *bytes = NULL;
	const uint8_t *good;
	char path[128];
	size_t size;

	if (!have("gcc") || !getcwd(path, sizeof(path)) ||
	    access("decoder/symbol/symtab.c", R_OK) < 0)
		skip();
	assert_true(run(f,
			"gcc -O2 -g -std=gnu17 -D_GNU_SOURCE -I%s -I%s/include -shared -fPIC -o "
			"small.so %s/decoder/symbol/symtab.c",
			path, path, path));
	(void)snprintf(path, sizeof(path), "%s/small.so", f->dir);
	whole = open_file(f, path);
	size = (size_t)filebytes_size(whole);
	good = filebytes_get(whole, 0, size);
	assert_non_null(good);
	assert_int_equal(elfsym_init(&elf, whole), 0);
	bytes = malloc(size);
	assert_non_null(bytes);
	srand(2);
	for (unsigned i = 0; i < (IS_SANITIZED ? 100 : 1000); i++) {
		_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;
		_cleanup_(debuginfo_freep) struct debuginfo *debuginfo = NULL;

		memcpy(bytes, good, size);
		for (size_t s = 0; s < elf.sections.n; s++) {
			const GElf_Shdr *h = &elf.sections.items[s].header;

			if (strncmp(elf.sections.items[s].name, ".debug_", 7) == 0 && rand() % 3)
				bytes[h->sh_offset + (size_t)rand() % h->sh_size] = (uint8_t)rand();
		}
		assert_int_equal(filebytes_new_in_memory(bytes, size, &file), 0);
		assert_int_equal(debuginfo_new(file, NULL, &debuginfo), 0);
		if (debuginfo)
			assert_int_equal(debuginfo_lines(debuginfo, &(struct ptd_line_table){}), 0);
		for (uint64_t at = 0x1000; debuginfo && at < 0x3000; at += 0x40) {
			struct ptd_position positions[PTD_POSITIONS_MAX];

			assert_in_range(debuginfo_find(debuginfo, at, positions), 0,
					PTD_POSITIONS_MAX);
		}
	}
}

/* The stack grows at once: no memory for that is a signal, which is not what is tested. */
static __attribute__((__noinline__)) void use_stack(void)
{
	volatile char bytes[512 << 10];

	for (size_t i = 0; i < sizeof(bytes); i += 1024)
		bytes[i] = 0;
}

/*
 * Let this process have @more bytes of address space, and look for positions. Return: 0 if all were
 * found; -ENOMEM; or another negative errno.
 */
static int find_within(struct filebytes *file, uint64_t start, uint64_t size, uint64_t more)
{
	struct ptd_position positions[PTD_POSITIONS_MAX];
	struct debuginfo *debuginfo = NULL;
	struct ptd_line_table table;
	FILE *statm = fopen("/proc/self/statm", "re");
	unsigned long pages;
	struct rlimit limit;
	int r;

	use_stack();
	if (!statm || fscanf(statm, "%lu", &pages) != 1)
		return -EINVAL;
	fclose(statm);
	(void)malloc_trim(0);
	limit.rlim_cur = limit.rlim_max = pages * (uint64_t)sysconf(_SC_PAGESIZE) + more;
	if (setrlimit(RLIMIT_AS, &limit) < 0)
		return -errno;
	r = debuginfo_new(file, NULL, &debuginfo);
	/* If libdw cannot open the DWARF, it does not say why. */
	if (r == 0 && !debuginfo)
		r = -ENOMEM;
	for (uint64_t at = 0; r >= 0 && at < size; at += size / 50)
		r = debuginfo_find(debuginfo, start + at, positions);
	if (r >= 0)
		r = debuginfo_lines(debuginfo, &table);
	debuginfo_free(debuginfo);
	return r < 0 ? r : 0;
}

/* Alone, libdw would end the process that has no memory for it. */
static void without_memory(void **state)
{
	struct fixture *f = *state;
	_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;
	uint64_t start, size;
	size_t n_failed = 0;
	int status = 1;

	if (IS_SANITIZED)
		skip();
	file = open_file(f, "/proc/self/exe");
	need(has_dwarf(file), &file);
	find_text(file, &start, &size);
	for (uint64_t more = 0; status != 0; more += 16 << 10) {
		const pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			const int r = find_within(file, start, size, more);

			_exit(r == -ENOMEM ? 77 : r < 0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 77);
		n_failed += status != 0;
		assert_true(more < 256 << 20);
	}
	print_message("  failed with %zu sizes\n", n_failed);
	assert_true(n_failed > 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		/* First, while the heap is small. */
		cmocka_unit_test_setup_teardown(without_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(this_program, setup, teardown),
		cmocka_unit_test_setup_teardown(compressed, setup, teardown),
		cmocka_unit_test_setup_teardown(other_dwarf, setup, teardown),
		cmocka_unit_test_setup_teardown(alternate, setup, teardown),
		cmocka_unit_test_setup_teardown(units, setup, teardown),
		cmocka_unit_test_setup_teardown(damaged, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
