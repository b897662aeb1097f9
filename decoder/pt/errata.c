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
#define GOLDMONT_PLUS   ERRATUM_APL11

/*
 * From Intel's specification updates of 5th to 10th generation Core, Core Ultra, Xeon Scalable, and
 * of the Atom, Pentium and Celeron processors of the same years, as collected in Intel's libipt
 * (pt_config.c, January 2026), which knows the models that have no public update yet.
 */
static const struct cpu {
	uint16_t family;
	uint8_t model;
	uint16_t errata;
} cpus[] = {
	{ 6, 0x3d, BROADWELL },
	{ 6, 0x47, BROADWELL },
	{ 6, 0x4f, BROADWELL },
	{ 6, 0x56, BROADWELL },
	{ 6, 0x4e, SKYLAKE },
	{ 6, 0x5e, SKYLAKE },
	{ 6, 0x8e, SKYLAKE },
	{ 6, 0x9e, SKYLAKE },
	{ 6, 0xa5, SKYLAKE },
	{ 6, 0xa6, SKYLAKE },
	{ 6, 0x55, SKYLAKE_SERVER },
	{ 6, 0x6a, SKYLAKE_SERVER },
	{ 6, 0x6c, SKYLAKE_SERVER },
	{ 6, 0x66, ICE_LAKE },
	{ 6, 0x7d, ICE_LAKE },
	{ 6, 0x7e, ICE_LAKE },
	{ 6, 0x8c, ICE_LAKE },
	{ 6, 0x8d, ICE_LAKE },
	{ 6, 0xa7, ICE_LAKE },
	{ 6, 0xa8, ICE_LAKE },
	{ 6, 0x8f, SAPPHIRE_RAPIDS },
	{ 6, 0x97, ALDER_LAKE },
	{ 6, 0x9a, ALDER_LAKE },
	{ 6, 0xbf, ALDER_LAKE },
	{ 6, 0xad, SAPPHIRE_RAPIDS },
	{ 6, 0xae, SAPPHIRE_RAPIDS },
	{ 6, 0xcf, SAPPHIRE_RAPIDS },
	{ 6, 0xaa, ALDER_LAKE },
	{ 6, 0xac, ALDER_LAKE },
	{ 6, 0xb5, ALDER_LAKE },
	{ 6, 0xb7, ALDER_LAKE },
	{ 6, 0xba, ALDER_LAKE },
	{ 6, 0xbd, ALDER_LAKE },
	{ 6, 0xc5, ALDER_LAKE },
	{ 6, 0xc6, ALDER_LAKE },
	{ 6, 0xcc, ALDER_LAKE },
	{ 6, 0xd5, ALDER_LAKE },
	{ 6, 0x5c, GOLDMONT },
	{ 6, 0x5f, GOLDMONT },
	{ 6, 0x7a, GOLDMONT_PLUS },
	{ 6, 0x86, GOLDMONT_PLUS },
	{ 6, 0x96, GOLDMONT_PLUS },
	{ 6, 0x9c, GOLDMONT_PLUS },
	{ 6, 0xaf, GOLDMONT_PLUS },
	{ 6, 0xb6, GOLDMONT_PLUS },
	{ 6, 0xdd, GOLDMONT_PLUS },
	{ 0x12, 0x01, ALDER_LAKE },
	{ 0x12, 0x03, ALDER_LAKE },
	{ 0x13, 0x01, SAPPHIRE_RAPIDS },
};

static const struct cpu *find_cpu(uint16_t family, uint8_t model)
{
	for (size_t i = 0; i < ARRAY_LEN(cpus); i++)
		if (cpus[i].family == family && cpus[i].model == model)
			return &cpus[i];
	return NULL;
}

bool errata_knows(uint16_t family, uint8_t model)
{
	return family == 0 || find_cpu(family, model);
}

uint32_t errata_find(uint16_t family, uint8_t model)
{
	const struct cpu *cpu = find_cpu(family, model);

	return cpu ? cpu->errata : 0;
}
