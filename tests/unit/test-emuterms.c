/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What the settings make of the software source. The bits are the SDM's, of RTIT_CTL. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "daemon/config/config.h"
#include "daemon/soft/emuterms.h"

static struct config config_of(const char *text)
{
	struct config config;

	config_init(&config);
	config_parse(&config, "FILE", text, strlen(text), NULL);
	return config;
}

static void packets(void **state)
{
	static const struct {
		const char *settings;
		uint64_t expected; /* config */
		uint32_t psb_period;
		bool mtc, cyc, compressed;
		uint8_t mtc_period;
		bool long_tnt;
	} rows[] = {
		{ "[Recorder]\n", 0x1002401, 4096, false, false, true, 3, false },
		{ "[Recorder]\nPT=mtc=1\n", 0x100e601, 4096, true, false, true, 3, false },
		{ "[Recorder]\nPT=mtc=1,mtc_period=0,cyc=1\n", 0x1002603, 4096, true, true, true, 0,
		  false },
		{ "[Recorder]\nPT=cyc=1,mtc_period=5\n", 0x1002403, 4096, false, true, true, 5,
		  false },
		{ "[Recorder]\nPT=noretcomp,psb_period=0\n", 0x2c01, 2048, false, false, false, 3,
		  false },
		{ "[Recorder]\nLongTNT=yes\n", 0x1002401, 4096, false, false, true, 3, true },
		{ "[Recorder]\nPT=psb_period=4\n", 0x4002401, 32768, false, false, true, 3, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct config config = config_of(rows[i].settings);
		const struct source_facts facts = emuterms_facts(&config);
		const struct emu_pool_layout layout = emuterms_layout(&config);

		assert_int_equal(facts.attr_config, rows[i].expected);
		assert_int_equal(layout.psb_period, rows[i].psb_period);
		assert_int_equal(layout.timing.mtc, rows[i].mtc);
		assert_int_equal(layout.timing.cyc, rows[i].cyc);
		assert_int_equal(layout.timing.mtc_period, rows[i].mtc_period);
		assert_int_equal(layout.return_compression, rows[i].compressed);
		assert_int_equal(layout.long_tnt, rows[i].long_tnt);
	}
}

static void facts(void **state)
{
	const struct config config = config_of("");
	const struct source_facts f = emuterms_facts(&config);

	(void)state;
	assert_string_equal(f.name, "emu");
	assert_int_equal(f.mask_tsc, 0x400);
	assert_int_equal(f.mask_noretcomp, 0x800);
	assert_int_equal(f.mask_mtc, 0x200);
	assert_int_equal(f.mask_mtc_period, 0x3c000);
	assert_int_equal(f.mask_cyc, 0x2);
	/* TSC is ns. */
	assert_int_equal(f.tsc.shift, 0);
	assert_int_equal(f.tsc.mult, 1);
	assert_int_equal(f.tsc.zero, 0);
	assert_int_equal(f.tsc_ctc_numerator, ENCODE_TSC_PER_CTC);
	assert_int_equal(f.tsc_ctc_denominator, 1);
	assert_int_equal(f.max_nonturbo_ratio, ENCODE_CBR);
	assert_true(f.user);
	assert_false(f.kernel);
}

static void cpus(void **state)
{
	static const struct {
		const char *settings;
		uint32_t n_busy_max; /* 0: as many as are online */
	} rows[] = {
		{ "[Recorder]\nCpus=1\n", 1 },
		{ "[Recorder]\nCpus=7\n", 7 },
		{ "[Recorder]\nCpus=128\n", EMU_CPUS_MAX / 2 < 128 ? EMU_CPUS_MAX / 2 : 128 },
		{ "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct config config = config_of(rows[i].settings);
		const struct emu_pool_layout layout = emuterms_layout(&config);
		const long online = sysconf(_SC_NPROCESSORS_ONLN);

		assert_int_equal(layout.n_busy_max,
				 rows[i].n_busy_max ? rows[i].n_busy_max : (uint32_t)online);
		assert_int_equal(layout.n_cpus, 2 * layout.n_busy_max);
		assert_int_equal(layout.aux_size, config.aux_size);
		assert_int_equal(layout.switch_size, config.switch_size);
		assert_int_equal(layout.event_size, config.aux_size / 4);
		assert_int_equal(layout.task_size, config.task_size);
		assert_in_range(layout.quantum_us, 1000, 10000);
	}
}

static void known_terms(void **state)
{
	static const char known[] = " pt branch tsc noretcomp psb_period mtc mtc_period cyc ";

	(void)state;
	for (int i = 0; i < _PTTERMS; i++) {
		char word[32];

		(void)snprintf(word, sizeof(word), " %s ", ptterms_name(i));
		assert_int_equal(emuterms_knows(i), strstr(known, word) != NULL);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets),
		cmocka_unit_test(facts),
		cmocka_unit_test(cpus),
		cmocka_unit_test(known_terms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
