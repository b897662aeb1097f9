/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Debugfile: objects and debug files made by hand, in a tree with a snapshot, two debug directories
 * and the object's own.
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
#include <unistd.h>

#include "decoder/image/objects.h"
#include "decoder/symbol/debugfile.h"
#include "decoder/symbol/source.h"
#include "decoder/util/filebytes.h"
#include "tests/lib/symbolat.h"
#include "tests/lib/tempdir.h"
#include "util/dirs.h"

#define CODE_ADDRESS 0x1000u
#define ID           0xab /* the build-id is twenty of these bytes */
#define ID_DIR       "/.build-id/ab/"
#define ID_REST      "ababababababababababababababababababab"

enum {
	SECTION_TEXT = 1,
	SECTION_LINK,
	SECTION_SYMTAB,
	SECTION_STRTAB,
	SECTION_NAMES,
	N_SECTIONS,
};

/* --- ELF files -------------------------------------------------------------------------------- */

struct image {
	Elf64_Ehdr header;
	Elf64_Phdr note_segment;
	struct {
		Elf64_Nhdr header;
		char name[4];
		uint8_t id[20];
	} note;
	uint8_t link[300];
	Elf64_Sym symbols[2];
	char strings[16];
	char names[32];
	Elf64_Shdr sections[N_SECTIONS];
};

#define EXTENT(member)                               \
	.sh_offset = offsetof(struct image, member), \
	.sh_size = sizeof(((struct image *)NULL)->member)

/* An ELF file with a function at CODE_ADDRESS; @id 0: no build-id, @symbol NULL: stripped. */
static void make_image(uint8_t id, const char *symbol, struct image *ret_image)
{
	*ret_image = (struct image){
		.header = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_DYN,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = offsetof(struct image, note_segment),
			    .e_shoff = offsetof(struct image, sections),
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 1,
			    .e_shentsize = sizeof(Elf64_Shdr),
			    .e_shnum = N_SECTIONS,
			    .e_shstrndx = SECTION_NAMES },
		.note_segment = { .p_type = id ? PT_NOTE : PT_NULL,
				  .p_offset = offsetof(struct image, note),
				  .p_filesz = sizeof(ret_image->note),
				  .p_align = 4 },
		.note = { .header = { 4, 20, NT_GNU_BUILD_ID }, .name = "GNU" },
		.symbols[1] = { .st_name = 1,
				.st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
				.st_shndx = SECTION_TEXT,
				.st_value = CODE_ADDRESS,
				.st_size = 16 },
		.names = "\0.gnu_debuglink",
		.sections = {
			[SECTION_TEXT] = { .sh_type = SHT_NOBITS,
					   .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					   .sh_addr = CODE_ADDRESS,
					   .sh_size = 4096 },
			[SECTION_LINK] = { .sh_type = SHT_NULL, .sh_name = 1, EXTENT(link) },
			[SECTION_SYMTAB] = { .sh_type = symbol ? SHT_SYMTAB : SHT_NULL,
					     .sh_link = SECTION_STRTAB,
					     .sh_info = 2,
					     .sh_entsize = sizeof(Elf64_Sym),
					     .sh_addralign = 8,
					     EXTENT(symbols) },
			[SECTION_STRTAB] = { .sh_type = SHT_STRTAB, EXTENT(strings) },
			[SECTION_NAMES] = { .sh_type = SHT_STRTAB, EXTENT(names) },
		},
	};
	memset(ret_image->note.id, id, sizeof(ret_image->note.id));
	if (symbol)
		(void)snprintf(ret_image->strings + 1, sizeof(ret_image->strings) - 1, "%s",
			       symbol);
}

/* Give it a .gnu_debuglink of these bytes. */
static void set_link(struct image *image, const void *bytes, size_t size)
{
	assert_in_range(size, 0, sizeof(image->link));
	memcpy(image->link, bytes, size);
	image->sections[SECTION_LINK].sh_type = SHT_PROGBITS;
	image->sections[SECTION_LINK].sh_size = size;
}

