/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Errata
 *
 * What CPUs are known to write into PT other than the SDM says, by their model. The names are those
 * of Intel's specification updates, which number the same defect anew for each family; the oldest
 * of its names stands for all of them.
 */

#include <stdbool.h>
#include <stdint.h>

enum erratum {
	/* The packet of a branch right before a transaction's abort may be wrong. */
	ERRATUM_BDM64 = 1u << 0,
	/* A PSB+ may have a FUP although a TIP.PGE follows it. */
	ERRATUM_BDM70 = 1u << 1,
	/* A CYC before an OVF may be cut off after its first byte. */
	ERRATUM_SKD007 = 1u << 2,
	/* The FUP or TIP.PGE that belongs to an OVF may be missing. */
	ERRATUM_SKD010 = 1u << 3,
	/* A VM entry that packets end at may look like an interruption of it. */
	ERRATUM_SKD022 = 1u << 4,
	/* The TIP.PGD of a direct branch that leaves the filter's range may have no address. */
	ERRATUM_SKL014 = 1u << 5,
	/* A CYC right before a PSB may be lost. */
	ERRATUM_SKL168 = 1u << 6,
	/* The TMA of a guest whose TSC is scaled or offset may be wrong, and a byte too many behind
	 * it. Only reserved bits that are set show that. */
	ERRATUM_SKZ84 = 1u << 7,
	/* Behind an OVF there may be a TIP.PGD although packets were off. */
	ERRATUM_APL11 = 1u << 8,
	/* Behind an OVF there may be a FUP although packets were off. */
	ERRATUM_APL12 = 1u << 9,
	/* The FUP of an interruption at a branch may have the address behind that. (Its number is
	 * not known; perf works around it on Apollo Lake.) */
	ERRATUM_NLIP = 1u << 10,
};

/*
 * Find the errata of a CPU, enum erratum; family 0: the CPU is not known.
 *
 * Return: whether it is known what errata it has, also true for family 0; if not, they are 0.
 */
bool errata_find(uint16_t family, uint8_t model, uint32_t *ret_errata);
