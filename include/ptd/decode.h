/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * libptdecode
 *
 * Reads a snapshot, any perf.data with intel_pt, a bare PT stream, a drmemtrace directory, or a log
 * of XRay or ovni, and gives out batches. The caller owns the loop:
 *
 *	while ((r = ptd_decoder_next(d, &batch)) == 0)
 *		…;
 *
 * Threads: a decoder, and what it gives out, is used by one thread at a time, except that any
 * thread may ask for source positions (ptd_decoder_positions()). Several decoders may
 * be used by as many threads at the same time: they share nothing that changes. Blocks, objects,
 * symbols and names that a batch points to do not change, so other threads may read them as long as
 * the decoder exists. The library reads the environment (TMPDIR), which no thread may change
 * meanwhile; it sets no locale, signal handler or umask.
 *
 * The library is libptdecode.so.0, and 0 promises no ABI: a program is compiled anew for each
 * version of the library. pkg-config knows it as "ptdecode".
 */

#include "ptd/record.h"
#include "ptd/sideband.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ptd_decoder;
struct ptd_logged;

/* Return: the library's version, as ptdecode --version prints it. */
const char *ptd_version(void);

enum {
	PTD_END = 1, /* the stream is over */
};

/* In bytes: enough for a long recording that is compressed or comes out of a pipe. */
#define PTD_MAX_SPILL (UINT64_C(16) << 30)

/*
 * Threads that work for the library. A program makes them once, and passes them to decoders
 * (ptd_options.threads). The thread that calls the library is one of them; while it waits for the
 * others, it does their work. All calls that use the same struct ptd_threads must come from one
 * thread at a time. The other threads block all signals.
 */
struct ptd_threads;

#define PTD_THREADS_MAX 256

/*
 * Start @n - 1 threads. If @n is 0, there are as many as CPUs that the process may use, or fewer if
 * no more can be started.
 *
 * Return: 0; -EINVAL (more than PTD_THREADS_MAX); or negative errno.
 */
int ptd_threads_new(size_t n, struct ptd_threads **ret_threads);

/* End the threads. What they were passed to must have been freed. Return: NULL. */
struct ptd_threads *ptd_threads_free(struct ptd_threads *threads);

/* What a decoder asks for by its build-id. */
enum ptd_fetch {
	PTD_FETCH_FILE,  /* the file itself */
	PTD_FETCH_DEBUG, /* the debug file, with what was stripped off the file */
};

/*
 * A piece of code for a bare PT stream: @size bytes at @offset of the file @path, run at @address.
 */
struct ptd_raw_code {
	const char *path;
	uint64_t offset;
	uint64_t size;
	uint64_t address;
};

/*
 * A part of a trace. Each list that is not empty narrows the part to what is in the list; fields
 * that are 0 ask for all. What is not asked for is left out of the stream, and is no gap.
 */
struct ptd_part {
	/*
	 * "FROM,TO": from FROM on and before TO; either may be empty, and ",TO" may be left out.
	 * Each is one of these:
	 *
	 *	12345.678901234      a time of the stream in seconds, or in ticks of the TSC for
	 *	                     PTD_CLOCK_TSC
	 *	-5s                  so long before the end of the PT; in s, ms, us or ns
	 *	2026-11-22 21:02:03  CLOCK_REALTIME in UTC, with or without a fraction; without a
	 *	                     date it is the day on which the PT ends
	 */
	const char *time;

	const uint32_t *cpus;
	size_t n_cpus;
	const uint32_t *pids;
	size_t n_pids;
	const uint32_t *tids;
	size_t n_tids;
	const char *const *comms; /* names of threads */
	size_t n_comms;
	const char *const *symbols; /* names of functions, as struct ptd_symbol has them */
	size_t n_symbols;
	const char *const *objects; /* paths, as struct ptd_object has them, or their last parts */
	size_t n_objects;

	/*
	 * Keep only the last N instructions of each thread, after all other filters; 0 keeps all.
	 * The idle threads of two CPUs are two threads, and so is what no known thread ran on two
	 * CPUs.
	 */
	uint64_t last;
};

struct ptd_options {
	size_t size; /* sizeof(struct ptd_options): fields that a newer library adds are zero */

	const char *engine; /* "flow" (the default if NULL) or "insn" */

	/*
	 * A snapshot directory, a perf.data file, a drmemtrace directory (ptd-drmemtrace(5)), or a
	 * flight data recorder log of XRay, a file or a directory of such files; or the directory
	 * of a trace of ovni; NULL: a bare PT stream, see below. The logs of XRay and ovni have
	 * calls (ptd_info.logs_calls).
	 */
	const char *input;
	bool force; /* decode although the manifest's hashes differ */

