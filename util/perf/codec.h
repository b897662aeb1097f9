/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Codec
 *
 * The perf records that ptd writes or reads: for each type its fields, the one function that writes
 * it, and the one that reads it. The daemon, its plugin for QEMU, the decoder and the builders of
 * the tests all go through here; what only the kernel writes, tests write
 * (tests/lib/kernelrecord.h).
 *
 * A writer makes a whole record in the caller's memory, allocates nothing and takes no lock. It
 * returns the record's size, or 0 if @room bytes are too few; RECORD_OWN_MAX bytes are enough for
 * each that ptd writes.
 *
 * A reader takes the body of a record, which is what stands between its header and its trailer,
 * and does not trust it. It returns 0, or -EBADMSG if the body is too short, or its string does not
 * end. Bytes behind the fields are ignored, as newer kernels add some. Strings and runs of bytes
 * stay where they are, in the body.
 *
 * FINISHED_ROUND has no fields, and ptd does not read TIME_CONV: these have a writer only.
 * NAMESPACES, CGROUP and AUX_OUTPUT_HW_ID are of no use here. The body of a SAMPLE is laid
 * out as its event says (decoder/file/perfsample.h).
 *
 * Source: <linux/perf_event.h>, the comments of enum perf_event_type; for the types from 64 on, the
 * kernel's tools/lib/perf/include/perf/event.h and perf.data-file-format.txt.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "base/cursor.h"
#include "util/buildid.h"
#include "util/perf/perfabi.h"
#include "util/perf/trailer.h"

/*
 * What all perf records have in common: a header that states the type and the size, then the body,
 * then the trailer if the kernel makes such records. A frame writes one record into
 * the caller's memory: it allocates nothing and takes no lock, so that it may be used in a signal
 * handler.
 */

struct trailer;

struct frame {
	uint8_t *bytes; /* borrowed, like the room */
	size_t room;
	size_t size; /* that is wanted so far: more than the room if the record does not fit */
};

/* Begin a record in the @room bytes at @to. */
void frame_begin(struct frame *frame, uint32_t type, uint16_t misc, void *to, size_t room);

/* Add @size bytes to the body. */
void frame_put(struct frame *frame, const void *bytes, size_t size);

/* Add a string with its NUL, and with zeros, until all that is a multiple of @alignment bytes. */
void frame_put_string(struct frame *frame, const char *string, size_t alignment);

/*
 * Complete the record. Of the kernel's own the body is padded to 8 bytes, and the trailer follows;
 * of those that perf adds @trailer is NULL, and the body stays as it is.
 *
 * Return: the size of the record; 0 if there is no room for it, or no record is that large.
 */
_must_check_ size_t frame_end(struct frame *frame, const struct trailer *trailer);

struct tsc_conv;

/* Event ids: the snapshot's attrs. Its trailers may hold the first two only. */
#define RECORD_ID_PT        UINT64_C(1)
#define RECORD_ID_SIDEBAND  UINT64_C(2)
#define RECORD_ID_SYS_ENTER UINT64_C(3)
#define RECORD_ID_SIGNAL    UINT64_C(4)

/* Size of the largest record: a multiple of 8 that fits perf_event_header.size. */
#define RECORD_SIZE_MAX 65528u

/* A name of this many bytes, its NUL counted, or more is "//toolong" in a mapping: the kernel's
 * PATH_MAX, and so its rule. */
#define RECORD_NAME_MAX 4096u

/* Size of the largest record that the daemon or its plugin writes: MMAP2 with a longest name. */
#define RECORD_OWN_MAX (8 + 64 + RECORD_NAME_MAX + TRAILER_SIZE)

/* A thread's name, with its NUL. */
#define RECORD_COMM_SIZE 16

/* The trailer of a record that ptd makes of itself: of task @pid/@tid, at @time in ns. */
static inline struct trailer record_trailer(uint32_t pid, uint32_t tid, uint64_t time)
{
	return (struct trailer){ .pid = pid, .tid = tid, .time = time, .id = RECORD_ID_SIDEBAND };
}

