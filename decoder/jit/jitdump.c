/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/jit/jitdump.h"

#include <assert.h>
#include <dwarf.h>
#include <errno.h>
#include <string.h>

#include "base/cursor.h"
#include "decoder/symbol/ehframe.h"
#include "decoder/symbol/unwind.h"
#include "ptd/record.h"
#include "util/map.h"

#define MAGIC         0x4a695444u
#define MAGIC_SWAPPED 0x4454694au
#define VERSION       1u
#define FLAG_TSC      UINT64_C(1)

/* The file's; more may follow, up to total_size. Its timestamp is not to be relied on. */
struct file_head {
	uint32_t magic, version, total_size, elf_mach, pad1, pid;
	uint64_t timestamp, flags;
};

/* Records follow each other without padding, so that they are copied and never cast. */
struct record_head {
	uint32_t id, total_size;
	uint64_t timestamp;
};

enum {
	CODE_LOAD = 0,
	CODE_MOVE = 1,
	CODE_DEBUG_INFO = 2,
	CODE_UNWINDING_INFO = 4,
};

/* A name and a 0 follow; then, at the end of the record, the code. */
struct load_payload {
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

struct move_payload {
	uint32_t pid, tid;
	uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
};

/* Then follow the entries. */
struct debug_payload {
	uint64_t code_addr, n_entries;
};

/* The name of the file and a 0 follow. Line and column are 0 if they are not known. */
struct debug_entry {
	uint64_t address;
	uint32_t line, column;
};

/* Then follow a header (.eh_frame_hdr) and .eh_frame, @data_size bytes in all. */
struct unwinding_payload {
	uint64_t data_size, header_size;
	uint64_t mapped_size; /* how much of it is in the memory of the process; 0: only the header
			       * is to be read, and stands for functions that are unwound by rbp */
};

/* What .eh_frame_hdr begins with: its version; and the last of four bytes is how its table is
 * encoded, if it has one. */
#define FRAMES_HEADER_VERSION  1
#define FRAMES_HEADER_TABLE    0x3b
#define FRAMES_HEADER_NO_TABLE 0xff

/* A name that stands for that of the entry before. */
#define SAME_NAME "\xff"

#define ELF_HEADER_SIZE 64 /* what some compilers add to the addresses of lines */

static_assert(sizeof(struct file_head) == 40 && sizeof(struct record_head) == 16 &&
		  sizeof(struct load_payload) == 40 && sizeof(struct move_payload) == 48 &&
		  sizeof(struct debug_payload) == 16 && sizeof(struct debug_entry) == 16 &&
		  sizeof(struct unwinding_payload) == 24,
	      "as the format says");

/* What says the lines of a function. */
struct lines {
	uint64_t offset, size; /* in the file; 0: a function has taken them */
	uint64_t n;
};

struct parser {
	struct jitdump *dump;
	const uint8_t *bytes;
	struct map by_index; /* the compiler's number → index in loads, of the latest */
	struct map by_pid;   /* the same of one process: see pid_key() */

