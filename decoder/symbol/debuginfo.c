/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/symbol/debuginfo.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "decoder/symbol/debugfile.h"
#include "decoder/symbol/demangle.h"
#include "decoder/symbol/elfsym.h"
#include "decoder/symbol/symtab.h"
#include "decoder/util/filebytes.h"
#include "util/arena.h"
#include "util/buildid.h"
#include "util/map.h"
#include "util/vec.h"

/* Of the DWARF sections of a file, decompressed; and of the line table of one compiled file. */
#define SECTIONS_MAX (UINT64_C(2) << 30)
#define LINES_MAX    (UINT64_C(4) << 20)

#define DEPTH_MAX  256u       /* of nested functions, blocks, namespaces and types: 8 bits */
#define RANGES_MAX (1u << 16) /* of one function */

/* Of all units or of all functions of a unit, counting those that are empty. */
#define RANGES_ALL_MAX (1u << 23)

/* How often, on average, libdw may pass over a byte of a unit: at most once for each level. */
#define PASSES_MAX 32u

#define ROWS_MAX (1u << 24) /* of the line tables of all units */

#define NO_FUNCTION UINT32_MAX

#define AT_GNU_DISCRIMINATOR 0x2136 /* of the place of a call; dwarf.h lacks it */

/* Which of several owners the code at an address belongs to. */
struct coverage {
	struct symtab code;
	VEC(uint32_t) owners; /* of the symbols, in the order in which they were added */
	uint32_t n_ranges;    /* that were read */
};

/* A function, or a place where one was inlined. */
struct function {
	Dwarf_Off die;
	uint32_t parent;  /* index of the function that it was inlined into; NO_FUNCTION: none */
	const char *name; /* NULL: it was not asked for yet */
	const char *linkage_name;
	uint32_t line;                     /* where it begins */
	const struct ptd_inlined *inlined; /* NULL: it was not asked for yet */
};

/* What was compiled from one file. */
struct unit {
	Dwarf_Off die;
	uint64_t size; /* in bytes; it has no more DIEs */
	bool has_functions;
	VEC(struct function) functions;
	struct coverage coverage; /* of the functions */
};

/* A file with DWARF. */
struct dwarf_file {
	struct elfsym elf;
	Dwarf *dwarf;
	const Elf_Data *strings[4]; /* of the sections with strings; NULL: there is none */
};

struct debuginfo {
	struct dwarf_file main, alternate;
	struct filebytes *alternate_file; /* owned; NULL: there is none */
	bool is_broken;                   /* libdw ran out of memory */
	VEC(struct unit) units;
	struct coverage coverage; /* of the units */
	struct arena names;
	struct map paths; /* a file's name in libdw's memory → the path that is shown */

	/* Of all line tables, once they were asked for. */
	bool has_rows;
	VEC(struct ptd_line_row) rows;
	VEC(struct ptd_line_function) row_functions;
	VEC(uint32_t) numbers; /* while a table is read: index of a unit's function → of its own */
	uint64_t n_lines;      /* of tables that were gone through: units may claim the same one */
};

/* --- want of memory --------------------------------------------------------------------------- */

static _Thread_local jmp_buf *escape;

/* libdw does not expect this to return. */
static void __attribute__((__noreturn__)) run_out_of_memory(void)
{
	longjmp(*escape, 1);
}

/*
 * Where memory ends while its table of abbreviations grows, libdw 0.188 asserts instead of calling
 * the handler. Such a table is small, so libdw is only asked while there is more than it needs.
 */
#define ROOM ((size_t)1 << 20)

static bool has_room(void)
{
	void *volatile room = malloc(ROOM);

	free(room);
	return room != NULL;
}

/* What is asked of libdw; @question has what was asked for and the answer. */
typedef int (*ask_fn)(struct debuginfo *debuginfo, void *question);

/* Ask libdw. Return: what @ask returns; 0 if libdw is broken; or -ENOMEM if it breaks. */
static int ask_guarded(struct debuginfo *debuginfo, ask_fn ask, void *question)
{
	jmp_buf here;
	int r;

	if (debuginfo->is_broken)
		return 0;
	if (!has_room() || setjmp(here) != 0) {
		debuginfo->is_broken = true;
		return -ENOMEM;
	}
	escape = &here;
	r = ask(debuginfo, question);
	escape = NULL;
	return r;
}

/* --- opening ---------------------------------------------------------------------------------- */

static void close_dwarf(struct dwarf_file *file)
{
	if (file->dwarf)
		(void)dwarf_end(file->dwarf);
	elfsym_deinit(&file->elf);
	file->dwarf = NULL;
}

