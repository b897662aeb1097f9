/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Events
 *
 * What the records beside the PT say, one record an event: who mapped what, was called what, began,
 * ended, ran where; and what the recorder lost. They are what the decoder knows of threads and
 * code; lists of them are for people who wonder why it knows no more.
 */

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum ptd_event_kind {
	PTD_EVENT_MMAP,         /* mapped memory, told without inode and protection */
	PTD_EVENT_MMAP2,        /* mapped memory */
	PTD_EVENT_COMM,         /* is called @name from now on */
	PTD_EVENT_FORK,         /* was begun by @other_tid */
	PTD_EVENT_EXIT,         /* ends; @other_tid began it */
	PTD_EVENT_ITRACE_START, /* tracing starts while it runs */
	PTD_EVENT_SWITCH,       /* comes to @cpu, or leaves it */
	PTD_EVENT_SWITCH_CPU,   /* the same; @other_tid ran before or runs after it */
	PTD_EVENT_AUX,          /* PT was written: @size bytes at @offset */
	PTD_EVENT_LOST,         /* @size records were lost */
	PTD_EVENT_LOST_SAMPLES, /* @size samples were lost */
};

enum ptd_event_flags {
	PTD_EVENT_EXEC = 1,    /* COMM: by executing a program */
	PTD_EVENT_OUT = 2,     /* SWITCH: leaves; else it comes */
	PTD_EVENT_PREEMPT = 4, /* SWITCH: though it could have run on */
	PTD_EVENT_DATA = 8,    /* MMAP: not of code */
};

/* Fields that the kind does not need are 0. */
struct ptd_event {
	enum ptd_event_kind kind;
	unsigned int flags;
	uint64_t t;           /* ns on the recorder's clock; 0: before the recording */
	uint32_t cpu;         /* that it happened on; UINT32_MAX: not told */
	uint32_t current_pid; /* who ran there; UINT32_MAX: not told */
	uint32_t current_tid;
	uint32_t pid; /* whom it is about */
	uint32_t tid;
	uint32_t other_pid; /* see its kind */
	uint32_t other_tid;

	uint64_t address, size;
	uint64_t offset;    /* in the file; of AUX: in the stream */
	uint64_t aux_flags; /* PERF_AUX_FLAG_* */
	const char *name;   /* of the file or the thread; the decoder's */

	/* MMAP2. */
	uint32_t prot, map_flags; /* as of mmap(2) */
	uint8_t build_id_size;    /* 0: not told, but the four below */
	uint8_t build_id[20];
	uint32_t major, minor;
	uint64_t inode, inode_generation;
};

#ifdef __cplusplus
}
#endif