	/* Lines of functions that were not loaded yet, by the address of the code. */
	struct map lines_by_address; /* → index in lines */
	VEC(struct lines) lines;
	uint64_t frames, frames_size; /* call frame information of the next function; */
	bool is_by_rbp;               /* or it is unwound by rbp */
	uint64_t nearest_line; /* the least distance of a first line from the start of its code */
};

void jitdump_deinit(struct jitdump *dump)
{
	symbol_source_deinit(&dump->symbols);
	vec_deinit_each(&dump->loads, load, vec_deinit(&load->sorted));
	vec_deinit(&dump->events);
}

static int read_loads(struct symbol_source *source, struct symtab *symtab)
{
	const struct jitdump *dump = (const struct jitdump *)source;
	int r = 0;

	for (size_t i = 0; r == 0 && i < dump->loads.n; i++) {
		const struct jitdump_load *l = &dump->loads.items[i];

		r = symtab_add(symtab, &(struct symtab_symbol){ .address = l->offset,
								.size = l->size,
								.limit = l->offset + l->size,
								.name = l->name,
								.name_size = l->name_size,
								.jit = &l->note });
	}
	return r;
}

/* Order: by address; equal addresses in file order. */
static int compare_lines(const void *pa, const void *pb)
{
	const struct jitdump_line *a = pa, *b = pb;

	return COMPARE(a->address, b->address) ?: COMPARE(a->order, b->order);
}

/* Read and sort the lines of @load: a walk through them for each address would be quadratic. */
static int sort_lines(const struct jitdump *dump, struct jitdump_load *load)
{
	struct cursor c = cursor_from(dump->bytes + load->lines, load->lines_size);
	const char *name, *file = NULL;
	struct debug_entry entry;

	load->sorted.n = 0;
	while (load->sorted.n < load->n_lines && cursor_get(&c, sizeof(entry), &entry) == 0 &&
	       cursor_get_string(&c, &name) == 0) {
		int r;

		if (strcmp(name, SAME_NAME) != 0)
			file = name;
		r = vec_push(&load->sorted, { .address = entry.address - dump->lines_bias,
					      .file = file,
					      .line = entry.line,
					      .column = entry.column,
					      .order = (uint32_t)load->sorted.n });
		if (r < 0)
			return r;
	}
	vec_sort(&load->sorted, compare_lines);
	load->has_sorted = true;
	return 0;
}

/* Find the last line that begins up to @address, which is one of the code of @load. */
static int find_line(const struct jitdump *dump, struct jitdump_load *load, uint64_t address,
		     struct ptd_position *ret_position)
{
	const int r = load->has_sorted ? 0 : sort_lines(dump, load);
	size_t n;

	if (r < 0)
		return r;
	n = vec_bisect(&load->sorted, line, line->address <= address);
	if (n == 0)
		return 0;
	*ret_position = (struct ptd_position){ .file = load->sorted.items[n - 1].file,
					       .line = load->sorted.items[n - 1].line,
					       .column = load->sorted.items[n - 1].column };
	return 1;
}

/* Return: the function with the code at @offset of the file; NULL if there is none. */
static struct jitdump_load *find_load(struct jitdump *dump, uint64_t offset)
{
	const size_t n = vec_bisect(&dump->loads, load, load->offset <= offset);
	struct jitdump_load *load = n > 0 ? &dump->loads.items[n - 1] : NULL;

	return load && offset - load->offset < load->size ? load : NULL;
}

static int find_positions(struct symbol_source *source, uint64_t offset,
			  struct ptd_position *ret_positions)
{
	struct jitdump *dump = (struct jitdump *)source;
	struct jitdump_load *load = find_load(dump, offset);

	if (!load || load->lines_size == 0)
		return 0;
	return find_line(dump, load, load->address + (offset - load->offset), ret_positions);
}

/* The caller's rbp is where rbp points to, and the return address is behind it. */
static struct ehframe_entry entry_by_rbp(const struct jitdump_load *load)
{
	static const uint8_t common[] = { DW_CFA_def_cfa,
					  UNWIND_RBP,
					  16,
					  DW_CFA_offset | UNWIND_RBP,
					  2,
					  DW_CFA_offset | UNWIND_RIP,
					  1 };

	return (struct ehframe_entry){ .start = load->offset,
				       .end = load->offset + load->size,
				       .code_factor = 1,
				       .data_factor = -8,
				       .return_register = UNWIND_RIP,
				       .common = cursor_from(common, sizeof(common)),
				       .own = cursor_from(common, 0) };
}

static bool find_entry(struct symbol_source *source, uint64_t offset,
		       struct ehframe_entry *ret_entry)
{
	struct jitdump *dump = (struct jitdump *)source;
	const struct jitdump_load *load = find_load(dump, offset);
	struct ehframe_entry entry;

