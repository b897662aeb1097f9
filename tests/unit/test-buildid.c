/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The build-id of an ELF file: where it is found, and what a hostile file cannot make of the
 * search. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "util/buildid.h"

#define FILE_SIZE ((size_t)4 << 20)
#define HEADERS   sizeof(Elf64_Ehdr)
#define NOTES     0x200000u /* where the rows' notes are */

static const uint8_t wanted[] = { 1, 2, 3, 4, 5, 6, 7, 8 };

/* A file that is made piece by piece. */
struct made {
	uint8_t bytes[FILE_SIZE];
	size_t size;
	size_t n_headers;
	size_t notes; /* bytes of them */
};

static struct made made;

static void begin(void)
{
	const Elf64_Ehdr e = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(e),
		.e_phoff = HEADERS,
		.e_phentsize = sizeof(Elf64_Phdr),
	};

	memset(&made, 0, sizeof(made));
	memcpy(made.bytes, &e, sizeof(e));
	made.size = FILE_SIZE;
}

static void add_header(uint32_t type, uint64_t offset, uint64_t size, uint64_t align)
{
	const Elf64_Phdr h = {
		.p_type = type, .p_offset = offset, .p_filesz = size, .p_align = align
	};
	Elf64_Ehdr *e = (Elf64_Ehdr *)made.bytes;

	memcpy(made.bytes + HEADERS + made.n_headers++ * sizeof(h), &h, sizeof(h));
	e->e_phnum = (uint16_t)made.n_headers;
}

/* Behind the notes that there are. */
static void add_note(uint32_t type, const char *name, uint32_t name_size, const void *desc,
		     uint32_t desc_size, size_t align)
{
	const Elf64_Nhdr note = { .n_namesz = name_size, .n_descsz = desc_size, .n_type = type };
	uint8_t *at = made.bytes + NOTES + made.notes;
	size_t size = (sizeof(note) + name_size + align - 1) & ~(align - 1);

	memcpy(at, &note, sizeof(note));
	memcpy(at + sizeof(note), name, strlen(name));
	if (desc)
		memcpy(at + size, desc, desc_size);
	made.notes += (size + desc_size + align - 1) & ~(align - 1);
}

static void add_wanted(size_t align)
{
	add_note(NT_GNU_BUILD_ID, "GNU", 4, wanted, sizeof(wanted), align);
}

/* --- what is in the file ---------------------------------------------------------------------- */

static void plain(void)
{
	add_wanted(4);
	add_header(PT_NOTE, NOTES, made.notes, 4);
}

static void aligned(void)
{
	add_note(NT_GNU_PROPERTY_TYPE_0, "GNU", 4, wanted, 5, 8);
	add_wanted(8);
	add_header(PT_NOTE, NOTES, made.notes, 8);
}

static void behind_others(void)
{
	add_note(NT_GNU_ABI_TAG, "GNU", 4, wanted, 7, 4);
	add_note(NT_GNU_BUILD_ID, "Xen", 4, wanted, 4, 4);
	add_note(NT_GNU_BUILD_ID, "GNU", 4, wanted, 0, 4);
	add_note(NT_GNU_BUILD_ID, "GNU", 4, made.bytes, BUILDID_MAX + 1, 4);
	add_wanted(4);
	add_header(PT_LOAD, 0, FILE_SIZE, 4096);
	add_header(PT_NOTE, NOTES - 64, 32, 4); /* of nothing */
	add_header(PT_NOTE, NOTES, made.notes, 4);
}

static void no_note(void)
{
	add_wanted(4);
	add_header(PT_LOAD, NOTES, made.notes, 4);
}

static void cut_note(void)
{
	add_wanted(4);
	add_header(PT_NOTE, NOTES, made.notes - 1, 4);
}

static void cut_file(void)
{
	plain();
	made.size = NOTES + made.notes - 1;
}

static void far_away(void)
{
	add_header(PT_NOTE, UINT64_MAX - 8, UINT64_MAX, 4);
	add_header(PT_NOTE, INT64_MAX - 8, 64, 4);
	add_header(PT_NOTE, NOTES, UINT64_MAX, 4);
}

static void long_note(void)
{
	add_note(1, "GNU", 4, NULL, UINT32_MAX - 16, 4);
	made.notes = 32;
	add_wanted(4);
	add_header(PT_NOTE, NOTES, UINT32_MAX, 4);
}

static void note_64(void)
{
	for (unsigned i = 0; i < 63; i++)
		add_note(1, "GNU", 4, wanted, 4, 4);
	add_wanted(4);
	add_header(PT_NOTE, NOTES, made.notes, 4);
}

static void note_65(void)
{
	for (unsigned i = 0; i < 64; i++)
		add_note(1, "GNU", 4, wanted, 4, 4);
	add_wanted(4);
	add_header(PT_NOTE, NOTES, made.notes, 4);
}

static void note_65_of_many_segments(void)
{
	add_note(1, "GNU", 4, wanted, 4, 4);
	for (unsigned i = 0; i < 64; i++)
		add_header(PT_NOTE, NOTES, made.notes, 4);
	add_wanted(4);
	add_header(PT_NOTE, NOTES, made.notes, 4);
}

static void within_64k(void)
{
	add_note(1, "GNU", 4, NULL, 65536 - 16 - 24, 4);
	add_wanted(4);
	add_header(PT_NOTE, NOTES, made.notes, 4);
}

