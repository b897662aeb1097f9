/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Source
 *
 * A source is where PT comes from: the hardware (daemon/pt) or programs under QEMU (daemon/soft).
 * It has CPUs, each with an AUX ring of PT, a ring of switch records and, of some sources, a ring
 * of events, which their writers overwrite; and streams that the daemon drains: the task records
 * (COMM, MMAP2, FORK, EXIT, LOST, …) and, if the source has it, the code that ran. Nothing above
 * this header knows which source runs.
 *
 * All records are perf records as the kernel writes them, with the trailer of PERFABI_SAMPLE_TYPE.
 *
 * The event loop calls every operation but those under "rings", which the thread of a snapshot
 * calls. At most one snapshot uses a source at a time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/base.h"
#include "util/perf/codec.h"
#include "util/perf/tsc.h"

struct config;
struct keeperlink;
struct kept;
struct ptclock_log;
struct source;
struct tasks;

/* Identity and timing of the CPUs, as a snapshot states them. The conversion of TSC to time changes
 * when the machine was suspended, but never while the rings are held. */
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
	bool is_inherited; /* some tasks are recorded, and not whole CPUs: SWITCH records */

	/* The stream SOURCE_CODE holds the code that ran and is in no file. Otherwise such code is
	 * found in the memory of the processes that ran it. */
	bool gives_code;

	/* There are rings of events. */
	bool gives_events;

	/* The recorded programs write the task records, not the kernel: any process and any file
	 * may be named in them. */
	bool is_claimed;
};

/* What a thread did on a CPU that PT does not show. */
enum source_event_kind {
	SOURCE_EVENT_SYSCALL, /* it enters the system call @number */
	SOURCE_EVENT_SIGNAL,  /* it takes the signal @number, whose handler is at @handler */
};

struct source_event {
	uint64_t time; /* in ns on the records' clock */
	uint32_t pid, tid;
	enum source_event_kind kind;
	uint32_t number;
	uint64_t handler;
};

/* How far the PT of a CPU reaches when the rings are held. */
enum source_end {
	SOURCE_END_IDLE,    /* to its last packet: nothing ran on the CPU */
	SOURCE_END_FLUSHED, /* to the moment of the hold */
	SOURCE_END_LATE,    /* to what its writer had published: it did not answer in time */
	SOURCE_END_OFFLINE, /* to when the CPU went offline */
};

/* The moment at which the rings were held, on three clocks. */
struct source_moment {
	/*
	 * The rings were read one after the other. Until this time all of them have what ran, on
	 * the records' clock. What a ring has of a later time may lack what the same thread ran
	 * before that on another CPU, whose ring had been read already.
	 */
	uint64_t complete_until_ns;
	uint64_t ns;           /* on the records' clock */
	uint64_t monotonic_ns; /* on CLOCK_MONOTONIC */
	uint64_t realtime_ns;  /* on CLOCK_REALTIME */
};

struct source_status {
	uint32_t n_online;    /* CPUs that are there to be recorded */
	uint32_t n_recording; /* CPUs that are recorded */
	/* CPUs that are not recorded. Offline: their rings are kept. Busy: another program has
	 * their PT. */
	uint32_t n_offline, n_busy, n_failed;
	bool paused;
	/* Something may be writing task records. While this is so, the streams must be drained. */
	bool is_active;
	uint64_t aux_size, switch_size; /* bytes of the rings of one CPU */
	uint64_t bytes_held;            /* about how many bytes all rings hold now */
	/* Task records that were lost before they could be drained, for which no LOST record is
	 * drained: the switch records of the CPUs that they concern begin later. */
	uint64_t n_tasks_lost;
	/* Processes that lived when the source looked last, whose mappings were not to be had. */
	uint64_t n_unread;
};

/* What the AUX ring of a CPU held at the last hold. */
struct source_view {
	/* The bytes, oldest first. @b is empty unless they cross the end of the ring. They belong
	 * to the source, and its writer goes on overwriting them. */
	const uint8_t *a;
	size_t a_size;
	const uint8_t *b;
	size_t b_size;

	uint64_t head; /* running count of the bytes that were ever written */
	enum source_end end;

	/* The running count at the bookmark that was asked for. Bytes before it are not wanted. */
	uint64_t since;

	/* How many bytes at the start of the view may have been overwritten since the hold. */
	uint64_t overwritten;

	/* For how long, in ns, PT of this CPU was off at most because of the hold and the views. */
	uint64_t gap_ns;
};

enum source_stream {
	SOURCE_TASKS, /* task records */
	SOURCE_CODE,  /* code that ran (plugin/coderecord.h); empty without facts.gives_code */
};

enum {
	SOURCE_MORE = 1, /* tasks() has to go on */
};

struct source_ops {
	struct source_status (*status)(struct source *source);

	/* Do what is due once a second, such as noticing CPUs that came or went. */
	void (*look_after)(struct source *source);

	/* Give PT up to other programs, or take it again. What the rings held is lost. Return: 0;
	 * -EBUSY while the rings are held. NULL: no other program could use it. */
	int (*pause)(struct source *source, bool pause);

