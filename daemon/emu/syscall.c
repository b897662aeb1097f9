/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/emu/syscall.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

/* x86-64's numbers: the guest's, whatever the host is. */
enum {
	GUEST_MMAP = 9,
	GUEST_MPROTECT = 10,
	GUEST_MUNMAP = 11,
	GUEST_RT_SIGACTION = 13,
	GUEST_MREMAP = 25,
	GUEST_EXECVE = 59,
	GUEST_EXIT = 60,
	GUEST_PRCTL = 157,
	GUEST_EXIT_GROUP = 231,
	GUEST_EXECVEAT = 322,
	GUEST_PKEY_MPROTECT = 329,
};

bool syscall_ends(int64_t number)
{
	return number == GUEST_EXIT || number == GUEST_EXIT_GROUP || syscall_executes(number);
}

bool syscall_executes(int64_t number)
{
	return number == GUEST_EXECVE || number == GUEST_EXECVEAT;
}

void syscall_enter(struct thread *thread, int64_t number, const uint64_t args[static 6])
{
	struct process *p = thread->process;

	thread->call = number;
	memcpy(thread->args, args, sizeof(thread->args));
	switch (number) {
	case GUEST_RT_SIGACTION:
		/* Before it takes effect: the first signal may be on its way. */
		process_note_handler(p, args[1]);
		break;
	case GUEST_PRCTL:
		if (args[0] != PR_SET_NAME ||
		    guest_read_string(*p->guest_base, args[1], thread->name, 16) < 0)
			thread->call = -1;
		break;
	}
}

/* The memory at @addr has new contents or a new protection. */
static void changed(struct thread *thread, uint64_t addr, uint64_t size, uint64_t prot)
{
	struct maps *maps = &thread->process->maps;

	const uint32_t rwx = prot & (PROT_READ | PROT_WRITE | PROT_EXEC);

	if (prot & PROT_EXEC)
		(void)maps_add(maps, thread->lease.who, addr, size, rwx);
	else
		maps_remove(maps, addr, size);
}

static void moved(struct thread *thread, uint64_t addr)
{
	const uint64_t *a = thread->args;
	struct maps *maps = &thread->process->maps;

	if (!maps_has(maps, a[0], a[1] ? a[1] : 1))
		return;
	maps_remove(maps, a[0], a[1]);
	(void)maps_add(maps, thread->lease.who, addr, a[2], PROT_READ | PROT_EXEC);
}

void syscall_return(struct thread *thread, int64_t number, int64_t result)
{
	const uint64_t *a = thread->args;

	const bool failed = result < 0 && result >= -4095;

	if (thread->halted) {
		thread->halted = false;
		process_go_on(thread->process);
	}
	if (thread->call != number || failed)
		return;
	switch (number) {
	case GUEST_MMAP:
		changed(thread, (uint64_t)result, a[1], a[2]);
		break;
	case GUEST_MPROTECT:
	case GUEST_PKEY_MPROTECT:
		changed(thread, a[0], a[1], a[2]);
		break;
	case GUEST_MUNMAP:
		changed(thread, a[0], a[1], 0);
		break;
	case GUEST_MREMAP:
		moved(thread, (uint64_t)result);
		break;
	case GUEST_PRCTL:
		sideband_comm(&thread->process->attach, thread->lease.who, thread->name, false);
		break;
	}
}
