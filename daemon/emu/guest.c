/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/emu/guest.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

/*
 * The kernel's structures for sigaction, and the start of the frames that handlers find on their
 * stacks: return address, and where the registers are.
 * Source: arch/x86/include/asm/{sigframe,sigcontext}.h, arch/x86/include/uapi/asm/sigcontext.h.
 */
struct action64 {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

struct action32 {
	uint32_t handler;
	uint32_t flags;
	uint32_t restorer;
	uint32_t mask[2];
};

struct old_action32 {
	uint32_t handler;
	uint32_t mask;
	uint32_t flags;
	uint32_t restorer;
};

struct frame64 {
	uint64_t pretcode;
	uint64_t uc_flags;
	uint64_t uc_link;
	uint64_t uc_stack[3];
	uint64_t r8_to_r15[8];
	uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip;
};

struct context32 {
	uint32_t segments[4];
	uint32_t edi, esi, ebp, esp, ebx, edx, ecx, eax, trapno, error, eip;
};

struct frame32 {
	uint32_t pretcode;
	uint32_t signal;
	struct context32 context;
};

/* Of a handler that gets a siginfo_t: what it gets lies further up. */
struct info_frame32 {
	uint32_t pretcode;
	uint32_t signal;
	uint32_t info;
	uint32_t ucontext;
};

struct ucontext32 {
	uint32_t flags;
	uint32_t link;
	uint32_t stack[3];
	struct context32 context;
};

/* In the kernel's headers, of which those of i386 need not be there. */
#define GUEST_SA_SIGINFO  0x00000004u
#define GUEST_SA_RESTORER 0x04000000u

/* An entry of /proc/self/pagemap: Documentation/admin-guide/mm/pagemap.rst. */
#define PAGEMAP_PRESENT (UINT64_C(1) << 63)
#define PAGEMAP_SWAPPED (UINT64_C(1) << 62)
#define PAGEMAP_SHARED  (UINT64_C(1) << 61) /* of a file, or of shared memory */

#define PAGE       UINT64_C(4096)
#define FRAMES_MAX 64 /* as many as there are signals */

int guest_read(const struct guest *guest, uint64_t address, void *ret_bytes, size_t size)
{
	const uintptr_t host = *guest->base + address;
	struct iovec to = { .iov_base = ret_bytes, .iov_len = size };
	struct iovec from = { .iov_base = (void *)host, .iov_len = size };
	const ssize_t n = process_vm_readv(getpid(), &to, 1, &from, 1, 0);

	if (n == (ssize_t)size)
		return 0;
	if (n >= 0 || errno == EFAULT)
		return -EFAULT;
	/* A sandbox may forbid the call. Then hope: these addresses are hardly ever bad. */
	memcpy(ret_bytes, (const void *)host, size);
	return 0;
}

bool guest_is_written(const struct guest *guest, uint64_t address, size_t size)
{
	_cleanup_(fd_closep) int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const uintptr_t host = *guest->base + address;
	bool is_written = false;
	uint64_t entry;

	for (uintptr_t page = host / PAGE; !is_written && page <= (host + size - 1) / PAGE; page++)
		is_written =
		    pread(fd, &entry, sizeof(entry), (off_t)(page * sizeof(entry))) !=
			sizeof(entry) ||
		    (entry & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED) && !(entry & PAGEMAP_SHARED));
	return is_written;
}

int guest_read_word(const struct guest *guest, uint64_t address, uint64_t *ret_word)
{
	uint64_t word = 0;
	const int r = guest_read(guest, address, &word, guest_word(guest));

	if (r == 0)
		*ret_word = word;
	return r;
}

int guest_read_string(const struct guest *guest, uint64_t address, char *ret_string, size_t size)
{
	for (size_t n = 0; n < size;) {
		/* Page by page: what lies behind the string need not be mapped. */
		size_t step = PAGE - (size_t)((address + n) % PAGE);
		int r;

		if (step > size - n)
			step = size - n;
		r = guest_read(guest, address + n, ret_string + n, step);
		if (r < 0)
			return r;
		if (memchr(ret_string + n, '\0', step))
			return 0;
		n += step;
	}
	ret_string[size - 1] = '\0';
	return 0;
}

