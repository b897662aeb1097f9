/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Decoding
 *
 * Decodes one input from its beginning to its end, for a test tool, by several threads. If decoding
 * fails, the tool exits with a message and status 2.
 */

#include <stdint.h>

struct ptd_batch;
struct ptd_decoder;
struct ptd_options;

/* Return: a new decoder, to be freed by ptd_decoder_free(). */
struct ptd_decoder *decoding_new(const struct ptd_options *options);

/* Likewise; spans are cut behind @cut_size bytes (decoder/pipeline.h). */
struct ptd_decoder *decoding_new_cut(const struct ptd_options *options, uint64_t cut_size);

/*
 * Return: the next batch, which stays the decoder's and valid until the next call; NULL at the end.
 *         Messages call the input @input.
 */
const struct ptd_batch *decoding_next(struct ptd_decoder *decoder, const char *input);
