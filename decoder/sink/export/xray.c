/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * XRay: the calls as flight data recorder files, one for each thread (xray_file.h), and the ELF
 * file with the names of their functions, for llvm-xray.
 *
 * A file has one stack. When a thread goes on on another one, all that is open on the old one is
 * left, and all that is open on the new one is entered.
 */

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "decoder/sink/export/xray_file.h"
#include "decoder/sink/openstacks.h"
#include "decoder/sink/output.h"
#include "decoder/sink/sink.h"
#include "decoder/sink/sinks.h"
#include "decoder/util/fdr.h"
#include "ptd/calls.h"
#include "util/map.h"

/* --- xray map --------------------------------------------------------------------------------- */

/*
 * The ELF file that goes with XRay files: a table of instrumentation (decoder/util/fdr.h) and a
 * symbol for each function, by which llvm-xray finds the names of the functions. It has no code.
 * The functions are those of many objects, whose addresses may be the same, so they get others
 * here.
 */

#define XRAY_MAP_NAME "map.elf"

/* Return: the number of the function in XRay files, from 1. */
static inline uint32_t xray_map_id(const struct ptd_function *function)
{
	return function->id + 1;
}

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

/* --- xray map: names -------------------------------------------------------------------------- */

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

static void put_name(struct output *output, const struct ptd_function *function)
{
	const size_t size = name_size(function);
	char name[OUTPUT_NAME_MAX + 1];

	for (size_t i = 0; i + 1 < size; i++)
		name[i] = clean(function->name[i]);
	name[size - 1] = '\0';
	(void)output_write(output, name, size);
}

/* --- xray map: the parts of the file ---------------------------------------------------------- */

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

static void put_header(struct output *output, uint64_t sections_at)
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

	(void)output_write(output, &header, sizeof(header));
}

/* The entries are of version 0, whose addresses are absolute. */
static void put_map(struct output *output, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t entry[FDR_MAP_ENTRY_SIZE / sizeof(uint64_t)] = { address_of(i),
									  address_of(i) };

		(void)output_write(output, entry, sizeof(entry));
	}
}

static void put_symbols(struct output *output, const struct ptd_function *const *functions,
			size_t n)
{
	Elf64_Sym symbol = {};
	uint32_t at = 1;

	(void)output_write(output, &symbol, sizeof(symbol));
	for (size_t i = 0; i < n; i++) {
		symbol = (Elf64_Sym){ .st_name = at,
				      .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				      .st_shndx = SECTION_CODE,
				      .st_value = address_of(i),
				      .st_size = CODE_SIZE };
		(void)output_write(output, &symbol, sizeof(symbol));
		at += (uint32_t)name_size(functions[i]);
	}
}

static int put_file(struct output *output, const struct ptd_function *const *functions, size_t n)
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
	(void)output_write(output, "", 1);
	for (size_t i = 0; i < n; i++)
		put_name(output, functions[i]);
	(void)output_write(output, names, sizeof(names));
	(void)output_write(output, (const uint8_t[sizeof(uint64_t)]){}, padding);
	return output_write(output, sections, sizeof(sections));
}

/*
 * Write the file into the directory @dir_fd (decoder/util/outdir.h). @functions are all, by their
 * ids; and
 * @room, which may be NULL, is as in struct sink_config.
 *
 * Return: 0, or negative errno.
 */
static int xray_map_write(int dir_fd, uint64_t *room, const struct ptd_function *const *functions,
			  size_t n)
{
	struct output output;
	int r = output_create(&output, dir_fd, XRAY_MAP_NAME, room);

	if (r < 0)
		return r;
	r = put_file(&output, functions, n);
	if (r == 0)
		r = output_finish(&output);
	output_deinit(&output);
	return r;
}

/* --- xray ------------------------------------------------------------------------------------- */

#define NS_PER_S    1000000000
#define TEXT_MAX    128
#define IN_MEMORY   ((size_t)64 << 20) /* bytes that all files may have in memory together */
#define TID_MAX_OLD UINT16_MAX         /* of version 1 */
#define VERSION_OLD 1

struct xray_thread {
	struct xray_file file;
	uint32_t stack;    /* that it is on */
	bool is_switched;  /* it was on several stacks since the section began */
	bool is_sectioned; /* the section has begun */
	bool is_ended;     /* what is left now was open at the end */
	uint64_t chain;    /* of the function that it left by a jump: see struct open_frame */
};

