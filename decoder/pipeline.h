/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Pipeline
 *
 * What a program of ours can do with a decoder (ptd/decode.h) that others cannot.
 */

#include "ptd/decode.h"
#include "util/expander.h"

/*
 * Have @expander, which is borrowed, expand runs in the threads that decode them, before
 * ptd_decoder_next() gives them out; NULL: not any more. In a batch that was expanded, what the
 * runs became is in their place, and the hold has the number of its bytes. Runs of which only a
 * part is asked for, and those that the calling thread decodes as their turn has come, are not
 * expanded.
 */
void decoder_set_expander(struct ptd_decoder *decoder, const struct expander *expander);
