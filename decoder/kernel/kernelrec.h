/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Kernel records
 *
 * KSYMBOL, BPF_EVENT and TEXT_POKE, taken apart: code of the kernel's that comes, goes and changes.
 * Of a user's address none is ever made.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "decoder/trace/trace.h"

/* A function that was put somewhere (from its record's time on), or is there no more. */
struct ksymbolrec {
	uint64_t address;
	uint32_t size;
	bool is_bpf;
	bool ends;
	const char *name; /* in the record's bytes */
};

/* Bytes before and after; where one has none there was, or will be, no code. */
struct pokerec {
	uint64_t address;
	const uint8_t *before, *after; /* in the record's bytes */
	uint16_t n_before, n_after;
};

/* A BPF program is there from now on, and its functions' KSYMBOL records have been. */
struct bpfrec {
	uint32_t id;
	uint64_t tag;
	bool loads; /* it is no other event */
};

/* Whether the kernel has code there. */
bool kernelrec_is_kernels(uint64_t address, uint64_t size);

/* Return: 0; -EBADMSG if the record is too short or makes no sense. */
_must_check_ int ksymbolrec_read(const struct trace_record *record, struct ksymbolrec *ret_symbol);
_must_check_ int bpfrec_read(const struct trace_record *record, struct bpfrec *ret_bpf);
_must_check_ int pokerec_read(const struct trace_record *record, struct pokerec *ret_poke);
