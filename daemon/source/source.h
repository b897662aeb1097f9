/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Source
 *
 * Where PT comes from. A source has CPUs; each has an AUX ring and a switch ring, both overwritten
 * by their writer, and there is one stream of task records (COMM, MMAP2, FORK, EXIT, LOST, …) that
 * the daemon drains. Nothing above this header knows which source runs.
 *
 * All records are perf records as the kernel writes them, with the trailer of PERFABI_SAMPLE_TYPE.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "record/codec.h"
#include "record/tsc.h"

struct config;
struct ptclock_log;
struct source;

/*
 * Identity and timing of the CPUs, as the snapshot must state them. The conversion of time is
 * another one when the machine was suspended, but never between freeze() and thaw().
 */
struct source_facts {
	const char *name;     /* "emu", "pt": for status and the manifest */
	uint32_t pmu_type;    /* perf_event_attr.type of intel_pt */
	uint64_t attr_config; /* perf_event_attr.config: what the packets contain */
	uint64_t mask_tsc;    /* the PMU's format/ bits as config masks; 0 if it has none */
	uint64_t mask_noretcomp;
	uint64_t mask_mtc;
	uint64_t mask_mtc_period;
	uint64_t mask_cyc;
	struct tsc_conv tsc;        /* to the records' ns */
	uint32_t tsc_ctc_numerator; /* CPUID 0x15 EBX, EAX */
	uint32_t tsc_ctc_denominator;
	uint32_t max_nonturbo_ratio;
	char cpuid[64];    /* as perf writes it: "GenuineIntel,6,85,4" */
	bool user, kernel; /* whose code is traced */
	bool event_trace;  /* caps/event_trace */
};

/* How far the AUX of a CPU goes at a freeze. */
enum source_end {
	SOURCE_END_IDLE,    /* to the last packet: nobody ran there */
	SOURCE_END_FLUSHED, /* to the freeze */
	SOURCE_END_LATE,    /* to what its writer had published: it did not answer in time */
	SOURCE_END_OFFLINE, /* to when the CPU went offline */
};

/* When a freeze was. */
struct source_moment {
	uint64_t ns;           /* on the records' clock */
	uint64_t monotonic_ns; /* on CLOCK_MONOTONIC */
	uint64_t realtime_ns;  /* on CLOCK_REALTIME */
};

/* How the source is. */
struct source_status {
	uint32_t n_online;    /* CPUs that are there to be recorded */
	uint32_t n_recording; /* CPUs that are recorded */
	/* Those that are not. Offline: whose rings are kept. Busy: another has their PT. */
	uint32_t n_offline, n_busy, n_failed;
	bool paused;
	uint64_t aux_size, switch_size; /* of the rings of one CPU */
};

/* The bytes of a ring, oldest first; @b is empty unless they cross the ring's end. */
struct source_view {
	const uint8_t *a;
	size_t a_size;
	const uint8_t *b;
	size_t b_size;
	uint64_t head;       /* running count of bytes ever written, as of the view */
	enum source_end end; /* of AUX */
};

struct source_ops {
	const char *name;

	/* About how many bytes all rings hold now. */
	uint64_t (*held)(struct source *source);

	/* How many bytes of PT a freeze may find on @cpu, at most: who will copy them has memory
	 * ready. NULL: it is not worth that. */
	uint64_t (*aux_room)(struct source *source, uint32_t cpu);

	/* Give the CPUs' rings up for a moment so that all end at one instant: flush what is
	 * pending, read the heads. Tracing goes on at once, so the rings are to be copied at once,
	 * too. The views are taken by the threads that copy them, of different CPUs at the same
	 * time.
	 * Return: 0, or negative errno. */
	int (*freeze)(struct source *source, struct source_moment *ret_moment);

	/* All that is wanted of the rings has been copied: they may be closed. Called if, and only
	 * if, freeze() returned 0. NULL: not needed. */
	void (*thaw)(struct source *source);

	/* What the ring of @cpu held at the last freeze; the bytes are the source's, and go on
	 * being overwritten. Return: 0, or -EINVAL if there is no such CPU. */
	int (*view_aux)(struct source *source, uint32_t cpu, struct source_view *ret_view);
	int (*view_switch)(struct source *source, uint32_t cpu, struct source_view *ret_view);

