// SPDX-License-Identifier: GPL-2.0

#include <linux/bitfield.h>
#include <linux/device.h>
#include <linux/module.h>

#include "softpt.h"

/* --- caps: those of an Ice Lake server, unless told otherwise when the module is loaded ------- */

#define CAPS(X)                     \
	X(max_subleaf, 1)           \
	X(cr3_filtering, 1)         \
	X(psb_cyc, 1)               \
	X(ip_filtering, 1)          \
	X(mtc, 1)                   \
	X(ptwrite, 1)               \
	X(power_event_trace, 1)     \
	X(event_trace, 0)           \
	X(tnt_disable, 0)           \
	X(topa_output, 1)           \
	X(topa_multiple_entries, 1) \
	X(single_range_output, 1)   \
	X(output_subsys, 0)         \
	X(payloads_lip, 0)          \
	X(num_address_ranges, 2)    \
	X(mtc_periods, 0x249)       \
	X(cycle_thresholds, 0x3f)   \
	X(psb_periods, 0x3f)

enum cap_number {
#define X(name, value) CAP_##name,
	CAPS(X)
#undef X
	    N_CAPS,
};

static struct cap {
	struct dev_ext_attribute attribute;
	uint value;
} caps[] = {
#define X(name, v) { .value = v },
	CAPS(X)
#undef X
};

#define X(name, v) module_param_named(cap_##name, caps[CAP_##name].value, uint, 0444);
CAPS(X)
#undef X

static const char *const cap_names[] = {
#define X(name, v) #name,
	CAPS(X)
#undef X
};

static ulong max_nonturbo_ratio = 10;
static uint tsc_art_num = 40, tsc_art_den = 1; /* CPUID 0x15: as the plugin's packets have it */
module_param(max_nonturbo_ratio, ulong, 0444);
module_param(tsc_art_num, uint, 0444);
module_param(tsc_art_den, uint, 0444);

static bool busy; /* somebody else has the branch records */
module_param(busy, bool, 0644);

static struct attribute *cap_attributes[N_CAPS + 1];
static const struct attribute_group caps_attr_group = { .name = "caps", .attrs = cap_attributes };

static ssize_t cap_show(struct device *device, struct device_attribute *attribute, char *text)
{
	struct dev_ext_attribute *cap = container_of(attribute, struct dev_ext_attribute, attr);

	return sysfs_emit(text, "%x\n", *(uint *)cap->var);
}

/* --- format ---------------------------------------------------------------------------------- */

#define CYC         BIT_ULL(1)
#define PWR_EVT     BIT_ULL(4)
#define FUP_ON_PTW  BIT_ULL(5)
#define MTC         BIT_ULL(9)
#define TSC         BIT_ULL(10)
#define NORETCOMP   BIT_ULL(11)
#define PTW         BIT_ULL(12)
#define BRANCH      BIT_ULL(13)
#define MTC_PERIOD  GENMASK_ULL(17, 14)
#define CYC_THRESH  GENMASK_ULL(22, 19)
#define PSB_PERIODS GENMASK_ULL(27, 24)
#define EVENT       BIT_ULL(31)
#define NOTNT       BIT_ULL(55)
#define PT          BIT_ULL(0)

#define ALL                                                                                    \
	(PT | CYC | PWR_EVT | FUP_ON_PTW | MTC | TSC | NORETCOMP | PTW | BRANCH | MTC_PERIOD | \
	 CYC_THRESH | PSB_PERIODS | EVENT | NOTNT)

PMU_FORMAT_ATTR(pt, "config:0");
PMU_FORMAT_ATTR(cyc, "config:1");
PMU_FORMAT_ATTR(pwr_evt, "config:4");
PMU_FORMAT_ATTR(fup_on_ptw, "config:5");
PMU_FORMAT_ATTR(mtc, "config:9");
PMU_FORMAT_ATTR(tsc, "config:10");
PMU_FORMAT_ATTR(noretcomp, "config:11");
PMU_FORMAT_ATTR(ptw, "config:12");
PMU_FORMAT_ATTR(branch, "config:13");
PMU_FORMAT_ATTR(mtc_period, "config:14-17");
PMU_FORMAT_ATTR(cyc_thresh, "config:19-22");
PMU_FORMAT_ATTR(psb_period, "config:24-27");
PMU_FORMAT_ATTR(event, "config:31");
PMU_FORMAT_ATTR(notnt, "config:55");

