/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Object: the test program itself is the file that is looked for, in a snapshot made by hand and
 * at its own path.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "decoder/image/objects.h"
#include "tests/lib/tempdir.h"
#include "util/mapfile.h"
#include "util/objectsmap.h"
#include "util/sha256.h"

#define HEX64   "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define HEX65   HEX64 "0"
#define OTHER64 "1123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

struct fixture {
	char self[256]; /* path of the test program */
	struct mapfile bytes;
	struct buildid id;
	char dir[TEMPDIR_SIZE];
};

static void in_dir(const struct fixture *f, const char *name, char ret_path[static 256])
{
	assert_in_range(snprintf(ret_path, 256, "%s/%s", f->dir, name), 1, 255);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	ssize_t n;
	int fd;

	assert_non_null(f);
	n = readlink("/proc/self/exe", f->self, sizeof(f->self) - 1);
	assert_in_range(n, 1, sizeof(f->self) - 1);
	assert_int_equal(mapfile_read(&f->bytes, AT_FDCWD, f->self), 0);
	fd = open(f->self, O_RDONLY | O_CLOEXEC);
	assert_int_equal(buildid_read(fd, &f->id), 0);
	assert_in_range(f->id.size, 8, sizeof(f->id.bytes));
	(void)close(fd);
	tempdir_make("object", f->dir);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	tempdir_remove(f->dir);
	mapfile_deinit(&f->bytes);
	free(f);
	return 0;
}

static void keep_by_id(const struct fixture *f, const struct buildid *id)
{
	char hex[BUILDID_HEX_MAX], name[128];

	buildid_hex(id, hex);
	(void)snprintf(name, sizeof(name), "objects/.build-id/%.2s/%s/elf", hex, hex + 2);
	tempdir_put(f->dir, name, f->bytes.bytes, f->bytes.size);
}

static const struct object *find(struct objects *objects, const char *path,
				 const struct buildid *id, enum object_state state)
{
	const struct object *object = NULL, *again = NULL;

	print_message("  %s\n", path);
	assert_int_equal(objects_find(objects, path, id, &object), 0);
	assert_int_equal(object->state, state);
	assert_int_equal(object_bytes(object, 0, 1) != NULL, state == OBJECT_OK);
	assert_int_equal(object->id.source != NULL, state == OBJECT_OK);
	assert_int_equal(objects_find(objects, path, id, &again), 0);
	assert_ptr_equal(again, object);
	return object;
}

static void finds_at_its_path(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	struct buildid wrong = f->id;
	const struct object *o, *missing;

	assert_int_equal(objects_new(NULL, &objects), 0);
	o = find(objects, f->self, NULL, OBJECT_OK);
	assert_int_equal(o->id.id, 0);
	assert_string_equal(o->id.name, f->self);
	assert_string_equal(o->id.source, f->self);
	assert_int_equal(o->id.build_id_size, f->id.size);
	assert_memory_equal(o->id.build_id, f->id.bytes, f->id.size);
	assert_true(o->is_elf);
	assert_int_equal(o->size, f->bytes.size);

	/* One file, however it is asked for. */
	assert_ptr_equal(find(objects, f->self, &f->id, OBJECT_OK), o);

	wrong.bytes[0] ^= 1;
	o = find(objects, f->self, &wrong, OBJECT_WRONG_ID);
	assert_int_equal(o->id.id, 1);
	assert_memory_equal(o->id.build_id, wrong.bytes, wrong.size);
	wrong.size = f->id.size / 2;
	(void)find(objects, f->self, &wrong, OBJECT_WRONG_ID);

	missing = find(objects, "/nonexistent/program", &f->id, OBJECT_MISSING);
	assert_int_equal(missing->id.id, 3);
	assert_string_equal(missing->id.name, "/nonexistent/program");
}

