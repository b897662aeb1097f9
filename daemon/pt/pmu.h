/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * PMU
 *
 * Reads what sysfs says of the intel_pt PMU: the type by which its events are opened, where each
 * term lies in perf_event_attr.config (format/), and what this CPU can do (caps/). All of this
 * differs between machines, and the type between boots. Also reads what CPUID says of the CPU.
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

/* Is called for each term that cannot be had. @message ends in ", ignoring". */
typedef void (*pmu_warn_fn)(const char *message);

/*
 * Read the directory of the PMU at @path.
 *
 * Return: 0; or negative errno, and @reterr_file, a constant, is the file in it that is missing or
 *         makes no sense.
 */
_must_check_ int pmu_read(const char *path, struct pmu *ret_pmu, const char **reterr_file);

/*
 * Compute perf_event_attr.config for @terms. A term that is not set is chosen so that decoding
 * works best: TSC and MTC packets if this CPU has them, and a PSB every 4 KiB. A term that this CPU
 * or kernel does not have, or that would make the trace useless, is ignored, and @warn is called,
 * which may be NULL.
 */
uint64_t pmu_config(const struct pmu *pmu, const struct ptterms *terms, pmu_warn_fn warn);

/* Write the CPU that this thread runs on as perf does it: "GenuineIntel,6,85,4". */
void pmu_cpuid(char ret_text[PMU_CPUID_SIZE]);
