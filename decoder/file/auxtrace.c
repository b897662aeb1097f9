/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/file/auxtrace.h"

#include <errno.h>
#include <stdio.h>

/*
 * Where the bits are in RTIT_CTL, and so in attr.config: for files whose AUXTRACE_INFO is too short
 * to say it.
 */
static const uint64_t rtit_ctl[_PERFABI_PT_SLOTS_FIXED] = {
	[PERFABI_PT_TSC_BIT] = 0x400,         [PERFABI_PT_NORETCOMP_BIT] = 0x800,
	[PERFABI_PT_MTC_BIT] = 0x200,         [PERFABI_PT_CYC_BIT] = 0x2,
	[PERFABI_PT_MTC_FREQ_BITS] = 0x3c000,
};

/* The bits of @config that @slot masks, as a number. */
static uint64_t field(const struct record_auxtrace_info *info, enum perfabi_pt_slot slot,
		      uint64_t config)
{
	const uint64_t mask = info->slots[slot] ?: rtit_ctl[slot];

	return (config & mask) >> __builtin_ctzll(mask);
}

static int clock_from_info(const struct record_auxtrace_info *info, struct tsc_conv *ret_clock)
{
	const uint64_t *slots = info->slots;

	if (!slots[PERFABI_PT_CAP_USER_TIME_ZERO]) {
		*ret_clock = (struct tsc_conv){};
		return 0;
	}
	if (slots[PERFABI_PT_TIME_SHIFT] > TSC_SHIFT_MAX || !slots[PERFABI_PT_TIME_MULT] ||
	    slots[PERFABI_PT_TIME_MULT] > UINT32_MAX)
		return -EBADMSG;

	*ret_clock = (struct tsc_conv){
		.valid = true,
		.shift = (uint16_t)slots[PERFABI_PT_TIME_SHIFT],
		.mult = (uint32_t)slots[PERFABI_PT_TIME_MULT],
		.zero = slots[PERFABI_PT_TIME_ZERO],
	};
	return 0;
}

int auxtrace_facts(const struct record_auxtrace_info *info, const struct perfattrs *attrs,
		   struct trace_facts *facts)
{
	const uint64_t *slots = info->slots;
	const struct perfattr *pt = NULL;
	int r;

	for (size_t i = 0; i < attrs->list.n && !pt; i++)
		if (attrs->list.items[i].type == slots[PERFABI_PT_PMU_TYPE])
			pt = &attrs->list.items[i];
	if (!pt)
		return -ENOENT;

	r = clock_from_info(info, &facts->clock);
	if (r < 0)
		return r;

	facts->snapshot_mode = slots[PERFABI_PT_SNAPSHOT_MODE] != 0;
	facts->has_events = pt->config & PERFABI_PT_EVENT_BIT;
	facts->has_tsc = field(info, PERFABI_PT_TSC_BIT, pt->config) != 0;
	facts->has_mtc = field(info, PERFABI_PT_MTC_BIT, pt->config) != 0;
	facts->has_cyc = field(info, PERFABI_PT_CYC_BIT, pt->config) != 0;
	facts->return_compression = field(info, PERFABI_PT_NORETCOMP_BIT, pt->config) == 0;
	facts->mtc_freq = (uint8_t)field(info, PERFABI_PT_MTC_FREQ_BITS, pt->config);
	facts->nom_freq = slots[PERFABI_PT_MAX_NONTURBO_RATIO] > UINT8_MAX
			      ? 0
			      : (uint8_t)slots[PERFABI_PT_MAX_NONTURBO_RATIO];
	facts->tsc_ctc_n = (uint32_t)slots[PERFABI_PT_TSC_CTC_N];
	facts->tsc_ctc_d = (uint32_t)slots[PERFABI_PT_TSC_CTC_D];
	return 0;
}

void auxtrace_cpuid(const char *cpuid, struct trace_facts *facts)
{
	unsigned int family, model, stepping;
	int n = 0;

	if (sscanf(cpuid, "GenuineIntel,%3u,%3u,%3u%n", &family, &model, &stepping, &n) != 3)
		return;
	if (cpuid[n] || model > UINT8_MAX || stepping > UINT8_MAX)
		return;

	facts->cpu_family = (uint16_t)family;
	facts->cpu_model = (uint8_t)model;
	facts->cpu_stepping = (uint8_t)stepping;
}
