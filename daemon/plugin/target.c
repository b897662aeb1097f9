/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/target.h"

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

/* For a handler that gets a siginfo_t, whose frame has more above. */
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

/*
 * QEMU 7.2 places frames so that the state of the FPU, @fpstate bytes after the start of
 * a frame, is aligned. The start then is a multiple of 16. The ABI wants that of the address above
 * the return address. For x86-64 there is room for moving the frame up, between it and that state.
 * For i386 it goes down by a word, where the handler would write next.
 * Source: QEMU 7.2, linux-user/i386/signal.c.
 */
struct layout {
	uint8_t mode;
	bool has_info;       /* i386 only: it has a siginfo_t */
	uint16_t size;       /* of what is moved */
	uint16_t fpstate_at; /* where the address of the FPU's state is */
	uint16_t fpstate;
	int8_t move;
};

static const struct layout layouts[] = {
	{ 64, false, 440, 232, 448, 8 },
	{ 32, true, 268, 240, 272, -4 },
	{ 32, false, 732, 84, 736, -4 },
};

#define FRAME_SIZE_MAX 736

/* As in the kernel's headers, which may not be installed for i386. */
#define TARGET_SA_SIGINFO  0x00000004u
#define TARGET_SA_RESTORER 0x04000000u

/* An entry of /proc/self/pagemap: Documentation/admin-guide/mm/pagemap.rst. */
#define PAGEMAP_PRESENT (UINT64_C(1) << 63)
#define PAGEMAP_SWAPPED (UINT64_C(1) << 62)
#define PAGEMAP_SHARED  (UINT64_C(1) << 61) /* the page is of a file, or of shared memory */

#define PAGE       UINT64_C(4096)
#define FRAMES_MAX 64 /* as many as there are signals */

typedef ssize_t (*vm_copy_fn)(pid_t pid, const struct iovec *local, unsigned long n_local,
			      const struct iovec *remote, unsigned long n_remote,
			      unsigned long flags);

/* Copy between the @own memory and the target's at @host by the call @copy. */
static int copy_memory(vm_copy_fn copy, void *own, void *host, size_t size)
{
	const struct iovec local = { .iov_base = own, .iov_len = size };
	const struct iovec remote = { .iov_base = host, .iov_len = size };
	const ssize_t n = copy(getpid(), &local, 1, &remote, 1, 0);

	if (n == (ssize_t)size)
		return 0;
	if (n >= 0 || errno == EFAULT)
		return -EFAULT;
	/* A sandbox may forbid the call. Then the memory is used directly, because these addresses
	 * are hardly ever invalid. */
	memcpy(copy == process_vm_readv ? own : host, copy == process_vm_readv ? host : own, size);
	return 0;
}

int target_read(const struct target *target, uint64_t address, void *ret_bytes, size_t size)
{
	return copy_memory(process_vm_readv, ret_bytes, (void *)(*target->base + address), size);
}

static int target_write(const struct target *target, uint64_t address, void *bytes, size_t size)
{
	return copy_memory(process_vm_writev, bytes, (void *)(*target->base + address), size);
}

bool target_is_written(const struct target *target, uint64_t address, size_t size)
{
	_cleanup_(fd_closep) int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	const uintptr_t host = *target->base + address;
	bool is_written = false;
	uint64_t entry;

	for (uintptr_t page = host / PAGE; !is_written && page <= (host + size - 1) / PAGE; page++)
		is_written =
		    pread(fd, &entry, sizeof(entry), (off_t)(page * sizeof(entry))) !=
			sizeof(entry) ||
		    (entry & (PAGEMAP_PRESENT | PAGEMAP_SWAPPED) && !(entry & PAGEMAP_SHARED));
	return is_written;
}

int target_read_word(const struct target *target, uint64_t address, uint64_t *ret_word)
{
	uint64_t word = 0;
	const int r = target_read(target, address, &word, target_word(target));

	if (r == 0)
		*ret_word = word;
	return r;
}

