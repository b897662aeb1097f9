/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/emu/guest.h"

#include <elf.h>
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

/* The kernel's struct sigaction of x86-64. */
struct guest_sigaction {
	uint64_t handler;
	uint64_t flags;
	uint64_t restorer;
	uint64_t mask;
};

/*
 * The start of the frame that a signal handler finds on its stack: return address and ucontext.
 * Source: struct rt_sigframe, arch/x86/include/asm/sigframe.h.
 */
struct guest_frame {
	uint64_t pretcode;
	uint64_t uc_flags;
	uint64_t uc_link;
	uint64_t uc_stack[3];
	uint64_t r8_to_r15[8];
	uint64_t rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip;
};

#define PAGE       UINT64_C(4096)
#define FRAMES_MAX 64 /* as many as there are signals */

int guest_read(uintptr_t guest_base, uint64_t address, void *ret_bytes, size_t size)
{
	const uintptr_t host = guest_base + address;
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

int guest_read_string(uintptr_t guest_base, uint64_t address, char *ret_string, size_t size)
{
	for (size_t n = 0; n < size;) {
		/* Page by page: what lies behind the string need not be mapped. */
		size_t step = PAGE - (size_t)((address + n) % PAGE);
		int r;

		if (step > size - n)
			step = size - n;
		r = guest_read(guest_base, address + n, ret_string + n, step);
		if (r < 0)
			return r;
		if (memchr(ret_string + n, '\0', step))
			return 0;
		n += step;
	}
	ret_string[size - 1] = '\0';
	return 0;
}

static int read_auxv(uintptr_t guest_base, uint64_t at, struct guest_start *ret_start)
{
	for (unsigned i = 0; i < GUEST_STACK_WORDS_MAX / 2; i++, at += sizeof(Elf64_auxv_t)) {
		Elf64_auxv_t aux;
		const int r = guest_read(guest_base, at, &aux, sizeof(aux));

		if (r < 0)
			return r;
		switch (aux.a_type) {
		case AT_NULL:
			return 0;
		case AT_PHDR:
			ret_start->phdr = aux.a_un.a_val;
			break;
		case AT_BASE:
			ret_start->base = aux.a_un.a_val;
			break;
		case AT_EXECFN:
			ret_start->execfn = aux.a_un.a_val;
			break;
		}
	}
	return -EFAULT;
}

int guest_read_start(uintptr_t guest_base, uint64_t rsp, struct guest_start *ret_start)
{
	struct guest_start start = {};
	uint64_t argc, word, at;
	int r;

	r = guest_read(guest_base, rsp, &argc, sizeof(argc));
	if (r < 0)
		return r;
	if (argc > GUEST_STACK_WORDS_MAX)
		return -EFAULT;

	at = rsp + 8 * (1 + argc + 1);
	for (unsigned i = 0; i < GUEST_STACK_WORDS_MAX; i++, at += sizeof(word)) {
		r = guest_read(guest_base, at, &word, sizeof(word));
		if (r < 0)
			return r;
		if (word == 0)
			break;
	}
	r = read_auxv(guest_base, at + 8, &start);
	if (r == 0)
		*ret_start = start;
	return r;
}

void guest_handlers_deinit(struct guest_handlers *handlers)
{
	vec_deinit(&handlers->known);
}

static bool known(const struct guest_handlers *handlers, uint64_t address, uint64_t restorer)
{
	for (size_t i = 0; i < handlers->known.n; i++)
		if (handlers->known.items[i].address == address &&
		    handlers->known.items[i].restorer == restorer)
			return true;
	return false;
}

uint64_t guest_handlers_add(struct guest_handlers *handlers, uintptr_t guest_base, uint64_t act)
{
	struct guest_sigaction action;

	/* 0 and 1 are SIG_DFL and SIG_IGN. */
	if (act == 0 || guest_read(guest_base, act, &action, sizeof(action)) < 0 ||
	    action.handler <= 1)
		return 0;
	if (known(handlers, action.handler, action.restorer) ||
	    handlers->known.n == GUEST_HANDLERS_MAX)
		return 0;
	if (vec_push(&handlers->known, { action.handler, action.restorer }) < 0)
		return 0;
	return action.handler;
}

bool guest_handlers_have(const struct guest_handlers *handlers, uint64_t address)
{
	for (size_t i = 0; i < handlers->known.n; i++)
		if (handlers->known.items[i].address == address)
			return true;
	return false;
}

bool guest_at_handler(const struct guest_handlers *handlers, uintptr_t guest_base, uint64_t ip,
		      uint64_t rsp, uint64_t *ret_ip)
{
	bool found = false;

	for (unsigned i = 0; i < FRAMES_MAX; i++) {
		struct guest_frame frame;

		if (!guest_handlers_have(handlers, ip) ||
		    guest_read(guest_base, rsp, &frame, sizeof(frame)) < 0 ||
		    !known(handlers, ip, frame.pretcode))
			break;
		found = true;
		ip = frame.rip;
		rsp = frame.rsp;
	}
	if (found)
		*ret_ip = ip;
	return found;
}
