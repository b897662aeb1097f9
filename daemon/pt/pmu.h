/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pmu
 *
 * The intel_pt PMU as its directory in sysfs describes it: the type to open events with, where each
 * term lies in perf_event_attr.config (format/), what this CPU can do (caps/). All of it differs
 * from machine to machine, the type from boot to boot. Besides, what CPUID says of the CPU.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "daemon/config/ptterms.h"

#define PMU_CPUID_SIZE 64u

struct pmu {
	uint32_t type;
	uint64_t masks[_PTTERMS]; /* bits of config that a term has; 0: this kernel has no such */

	/* caps/ */
	bool mtc, psb_cyc, ptwrite, power_event_trace, event_trace;
	bool topa_multiple_entries; /* a ring may be scattered over memory */
	uint32_t mtc_periods, cycle_thresholds, psb_periods; /* bit N: value N is supported */

	uint32_t max_nonturbo_ratio; /* 0 if the kernel does not say */
	uint32_t tsc_ctc_numerator;  /* TSC ticks per tick of the crystal; 0: unknown */
	uint32_t tsc_ctc_denominator;
};

/* Called for each term that cannot be had. @message ends in ", ignoring". */
typedef void (*pmu_warn_fn)(const char *message);

/*
 * Read the directory at @path.
 *
 * Return: 0; or negative errno, and @reterr_file is the file in it that is missing or makes no
 *         sense, a constant.
 */
_must_check_ int pmu_read(const char *path, struct pmu *ret_pmu, const char **reterr_file);

/*
 * Make perf_event_attr.config of @terms. What they leave open is set so that decoding works best:
 * TSC and MTC packets as this CPU has them, and a PSB every 4 KiB. A term that this CPU or kernel
 * does not have, or that would make the trace useless, is ignored; @warn, if not NULL, is told.
 */
uint64_t pmu_config(const struct pmu *pmu, const struct ptterms *terms, pmu_warn_fn warn);

/* The CPU we run on, as perf writes it: "GenuineIntel,6,85,4". */
void pmu_cpuid(char ret_text[PMU_CPUID_SIZE]);