/* --- its start -------------------------------------------------------------------------------- */

/* Pairs of words: what is told, and its value. */
static int read_auxv(const struct guest *guest, uint64_t at, struct guest_start *ret_start)
{
	const size_t word = guest_word(guest);

	for (unsigned i = 0; i < GUEST_STACK_WORDS_MAX / 2; i++, at += 2 * word) {
		uint64_t type, value;
		int r;

		r = guest_read_word(guest, at, &type);
		if (r == 0)
			r = guest_read_word(guest, at + word, &value);
		if (r < 0)
			return r;
		switch (type) {
		case AT_NULL:
			return 0;
		case AT_PHDR:
			ret_start->phdr = value;
			break;
		case AT_BASE:
			ret_start->base = value;
			break;
		case AT_EXECFN:
			ret_start->execfn = value;
			break;
		}
	}
	return -EFAULT;
}

int guest_read_start(const struct guest *guest, uint64_t rsp, struct guest_start *ret_start)
{
	const size_t size = guest_word(guest);
	struct guest_start start = {};
	uint64_t argc, word, at;
	int r;

	r = guest_read_word(guest, rsp, &argc);
	if (r < 0)
		return r;
	if (argc > GUEST_STACK_WORDS_MAX)
		return -EFAULT;

	at = rsp + size * (1 + argc + 1);
	for (unsigned i = 0; i < GUEST_STACK_WORDS_MAX; i++, at += size) {
		r = guest_read_word(guest, at, &word);
		if (r < 0)
			return r;
		if (word == 0)
			break;
	}
	r = read_auxv(guest, at + size, &start);
	if (r == 0)
		*ret_start = start;
	return r;
}

/* --- signals ---------------------------------------------------------------------------------- */

void guest_handlers_deinit(struct guest_handlers *handlers)
{
	vec_deinit(&handlers->known);
}

static bool known(const struct guest_handlers *handlers, const struct guest_handler *handler)
{
	for (size_t i = 0; i < handlers->known.n; i++) {
		const struct guest_handler *h = &handlers->known.items[i];

		if (h->address == handler->address && h->restorer == handler->restorer &&
		    h->info == handler->info)
			return true;
	}
	return false;
}

static struct guest_handler handler32(uint32_t address, uint32_t flags, uint32_t restorer)
{
	return (struct guest_handler){
		.address = address,
		.restorer = flags & GUEST_SA_RESTORER ? restorer : 0,
		.info = flags & GUEST_SA_SIGINFO,
	};
}

static int read_action(const struct guest *guest, enum guest_action kind, uint64_t act,
		       struct guest_handler *ret_handler)
{
	struct old_action32 old;
	struct action32 a32;
	struct action64 a64;
	int r;

	if (guest->mode == 64) {
		r = guest_read(guest, act, &a64, sizeof(a64));
		if (r == 0)
			*ret_handler = (struct guest_handler){ .address = a64.handler,
							       .restorer = a64.restorer };
	} else if (kind == GUEST_RT_ACTION) {
		r = guest_read(guest, act, &a32, sizeof(a32));
		if (r == 0)
			*ret_handler = handler32(a32.handler, a32.flags, a32.restorer);
	} else {
		r = guest_read(guest, act, &old, sizeof(old));
		if (r == 0)
			*ret_handler = handler32(old.handler, old.flags, old.restorer);
	}
	return r;
}

uint64_t guest_handlers_add(struct guest_handlers *handlers, const struct guest *guest,
			    enum guest_action kind, uint64_t act)
{
	struct guest_handler handler;