static void never_was_a_file(void **state)
{
	static const char *const names[] = {
		"[vdso]",
		"[heap]",
		"[stack]",
		"[vsyscall]",
		"anon_inode:[io]",
		"relative",
		"",
		"/memfd:jit (deleted)",
		"/dev/zero (deleted)",
		"/SYSV00000000",
		"[kernel.kallsyms]_text",
	};
	_cleanup_(objects_freep) struct objects *objects = NULL;
	const struct object *o;

	(void)state;
	assert_int_equal(objects_new(NULL, &objects), 0);
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		o = find(objects, names[i], NULL, OBJECT_NO_FILE);
		assert_string_equal(o->id.name, names[i]);
		assert_int_equal(o->id.id, i);
	}
	o = find(objects, "//anon", NULL, OBJECT_NO_FILE);
	assert_string_equal(o->id.name, "[anon]");
}

static void only_regular_files(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	const struct object *o;
	char path[256];

	assert_int_equal(objects_new(f->dir, &objects), 0);
	in_dir(f, "fifo", path);
	assert_int_equal(mkfifo(path, 0600), 0);
	(void)find(objects, path, NULL, OBJECT_MISSING);
	(void)find(objects, f->dir, NULL, OBJECT_MISSING);
	(void)find(objects, "/dev/null", NULL, OBJECT_MISSING);

	o = (const struct object *)0x1;
	assert_int_equal(objects_add_file(objects, path, &o), -EINVAL);
	assert_int_equal(objects_add_file(objects, f->dir, &o), -EISDIR);
	assert_int_equal(objects_add_file(objects, "/nonexistent", &o), -ENOENT);
	assert_ptr_equal(o, (const struct object *)0x1);
	assert_int_equal(objects_add_file(objects, f->self, &o), 0);
	assert_int_equal(o->state, OBJECT_OK);
	assert_int_equal(o->id.id, 3);
}

static void finds_in_the_snapshot(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	_cleanup_(freep) char *map = NULL;
	struct buildid other = { .bytes = { 1, 2, 3 }, .size = 20 };
	char hex[BUILDID_HEX_MAX], other_hex[BUILDID_HEX_MAX];
	const struct object *o;

	keep_by_id(f, &f->id);
	keep_by_id(f, &other); /* not what it says it is */
	buildid_hex(&f->id, hex);
	buildid_hex(&other, other_hex);
	tempdir_put(f->dir, "objects/sha256/" HEX64 "/elf", "\x90\xc3", 2);
	assert_true(asprintf(&map,
			     "sha256:" HEX64 "\t/gone/plain\n-\t/gone/lost\n"
			     "- it is too large\t%s\n"
			     "sha256:" HEX64 "\t/gone/a\\012b\\134c\n"
			     "%s\t/gone/program\n%s\t/gone/program\n"
			     "%s\t/memfd:code (deleted)\n%s\t[vdso]\n",
			     f->self, hex, other_hex, hex, hex) > 0);
	tempdir_put(f->dir, "objects.map", map, strlen(map));
	assert_int_equal(objects_new(f->dir, &objects), 0);

	o = find(objects, "/gone/program", &f->id, OBJECT_OK);
	assert_int_equal(strncmp(o->id.source, f->dir, strlen(f->dir)), 0);
	assert_string_equal(o->id.name, "/gone/program");
	(void)find(objects, "/memfd:code (deleted)", &f->id, OBJECT_OK);
	(void)find(objects, "[vdso]", &f->id, OBJECT_NO_FILE); /* a program is none */
	(void)find(objects, "/gone/program", &other, OBJECT_WRONG_ID);
	(void)find(objects, "/gone/program", NULL, OBJECT_WRONG_ID);
	(void)find(objects, "/gone/lost", NULL, OBJECT_MISSING);

	/* What is kept under a build-id is not what another path, or no path, had. */
	(void)find(objects, "/gone/lost", &f->id, OBJECT_MISSING);
	(void)find(objects, "/gone/other", &f->id, OBJECT_MISSING);
	(void)find(objects, "/gone/plain", &f->id, OBJECT_WRONG_ID);

	/* The file that is at its path now is taken if that is the build-id; not else. */
	(void)find(objects, f->self, NULL, OBJECT_MISSING);
	o = find(objects, f->self, &f->id, OBJECT_OK);
	assert_string_equal(o->id.source, f->self);

	(void)find(objects, "/gone/a\nb\\c", NULL, OBJECT_OK);
	o = find(objects, "/gone/plain", NULL, OBJECT_OK);
	assert_int_equal(o->size, 2);
	assert_false(o->is_elf);
	assert_int_equal(o->id.build_id_size, 0);
}