struct xray {
	const struct ptd_info *info; /* borrowed */
	struct xray_files files;
	struct ptd_calls *layer; /* the sink's */
	struct open_stacks stacks;
	VEC(struct xray_thread *) threads; /* by id; NULL: it has no file */
	struct map by_slice;               /* what identifies the thread of a slice → id */
	uint32_t last;                     /* id of the thread whose call came last, and + 1 */
	size_t n_in_memory;                /* bytes, or a few more */
	bool has_cut_ids;
};

/* --- threads ---------------------------------------------------------------------------------- */

static struct xray_thread *thread_free(struct xray_thread *thread)
{
	if (thread)
		xray_file_deinit(&thread->file);
	free(thread);
	return NULL;
}

DEFINE_CLEANUP(struct xray_thread *, thread_free);

/* Return: the thread's, if it has a file; or NULL. */
static struct xray_thread *thread_at(const struct xray *xray, uint32_t id)
{
	return id < xray->threads.n ? xray->threads.items[id] : NULL;
}

static int add_thread(struct xray *xray, const struct ptd_call_thread *shown,
		      const struct ptd_call *call, struct xray_thread **ret_thread)
{
	_cleanup_(thread_freep) struct xray_thread *thread = calloc(1, sizeof(*thread));
	int r = thread && vec_at(&xray->threads, shown->id, NULL) ? 0 : -ENOMEM;

	if (r == 0)
		r = xray_file_begin(&thread->file, &xray->files,
				    &(struct xray_file_head){ .comm = shown->comm,
							      .pid = shown->pid,
							      .tid = shown->tid,
							      .thread = shown->id,
							      .cpu = shown->cpu,
							      .t = call->t,
							      .realtime_offset_ns =
								  xray->info->realtime_offset_ns });
	if (r < 0)
		return r;
	thread->stack = call->stack;
	if (xray->files.version == VERSION_OLD && shown->tid > TID_MAX_OLD)
		xray->has_cut_ids = true;
	*ret_thread = thread;
	xray->threads.items[shown->id] = TAKE(thread);
	return 0;
}

static int finish_thread(struct xray *xray, uint32_t id)
{
	struct xray_thread *thread = thread_at(xray, id);
	const int r = thread ? xray_file_finish(&thread->file) : 0;

	if (thread)
		xray->threads.items[id] = thread_free(thread);
	return r;
}

/* Of many threads that have little to write, each has a little in memory. */
static int bound_memory(struct xray *xray)
{
	int r = 0;

	if (xray->n_in_memory < IN_MEMORY)
		return 0;
	xray->n_in_memory = 0;
	for (size_t i = 0; i < xray->threads.n && r == 0; i++) {
		struct xray_thread *thread = xray->threads.items[i];

		if (!thread)
			continue;
		r = threadfile_leave_memory(&thread->file.out);
	}
	return r;
}

/* --- calls ------------------------------------------------------------------------------------ */

/* A call of a thread that has a file. */
struct step {
	struct xray *xray;
	struct xray_thread *thread;
	const struct ptd_call_thread *shown;
	const struct ptd_call *call;
};

static int put(struct step *s, enum fdr_action action, uint32_t function)
{
	s->xray->n_in_memory += FDR_FUNCTION_SIZE;
	return xray_file_function(&s->thread->file, s->call->t, s->shown->cpu, action, function);
}

/* Leave all that is open on the stack that the thread was on. */
static int leave_stack(struct step *s)
{
	const struct open_stack *stack = open_stacks_get(&s->xray->stacks, s->thread->stack);
	int r = stack ? 0 : -ENOMEM;

	for (size_t i = stack ? stack->frames.n : 0; i-- > 0 && r == 0;)
		r = put(s, FDR_EXIT, xray_map_id(stack->frames.items[i].function));
	return r;
}

/* Enter all that is open on the stack that the thread is on now. */
static int enter_stack(struct step *s)
{
	const struct open_stack *stack = open_stacks_get(&s->xray->stacks, s->thread->stack);
	int r = stack ? 0 : -ENOMEM;

	for (size_t i = 0; stack && i < stack->frames.n && r == 0; i++)
		r = put(s, FDR_ENTRY, xray_map_id(stack->frames.items[i].function));
	return r;
}

