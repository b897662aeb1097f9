/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/config/config.h"
#include "tests/lib/failing.h"
#include "tests/lib/tempdir.h"

static char warnings[4096];

static void warn(const char *file, unsigned line, const char *message)
{
	const size_t n = strlen(warnings);

	(void)snprintf(warnings + n, sizeof(warnings) - n, "%s:%u: %s\n", file, line, message);
}

static void parse(struct config *config, const char *text)
{
	warnings[0] = 0;
	config_init(config);
	config_parse(config, "f", text, strlen(text), warn);
}

static void all_settings(void **state)
{
	struct config c;

	(void)state;
	parse(&c, "# comment\n; another\n\n[Recorder]\n"
		  "Source=emu\r\n AuxSize = 1M \nSwitchSize=64K\nTaskSize=1048576\nCpus=3\n"
		  "LongTNT=Yes\n"
		  "SidebandMax=2G\nMaxUse=1T\nKeepFree=0\nMaxAge=30d\nPT=noretcomp=1,psb_period=0, "
		  "mtc=0,cyc\n"
		  "Trace=all\n");
	assert_string_equal(warnings, "");
	assert_int_equal(c.source, CONFIG_SOURCE_EMU);
	assert_int_equal(c.aux_size, 1 << 20);
	assert_int_equal(c.switch_size, 64 << 10);
	assert_int_equal(c.task_size, 1 << 20);
	assert_int_equal(c.n_cpus, 3);
	assert_true(c.long_tnt);
	assert_int_equal(c.sideband_max, UINT64_C(2) << 30);
	assert_int_equal(c.max_use.bytes, UINT64_C(1) << 40);
	assert_int_equal(c.max_use.percent, 0);
	assert_int_equal(c.max_age_ns, UINT64_C(2592000000000000));
	assert_int_equal(c.keep_free.bytes, 0);
	assert_int_equal(c.keep_free.percent, 0);
	assert_int_equal(c.trace, CONFIG_TRACE_ALL);
	assert_int_equal(c.pt.values[PTTERM_NORETCOMP], 1);
	assert_int_equal(c.pt.values[PTTERM_PSB_PERIOD], 0);
	assert_int_equal(c.pt.values[PTTERM_MTC], 0);
	assert_int_equal(c.pt.values[PTTERM_CYC], 1);
	assert_int_equal(c.pt.values[PTTERM_TSC], PTTERMS_UNSET);
}

/* Field by field: what lies between them has no value. */
static void assert_same(const struct config *a, const struct config *b)
{
	assert_int_equal(a->source, b->source);
	assert_memory_equal(&a->pt, &b->pt, sizeof(a->pt));
	assert_int_equal(a->trace, b->trace);
	assert_int_equal(a->n_cpus, b->n_cpus);
	assert_int_equal(a->long_tnt, b->long_tnt);
	assert_int_equal(a->aux_size, b->aux_size);
	assert_int_equal(a->switch_size, b->switch_size);
	assert_int_equal(a->task_size, b->task_size);
	assert_int_equal(a->sideband_max, b->sideband_max);
	assert_int_equal(a->jit_max, b->jit_max);
	assert_int_equal(a->mem_max, b->mem_max);
	assert_int_equal(a->max_age_ns, b->max_age_ns);
	assert_memory_equal(&a->max_use, &b->max_use, sizeof(a->max_use));
	assert_memory_equal(&a->keep_free, &b->keep_free, sizeof(a->keep_free));
}

#define NO_LIMIT                                                                       \
	" is neither a size such as 512M nor a share of the file system such as 10%, " \
	"ignoring"