	/*
	 * A directory, laid out as /usr/lib/debug, in which separate debug files are looked for (by
	 * build-id or .gnu_debuglink) before the system's /usr/lib/debug; or NULL.
	 */
	const char *debug_dir;

	/* A bare PT stream: the file of its packets, and the code that ran. */
	const char *raw_pt;
	const struct ptd_raw_code *raw_code;
	size_t n_raw_code;

	/* The machine that recorded, if the input does not say; family 0 means unknown. */
	uint16_t cpu_family;
	uint8_t cpu_model;
	uint8_t cpu_stepping;
	uint8_t mtc_freq;
	uint8_t nom_freq;
	uint32_t cpuid_15_eax;
	uint32_t cpuid_15_ebx;

	/*
	 * Directories in which mapped files are looked for, too; or NULL. @buildid_dir has them by
	 * build-id and is laid out as perf's ~/.debug. @symfs stands for the root directory, and
	 * has them by path.
	 */
	const char *buildid_dir;
	const char *symfs;

	/*
	 * Called if a file is not found, to get it from elsewhere by its build-id of @size bytes.
	 * The thread that calls the decoder, or asks for source positions, calls this, and never
	 * two threads at a time. NULL: the decoder asks for no file.
	 *
	 * Return: the file's descriptor, which the decoder closes, and @ret_path from malloc(),
	 *         which the decoder frees; or negative errno: -ENOENT if the file does not exist
	 *         there.
	 */
	int (*fetch)(void *userdata, enum ptd_fetch what, const uint8_t *build_id, size_t size,
		     char **ret_path);
	void *userdata; /* first argument of fetch() and opening() */

	/* How many bytes temporary files may have in all; 0: PTD_MAX_SPILL. */
	uint64_t max_spill;

	/*
	 * Called after each MiB or so that ptd_decoder_new() reads: @done bytes have been read, of
	 * @total that are known by now. It may be NULL.
	 *
	 * Return: 0 to go on; any other value makes ptd_decoder_new() return -ECANCELED.
	 */
	int (*opening)(void *userdata, uint64_t done, uint64_t total);

	/*
	 * Threads that check the files of a snapshot, and decode, together with the calling thread.
	 * Borrowed until the decoder is freed; NULL: there are none.
	 */
	struct ptd_threads *threads;

	/*
	 * A bare PT stream: the code that the CPU was told to trace, in the words of perf record,
	 * such as "filter 0x401000/0x80" or "tracestop 0x402000/0x10", separated by commas; NULL:
	 * all code.
	 */
	const char *raw_filter;

	struct ptd_part part; /* what is asked for; {}: all */
	bool no_symbols;      /* unless @part has some: no instruction has one, and no table
			       * of symbols is read */

	/*
	 * The core file of a process that is in the recording, an ELF file of x86-64; or NULL. See
	 * ptd_decoder_core().
	 */
	const char *core;

	/*
	 * For a log of XRay: the ELF file that says which functions its numbers are, which is the
	 * program that was logged; or NULL. Without it, a directory of logs may have one called
	 * map.elf; and else functions are called by their numbers.
	 */
	const char *instr_map;

	/*
	 * The directory of a trace of ovni that programs in the recording wrote meanwhile, whose
	 * events become marks of the threads that noted them (PTD_MARK_BEGIN); or NULL. The
	 * recording must have times in ns.
	 */
	const char *ovni;

	/*
	 * A snapshot of some processes (ptctl snapshot --pid): decode what others executed, too.
	 * Otherwise @part asks for these processes, unless it names others, or threads.
	 */
	bool all_processes;
};

/* Return: whether there is an engine called @name. */
bool ptd_engine_exists(const char *name);

/*
 * Open the input.
 *
 * Return: 0; -ECANCELED if options->opening() ended the opening; or another negative errno.
 *         On an error @reterr_message (if not NULL) is a text for the user that says what failed,
 *         on which file and where. The caller frees it.
 */
int ptd_decoder_new(const struct ptd_options *options, struct ptd_decoder **ret_decoder,
		    char **reterr_message);

/* Return: what a sink must know of the input. It belongs to the decoder. */
const struct ptd_info *ptd_decoder_info(const struct ptd_decoder *decoder);

/*
 * Decode on until a batch is full.
 *
 * @ret_batch belongs to the decoder and is valid until the next call. PT that cannot be decoded is
 * a gap in the stream, not an error.
 *
 * Return: 0; PTD_END; or negative errno, which every later call returns again, and
 *         ptd_decoder_message() says what failed.
 */
