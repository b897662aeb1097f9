/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/drmemtrace/tracefile.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/drmemtrace/container.h"
#include "decoder/image/object.h"
#include "decoder/x86/insn.h"
#include "util/message.h"

#define BUFFER_SIZE   (RECORD_SIZE * 1024u)
#define VERSION_MIN   2u
#define VERSION_MAX   7u
#define PROCESSES_MAX 65536u
#define INSN_SIZE_MAX 15u

/* --- code book -------------------------------------------------------------------------------- */

#define FIRST_SLOTS 256u

/* Return: the slot of @pc; there must be a free one. */
static struct codebook_entry *slot_of(const struct codebook *book, uint64_t pc)
{
	size_t i = (size_t)((pc * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (book->n_slots - 1);

	while (book->slots[i].block && book->slots[i].pc != pc)
		i = (i + 1) & (book->n_slots - 1);
	return &book->slots[i];
}

/* Return: the instruction at @pc, valid until the next codebook_put(); NULL if none is known. */
static const struct codebook_entry *codebook_get(const struct codebook *book, uint64_t pc)
{
	const struct codebook_entry *slot = book->n_slots > 0 ? slot_of(book, pc) : NULL;

	return slot && slot->block ? slot : NULL;
}

static int grow_book(struct codebook *book)
{
	const size_t n = book->n_slots ? 2 * book->n_slots : FIRST_SLOTS;
	struct codebook bigger = { .slots = calloc(n, sizeof(*bigger.slots)), .n_slots = n };

	if (!bigger.slots)
		return -ENOMEM;
	for (size_t i = 0; i < book->n_slots; i++)
		if (book->slots[i].block)
			*slot_of(&bigger, book->slots[i].pc) = book->slots[i];
	bigger.n_used = book->n_used;
	free(book->slots);
	*book = bigger;
	return 0;
}

/* Set the instruction at @pc. Return: 0; -E2BIG if the book is full; -ENOMEM. */
static int codebook_put(struct codebook *book, uint64_t pc, const struct ptd_block *block,
			uint32_t index)
{
	struct codebook_entry *slot;
	int r;

	if (book->n_used >= book->n_slots / 2) {
		r = book->n_used >= CODEBOOK_MAX ? -E2BIG : grow_book(book);
		if (r < 0)
			return r;
	}
	slot = slot_of(book, pc);
	book->n_used += !slot->block;
	*slot = (struct codebook_entry){ .pc = pc, .block = block, .index = index };
	return 0;
}

/* --- its life --------------------------------------------------------------------------------- */

/* Take the thread's name out of drmemtrace.NAME.TID.NUMBER.trace.SUFFIX. */
static void set_comm(struct tracefile *file)
{
	static const char prefix[] = "drmemtrace.";
	const char *name = strrchr(file->path, '/'), *end;
	size_t n;

	name = name ? name + 1 : file->path;
	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return;
	name += strlen(prefix);
	end = strstr(name, ".trace");
	for (int dots = 0; end && dots < 2; dots++)
		end = memrchr(name, '.', (size_t)(end - name));
	n = end ? (size_t)(end - name) : 0;
	if (n >= sizeof(file->comm))
		n = sizeof(file->comm) - 1;
	memcpy(file->comm, name, n);
	file->comm[n] = '\0';
}

void tracefile_init(struct tracefile *file, char *path, struct blockstore *store,
		    struct naming *naming)
{
	*file = (struct tracefile){ .path = path, .store = store, .naming = naming };
	set_comm(file);
}

void tracefile_close(struct tracefile *file)
{
	file->container = container_free(file->container);
	free(file->buffer);
	file->buffer = NULL;
	vec_deinit_each(&file->processes, process, free(process->book.slots));
	file->book = NULL;
}

void tracefile_deinit(struct tracefile *file)
{
	tracefile_close(file);
	free(file->path);
	file->path = NULL;
}

/* --- records ---------------------------------------------------------------------------------- */

/* Read on into the buffer, behind its first @n_left bytes. */
static int fill_buffer(struct tracefile *file, size_t n_left)
{
	size_t n;
	int r;

	memmove(file->buffer, file->buffer + file->at_buffer, n_left);
	r = container_read(file->container, file->buffer + n_left, BUFFER_SIZE - n_left, &n);
	if (r < 0)
		return r;
	file->at_buffer = 0;
	file->n_buffer = n_left + n;
	/* Bytes that are no whole record are cut off. */
	return n == 0 && n_left > 0 ? -EBADMSG : 0;
}

/*
 * Return: 1 and @ret_record; 0 at the end; -EBADMSG if the bytes are damaged or cut off; or another
 *         negative errno.
 */
static inline int next_record(struct tracefile *file, struct record *ret_record)
{
	while (file->n_buffer - file->at_buffer < RECORD_SIZE) {
		const int r = fill_buffer(file, file->n_buffer - file->at_buffer);

		if (r < 0)
			return r;
		if (file->n_buffer == 0)
			return 0;
	}
	*ret_record = record_read(file->buffer + file->at_buffer);
	file->at_buffer += RECORD_SIZE;
	return 1;
}

/* Go to the code of the current process. */
static int set_process(struct tracefile *file)
{
	size_t i = 0;

	while (i < file->processes.n && file->processes.items[i].pid != file->pid)
		i++;
	if (i == file->processes.n) {
		const int r =
		    i == PROCESSES_MAX ? -E2BIG : vec_push(&file->processes, { .pid = file->pid });

		if (r < 0)
			return r;
	}
	file->book = &file->processes.items[i].book;
	return 0;
}

/* --- the beginning ---------------------------------------------------------------------------- */

static int refuse(const struct tracefile *file, const char *what, char **reterr_message)
{
	return message_set(reterr_message, -EBADMSG, "%s: %s", file->path, what);
}

/* Take a record that stands before the first instruction. Return: whether the header is over. */
static bool take_header(struct tracefile *file, const struct record *rec)
{
	switch (rec->type) {
	case RECORD_HEADER:
		file->version = rec->addr;
		break;
	case RECORD_THREAD:
		file->tid = rec->addr;
		break;
	case RECORD_PID:
		file->pid = rec->addr;
		break;
	case RECORD_MARKER:
		if (rec->size == MARKER_FILE_TYPE)
			file->file_type = rec->addr;
		if (rec->size == MARKER_TIME)
			file->time_us = rec->addr;
		if (rec->size == MARKER_CPU)
			file->cpu = rec->addr;
		return rec->size == MARKER_CPU;
	default:
		/* There is no timestamp. The record is read again. */
		file->at_buffer -= RECORD_SIZE;
		return true;
	}
	return false;
}

static int check_header(const struct tracefile *file, char **reterr_message)
{
	if (file->version < VERSION_MIN || file->version > VERSION_MAX)
		return message_set(reterr_message, -EBADMSG,
				   "%s: has version %" PRIu64 " of drmemtrace; %u to %u are known",
				   file->path, file->version, VERSION_MIN, VERSION_MAX);
	if (file->file_type && !(file->file_type & FILE_TYPE_X86_64))
		return message_set(reterr_message, -EOPNOTSUPP,
				   "%s: is no trace of an x86-64 program (file type %#" PRIx64 ")",
				   file->path, file->file_type);
	return 0;
}

static int read_header(struct tracefile *file, char **reterr_message)
{
	struct record rec;
	bool is_over = false;
	int r;

	r = next_record(file, &rec);
	if (r < 0)
		return r;
	if (r == 0 || rec.type != RECORD_HEADER)
		return refuse(file, "is no drmemtrace file: it does not begin with a header",
			      reterr_message);
	while (r > 0 && !is_over) {
		is_over = take_header(file, &rec);
		if (!is_over)
			r = next_record(file, &rec);
	}
	if (r < 0)
		return r;
	file->ended = r == 0;
	return check_header(file, reterr_message);
}

int tracefile_open(struct tracefile *file, char **reterr_message)
{
	int r;

	tracefile_close(file);
	file->n_buffer = file->at_buffer = file->n_pieces = 0;
	file->time_us = file->cpu = file->symbol = file->window = file->branch_target = 0;
	file->pair_time = 0;
	file->ended = file->has_window = file->off_due = file->has_footer = false;
	file->has_switched = false;
	file->after = TRACEFILE_ANYTHING;
	file->draft.n_insns = file->draft.n_bytes = 0;
	file->buffer = malloc(BUFFER_SIZE);
	if (!file->buffer)
		return -ENOMEM;
	r = container_open(file->path, &file->container);
	if (r == 0)
		r = read_header(file, reterr_message);
	if (r == 0)
		r = set_process(file);
	if (r == -EOPNOTSUPP && !*reterr_message)
		return message_set(reterr_message, r,
				   "%s: is compressed by snappy, which ptdecode cannot decompress",
				   file->path);
	if (r < 0 && !*reterr_message)
		return message_set(reterr_message, r, "%s: %s", file->path,
				   r == -EBADMSG ? "is damaged" : strerror(-r));
	return r;
}

/* --- runs and marks --------------------------------------------------------------------------- */

/* What goes through the reading of a piece. */
struct piece {
	struct tracefile *file;
	struct tracefile_out *out;
	uint64_t t;
};

static int add_run(const struct piece *d, const struct ptd_block *block, size_t index, size_t n,
		   uint64_t base)
{
	struct tracefile_out *out = d->out;
	struct ptd_run *last = out->runs.n ? &out->runs.items[out->runs.n - 1] : NULL;
	const bool is_marked =
	    out->marks.n && out->marks.items[out->marks.n - 1].run == out->runs.n;

	out->n_insns += n;
	if (last && !is_marked && last->block == block && last->base == base && last->t == d->t &&
	    (size_t)last->first + last->n == index) {
		last->n = (uint16_t)(last->n + n);
		return 0;
	}
	return vec_push(&out->runs, { .block = block,
				      .base = base,
				      .t = d->t,
				      .first = (uint16_t)index,
				      .n = (uint16_t)n });
}

/* Make a block of the draft, and a run of that. */
static int flush_draft(const struct piece *d)
{
	struct blockstore_draft *draft = &d->file->draft;
	const struct ptd_block *block;
	int r;

	if (draft->n_insns == 0)
		return 0;
	r = blockstore_get(d->file->store, draft, &block);
	for (size_t i = 0; i < draft->n_insns && r == 0; i++)
		r = codebook_put(d->file->book, draft->pc + draft->insns[i].offset, block,
				 (uint32_t)i);
	if (r == 0)
		r = add_run(d, block, 0, draft->n_insns, draft->pc);
	draft->n_insns = draft->n_bytes = 0;
	return r;
}

static int add_mark(const struct piece *d, enum ptd_mark_kind kind, enum ptd_gap_reason reason,
		    uint64_t ip)
{
	const int r = flush_draft(d);

	if (r < 0)
		return r;
	if (kind == PTD_MARK_GAP)
		d->out->n_gaps[reason]++;
	d->file->after = TRACEFILE_ANYTHING;
	return vec_push(
	    &d->out->marks,
	    { .run = d->out->runs.n, .kind = kind, .reason = reason, .t = d->t, .ip = ip });
}

/* The last instruction was a system call, and left for code that is not in the trace. */
static int leave(const struct piece *d)
{
	if (!d->file->off_due)
		return 0;
	d->file->off_due = false;
	return add_mark(d, PTD_MARK_OFF, 0, 0);
}

/* Something is missing before @ip. */
static int add_gap(const struct piece *d, enum ptd_gap_reason reason, uint64_t ip)
{
	const bool is_filtered = d->file->file_type & (FILE_TYPE_FILTERED | FILE_TYPE_I_FILTERED);
	const int r = leave(d);

	if (r < 0)
		return r;
	return add_mark(
	    d, is_filtered && reason == PTD_GAP_BAD_FLOW ? PTD_MARK_OUT_OF_SCOPE : PTD_MARK_GAP,
	    reason, ip);
}

/* Return: whether the instruction at @pc may follow the last one. */
static bool follows(const struct tracefile *file, uint64_t pc)
{
	switch (file->after) {
	case TRACEFILE_NEXT:
		return pc == file->next;
	case TRACEFILE_TARGET:
	case TRACEFILE_INDIRECT:
		return pc == file->target;
	case TRACEFILE_EITHER:
		return pc == file->next || pc == file->target;
	default:
		return true;
	}
}

/* The instruction at @pc was taken. Its direct branch leads to @target. */
static void set_after(struct tracefile *file, uint64_t pc, const struct ptd_insn *insn,
		      uint64_t target)
{
	file->next = pc + insn->size;
	file->target = target;
	switch (insn->iclass) {
	case PTD_INSN_JUMP:
	case PTD_INSN_CALL:
		file->after = TRACEFILE_TARGET;
		break;
	case PTD_INSN_JUMP_COND:
		file->after = TRACEFILE_EITHER;
		break;
	case PTD_INSN_JUMP_INDIRECT:
	case PTD_INSN_CALL_INDIRECT:
	case PTD_INSN_RETURN:
	case PTD_INSN_RETURN_FAR:
		file->after = file->branch_target ? TRACEFILE_INDIRECT : TRACEFILE_ANYTHING;
		file->target = file->branch_target;
		break;
	case PTD_INSN_SYSCALL:
	case PTD_INSN_SYSENTER:
	case PTD_INSN_INTERRUPT:
	case PTD_INSN_VM:
		file->after = TRACEFILE_NEXT;
		file->off_due = true;
		break;
	default:
		file->after = TRACEFILE_NEXT;
	}
	file->branch_target = 0;
}

static bool is_branch(uint8_t iclass)
{
	return iclass != PTD_INSN_OTHER && iclass != PTD_INSN_PTWRITE;
}

/* Take an instruction that is in a block. */
static int take_known(const struct piece *d, struct codebook_entry entry)
{
	const struct ptd_insn *insn = &entry.block->insns[entry.index];
	const uint64_t base = entry.pc - insn->offset;
	int r;

	r = flush_draft(d);
	if (r == 0)
		r = add_run(d, entry.block, entry.index, 1, base);
	set_after(d->file, entry.pc, insn, base + (uint64_t)entry.block->target);
	return r;
}

/* Take an instruction with these bytes, which is in no block. */
static int take_new(const struct piece *d, uint64_t pc, const uint8_t *bytes, size_t size)
{
	struct tracefile *file = d->file;
	struct blockstore_draft *draft = &file->draft;
	struct naming_answer answer;
	struct ptd_insn *insn;
	struct insn decoded;
	int r;

	if (insn_decode(64, bytes, size, &decoded) < 0 || decoded.size != size)
		return add_gap(d, PTD_GAP_BAD_FLOW, pc);
	r = naming_find(file->naming, file->pid, pc, file->symbol, &answer);
	if (r == 0 && (draft->n_insns == BLOCKSTORE_INSNS_MAX || draft->pc + draft->n_bytes != pc ||
		       draft->object != &answer.object->id || draft->link != answer.link))
		r = flush_draft(d);
	if (r < 0)
		return r;
	if (draft->n_insns == 0) {
		draft->pc = pc;
		draft->link = answer.link;
		draft->object = &answer.object->id;
		draft->mode = 64;
		draft->target = 0;
	}
	insn = &draft->insns[draft->n_insns++];
	*insn = (struct ptd_insn){ .offset = (uint16_t)draft->n_bytes,
				   .size = decoded.size,
				   .iclass = decoded.class,
				   .symbol = answer.symbol };
	memcpy(draft->bytes + draft->n_bytes, bytes, size);
	draft->n_bytes += size;
	if (is_branch(insn->iclass))
		draft->target = (int64_t)((uint64_t)draft->n_bytes + (uint64_t)decoded.disp);
	set_after(file, pc, insn, draft->pc + (uint64_t)draft->target);
	return is_branch(insn->iclass) ? flush_draft(d) : 0;
}

/* Return: whether the instruction in a block is the one that the file has now. */
static bool is_current(const struct tracefile *file, const struct codebook_entry *entry,
		       const uint8_t *bytes, size_t size)
{
	const struct ptd_insn *insn = &entry->block->insns[entry->index];

	if (insn->size != size ||
	    (bytes && memcmp(entry->block->bytes + insn->offset, bytes, size) != 0))
		return false;
	return naming_may_be(file->naming, file->symbol, insn->symbol);
}

/*
 * Find the bytes of an instruction of @size bytes at @pc, which the file may have announced before.
 *
 * Return: them, in @copy; or NULL.
 */
static const uint8_t *find_bytes(const struct tracefile *file, uint64_t pc, size_t size,
				 const struct codebook_entry *entry, uint8_t *copy)
{
	const uint8_t *bytes;

	if (!entry)
		return naming_bytes(file->naming, pc, size);
	if (entry->block->insns[entry->index].size != size)
		return NULL;
	bytes = entry->block->bytes + entry->block->insns[entry->index].offset;
	return memcpy(copy, bytes, size);
}

static int take_insn(const struct piece *d, const struct record *rec)
{
	struct tracefile *file = d->file;
	const size_t size = rec->size, n_pieces = file->n_pieces;
	const uint64_t pc = rec->addr;
	const uint8_t *bytes = n_pieces ? file->pieces : NULL;
	const struct codebook_entry *entry;
	uint8_t copy[INSN_SIZE_MAX];
	int r;

	file->n_pieces = 0;
	r = follows(file, pc) ? leave(d) : add_gap(d, PTD_GAP_BAD_FLOW, pc);
	if (r < 0)
		return r;
	if (size - 1 >= INSN_SIZE_MAX || (bytes && n_pieces != size))
		return add_gap(d, PTD_GAP_BAD_FLOW, pc);
	entry = codebook_get(file->book, pc);
	if (entry && is_current(file, entry, bytes, size))
		return take_known(d, *entry);
	/* Without bytes, they are those of before, but of another symbol. */
	bytes = bytes ?: find_bytes(file, pc, size, entry, copy);
	return bytes ? take_new(d, pc, bytes, size) : add_gap(d, PTD_GAP_NO_CODE, pc);
}

/* --- other records ---------------------------------------------------------------------------- */

static void take_encoding(struct tracefile *file, const struct record *rec)
{
	if (rec->size > 8 || file->n_pieces + rec->size > sizeof(file->pieces)) {
		file->n_pieces = sizeof(file->pieces); /* no instruction is so long */
		return;
	}
	memcpy(file->pieces + file->n_pieces, &rec->addr, rec->size);
	file->n_pieces += rec->size;
}

static int take_window(const struct piece *d, uint64_t window)
{
	struct tracefile *file = d->file;
	const bool is_new = file->has_window && window != file->window;

	file->has_window = true;
	file->window = window;
	return is_new ? add_gap(d, PTD_GAP_LOST, 0) : 0;
}

/* A hardware event. A system call that enters the kernel is explained by its instruction. */
static int take_event(const struct piece *d, uint64_t ip)
{
	struct tracefile *file = d->file;

	if (file->off_due && ip == file->next) {
		file->off_due = false;
		file->after = TRACEFILE_ANYTHING;
		return 0;
	}
	return add_mark(d, PTD_MARK_ASYNC, 0, ip);
}

/* Return: 0, or 1 if the record begins another piece; or negative errno. */
static int take_marker(const struct piece *d, const struct record *rec)
{
	struct tracefile *file = d->file;
	int r;

	switch (rec->size) {
	case MARKER_SIGNAL:
		r = leave(d);
		return r < 0 ? r : add_mark(d, PTD_MARK_ASYNC, 0, rec->addr);
	case MARKER_HARDWARE_EVENT:
		return take_event(d, rec->addr);
	case MARKER_TRANSFER:
	case MARKER_HARDWARE_RETURN:
	case MARKER_SYSCALL_END:
		file->after = TRACEFILE_ANYTHING;
		return 0;
	case MARKER_SYSCALL_START:
		file->off_due = false;
		file->after = TRACEFILE_ANYTHING;
		return 0;
	case MARKER_TIME:
		file->pair_time = rec->addr;
		return 0;
	case MARKER_CPU:
		if (file->pair_time == file->time_us && rec->addr == file->cpu &&
		    !file->has_switched)
			return 0;
		file->has_switched = false;
		if (file->pair_time > file->time_us)
			file->time_us = file->pair_time;
		file->cpu = rec->addr;
		return 1;
	case MARKER_WINDOW:
		return take_window(d, rec->addr);
	case MARKER_TARGET:
		file->branch_target = rec->addr;
		return 0;
	case MARKER_USER:
		file->symbol = rec->addr;
		return 0;
	default:
		return 0;
	}
}

/* Another thread comes to the core. The piece ends with the timestamp that follows. */
static int take_switch(const struct piece *d, const struct record *rec)
{
	struct tracefile *file = d->file;
	int r;

	r = leave(d);
	if (r == 0)
		r = flush_draft(d);
	if (r < 0)
		return r;
	file->after = TRACEFILE_ANYTHING;
	file->has_switched = true;
	if (rec->type == RECORD_THREAD) {
		file->tid = rec->addr;
		return 0;
	}
	file->pid = rec->addr;
	return set_process(file);
}

/* Return: as take_marker(). */
static int take_record(const struct piece *d, const struct record *rec)
{
	if (record_is_insn(rec) && !d->file->has_switched)
		return take_insn(d, rec);
	switch (rec->type) {
	case RECORD_ENCODING:
		take_encoding(d->file, rec);
		return 0;
	case RECORD_MARKER:
		return take_marker(d, rec);
	case RECORD_THREAD:
	case RECORD_PID:
		return take_switch(d, rec);
	case RECORD_FOOTER:
		/* In the file of a core the footers of its threads come where these end. */
		d->file->has_footer = true;
		d->file->ended = !(d->file->file_type & FILE_TYPE_CORES);
		return d->file->ended;
	default:
		if (!record_is_insn(rec))
			return 0;
		/* There is no timestamp. The record is read again, in the next piece. */
		d->file->has_switched = false;
		d->file->at_buffer -= RECORD_SIZE;
		return 1;
	}
}

int tracefile_read(struct tracefile *file, uint64_t epoch_us, struct tracefile_out *out,
		   char **reterr_message)
{
	const uint64_t since = file->time_us > epoch_us ? file->time_us - epoch_us : 0;
	const struct piece d = { .file = file, .out = out, .t = since * 1000 };
	struct record rec;
	int r = 0;

	while (r == 0 && out->runs.n < out->n_runs_max && out->marks.n < out->n_runs_max) {
		r = next_record(file, &rec);
		if (r == 0 || r == -EBADMSG) {
			/* If there is no footer, the end was cut off. */
			file->ended = true;
			if (r == 0 && file->has_footer)
				r = 1;
			else
				r = add_gap(&d, PTD_GAP_CUT, 0) ?: 1;
		} else if (r > 0) {
			r = take_record(&d, &rec);
		}
	}
	if (r >= 0 && file->ended) {
		const int q = leave(&d);

		r = q < 0 ? q : r;
	}
	if (r >= 0) {
		const int q = flush_draft(&d);

		r = q < 0 ? q : r;
	}
	if (r < 0 && !*reterr_message)
		return message_set(reterr_message, r, "%s: %s", file->path, strerror(-r));
	return r;
}
