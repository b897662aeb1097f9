/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/pt/pmu.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "daemon/proc/sysfile.h"

#define DEFAULT_MTC_PERIOD 3u
#define DEFAULT_PSB_PERIOD 1u /* 4 KiB: an idle CPU's ring has one soon */

/* --- sysfs ----------------------------------------------------------------------------------- */

static int read_formats(int dir, struct pmu *pmu, const char **reterr_file)
{
	for (unsigned i = 0; i < _PTTERMS; i++) {
		char name[SYSFILE_TEXT_SIZE];
		int r;

		(void)snprintf(name, sizeof(name), "format/%s", ptterms_name(i));
		r = sysfile_mask(dir, name, &pmu->masks[i]);
		if (r == -ENOENT) /* older kernels have fewer */
			continue;
		if (r < 0) {
			*reterr_file = ptterms_name(i);
			return r;
		}
	}
	if (pmu->masks[PTTERM_TSC])
		return 0;
	*reterr_file = "format/tsc";
	return -ENOENT;
}

/* What a CPU cannot do it may not have a file for. */
static uint32_t read_cap(int dir, const char *name)
{
	uint32_t n;

	return sysfile_number(dir, name, 16, &n) == 0 ? n : 0;
}

static void read_caps(int dir, struct pmu *pmu)
{
	pmu->mtc = read_cap(dir, "caps/mtc");
	pmu->psb_cyc = read_cap(dir, "caps/psb_cyc");
	pmu->ptwrite = read_cap(dir, "caps/ptwrite");
	pmu->power_event_trace = read_cap(dir, "caps/power_event_trace");
	pmu->event_trace = read_cap(dir, "caps/event_trace");
	pmu->topa_multiple_entries = read_cap(dir, "caps/topa_multiple_entries");
	pmu->mtc_periods = read_cap(dir, "caps/mtc_periods");
	pmu->cycle_thresholds = read_cap(dir, "caps/cycle_thresholds");
	pmu->psb_periods = read_cap(dir, "caps/psb_periods");
}

/* The kernel's word first, so that all that reads it agrees; older ones do not say. */
static void read_timing(int dir, struct pmu *pmu)
{
	uint32_t n, d, ecx, edx;
	char text[SYSFILE_TEXT_SIZE];
	const char *p;

	if (sysfile_number(dir, "max_nonturbo_ratio", 10, &n) == 0)
		pmu->max_nonturbo_ratio = n;
	if (sysfile_text(dir, "tsc_art_ratio", text) == 0) {
		p = sysfile_scan(text, 10, &n);
		if (p && *p == ':' && (p = sysfile_scan(p + 1, 10, &d)) && !*p) {
			pmu->tsc_ctc_numerator = n;
			pmu->tsc_ctc_denominator = d;
			return;
		}
	}
	if (__get_cpuid(0x15, &d, &n, &ecx, &edx)) {
		pmu->tsc_ctc_numerator = n;
		pmu->tsc_ctc_denominator = d;
	}
}

int pmu_read(const char *path, struct pmu *ret_pmu, const char **reterr_file)
{
	_cleanup_(fd_closep) int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct pmu pmu = {};
	int r;

	*reterr_file = "";
	if (dir < 0)
		return -errno;
	*reterr_file = "type";
	r = sysfile_number(dir, "type", 10, &pmu.type);
	if (r == 0)
		r = read_formats(dir, &pmu, reterr_file);
	if (r < 0)
		return r;
	read_caps(dir, &pmu);
	read_timing(dir, &pmu);
	*ret_pmu = pmu;
	return 0;
}

/* --- terms ----------------------------------------------------------------------------------- */

struct wish {
	const struct pmu *pmu;
	const struct ptterms *terms;
	pmu_warn_fn warn;
	uint64_t config;
};

_printf_(3, 4) static void refuse(const struct wish *w, enum ptterm term, const char *format, ...)
{
	char reason[256], message[384];
	va_list ap;

	if (!w->warn)
		return;
	va_start(ap, format);
	(void)vsnprintf(reason, sizeof(reason), format, ap);
	va_end(ap);
	(void)snprintf(message, sizeof(message), "PT=%s=%d: %s, ignoring", ptterms_name(term),
		       w->terms->values[term], reason);
	w->warn(message);
}

static bool is_term_set(const struct wish *w, enum ptterm term)
{
	return w->terms->values[term] != PTTERMS_UNSET;
}

static void put_term(struct wish *w, enum ptterm term, uint32_t value)
{
	const uint64_t mask = w->pmu->masks[term];

	if (mask)
		w->config |= ((uint64_t)value << __builtin_ctzll(mask)) & mask;
}

static bool has_term(const struct wish *w, enum ptterm term)
{
	return (w->config & w->pmu->masks[term]) != 0;
}

/* A term without which, or with which, no instruction could be decoded. */
static void put_fixed(struct wish *w, enum ptterm term, uint32_t value, const char *why)
{
	if (is_term_set(w, term) && (uint32_t)w->terms->values[term] != value)
		refuse(w, term, "%s", why);
	put_term(w, term, value);
}