	if (load && load->is_by_rbp) {
		*ret_entry = entry_by_rbp(load);
		return true;
	}
	if (!load || !ehframe_read_entry(dump->bytes + load->frames, load->frames_size, &entry) ||
	    offset - load->offset >= entry.end)
		return false;
	entry.start += load->offset;
	entry.end += load->offset;
	*ret_entry = entry;
	return true;
}

static const struct symbol_source_ops jitdump_ops = { .read = read_loads,
						      .entry = find_entry,
						      .positions = find_positions };

static int refuse(int r, const char *why, const char **reterr_why)
{
	*reterr_why = why;
	return r;
}

static int read_head(struct cursor *c, struct jitdump *dump, const char **reterr_why)
{
	const struct cursor whole = *c;
	struct file_head head;

	if (cursor_get(c, sizeof(head.magic), &head.magic) < 0)
		return refuse(-EBADMSG,
			      "byte 0: too short: expected a jitdump, which begins with DTiJ",
			      reterr_why);
	if (head.magic == MAGIC_SWAPPED)
		return refuse(
		    -EOPNOTSUPP,
		    "byte 0: a jitdump of the other byte order: expected DTiJ, found JiTD",
		    reterr_why);
	if (head.magic != MAGIC)
		return refuse(-EBADMSG, "byte 0: not a jitdump: expected DTiJ", reterr_why);

	*c = whole;
	if (cursor_get(c, sizeof(head), &head) < 0)
		return refuse(-EBADMSG,
			      "byte 0: too short: expected a jitdump's header of 40 bytes",
			      reterr_why);
	if (head.version != VERSION)
		return refuse(-EOPNOTSUPP, "byte 4: a jitdump of another version: expected 1",
			      reterr_why);
	if (head.flags & ~FLAG_TSC)
		return refuse(-EOPNOTSUPP,
			      "byte 32: a jitdump with flags that are not known: expected 0 or 1",
			      reterr_why);

	*c = whole;
	if (head.total_size < sizeof(head) ||
	    cursor_get_sub(c, head.total_size, &(struct cursor){}))
		return refuse(
		    -EBADMSG,
		    "byte 8: a jitdump's header of an impossible size: expected 40 bytes or "
		    "more, inside the file",
		    reterr_why);
	dump->time_is_tsc = head.flags & FLAG_TSC;
	dump->pid = head.pid;
	return 0;
}

/* Return: 0; -E2BIG if there are too many; -ENOMEM. */
static int add_event(struct parser *p, const struct jitdump_event *event)
{
	struct jitdump *dump = p->dump;
	const size_t n = dump->events.n;

	if (n == JITDUMP_EVENTS_MAX)
		return -E2BIG;
	dump->is_of_one = n == 0 || (dump->is_of_one && event->pid == dump->events.items[0].pid);
	return vec_push(&dump->events, *event);
}

/* Processes that write into one dump use the same numbers. */
static uint64_t pid_key(uint32_t pid, uint64_t index)
{
	return index ^ (uint64_t)pid << 32;
}

static bool fits(uint64_t address, uint64_t size)
{
	return size > 0 && size - 1 <= UINT64_MAX - address;
}

/* Each record's reader returns 0; -EBADMSG if it makes no sense; -E2BIG; -ENOMEM. */

/* The lines of code come before the code. */
static int read_debug_info(struct parser *p, struct cursor c)
{
	const uint64_t *known;
	struct debug_payload head;
	struct debug_entry first;
	struct lines lines;
	int r;

	r = cursor_get(&c, sizeof(head), &head);
	if (r < 0)
		return r;
	lines = (struct lines){ .offset = (uint64_t)(c.pos - p->bytes),
				.size = cursor_left(&c),
				.n = head.n_entries };
	if (lines.size > JITDUMP_LINES_MAX)
		lines.size = JITDUMP_LINES_MAX;
	if (head.n_entries == 0 || cursor_get(&c, sizeof(first), &first) < 0)
		return 0;
	if (first.address < head.code_addr)
		p->nearest_line = 0;
	else if (first.address - head.code_addr < p->nearest_line)
		p->nearest_line = first.address - head.code_addr;

	known = map_get(&p->lines_by_address, head.code_addr);
	if (known) {
		p->lines.items[*known] = lines;
		return 0;
	}
	if (p->lines.n == JITDUMP_EVENTS_MAX)
		return 0;
	r = map_put(&p->lines_by_address, head.code_addr, p->lines.n);
	return r < 0 ? r : vec_push(&p->lines, lines);
}

/* Give @load the lines that came before it. */
static void take_lines(struct parser *p, struct jitdump_load *load)
{
	const uint64_t *i = map_get(&p->lines_by_address, load->address);

	if (!i)
		return;
	load->lines = p->lines.items[*i].offset;
	load->lines_size = p->lines.items[*i].size;
	load->n_lines = p->lines.items[*i].n;
	p->lines.items[*i] = (struct lines){};
}

static bool is_frames_header(const uint8_t *bytes, uint64_t size)
{
	return size >= 4 && bytes[0] == FRAMES_HEADER_VERSION &&
	       (bytes[3] == FRAMES_HEADER_TABLE || bytes[3] == FRAMES_HEADER_NO_TABLE);
}

/*
 * The call frame information of a function comes before its code. The format has the header at the
 * start of the data; V8 writes it at the end, where perf looks for it.
 */
static int read_unwinding(struct parser *p, struct cursor c)
{
	struct unwinding_payload head;
	int r;

	r = cursor_get(&c, sizeof(head), &head);
	if (r < 0)
		return r;
	if (head.data_size > cursor_left(&c) || head.header_size > head.data_size)
		return -EBADMSG;
	p->frames = (uint64_t)(c.pos - p->bytes);
	p->frames_size = head.mapped_size > 0 ? head.data_size - head.header_size : 0;
	p->is_by_rbp = head.mapped_size == 0 && head.header_size > 0;
	if (is_frames_header(c.pos, head.header_size))
		p->frames += head.header_size;
	return 0;
}

static int read_load(struct parser *p, uint64_t time, struct cursor c)
{
	const uint64_t frames_size = p->frames_size;
	const bool is_by_rbp = p->is_by_rbp;
	struct jitdump_load load;
	struct load_payload head;
	const uint8_t *end;
	size_t left;
	int r;

	p->frames_size = 0;
	p->is_by_rbp = false;
	r = cursor_get(&c, sizeof(head), &head);
	if (r < 0)
		return r;
	left = cursor_left(&c);
	if (head.code_size > left)
		return -EBADMSG;
	/* The format allows functions without code. */
	if (head.code_size == 0)
		return 0;
	left -= head.code_size;
	end = memchr(c.pos, '\0', left);
	/* Some writers leave vma 0; where the code is stands in code_addr. */
	if (!end || !fits(head.code_addr, head.code_size))
		return -EBADMSG;

	load = (struct jitdump_load){
		.address = head.code_addr,
		.size = head.code_size,
		.offset = (uint64_t)(c.end - p->bytes) - head.code_size,
		.index = head.code_index,
		.frames = p->frames,
		.frames_size = frames_size,
		.is_by_rbp = is_by_rbp,
		.name = (const char *)c.pos,
		.name_size =
		    (uint16_t)(end - c.pos < JITDUMP_NAME_MAX ? end - c.pos : JITDUMP_NAME_MAX),
	};
	take_lines(p, &load);
	r = add_event(p, &(struct jitdump_event){ .time = time,
						  .address = load.address,
						  .load = (uint32_t)p->dump->loads.n,
						  .order = (uint32_t)p->dump->events.n,
						  .pid = head.pid,
						  .kind = JITDUMP_CODE_LOAD });
	if (r == 0)
		r = map_put(&p->by_index, load.index, p->dump->loads.n);
	if (r == 0)
		r = map_put(&p->by_pid, pid_key(head.pid, load.index), p->dump->loads.n);
	return r < 0 ? r : vec_push(&p->dump->loads, load);
}

static int read_move(struct parser *p, uint64_t time, struct cursor c)
{
	const struct jitdump_load *load;
	struct move_payload head;
	const uint64_t *i;
	int r;

	r = cursor_get(&c, sizeof(head), &head);
	if (r < 0)
		return r;
	/* A process that was forked may move what its parent loaded. */
	i = map_get(&p->by_pid, pid_key(head.pid, head.code_index));
	if (!i || p->dump->loads.items[*i].index != head.code_index)
		i = map_get(&p->by_index, head.code_index);
	if (!i)
		return -EBADMSG;
	load = &p->dump->loads.items[*i];
	/* A function that moves cannot change its size. */
	if (head.code_size != load->size || !fits(head.new_code_addr, load->size))
		return -EBADMSG;
	return add_event(p, &(struct jitdump_event){ .time = time,
						     .address = head.new_code_addr,
						     .from = head.old_code_addr,
						     .load = (uint32_t)*i,
						     .order = (uint32_t)p->dump->events.n,
						     .pid = head.pid,
						     .kind = JITDUMP_CODE_MOVE });
}

static int read_record(struct parser *p, const struct record_head *head, struct cursor payload)
{
	switch (head->id) {
	case CODE_LOAD:
		return read_load(p, head->timestamp, payload);
	case CODE_MOVE:
		return read_move(p, head->timestamp, payload);
	case CODE_DEBUG_INFO:
		return read_debug_info(p, payload);
	case CODE_UNWINDING_INFO:
		return read_unwinding(p, payload);
	default:
		return 0;
	}
}

/* Return: whether there is another record; that the file is cut in one goes into the dump. */
static bool next_record(struct parser *p, struct cursor *c, struct record_head *ret_head,
			struct cursor *ret_payload)
{
	const uint64_t at = (uint64_t)(c->pos - p->bytes);
	struct cursor record = *c;