/* For a file without a build-id there was no room: the one that is at its path now is taken if its
 * content is the same. */
static void lost_but_here(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	_cleanup_(freep) char *map = NULL;
	char hash[SHA256_HEX_SIZE], plain[PATH_MAX], two[PATH_MAX], other[PATH_MAX];

	tempdir_put(f->dir, "plain", "\x90\xc3", 2);
	tempdir_put(f->dir, "two", "\x90\xc3", 2);
	tempdir_put(f->dir, "other", "\x90\xc4", 2);
	(void)snprintf(plain, sizeof(plain), "%s/plain", f->dir);
	(void)snprintf(two, sizeof(two), "%s/two", f->dir);
	(void)snprintf(other, sizeof(other), "%s/other", f->dir);
	assert_int_equal(sha256_bytes("\x90\xc3", 2, hash), 0);
	assert_true(asprintf(&map,
			     "- sha256:%s no room\t%s\n"
			     "- sha256:%s\t%s\n"
			     "- sha256:%s no room\t%s\n- sha256:" HEX64 " no room\t%s\n"
			     "- sha256:%s no room\t/gone/plain\n",
			     hash, plain, hash, other, hash, two, two, hash) > 0);
	tempdir_put(f->dir, "objects.map", map, strlen(map));
	assert_int_equal(objects_new(f->dir, &objects), 0);

	assert_string_equal(find(objects, plain, NULL, OBJECT_OK)->id.source, plain);
	(void)find(objects, plain, &f->id, OBJECT_WRONG_ID);
	(void)find(objects, other, NULL, OBJECT_MISSING);
	(void)find(objects, two, NULL, OBJECT_MISSING); /* it may be the other one of that path */
	(void)find(objects, "/gone/plain", NULL, OBJECT_MISSING);
}

/* Where perf's build-id cache has it; what it is, only the map says. */
static void the_vdso(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	const struct object *o;
	char hex[BUILDID_HEX_MAX], text[128];

	buildid_hex(&f->id, hex);
	(void)snprintf(text, sizeof(text), "objects/.build-id/%.2s/%s/vdso", hex, hex + 2);
	tempdir_put(f->dir, text, f->bytes.bytes, f->bytes.size);
	(void)snprintf(text, sizeof(text), "%s\t[vdso]\n", hex);
	tempdir_put(f->dir, "objects.map", text, strlen(text));
	assert_int_equal(objects_new(f->dir, &objects), 0);

	o = find(objects, "[vdso]", NULL, OBJECT_OK);
	assert_string_equal(o->id.name, "[vdso]");
	assert_true(o->is_elf);
	assert_ptr_equal(find(objects, "[vdso]", &f->id, OBJECT_OK), o);
	(void)find(objects, "/gone/program", &f->id, OBJECT_MISSING);
}

static void does_not_guess(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	_cleanup_(freep) char *map = NULL;
	char hex[BUILDID_HEX_MAX];

	buildid_hex(&f->id, hex);
	tempdir_put(f->dir, "objects/sha256/" HEX64 "/elf", "\x90\xc3", 2);
	tempdir_put(f->dir, "objects/sha256/" OTHER64 "/elf", f->bytes.bytes, f->bytes.size);
	keep_by_id(f, &f->id);
	assert_true(asprintf(&map,
			     "%s\t/a\nsha256:" HEX64 "\t/a\n"
			     "%s\t/b\n%s\t/b\n"
			     "%s\t%s\nsha256:" HEX64 "\t%s\n"
			     "-\t/c\n%s\t/c\n"
			     "-\t/d\nsha256:" HEX64 "\t/d\n"
			     "-\t/e\nsha256:" OTHER64 "\t/e\n",
			     hex, hex, hex, hex, f->self, f->self, hex) > 0);
	tempdir_put(f->dir, "objects.map", map, strlen(map));
	assert_int_equal(objects_new(f->dir, &objects), 0);

	(void)find(objects, "/a", NULL, OBJECT_WRONG_ID);
	(void)find(objects, "/a", &f->id, OBJECT_OK);
	(void)find(objects, "/b", NULL, OBJECT_OK);
	(void)find(objects, f->self, NULL, OBJECT_WRONG_ID); /* nor is the file there now better */
	(void)find(objects, "/c", NULL, OBJECT_WRONG_ID); /* it may be the one that is not here */
	(void)find(objects, "/c", &f->id, OBJECT_OK);
	(void)find(objects, "/d", &f->id, OBJECT_WRONG_ID);
	(void)find(objects, "/d", NULL, OBJECT_WRONG_ID);
	/* It was copied before its build-id was known; once again it could not be. */
	(void)find(objects, "/e", NULL, OBJECT_WRONG_ID);
	(void)find(objects, "/e", &f->id, OBJECT_OK);
}