/* Return: how many bytes @section has once it is decompressed; UINT64_MAX if it cannot be read. */
static uint64_t read_section(const struct elfsym *elf, struct elfsym_section *section)
{
	GElf_Chdr compressed;

	if (section->size == 0)
		return 0;
	if (!elfsym_bytes(elf, section))
		return UINT64_MAX;
	if (!(section->header.sh_flags & SHF_COMPRESSED))
		return section->size;
	return gelf_getchdr(section->scn, &compressed) ? compressed.ch_size : UINT64_MAX;
}

/*
 * Return: whether libdw and elfsym_find() would take different sections for the line tables. libdw
 * takes the first one of the name that has bytes, whatever its type is.
 */
static bool is_other_line_table(const struct elfsym *elf, const struct elfsym_section *section)
{
	return section->header.sh_type != SHT_NOBITS &&
	       (strcmp(section->name, ".debug_line") == 0 ||
		strcmp(section->name, ".debug_line.dwo") == 0) &&
	       section != elfsym_find(elf, SHT_PROGBITS, ".debug_line");
}

/* Read the sections that libdw will look at. Return: whether it may. */
static bool read_sections(const struct elfsym *elf)
{
	uint64_t left = SECTIONS_MAX;

	for (size_t i = 0; i < elf->sections.n; i++) {
		struct elfsym_section *s = &elf->sections.items[i];
		uint64_t size = 0;

		/* An older way of compressing, which does not say in the header how large it is. */
		if (strncmp(s->name, ".zdebug_", 8) == 0)
			return false;
		if (is_other_line_table(elf, s))
			return false;
		/* libelf would decompress it to find the name of a section. */
		if (s->header.sh_type == SHT_STRTAB && (s->header.sh_flags & SHF_COMPRESSED))
			return false;
		if (s->header.sh_type != SHT_NOBITS && (strncmp(s->name, ".debug_", 7) == 0 ||
							strcmp(s->name, ".gnu_debugaltlink") == 0))
			size = read_section(elf, s);
		if (size > left)
			return false;
		left -= size;
	}
	return true;
}

/* Return: the bytes of the section @name, decompressed once libdw has seen it; NULL: none. */
static const Elf_Data *find_data(const struct elfsym *elf, const char *name)
{
	struct elfsym_section *section = elfsym_find(elf, SHT_PROGBITS, name);
	const Elf_Data *data = section ? elf_getdata(section->scn, NULL) : NULL;

	return data && data->d_buf ? data : NULL;
}

/*
 * Open the DWARF of @file. The addresses in a file that is not linked are not final, but an
 * alternate file, which has the type of such a file, has no addresses.
 *
 * Return: 0, and ret_file->dwarf is NULL if there is none; or -ENOMEM.
 */
static int open_dwarf(struct filebytes *file, bool is_alternate, struct dwarf_file *ret_file)
{
	static const char *const sections[] = { ".debug_info", ".debug_types", ".debug_str",
						".debug_line_str" };
	struct dwarf_file opened = {};
	GElf_Ehdr header;
	int r;

	r = elfsym_init(&opened.elf, file);
	if (r < 0)
		return r;
	if (elfsym_find(&opened.elf, SHT_PROGBITS, ".debug_info") &&
	    gelf_getehdr(opened.elf.elf, &header) && (is_alternate || header.e_type != ET_REL) &&
	    read_sections(&opened.elf))
		opened.dwarf = dwarf_begin_elf(opened.elf.elf, DWARF_C_READ, NULL);
	if (!opened.dwarf) {
		close_dwarf(&opened);
		return 0;
	}
	(void)dwarf_new_oom_handler(opened.dwarf, run_out_of_memory);
	for (size_t i = 0; i < ARRAY_LEN(sections); i++)
		opened.strings[i] = find_data(&opened.elf, sections[i]);
	*ret_file = opened;
	return 0;
}

/*
 * Open the alternate file to which the DWARF refers. Without it the DWARF is not used, because
 * libdw would open the file by the path that the DWARF states. For the same reason an alternate
 * file that refers to another one is not used.
 */
static int open_alternate(struct debuginfo *debuginfo, const struct debugfile_places *places)
{
	struct buildid id = {};
	const char *name;
	const void *bytes;
	ssize_t size;
	int r;

	size = dwelf_dwarf_gnu_debugaltlink(debuginfo->main.dwarf, &name, &bytes);
	if (size == 0)
		return 0;
	if (size > 0 && (size_t)size <= sizeof(id.bytes)) {
		id.size = (uint8_t)size;
		memcpy(id.bytes, bytes, id.size);
		if (places &&
		    debugfile_find_alternate(places, name, &id, &debuginfo->alternate_file)) {
			r = open_dwarf(debuginfo->alternate_file, true, &debuginfo->alternate);
			if (r < 0)
				return r;
		}
	}
	if (debuginfo->alternate.dwarf &&
	    dwelf_dwarf_gnu_debugaltlink(debuginfo->alternate.dwarf, &name, &bytes) != 0)
		close_dwarf(&debuginfo->alternate);
	if (debuginfo->alternate.dwarf)
		dwarf_setalt(debuginfo->main.dwarf, debuginfo->alternate.dwarf);
	else
		close_dwarf(&debuginfo->main);
	return 0;
}

