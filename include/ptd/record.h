/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * The decoded stream
 *
 * The decoder produces this stream, and every sink consumes it. The stream consists of batches. A
 * batch belongs to one slice, which is one thread's stay on one CPU. A batch has runs, in the order
 * in which they executed, and marks, which each stand before a run. A mark is a gap (something
 * was lost here) or an event (the flow of control was changed from outside).
 *
 * A run is a number of consecutive instructions of one block. A block is straight-line code, with
 * the bytes, lengths, classes and symbols of its instructions. It is decoded once, never changes,
 * and does not know at which address it is mapped. Only its last instruction can be a branch.
 *
 * Slices are ordered by their start, then by CPU. All batches of one slice come one after the
 * other, so the runs of each thread are in the order in which they executed.
 *
 * Everything a batch points to belongs to the decoder and is valid until the next batch is asked
 * for. Blocks, objects, symbols and the names of threads stay where they are, and as they are,
 * until the decoder is freed; so does the array of pointers to symbols, as far as a batch saw it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PTD_ID_UNKNOWN UINT32_MAX /* a pid or tid that the records do not say */
#define PTD_NO_SYMBOL  0u         /* symbol id 0: no symbol covers the instruction */

enum ptd_insn_class {
	PTD_INSN_OTHER,         /* falls through to its successor */
	PTD_INSN_JUMP,          /* direct, near or far */
	PTD_INSN_JUMP_INDIRECT, /* near or far */
	PTD_INSN_JUMP_COND,     /* jcc, jrcxz, loop */
	PTD_INSN_CALL,          /* direct, near or far */
	PTD_INSN_CALL_INDIRECT, /* near or far */
	PTD_INSN_RETURN,        /* near ret */
	PTD_INSN_RETURN_FAR,    /* retf, iret, sysret, sysexit, uiret */
	PTD_INSN_SYSCALL,       /* syscall */
	PTD_INSN_SYSENTER,      /* sysenter */
	PTD_INSN_INTERRUPT,     /* int n, int3, int1, into */
	PTD_INSN_VM,            /* vmcall, vmlaunch, vmresume: leaves for a hypervisor or a guest */
	PTD_INSN_PTWRITE,       /* falls through */
};

struct ptd_insn {
	uint16_t offset; /* of its first byte in the block */
	uint8_t size;    /* 1..15 */
	uint8_t iclass;  /* enum ptd_insn_class */
	uint32_t symbol; /* id of the symbol that the instruction is in, or PTD_NO_SYMBOL */
};

/* A file, or a part of memory, from which code comes. */
struct ptd_object {
	uint32_t id;        /* dense, from 0 */
	const char *name;   /* path as it was mapped, or "[vdso]", "[jit]", "[anon]", … */
	const char *source; /* path of the file from which the bytes were read; NULL: no file */
	uint8_t build_id[20];
	uint8_t build_id_size; /* bytes; 0 if the object has no build-id */
	/* Only what a jitdump notes says that the code had these bytes: no memory was kept that
	 * proves it. Some compilers note other bytes than they execute. */
	bool is_claimed;
};

/* A function whose time and place a jitdump states. */
struct ptd_jit_note {
	uint64_t t;       /* when the compiler noted it; see ptd_clock */
	uint64_t address; /* of its first byte in the memory of the process */
	uint64_t size;    /* bytes */
	uint64_t index;   /* the compiler's number for it */
};

/*
 * A function that has no name in the object's symbol table is called by its place, such as
 * "ls+0x4e30". Code that a JIT compiler puts where other code was is another symbol.
 */
struct ptd_symbol {
	const char *name;
	uint64_t address;               /* of its first byte, as linked: see ptd_block.address */
	uint64_t size;                  /* bytes; 0: not known */
	const struct ptd_jit_note *jit; /* NULL: no jitdump has it */
	bool is_plt; /* a stub of the PLT, which jumps to the function; the name ends with @plt */
};

/*
 * A place in the source code of a program. Its strings belong to the decoder, which keeps them
 * until it is freed.
 */
struct ptd_position {
	const char *file;     /* its path where the program was compiled; NULL: not known */
	uint32_t line;        /* from 1; 0: not known */
	uint32_t column;      /* from 1; 0: not known */
	const char *function; /* which the place is in, as it was written; NULL: not known */

