/* SPDX-License-Identifier: GPL-2.0 */
#pragma once

/*
 * Soft PT
 *
 * A PMU called intel_pt whose behaviour towards perf follows arch/x86/events/intel/pt.c of Linux
 * 6.1, with the hardware replaced by software. hardware.c is the unit of one CPU, pmu.c what
 * pt.c does with it, caps.c what that shows of itself, feed.c where tests say what the "hardware"
 * writes.
 */

#include <linux/hrtimer.h>
#include <linux/perf_event.h>
#include <linux/sysfs.h>
#include <linux/types.h>

#include "vmring.h"

/* The AUX area of one event. */
struct pt_buffer {
	void **pages;
	size_t size; /* bytes, a power of two */
	bool overwrite;
	size_t offset;   /* where the next byte goes */
	size_t reported; /* offset when perf was told of it last */
	bool wrapped;
	u64 new_bytes; /* that perf was not told of */
	ssize_t stop_at;
	ssize_t interrupt_at; /* page boundaries; -1: none */
	bool stopped;         /* at stop_at; nothing is written until it is reset */
};

/* All that a test can ask of a CPU. */
struct pt_stats {
	u64 starts;
	u64 written;    /* bytes */
	u64 dropped;    /* bytes that came while nothing took them */
	u64 interrupts; /* PMIs */
	u64 gaps;       /* how often tracing was off between two times on */
	u64 gap_ns;     /* how long, in all; the last; the longest */
	u64 last_gap_ns;
	u64 longest_gap_ns;
};

struct pt_cpu {
	struct perf_output_handle handle;
	bool handles_interrupt; /* between start and stop */
	bool on;                /* RTIT_CTL.TraceEn */
	bool pending;           /* an interrupt is */
	u64 off_since_ns;       /* 0: never was on */
	struct hrtimer timer;   /* while on: generates, takes from the ring */
	u32 rate;               /* bytes that are generated each ms */
	u64 sequence;           /* of the generated PTW packets */
	u64 since_psb;
	struct pt_stats stats;
	struct vmring *ring; /* packets of what the CPU runs; NULL: nobody makes them */
};

DECLARE_PER_CPU(struct pt_cpu, pt_cpus);

/* --- hardware.c: all on the CPU itself, with interrupts off ----------------------------------- */

int hardware_init(void);
void hardware_exit(void);
/* Set RTIT_CTL to trace as @event asks. @again: not its first start, so no PSB is due. */
void hardware_start(struct pt_cpu *cpu, struct perf_event *event, bool again);
/* Clear TraceEn: all that was executed so far is in the buffer. */
void hardware_stop(struct pt_cpu *cpu);
/* The unit has @n bytes to write. They are dropped if it is off. */
void hardware_write(struct pt_cpu *cpu, const void *bytes, size_t n);

/* --- pmu.c -------------------------------------------------------------------------------- */

int pmu_init(void);
void pmu_exit(void);
/* Something went by stop_at or interrupt_at. On the CPU itself, with interrupts off. */
void pmu_interrupt(struct pt_cpu *cpu);

/* --- caps.c --------------------------------------------------------------------------------- */

extern const struct attribute_group *caps_groups[];
void caps_init(void);
/* Does the CPU that we say we are have all that @config asks? */
bool caps_has(u64 config);
unsigned int caps_address_ranges(void);
bool caps_scatters(void);
/* Does somebody else have the branch records, so that opening is refused? */
bool caps_is_busy(void);

/* --- feed.c ---------------------------------------------------------------------------------- */

void feed_init(void);
void feed_exit(void);
