/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Each CPU of which errata are known, by the names of its generation; and no other has any. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/base.h"
#include "decoder/pt/errata.h"

#define MODELS_MAX  24
#define FAMILY_LAST 0x20u

/* Models end with 0, which has no PT. */
static const struct generation {
	const char *name;
	uint16_t family;
	uint8_t models[MODELS_MAX];
	uint32_t errata;
} generations[] = {
	{ "5th generation Core, Xeon E5 v4, Xeon D-1500",
	  6,
	  { 0x3d, 0x47, 0x4f, 0x56 },
	  ERRATUM_BDM64 | ERRATUM_BDM70 },
	{ "6th to 10th generation Core of Skylake's kind",
	  6,
	  { 0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6 },
	  ERRATUM_BDM70 | ERRATUM_SKD007 | ERRATUM_SKD010 | ERRATUM_SKD022 | ERRATUM_SKL014 |
	      ERRATUM_SKL168 },
	{ "Xeon Scalable of the first three generations",
	  6,
	  { 0x55, 0x6a, 0x6c },
	  ERRATUM_BDM70 | ERRATUM_SKD022 | ERRATUM_SKL014 | ERRATUM_SKZ84 },
	{ "10th and 11th generation Core",
	  6,
	  { 0x66, 0x7d, 0x7e, 0x8c, 0x8d, 0xa7, 0xa8 },
	  ERRATUM_BDM70 | ERRATUM_SKD022 | ERRATUM_SKL014 },
	{ "Xeon Scalable of the fourth to the sixth generation",
	  6,
	  { 0x8f, 0xad, 0xae, 0xcf },
	  ERRATUM_BDM70 | ERRATUM_SKD022 | ERRATUM_SKZ84 },
	{ "12th generation Core to Core Ultra",
	  6,
	  { 0x97, 0x9a, 0xbf, 0xaa, 0xac, 0xb5, 0xb7, 0xba, 0xbd, 0xc5, 0xc6, 0xcc, 0xd5 },
	  ERRATUM_BDM70 | ERRATUM_SKD022 | ERRATUM_APL11 },
	{ "Apollo Lake", 6, { 0x5c }, ERRATUM_APL11 | ERRATUM_APL12 | ERRATUM_NLIP },
	{ "another Atom of Goldmont's kind", 6, { 0x5f }, ERRATUM_APL11 | ERRATUM_APL12 },
	{ "later Atom, and Xeon of such cores",
	  6,
	  { 0x7a, 0x86, 0x96, 0x9c, 0xaf, 0xb6, 0xdd },
	  ERRATUM_APL11 },
	{ "Core of family 18",
	  0x12,
	  { 0x01, 0x03 },
	  ERRATUM_BDM70 | ERRATUM_SKD022 | ERRATUM_APL11 },
	{ "Xeon of family 19", 0x13, { 0x01 }, ERRATUM_BDM70 | ERRATUM_SKD022 | ERRATUM_SKZ84 },
};

static const struct generation *generation_of(unsigned family, unsigned model)
{
	for (size_t i = 0; i < ARRAY_LEN(generations); i++)
		for (size_t k = 0; generations[i].family == family && generations[i].models[k]; k++)
			if (generations[i].models[k] == model)
				return &generations[i];
	return NULL;
}

static void every_cpu(void **state)
{
	(void)state;
	for (unsigned family = 0; family < FAMILY_LAST; family++)
		for (unsigned model = 0; model < 256; model++) {
			const struct generation *g = generation_of(family, model);
			uint32_t got;
			const bool is_known = errata_find((uint16_t)family, (uint8_t)model, &got);

			if (got != (g ? g->errata : 0))
				fail_msg("family %x, model %x (%s): errata %x", family, model,
					 g ? g->name : "not known", got);
			/* Who does not say what the CPU is, is not warned. */
			assert_int_equal(is_known, g || family == 0);
		}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cpu),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