int ptd_decoder_next(struct ptd_decoder *decoder, const struct ptd_batch **ret_batch);

/*
 * For an input that is a log of calls (ptd_info.logs_calls; ptd/calls.h), which has no batches: get
 * the next calls. Otherwise as ptd_decoder_next().
 */
int ptd_decoder_next_logged(struct ptd_decoder *decoder, const struct ptd_logged **ret_logged);

/*
 * Return: the reason why ptd_decoder_next() failed, a text for the user that names the input and
 *         the place in it, and that belongs to the decoder; NULL if no call failed.
 */
const char *ptd_decoder_message(const struct ptd_decoder *decoder);

/*
 * Get the next sideband record. Records come in the order of time, whatever was decoded meanwhile.
 *
 * Return: 0 and @ret_record, which belongs to the decoder and is valid until the next call; or
 *         PTD_END.
 */
int ptd_decoder_next_sideband(struct ptd_decoder *decoder, const struct ptd_sideband **ret_record);

/* The most positions that one address has: functions that were inlined into each other. */
#define PTD_POSITIONS_MAX 64

/*
 * Find where the code at @address of @object, which a batch showed, stands in the source code. The
 * address is as linked: see ptd_block.address.
 *
 * @ret_positions[0] is the place of the instruction. If it was inlined, the next position is where
 * the compiler put it in the place of a call, and so on; the last position is in the function that
 * was compiled on its own. Positions beyond PTD_POSITIONS_MAX are left out.
 *
 * ELF files have positions if they, or debug files that are found, have DWARF; JIT code has them if
 * its jitdump says so. The first call for an object reads all of its DWARF sections.
 *
 * Any thread may call this, while another one calls ptd_decoder_next(). Calls wait for each other.
 *
 * Return: the number of positions, 0 if none is known; or -ENOMEM.
 */
int ptd_decoder_positions(struct ptd_decoder *decoder, const struct ptd_object *object,
			  uint64_t address, struct ptd_position *ret_positions);

/* A place in the code where the compiler put a function in the place of a call. */
struct ptd_inlined {
	const struct ptd_inlined *outer; /* the place that it is in; NULL: none */
	const char *name;                /* of the function, as it was written */
	const char *linkage_name;        /* the same, in a language that has no other */
	/* Address as linked of the first instruction of an execution. gcc notes it, and clang does
	 * not. */
	uint64_t entry;
	bool has_entry; /* it is known */
	uint32_t depth; /* 1: @outer is NULL */
};

/*
 * Find the innermost function that was inlined at @address of @object, which a batch showed. It
 * belongs to the decoder, and is the same for all addresses of the same place; NULL: none is known.
 * @ret_end is an address up to which the answer is the same.
 *
 * Any thread may call this, while another one calls ptd_decoder_next(). Calls wait for each other.
 *
 * Return: 1; 0: the address is in no function that has debug information; or -ENOMEM.
 */
int ptd_decoder_inlined(struct ptd_decoder *decoder, const struct ptd_object *object,
			uint64_t address, const struct ptd_inlined **ret_inlined,
			uint64_t *ret_end);

/* A function that was compiled on its own. */
struct ptd_line_function {
	const char *name;         /* as it was written */
	const char *linkage_name; /* the same, in a language that has no other */
	const char *file;         /* in which it is declared; NULL: not known */
	uint32_t line;            /* where it is declared; 0: not known */
	uint64_t entry;           /* address as linked at which it is called */
	bool has_value;           /* it returns one */
	bool is_artificial;       /* the compiler made it, without a text, as a constructor */
};

/* A row of a line table: the code from @address up to @end was compiled from @line. */
struct ptd_line_row {
	uint64_t address, end; /* as linked: see ptd_block.address */
	const char *file;      /* its path where the program was compiled */
	uint32_t line;         /* from 1 */
	uint32_t function;     /* index of the one around it; UINT32_MAX: not known */
	bool is_inlined;       /* it is of a function that was inlined into that one */
};

struct ptd_line_table {
	const struct ptd_line_row *rows; /* by address, then by end */
	size_t n_rows;
	const struct ptd_line_function *functions;
	size_t n_functions;
};

/*
 * Get the rows of all line tables of @object, which a batch showed, whether or not their code was
 * executed, and the functions that they are in. Code without a line is in no row. They belong to
 * the decoder.
 *
 * Any thread may call this, while another one calls ptd_decoder_next(). Calls wait for each other.
 *
 * Return: 0, with no rows if the object has no DWARF; or -ENOMEM.
 */