static void set_link_to(struct image *image, const char *name, uint32_t crc)
{
	const size_t size = (strlen(name) + 4) / 4 * 4;
	uint8_t bytes[300] = {};

	assert_in_range(size, 4, sizeof(bytes) - sizeof(crc));
	memcpy(bytes, name, strlen(name));
	memcpy(bytes + size, &crc, sizeof(crc));
	set_link(image, bytes, size + sizeof(crc));
}

/* --- the tree --------------------------------------------------------------------------------- */

struct fixture {
	char dir[TEMPDIR_SIZE];
	struct fileset fileset;
};

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	tempdir_make("debugfile", f->dir);
	fileset_init(&f->fileset);
	*state = f;
	return 0;
}

static void clear(const struct fixture *f)
{
	_cleanup_(fd_closep) int fd = dirs_open(AT_FDCWD, f->dir);

	assert_int_equal(dirs_empty(fd), 0);
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tempdir_remove(f->dir);
	assert_null(fileset_failure(&f->fileset));
	fileset_deinit(&f->fileset);
	free(f);
	return 0;
}

/* The path of @name in the tree; the directories on the way are made. */
static void in_tree(const struct fixture *f, const char *name, char ret_path[static 512])
{
	assert_in_range(snprintf(ret_path, 512, "%s/%s", f->dir, name), 1, 511);
	for (char *p = strchr(ret_path + sizeof("/tmp/"), '/'); p; p = strchr(p + 1, '/')) {
		*p = '\0';
		(void)mkdir(ret_path, 0700);
		*p = '/';
	}
}

/* Look for the debug file of @image, which is called @name, or DIR/app/prog if that is NULL. */
static bool find(struct fixture *f, const struct image *image, const char *name,
		 struct filebytes **ret_debug)
{
	_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;
	char snapshot[512], first[512], second[512], path[512];
	const char *const dirs[] = { first, second };
	const struct debugfile_places places = {
		.snapshot = snapshot, .dirs = dirs, .n_dirs = 2, .fileset = &f->fileset
	};
	struct ptd_object object = { .name = name ? name : path };

	in_tree(f, "snapshot", snapshot);
	in_tree(f, "first", first);
	in_tree(f, "second", second);
	in_tree(f, "app/prog", path);
	object.build_id_size = image->note_segment.p_type == PT_NOTE ? 20 : 0;
	memcpy(object.build_id, image->note.id, object.build_id_size);
	assert_int_equal(filebytes_new_in_memory(image, sizeof(*image), &file), 0);
	return debugfile_find(&places, &object, file, DEBUGFILE_SYMTAB, ret_debug);
}

/* --- where it is found ------------------------------------------------------------------------ */

#define LINK "prog.debug"

/* A debug file somewhere: under a %s stands the directory of the object, with a leading slash. */
struct candidate {
	const char *path;
	uint8_t id;
	bool stripped;
};

struct row {
	const char *title;
	struct candidate candidates[3];
	int found; /* the number of the candidate, from 1; 0: none */
	uint8_t id;
	bool has_symtab;
	bool links; /* by LINK, with the checksum of the first candidate */
};

