/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/export/xray_map.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "decoder/sink/output.h"
#include "util/fdr.h"
#include "util/outdir.h"

#define CODE_ADDRESS 0x400000 /* of the first function */
#define CODE_SIZE    16       /* of each */

enum section {
	SECTION_NULL,
	SECTION_CODE,
	SECTION_MAP,
	SECTION_SYMBOLS,
	SECTION_STRINGS,
	SECTION_NAMES,
	_SECTIONS,
};

/* The names of the sections; each section header has the offset of one. */
static const char names[] = "\0.text\0" FDR_MAP_SECTION "\0.symtab\0.strtab\0.shstrtab";

enum {
	NAME_CODE = 1,
	NAME_MAP = NAME_CODE + sizeof(".text"),
	NAME_SYMBOLS = NAME_MAP + sizeof(FDR_MAP_SECTION),
	NAME_STRINGS = NAME_SYMBOLS + sizeof(".symtab"),
	NAME_NAMES = NAME_STRINGS + sizeof(".strtab"),
};

static uint64_t address_of(size_t i)
{
	return CODE_ADDRESS + (uint64_t)i * CODE_SIZE;
}

/* --- names ------------------------------------------------------------------------------------ */

/*
 * llvm-xray puts names into JSON as they are, and divides those of a stack by semicolons.
 *
 * Return: what stands for the character.
 */
static char clean(char c)
{
	switch (c) {
	case '"':
		return '\'';
	case '\\':
		return '/';
	case ';':
		return ',';
	default:
		return (unsigned char)c < ' ' || c == '\x7f' ? '?' : c;
	}
}

static size_t name_size(const struct ptd_function *function)
{
	const size_t n = strlen(function->name);

	return (n < OUTPUT_NAME_MAX ? n : OUTPUT_NAME_MAX) + 1;
}

static void put_name(struct ptd_output *output, const struct ptd_function *function)
{
	const size_t size = name_size(function);
	char name[OUTPUT_NAME_MAX + 1];

	for (size_t i = 0; i + 1 < size; i++)
		name[i] = clean(function->name[i]);
	name[size - 1] = '\0';
	(void)ptd_output_write(output, name, size);
}

/* --- the parts of the file -------------------------------------------------------------------- */

static void fill_sections(Elf64_Shdr sections[static _SECTIONS],
			  const struct ptd_function *const *functions, size_t n)
{
	uint64_t at = sizeof(Elf64_Ehdr), n_strings = 1;

	for (size_t i = 0; i < n; i++)
		n_strings += name_size(functions[i]);
	sections[SECTION_CODE] = (Elf64_Shdr){ .sh_name = NAME_CODE,
					       .sh_type = SHT_NOBITS,
					       .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
					       .sh_addr = CODE_ADDRESS,
					       .sh_offset = at,
					       .sh_size = (uint64_t)n * CODE_SIZE,
					       .sh_addralign = CODE_SIZE };
	sections[SECTION_MAP] = (Elf64_Shdr){ .sh_name = NAME_MAP,
					      .sh_type = SHT_PROGBITS,
					      .sh_flags = SHF_ALLOC,
					      .sh_addr = address_of(n),
					      .sh_offset = at,
					      .sh_size = (uint64_t)n * FDR_MAP_ENTRY_SIZE,
					      .sh_addralign = 1 };
	at += sections[SECTION_MAP].sh_size;
	sections[SECTION_SYMBOLS] = (Elf64_Shdr){ .sh_name = NAME_SYMBOLS,
						  .sh_type = SHT_SYMTAB,
						  .sh_offset = at,
						  .sh_size = (n + 1) * sizeof(Elf64_Sym),
						  .sh_link = SECTION_STRINGS,
						  .sh_info = 1,
						  .sh_addralign = 8,
						  .sh_entsize = sizeof(Elf64_Sym) };
	at += sections[SECTION_SYMBOLS].sh_size;
	sections[SECTION_STRINGS] = (Elf64_Shdr){ .sh_name = NAME_STRINGS,
						  .sh_type = SHT_STRTAB,
						  .sh_offset = at,
						  .sh_size = n_strings,
						  .sh_addralign = 1 };
	at += n_strings;
	sections[SECTION_NAMES] = (Elf64_Shdr){ .sh_name = NAME_NAMES,
						.sh_type = SHT_STRTAB,
						.sh_offset = at,
						.sh_size = sizeof(names),
						.sh_addralign = 1 };
}

static void put_header(struct ptd_output *output, uint64_t sections_at)
{
	const Elf64_Ehdr header = {
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_shoff = sections_at,
		.e_ehsize = sizeof(header),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = _SECTIONS,
		.e_shstrndx = SECTION_NAMES,
	};

	(void)ptd_output_write(output, &header, sizeof(header));
}

/* The entries are of version 0, whose addresses are absolute. */
static void put_map(struct ptd_output *output, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t entry[FDR_MAP_ENTRY_SIZE / sizeof(uint64_t)] = { address_of(i),
									  address_of(i) };

		(void)ptd_output_write(output, entry, sizeof(entry));
	}
}

static void put_symbols(struct ptd_output *output, const struct ptd_function *const *functions,
			size_t n)
{
	Elf64_Sym symbol = {};
	uint32_t at = 1;

	(void)ptd_output_write(output, &symbol, sizeof(symbol));
	for (size_t i = 0; i < n; i++) {
		symbol = (Elf64_Sym){ .st_name = at,
				      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				      .st_shndx = SECTION_CODE,
				      .st_value = address_of(i),
				      .st_size = CODE_SIZE };
		(void)ptd_output_write(output, &symbol, sizeof(symbol));
		at += (uint32_t)name_size(functions[i]);
	}
}

static int put_file(struct ptd_output *output, const struct ptd_function *const *functions,
		    size_t n)
{
	Elf64_Shdr sections[_SECTIONS] = {};
	uint64_t end, padding;

	fill_sections(sections, functions, n);
	if (sections[SECTION_STRINGS].sh_size > UINT32_MAX)
		return -EOVERFLOW;
	/* Readers expect the headers of sections to be aligned. */
	end = sections[SECTION_NAMES].sh_offset + sizeof(names);
	padding = -end % sizeof(uint64_t);
	put_header(output, end + padding);
	put_map(output, n);
	put_symbols(output, functions, n);
	(void)ptd_output_write(output, "", 1);
	for (size_t i = 0; i < n; i++)
		put_name(output, functions[i]);
	(void)ptd_output_write(output, names, sizeof(names));
	(void)ptd_output_write(output, (const uint8_t[sizeof(uint64_t)]){}, padding);
	return ptd_output_write(output, sections, sizeof(sections));
}

int xray_map_write(int dir_fd, uint64_t *room, const struct ptd_function *const *functions,
		   size_t n)
{
	struct ptd_output output = output_none();
	struct ptd_sink_config config = { .room = room };
	int r;

	config.fd = outdir_open(dir_fd, XRAY_MAP_NAME, true);
	if (config.fd < 0)
		return config.fd;
	r = output_init(&output, &config);
	if (r < 0) {
		(void)fd_close(config.fd);
		return r;
	}
	r = put_file(&output, functions, n);
	if (r == 0)
		r = output_finish(&output);
	output_deinit(&output);
	return r;
}
