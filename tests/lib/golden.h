/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Golden case
 *
 * A small program, packets, records, and the stream that must be decoded from them, in one text
 * file. '#' begins a comment. A line at the left margin begins a section, whose text is indented
 * below it.
 *
 *	covers ROW …            the rows of tests/golden/coverage that the case is for
 *	cpus FAMILY/MODEL …     CPUs of the recording machine, hexadecimal, for a case about errata:
 *	                        the transcript must be that for each of them, and another
 *	                        one for an unknown CPU
 *	mtc FREQ NOM EAX EBX    timing parameters, decimal: mtc_freq, nom_freq, CPUID 0x15
 *	code NAME [ADDRESS]     bytes, hexadecimal; in a bare stream with their address
 *	kcore ADDRESS           bytes of the kernel at ADDRESS when the recording began or, in a
 *	                        snapshot of ptd, when it ended; the input is then a directory
 *	bpf ID TAG ADDRESS      bytes of a BPF program with one function, for perf.data's section of
 *	                        BPF programs; ID is decimal, TAG is that of its BPF_EVENT
 *	kallsyms                lines of the kernel's names, one of which must be _text
 *	form WORD …             of the perf.data: snapshot (PT is in pieces of a snapshot),
 *	                        threads (buffers are of threads, not CPUs), timeless, events
 *	                        (with event trace), own (only SWITCH records, of its own threads),
 *	                        names (the transcript has symbols), all (what others than the
 *	                        snapshot is about executed is asked for)
 *	filter TEXT             the address filter, as perf writes it; @NAME at the end of a part
 *	                        stands for the file of that code
 *	pt [CPU [OFFSET]]       packets, see packets.h, at OFFSET (hexadecimal) of a CPU's stream
 *	pt tid TID [OFFSET]     or of the thread's stream
 *	records                 sideband; with this section the input is a perf.data file, without
 *	                        it a bare stream
 *	manifest                key=value lines: the perf.data is in a snapshot of ptd with that
 *	                        manifest
 *	expect                  the transcript, see transcript.h; instructions may be broken into
 *	                        lines anywhere
 *	libipt                  the transcript of engine insn, where a limit of libipt makes it say
 *	                        less; a comment says which limit. Of the other cases the engine
 *	                        is to say the same as flow, but for the marks that it never reports:
 *	                        cfe, evd, pebs, trig, mwait, pwre, exstop and pwrx
 *	ahead TEXT              why libipt 2.1, which reads ahead, lists other instructions
 *
 * All records have the form "@TIME CPU PID/TID what". Times are in TSC ticks, which last a ns:
 *
 *	comm NAME · exec NAME · fork PID/TID · exit · itrace · lost N · lost_samples N
 *	mmap START SIZE OFFSET NAME [BUILD-ID]
 *	                                of the code NAME; numbers are hexadecimal
 *	mmap1 START SIZE OFFSET NAME    the same in the older record
 *	kernel START SIZE OFFSET NAME   of the kernel or a module, without code: NAME is the path
 *	ksymbol START SIZE TYPE NAME    a function of the kernel appears, of type bpf or ool
 *	unksymbol START SIZE TYPE NAME  it disappears
 *	poke START OLD NEW              bytes of the kernel change; hexadecimal, or - for none
 *	in [PID/TID] · out [PID/TID]    the trailer's thread comes or goes; PID/TID is the other one
 *	enter · leave                   the same in a SWITCH, which names no other thread
 *	sched TID [PREV]                the trailer's thread makes room for TID, in a sample of
 *	                                sched_switch, which may call the first one PREV
 *	aux OFFSET SIZE FLAGS           hexadecimal
 *	record TYPE[/MISC] WORD … ["TEXT"]
 *	                                any other record: its type, decimal; its misc, hexadecimal;
 *	                                64-bit words and a string of payload
 *
 * PID/TID of a fork is the child; its parent is the trailer's thread.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define GOLDEN_PIECES_MAX 8
#define GOLDEN_CPUS_MAX   64
#define GOLDEN_BYTES_MAX  8192

/* Bytes of code, or of one CPU's PT. */
struct golden_piece {
	char name[32];
	uint64_t address; /* of code */
	int32_t cpu, tid; /* of PT; -1: it belongs to none */
	uint64_t offset;
	uint32_t id; /* of a BPF program */
	uint64_t tag;
	uint8_t bytes[GOLDEN_BYTES_MAX];
	size_t size;
};

struct golden {
	bool snapshot, threads, timeless, events, own, names, all;
	bool has_mtc, has_cyc; /* the perf.data says that there may be such packets */
	struct golden_cpu {
		uint16_t family;
		uint8_t model;
	} cpus[GOLDEN_CPUS_MAX];
	size_t n_cpus;
	uint8_t mtc_freq, nom_freq;
	uint32_t cpuid_15_eax, cpuid_15_ebx;
	struct golden_piece code[GOLDEN_PIECES_MAX], pt[GOLDEN_PIECES_MAX];
	struct golden_piece kcore[GOLDEN_PIECES_MAX], bpf[GOLDEN_PIECES_MAX];
	size_t n_code, n_pt, n_kcore, n_bpf;
	char *kallsyms; /* lines, or NULL */
	char *records;  /* lines; NULL: a bare stream */
	char *manifest; /* lines; NULL: no snapshot of ptd */
	char *filter;   /* NULL: none */
	bool is_known;  /* the file names its CPU, one with the errata */
	char *expect;
	char *libipt; /* NULL: the same */
	bool is_not_for_ahead;
};

/*
 * Read the golden case at @path.
 *
 * Return: 0; or negative errno, and @reterr_line is the number of the malformed line.
 */
_must_check_ int golden_read(const char *path, struct golden **ret_golden, unsigned *reterr_line);
struct golden *golden_free(struct golden *golden);

/*
 * Let the packets of @golden come @n times, one after the other, each time with TSCs that are later
 * by @ticks; as often as there is room for all of them.
 */
void golden_repeat(struct golden *golden, unsigned n, uint64_t ticks);

DEFINE_CLEANUP(struct golden *, golden_free);