/* A directory that perf wrote has no map, only build-ids. */
static void without_a_map(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;

	keep_by_id(f, &f->id);
	assert_int_equal(objects_new(f->dir, &objects), 0);
	(void)find(objects, "/gone/program", &f->id, OBJECT_OK);
	(void)find(objects, "/gone/program", NULL, OBJECT_MISSING);
}

/* Of one path there may be any number of build-ids. */
static void many_build_ids(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	char hex[BUILDID_HEX_MAX], map[4096];
	size_t n = 0;

	buildid_hex(&f->id, hex);
	n += (size_t)snprintf(map + n, sizeof(map) - n, "%s\t/a\n", hex);
	for (unsigned i = 0; i < 20; i++)
		n += (size_t)snprintf(map + n, sizeof(map) - n, "%04x\t/a\n%s\t/a%u\n", i, hex, i);
	tempdir_put(f->dir, "objects.map", map, n);
	keep_by_id(f, &f->id);
	assert_int_equal(objects_new(f->dir, &objects), 0);
	(void)find(objects, "/a", &f->id, OBJECT_OK);
	(void)find(objects, "/a19", &f->id, OBJECT_OK);
	(void)find(objects, "/a20", &f->id, OBJECT_MISSING);
}

/* Of two files with one build-id each lies where only its path leads to. */
static void one_build_id_twice(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	_cleanup_(freep) char *map = NULL;
	const struct object *o;

	tempdir_put(f->dir, "objects/sha256/" HEX64 "/elf", f->bytes.bytes, f->bytes.size);
	assert_true(asprintf(&map,
			     "sha256:" HEX64 "\t/a\nsha256:" HEX64 "\t%s\n"
			     "sha256:" OTHER64 "\t%s\n",
			     f->self, f->self) > 0);
	tempdir_put(f->dir, "objects.map", map, strlen(map));
	assert_int_equal(objects_new(f->dir, &objects), 0);

	o = find(objects, "/a", &f->id, OBJECT_OK);
	assert_int_equal(strncmp(o->id.source, f->dir, strlen(f->dir)), 0);
	/* Both were at this path: the file that is there now, of the same build-id, may be
	 * neither. */
	(void)find(objects, f->self, &f->id, OBJECT_WRONG_ID);
	(void)find(objects, "/b", &f->id, OBJECT_MISSING);
}