/* clang-format off */
#define AT(p, i)       { .path = (p), .id = (i) }
#define STRIPPED(p, i) { .path = (p), .id = (i), .stripped = true }
static const struct row rows[] = {
	{ .title = "nothing anywhere",
	  .id = ID, .links = true },
	{ .title = "in the snapshot",
	  .candidates = { AT("snapshot/objects" ID_DIR ID_REST ".debug", ID) },
	  .found = 1, .id = ID },
	{ .title = "in the snapshot as perf has it",
	  .candidates = { AT("snapshot/objects" ID_DIR ID_REST "/debug", ID) },
	  .found = 1, .id = ID },
	{ .title = "in the first directory",
	  .candidates = { AT("first" ID_DIR ID_REST ".debug", ID) },
	  .found = 1, .id = ID },
	{ .title = "in the second directory",
	  .candidates = { AT("second" ID_DIR ID_REST ".debug", ID) },
	  .found = 1, .id = ID },
	{ .title = "the snapshot before the directories",
	  .candidates = { AT("first" ID_DIR ID_REST ".debug", ID),
			  AT("snapshot/objects" ID_DIR ID_REST ".debug", ID) },
	  .found = 2, .id = ID },
	{ .title = "the first directory before the second",
	  .candidates = { AT("second" ID_DIR ID_REST ".debug", ID),
			  AT("first" ID_DIR ID_REST ".debug", ID) },
	  .found = 2, .id = ID },
	{ .title = "not needed",
	  .candidates = { AT("first" ID_DIR ID_REST ".debug", ID) },
	  .id = ID, .has_symtab = true },
	{ .title = "the object has no build-id",
	  .candidates = { AT("first" ID_DIR ID_REST ".debug", ID) },
	   },
	{ .title = "of another build-id",
	  .candidates = { AT("first" ID_DIR ID_REST ".debug", 0xac) },
	  .id = ID },
	{ .title = "without a build-id",
	  .candidates = { AT("first" ID_DIR ID_REST ".debug", 0) },
	  .id = ID },
	{ .title = "stripped itself",
	  .candidates = { STRIPPED("first" ID_DIR ID_REST ".debug", ID) },
	  .id = ID },
	{ .title = "the second, as the first is wrong",
	  .candidates = { AT("first" ID_DIR ID_REST ".debug", 0xac),
			  AT("second" ID_DIR ID_REST ".debug", ID) },
	  .found = 2, .id = ID },
	{ .title = "linked beside the object",
	  .candidates = { AT("app/" LINK, ID) },
	  .found = 1, .id = ID, .links = true },
	{ .title = "linked in .debug",
	  .candidates = { AT("app/.debug/" LINK, ID) },
	  .found = 1, .id = ID, .links = true },
	{ .title = "linked below the first directory",
	  .candidates = { AT("first%s/app/" LINK, ID) },
	  .found = 1, .id = ID, .links = true },
	{ .title = "linked below the second directory",
	  .candidates = { AT("second%s/app/" LINK, ID) },
	  .found = 1, .id = ID, .links = true },
	{ .title = "beside the object, not linked",
	  .candidates = { AT("app/" LINK, ID) },
	  .id = ID },
	{ .title = "linked, of another build-id",
	  .candidates = { AT("app/" LINK, 0xac) },
	  .id = ID, .links = true },
	{ .title = "linked, without a build-id",
	  .candidates = { AT("app/" LINK, 0) },
	  .id = ID, .links = true },
	{ .title = "linked, and neither has a build-id",
	  .candidates = { AT("app/" LINK, 0) },
	  .found = 1, .links = true },
	{ .title = "linked, only the file has a build-id",
	  .candidates = { AT("app/" LINK, ID) },
	  .links = true },
	{ .title = "linked, stripped itself",
	  .candidates = { STRIPPED("app/" LINK, ID) },
	  .id = ID, .links = true },
	{ .title = "linked, another checksum",
	  .candidates = { AT("elsewhere", ID), AT("app/" LINK, ID) },
	  .id = ID, .links = true },
	{ .title = "by build-id before linked",
	  .candidates = { AT("app/" LINK, ID), AT("second" ID_DIR ID_REST ".debug", ID) },
	  .found = 2, .id = ID, .links = true },
};
/* clang-format on */

static void finds(void **state)
{
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *row = &rows[i];
		_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;
		struct image object, debugs[3] = {};

		print_message("  %s\n", row->title);
		make_image(row->id, row->has_symtab ? "own" : NULL, &object);
		for (size_t k = 0; k < 3 && row->candidates[k].path; k++) {
			const struct candidate *c = &row->candidates[k];
			const char *percent = strstr(c->path, "%s");
			const int n = percent ? (int)(percent - c->path) : (int)strlen(c->path);
			const char symbol[] = { 'f', (char)('1' + k), '\0' };
			char path[256];

			make_image(c->id, c->stripped ? NULL : symbol, &debugs[k]);
			(void)snprintf(path, sizeof(path), "%.*s%s%s", n, c->path,
				       percent ? f->dir : "", percent ? percent + 2 : "");
			tempdir_put(f->dir, path, &debugs[k], sizeof(debugs[k]));
		}
		if (row->links)
			set_link_to(&object, LINK,
				    debugfile_crc(0, (uint8_t *)&debugs[0], sizeof(debugs[0])));

		assert_int_equal(find(f, &object, NULL, &file), row->found != 0);
		if (row->found) {
			assert_int_equal(filebytes_size(file), sizeof(object));
			assert_memory_equal(filebytes_get(file, 0, sizeof(object)),
					    &debugs[row->found - 1], sizeof(object));
		} else {
			assert_null(file);
		}
		clear(f);
	}
}

