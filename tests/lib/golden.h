/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Golden
 *
 * A golden case: a small program, packets, records, and what must be decoded from them, in one text
 * file. '#' begins a comment. A line at the left margin is a section; what is indented below it is
 * its text.
 *
 *	covers ROW …            rows of tests/golden/coverage that the case is for
 *	cpus FAMILY/MODEL …     of the recording machine, hexadecimal: it must come out so for each
 *	                        of them, and otherwise where the machine is not known: the case is
 *	                        about errata
 *	mtc FREQ NOM EAX EBX    timing parameters, decimal: mtc_freq, nom_freq, CPUID 0x15
 *	code NAME [ADDRESS]     bytes in hexadecimal; in a bare stream the address they are seen at
 *	kcore ADDRESS           bytes of the kernel's there, as they were when the recording began,
 *	                        or, of a snapshot of ptd's, when it ended: the input is a directory
 *	bpf ID TAG ADDRESS      bytes of a BPF program with one function, which perf.data's section
 *	                        of them has; ID is decimal, TAG is what its BPF_EVENT says
 *	kallsyms                what it has of its names; _text must be one of them
 *	form WORD …             of the perf.data: snapshot (the pieces are), threads (buffers are
 *	                        threads', not CPUs'), timeless, events (event trace was asked for),
 *	                        own (of switches only those of its own threads are told, by SWITCH);
 *	                        names (are expected with the instructions)
 *	filter TEXT             the address filter, as perf writes it; @NAME at the end of a part is
 *	                        the file of that code
 *	pt [CPU [OFFSET]]       packets, see packets.h; hexadecimal, where they are in the CPU's
 *	                        stream,
 *	pt tid TID [OFFSET]     or the thread's
 *	records                 sideband: with this section the input is a perf.data file, else a
 *	                        bare stream
 *	manifest                key=value lines: the perf.data is that of a snapshot of ptd, which
 *	                        says so
 *	expect                  the transcript, see transcript.h; its instructions may be broken
 *	                        into lines at will
 *	libipt                  the transcript of the engines over libipt, where a limit of libipt
 *	                        makes them say less; a comment says which limit
 *
 * Records, all in the form "@TIME CPU PID/TID what", times in TSC ticks that are ns:
 *
 *	comm NAME · exec NAME · fork PID/TID · exit · itrace · lost N · lost_samples N
 *	mmap START SIZE OFFSET NAME [BUILD-ID]
 *	                                of the code NAME, numbers hexadecimal
 *	mmap1 START SIZE OFFSET NAME    the same in the older record
 *	kernel START SIZE OFFSET NAME   of the kernel's, or a module: NAME is all
 *	ksymbol START SIZE TYPE NAME    a kernel's function begins, of type bpf or ool; unksymbol:
 *	                                it ends
 *	poke START OLD NEW              its bytes change: hexadecimal, or - for none
 *	in [PID/TID] · out [PID/TID]    the trailer's thread comes or goes; the other one
 *	enter · leave                   the same in a SWITCH, which names no other one
 *	sched TID [PREV]                the trailer's thread makes room for another, in a sample of
 *	                                sched_switch (of a thread with the number PREV, if that is
 *	                                another)
 *	aux OFFSET SIZE FLAGS           hexadecimal
 *	record TYPE[/MISC] WORD … ["TEXT"]
 *	                                any other: its type, decimal, and misc, hexadecimal; 64-bit
 *	                                words and a string of payload
 *
 * The FORK's PID/TID is the child, the trailer's thread its parent.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define GOLDEN_PIECES_MAX 8
#define GOLDEN_CPUS_MAX   40
#define GOLDEN_BYTES_MAX  8192

/* Bytes of code, or of one CPU's PT. */
struct golden_piece {
	char name[32];
	uint64_t address; /* of code */
	int32_t cpu, tid; /* of PT; -1: it is not one's */
	uint64_t offset;
	uint32_t id; /* of a BPF program */
	uint64_t tag;
	uint8_t bytes[GOLDEN_BYTES_MAX];
	size_t size;
};

struct golden {
	bool snapshot, threads, timeless, events, own, names;
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
	bool is_known;  /* the file says which machine it is of, one that has the errata */
	char *expect;
	char *libipt; /* NULL: the same */
};

/* Return: 0; or negative errno, and @reterr_line is the number of the line that makes no sense. */
_must_check_ int golden_read(const char *path, struct golden **ret_golden, unsigned *reterr_line);
struct golden *golden_free(struct golden *golden);

DEFINE_CLEANUP(struct golden *, golden_free);