int ptd_decoder_lines(struct ptd_decoder *decoder, const struct ptd_object *object,
		      struct ptd_line_table *ret_table);

/* A static probe of a program (USDT): a nop that says what happens where it is executed. */
struct ptd_probe {
	uint64_t address;   /* of the nop, as linked: see ptd_block.address */
	uint64_t semaphore; /* address as linked of what counts who enabled it; 0: there is none */
	/* Code reads the semaphore, which is seen if it does not do so by the global offset table:
	 * the probe is not executed unless it is enabled. */
	bool is_guarded;
	const char *provider, *name;
	const char *arguments; /* where they are, as the compiler noted it: "8@%rax -4@$1" */
};

/*
 * Get all probes of @object, an ELF file which a batch showed, by address, whether or not they were
 * executed. They belong to the decoder. (Each execution is a mark: PTD_MARK_PROBE.)
 *
 * Any thread may call this, while another one calls ptd_decoder_next(). Calls wait for each other.
 *
 * Return: 0 and @ret_probes, @ret_n of them, 0 if it has none; or -ENOMEM.
 */
int ptd_decoder_probes(struct ptd_decoder *decoder, const struct ptd_object *object,
		       const struct ptd_probe **ret_probes, size_t *ret_n);

/*
 * Get the code of @object, an ELF file which a batch showed, at @address as linked, whether or not
 * it was executed: at most @size bytes.
 *
 * Any thread may call this, while another one calls ptd_decoder_next().
 *
 * Return: the number of bytes in @ret_bytes; 0 if the code is not known.
 */
size_t ptd_decoder_code(const struct ptd_decoder *decoder, const struct ptd_object *object,
			uint64_t address, void *ret_bytes, size_t size);

/* What an address space has at an address. */
struct ptd_place {
	const struct ptd_object *object; /* NULL: nothing is known to be there */
	uint64_t address;                /* as linked: see ptd_block.address */
	const struct ptd_symbol *symbol; /* that covers the address; NULL: none does */
};

/*
 * Find what the address space @space (ptd_slice.space) had at the address @ip at the time @t,
 * whether or not it was executed. It is quickest if successive calls are about the same space and
 * time.
 *
 * Return: 0 or -ENOMEM.
 */
int ptd_decoder_place(struct ptd_decoder *decoder, uint32_t space, uint64_t t, uint64_t ip,
		      struct ptd_place *ret_place);

/* A thread of the process that left the core file (ptd_options.core). */
struct ptd_core_thread {
	uint32_t pid, tid;
	uint32_t space; /* the last one of the process: ptd_slice.space; UINT32_MAX: not known */
	bool is_first;  /* it took the signal that killed the process */

	/* That signal; 0: the file has none. Its code, and of SIGSEGV and its like the address
	 * that could not be accessed, are 0 if they are not known. */
	uint32_t signal;
	int32_t signal_code;
	uint64_t signal_address;
};

/* Return: the threads of the core file, which belong to the decoder; NULL without one. */
const struct ptd_core_thread *ptd_decoder_core(const struct ptd_decoder *decoder, size_t *ret_n);

/* A function that was open in a thread of a core file. */
struct ptd_core_frame {
	uint64_t ip;  /* where it was, or would have gone on */
	bool is_call; /* @ip is behind a call */
};

/*
 * Find the functions that were open in thread @i of the core file, the innermost first, by the
 * thread's registers and stack and by the call frame information (.eh_frame) of the objects, and
 * of the jitdumps that have it. There are no more where that is not known. The array belongs to the
 * decoder and is valid until the next call.
 *
 * Return: 0, and @ret_complete, whether the last one is the outermost of the thread; or -ENOMEM.
 */
int ptd_decoder_core_stack(struct ptd_decoder *decoder, size_t i,
			   const struct ptd_core_frame **ret_frames, size_t *ret_n,
			   bool *ret_complete);

/* Return: the statistics so far, complete after PTD_END. They belong to the decoder. */
const struct ptd_stats *ptd_decoder_stats(struct ptd_decoder *decoder);

/* Find out how many bytes of PT are decoded, of how many in all: for showing progress. */
void ptd_decoder_progress(const struct ptd_decoder *decoder, uint64_t *ret_done,
			  uint64_t *ret_total);

/* Free the decoder, which may be NULL, and all that belongs to it. Return: NULL. */
struct ptd_decoder *ptd_decoder_free(struct ptd_decoder *decoder);

#ifdef __cplusplus
}
#endif