/* --- what covers which code ------------------------------------------------------------------- */

/*
 * State that the code of @die belongs to @owner. Of two owners of the same code, the one with the
 * greater @depth counts.
 *
 * Return: 0; -ENOMEM; -E2BIG.
 */
static int add_code(struct coverage *coverage, Dwarf_Die *die, size_t depth, uint32_t owner)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	for (unsigned n = 0; n < RANGES_MAX; n++) {
		int r;

		at = dwarf_ranges(die, at, &base, &start, &end);
		if (at <= 0)
			break;
		if (coverage->n_ranges++ == RANGES_ALL_MAX)
			return -E2BIG;
		if (start >= end)
			continue;
		r = symtab_add(&coverage->code,
			       &(struct symtab_symbol){ .address = start,
							.size = end - start,
							.limit = UINT64_MAX,
							.rank = (uint8_t)(DEPTH_MAX - 1 - depth) });
		if (r == 0)
			r = vec_push(&coverage->owners, owner);
		if (r < 0)
			return r;
	}
	return 0;
}

/* A program has fewer than E2BIG stands for: what has been added so far must do. */
static int seal_coverage(struct coverage *coverage, int r)
{
	return r == 0 || r == -E2BIG ? symtab_seal(&coverage->code, NULL, NULL) : r;
}

/* @ret_end: up to where the answer is the same. */
static bool find_owner(const struct coverage *coverage, uint64_t address, uint32_t *ret_owner,
		       uint64_t *ret_end)
{
	const uint32_t i = symtab_find(&coverage->code, address, ret_end);

	if (i == SYMTAB_NONE)
		return false;
	*ret_owner = coverage->owners.items[coverage->code.symbols.items[i].order - 1];
	return true;
}

static void deinit_coverage(struct coverage *coverage)
{
	symtab_deinit(&coverage->code);
	vec_deinit(&coverage->owners);
}

/* --- units ------------------------------------------------------------------------------------ */

static int read_units(struct debuginfo *debuginfo, void *question)
{
	Dwarf_Off at = 0, next;
	size_t head_size;
	int r = 0;

	(void)question;

	while (r == 0 &&
	       dwarf_nextcu(debuginfo->main.dwarf, at, &next, &head_size, NULL, NULL, NULL) == 0) {
		struct unit unit = { .die = at + head_size, .size = next - at };
		Dwarf_Die die;

		at = next;
		if (!dwarf_offdie(debuginfo->main.dwarf, unit.die, &die))
			continue;
		/* The unit goes first: of what does not fit, the code that was added remains. */
		r = vec_push(&debuginfo->units, unit);
		if (r == 0)
			r = add_code(&debuginfo->coverage, &die, 0,
				     (uint32_t)debuginfo->units.n - 1);
	}
	return seal_coverage(&debuginfo->coverage, r);
}

/* --- strings ---------------------------------------------------------------------------------- */

/* Return: whether the string that begins at @string ends in a section of @file. */
static bool has_string(const struct dwarf_file *file, const char *string)
{
	for (size_t i = 0; i < ARRAY_LEN(file->strings); i++) {
		const Elf_Data *data = file->strings[i];
		const uintptr_t offset = data ? (uintptr_t)string - (uintptr_t)data->d_buf : 0;

		if (data && offset < data->d_size)
			return memchr(string, '\0', data->d_size - offset);
	}
	return false;
}

/* libdw does not look for the end of a string that stands in a DIE. */
static const char *string_of(const struct debuginfo *debuginfo, Dwarf_Die *die, unsigned attribute)
{
	Dwarf_Attribute found;
	const char *string = dwarf_formstring(dwarf_attr_integrate(die, attribute, &found));

	return string && (has_string(&debuginfo->main, string) ||
			  has_string(&debuginfo->alternate, string))
		   ? string
		   : NULL;
}

/* --- functions -------------------------------------------------------------------------------- */

/* Can there be functions with code in it? */
static bool has_code_inside(int tag)
{
	switch (tag) {
	case DW_TAG_subprogram:
	case DW_TAG_inlined_subroutine:
	case DW_TAG_lexical_block:
	case DW_TAG_try_block:
	case DW_TAG_catch_block:
	case DW_TAG_namespace:
	case DW_TAG_module:
	case DW_TAG_class_type:
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_enumeration_type:
		return true;
	default:
		return false;
	}
}

