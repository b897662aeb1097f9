/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/export/fxt_record.h"

#include <assert.h>
#include <string.h>

void fxt_record_word(struct fxt_record *record, uint64_t word)
{
	assert(record->n_words < FXT_RECORD_MAX);
	record->words[record->n_words++] = htole64(word);
}

void fxt_record_text(struct fxt_record *record, const char *text, size_t size)
{
	for (size_t i = 0; i < size; i += 8) {
		uint64_t word = 0;

		memcpy(&word, text + i, size - i < 8 ? size - i : 8);
		fxt_record_word(record, le64toh(word));
	}
}

void fxt_record_small_arg(struct fxt_record *record, enum fxt_arg_type type, uint16_t name,
			  uint32_t value)
{
	record->n_args++;
	fxt_record_word(record, le64toh(fxt_small_arg(type, name, value)));
}

void fxt_record_arg(struct fxt_record *record, enum fxt_arg_type type, uint16_t name,
		    uint64_t value)
{
	record->n_args++;
	fxt_record_word(record, (uint64_t)name << 16 | 2 << 4 | (uint64_t)type);
	fxt_record_word(record, value);
}

int fxt_record_put(struct fxt_record *record, struct ptd_output *output, enum fxt_record_type type,
		   uint64_t bits)
{
	record->words[0] = htole64(bits | record->n_words << 4 | (uint64_t)type);
	return ptd_output_write(output, record->words, 8 * record->n_words);
}