/* --- what is no debug file -------------------------------------------------------------------- */

#define BY_ID "first" ID_DIR ID_REST ".debug"

static void nothing_found(struct fixture *f, const struct image *object, const char *title)
{
	struct filebytes *file = NULL;

	print_message("  %s\n", title);
	assert_false(find(f, object, NULL, &file));
	assert_null(file);
	clear(f);
}

static void refuses(void **state)
{
	struct fixture *f = *state;
	struct image object, debug;
	char path[512], target[512];

	make_image(ID, NULL, &object);
	make_image(ID, "f", &debug);

	in_tree(f, BY_ID, path);
	assert_int_equal(mkfifo(path, 0600), 0);
	nothing_found(f, &object, "a FIFO");

	in_tree(f, BY_ID "/x", path);
	nothing_found(f, &object, "a directory");

	in_tree(f, BY_ID, path);
	assert_int_equal(symlink("/dev/zero", path), 0);
	nothing_found(f, &object, "a device");

	in_tree(f, BY_ID, path);
	assert_int_equal(symlink(path, path), 0);
	nothing_found(f, &object, "a link to itself");

	tempdir_put(f->dir, BY_ID, "", 0);
	nothing_found(f, &object, "empty");

	tempdir_put(f->dir, BY_ID, "not an ELF file\n", 16);
	nothing_found(f, &object, "no ELF file");

	for (size_t size = 1; size < sizeof(debug); size += 1 + sizeof(debug) / 40) {
		struct filebytes *file = NULL;

		tempdir_put(f->dir, BY_ID, &debug, size);
		assert_false(find(f, &object, NULL, &file));
	}
	nothing_found(f, &object, "cut off");

	/* Its checksum is that of a file that is much shorter, so nobody reads it to the end. */
	set_link_to(&object, LINK, debugfile_crc(0, (uint8_t *)&debug, sizeof(debug)));
	tempdir_put(f->dir, "app/" LINK, &debug, sizeof(debug));
	in_tree(f, "app/" LINK, path);
	assert_int_equal(truncate(path, INT64_C(1) << 36), 0);
	nothing_found(f, &object, "64 GiB of zeros behind it");

	/* A link within the tree is as good as the file: distributions have them. */
	in_tree(f, BY_ID, path);
	in_tree(f, "target", target);
	tempdir_put(f->dir, "target", &debug, sizeof(debug));
	assert_int_equal(symlink(target, path), 0);
	{
		_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;

		assert_true(find(f, &object, NULL, &file));
	}
	clear(f);
}

/* Names of objects that are too long, no paths, or end in a slash. */
static void odd_objects(void **state)
{
	struct fixture *f = *state;
	static char long_name[10000];
	const char *const names[] = { "", "/", "//", "[vdso]", "x", long_name };
	struct image object;

	memset(long_name, '/', sizeof(long_name) - 1);
	make_image(ID, NULL, &object);
	set_link_to(&object, LINK, 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		struct filebytes *file = NULL;

		assert_false(find(f, &object, names[i], &file));
	}
}

/* --- .gnu_debuglink --------------------------------------------------------------------------- */

static bool read_link(const void *bytes, size_t size, struct debugfile_link *ret_link)
{
	_cleanup_(filebytes_unrefp) struct filebytes *file = NULL;

	assert_int_equal(filebytes_new_in_memory(bytes, size, &file), 0);
	return debugfile_read_link(file, ret_link);
}

