/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/soft/emuterms.h"

#include "daemon/config/config.h"

#define QUANTUM_US 5000u

/* The ring of code is larger than that of task records by this factor: both are drained at the same
 * time, and a JIT compiler makes megabytes of code a second. */
#define CODE_PER_TASK 4u

/* The AUX ring is larger than that of events by this factor. A system call takes at least some 20
 * bytes of packets, and code runs between two of them. */
#define AUX_PER_EVENTS 4u
#define EVENTS_MIN     UINT64_C(4096) /* bytes */

/* Positions in RTIT_CTL, which intel_pt's format/ directory repeats. */
#define CONFIG_PT        (UINT64_C(1) << 0)
#define CONFIG_CYC       (UINT64_C(1) << 1)
#define CONFIG_MTC       (UINT64_C(1) << 9)
#define CONFIG_TSC       (UINT64_C(1) << 10)
#define CONFIG_NORETCOMP (UINT64_C(1) << 11)
#define CONFIG_BRANCH    (UINT64_C(1) << 13)
#define MASK_MTC_PERIOD  (UINT64_C(15) << 14)
#define SHIFT_MTC_PERIOD 14
#define SHIFT_PSB_PERIOD 24

#define DEFAULT_PSB_PERIOD 1u
#define DEFAULT_MTC_PERIOD 3u

/* The terms that the software source knows; the others it leaves alone. */
struct wanted {
	uint32_t noretcomp, psb_period, mtc, mtc_period, cyc;
};

static struct wanted wanted_from(const struct ptterms *pt)
{
	return (struct wanted){
		.noretcomp = ptterms_get(pt, PTTERM_NORETCOMP, 0),
		.psb_period = ptterms_get(pt, PTTERM_PSB_PERIOD, DEFAULT_PSB_PERIOD),
		.mtc = ptterms_get(pt, PTTERM_MTC, 0),
		.mtc_period = ptterms_get(pt, PTTERM_MTC_PERIOD, DEFAULT_MTC_PERIOD),
		.cyc = ptterms_get(pt, PTTERM_CYC, 0),
	};
}

bool emuterms_knows(enum ptterm term)
{
	switch (term) {
	case PTTERM_PT:
	case PTTERM_BRANCH:
	case PTTERM_TSC:
	case PTTERM_NORETCOMP:
	case PTTERM_PSB_PERIOD:
	case PTTERM_MTC:
	case PTTERM_MTC_PERIOD:
	case PTTERM_CYC:
		return true;
	default:
		return false;
	}
}

struct emu_pool_layout emuterms_layout(const struct config *config)
{
	const long online = sysconf(_SC_NPROCESSORS_ONLN);
	const uint64_t events = config->aux_size / AUX_PER_EVENTS;
	const struct wanted pt = wanted_from(&config->pt);
	uint32_t n = config->n_cpus ? config->n_cpus : online > 0 ? (uint32_t)online : 1;

	if (n > EMU_CPUS_MAX / 2)
		n = EMU_CPUS_MAX / 2;
	return (struct emu_pool_layout){
		.n_cpus = 2 * n, /* half of them in reserve */
		.n_busy_max = n,
		.aux_size = config->aux_size,
		.switch_size = config->switch_size,
		.event_size = events > EVENTS_MIN ? events : EVENTS_MIN,
		.task_size = config->task_size,
		.code_size = CODE_PER_TASK * config->task_size,
		.psb_period = UINT32_C(2048) << pt.psb_period,
		.quantum_us = QUANTUM_US,
		.return_compression = !pt.noretcomp,
		.long_tnt = config->long_tnt,
		.timing = { .mtc = pt.mtc, .cyc = pt.cyc, .mtc_period = (uint8_t)pt.mtc_period },
	};
}

static uint64_t timing_config(const struct wanted *pt)
{
	return (pt->mtc ? CONFIG_MTC | (uint64_t)pt->mtc_period << SHIFT_MTC_PERIOD : 0) |
	       (pt->cyc ? CONFIG_CYC : 0);
}

uint64_t emuterms_timing_config(const struct encode_timing *timing)
{
	return timing_config(
	    &(struct wanted){ .mtc = 1, .mtc_period = timing->mtc_period, .cyc = 1 });
}

/* The virtual CPUs are of a model that no decoder applies errata workarounds for. Their TSC counts
 * the ns of CLOCK_MONOTONIC, so that the conversion changes nothing. */
struct source_facts emuterms_facts(const struct config *config)
{
	const struct wanted pt = wanted_from(&config->pt);

	return (struct source_facts){
		.name = "emu",
		.pmu_type = 8,
		.attr_config = CONFIG_PT | CONFIG_TSC | CONFIG_BRANCH |
			       (pt.noretcomp ? CONFIG_NORETCOMP : 0) | timing_config(&pt) |
			       (uint64_t)pt.psb_period << SHIFT_PSB_PERIOD,
		.mask_tsc = CONFIG_TSC,
		.mask_noretcomp = CONFIG_NORETCOMP,
		.mask_mtc = CONFIG_MTC,
		.mask_mtc_period = MASK_MTC_PERIOD,
		.mask_cyc = CONFIG_CYC,
		.tsc = { .valid = true, .mult = 1 },
		.tsc_ctc_numerator = ENCODE_TSC_PER_CTC,
		.tsc_ctc_denominator = 1,
		.max_nonturbo_ratio = ENCODE_CBR,
		.cpuid = "GenuineIntel,6,85,7",
		.user = true,
		.gives_code = true,
		.gives_events = true,
		.is_claimed = true,
	};
}