/* Of two files of one path and build-id, records name one by its inode. */
static void inodes_tell_twins_apart(void **state)
{
	static const struct objectsmap_inode inode = { 8, 1, 23 }, other = { 8, 1, 24 };
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	_cleanup_(freep) char *map = NULL;
	const struct object *first, *second, *o;

	tempdir_put(f->dir, "objects/sha256/" HEX64 "/elf", f->bytes.bytes, f->bytes.size);
	tempdir_put(f->dir, "objects/sha256/" OTHER64 "/elf", f->bytes.bytes, f->bytes.size);
	assert_true(asprintf(&map,
			     "sha256:" HEX64 "\t%s\n@8:1:23 sha256:" OTHER64 "\t%s\n"
			     "sha256:" HEX64 "\t/lost\n@8:1:23 - it is too large\t/lost\n"
			     "@8:1:23 sha256:" HEX64 "\t/none\n@8:1:24 sha256:" OTHER64 "\t/none\n"
			     "@8:1:23 sha256:" HEX64 "\t/twice\n@8:1:23 sha256:" OTHER64
			     "\t/twice\n",
			     f->self, f->self) > 0);
	tempdir_put(f->dir, "objects.map", map, strlen(map));
	assert_int_equal(objects_new(f->dir, &objects), 0);

	first = find(objects, f->self, &f->id, OBJECT_OK);
	assert_non_null(strstr(first->id.source, HEX64));
	assert_int_equal(objects_find_mapped(objects, f->self, NULL, &inode, &second), 0);
	assert_int_equal(second->state, OBJECT_OK);
	assert_non_null(strstr(second->id.source, OTHER64));
	/* The table of a file's header may state the build-id of a path. */
	assert_int_equal(objects_find_mapped(objects, f->self, &f->id, &inode, &o), 0);
	assert_non_null(strstr(o->id.source, OTHER64));
	assert_int_equal(objects_find_mapped(objects, f->self, &f->id, &other, &o), 0);
	assert_non_null(strstr(o->id.source, HEX64));
	/* Which of the two it is, is not known. */
	(void)find(objects, f->self, NULL, OBJECT_WRONG_ID);

	(void)find(objects, "/lost", &f->id, OBJECT_OK);
	assert_int_equal(objects_find_mapped(objects, "/lost", NULL, &inode, &o), 0);
	assert_int_equal(o->state, OBJECT_MISSING);
	assert_int_equal(objects_find_mapped(objects, "/none", NULL, &inode, &o), 0);
	assert_non_null(strstr(o->id.source, HEX64));
	assert_int_equal(objects_find_mapped(objects, "/none", NULL, &other, &o), 0);
	assert_non_null(strstr(o->id.source, OTHER64));
	assert_int_equal(objects_find_mapped(objects, "/twice", NULL, &inode, &o), 0);
	assert_int_equal(o->state, OBJECT_WRONG_ID);
}

static void malformed_map(void **state)
{
	static const struct {
		const char *name;
		const char *map;
		int expected;
	} rows[] = {
		{ "good", "0a0b\t/a\nsha256:" HEX64 "\t/b c\n-\t/d\n", 0 },
		{ "reason", "- it is not an ELF file\t/a\n", 0 },
		{ "no space before the reason", "-it\t/a\n", -EBADMSG },
		{ "empty", "", 0 },
		{ "no end of line", "0a0b\t/a\n-\t/d", -EBADMSG },
		{ "no tab", "0a0b /a\n", -EBADMSG },
		{ "no path", "0a0b\t\n", -EBADMSG },
		{ "no id", "\t/a\n", -EBADMSG },
		{ "empty line", "\n", -EBADMSG },
		{ "id leads out", "../..\t/a\n", -EBADMSG },
		{ "upper case", "0A0B\t/a\n", -EBADMSG },
		{ "build-id too long", "000102030405060708090a0b0c0d0e0f1011121314\t/a\n",
		  -EBADMSG },
		{ "hash too short", "sha256:0123\t/a\n", -EBADMSG },
		{ "inode", "@8:1:23 0a0b\t/a\n@8:1:23 -\t/b\n", 0 },
		{ "no inode", "@8:1: 0a0b\t/a\n", -EBADMSG },
		{ "inode 0", "@8:1:0 0a0b\t/a\n", -EBADMSG },
		{ "inode too large", "@8:1:18446744073709551616 0a0b\t/a\n", -EBADMSG },
		{ "device too large", "@4294967296:1:2 0a0b\t/a\n", -EBADMSG },
		{ "inode without an identity", "@8:1:23\t/a\n", -EBADMSG },
		{ "hash too long", "sha256:" HEX65 "\t/a\n", -EBADMSG },
		{ "hash leads out", "sha256:../../../../etc/passwd\t/a\n", -EBADMSG },
	};
	const struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct objects *objects = (struct objects *)0x1;

		print_message("  %s\n", rows[i].name);
		tempdir_put(f->dir, "objects.map", rows[i].map, strlen(rows[i].map));
		assert_int_equal(objects_new(f->dir, &objects), rows[i].expected);
		if (rows[i].expected < 0)
			assert_ptr_equal(objects, (struct objects *)0x1);
		else
			assert_null(objects_free(objects));
	}
}