/* A line that is wrong is named, and changes nothing. */
static void wrong_lines(void **state)
{
	static const struct {
		const char *line;
		const char *warning;
	} rows[] = {
		{ "AuxSize=3M", "\"3M\" is not a power of two from 4K to 1G, ignoring" },
		{ "AuxSize=2K", "\"2K\" is not a power of two from 4K to 1G, ignoring" },
		{ "AuxSize=2G", "\"2G\" is not a power of two from 4K to 1G, ignoring" },
		{ "AuxSize=", "\"\" is not a power of two from 4K to 1G, ignoring" },
		{ "AuxSize=-4096", "\"-4096\" is not a power of two from 4K to 1G, ignoring" },
		{ "MemMax=1X", "\"1X\" is not a size such as 512M, ignoring" },
		{ "MemMax=1MB", "\"1MB\" is not a size such as 512M, ignoring" },
		{ "MemMax=10%", "\"10%\" is not a size such as 512M, ignoring" },
		{ "MemMax=99999999999999999999",
		  "\"99999999999999999999\" is not a size such as 512M, ignoring" },
		{ "MemMax=18014398509481984K",
		  "\"18014398509481984K\" is not a size such as 512M, ignoring" },
		{ "MaxUse=1X", "\"1X\"" NO_LIMIT },
		{ "MaxUse=", "\"\"" NO_LIMIT },
		{ "MaxUse=101%", "\"101%\"" NO_LIMIT },
		{ "MaxUse=-1%", "\"-1%\"" NO_LIMIT },
		{ "MaxUse=%", "\"%\"" NO_LIMIT },
		{ "KeepFree=10%%", "\"10%%\"" NO_LIMIT },
		{ "KeepFree=1K%", "\"1K%\"" NO_LIMIT },
		{ "KeepFree=1.5%", "\"1.5%\"" NO_LIMIT },
		{ "MaxAge=never", "\"never\" is not a time such as 12h or 30d, ignoring" },
		{ "MaxAge=-1d", "\"-1d\" is not a time such as 12h or 30d, ignoring" },
		{ "Cpus=0", "\"0\" is not a number from 1 to 128, ignoring" },
		{ "Cpus=129", "\"129\" is not a number from 1 to 128, ignoring" },
		{ "Cpus=2x", "\"2x\" is not a number from 1 to 128, ignoring" },
		{ "LongTNT=maybe", "\"maybe\" is not yes or no, ignoring" },
		{ "Source=hardware", "\"hardware\" is none of auto, emu, pt, ignoring" },
		{ "Trace=both", "\"both\" is none of user, kernel, all, ignoring" },
		{ "PT=foo=1", "unknown PT term \"foo=1\", ignoring" },
		{ "PT=psb_period=16",
		  "PT term \"psb_period=16\": expected a number from 0 to 15, ignoring" },
		{ "PT=mtc=x", "PT term \"mtc=x\": expected a number from 0 to 1, ignoring" },
		{ "Auxsize=1M", "unknown setting \"Auxsize\", ignoring" },
		{ "nonsense", "\"nonsense\" is not of the form Key=value, ignoring" },
	};
	struct config expected;

	(void)state;
	config_init(&expected);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char text[256], message[256];
		struct config c;

		print_message("  %s\n", rows[i].line);
		(void)snprintf(text, sizeof(text), "[Recorder]\n%s\n", rows[i].line);
		(void)snprintf(message, sizeof(message), "f:2: %s\n", rows[i].warning);
		parse(&c, text);
		assert_string_equal(warnings, message);
		assert_same(&c, &expected);
	}
}

static void shares(void **state)
{
	struct config c;

	(void)state;
	parse(&c, "");
	assert_int_equal(c.max_use.percent, 10);
	assert_int_equal(c.keep_free.percent, 15);
	assert_int_equal(c.keep_free.bytes, UINT64_C(4) << 30);

	parse(&c, "[Recorder]\nMaxUse=20%\nKeepFree=100 %\n");
	assert_string_equal(warnings, "");
	assert_int_equal(c.max_use.percent, 20);
	assert_int_equal(c.keep_free.percent, 100);
	assert_int_equal(c.keep_free.bytes, 0); /* no bound on what was set */

	parse(&c, "[Recorder]\nMaxUse=5%\nMaxUse=1G\nKeepFree=0%\n");
	assert_string_equal(warnings, "");
	assert_int_equal(c.max_use.percent, 0);
	assert_int_equal(c.max_use.bytes, 1 << 30);
	assert_int_equal(c.keep_free.percent, 0);
	assert_int_equal(c.keep_free.bytes, 0);
}

static void sections(void **state)
{
	char long_line[3000] = "[Recorder]\nCpus=2\n";
	struct config c;

	(void)state;
	parse(&c, "Cpus=2\n");
	assert_string_equal(warnings, "f:1: setting outside of [Recorder], ignoring\n");
	assert_int_equal(c.n_cpus, 0);

	parse(&c, "[Other]\nCpus=2\nx\n[Recorder]\nCpus=4\n");
	assert_string_equal(warnings, "f:1: unknown section \"[Other]\", ignoring what is in it\n");
	assert_int_equal(c.n_cpus, 4);

	memset(long_line + strlen(long_line), 'x', 2000);
	parse(&c, long_line);
	assert_string_equal(warnings, "f:3: line is too long or holds a NUL, ignoring\n");
	assert_int_equal(c.n_cpus, 2);
}

