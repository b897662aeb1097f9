/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/core.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cursor.h"
#include "util/message.h"
#include "util/regular.h"

#define SEGMENTS_MAX (1u << 20)           /* the kernel maps at most 65530 without a change */
#define NOTES_MAX    (UINT64_C(64) << 20) /* bytes of notes; those of others are left out */

/* The kernel's struct elf_prstatus. */
#define PRSTATUS_SIZE   336
#define PRSTATUS_SIGNAL 12
#define PRSTATUS_PID    32
#define PRSTATUS_REGS   112

/* The kernel's struct elf_prpsinfo. */
#define PRPSINFO_PID 24

/* The registers in their order there, each by its number of DWARF; -1: not needed. */
static const int8_t places[] = { 15, 14, 13, 12, CORE_RBP, 3,  11,       10, 9,  8,
				 0,  2,  1,  4,  5,        -1, CORE_RIP, -1, -1, CORE_RSP };

/* The kernel's struct siginfo of a fault. */
struct siginfo_head {
	int32_t signal, error, code, unused;
	uint64_t address;
};

/* --- notes ------------------------------------------------------------------------------------ */

static int add_thread(struct core *core, struct cursor body)
{
	struct core_thread thread = {};
	uint64_t regs[ARRAY_LEN(places)];
	struct cursor signal = body, pid = body;
	uint16_t number;

	if (cursor_left(&body) < PRSTATUS_SIZE || core->threads.n == CORE_THREADS_MAX ||
	    cursor_skip(&signal, PRSTATUS_SIGNAL) < 0 ||
	    cursor_get(&signal, sizeof(number), &number) < 0 ||
	    cursor_skip(&pid, PRSTATUS_PID) < 0 ||
	    cursor_get(&pid, sizeof(thread.tid), &thread.tid) < 0 ||
	    cursor_skip(&body, PRSTATUS_REGS) < 0 || cursor_get(&body, sizeof(regs), regs) < 0)
		return 0;
	thread.signal = number;
	for (size_t i = 0; i < ARRAY_LEN(places); i++)
		if (places[i] >= 0)
			thread.regs[places[i]] = regs[i];
	return vec_push(&core->threads, thread);
}

static int read_note(struct core *core, uint32_t type, struct cursor body)
{
	struct siginfo_head info;

	switch (type) {
	case NT_PRSTATUS:
		return add_thread(core, body);
	case NT_PRPSINFO:
		if (cursor_skip(&body, PRPSINFO_PID) == 0)
			(void)!cursor_get(&body, sizeof(core->pid), &core->pid);
		return 0;
	case NT_SIGINFO:
		/* There is one for each thread, or one alone. The first is of the signal. */
		if (core->has_siginfo || cursor_get(&body, sizeof(info), &info) < 0)
			return 0;
		core->has_siginfo = true;
		core->signal = (uint32_t)info.signal;
		core->signal_code = info.code;
		core->signal_address = info.address;
		return 0;
	default:
		return 0;
	}
}

/* A name or a body, which is padded to a multiple of four bytes. The last one need not be. */
static int get_padded(struct cursor *c, uint32_t size, struct cursor *ret_bytes)
{
	const uint32_t padding = -size % 4;

	return cursor_get_sub(c, size, ret_bytes)
		   ?: cursor_left(c) < padding ? cursor_skip(c, cursor_left(c))
					       : cursor_skip(c, padding);
}

/* Read the notes of the segment @h. Those behind one that is damaged are left out. */
static int read_notes(struct core *core, const Elf64_Phdr *h)
{
	const size_t size = h->p_filesz < NOTES_MAX ? (size_t)h->p_filesz : NOTES_MAX;
	const uint8_t *bytes = filebytes_get(core->file, h->p_offset, size);
	struct cursor c, name, body;
	Elf64_Nhdr note;
	int r = 0;

	if (!bytes)
		return 0;
	c = cursor_from(bytes, size);
	while (r == 0 && cursor_get(&c, sizeof(note), &note) == 0) {
		if (get_padded(&c, note.n_namesz, &name) < 0 ||
		    get_padded(&c, note.n_descsz, &body) < 0)
			break;
		if (cursor_left(&name) == sizeof("CORE") && memcmp(name.pos, "CORE", 5) == 0)
			r = read_note(core, note.n_type, body);
	}
	return r;
}

/* --- segments --------------------------------------------------------------------------------- */