int target_read_string(const struct target *target, uint64_t address, char *ret_string, size_t size)
{
	for (size_t n = 0; n < size;) {
		/* Read page by page, because memory after the string may not be mapped. */
		size_t step = PAGE - (size_t)((address + n) % PAGE);
		int r;

		if (step > size - n)
			step = size - n;
		r = target_read(target, address + n, ret_string + n, step);
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

/* The entries are pairs of words: type and value. */
static int read_auxv(const struct target *target, uint64_t at, struct target_start *ret_start)
{
	const size_t word = target_word(target);

	for (unsigned i = 0; i < TARGET_STACK_WORDS_MAX / 2; i++, at += 2 * word) {
		uint64_t type, value;
		int r;

		r = target_read_word(target, at, &type);
		if (r == 0)
			r = target_read_word(target, at + word, &value);
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

int target_read_start(const struct target *target, uint64_t rsp, struct target_start *ret_start)
{
	const size_t size = target_word(target);
	struct target_start start = {};
	uint64_t argc, word, at;
	int r;

	r = target_read_word(target, rsp, &argc);
	if (r < 0)
		return r;
	if (argc > TARGET_STACK_WORDS_MAX)
		return -EFAULT;

	at = rsp + size * (1 + argc + 1);
	for (unsigned i = 0; i < TARGET_STACK_WORDS_MAX; i++, at += size) {
		r = target_read_word(target, at, &word);
		if (r < 0)
			return r;
		if (word == 0)
			break;
	}
	r = read_auxv(target, at + size, &start);
	if (r == 0)
		*ret_start = start;
	return r;
}

/* --- signals ---------------------------------------------------------------------------------- */

static bool handler_is_known(const struct target_handlers *handlers,
			     const struct target_handler *handler)
{
	for (size_t i = 0; i < handlers->known.n; i++) {
		const struct target_handler *h = &handlers->known.items[i];

		if (h->address == handler->address && h->restorer == handler->restorer &&
		    h->info == handler->info)
			return true;
	}
	return false;
}

static struct target_handler handler32(uint32_t address, uint32_t flags, uint32_t restorer)
{
	return (struct target_handler){
		.address = address,
		.restorer = flags & TARGET_SA_RESTORER ? restorer : 0,
		.info = flags & TARGET_SA_SIGINFO,
	};
}

static int read_action(const struct target *target, enum target_action kind, uint64_t act,
		       struct target_handler *ret_handler)
{
	struct old_action32 old;
	struct action32 a32;
	struct action64 a64;
	int r;

	if (target->mode == 64) {
		r = target_read(target, act, &a64, sizeof(a64));
		if (r == 0)
			*ret_handler = (struct target_handler){ .address = a64.handler,
								.restorer = a64.restorer };
	} else if (kind == TARGET_RT_ACTION) {
		r = target_read(target, act, &a32, sizeof(a32));
		if (r == 0)
			*ret_handler = handler32(a32.handler, a32.flags, a32.restorer);
	} else {
		r = target_read(target, act, &old, sizeof(old));
		if (r == 0)
			*ret_handler = handler32(old.handler, old.flags, old.restorer);
	}
	return r;
}

uint64_t target_handlers_add(struct target_handlers *handlers, const struct target *target,
			     enum target_action kind, uint64_t act)
{
	struct target_handler handler;

	/* 0 and 1 are SIG_DFL and SIG_IGN. */
	if (act == 0 || read_action(target, kind, act, &handler) < 0 || handler.address <= 1)
		return 0;
	if (handler_is_known(handlers, &handler) || handlers->known.n == TARGET_HANDLERS_MAX)
		return 0;
	if (vec_push(&handlers->known, handler) < 0)
		return 0;
	return handler.address;
}

bool target_handlers_have(const struct target_handlers *handlers, uint64_t address)
{
	for (size_t i = 0; i < handlers->known.n; i++)
		if (handlers->known.items[i].address == address)
			return true;
	return false;
}

/* The instruction and the stack pointer that a signal interrupted. */
struct interrupted {
	uint64_t ip;
	uint64_t rsp;
};

/* Return: whether a frame of the handler at @ip is at @rsp. */
static bool read_frame64(const struct target_handlers *handlers, const struct target *target,
			 uint64_t ip, uint64_t rsp, struct interrupted *ret_at)
{
	struct frame64 frame;

	if (target_read(target, rsp, &frame, sizeof(frame)) < 0 ||
	    !handler_is_known(
		handlers, &(struct target_handler){ .address = ip, .restorer = frame.pretcode }))
		return false;
	*ret_at = (struct interrupted){ frame.rip, frame.rsp };
	return true;
}

/* Return: whether QEMU's code that returns from a signal is at @address: mov of the call's number,
 * int $0x80. */
static bool is_own_restorer(const struct target *target, uint32_t address, bool info)
{
	static const uint8_t old[] = { 0x58, 0xb8, 0x77, 0, 0, 0, 0xcd, 0x80 };
	static const uint8_t rt[] = { 0xb8, 0xad, 0, 0, 0, 0xcd, 0x80 };
	uint8_t code[sizeof(old)] = {};

	if (target_read(target, address, code, info ? sizeof(rt) : sizeof(old)) < 0)
		return false;
	return memcmp(code, info ? rt : old, info ? sizeof(rt) : sizeof(old)) == 0;
}

static bool returns_right(const struct target *target, const struct target_handler *handler,
			  uint32_t pretcode)
{
	return handler->restorer ? handler->restorer == pretcode
				 : is_own_restorer(target, pretcode, handler->info);
}

static bool read_context32(const struct target *target, const struct target_handler *handler,
			   uint64_t esp, struct context32 *ret_context)
{
	struct info_frame32 info;
	struct ucontext32 uc;
	struct frame32 frame;

	if (handler->info) {
		if (target_read(target, esp, &info, sizeof(info)) < 0 ||
		    !returns_right(target, handler, info.pretcode) ||
		    target_read(target, info.ucontext, &uc, sizeof(uc)) < 0)
			return false;
		*ret_context = uc.context;
		return true;
	}
	if (target_read(target, esp, &frame, sizeof(frame)) < 0 ||
	    !returns_right(target, handler, frame.pretcode))
		return false;
	*ret_context = frame.context;
	return true;
}

static bool read_frame32(const struct target_handlers *handlers, const struct target *target,
			 uint64_t ip, uint64_t esp, struct interrupted *ret_at)
{
	struct context32 context;

	for (size_t i = 0; i < handlers->known.n; i++) {
		const struct target_handler *h = &handlers->known.items[i];

		if (h->address == ip && read_context32(target, h, esp, &context)) {
			*ret_at = (struct interrupted){ context.eip, context.esp };
			return true;
		}
	}
	return false;
}

bool target_at_handler(const struct target_handlers *handlers, const struct target *target,
		       uint64_t ip, uint64_t rsp, uint64_t *ret_ip)
{
	struct interrupted at = { ip, rsp };
	bool found = false;

	for (unsigned i = 0; i < FRAMES_MAX; i++) {
		if (!target_handlers_have(handlers, at.ip) ||
		    !(target->mode == 64 ? read_frame64 : read_frame32)(handlers, target, at.ip,
									at.rsp, &at))
			break;
		found = true;
	}
	if (found)
		*ret_ip = at.ip;
	return found;
}

uint32_t target_handler_signal(const struct target *target, uint64_t esp)
{
	uint32_t start[2];

	return target_read(target, esp, start, sizeof(start)) < 0 ? 0 : start[1];
}

/* Read what a frame of that layout has at @rsp. Return: whether one is there. */
static bool read_layout(const struct target *target, const struct layout *layout, uint64_t rsp,
			uint8_t ret_frame[static FRAME_SIZE_MAX])
{
	struct info_frame32 start;
	uint64_t fpstate = 0;

	if (layout->mode != target->mode || target_read(target, rsp, ret_frame, layout->size) < 0)
		return false;
	memcpy(&fpstate, ret_frame + layout->fpstate_at, target_word(target));
	memcpy(&start, ret_frame, sizeof(start));
	return fpstate == rsp + layout->fpstate &&
	       (!layout->has_info || start.info == rsp + sizeof(start));
}

struct target_move target_align_frame(const struct target *target, uint64_t rsp)
{
	uint8_t frame[FRAME_SIZE_MAX];

	if (rsp % 16 != 0)
		return (struct target_move){};
	for (size_t i = 0; i < ARRAY_LEN(layouts); i++) {
		const struct layout *l = &layouts[i];
		struct info_frame32 *start = (struct info_frame32 *)frame;

		if (!read_layout(target, l, rsp, frame))
			continue;
		if (l->has_info) {
			start->info += (uint32_t)l->move;
			start->ucontext += (uint32_t)l->move;
		}
		if (target_write(target, rsp + (uint64_t)l->move, frame, l->size) < 0)
			break;
		return (struct target_move){ l->move, l->mode == 64 || l->has_info };
	}
	return (struct target_move){};
}