	/* What profiles for compilers name a place by. JIT code has none of these. */
	const char *linkage_name; /* of that function; NULL: not known */
	uint32_t function_line;   /* where that function begins; 0: not known */
	uint32_t discriminator;   /* of places that have the same line; see DWARF 5, 6.2.2 */
};

struct ptd_block {
	uint32_t id; /* dense, from 0, never used twice: sinks may use it as an index */
	uint16_t n_insns;
	uint16_t size;   /* bytes */
	uint8_t mode;    /* 16, 32 or 64 */
	bool has_probes; /* some of its instructions are static probes: see PTD_MARK_PROBE */
	const struct ptd_object *object;
	uint64_t address; /* of its first byte, as the object was linked: an ELF virtual address */
	const uint8_t *bytes;
	const struct ptd_insn *insns;

	/*
	 * Where the last instruction leads to, if it is a direct jump, a conditional jump or a
	 * direct call: ptd_run.base + target. Meaningless for every other class.
	 */
	int64_t target;
};

struct ptd_run {
	const struct ptd_block *block;
	uint64_t base;  /* address at which the thread saw the first byte of the block */
	uint64_t t;     /* time of its first instruction as the packets show it; see ptd_clock */
	uint16_t first; /* index of the first instruction executed */
	uint16_t n;     /* instructions executed, at least 1; first + n <= block->n_insns */
	bool early;     /* of JIT code that ran before its JIT compiler noted it */
};

enum ptd_mark_kind {
	PTD_MARK_GAP,   /* control flow is not continuous here */
	PTD_MARK_ASYNC, /* interrupted before the instruction at @ip by a signal, fault or interrupt
			 */
	PTD_MARK_OFF,   /* left for untraced code by its own instruction (a system call) */
	PTD_MARK_STOP,  /* packets were stopped by an address filter (TraceStop) */

	/* Code that was not asked for ran here, and is left out. As with a gap, control flow is not
	 * continuous, and @reason and @ip have the same meaning; without @ip, the code may be
	 * known. */
	PTD_MARK_OUT_OF_SCOPE,

	/* What else the CPU reports; each comment says what @value and then @extra are. */
	PTD_MARK_PTWRITE, /* the ptwrite at @ip: its operand; the size of that in bytes */
	PTD_MARK_TSX,     /* transactional execution: enum ptd_tsx */
	PTD_MARK_PAGING,  /* the page table changed: CR3; 1 in a guest */
	PTD_MARK_VMCS,    /* the VMCS changed: its address */
	PTD_MARK_CBR,     /* the core clock changed: its ratio to the bus clock */
	PTD_MARK_MWAIT,   /* mwait: hints (EAX); extensions (ECX) */
	PTD_MARK_PWRE,    /* a C-state is entered: state << 4 | sub-state */
	PTD_MARK_PWRX,    /* a C-state is left: last << 4 | deepest; enum ptd_wake */
	PTD_MARK_EXSTOP,  /* execution stopped at @ip */
	PTD_MARK_CFE,     /* event trace: enum ptd_cfe; vector */
	PTD_MARK_EVD,     /* data of the next event (CFE): enum ptd_evd; the datum */
	PTD_MARK_PEBS,    /* a PEBS record was among the packets, and is left out */
	PTD_MARK_TRIG,    /* triggers fired: which, a bit each, and PTD_TRIG_MORE; without @ip, how
			   * many instructions behind the last address or branch in the packets, + 1
			   * (0: they do not say) */

	/*
	 * What a producer of names adds: the program itself (ptd_options.ovni). A region of the
	 * thread begins, or the innermost one of that name ends; or something happens at a point.
	 * @value is the id of the symbol that is the name.
	 */
	PTD_MARK_BEGIN,
	PTD_MARK_END,
	PTD_MARK_POINT,

	/* The thread executed the static probe (USDT) at @ip. It stands behind the run that has it.
	 * @value is the id of the symbol PROVIDER:NAME, whose address says nothing. */
	PTD_MARK_PROBE,
	_PTD_MARK_KINDS,
};

/* After an abort, the instructions since the transaction began have had no effect. */
enum ptd_tsx {
	PTD_TSX_BEGIN,
	PTD_TSX_COMMIT,
	PTD_TSX_ABORT,
};

/* Other triggers fired, too, which the CPU did not report. */
#define PTD_TRIG_MORE (1u << 8)

