/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/pt/pmu.h"
#include "tests/lib/tempdir.h"

/* A directory as the kernel makes it on a CPU of about 2019. */
static const struct file {
	const char *name, *text;
} icelake[] = {
	{ "type", "8\n" },
	{ "max_nonturbo_ratio", "23\n" },
	{ "tsc_art_ratio", "96:2\n" },
	{ "format/pt", "config:0\n" },
	{ "format/cyc", "config:1\n" },
	{ "format/pwr_evt", "config:4\n" },
	{ "format/fup_on_ptw", "config:5\n" },
	{ "format/mtc", "config:9\n" },
	{ "format/tsc", "config:10\n" },
	{ "format/noretcomp", "config:11\n" },
	{ "format/ptw", "config:12\n" },
	{ "format/branch", "config:13\n" },
	{ "format/mtc_period", "config:14-17\n" },
	{ "format/cyc_thresh", "config:19-22\n" },
	{ "format/psb_period", "config:24-27\n" },
	{ "caps/mtc", "1\n" },
	{ "caps/psb_cyc", "1\n" },
	{ "caps/ptwrite", "1\n" },
	{ "caps/power_event_trace", "0\n" },
	{ "caps/topa_multiple_entries", "1\n" },
	{ "caps/mtc_periods", "249\n" },
	{ "caps/cycle_thresholds", "3f\n" },
	{ "caps/psb_periods", "3f\n" },
};

static char dir[TEMPDIR_SIZE];

static void put(const char *name, const char *text)
{
	char path[192];

	if (text) {
		tempdir_put_text(dir, name, text);
		return;
	}
	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(unlink(path), 0);
}

static int set_up(void **state)
{
	(void)state;
	tempdir_make("pmu", dir);
	for (size_t i = 0; i < ARRAY_LEN(icelake); i++)
		put(icelake[i].name, icelake[i].text);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	tempdir_remove(dir);
	return 0;
}

static void what_there_is(void **state)
{
	const char *file;
	struct pmu pmu;

	(void)state;
	assert_int_equal(pmu_read(dir, &pmu, &file), 0);
	assert_int_equal(pmu.type, 8);
	assert_int_equal(pmu.masks[PTTERM_TSC], 0x400);
	assert_int_equal(pmu.masks[PTTERM_MTC_PERIOD], 0x3c000);
	assert_int_equal(pmu.masks[PTTERM_EVENT], 0);
	assert_true(pmu.mtc && pmu.psb_cyc && pmu.ptwrite && pmu.topa_multiple_entries);
	assert_false(pmu.power_event_trace);
	assert_int_equal(pmu.mtc_periods, 0x249);
	assert_int_equal(pmu.max_nonturbo_ratio, 23);
	assert_int_equal(pmu.tsc_ctc_numerator, 96);
	assert_int_equal(pmu.tsc_ctc_denominator, 2);

	put("type", "4294967295\n");
	assert_int_equal(pmu_read(dir, &pmu, &file), 0);
	assert_int_equal(pmu.type, UINT32_MAX);
}

