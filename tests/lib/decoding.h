/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Decoding
 *
 * What a tool does that decodes one input from its beginning to its end. If that fails, the tool
 * ends with a message and exit status 2.
 */

struct ptd_batch;
struct ptd_decoder;
struct ptd_options;

/* Return: the decoder, to be freed by ptd_decoder_free(). */
struct ptd_decoder *decoding_new(const struct ptd_options *options);

/* Return: the next batch of @input, the decoder's until the next call; NULL at the end. */
const struct ptd_batch *decoding_next(struct ptd_decoder *decoder, const char *input);
