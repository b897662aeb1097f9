/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Transcript
 *
 * Prints a decoded stream in short lines, for golden cases:
 *
 *	cpu 0 10/11 demo        a slice begins; not printed for a bare stream
 *	t 7                     the time of what follows, where it changes
 *	401000 401001 401005x3  instructions; one that runs several times in a row is counted; with
 *	401000=main             names, if they are asked for
 *	async 401005            marks, in their place; an address that is not known is left out
 *	off 401005
 *	ptwrite 1122 8 401000   what has values: both of them, hexadecimal, then the address
 *	gap overflow ip 401000 offset 45 bytes 2
 *	in 60 decoded 58 lost 2 the account of the whole, last
 */

#include <stdio.h>

#include "ptd/decode.h"

/*
 * Decode to the end and print; slices and names only if @slices and @names.
 *
 * Return: 0, or negative errno.
 */
int transcript_print(struct ptd_decoder *decoder, bool slices, bool names, FILE *f);