/* Takes one whole record. Return: 0, or negative errno. */
typedef int (*record_put_fn)(void *userdata, const void *bytes, size_t size);

/* --- mappings --------------------------------------------------------------------------------- */

/* MMAP2; and MMAP, where all from @build_id to @flags is 0. */
struct record_mmap2 {
	uint16_t misc; /* of PERF_RECORD_MISC_*: whose mapping it is, and whether it is of data */
	uint32_t pid;  /* UINT32_MAX: the kernel's own */
	uint32_t tid;
	uint64_t addr;
	uint64_t len;
	uint64_t pgoff;          /* in the file, in bytes */
	struct buildid build_id; /* size 0 if the record carries none */
	uint32_t maj, min;       /* device and inode of the file; 0 if it carries a build-id */
	uint64_t ino, ino_generation;
	uint32_t prot;    /* PROT_READ, … */
	uint32_t flags;   /* MAP_SHARED, MAP_PRIVATE, … */
	const char *name; /* ended by NUL */
};

/* MMAP has no more than address, length, offset and name. */
size_t record_write_mmap(const struct record_mmap2 *mmap, const struct trailer *trailer, void *to,
			 size_t room);
size_t record_write_mmap2(const struct record_mmap2 *mmap2, const struct trailer *trailer, void *to,
			  size_t room);

/* Read an MMAP or MMAP2, as @type says; another type is -EBADMSG, and so is a build-id of more than
 * BUILDID_MAX bytes. */
_must_check_ int record_read_mmap2(uint32_t type, uint16_t misc, struct cursor body,
				   struct record_mmap2 *ret_mmap2);

/* Return: whether a process can execute what an MMAP or MMAP2, as @type says, tells of. What is of
 * the kernel's own address space, or of a guest, it cannot. */
bool record_maps_code(uint32_t type, const struct record_mmap2 *mmap2);

/* --- tasks ------------------------------------------------------------------------------------ */

/* Read whom a COMM, FORK, EXIT, MMAP or MMAP2 is about; another type is -EBADMSG. */
_must_check_ int record_read_pid(uint32_t type, struct cursor body, uint32_t *ret_pid);

/* COMM: thread @tid of process @pid is called @comm from now on. */
struct record_comm {
	bool exec; /* because another program was executed */
	uint32_t pid;
	uint32_t tid;
	const char *comm; /* ended by NUL; of a damaged record NULL */
};

size_t record_write_comm(const struct record_comm *comm, const struct trailer *trailer, void *to,
			 size_t room);

/* A name that does not end is not an error: that the thread executed something is still known. */
_must_check_ int record_read_comm(uint16_t misc, struct cursor body, struct record_comm *ret_comm);

/*
 * FORK and EXIT. The parent of a process that ends is its parent process; that of a new thread is
 * the thread that made it.
 *
 * If a signal kills a process, ptd's plugin adds the signal to the EXIT of the thread that took it,
 * behind the kernel's fields: u32 RECORD_EXIT_SIGNAL, u32 signal. Other readers pass over that, as
 * they must over the fields of newer kernels.
 */
#define RECORD_EXIT_SIGNAL UINT32_C(0x67695364) /* "dSig" */
struct record_task {
	uint32_t pid;
	uint32_t ppid;
	uint32_t tid;
	uint32_t ptid;
	uint64_t time;   /* in ns */
	uint32_t signal; /* of EXIT: that the thread took, and that killed its process; 0: none */
};

size_t record_write_fork(const struct record_task *fork, const struct trailer *trailer, void *to,
			 size_t room);
size_t record_write_exit(const struct record_task *exit, const struct trailer *trailer, void *to,
			 size_t room);
_must_check_ int record_read_task(struct cursor body, struct record_task *ret_task);

/* --- who runs --------------------------------------------------------------------------------- */

struct record_ids {
	uint32_t pid;
	uint32_t tid;
};

/* ITRACE_START: who ran on the CPU when its PT began. */
size_t record_write_itrace_start(const struct record_ids *who, const struct trailer *trailer,
				 void *to, size_t room);