/* Add @die if it is a function. *@function is the one around it, and then itself. */
static int add_function(struct unit *unit, Dwarf_Die *die, size_t depth, uint32_t *function)
{
	const int tag = dwarf_tag(die);
	const uint32_t parent = tag == DW_TAG_inlined_subroutine ? *function : NO_FUNCTION;
	int r;

	if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
		return 0;
	*function = (uint32_t)unit->functions.n;
	r = vec_push(&unit->functions, { .die = dwarf_dieoffset(die), .parent = parent });
	return r < 0 ? r : add_code(&unit->coverage, die, depth, *function);
}

/* A DIE and the function around it, on the way from the unit down to where the walk is. */
struct step {
	Dwarf_Die die;
	uint32_t function;
};

/*
 * Go from the last DIE of the way to its next sibling; if it has none, to that of the DIE around
 * it, and so on. libdw walks through all that is inside a DIE to find its sibling: *@left is how
 * many more bytes it may pass over.
 *
 * Return: the new length of the way; 0 at the end of the unit, or of *@left.
 */
static size_t go_on(const struct unit *unit, struct step *way, size_t n, uint64_t *left)
{
	for (; n > 0; n--) {
		Dwarf_Die *die = &way[n - 1].die;
		Dwarf_Die next = {};
		const bool has_sibling = dwarf_siblingof(die, &next) == 0;
		const uint64_t passed =
		    next.addr ? (uintptr_t)next.addr - (uintptr_t)die->addr : unit->size;

		if (passed > *left)
			return 0;
		*left -= passed;
		if (has_sibling) {
			*die = next;
			return n;
		}
	}
	return 0;
}

static int walk_functions(struct unit *unit, Dwarf_Die *unit_die)
{
	struct step way[DEPTH_MAX];
	uint64_t n_dies = 0, left = unit->size * PASSES_MAX;
	size_t n = 1;
	int r = 0;

	if (dwarf_child(unit_die, &way[0].die) != 0)
		return 0;
	way[0].function = NO_FUNCTION;
	/* DIEs may claim siblings that lie inside themselves, and be met again and again. */
	while (n > 0 && r == 0 && n_dies++ < unit->size) {
		struct step *step = &way[n - 1];
		uint32_t function = step->function;

		r = add_function(unit, &step->die, n - 1, &function);
		if (n < DEPTH_MAX && has_code_inside(dwarf_tag(&step->die)) &&
		    dwarf_child(&step->die, &way[n].die) == 0) {
			way[n++].function = function;
			continue;
		}
		n = go_on(unit, way, n, &left);
	}
	return r;
}

static int read_functions(struct unit *unit, Dwarf_Die *unit_die)
{
	int r;

	if (unit->has_functions)
		return 0;
	/* An earlier call may have failed half-way. */
	deinit_coverage(&unit->coverage);
	unit->coverage = (struct coverage){};
	unit->functions.n = 0;
	r = seal_coverage(&unit->coverage, walk_functions(unit, unit_die));
	unit->has_functions = r == 0;
	return r;
}

/* Return: the value of a small number of @die, or of what it is an instance of; 0: it has none. */
static uint32_t attribute_of(Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attribute;
	Dwarf_Word value;

	return dwarf_formudata(dwarf_attr_integrate(die, name, &attribute), &value) == 0 &&
		       value <= UINT32_MAX
		   ? (uint32_t)value
		   : 0;
}

/* Find the names of the function @die, and its line. Return: 0 or -ENOMEM. */
static int name_function(struct debuginfo *debuginfo, struct function *function, Dwarf_Die *die)
{
	const char *mangled, *name;
	char readable[DEMANGLE_MAX];
	size_t size;

	if (function->name)
		return 0;
	mangled = string_of(debuginfo, die, DW_AT_linkage_name)
		      ?: string_of(debuginfo, die, DW_AT_MIPS_linkage_name);
	name = string_of(debuginfo, die, DW_AT_name) ?: mangled ?: "";
	size = mangled ? demangle(mangled, strlen(mangled), readable) : 0;
	if (size > 0) {
		readable[size] = '\0';
		name = readable;
	}
	function->line = attribute_of(die, DW_AT_decl_line);
	function->linkage_name = arena_strdup(&debuginfo->names, mangled ?: name);
	function->name = arena_strdup(&debuginfo->names, name);
	return function->name && function->linkage_name ? 0 : -ENOMEM;
}

/* --- lines ------------------------------------------------------------------------------------ */

