/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/kernel/kernelrec.h"

#include <errno.h>
#include <linux/perf_event.h>

#include "decoder/file/perfrec.h"

#define KERNEL_MIN (UINT64_C(1) << 63)

bool kernelrec_is_kernels(uint64_t address, uint64_t size)
{
	return address >= KERNEL_MIN && size > 0 && size - 1 <= UINT64_MAX - address;
}

int ksymbolrec_read(const struct trace_record *record, struct ksymbolrec *ret_symbol)
{
	struct cursor c = cursor_from(record->payload, record->payload_size);
	struct {
		uint64_t address;
		uint32_t size;
		uint16_t type, flags;
	} head;
	struct ksymbolrec symbol;

	if (cursor_get(&c, sizeof(head), &head) < 0 || perfrec_get_string(&c, &symbol.name) < 0 ||
	    !kernelrec_is_kernels(head.address, head.size))
		return -EBADMSG;
	symbol.address = head.address;
	symbol.size = head.size;
	symbol.is_bpf = head.type == PERF_RECORD_KSYMBOL_TYPE_BPF;
	symbol.ends = head.flags & PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER;
	*ret_symbol = symbol;
	return 0;
}

int bpfrec_read(const struct trace_record *record, struct bpfrec *ret_bpf)
{
	struct cursor c = cursor_from(record->payload, record->payload_size);
	struct {
		uint16_t type, flags;
		uint32_t id;
		uint64_t tag;
	} head;

	if (cursor_get(&c, sizeof(head), &head) < 0)
		return -EBADMSG;
	*ret_bpf = (struct bpfrec){ .id = head.id,
				    .tag = head.tag,
				    .loads = head.type == PERF_BPF_EVENT_PROG_LOAD };
	return 0;
}

int pokerec_read(const struct trace_record *record, struct pokerec *ret_poke)
{
	struct cursor c = cursor_from(record->payload, record->payload_size);
	struct {
		uint64_t address;
		uint16_t n_before, n_after;
	} __attribute__((__packed__)) head;
	struct pokerec poke;
	struct cursor bytes;

	if (cursor_get(&c, sizeof(head), &head) < 0 ||
	    cursor_get_sub(&c, (size_t)head.n_before + head.n_after, &bytes) < 0)
		return -EBADMSG;
	poke = (struct pokerec){
		.address = head.address,
		.before = bytes.pos,
		.after = bytes.pos + head.n_before,
		.n_before = head.n_before,
		.n_after = head.n_after,
	};
	if (!kernelrec_is_kernels(poke.address,
				  poke.n_before > poke.n_after ? poke.n_before : poke.n_after))
		return -EBADMSG;
	*ret_poke = poke;
	return 0;
}