	/*
	 * Take what was written to a stream since the last call. @ret_bytes is whole records, which
	 * the caller frees.
	 *
	 * Return: 0; or -ENOMEM: task records stay for a later call, or a record will say that some
	 *         were lost, and code is lost; or -EBADMSG: code was lost, because the stream made
	 *         no sense.
	 */
	int (*drain)(struct source *source, enum source_stream stream, uint8_t **ret_bytes,
		     size_t *ret_size);

	/* What drain() returned is published in the kept state: the writers may use its room again.
	 * NULL without a kept state. */
	void (*give_room)(struct source *source);

	/*
	 * Give @put records of all tasks that live: those that the kernel would have written when
	 * they began. All the while the source goes on writing task records of what changes.
	 *
	 * A source whose records name every task from its beginning writes what @known holds, which
	 * is what the drained records say, at once and completely. Any other source looks at the
	 * system for about @budget_ns, goes on where it was at the next call, and begins again
	 * after the end. With a budget of 0 it does not look.
	 *
	 * Return: 0 at the end; SOURCE_MORE; or negative errno, and the next call begins again.
	 */
	int (*tasks)(struct source *source, const struct tasks *known, uint64_t budget_ns,
		     record_put_fn put, void *userdata);

	/*
	 * Find the user whose account the records of a process count in: who started it. NULL: they
	 * count as root's.
	 *
	 * A source looks into /proc, which takes some 20 us. Programs can make it necessary at any
	 * rate, so callers limit how often they ask.
	 *
	 * Return: 0; or negative errno: the source does not know.
	 */
	int (*owner)(struct source *source, uint32_t pid, uid_t *ret_uid);

	/* --- rings --- */

	/* How many bytes of memory are worth having ready before a hold for copying the PT of @cpu.
	 * Return: bytes; 0 if it is not worth it. NULL: it never is. Memory is then allocated while
	 * the rings are copied, of which only a small part may be filled. */
	uint64_t (*aux_room)(struct source *source, uint32_t cpu);

	/*
	 * Have every CPU publish how much it has written, all at one moment, and keep the rings
	 * from being closed until release(). Tracing goes on, so the rings must be copied at once.
	 * After this, and until release(), several threads may call view(), copy_switches() and
	 * copy_events(), each for other CPUs.
	 *
	 * Return: 0 or negative errno. release(), if there is one, is called only
	 * after 0.
	 */
	int (*hold)(struct source *source, struct source_moment *ret_moment);
	void (*release)(struct source *source);

	/*
	 * See what the AUX ring of @cpu held at the last hold.
	 *
	 * @since_ns: on CLOCK_MONOTONIC: nothing is wanted that is older than the source's last
	 *            bookmark before this time; 0: everything is wanted
	 * @exact: the PT has been copied: from now on @ret_view->overwritten is exact, whatever it
	 *         costs to find out, and does not grow until the next hold
	 *
	 * Return: 0, or negative errno.
	 */
	int (*view)(struct source *source, uint32_t cpu, uint64_t since_ns, bool exact,
		    struct source_view *ret_view);

	/*
	 * Copy the switch records of @cpu: whole ones, oldest first, which the caller frees.
	 *
	 * @since_ns: as above
	 * @ret_cut: older ones are gone, or not wanted
	 *
	 * Return: 0, or -ENOMEM.
	 */
	int (*copy_switches)(struct source *source, uint32_t cpu, uint64_t since_ns,
			     uint8_t **ret_bytes, size_t *ret_size, bool *ret_cut);

	/*
	 * Copy the events of @cpu, oldest first, which the caller frees. NULL without
	 * facts.gives_events.
	 *
	 * Return: as copy_switches().
	 */
	int (*copy_events)(struct source *source, uint32_t cpu, uint64_t since_ns,
			   struct source_event **ret_events, size_t *ret_n);

	/* --- life --- */

	/* Return: NULL. */
	struct source *(*free)(struct source *source);
};

/* First member of every source. Only the facts change while it lives: in look_after(), and, about
 * what the rings hold, in hold(). */
struct source {
	const struct source_ops *ops;
	struct source_facts facts;
	uint32_t n_cpus;

	/* Is readable when there are task records to drain. -1: the source cannot say, so they are
	 * drained now and then while it is active. */
	int records_fd;

	/* Bytes of task records for which there is room between two drains, whichever CPU they are
	 * of; 0: not known. */
	uint64_t records_room;

	/* Samples of the clocks, which any thread may copy while the rings are held; later they may
	 * be forgotten. NULL: all clocks are the records' clock. */
	struct ptclock_log *clock;

	/* What a later process needs to go on with the rings; NULL: none can. */
	struct kept *kept;
};

/* Make the source that Source= asks for; if the keeper has its rings, with what they hold. @link
 * may be NULL, and stays the caller's; the collector's socket is in @runtime_dir. Return: 0, or
 * negative errno: why has been logged. */
_must_check_ int source_new(const struct config *config, struct keeperlink *link,
			    const char *runtime_dir, struct source **ret_source);