	if (cursor_left(c) == 0)
		return false;
	p->dump->cut_at = at;
	if (cursor_get(&record, sizeof(*ret_head), ret_head) < 0 ||
	    ret_head->total_size < sizeof(*ret_head) ||
	    cursor_get_sub(&record, ret_head->total_size - sizeof(*ret_head), ret_payload) < 0)
		return false;
	p->dump->cut_at = 0;
	*c = record;
	return true;
}

/* Return: 0 or -ENOMEM. */
static int read_records(struct parser *p, struct cursor *c)
{
	struct record_head head;
	struct cursor payload;

	while (next_record(p, c, &head, &payload)) {
		const int r = read_record(p, &head, payload);

		if (r == -ENOMEM)
			return r;
		if (r == -E2BIG) {
			p->dump->cut_at = (uint64_t)(payload.pos - p->bytes) - sizeof(head);
			return 0;
		}
		p->dump->n_skipped += r < 0;
	}
	return 0;
}

static int compare_events(const void *pa, const void *pb)
{
	const struct jitdump_event *a = pa, *b = pb;

	return COMPARE(a->time, b->time) ?: COMPARE(a->order, b->order);
}

/* Threads that write may overtake each other between taking the time and writing. */
static void sort_events(struct jitdump *dump)
{
	for (size_t i = 1; i < dump->events.n; i++) {
		if (dump->events.items[i - 1].time <= dump->events.items[i].time)
			continue;
		vec_sort(&dump->events, compare_events);
		return;
	}
}

int jitdump_parse(const uint8_t *bytes, size_t size, struct jitdump *ret_dump,
		  const char **reterr_why)
{
	struct cursor c = size ? cursor_from(bytes, size) : cursor_from("", 0);
	struct jitdump dump = { .symbols.ops = &jitdump_ops, .bytes = bytes };
	struct parser p = { .dump = &dump, .bytes = bytes, .nearest_line = UINT64_MAX };
	int r;

	r = read_head(&c, &dump, reterr_why);
	if (r < 0)
		return r;
	r = read_records(&p, &c);
	if (p.nearest_line == ELF_HEADER_SIZE)
		dump.lines_bias = ELF_HEADER_SIZE;
	map_deinit(&p.by_index);
	map_deinit(&p.by_pid);
	map_deinit(&p.lines_by_address);
	vec_deinit(&p.lines);
	if (r < 0) {
		jitdump_deinit(&dump);
		return refuse(r, "out of memory", reterr_why);
	}
	sort_events(&dump);
	*ret_dump = dump;
	return 0;
}