static void reads_links(void **state)
{
	/* clang-format off */
	static const struct {
		const char *title;
		size_t size;
		const char *bytes;
		const char *name; /* NULL: it is malformed */
	} links[] = {
		{ "good", 12, "a.debug\0\1\2\3\4", "a.debug" },
		{ "padded", 12, "a.dbg\0\0\0\1\2\3\4", "a.dbg" },
		{ "padding is not looked at", 12, "a.dbg\0xy\1\2\3\4", "a.dbg" },
		{ "more than needed", 16, "a.debug\0\1\2\3\4more", "a.debug" },
		{ "empty", 0, "", NULL },
		{ "no name", 8, "\0\0\0\0\1\2\3\4", NULL },
		{ "never ends", 12, "a.debugdebug", NULL },
		{ "ends in its padding", 6, "a.dbg\0", NULL },
		{ "no checksum", 8, "a.debug\0", NULL },
		{ "half a checksum", 11, "a.debug\0\1\2\3", NULL },
		{ "a path", 16, "/etc/passwd\0\1\2\3\4", NULL },
		{ "a way up", 12, "../../x\0\1\2\3\4", NULL },
	};
	/* clang-format on */
	struct debugfile_link link = {};
	struct image image;
	char name[300];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(links); i++) {
		struct debugfile_link got = { .name = "unchanged", .crc = 7 };
		bool ok;

		print_message("  %s\n", links[i].title);
		make_image(ID, NULL, &image);
		set_link(&image, links[i].bytes, links[i].size);
		ok = read_link(&image, sizeof(image), &got);
		assert_int_equal(ok, links[i].name != NULL);
		assert_string_equal(got.name, ok ? links[i].name : "unchanged");
		assert_int_equal(got.crc, ok ? 0x04030201 : 7);
	}

	for (size_t n = 254; n <= 256; n++) {
		make_image(ID, NULL, &image);
		memset(name, 'x', sizeof(name));
		name[n] = '\0';
		set_link_to(&image, name, 1);
		assert_int_equal(read_link(&image, sizeof(image), &link), n <= 255);
	}

	make_image(ID, NULL, &image);
	assert_false(read_link(&image, sizeof(image), &link));
	set_link_to(&image, LINK, 1);
	image.sections[SECTION_LINK].sh_offset = UINT64_MAX - 4;
	assert_false(read_link(&image, sizeof(image), &link));
	assert_false(read_link(NULL, 0, &link));
}

static void checksum(void **state)
{
	(void)state;
	assert_int_equal(debugfile_crc(0, (const uint8_t *)"123456789", 9), 0xcbf43926);
	assert_int_equal(debugfile_crc(debugfile_crc(0, (const uint8_t *)"1234", 4),
				       (const uint8_t *)"56789", 5),
			 0xcbf43926);
	assert_int_equal(debugfile_crc(0, NULL, 0), 0);
}

/* --- what it is for --------------------------------------------------------------------------- */

/*
 * A stripped object has the names of its debug file: from the directory that the user names, then
 * from that of the system below symfs. Without places it has none.
 */
static void names_come_from_it(void **state)
{
	struct fixture *f = *state;
	char path[512], dir[512];
	const struct {
		const char *title;
		struct objects_places places;
		const char *path;
		const char *name;
	} places[] = {
		{ "no places", {}, path, "" },
		{ "a debug directory", { .debug_dir = dir }, path, "secret" },
		{ "below symfs", { .symfs = f->dir }, "/app/prog", "deep" },
		{ "both", { .symfs = f->dir, .debug_dir = dir }, "/app/prog", "secret" },
	};
	struct image image;

	make_image(ID, NULL, &image);
	tempdir_put(f->dir, "app/prog", &image, sizeof(image));
	make_image(ID, "secret", &image);
	tempdir_put(f->dir, BY_ID, &image, sizeof(image));
	make_image(ID, "deep", &image);
	tempdir_put(f->dir, "usr/lib/debug" ID_DIR ID_REST ".debug", &image, sizeof(image));
	in_tree(f, "app/prog", path);
	in_tree(f, "first", dir);

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		_cleanup_(objects_freep) struct objects *objects = NULL;
		const struct object *object = NULL;
		const struct symtab_symbol *symbol;
		uint64_t end;

		print_message("  %s\n", places[i].title);
		assert_int_equal(objects_new(NULL, &objects), 0);
		if (i > 0)
			assert_int_equal(objects_look_in(objects, &places[i].places), 0);
		assert_int_equal(objects_find(objects, places[i].path, NULL, &object), 0);
		assert_int_equal(object->state, OBJECT_OK);
		symbolat_expect(object->symbols, CODE_ADDRESS + 5, places[i].name);
		assert_int_equal(
		    symbol_source_find(object->symbols, CODE_ADDRESS + 5, &symbol, &end), 0);
		assert_true(end == (symbol ? CODE_ADDRESS + 16 : UINT64_MAX));
	}
}