static int take_switch(struct step *s)
{
	char text[TEXT_MAX];
	int r = leave_stack(s);

	if (r == 0)
		r = open_stacks_move(&s->xray->stacks, s->call);
	if (r < 0)
		return r;
	s->thread->stack = s->call->stack;
	s->thread->is_switched = true;
	(void)snprintf(text, sizeof(text), "stack %" PRIu32, s->call->stack);
	r = xray_file_event(&s->thread->file, s->call->t, s->shown->cpu, text);
	return r < 0 ? r : enter_stack(s);
}

static bool is_below(const struct ptd_call *call)
{
	return call->how == PTD_CALL_BY_INFERENCE || call->how == PTD_CALL_BY_RESUMPTION;
}

static int take_enter(struct step *s)
{
	struct open_stack *stack = open_stacks_get(&s->xray->stacks, s->call->stack);
	const uint32_t id = xray_map_id(s->call->function);
	struct xray_thread *thread = s->thread;
	int r = stack ? open_stack_push(stack, s->call) : -ENOMEM;

	if (r < 0)
		return r;
	if (s->call->how == PTD_CALL_BY_TAIL)
		open_stack_top(stack)->chain = thread->chain;
	if (!thread->is_sectioned) {
		thread->is_sectioned = true;
		thread->is_switched = false;
		r = xray_file_section(&thread->file, s->call->t, s->shown->cpu);
	}
	if (r == 0 && is_below(s->call) && !thread->is_switched)
		return xray_file_below(&thread->file, id);
	return r < 0 ? r : put(s, FDR_ENTRY, id);
}

/*
 * Version 1 has it that a tail exit names the function that was called, at whose caller control
 * will arrive in the end; later ones, the function that is left.
 */
static int put_tail_exit(struct step *s, const struct open_frame *left)
{
	const uint32_t id = xray_map_id(s->call->function);

	s->thread->chain = left->chain ?: id;
	return put(s, FDR_TAIL_EXIT,
		   s->xray->files.version == VERSION_OLD ? (uint32_t)s->thread->chain : id);
}

static int put_exit(struct step *s, const struct open_frame *left)
{
	int r = 0;

	if (s->call->how == PTD_CALL_BY_TAIL)
		return put_tail_exit(s, left);
	if (s->call->how == PTD_CALL_BY_GAP)
		s->thread->is_sectioned = false;
	if (s->call->how == PTD_CALL_BY_END && !s->thread->is_ended) {
		s->thread->is_ended = true;
		r = xray_file_event(&s->thread->file, s->call->t, s->shown->cpu, "end");
	}
	return r < 0 ? r : put(s, FDR_EXIT, xray_map_id(s->call->function));
}

static int take_leave(struct step *s)
{
	struct open_stack *stack = open_stacks_get(&s->xray->stacks, s->call->stack);
	const struct open_frame *top = stack ? open_stack_top(stack) : NULL;
	int r = 0;

	if (!top)
		return stack ? 0 : -ENOMEM;
	/* What is open on a stack that the thread is not on was left in the file before. */
	if (s->call->stack == s->thread->stack)
		r = put_exit(s, top);
	open_stack_pop(stack);
	return r;
}

/* Each CPU has an idle thread 0, and code of a thread that is not known. */
static uint64_t key_of(const struct ptd_slice *slice)
{
	const bool is_of_cpu = slice->tid == 0 || slice->tid == PTD_ID_UNKNOWN;

	return (uint64_t)(is_of_cpu ? slice->cpu : slice->pid) << 32 | slice->tid;
}

static int take_call(struct xray *xray, const struct ptd_call_batch *calls,
		     const struct ptd_call *call)
{
	const uint32_t id = calls->thread->id;
	struct step s = {
		.xray = xray, .thread = thread_at(xray, id), .shown = calls->thread, .call = call
	};
	int r = 0;

	if (!s.thread)
		r = add_thread(xray, calls->thread, call, &s.thread);
	if (r == 0 && calls->batch && xray->last != id + 1) {
		xray->last = id + 1;
		r = map_put(&xray->by_slice, key_of(calls->batch->slice), id);
	}
	if (r < 0)
		return r;
	switch (call->kind) {
	case PTD_CALL_ENTER:
		return take_enter(&s);
	case PTD_CALL_LEAVE:
		return take_leave(&s);
	default:
		return take_switch(&s);
	}
}