/* Return: whether the line table of the unit is of a size that libdw may read. */
static bool has_lines(struct debuginfo *debuginfo, Dwarf_Die *unit_die)
{
	const Elf_Data *data = find_data(&debuginfo->main.elf, ".debug_line");
	Dwarf_Attribute attribute;
	struct cursor c, table;
	uint64_t length;
	uint32_t word;
	Dwarf_Word at;

	/* libdw reads the directory of compilation without asking for its end. */
	if (dwarf_hasattr(unit_die, DW_AT_comp_dir) &&
	    !string_of(debuginfo, unit_die, DW_AT_comp_dir))
		return false;
	if (!data || dwarf_formudata(dwarf_attr(unit_die, DW_AT_stmt_list, &attribute), &at) != 0)
		return false;
	c = cursor_from(data->d_buf, data->d_size);
	if (cursor_skip(&c, at) < 0 || cursor_get(&c, sizeof(word), &word) < 0)
		return false;
	length = word;
	if (word == UINT32_MAX && cursor_get(&c, sizeof(length), &length) < 0)
		return false;
	return length <= LINES_MAX && cursor_get_sub(&c, (size_t)length, &table) == 0;
}

/* Put the directory of compilation before @name unless it is absolute. Return: 0 or -ENOMEM. */
static int find_path(struct debuginfo *debuginfo, Dwarf_Die *unit_die, const char *name,
		     const char **ret_path)
{
	const char *known = map_pointer(&debuginfo->paths, (uintptr_t)name);
	const char *dir =
	    name && name[0] != '/' ? string_of(debuginfo, unit_die, DW_AT_comp_dir) : NULL;
	char *path;

	if (!dir || known) {
		*ret_path = known ?: name;
		return 0;
	}
	path = arena_alloc(&debuginfo->names, strlen(dir) + strlen(name) + sizeof("/"));
	if (!path || map_put(&debuginfo->paths, (uintptr_t)name, (uintptr_t)path) < 0)
		return -ENOMEM;
	(void)stpcpy(stpcpy(stpcpy(path, dir), "/"), name);
	*ret_path = path;
	return 0;
}

static uint32_t number_of(int number)
{
	return number > 0 ? (uint32_t)number : 0;
}

/* Return: 1 if the line of @address is known, else 0; or -ENOMEM. */
static int find_line(struct debuginfo *debuginfo, Dwarf_Die *unit_die, uint64_t address,
		     struct ptd_position *ret_position)
{
	Dwarf_Line *line = dwarf_getsrc_die(unit_die, address);
	unsigned discriminator = 0;
	int number = 0, column = 0, r;

	if (!line)
		return 0;
	(void)dwarf_lineno(line, &number);
	(void)dwarf_linecol(line, &column);
	(void)dwarf_linediscriminator(line, &discriminator);
	*ret_position = (struct ptd_position){ .line = number_of(number),
					       .column = number_of(column),
					       .discriminator = discriminator };
	r = find_path(debuginfo, unit_die, dwarf_linesrc(line, NULL, NULL), &ret_position->file);
	return r < 0 ? r : !!ret_position->file;
}

/* Find where the inlined function @die was called. Return: 0 or -ENOMEM. */
static int find_call(struct debuginfo *debuginfo, Dwarf_Die *unit_die, Dwarf_Die *die,
		     struct ptd_position *ret_position)
{
	const uint32_t file = attribute_of(die, DW_AT_call_file);
	Dwarf_Files *files;
	size_t n;

	*ret_position =
	    (struct ptd_position){ .line = attribute_of(die, DW_AT_call_line),
				   .column = attribute_of(die, DW_AT_call_column),
				   .discriminator = attribute_of(die, AT_GNU_DISCRIMINATOR) };
	if (dwarf_getsrcfiles(unit_die, &files, &n) != 0 || file >= n)
		return 0;
	return find_path(debuginfo, unit_die, dwarf_filesrc(files, file, NULL, NULL),
			 &ret_position->file);
}

/* --- the whole -------------------------------------------------------------------------------- */

/* Name the functions from the innermost, @i, outwards, and add where each was called. */
static int find_calls(struct debuginfo *debuginfo, struct unit *unit, Dwarf_Die *unit_die,
		      uint32_t i, struct ptd_position *positions)
{
	int n = 1;

	while (i != NO_FUNCTION) {
		struct function *function = &unit->functions.items[i];
		Dwarf_Die die;
		int r;

		if (!dwarf_offdie(debuginfo->main.dwarf, function->die, &die))
			break;
		r = name_function(debuginfo, function, &die);
		if (r < 0)
			return r;
		positions[n - 1].function = function->name;
		positions[n - 1].linkage_name = function->linkage_name;
		positions[n - 1].function_line = function->line;
		i = function->parent;
		if (i != NO_FUNCTION && n == PTD_POSITIONS_MAX)
			break;
		if (i != NO_FUNCTION)
			r = find_call(debuginfo, unit_die, &die, &positions[n++]);
		if (r < 0)
			return r;
	}
	return n;
}

