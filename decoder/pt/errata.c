/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/errata.h"

#include <stddef.h>

#include "base/base.h"

#define BROADWELL (ERRATUM_BDM64 | ERRATUM_BDM70)
#define SKYLAKE                                                                              \
	(ERRATUM_BDM70 | ERRATUM_SKD007 | ERRATUM_SKD010 | ERRATUM_SKD022 | ERRATUM_SKL014 | \
	 ERRATUM_SKL168)
#define ICE_LAKE        (ERRATUM_BDM70 | ERRATUM_SKD022 | ERRATUM_SKL014)
#define SKYLAKE_SERVER  (ICE_LAKE | ERRATUM_SKZ84)
#define SAPPHIRE_RAPIDS (ERRATUM_BDM70 | ERRATUM_SKD022 | ERRATUM_SKZ84)
#define ALDER_LAKE      (ERRATUM_BDM70 | ERRATUM_SKD022 | ERRATUM_APL11)
#define GOLDMONT        (ERRATUM_APL11 | ERRATUM_APL12)
#define APOLLO_LAKE     (GOLDMONT | ERRATUM_NLIP)
#define GOLDMONT_PLUS   ERRATUM_APL11

/*
 * From Intel's specification updates of 5th to 10th generation Core, Core Ultra, Xeon Scalable, and
 * of the Atom, Pentium and Celeron processors of the same years, as collected in Intel's libipt
 * (pt_config.c, January 2026), which knows the models that have no public update yet.
 */
static const struct generation {
	uint16_t family, errata;
	uint8_t models[16]; /* behind the last one is 0, which has no PT */
} generations[] = {
	{ 6, BROADWELL, { 0x3d, 0x47, 0x4f, 0x56 } },
	{ 6, SKYLAKE, { 0x4e, 0x5e, 0x8e, 0x9e, 0xa5, 0xa6 } },
	{ 6, SKYLAKE_SERVER, { 0x55, 0x6a, 0x6c } },
	{ 6, ICE_LAKE, { 0x66, 0x7d, 0x7e, 0x8c, 0x8d, 0xa7, 0xa8 } },
	{ 6, SAPPHIRE_RAPIDS, { 0x8f, 0xad, 0xae, 0xcf } },
	{ 6,
	  ALDER_LAKE,
	  { 0x97, 0x9a, 0xaa, 0xac, 0xb5, 0xb7, 0xba, 0xbd, 0xbf, 0xc5, 0xc6, 0xcc, 0xd5 } },
	{ 6, APOLLO_LAKE, { 0x5c } },
	{ 6, GOLDMONT, { 0x5f } },
	{ 6, GOLDMONT_PLUS, { 0x7a, 0x86, 0x96, 0x9c, 0xaf, 0xb6, 0xdd } },
	{ 0x12, ALDER_LAKE, { 0x01, 0x03 } },
	{ 0x13, SAPPHIRE_RAPIDS, { 0x01 } },
};

bool errata_find(uint16_t family, uint8_t model, uint32_t *ret_errata)
{
	*ret_errata = 0;
	for (size_t i = 0; i < ARRAY_LEN(generations); i++)
		for (const uint8_t *m = generations[i].models; *m; m++)
			if (generations[i].family == family && *m == model) {
				*ret_errata = generations[i].errata;
				return true;
			}
	return family == 0;
}