/* --- marks ------------------------------------------------------------------------------------ */

/* Return: whether the mark is shown, and how. */
static bool describe(const struct ptd_mark *mark, char text[static TEXT_MAX])
{
	switch (mark->kind) {
	case PTD_MARK_GAP:
		(void)snprintf(text, TEXT_MAX, "gap: %s, %" PRIu64 " byte%s lost",
			       ptd_gap_reason_name(mark->reason), mark->n_bytes,
			       plural(mark->n_bytes));
		return true;
	case PTD_MARK_PTWRITE:
		(void)snprintf(text, TEXT_MAX, "ptwrite: 0x%" PRIx64, mark->value);
		return true;
	case PTD_MARK_OUT_OF_SCOPE:
	case PTD_MARK_STOP:
		(void)snprintf(text, TEXT_MAX, "%s", ptd_mark_kind_name(mark->kind));
		return true;
	default:
		return false;
	}
}

/* What comes behind it is a section of its own, as behind the functions that a gap ends. */
static int xray_mark(void *state, const struct ptd_slice *slice, const struct ptd_mark *mark)
{
	struct xray *xray = state;
	const uint64_t *id = map_get(&xray->by_slice, key_of(slice));
	struct xray_thread *thread = id ? thread_at(xray, (uint32_t)*id) : NULL;
	char text[TEXT_MAX];

	if (!thread || !describe(mark, text))
		return 0;
	if (mark->kind != PTD_MARK_PTWRITE)
		thread->is_sectioned = false;
	return xray_file_event(&thread->file, mark->t, slice->cpu, text);
}

/* --- its life --------------------------------------------------------------------------------- */

static int xray_open(void *state, const struct sink_config *config, struct output *output)
{
	uint64_t version = FDR_VERSION_MAX;
	struct xray *xray = state;
	int r = option_number(config, "format-version", &version);

	xray->info = config->info;
	xray->layer = config->calls;
	xray->files = (struct xray_files){
		.out = { .dir_fd = config->fd, .room = config->room, .fd = -1 },
		.version = (uint16_t)version,
		.frequency = config->info->clock == PTD_CLOCK_NS ? NS_PER_S : 0,
	};
	return r < 0 || (version != FDR_VERSION_MAX && version != VERSION_OLD) ? -EINVAL : 0;
}

static int xray_calls(void *state, const struct ptd_call_batch *calls)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < calls->n_calls; i++)
		r = take_call(state, calls, &calls->calls[i]);
	return r < 0 ? r : bound_memory(state);
}

static int xray_finish(void *state, const struct ptd_stats *stats, struct output *output)
{
	const struct ptd_function *const *functions;
	struct xray *xray = state;
	size_t n;
	int r = 0;

	for (size_t i = 0; i < xray->threads.n && r == 0; i++)
		r = finish_thread(xray, (uint32_t)i);
	if (r < 0)
		return r;
	functions = ptd_calls_functions(xray->layer, &n);
	return xray_map_write(xray->files.out.dir_fd, xray->files.out.room, functions, n);
}

static void xray_close(void *state)
{
	struct xray *xray = state;

	vec_deinit_each(&xray->threads, thread, thread_free(*thread));
	threadfiles_deinit(&xray->files.out);
	map_deinit(&xray->by_slice);
	open_stacks_deinit(&xray->stacks);
}

static const char *xray_omission(void *state)
{
	const struct xray *xray = state;

	return xray->has_cut_ids ? "version 1 has 16 bits for the id of a thread; of larger ones, "
				   "only the names of the files are right"
				 : NULL;
}

static const char *const directories[] = { NULL };

static const struct sink_option options[] = {
	{ .name = "format-version", .value = "N", .help = "version of the format: 1 or 5 (5)" },
	SINK_SIEVE_OPTIONS,
	{},
};

const struct sink_ops sink_xray = {
	.name = "xray",
	.help = "a directory of flight data recorder files for llvm-xray",
	.directories = directories,
	.options = options,
	.is_sieved = true,
	.state_size = sizeof(struct xray),
	.open = xray_open,
	.calls = xray_calls,
	.mark = xray_mark,
	.finish = xray_finish,
	.omission = xray_omission,
	.close = xray_close,
};
