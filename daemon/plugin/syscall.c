/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/syscall.h"

#include <sys/mman.h>
#include <sys/prctl.h>

/* The numbers of system calls in the target, which may differ from those of QEMU. */
static enum syscall_kind syscall_kind64(int64_t number)
{
	switch (number) {
	case 9:
		return SYSCALL_MMAP;
	case 10:  /* mprotect */
	case 329: /* pkey_mprotect */
		return SYSCALL_MPROTECT;
	case 11:
		return SYSCALL_MUNMAP;
	case 13: /* rt_sigaction */
		return SYSCALL_SIGACTION;
	case 25:
		return SYSCALL_MREMAP;
	case 59:
		return SYSCALL_EXECVE;
	case 60:
		return SYSCALL_EXIT;
	case 231:
		return SYSCALL_EXIT_GROUP;
	case 157:
		return SYSCALL_PRCTL;
	case 322:
		return SYSCALL_EXECVEAT;
	default:
		return SYSCALL_OTHER;
	}
}

static enum syscall_kind syscall_kind32(int64_t number)
{
	switch (number) {
	case 1:
		return SYSCALL_EXIT;
	case 252:
		return SYSCALL_EXIT_GROUP;
	case 11:
		return SYSCALL_EXECVE;
	case 67:
		return SYSCALL_SIGACTION_OLD;
	case 90:
		return SYSCALL_MMAP_OLD;
	case 91:
		return SYSCALL_MUNMAP;
	case 125: /* mprotect */
	case 380: /* pkey_mprotect */
		return SYSCALL_MPROTECT;
	case 163:
		return SYSCALL_MREMAP;
	case 172:
		return SYSCALL_PRCTL;
	case 174: /* rt_sigaction */
		return SYSCALL_SIGACTION;
	case 192: /* mmap2 */
		return SYSCALL_MMAP;
	case 358:
		return SYSCALL_EXECVEAT;
	default:
		return SYSCALL_OTHER;
	}
}

enum syscall_kind syscall_kind(const struct target *target, int64_t number)
{
	return target->mode == 32 ? syscall_kind32(number) : syscall_kind64(number);
}

/* Read the arguments of mmap from the structure at args[0]. */
static void fetch_args(struct thread *thread)
{
	const struct target *target = &thread->process->target;
	uint32_t words[6];

	if (target_read(target, thread->args[0], words, sizeof(words)) < 0) {
		thread->call = SYSCALL_OTHER;
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		thread->args[i] = words[i];
}

void syscall_enter(struct thread *thread, enum syscall_kind kind, const uint64_t args[static 6])
{
	struct process *p = thread->process;

	thread->call = kind;
	for (size_t i = 0; i < ARRAY_LEN(thread->args); i++)
		thread->args[i] = target_cut(&p->target, args[i]);
	args = thread->args;
	switch (kind) {
	case SYSCALL_SIGACTION:
		/* This comes before the call takes effect, because the first signal may already be
		 * pending. */
		process_note_handler(p, TARGET_RT_ACTION, args[1]);
		break;
	case SYSCALL_SIGACTION_OLD:
		process_note_handler(p, TARGET_OLD_ACTION, args[1]);
		break;
	case SYSCALL_MMAP_OLD:
		fetch_args(thread);
		break;
	case SYSCALL_PRCTL:
		if (args[0] != PR_SET_NAME ||
		    target_read_string(&p->target, args[1], thread->name, 16) < 0)
			thread->call = SYSCALL_OTHER;
		break;
	default:
		break;
	}
}

/* Note that the memory at @addr has new contents or a new protection. */
static void changed(struct thread *thread, uint64_t addr, uint64_t size, uint64_t prot)
{
	struct maps *maps = &thread->process->maps;
	const uint32_t rwx = prot & (PROT_READ | PROT_WRITE | PROT_EXEC);

	if (prot & PROT_WRITE)
		maps_note_writable(maps, addr, size);
	if (prot & PROT_EXEC)
		(void)maps_add(maps, thread->lease.who, addr, size, rwx);
	else
		maps_remove(maps, addr, size);
}

static void memory_moved(struct thread *thread, uint64_t addr)
{
	const uint64_t *a = thread->args;
	struct maps *maps = &thread->process->maps;

	if (!maps_has(maps, a[0], a[1] ? a[1] : 1))
		return;
	maps_remove(maps, a[0], a[1]);
	(void)maps_add(maps, thread->lease.who, addr, a[2], PROT_READ | PROT_EXEC);
}

void syscall_return(struct thread *thread, enum syscall_kind kind, int64_t result)
{
	const uint64_t *a = thread->args;
	const uint64_t address = target_cut(&thread->process->target, (uint64_t)result);
	const bool failed = result < 0 && result >= -4095;

	if (thread->halted) {
		thread->halted = false;
		process_go_on(thread->process);
	}
	if (thread->call != (int)kind || failed)
		return;
	switch (kind) {
	case SYSCALL_MMAP:
	case SYSCALL_MMAP_OLD:
		changed(thread, address, a[1], a[2]);
		break;
	case SYSCALL_MPROTECT:
		changed(thread, a[0], a[1], a[2]);
		break;
	case SYSCALL_MUNMAP:
		changed(thread, a[0], a[1], 0);
		break;
	case SYSCALL_MREMAP:
		memory_moved(thread, address);
		break;
	case SYSCALL_PRCTL:
		poolrecord_comm(&thread->process->attach, thread->lease.who, thread->name, false);
		break;
	default:
		break;
	}
}