static struct attribute *format_attributes[] = {
	&format_attr_pt.attr,         &format_attr_cyc.attr,        &format_attr_pwr_evt.attr,
	&format_attr_event.attr,      &format_attr_notnt.attr,      &format_attr_fup_on_ptw.attr,
	&format_attr_mtc.attr,        &format_attr_tsc.attr,        &format_attr_noretcomp.attr,
	&format_attr_ptw.attr,        &format_attr_branch.attr,     &format_attr_mtc_period.attr,
	&format_attr_cyc_thresh.attr, &format_attr_psb_period.attr, NULL,
};
static const struct attribute_group format_group = {
	.name = "format",
	.attrs = format_attributes,
};

/* --- the CPU's clocks ------------------------------------------------------------------------- */

static ssize_t max_nonturbo_ratio_show(struct device *device, struct device_attribute *attribute,
				       char *text)
{
	return sysfs_emit(text, "%lu\n", max_nonturbo_ratio);
}
static DEVICE_ATTR_RO(max_nonturbo_ratio);

static ssize_t tsc_art_ratio_show(struct device *device, struct device_attribute *attribute,
				  char *text)
{
	return sysfs_emit(text, "%u:%u\n", tsc_art_num, tsc_art_den);
}
static DEVICE_ATTR_RO(tsc_art_ratio);

static struct attribute *clock_attributes[] = {
	&dev_attr_max_nonturbo_ratio.attr,
	&dev_attr_tsc_art_ratio.attr,
	NULL,
};
static const struct attribute_group clock_group = { .attrs = clock_attributes };

const struct attribute_group *caps_groups[] = { &caps_attr_group, &format_group, &clock_group,
						NULL };

/* --- what they mean --------------------------------------------------------------------------- */

void caps_init(void)
{
	for (size_t i = 0; i < N_CAPS; i++) {
		struct dev_ext_attribute *attribute = &caps[i].attribute;

		sysfs_attr_init(&attribute->attr.attr);
		attribute->attr.attr.name = cap_names[i];
		attribute->attr.attr.mode = 0444;
		attribute->attr.show = cap_show;
		attribute->var = &caps[i].value;
		cap_attributes[i] = &attribute->attr.attr;
	}
}

unsigned int caps_address_ranges(void)
{
	return caps[CAP_num_address_ranges].value;
}

bool caps_scatters(void)
{
	return caps[CAP_topa_multiple_entries].value;
}

bool caps_is_busy(void)
{
	return busy;
}

/* A caps value with a bit for each value of a field; that field may always be 0. */
static bool allowed(enum cap_number cap, u64 value)
{
	return value == 0 || caps[cap].value & BIT(value);
}

bool caps_has(u64 config)
{
	if (config & ~ALL)
		return false;
	if (config & (CYC | CYC_THRESH | PSB_PERIODS) &&
	    (!caps[CAP_psb_cyc].value ||
	     !allowed(CAP_psb_periods, FIELD_GET(PSB_PERIODS, config)) ||
	     !allowed(CAP_cycle_thresholds, FIELD_GET(CYC_THRESH, config))))
		return false;
	/* Here a period of 0 must be allowed, too. */
	if (config & (MTC | MTC_PERIOD) &&
	    (!caps[CAP_mtc].value ||
	     !(caps[CAP_mtc_periods].value & BIT(FIELD_GET(MTC_PERIOD, config)))))
		return false;
	if ((config & PWR_EVT && !caps[CAP_power_event_trace].value) ||
	    (config & EVENT && !caps[CAP_event_trace].value) ||
	    (config & NOTNT && !caps[CAP_tnt_disable].value))
		return false;
	if (config & (PTW | FUP_ON_PTW) && (!caps[CAP_ptwrite].value || !(config & PTW)))
		return false;
	return config & PT || !(config & BRANCH);
}
