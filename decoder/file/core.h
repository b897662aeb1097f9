/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Core
 *
 * The core file of an x86-64 process that a signal killed, as Linux, QEMU and gcore write it: an
 * ELF file whose notes have the registers of each thread and the signal, and whose segments have
 * the memory, as far as it was written. Nothing in it is trusted.
 *
 * Sources: core(5), elf(5), and the kernel's struct elf_prstatus and struct siginfo.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/util/filebytes.h"
#include "util/vec.h"

/* Threads beyond these are left out. */
#define CORE_THREADS_MAX 65536

/* Registers by the numbers that DWARF gives them; the last one is the instruction pointer. */
enum {
	CORE_RBP = 6,
	CORE_RSP = 7,
	CORE_RIP = 16,
	_CORE_REGS,
};

struct core_thread {
	uint32_t tid;
	uint32_t signal; /* that the process was killed by, if the thread took it, or any thread */
	uint64_t regs[_CORE_REGS];
};

/* Memory that is in the file. */
struct core_segment {
	uint64_t address, size, offset;
};

struct core {
	struct fileset fileset;
	struct filebytes *file;
	VEC(struct core_segment) segments; /* by address */
	VEC(struct core_thread) threads;   /* the first one took the signal */
	uint32_t pid;     /* the first thread's tid if the file does not state it */
	bool has_siginfo; /* these are known: */
	uint32_t signal;
	int32_t signal_code;
	uint64_t signal_address; /* of SIGSEGV and its like: what could not be accessed */
};

/*
 * Open the core file at @path.
 *
 * Return: 0; or negative errno and, unless it is -ENOMEM, @reterr_message, which the caller frees:
 *         -EBADMSG if it is no such file, -ENODATA if it states no thread.
 */
_must_check_ int core_open(const char *path, struct core **ret_core, char **reterr_message);

/* The same of a file whose bytes are in @file, which is taken over. @name is for messages. */
_must_check_ int core_open_bytes(struct filebytes *file, const char *name, struct core **ret_core,
				 char **reterr_message);
struct core *core_close(struct core *core);

/* Copy @size bytes of memory at @address. Return: whether the file has them. */
bool core_read(const struct core *core, uint64_t address, void *ret_bytes, size_t size);

DEFINE_CLEANUP(struct core *, core_close);