/* Why a CPU woke, with the values of the PWRX packet. */
enum ptd_wake {
	PTD_WAKE_INTERRUPT = 1,
	PTD_WAKE_STORE = 4,
	PTD_WAKE_AUTONOMOUS = 8,
};

/* Control flow events, with the values of the CFE packet. */
enum ptd_cfe {
	PTD_CFE_INTR = 1, /* an interrupt or exception: its vector */
	PTD_CFE_IRET = 2,
	PTD_CFE_SMI = 3,
	PTD_CFE_RSM = 4,
	PTD_CFE_SIPI = 5, /* its vector */
	PTD_CFE_INIT = 6,
	PTD_CFE_VMENTRY = 7,
	PTD_CFE_VMEXIT = 8,
	PTD_CFE_VMEXIT_INTR = 9, /* because of an interrupt or exception: its vector */
	PTD_CFE_SHUTDOWN = 10,
	PTD_CFE_UINTR = 12, /* a user interrupt: its vector */
	PTD_CFE_UIRET = 13,
};

/* Kinds of event data, with the values of the EVD packet. */
enum ptd_evd {
	PTD_EVD_CR2 = 0,  /* page fault linear address */
	PTD_EVD_VMXQ = 1, /* VM exit qualification */
	PTD_EVD_VMXR = 2, /* VM exit reason */
};

enum ptd_gap_reason {
	PTD_GAP_OVERFLOW,        /* the CPU could not write its packets in time (OVF) */
	PTD_GAP_NO_CODE,         /* no mapping at @ip is known */
	PTD_GAP_NO_OBJECT,       /* the file that is mapped at @ip was not found */
	PTD_GAP_WRONG_OBJECT,    /* the file found has another build-id */
	PTD_GAP_THREAD_UNKNOWN,  /* the sideband does not say which thread ran */
	PTD_GAP_BEFORE_SIDEBAND, /* the PT is older than the sideband that was kept */
	PTD_GAP_BAD_PACKET,      /* the bytes are no PT packet, or one that may not stand here */
	PTD_GAP_BAD_FLOW,        /* packets and code contradict each other */
	PTD_GAP_NO_PROGRESS,     /* the code loops and uses up no packets */
	PTD_GAP_NO_SYNC,         /* bytes before the first PSB */
	PTD_GAP_EMPTY,           /* the ring holds no PSB at all */
	PTD_GAP_LOST,            /* the recorder did not keep the bytes here */
	PTD_GAP_CUT,             /* the data end inside a packet */
	PTD_GAP_TRUNCATED,       /* tracing stood still: the AUX buffer was full */
	PTD_GAP_PARTIAL,     /* the kernel says that bytes behind this are missing, but not where */
	PTD_GAP_COLLISION,   /* the same, because two samples collided */
	PTD_GAP_OVERWRITTEN, /* the bytes before this were overwritten in the ring */
	PTD_GAP_LOST_RECORDS, /* sideband records of this CPU were lost */
	PTD_GAP_LOST_SAMPLES, /* samples of this CPU were lost */
	/* The recorder dropped the process's records of that time: its user had too many. */
	PTD_GAP_RECORDS_DROPPED,
	PTD_GAP_UNKNOWN_INSN, /* the bytes at @ip are no instruction that the decoder knows */
	/* A copy of an instruction was stepped for a uprobe; it is not known which one. */
	PTD_GAP_STEPPED,
	_PTD_GAP_REASONS,
};

/*
 * A mark stands before the run at index @run of its batch (or behind the last one, if @run is the
 * number of runs).
 */
struct ptd_mark {
	size_t run;
	enum ptd_mark_kind kind;
	enum ptd_gap_reason reason; /* of a gap, and of PTD_MARK_OUT_OF_SCOPE */
	uint64_t t;
	uint64_t ip; /* where it happened; of a gap: address it could not follow, 0 if unknown */
	uint64_t offset;  /* of a gap: byte offset in this CPU's PT stream */
	uint64_t n_bytes; /* of a gap: PT bytes that gave no instruction because of it; may be 0 */
	uint64_t value, extra; /* of the kinds that have them */
};

struct ptd_slice {
	uint64_t id; /* counts from 0 in the order of the stream */
	uint32_t cpu;
	uint32_t pid;
	uint32_t tid;
	uint32_t space; /* address space; the id changes when the process executes a new program */
	uint64_t t0;    /* start; see ptd_clock */
	const char *comm;
};