/* Of the test program: where main lies in the file, and its ELF address. */
static int locate_main(struct dl_phdr_info *info, size_t size, void *userdata)
{
	const uint64_t address = (uintptr_t)locate_main - info->dlpi_addr;
	uint64_t *found = userdata;

	(void)size;
	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type != PT_LOAD || address - h->p_vaddr >= h->p_filesz)
			continue;
		found[0] = address - h->p_vaddr + h->p_offset;
		found[1] = address;
	}
	return 1; /* the program itself comes first */
}

static void addresses(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	const struct object *o;
	uint64_t found[2] = {}, n = 0;
	const uint8_t *code;
	char path[256];

	assert_int_equal(objects_new(NULL, &objects), 0);
	assert_int_equal(dl_iterate_phdr(locate_main, found), 1);
	assert_int_not_equal(found[1], 0);
	o = find(objects, f->self, NULL, OBJECT_OK);
	assert_int_equal(object_address(o, found[0]), found[1]);
	assert_true(object_address(o, UINT64_MAX) == UINT64_MAX);

	/* And back, up to the end of the segment. */
	code = object_code(o, found[1], 16, &n);
	assert_int_equal(n, 16);
	assert_ptr_equal(code, object_bytes(o, found[0], 16));
	assert_null(object_code(o, UINT64_MAX, 16, &n));
	assert_non_null(object_code(o, found[1], UINT64_MAX, &n));
	assert_in_range(n, 17, o->size);

	tempdir_put(f->dir, "plain", "\x90\xc3", 2);
	in_dir(f, "plain", path);
	o = find(objects, path, NULL, OBJECT_OK);
	assert_int_equal(object_address(o, 1), 1);
	assert_null(object_code(o, 1, 1, &n));
	assert_int_equal(object_address(find(objects, "//anon", NULL, OBJECT_NO_FILE), 5), 5);
}

/*
 * Write an ELF file with @n segments, whose kinds are those of the table, again and again.
 * Segment K has 16 bytes, which are at 0x1000 * (K + 1); @n_sharing segments at a time have the
 * same bytes.
 */
static void put_segments(const struct fixture *f, const char *name, size_t n, size_t n_sharing,
			 const Elf64_Phdr *kinds, size_t n_kinds)
{
	const size_t size = sizeof(Elf64_Ehdr) + n * sizeof(Elf64_Phdr) + n * 16;
	_cleanup_(freep) uint8_t *bytes = calloc(1, size);
	const Elf64_Ehdr header = {
		.e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_phoff = sizeof(header),
		.e_ehsize = sizeof(header),
		.e_phentsize = sizeof(Elf64_Phdr),
		.e_phnum = (Elf64_Half)n,
	};

	assert_non_null(bytes);
	memcpy(bytes, &header, sizeof(header));
	for (size_t i = 0; i < n; i++) {
		Elf64_Phdr segment = kinds[i % n_kinds];

		segment.p_offset = i / n_sharing * 16;
		segment.p_filesz = segment.p_memsz = 16;
		segment.p_vaddr = 0x1000 * (i + 1);
		memcpy(bytes + sizeof(header) + i * sizeof(segment), &segment, sizeof(segment));
	}
	tempdir_put(f->dir, name, bytes, size);
}

/* A byte that several segments have is at the address that the executable one gives it. There may
 * be more segments than are looked at. */