/* Each spoils one file; the others are as above. */
static void wrong_files(void **state)
{
	static const struct {
		struct file file;
		int error;
		const char *named;
	} rows[] = {
		{ { "type", NULL }, -ENOENT, "type" },
		{ { "type", "" }, -EBADMSG, "type" },
		{ { "type", "8x" }, -EBADMSG, "type" },
		{ { "type", "-1" }, -EBADMSG, "type" },
		{ { "type", "99999999999" }, -EBADMSG, "type" },
		{ { "type", "4294967296" }, -EBADMSG, "type" },
		{ { "format/tsc", NULL }, -ENOENT, "format/tsc" },
		{ { "format/tsc", "config1:10" }, -EBADMSG, "tsc" },
		{ { "format/tsc", "config:64" }, -EBADMSG, "tsc" },
		{ { "format/tsc", "config:" }, -EBADMSG, "tsc" },
		{ { "format/mtc_period", "config:17-14" }, -EBADMSG, "mtc_period" },
		{ { "format/mtc_period", "config:14-" }, -EBADMSG, "mtc_period" },
		{ { "format/mtc_period", "config:14-17,19" }, -EBADMSG, "mtc_period" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct pmu pmu = { .type = 77 };
		const char *file = NULL;

		print_message("  %s: %s\n", rows[i].file.name, rows[i].file.text);
		put(rows[i].file.name, rows[i].file.text);
		assert_int_equal(pmu_read(dir, &pmu, &file), rows[i].error);
		assert_string_equal(file, rows[i].named);
		assert_int_equal(pmu.type, 77);
		for (size_t k = 0; k < ARRAY_LEN(icelake); k++)
			if (strcmp(icelake[k].name, rows[i].file.name) == 0)
				put(icelake[k].name, icelake[k].text);
	}
}

static char warnings[1024];

static void warn(const char *message)
{
	const size_t n = strlen(warnings);

	(void)snprintf(warnings + n, sizeof(warnings) - n, "%s\n", message);
}

#define DEFAULTS UINT64_C(0x0100e601) /* psb_period=1,mtc_period=3,branch,tsc,mtc,pt */

static void terms(void **state)
{
	static const struct {
		const char *terms;
		uint64_t config;
		const char *warnings;
	} rows[] = {
		{ "", DEFAULTS, "" },
		{ "mtc=0", 0x01002401, "" },
		{ "mtc=0,mtc_period=3", 0x01002401,
		  "PT=mtc_period=3: there are no MTC packets without mtc=1, ignoring\n" },
		{ "mtc_period=6,psb_period=0,noretcomp", 0x1ae01, "" },
		{ "mtc_period=5", DEFAULTS,
		  "PT=mtc_period=5: this CPU supports 0, 3, 6, 9 (caps/mtc_periods), ignoring\n" },
		{ "psb_period=6", DEFAULTS,
		  "PT=psb_period=6: this CPU supports 0, 1, 2, 3, 4, 5 (caps/psb_periods), "
		  "ignoring\n" },
		{ "cyc,cyc_thresh=2", DEFAULTS | 2 | 2 << 19, "" },
		{ "ptw,fup_on_ptw", DEFAULTS | 1 << 12 | 1 << 5, "" },
		{ "fup_on_ptw", DEFAULTS,
		  "PT=fup_on_ptw=1: this CPU cannot do it (it needs ptw=1 and caps/ptwrite), "
		  "ignoring\n" },
		{ "pwr_evt", DEFAULTS,
		  "PT=pwr_evt=1: this CPU cannot do it (caps/power_event_trace), ignoring\n" },
		{ "event", DEFAULTS,
		  "PT=event=1: this kernel's intel_pt has no format/event, ignoring\n" },
		{ "tsc=0", DEFAULTS,
		  "PT=tsc=0: no thread can be told from another without time, ignoring\n" },
		{ "branch=0,notnt", DEFAULTS,
		  "PT=branch=0: no instruction can be decoded without branches, ignoring\n"
		  "PT=notnt=1: no instruction can be decoded without branches, ignoring\n" },
	};
	const char *file;
	struct pmu pmu;

	(void)state;
	assert_int_equal(pmu_read(dir, &pmu, &file), 0);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char copy[128], message[128], *save = NULL;
		struct ptterms t;

		print_message("  %s\n", rows[i].terms);
		(void)snprintf(copy, sizeof(copy), "%s", rows[i].terms);
		ptterms_init(&t);
		for (char *p = strtok_r(copy, ",", &save); p; p = strtok_r(NULL, ",", &save))
			assert_int_equal(ptterms_set(&t, p, message, sizeof(message)), 0);
		warnings[0] = 0;
		assert_int_equal(pmu_config(&pmu, &t, warn), rows[i].config);
		assert_string_equal(warnings, rows[i].warnings);
	}
}

/* The first CPUs with PT: no choice of periods, no MTC; nor has the kernel all of today's terms. */
static void an_old_cpu(void **state)
{
	struct ptterms t;
	const char *file;
	struct pmu pmu;

	(void)state;
	put("caps/mtc", "0\n");
	put("caps/psb_cyc", NULL);
	put("format/pt", NULL);
	put("format/branch", NULL);
	put("tsc_art_ratio", NULL);
	put("max_nonturbo_ratio", NULL);
	assert_int_equal(pmu_read(dir, &pmu, &file), 0);
	assert_int_equal(pmu.max_nonturbo_ratio, 0);
	ptterms_init(&t);
	warnings[0] = 0;
	assert_int_equal(pmu_config(&pmu, &t, warn), 0x400);
	assert_string_equal(warnings, "");

	t.values[PTTERM_PSB_PERIOD] = 2;
	assert_int_equal(pmu_config(&pmu, &t, warn), 0x400);
	assert_string_equal(warnings,
			    "PT=psb_period=2: this CPU supports 0 (caps/psb_periods), ignoring\n");
	assert_int_equal(pmu_config(&pmu, &t, NULL), 0x400);
}

static void nothing_there(void **state)
{
	struct pmu pmu = { .type = 77 };
	const char *file;

	(void)state;
	assert_int_equal(pmu_read("/nonexistent", &pmu, &file), -ENOENT);
	assert_string_equal(file, "");
	assert_int_equal(pmu.type, 77);
}

static void cpuid(void **state)
{
	char text[PMU_CPUID_SIZE], vendor[16], word[16], line[4096];
	unsigned family, model, stepping, value;
	size_t n = 0;
	FILE *f;

	(void)state;
	pmu_cpuid(text);
	assert_int_equal(sscanf(text, "%15[^,],%u,%u,%u", vendor, &family, &model, &stepping), 4);
	assert_int_equal(strlen(vendor), 12);
	/* As the kernel has read it off the same CPU. */
	f = fopen("/proc/cpuinfo", "re");
	assert_non_null(f);
	while (n < 4 && fgets(line, sizeof(line), f)) {
		n += sscanf(line, "vendor_id : %15s", word) == 1 && strcmp(word, vendor) == 0;
		n += sscanf(line, "cpu family : %u", &value) == 1 && value == family;
		n += sscanf(line, "model : %u", &value) == 1 && value == model;
		n += sscanf(line, "stepping : %u", &value) == 1 && value == stepping;
		if (line[0] == '\n')
			break;
	}
	(void)fclose(f);
	assert_int_equal(n, 4);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_there_is), cmocka_unit_test(wrong_files),
		cmocka_unit_test(terms),         cmocka_unit_test(an_old_cpu),
		cmocka_unit_test(nothing_there), cmocka_unit_test(cpuid),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