/* Return: the unit that the code at @address is of, its DIE, and up to where that is so; or
 * NULL. */
static struct unit *unit_at(struct debuginfo *debuginfo, uint64_t address, Dwarf_Die *ret_die,
			    uint64_t *ret_end)
{
	struct unit *unit;
	uint32_t u;

	if (!find_owner(&debuginfo->coverage, address, &u, ret_end))
		return NULL;
	unit = &debuginfo->units.items[u];
	return dwarf_offdie(debuginfo->main.dwarf, unit->die, ret_die) ? unit : NULL;
}

struct positions_question {
	uint64_t address;
	struct ptd_position *positions;
};

static int find_positions(struct debuginfo *debuginfo, void *question)
{
	const struct positions_question *asked = question;
	uint32_t function = NO_FUNCTION;
	uint64_t end;
	Dwarf_Die die;
	struct unit *unit = unit_at(debuginfo, asked->address, &die, &end);
	int r;

	if (!unit || !has_lines(debuginfo, &die))
		return 0;
	r = find_line(debuginfo, &die, asked->address, &asked->positions[0]);
	if (r <= 0)
		return r;
	r = read_functions(unit, &die);
	if (r < 0)
		return r;
	(void)find_owner(&unit->coverage, asked->address, &function, &end);
	return find_calls(debuginfo, unit, &die, function, asked->positions);
}

int debuginfo_find(struct debuginfo *debuginfo, uint64_t address,
		   struct ptd_position ret_positions[static PTD_POSITIONS_MAX])
{
	return ask_guarded(debuginfo, find_positions,
			   &(struct positions_question){ address, ret_positions });
}

/* --- inlined functions ------------------------------------------------------------------------ */

/*
 * Find where the inlined function @die is entered, if that is noted. In the absence of
 * DW_AT_entry_pc, DWARF takes the first of a list of ranges for the entry; with clang, whose ranges
 * are in the order of their addresses, it often is another one.
 */
static void find_inlined_entry(Dwarf_Die *die, struct ptd_inlined *inlined)
{
	Dwarf_Attribute attribute;
	Dwarf_Addr base, start, end;
	Dwarf_Word offset;

	if (!dwarf_attr(die, DW_AT_entry_pc, &attribute))
		return;
	inlined->has_entry = dwarf_formaddr(&attribute, &inlined->entry) == 0;
	/* DWARF 5: counted from the lowest address, or from the first range. */
	if (!inlined->has_entry && dwarf_formudata(&attribute, &offset) == 0 &&
	    dwarf_ranges(die, 0, &base, &start, &end) > 0) {
		inlined->entry = start + offset;
		inlined->has_entry = true;
	}
}

/* Make what is shown of the inlined function @i, in the one that @outer is of. */
static int show_inlined(struct debuginfo *debuginfo, struct unit *unit, uint32_t i,
			const struct ptd_inlined *outer)
{
	struct function *function = &unit->functions.items[i];
	struct ptd_inlined *shown;
	Dwarf_Die die;
	int r;

	if (!dwarf_offdie(debuginfo->main.dwarf, function->die, &die))
		return -ENOENT;
	r = name_function(debuginfo, function, &die);
	shown = r == 0 ? arena_alloc(&debuginfo->names, sizeof(*shown)) : NULL;
	if (!shown)
		return -ENOMEM;
	*shown = (struct ptd_inlined){ .outer = outer,
				       .name = function->name,
				       .linkage_name = function->linkage_name,
				       .depth = outer ? outer->depth + 1 : 1 };
	find_inlined_entry(&die, shown);
	function->inlined = shown;
	return 0;
}

/* Return: 1 and @ret_inlined, or 0: function @i is none that was inlined; or -ENOMEM. */
static int find_shown(struct debuginfo *debuginfo, struct unit *unit, uint32_t i,
		      const struct ptd_inlined **ret_inlined)
{
	uint32_t way[DEPTH_MAX];
	const struct function *functions = unit->functions.items;
	size_t n = 0;
	int r = 0;

	*ret_inlined = NULL;
	for (; functions[i].parent != NO_FUNCTION && !functions[i].inlined; i = functions[i].parent)
		way[n++] = i;
	*ret_inlined = functions[i].inlined;
	while (r == 0 && n-- > 0) {
		r = show_inlined(debuginfo, unit, way[n], *ret_inlined);
		if (r == 0)
			*ret_inlined = functions[way[n]].inlined;
	}
	return r == -ENOENT ? 0 : r;
}

struct inlined_question {
	uint64_t address, end;
	const struct ptd_inlined *inlined;
};