static void beyond_64k(void)
{
	add_note(1, "GNU", 4, NULL, 65536 - 16 - 20, 4);
	add_wanted(4);
	add_header(PT_NOTE, NOTES, made.notes, 4);
}

static void header_1024(void)
{
	for (unsigned i = 0; i < 1023; i++)
		add_header(PT_LOAD, 0, 1, 1);
	plain();
}

static void header_1025(void)
{
	for (unsigned i = 0; i < 1024; i++)
		add_header(PT_LOAD, 0, 1, 1);
	plain();
}

static void no_headers(void)
{
	plain();
	((Elf64_Ehdr *)made.bytes)->e_phoff = UINT64_MAX - 3;
}

static void big_endian(void)
{
	plain();
	made.bytes[EI_DATA] = ELFDATA2MSB;
}

static void no_elf(void)
{
	plain();
	made.bytes[EI_MAG3] = 'f';
}

static void of_32_bits(void)
{
	const Elf32_Ehdr e = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS32, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN,
		.e_machine = EM_386,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(e),
		.e_phoff = sizeof(e),
		.e_phentsize = sizeof(Elf32_Phdr),
		.e_phnum = 2,
	};
	Elf32_Phdr h[2] = { { .p_type = PT_LOAD } };

	add_wanted(4);
	h[1] = (Elf32_Phdr){
		.p_type = PT_NOTE, .p_offset = NOTES, .p_filesz = (uint32_t)made.notes, .p_align = 4
	};
	memcpy(made.bytes, &e, sizeof(e));
	memcpy(made.bytes + sizeof(e), h, sizeof(h));
}

static int open_made(void)
{
	const int fd = memfd_create("elf", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, made.bytes, made.size), made.size);
	return fd;
}

static void it_is_found_within_bounds(void **state)
{
	static const struct {
		const char *name;
		void (*make)(void);
		bool found;
	} rows[] = {
		{ "plain", plain, true },
		{ "aligned to 8", aligned, true },
		{ "behind others", behind_others, true },
		{ "32 bits", of_32_bits, true },
		{ "64th note", note_64, true },
		{ "65th note", note_65, false },
		{ "65th note of many segments", note_65_of_many_segments, false },
		{ "within 64 KiB", within_64k, true },
		{ "beyond 64 KiB", beyond_64k, false },
		{ "1024th header", header_1024, true },
		{ "1025th header", header_1025, false },
		{ "in no segment of notes", no_note, false },
		{ "cut note", cut_note, false },
		{ "cut file", cut_file, false },
		{ "far away", far_away, false },
		{ "long note", long_note, false },
		{ "no headers", no_headers, false },
		{ "big-endian", big_endian, false },
		{ "no ELF file", no_elf, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct buildid read = { .size = 99 };
		int fd;

		begin();
		rows[i].make();
		fd = open_made();
		assert_int_equal(buildid_read(fd, &read), 0);
		assert_int_equal(lseek(fd, 0, SEEK_CUR), made.size);
		close(fd);
		if (read.size != (rows[i].found ? sizeof(wanted) : 0) ||
		    memcmp(read.bytes, wanted, read.size) != 0)
			fail_msg("%s: %u bytes of build-id", rows[i].name, read.size);
	}
}

static void it_outlives_what_cannot_be_read(void **state)
{
	struct buildid id = { .size = 99 };
	int fd;

	(void)state;
	assert_int_equal(buildid_read(-1, &id), -EBADF);
	fd = open("/", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(buildid_read(fd, &id), -EISDIR);
	close(fd);
	assert_int_equal(id.size, 99);
}

static long peak_kib(void)
{
	struct rusage usage;

	assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
	return usage.ru_maxrss;
}

/* Who copies each of them takes 4 GiB. */
static void overlapping_notes_take_no_memory(void **state)
{
	struct buildid id;
	long before, grown;
	int fd;

	(void)state;
	begin();
	for (uint64_t i = 0; i < 65534; i++)
		add_header(PT_NOTE, i * 4 + 1, 65536, 4);
	fd = open_made();
	before = peak_kib();
	assert_int_equal(buildid_read(fd, &id), 0);
	grown = peak_kib() - before;
	close(fd);
	if (grown > 1024)
		fail_msg("a file of 4 MiB took %ld KiB of memory", grown);
}

static void has_a_place(void **state)
{
	static const struct {
		struct buildid id;
		const char *place;
	} rows[] = {
		{ { .bytes = { 0xab, 0xcd, 0x01 }, .size = 3 }, ".build-id/ab/cd01" },
		{ { .bytes = { 0xab }, .size = 1 }, ".build-id/ab/" },
		{ { .size = 0 }, ".build-id//" },
	};
	struct buildid longest = { .size = BUILDID_MAX };
	char place[BUILDID_PLACE_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(buildid_place(&rows[i].id, place), rows[i].place);
	memset(longest.bytes, 0xee, sizeof(longest.bytes));
	assert_int_equal(strlen(buildid_place(&longest, place)), strlen(".build-id//") + 40);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_found_within_bounds),
		cmocka_unit_test(it_outlives_what_cannot_be_read),
		cmocka_unit_test(overlapping_notes_take_no_memory),
		cmocka_unit_test(has_a_place),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