static int read_segment(struct core *core, const Elf64_Phdr *h)
{
	const uint64_t size = filebytes_size(core->file);
	uint64_t n = h->p_filesz;

	if (h->p_type == PT_NOTE)
		return read_notes(core, h);
	if (h->p_type != PT_LOAD || h->p_offset >= size)
		return 0;
	/* A file that was cut still has what is before its end. */
	if (n > size - h->p_offset)
		n = size - h->p_offset;
	if (n == 0 || n - 1 > UINT64_MAX - h->p_vaddr)
		return 0;
	return vec_push(&core->segments,
			{ .address = h->p_vaddr, .size = n, .offset = h->p_offset });
}

/* Return: how many program headers there are; many are counted in the first section header. */
static uint64_t count_headers(const struct core *core, const Elf64_Ehdr *header)
{
	Elf64_Shdr section;

	if (header->e_phnum != PN_XNUM)
		return header->e_phnum;
	return filebytes_copy(core->file, header->e_shoff, &section, sizeof(section))
		   ? section.sh_info
		   : 0;
}

static int by_address(const void *pa, const void *pb)
{
	const struct core_segment *a = pa, *b = pb;

	return COMPARE(a->address, b->address);
}

static int read_segments(struct core *core, const Elf64_Ehdr *header)
{
	const uint64_t n = count_headers(core, header);
	int r = 0;

	for (uint64_t i = 0; i < n && i < SEGMENTS_MAX && r == 0; i++) {
		Elf64_Phdr h;

		if (header->e_phoff > UINT64_MAX - i * sizeof(h) ||
		    !filebytes_copy(core->file, header->e_phoff + i * sizeof(h), &h, sizeof(h)))
			break;
		r = read_segment(core, &h);
	}
	vec_sort(&core->segments, by_address);
	return r;
}

bool core_read(const struct core *core, uint64_t address, void *ret_bytes, size_t size)
{
	const size_t i = vec_bisect(&core->segments, s, s->address <= address);
	const struct core_segment *s;

	if (i == 0)
		return false;
	s = &core->segments.items[i - 1];
	return address - s->address < s->size && size <= s->size - (address - s->address) &&
	       filebytes_copy(core->file, s->offset + (address - s->address), ret_bytes, size);
}

/* --- its life --------------------------------------------------------------------------------- */

static int open_core(struct core *core, const char *name, char **reterr_message)
{
	Elf64_Ehdr header;
	int r;

	if (!filebytes_copy(core->file, 0, &header, sizeof(header)) ||
	    memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
	    header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
	    header.e_type != ET_CORE || header.e_machine != EM_X86_64 ||
	    header.e_phentsize != sizeof(Elf64_Phdr))
		return message_set(reterr_message, -EBADMSG,
				   "%s: is no core file of an x86-64 process", name);
	r = read_segments(core, &header);
	if (r < 0)
		return r;
	if (core->threads.n == 0)
		return message_set(reterr_message, -ENODATA, "%s: has no threads", name);
	if (!core->has_siginfo)
		core->signal = core->threads.items[0].signal;
	core->pid = core->pid ?: core->threads.items[0].tid;
	return 0;
}

int core_open_bytes(struct filebytes *file, const char *name, struct core **ret_core,
		    char **reterr_message)
{
	_cleanup_(core_closep) struct core *core = calloc(1, sizeof(*core));
	int r;

	if (!core) {
		filebytes_unref(file);
		return -ENOMEM;
	}
	fileset_init(&core->fileset);
	core->file = file;
	r = open_core(core, name, reterr_message);
	if (r == 0)
		*ret_core = TAKE(core);
	return r;
}

int core_open(const char *path, struct core **ret_core, char **reterr_message)
{
	_cleanup_(core_closep) struct core *core = calloc(1, sizeof(*core));
	_cleanup_(fd_closep) int fd = -1;
	int r;

	if (!core)
		return -ENOMEM;
	fileset_init(&core->fileset);
	fd = regular_open(AT_FDCWD, path, 0);
	if (fd < 0)
		return message_set(reterr_message, fd, "%s: %s", path, strerror(-fd));
	r = filebytes_new(&core->fileset, path, &fd, true, &core->file);
	if (r < 0)
		return message_set(reterr_message, r, "%s: %s", path, strerror(-r));
	r = open_core(core, path, reterr_message);
	if (r == 0)
		*ret_core = TAKE(core);
	return r;
}

struct core *core_close(struct core *core)
{
	if (!core)
		return NULL;
	core->file = filebytes_unref(core->file);
	fileset_deinit(&core->fileset);
	vec_deinit(&core->segments);
	vec_deinit(&core->threads);
	free(core);
	return NULL;
}