static int find_inlined(struct debuginfo *debuginfo, void *question)
{
	struct inlined_question *asked = question;
	uint32_t function = NO_FUNCTION;
	uint64_t end = UINT64_MAX;
	Dwarf_Die die;
	struct unit *unit = unit_at(debuginfo, asked->address, &die, &asked->end);
	int r;

	if (!unit)
		return 0;
	r = read_functions(unit, &die);
	if (r == 0)
		r = find_owner(&unit->coverage, asked->address, &function, &end);
	if (end < asked->end)
		asked->end = end;
	if (r <= 0)
		return r;
	r = find_shown(debuginfo, unit, function, &asked->inlined);
	return r < 0 ? r : 1;
}

int debuginfo_inlined(struct debuginfo *debuginfo, uint64_t address,
		      const struct ptd_inlined **ret_inlined, uint64_t *ret_end)
{
	struct inlined_question question = { .address = address, .end = UINT64_MAX };
	const int r = ask_guarded(debuginfo, find_inlined, &question);

	*ret_inlined = question.inlined;
	*ret_end = question.end;
	return r;
}

/* --- line tables ------------------------------------------------------------------------------ */

/* Return: 0 and where the function is entered; or -ENOENT. */
static int find_entry(Dwarf_Die *die, uint64_t *ret_entry)
{
	Dwarf_Addr base, start, end;

	/* Without DW_AT_entry_pc, the first range that a compiler lists is where it is called. */
	if (dwarf_entrypc(die, ret_entry) == 0)
		return 0;
	if (dwarf_ranges(die, 0, &base, &start, &end) <= 0)
		return -ENOENT;
	*ret_entry = start;
	return 0;
}

/* Did the compiler make it without a text? gcc says so of a lambda, too, which has one. */
static bool is_artificial(const struct debuginfo *debuginfo, Dwarf_Die *die)
{
	Dwarf_Attribute found;
	const char *name = string_of(debuginfo, die, DW_AT_name);

	return dwarf_attr_integrate(die, DW_AT_artificial, &found) &&
	       !(name && strcmp(name, "operator()") == 0);
}

/*
 * Add the functions of the unit that were compiled on their own, and note, for each function of the
 * unit, the index of the one that it is or was inlined into.
 */
static int add_functions(struct debuginfo *debuginfo, struct unit *unit, Dwarf_Die *unit_die)
{
	debuginfo->numbers.n = 0;
	for (size_t i = 0; i < unit->functions.n; i++) {
		struct function *function = &unit->functions.items[i];
		struct ptd_line_function shown = {};
		Dwarf_Attribute found;
		uint32_t number = NO_FUNCTION;
		Dwarf_Die die;
		int r;

		/* What is around it stands before it. */
		if (function->parent != NO_FUNCTION)
			number = debuginfo->numbers.items[function->parent];
		r = vec_push(&debuginfo->numbers, number);
		if (r < 0)
			return r;
		if (function->parent != NO_FUNCTION ||
		    !dwarf_offdie(debuginfo->main.dwarf, function->die, &die) ||
		    find_entry(&die, &shown.entry) < 0)
			continue;
		r = name_function(debuginfo, function, &die);
		if (r == 0)
			r = find_path(debuginfo, unit_die, dwarf_decl_file(&die), &shown.file);
		if (r < 0)
			return r;
		shown.name = function->name;
		shown.linkage_name = function->linkage_name;
		shown.line = function->line;
		shown.has_value = dwarf_attr_integrate(&die, DW_AT_type, &found) != NULL;
		shown.is_artificial = is_artificial(debuginfo, &die);
		debuginfo->numbers.items[i] = (uint32_t)debuginfo->row_functions.n;
		r = vec_push(&debuginfo->row_functions, shown);
		if (r < 0)
			return r;
	}
	return 0;
}

static int add_row(struct debuginfo *debuginfo, struct unit *unit, Dwarf_Die *unit_die,
		   Dwarf_Line *line, uint64_t end)
{
	struct ptd_line_row row = { .end = end, .function = NO_FUNCTION };
	uint64_t unit_end, function_end;
	int number = 0, r;
	uint32_t owner;

	/* libdw sorts the end of a sequence before a row without code at the same address, which
	 * then seems to reach up to the next sequence. */
	if (dwarf_lineaddr(line, &row.address) != 0 || row.address >= end ||
	    dwarf_lineno(line, &number) != 0 || number <= 0 ||
	    !find_owner(&debuginfo->coverage, row.address, &owner, &unit_end) ||
	    &debuginfo->units.items[owner] != unit)
		return 0;
	if (unit_end < end)
		row.end = unit_end;
	row.line = (uint32_t)number;
	r = find_path(debuginfo, unit_die, dwarf_linesrc(line, NULL, NULL), &row.file);
	if (r < 0 || !row.file)
		return r;
	if (find_owner(&unit->coverage, row.address, &owner, &function_end)) {
		row.function = debuginfo->numbers.items[owner];
		row.is_inlined = unit->functions.items[owner].parent != NO_FUNCTION;
	}
	return vec_push(&debuginfo->rows, row);
}