/* Only what can be code has a name, and only from a symbol that can name code. */
static void symbols_of_code(void **state)
{
	static const struct {
		const char *title;
		uint8_t type;
		uint16_t section;
		uint64_t address, flags, size;
		bool is_named;
	} symbols[] = {
		{ "a function", STT_FUNC, SECTION_TEXT, 0, SHF_EXECINSTR, 4096, true },
		{ "an indirect function", STT_GNU_IFUNC, SECTION_TEXT, 0, SHF_EXECINSTR, 4096,
		  true },
		{ "a label", STT_NOTYPE, SECTION_TEXT, 0, SHF_EXECINSTR, 4096, true },
		{ "data in code", STT_OBJECT, SECTION_TEXT, 0, SHF_EXECINSTR, 4096, false },
		{ "a section", STT_SECTION, SECTION_TEXT, 0, SHF_EXECINSTR, 4096, false },
		{ "a file", STT_FILE, SHN_ABS, 0, SHF_EXECINSTR, 4096, false },
		{ "a function of another file", STT_FUNC, SHN_UNDEF, 0, SHF_EXECINSTR, 4096,
		  false },
		{ "a section that is not there", STT_FUNC, N_SECTIONS, 0, SHF_EXECINSTR, 4096,
		  false },
		{ "a section that is not executable", STT_FUNC, SECTION_TEXT, 0, SHF_WRITE, 4096,
		  false },
		{ "the last byte of the section", STT_FUNC, SECTION_TEXT, 4095, SHF_EXECINSTR, 4096,
		  true },
		{ "behind the section", STT_FUNC, SECTION_TEXT, 4096, SHF_EXECINSTR, 4096, false },
		{ "before the section", STT_FUNC, SECTION_TEXT, UINT64_MAX, SHF_EXECINSTR, 4096,
		  false },
		{ "a section up to the top", STT_FUNC, SECTION_TEXT, 0, SHF_EXECINSTR,
		  UINT64_MAX - CODE_ADDRESS, true },
		{ "a section beyond the top", STT_FUNC, SECTION_TEXT, 0, SHF_EXECINSTR,
		  UINT64_MAX - CODE_ADDRESS + 1, false },
	};
	const struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
		_cleanup_(objects_freep) struct objects *objects = NULL;
		const uint64_t address = CODE_ADDRESS + symbols[i].address;
		const struct object *object = NULL;
		struct image image;
		char path[512];

		print_message("  %s\n", symbols[i].title);
		make_image(ID, "it", &image);
		image.symbols[1].st_info = ELF64_ST_INFO(STB_LOCAL, symbols[i].type);
		image.symbols[1].st_shndx = symbols[i].section;
		image.symbols[1].st_value = address;
		image.sections[SECTION_TEXT].sh_flags = SHF_ALLOC | symbols[i].flags;
		image.sections[SECTION_TEXT].sh_size = symbols[i].size;
		tempdir_put(f->dir, "app/prog", &image, sizeof(image));
		in_tree(f, "app/prog", path);
		assert_int_equal(objects_new(NULL, &objects), 0);
		assert_int_equal(objects_find(objects, path, NULL, &object), 0);
		symbolat_expect(object->symbols, address, symbols[i].is_named ? "it" : "");
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finds, setup, teardown),
		cmocka_unit_test_setup_teardown(refuses, setup, teardown),
		cmocka_unit_test_setup_teardown(odd_objects, setup, teardown),
		cmocka_unit_test(reads_links),
		cmocka_unit_test(checksum),
		cmocka_unit_test_setup_teardown(names_come_from_it, setup, teardown),
		cmocka_unit_test_setup_teardown(symbols_of_code, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