/* One that a CPU has or has not. */
static void put_flag(struct wish *w, enum ptterm term, uint32_t fallback, bool can,
		     const char *file)
{
	const uint32_t value = ptterms_get(w->terms, term, can ? fallback : 0);

	if (value && !w->pmu->masks[term])
		return refuse(w, term, "this kernel's intel_pt has no format/%s",
			      ptterms_name(term));
	if (value && !can)
		return refuse(w, term, "this CPU cannot do it (%s)", file);
	put_term(w, term, value);
}

/* The supported value that is nearest to @wanted. */
static uint32_t nearest_supported(uint32_t supported, uint32_t wanted)
{
	for (uint32_t d = 0; d < 16; d++) {
		if (wanted + d < 16 && supported & UINT32_C(1) << (wanted + d))
			return wanted + d;
		if (d <= wanted && supported & UINT32_C(1) << (wanted - d))
			return wanted - d;
	}
	return 0;
}

/* "0, 3, 6, 9" */
static void list_values(uint32_t supported, char *ret_text, size_t size)
{
	size_t n = 0;

	(void)snprintf(ret_text, size, "none");
	for (unsigned i = 0; i < 16 && n < size; i++)
		if (supported & UINT32_C(1) << i)
			n += (size_t)snprintf(ret_text + n, size - n, "%s%u", n ? ", " : "", i);
}

/* One whose values are a CPU's own. */
static void put_value(struct wish *w, enum ptterm term, uint32_t fallback, uint32_t supported,
		      const char *file)
{
	const uint32_t value = ptterms_get(w->terms, term, fallback);
	char list[96];

	if (supported & UINT32_C(1) << value)
		return put_term(w, term, value);
	if (is_term_set(w, term)) {
		list_values(supported, list, sizeof(list));
		refuse(w, term, "this CPU supports %s (%s)", list, file);
	}
	put_term(w, term, nearest_supported(supported, fallback));
}

uint64_t pmu_config(const struct pmu *pmu, const struct ptterms *terms, pmu_warn_fn warn)
{
	struct wish w = { .pmu = pmu, .terms = terms, .warn = warn };

	put_fixed(&w, PTTERM_PT, 1, "nothing is traced without it");
	put_fixed(&w, PTTERM_BRANCH, 1, "no instruction can be decoded without branches");
	put_fixed(&w, PTTERM_NOTNT, 0, "no instruction can be decoded without branches");
	put_fixed(&w, PTTERM_TSC, 1, "no thread can be told from another without time");

	put_flag(&w, PTTERM_NORETCOMP, 0, true, "format/noretcomp");
	put_flag(&w, PTTERM_MTC, 1, pmu->mtc && pmu->mtc_periods, "caps/mtc");
	put_flag(&w, PTTERM_CYC, 0, pmu->psb_cyc, "caps/psb_cyc");
	put_flag(&w, PTTERM_PWR_EVT, 0, pmu->power_event_trace, "caps/power_event_trace");
	put_flag(&w, PTTERM_EVENT, 0, pmu->event_trace, "caps/event_trace");
	put_flag(&w, PTTERM_PTW, 0, pmu->ptwrite, "caps/ptwrite");
	put_flag(&w, PTTERM_FUP_ON_PTW, 0, pmu->ptwrite && has_term(&w, PTTERM_PTW),
		 "it needs ptw=1 and caps/ptwrite");

	if (has_term(&w, PTTERM_MTC))
		put_value(&w, PTTERM_MTC_PERIOD, DEFAULT_MTC_PERIOD, pmu->mtc_periods,
			  "caps/mtc_periods");
	else if (ptterms_get(terms, PTTERM_MTC_PERIOD, 0))
		refuse(&w, PTTERM_MTC_PERIOD, "there are no MTC packets without mtc=1");

	/* 0 is each of these fields' value where there is no choice. */
	put_value(&w, PTTERM_CYC_THRESH, 0, pmu->psb_cyc ? pmu->cycle_thresholds | 1 : 1,
		  "caps/cycle_thresholds");
	put_value(&w, PTTERM_PSB_PERIOD, pmu->psb_cyc ? DEFAULT_PSB_PERIOD : 0,
		  pmu->psb_cyc ? pmu->psb_periods | 1 : 1, "caps/psb_periods");
	return w.config;
}

/* --- CPUID ----------------------------------------------------------------------------------- */

void pmu_cpuid(char ret_text[PMU_CPUID_SIZE])
{
	unsigned level, eax, ebx, ecx, edx, family, model;
	char vendor[13] = "";

	(void)snprintf(ret_text, PMU_CPUID_SIZE, "unknown");
	if (!__get_cpuid(0, &level, &ebx, &ecx, &edx))
		return;
	memcpy(vendor, &ebx, 4);
	memcpy(vendor + 4, &edx, 4);
	memcpy(vendor + 8, &ecx, 4);
	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx))
		return;
	family = (eax >> 8) & 0xf;
	model = (eax >> 4) & 0xf;
	if (family == 0xf)
		family += (eax >> 20) & 0xff;
	if (family >= 6)
		model += ((eax >> 16) & 0xf) << 4;
	(void)snprintf(ret_text, PMU_CPUID_SIZE, "%s,%u,%u,%u", vendor, family, model, eax & 0xf);
}