static void addresses_by_segments(void **state)
{
	static const Elf64_Phdr kinds[] = {
		{ .p_type = PT_NOTE, .p_flags = PF_X },
		{ .p_type = PT_LOAD, .p_flags = PF_R },
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X },
	};
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	const struct object *o;
	char path[256];

	assert_int_equal(objects_new(NULL, &objects), 0);
	put_segments(f, "three", 3, 1, kinds, 3);
	in_dir(f, "three", path);
	o = find(objects, path, NULL, OBJECT_OK);
	assert_int_equal(object_address(o, 3), 3);
	assert_int_equal(object_address(o, 16), 0x2000);
	assert_int_equal(object_address(o, 31), 0x200f);
	assert_int_equal(object_address(o, 32), 0x3000);
	assert_int_equal(object_address(o, 47), 0x300f);
	assert_int_equal(object_address(o, 48), 48);

	put_segments(f, "shared", 6, 3, kinds, 3);
	in_dir(f, "shared", path);
	o = find(objects, path, NULL, OBJECT_OK);
	assert_int_equal(object_address(o, 3), 0x3003);
	assert_int_equal(object_address(o, 16), 0x6000);

	put_segments(f, "many", 300, 1, kinds + 2, 1);
	in_dir(f, "many", path);
	o = find(objects, path, NULL, OBJECT_OK);
	assert_int_equal(object_address(o, 255 * 16), 0x1000 * 256);
	assert_int_equal(object_address(o, 256 * 16), 256 * 16);
}

/* An object that shares the bytes of another has its addresses, or those of a plain file. */
static void shared_bytes(void **state)
{
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;
	struct object *first, *same, *plain;
	char path[256];

	assert_int_equal(objects_new(NULL, &objects), 0);
	tempdir_put(f->dir, "memory", "0123456789", 10);
	in_dir(f, "memory", path);
	assert_int_equal(objects_add_memory(objects, path, "[anon]", &first), 0);
	assert_int_equal(object_add_part(first, 4, 2, 0x9000), 0);
	assert_int_equal(objects_share(objects, first, false, "[jit]", &same), 0);
	assert_int_equal(objects_share(objects, first, true, "[jit]", &plain), 0);
	assert_int_equal(object_address(same, 3), object_address(first, 3));
	assert_int_equal(object_address(same, 5), 0x9001);
	assert_int_equal(object_address(plain, 3), 3);
	assert_int_equal(object_address(plain, 5), 5);
	assert_ptr_equal(object_bytes(same, 2, 8), object_bytes(first, 2, 8));
	assert_ptr_equal(object_bytes(plain, 2, 8), object_bytes(first, 2, 8));
	assert_memory_equal(object_bytes(plain, 2, 8), "23456789", 8);
}

/* However much of the file is there, its bytes can be used. */
static void cut_off(void **state)
{
	static const size_t sizes[] = { 0, 1, 4, 16, 20, 52, 63, 64, 65, 100, 300, 1000, 4096 };
	const struct fixture *f = *state;
	_cleanup_(objects_freep) struct objects *objects = NULL;

	assert_int_equal(objects_new(NULL, &objects), 0);
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		const struct object *o = NULL;
		char name[32], path[256];

		(void)snprintf(name, sizeof(name), "cut-%zu", sizes[i]);
		tempdir_put(f->dir, name, f->bytes.bytes, sizes[i]);
		in_dir(f, name, path);
		assert_int_equal(objects_find(objects, path, NULL, &o), 0);
		assert_int_equal(o->state, OBJECT_OK);
		assert_int_equal(o->size, sizes[i]);
		assert_true(!o->is_elf || sizes[i] > 20);
		(void)object_address(o, 0x1000);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(finds_at_its_path, setup, teardown),
		cmocka_unit_test(never_was_a_file),
		cmocka_unit_test_setup_teardown(only_regular_files, setup, teardown),
		cmocka_unit_test_setup_teardown(finds_in_the_snapshot, setup, teardown),
		cmocka_unit_test_setup_teardown(does_not_guess, setup, teardown),
		cmocka_unit_test_setup_teardown(without_a_map, setup, teardown),
		cmocka_unit_test_setup_teardown(many_build_ids, setup, teardown),
		cmocka_unit_test_setup_teardown(lost_but_here, setup, teardown),
		cmocka_unit_test_setup_teardown(the_vdso, setup, teardown),
		cmocka_unit_test_setup_teardown(one_build_id_twice, setup, teardown),
		cmocka_unit_test_setup_teardown(inodes_tell_twins_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(malformed_map, setup, teardown),
		cmocka_unit_test_setup_teardown(addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(addresses_by_segments, setup, teardown),
		cmocka_unit_test_setup_teardown(shared_bytes, setup, teardown),
		cmocka_unit_test_setup_teardown(cut_off, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