/*
 * One piece of the stream. The batches of a slice have the same slice id. A batch without runs has
 * marks.
 */
struct ptd_hold;

struct ptd_batch {
	const struct ptd_slice *slice;
	const struct ptd_run *runs;
	size_t n_runs;
	const struct ptd_mark *marks; /* ordered by @run */
	size_t n_marks;
	const struct ptd_symbol *const *symbols; /* by symbol id; [0] stands for no symbol */
	size_t n_symbols;
	/* By this a writer of the library keeps the runs without copying them; or NULL. */
	struct ptd_hold *hold;
};

/* What became of the PT of one CPU. It is always true that in = decoded + lost + out of scope. */
struct ptd_cpu_stats {
	uint32_t cpu;
	uint64_t bytes_in;
	uint64_t bytes_decoded;
	uint64_t bytes_lost;
	/* PT that is not decoded because it is not asked for (struct ptd_part), or because the
	 * snapshot is of one process and the PT is of others. */
	uint64_t bytes_out_of_scope;
	uint64_t n_insns;              /* of the stream */
	uint64_t n_insns_out_of_scope; /* decoded, and left out because they are not asked for */
	uint64_t n_gaps;
	/* From when to when the stream has anything; 0 if the trace has no time. */
	uint64_t t_first;
	uint64_t t_last;
};

struct ptd_stats {
	const struct ptd_cpu_stats *cpus;
	size_t n_cpus;
	/* Instructions of JIT code that ran before its JIT compiler noted it. */
	uint64_t n_insns_early;
	const uint64_t *n_gaps;    /* by enum ptd_gap_reason */
	const uint64_t *gap_bytes; /* likewise: PT bytes that gave no instruction because of it */
	size_t n_gap_reasons;
	uint64_t n_records_unknown; /* sideband records of a type that this library does not know */
	uint64_t n_records_bad;     /* sideband records that are too short or not plausible */
	/*
	 * Of what programs noted themselves (ptd_options.ovni): how many marks the stream has of
	 * it; and how much is left out because nothing of its thread was recorded then, which is
	 * not counted if a part of the trace is asked for.
	 */
	uint64_t n_events, n_events_left_out;
};

enum ptd_clock {
	PTD_CLOCK_NONE, /* the trace has no time: every t is 0 */
	PTD_CLOCK_TSC,  /* t counts TSC ticks: a bare PT stream */
	PTD_CLOCK_NS,   /* t counts nanoseconds on the recorder's clock */
};

/* What a sink must know before the first batch. */
struct ptd_info {
	enum ptd_clock clock;
	int64_t realtime_offset_ns; /* CLOCK_REALTIME = t + this; 0 if it was not recorded */
	/*
	 * If rings of a snapshot were overwritten: how many bytes of the PT that was asked for are
	 * gone, and the time t since which all of it is there. 0: nothing is gone, or the input
	 * does not say.
	 */
	uint64_t bytes_overwritten;
	uint64_t complete_since;
	uint64_t truncated_at; /* offset of the record in which the file ends; 0: complete */
	/*
	 * Texts for the user: which files beside the data could not be used or only in part, and
	 * why.
	 */
	const char *const *complaints;
	size_t n_complaints;
	bool logs_calls;         /* the input has calls (struct ptd_logged), and no batches */
	uint64_t snapshot_taken; /* when the snapshot was taken that the input is; 0: it is none, or
				  * does not say, or that is not among the times asked for */
};

static inline uint64_t ptd_run_ip(const struct ptd_run *run, size_t i)
{
	return run->base + run->block->insns[run->first + i].offset;
}

/* Return: the reason in words, for messages: "overflow", "code not mapped", … */
const char *ptd_gap_reason_name(enum ptd_gap_reason reason);

/* Return: the kind as one word: "gap", "async", "ptwrite", … */
const char *ptd_mark_kind_name(enum ptd_mark_kind kind);

/* Return: whether the mark has a name, the symbol with the id @value. */
static inline bool ptd_mark_has_name(const struct ptd_mark *mark)
{
	return mark->kind == PTD_MARK_BEGIN || mark->kind == PTD_MARK_END ||
	       mark->kind == PTD_MARK_POINT || mark->kind == PTD_MARK_PROBE;
}

#ifdef __cplusplus
}
#endif
