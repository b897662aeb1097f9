/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Sideband
 *
 * Each record of the sideband says that a thread mapped a file, was given a name, began, ended, or
 * ran on a CPU, or that the recorder lost something. All that the decoder knows of threads and of
 * their code comes from these records. A list of them helps to find out why it knows no more.
 */

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a record reports, as a rule of the thread @tid. */
enum ptd_sideband_kind {
	PTD_SIDEBAND_MMAP,         /* mapped memory; inode and protection are not known */
	PTD_SIDEBAND_MMAP2,        /* mapped memory */
	PTD_SIDEBAND_COMM,         /* has the name @name from now on */
	PTD_SIDEBAND_FORK,         /* begins; @other_tid started it */
	PTD_SIDEBAND_EXIT,         /* ends; @other_tid started it; see @signal */
	PTD_SIDEBAND_ITRACE_START, /* tracing starts while it runs */
	PTD_SIDEBAND_SWITCH,       /* comes to @cpu, or leaves it */
	PTD_SIDEBAND_SWITCH_CPU,   /* the same; @other_tid ran before or runs after it */
	PTD_SIDEBAND_AUX,          /* PT was written: @size bytes at @offset */
	PTD_SIDEBAND_LOST,         /* @size records were lost */
	PTD_SIDEBAND_LOST_SAMPLES, /* @size samples were lost */
	PTD_SIDEBAND_SIGNAL,       /* takes the signal @signal, whose handler is at @address (0: the
				    * default action; 1: it is ignored), for the reason @code */
	PTD_SIDEBAND_SYSCALL,      /* enters the system call @number */
};

enum ptd_sideband_flags {
	PTD_SIDEBAND_EXEC = 1,    /* COMM: by executing a program */
	PTD_SIDEBAND_OUT = 2,     /* SWITCH: the thread leaves the CPU; without the flag it comes */
	PTD_SIDEBAND_PREEMPT = 4, /* SWITCH: the thread leaves although it could have run on */
	PTD_SIDEBAND_DATA = 8,    /* MMAP: the mapping is not executable */
};

/* The recording does not state the code of the signal. */
#define PTD_SIDEBAND_NO_CODE INT32_MIN

/* Fields that the kind does not need are 0. */
struct ptd_sideband {
	enum ptd_sideband_kind kind;
	unsigned int flags;
	uint64_t t;           /* ns on the recorder's clock; 0: before the recording */
	uint32_t cpu;         /* on which it happened; UINT32_MAX: not known */
	uint32_t current_pid; /* process that ran there then; UINT32_MAX: not known */
	uint32_t current_tid;
	uint32_t pid; /* process and thread that the record is about */
	uint32_t tid;
	uint32_t other_pid; /* see enum ptd_sideband_kind */
	uint32_t other_tid;

	uint64_t address;   /* of the mapping; else as enum ptd_sideband_kind says */
	uint64_t size;      /* of the mapping, in bytes; else as enum ptd_sideband_kind says */
	uint64_t offset;    /* in the file; of AUX: in the PT of the CPU */
	uint64_t aux_flags; /* PERF_AUX_FLAG_* */
	const char *name;   /* of the file or the thread; belongs to the decoder */

	/* Only of MMAP2. */
	uint32_t prot, map_flags; /* as of mmap(2) */
	uint8_t build_id_size;    /* 0: not known, but the four fields below are */
	uint8_t build_id[20];
	uint32_t major, minor;
	uint64_t inode, inode_generation;

	/*
	 * Of EXIT: the signal that killed the process, if the thread took it, and the recorder
	 * knows: the software source does, hardware does not. 0: none is known.
	 */
	uint32_t signal;

	int32_t code;    /* of SIGNAL: si_code of sigaction(2), or PTD_SIDEBAND_NO_CODE */
	uint64_t number; /* of SYSCALL */
};

#ifdef __cplusplus
}
#endif