/* Add the rows of the unit's line table, which stand by address. */
static int add_rows(struct debuginfo *debuginfo, struct unit *unit, Dwarf_Die *unit_die)
{
	Dwarf_Lines *lines;
	size_t n;
	int r;

	if (dwarf_getsrclines(unit_die, &lines, &n) != 0)
		return 0;
	debuginfo->n_lines += n;
	if (debuginfo->n_lines > ROWS_MAX)
		return -E2BIG;
	r = read_functions(unit, unit_die);
	if (r < 0)
		return r;
	r = add_functions(debuginfo, unit, unit_die);
	for (size_t i = 0; r == 0 && i + 1 < n; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		Dwarf_Addr end;
		bool is_over = true;

		if (dwarf_lineendsequence(line, &is_over) == 0 && !is_over &&
		    dwarf_lineaddr(dwarf_onesrcline(lines, i + 1), &end) == 0)
			r = add_row(debuginfo, unit, unit_die, line, end);
	}
	return r;
}

static int compare_rows(const void *pa, const void *pb)
{
	const struct ptd_line_row *a = pa, *b = pb;

	return COMPARE(a->address, b->address) ?: COMPARE(a->end, b->end);
}

static int read_rows(struct debuginfo *debuginfo, void *question)
{
	int r = 0;

	(void)question;

	debuginfo->rows.n = debuginfo->row_functions.n = 0;
	debuginfo->n_lines = 0;
	for (size_t i = 0; r == 0 && i < debuginfo->units.n; i++) {
		struct unit *unit = &debuginfo->units.items[i];
		Dwarf_Die die;

		/* Partial units have tables of files, and no code. */
		if (dwarf_offdie(debuginfo->main.dwarf, unit->die, &die) &&
		    dwarf_tag(&die) == DW_TAG_compile_unit && has_lines(debuginfo, &die))
			r = add_rows(debuginfo, unit, &die);
	}
	if (r < 0 && r != -E2BIG)
		return r;
	vec_sort(&debuginfo->rows, compare_rows);
	debuginfo->has_rows = true;
	return 0;
}

int debuginfo_lines(struct debuginfo *debuginfo, struct ptd_line_table *ret_table)
{
	const int r = debuginfo->has_rows ? 0 : ask_guarded(debuginfo, read_rows, NULL);

	if (r == 0 && debuginfo->has_rows && !debuginfo->is_broken)
		*ret_table = (struct ptd_line_table){ .rows = debuginfo->rows.items,
						      .n_rows = debuginfo->rows.n,
						      .functions = debuginfo->row_functions.items,
						      .n_functions = debuginfo->row_functions.n };
	return r;
}

int debuginfo_new(struct filebytes *file, const struct debugfile_places *places,
		  struct debuginfo **ret_debuginfo)
{
	_cleanup_(debuginfo_freep) struct debuginfo *debuginfo = calloc(1, sizeof(*debuginfo));
	int r;

	if (!debuginfo)
		return -ENOMEM;
	r = open_dwarf(file, false, &debuginfo->main);
	if (r == 0 && debuginfo->main.dwarf)
		r = open_alternate(debuginfo, places);
	if (r == 0 && debuginfo->main.dwarf)
		r = ask_guarded(debuginfo, read_units, NULL);
	if (r < 0)
		return r;
	*ret_debuginfo = debuginfo->main.dwarf ? TAKE(debuginfo) : NULL;
	return 0;
}

struct debuginfo *debuginfo_free(struct debuginfo *debuginfo)
{
	if (!debuginfo)
		return NULL;
	vec_deinit_each(&debuginfo->units, unit, {
		deinit_coverage(&unit->coverage);
		vec_deinit(&unit->functions);
	});
	deinit_coverage(&debuginfo->coverage);
	/*
	 * libdw was left in the middle of an allocation: its lists may be half made, and
	 * dwarf_end() would follow them. What it has allocated leaks.
	 */
	if (debuginfo->is_broken)
		debuginfo->main.dwarf = debuginfo->alternate.dwarf = NULL;
	close_dwarf(&debuginfo->main);
	close_dwarf(&debuginfo->alternate);
	(void)filebytes_unref(debuginfo->alternate_file);
	map_deinit(&debuginfo->paths);
	vec_deinit(&debuginfo->rows);
	vec_deinit(&debuginfo->row_functions);
	vec_deinit(&debuginfo->numbers);
	arena_deinit(&debuginfo->names);
	free(debuginfo);
	return NULL;
}