	/* How many bytes at the start of a view taken at the last freeze the writer may have
	 * overwritten since: the copier drops them. Return: 0, or -EINVAL if there is no such
	 * CPU. */
	int (*overtaken)(struct source *source, uint32_t cpu, uint64_t *ret_aux_bytes,
			 uint64_t *ret_switch_bytes);

	/* The PT of @cpu has been copied: from now on, until the next freeze, overtaken() is to be
	 * exact about it, whatever that costs. NULL: it always is. */
	void (*settle)(struct source *source, uint32_t cpu);

	/* Instead of view_switch(): the switch records as they are, whole ones, oldest first, which
	 * the caller frees. @ret_cut: older ones are gone. Return: 0, or negative errno. */
	int (*copy_switches)(struct source *source, uint32_t cpu, uint8_t **ret_bytes,
			     size_t *ret_size, bool *ret_cut);

	/* For how long the freeze, and what came after it, kept PT of @cpu off, in ns, at most.
	 * NULL: not at all. */
	uint64_t (*gap)(struct source *source, uint32_t cpu);

	/* The samples of the clocks, as far back as they go: the caller frees them. Between
	 * freeze() and thaw(): behind that they may be forgotten. NULL: all clocks are the
	 * records'. Return: 0 or -ENOMEM. */
	int (*copy_clock)(struct source *source, struct ptclock_log **ret_clock);

	/* Take what was written to the task ring since the last call. @ret_bytes is whole records,
	 * the caller frees it. Return: 0, or -ENOMEM: then a later call gives what was written, or
	 * a record that says that some were lost. */
	int (*drain_tasks)(struct source *source, uint8_t **ret_bytes, size_t *ret_size);

	/* Whether anything may be writing task records: while it is so, they must be drained. */
	bool (*active)(struct source *source);

	/* A descriptor that can be read from when there are task records to be drained. NULL: there
	 * is none, look now and then while it is active. */
	int (*fd)(struct source *source);

	/* To be called once a second: looks after the CPUs. NULL: not needed. */
	void (*tick)(struct source *source);

	/* Give PT up to others, or take it again; what was in the rings is lost. Return: 0; -EBUSY:
	 * a snapshot is copying them. NULL: it cannot be given up. */
	int (*pause)(struct source *source, bool pause);

	struct source_status (*status)(struct source *source);

	/* Remember where the rings are now. Decoding can begin there on every CPU that is free. */
	void (*mark)(struct source *source);

	/* The heads of @cpu at the last mark that is not later than @time (CLOCK_MONOTONIC, ns); 0
	 * if there is none. */
	void (*marked)(struct source *source, uint32_t cpu, uint64_t time, uint64_t *ret_aux_head,
		       uint64_t *ret_switch_head);

	/* Is @pid a process that writes to this source? A record may name any. NULL: every one
	 * is. */
	bool (*owns)(struct source *source, uint32_t pid);

	/* Take what programs handed over of their code since the last call: @ret_bytes is code
	 * records (daemon/emu/coderecord.h), the caller frees it. No memory of a process is read
	 * then. Return: 0; or -ENOMEM or -EBADMSG: some are lost. NULL: the source does not know
	 * what ran, code that is in no file is to be found in the memory of those who ran. */
	int (*drain_code)(struct source *source, uint8_t **ret_bytes, size_t *ret_size);

	/* Go on telling of all tasks that live, for about @budget_ns, by records that are given to
	 * @put; after the end, begin again. It has been writing task records all the while. Return:
	 * 0 if that was the end; 1; or negative errno: begin again, too. NULL: it cannot, what its
	 * records say is all that is known. */
	int (*tasks)(struct source *source, uint64_t budget_ns, record_put_fn put, void *userdata);

	/* Frees it. Return: NULL. */
	struct source *(*free)(struct source *source);
};

/* First member of every source. */
struct source {
	const struct source_ops *ops;
	struct source_facts facts;
	uint32_t n_cpus;
};

/* Make the source that Source= asks for. Return: 0, or negative errno: why has been logged. */
_must_check_ int source_new(const struct config *config, struct source **ret_source);