_must_check_ int record_read_itrace_start(struct cursor body, struct record_ids *ret_who);

/* Size of an ITRACE_START, and of a SWITCH_CPU_WIDE, with the trailer of PERFABI_SAMPLE_TYPE. */
#define RECORD_SWITCH_SIZE (8 + 8 + TRAILER_SIZE)

/* SWITCH_CPU_WIDE: the task of the trailer leaves the CPU, or comes to it. */
struct record_switch {
	bool out;                /* it leaves */
	bool preempt;            /* it leaves, but could have gone on */
	struct record_ids other; /* who comes next, or was there before */
};

size_t record_write_switch_cpu_wide(const struct record_switch *sw, const struct trailer *trailer,
				    void *to, size_t room);

/* Read a SWITCH or SWITCH_CPU_WIDE, as @type says; of the former the other is 0/0. */
_must_check_ int record_read_switch(uint32_t type, uint16_t misc, struct cursor body,
				    struct record_switch *ret_switch);

/* --- samples of tracepoints ------------------------------------------------------------------- */

/*
 * SAMPLE of an event that follows a tracepoint of the kernel: what a snapshot of the software
 * source has of system calls and signals. The sample_type of the events is RECORD_SAMPLE_TYPE.
 * Their attr.config, and where the raw data have their fields, are below; a perf.data file says so
 * in TRACING_DATA, because both differ from kernel to kernel. These are samples of no kernel:
 * fields that the source does not know are not there, and the address of the instruction is 0.
 *
 * @who: the thread, its CPU and the time
 */
#define RECORD_SAMPLE_TYPE          (PERFABI_SAMPLE_TYPE | PERF_SAMPLE_RAW)
#define RECORD_TRACEPOINT_SYS_ENTER 1u
#define RECORD_TRACEPOINT_SIGNAL    2u

/* What the raw data of every tracepoint begin with. */
struct record_raw_common {
	uint16_t type; /* attr.config */
	uint8_t flags, preempt_count;
	int32_t pid; /* the kernel's number of the thread */
};

struct record_raw_sys_enter {
	struct record_raw_common common;
	int64_t id; /* number of the system call */
};

struct record_raw_signal {
	struct record_raw_common common;
	int32_t sig;
	uint32_t reserved;
	uint64_t handler; /* sa_handler is a macro */
};

size_t record_write_sys_enter(uint32_t number, const struct trailer *who, void *to, size_t room);
size_t record_write_signal_deliver(uint32_t signal, uint64_t handler, const struct trailer *who,
				   void *to, size_t room);

/* --- the AUX ring, and what is lost ----------------------------------------------------------- */

/* AUX: bytes that were written to the AUX ring. */
struct record_aux {
	uint64_t offset;
	uint64_t size;
	uint64_t flags; /* PERF_AUX_FLAG_* */
};

_must_check_ int record_read_aux(struct cursor body, struct record_aux *ret_aux);

/* LOST: @lost records of the event with this @id are missing. */
struct record_lost {
	uint64_t id;
	uint64_t lost;
};

size_t record_write_lost(const struct record_lost *lost, const struct trailer *trailer, void *to,
			 size_t room);
_must_check_ int record_read_lost(struct cursor body, struct record_lost *ret_lost);

/* LOST_SAMPLES: @lost samples are missing. */
_must_check_ int record_read_lost_samples(struct cursor body, uint64_t *ret_lost);

/* --- the kernel's code ------------------------------------------------------------------------ */

/* KSYMBOL: a function that was put somewhere, or is there no more. */
struct record_ksymbol {
	uint64_t addr;
	uint32_t len;
	uint16_t ksym_type; /* PERF_RECORD_KSYMBOL_TYPE_* */
	uint16_t flags;     /* PERF_RECORD_KSYMBOL_FLAGS_* */
	const char *name;   /* ended by NUL */
};

_must_check_ int record_read_ksymbol(struct cursor body, struct record_ksymbol *ret_ksymbol);