static void drop_ins(void **state)
{
	char dir[TEMPDIR_SIZE], path[128];
	_cleanup_(freep) char *failed = NULL;
	struct config c;

	(void)state;
	tempdir_make("config", dir);
	(void)snprintf(path, sizeof(path), "%s/ptd.conf", dir);
	config_init(&c);
	assert_int_equal(config_load(&c, path, true, warn, NULL), 0);
	assert_int_equal(config_load(&c, path, false, warn, &failed), -ENOENT);
	assert_string_equal(failed, path);

	tempdir_put_text(dir, "ptd.conf", "[Recorder]\nCpus=1\nAuxSize=4K\n");
	tempdir_put_text(dir, "ptd.conf.d/20-b.conf", "[Recorder]\nCpus=3\n");
	tempdir_put_text(dir, "ptd.conf.d/10-a.conf", "[Recorder]\nCpus=2\nSwitchSize=8K\n");
	tempdir_put_text(dir, "ptd.conf.d/30-c.txt", "[Recorder]\nCpus=7\n");

	warnings[0] = 0;
	assert_int_equal(config_load(&c, path, false, warn, NULL), 0);
	assert_string_equal(warnings, "");
	assert_int_equal(c.n_cpus, 3);
	assert_int_equal(c.aux_size, 4096);
	assert_int_equal(c.switch_size, 8192);

	tempdir_remove(dir);
}

static char changes[256];

static void changed(const char *key, bool live)
{
	const size_t n = strlen(changes);

	(void)snprintf(changes + n, sizeof(changes) - n, "%s%s ", key, live ? "" : "!");
}

static void update(void **state)
{
	struct config c, wanted, before;

	(void)state;
	parse(&c, "[Recorder]\nCpus=2\nMaxUse=1G\nJitMax=1M\n");
	wanted = before = c;
	config_update(&c, &wanted, changed);
	assert_string_equal(changes, "");

	parse(&wanted, "[Recorder]\nCpus=3\nAuxSize=4K\nPT=cyc\nSource=emu\nSwitchSize=4K\n"
		       "TaskSize=4K\nMemMax=2\nSidebandMax=3\nKeepFree=4\nMaxAge=5\nJitMax=1M\n");
	config_update(&c, &wanted, changed);
	assert_string_equal(changes, "Source! PT! Cpus! AuxSize! SwitchSize! TaskSize! SidebandMax "
				     "MemMax MaxUse KeepFree MaxAge ");
	before.mem_max = 2;
	before.sideband_max = 3;
	before.max_age_ns = UINT64_C(5000000000);
	before.keep_free = (struct config_limit){ .bytes = 4 };
	before.max_use = (struct config_limit){ .percent = 10 }; /* not set any more */
	assert_same(&c, &before);
}

struct loading {
	const char *path;
	struct config config;
	char *failed;
};

static int load(void *userdata)
{
	struct loading *l = userdata;
	int r;

	config_init(&l->config);
	l->failed = NULL;
	r = config_load(&l->config, l->path, false, warn, &l->failed);
	if (r < 0)
		free(l->failed);
	return r;
}

static void is_loaded(void *userdata)
{
	const struct loading *l = userdata;

	assert_null(l->failed);
	assert_int_equal(l->config.n_cpus, 3);
	assert_int_equal(l->config.switch_size, 8192);
}

/* Half of the settings are not what was asked for: it fails if one file cannot be read. */
static void calls_that_fail(void **state)
{
	char dir[TEMPDIR_SIZE], path[128];
	struct loading l = { .path = path };

	(void)state;
	tempdir_make("config", dir);
	(void)snprintf(path, sizeof(path), "%s/ptd.conf", dir);
	tempdir_put_text(dir, "ptd.conf", "[Recorder]\nCpus=1\nAuxSize=4K\n");
	tempdir_put_text(dir, "ptd.conf.d/20-b.conf", "[Recorder]\nCpus=3\n");
	tempdir_put_text(dir, "ptd.conf.d/10-a.conf", "[Recorder]\nCpus=2\nSwitchSize=8K\n");
	failing_each(load, is_loaded, &l);
	tempdir_remove(dir);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_settings),    cmocka_unit_test(wrong_lines),
		cmocka_unit_test(sections),        cmocka_unit_test(drop_ins),
		cmocka_unit_test(update),          cmocka_unit_test(shares),
		cmocka_unit_test(calls_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