	/* 0 and 1 are SIG_DFL and SIG_IGN. */
	if (act == 0 || read_action(guest, kind, act, &handler) < 0 || handler.address <= 1)
		return 0;
	if (known(handlers, &handler) || handlers->known.n == GUEST_HANDLERS_MAX)
		return 0;
	if (vec_push(&handlers->known, handler) < 0)
		return 0;
	return handler.address;
}

bool guest_handlers_have(const struct guest_handlers *handlers, uint64_t address)
{
	for (size_t i = 0; i < handlers->known.n; i++)
		if (handlers->known.items[i].address == address)
			return true;
	return false;
}

/* What was interrupted by a signal: its instruction and its stack. */
struct interrupted {
	uint64_t ip;
	uint64_t rsp;
};

/* Return: whether a frame of the handler at @ip is at @rsp. */
static bool read_frame64(const struct guest_handlers *handlers, const struct guest *guest,
			 uint64_t ip, uint64_t rsp, struct interrupted *ret_at)
{
	struct frame64 frame;

	if (guest_read(guest, rsp, &frame, sizeof(frame)) < 0 ||
	    !known(handlers, &(struct guest_handler){ .address = ip, .restorer = frame.pretcode }))
		return false;
	*ret_at = (struct interrupted){ frame.rip, frame.rsp };
	return true;
}

/* Is QEMU's code at @address that returns from a signal? mov of the call's number, int $0x80. */
static bool is_own_restorer(const struct guest *guest, uint32_t address, bool info)
{
	static const uint8_t old[] = { 0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80 };
	static const uint8_t rt[] = { 0xb8, 0xad, 0, 0, 0, 0xcd, 0x80 };
	uint8_t code[sizeof(old)] = {};

	if (guest_read(guest, address, code, info ? sizeof(rt) : sizeof(old)) < 0)
		return false;
	return memcmp(code, info ? rt : old, info ? sizeof(rt) : sizeof(old)) == 0;
}

static bool returns_right(const struct guest *guest, const struct guest_handler *handler,
			  uint32_t pretcode)
{
	return handler->restorer ? handler->restorer == pretcode
				 : is_own_restorer(guest, pretcode, handler->info);
}

static bool read_context32(const struct guest *guest, const struct guest_handler *handler,
			   uint64_t esp, struct context32 *ret_context)
{
	struct info_frame32 info;
	struct ucontext32 uc;
	struct frame32 frame;

	if (handler->info) {
		if (guest_read(guest, esp, &info, sizeof(info)) < 0 ||
		    !returns_right(guest, handler, info.pretcode) ||
		    guest_read(guest, info.ucontext, &uc, sizeof(uc)) < 0)
			return false;
		*ret_context = uc.context;
		return true;
	}
	if (guest_read(guest, esp, &frame, sizeof(frame)) < 0 ||
	    !returns_right(guest, handler, frame.pretcode))
		return false;
	*ret_context = frame.context;
	return true;
}

static bool read_frame32(const struct guest_handlers *handlers, const struct guest *guest,
			 uint64_t ip, uint64_t esp, struct interrupted *ret_at)
{
	struct context32 context;

	for (size_t i = 0; i < handlers->known.n; i++) {
		const struct guest_handler *h = &handlers->known.items[i];

		if (h->address == ip && read_context32(guest, h, esp, &context)) {
			*ret_at = (struct interrupted){ context.eip, context.esp };
			return true;
		}
	}
	return false;
}

bool guest_at_handler(const struct guest_handlers *handlers, const struct guest *guest, uint64_t ip,
		      uint64_t rsp, uint64_t *ret_ip)
{
	struct interrupted at = { ip, rsp };
	bool found = false;

	for (unsigned i = 0; i < FRAMES_MAX; i++) {
		if (!guest_handlers_have(handlers, at.ip) ||
		    !(guest->mode == 64 ? read_frame64 : read_frame32)(handlers, guest, at.ip,
								       at.rsp, &at))
			break;
		found = true;
	}
	if (found)
		*ret_ip = at.ip;
	return found;
}