/* BPF_EVENT: a program was loaded or unloaded. */
struct record_bpf_event {
	uint16_t type; /* PERF_BPF_EVENT_* */
	uint16_t flags;
	uint32_t id;
	uint64_t tag;
};

_must_check_ int record_read_bpf_event(struct cursor body, struct record_bpf_event *ret_bpf);

/* TEXT_POKE: the kernel changed its code at @addr. */
struct record_text_poke {
	uint64_t addr;
	uint16_t old_len;
	uint16_t new_len;
	const uint8_t *old_bytes;
	const uint8_t *new_bytes;
};

_must_check_ int record_read_text_poke(struct cursor body, struct record_text_poke *ret_poke);

/* --- the records that perf adds --------------------------------------------------------------- */

/* BUILD_ID: an entry of the table of build-ids. It has no trailer, like all that follow. */
struct record_build_id {
	uint16_t cpumode; /* PERF_RECORD_MISC_USER, … */
	int32_t pid;      /* -1: of any */
	struct buildid build_id;
	const char *path; /* ended by NUL; shorter than RECORD_NAME_MAX */
};

size_t record_write_build_id(const struct record_build_id *build_id, void *to, size_t room);

/* Where the record does not say how long the id is, it has BUILDID_MAX bytes. More are -EBADMSG. */
_must_check_ int record_read_build_id(uint16_t misc, struct cursor body,
				      struct record_build_id *ret_build_id);

/* AUXTRACE: the record is followed by @size bytes of PT, which its header does not count. */
struct record_auxtrace {
	uint64_t size;
	uint64_t offset;    /* in the endless stream of the CPU or thread */
	uint64_t reference; /* a TSC near the end */
	uint32_t idx;
	int32_t tid; /* -1: of a CPU */
	int32_t cpu; /* -1: of a thread */
};

#define RECORD_AUXTRACE_SIZE 48 /* without the PT */

size_t record_write_auxtrace(const struct record_auxtrace *auxtrace, void *to, size_t room);
_must_check_ int record_read_auxtrace(struct cursor body, struct record_auxtrace *ret_auxtrace);

/* AUXTRACE_INFO of Intel PT: how the PT was made. */
struct record_auxtrace_info {
	uint32_t type;                           /* PERFABI_AUXTRACE_INTEL_PT, or a foreign one */
	uint64_t slots[_PERFABI_PT_SLOTS_FIXED]; /* by enum perfabi_pt_slot; 0 if not stated */
	/* The address filter, as long as its slot says, without NUL; NULL: there is none, or not
	 * all of it is in the record. */
	const char *filter;
	/* What newer perfs put behind it; the reader leaves them out. */
	const uint64_t *more;
	size_t n_more;
};

size_t record_write_auxtrace_info(const struct record_auxtrace_info *info, void *to, size_t room);

/* An old perf has fewer slots. -EBADMSG: it does not even say what type it is. */
_must_check_ int record_read_auxtrace_info(struct cursor body,
					   struct record_auxtrace_info *ret_info);

/* TIME_CONV: how the TSC belongs to the records' times. ptdecode reads that in AUXTRACE_INFO. */
size_t record_write_time_conv(const struct tsc_conv *conv, void *to, size_t room);

/* ID_INDEX: which events' ids there are. */
struct record_id_index_entry {
	uint64_t id;
	uint64_t idx;
	int64_t cpu; /* -1: any, like tid */
	int64_t tid;
};

size_t record_write_id_index(const struct record_id_index_entry *entries, size_t n, void *to,
			     size_t room);

/* Behind the entries newer recorders put, for each, which machine its events are of. */
struct record_id_index_machine {
	uint64_t pid;  /* of the process on the host that runs the guest; 0: it is the host's */
	uint64_t vcpu; /* of the guest */
};

/*
 * Read how many entries @body has, and put cursors at them and at their machines, which are as many
 * or none.
 */
_must_check_ int record_read_id_index(struct cursor body, struct cursor *ret_entries,
				      struct cursor *ret_machines);

/* FINISHED_ROUND: nothing older than what came before the last one of these follows. */
size_t record_write_finished_round(void *to, size_t room);
