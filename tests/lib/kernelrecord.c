/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/kernelrecord.h"

static size_t write_fixed(uint32_t type, uint16_t misc, const void *raw, size_t size,
			  const struct trailer *trailer, void *to, size_t room)
{
	struct frame f;

	frame_begin(&f, type, misc, to, room);
	frame_put(&f, raw, size);
	return frame_end(&f, trailer);
}

size_t record_write_switch(const struct record_switch *sw, const struct trailer *trailer, void *to,
			   size_t room)
{
	return write_fixed(PERF_RECORD_SWITCH,
			   (sw->out ? PERF_RECORD_MISC_SWITCH_OUT : 0) |
			       (sw->preempt ? PERF_RECORD_MISC_SWITCH_OUT_PREEMPT : 0),
			   NULL, 0, trailer, to, room);
}

size_t record_write_aux(const struct record_aux *aux, const struct trailer *trailer, void *to,
			size_t room)
{
	const uint64_t raw[3] = { aux->offset, aux->size, aux->flags };

	return write_fixed(PERF_RECORD_AUX, 0, raw, sizeof(raw), trailer, to, room);
}

size_t record_write_lost_samples(uint64_t lost, const struct trailer *trailer, void *to,
				 size_t room)
{
	return write_fixed(PERF_RECORD_LOST_SAMPLES, 0, &lost, sizeof(lost), trailer, to, room);
}

size_t record_write_ksymbol(const struct record_ksymbol *ksymbol, const struct trailer *trailer,
			    void *to, size_t room)
{
	const struct {
		uint64_t addr;
		uint32_t len;
		uint16_t type, flags;
	} raw = { ksymbol->addr, ksymbol->len, ksymbol->ksym_type, ksymbol->flags };
	struct frame f;

	frame_begin(&f, PERF_RECORD_KSYMBOL, 0, to, room);
	frame_put(&f, &raw, sizeof(raw));
	frame_put_string(&f, ksymbol->name, 8);
	return frame_end(&f, trailer);
}

size_t record_write_bpf_event(const struct record_bpf_event *bpf, const struct trailer *trailer,
			      void *to, size_t room)
{
	const struct {
		uint16_t type, flags;
		uint32_t id;
		uint64_t tag;
	} raw = { bpf->type, bpf->flags, bpf->id, bpf->tag };

	return write_fixed(PERF_RECORD_BPF_EVENT, 0, &raw, sizeof(raw), trailer, to, room);
}

size_t record_write_text_poke(const struct record_text_poke *poke, const struct trailer *trailer,
			      void *to, size_t room)
{
	const struct {
		uint64_t addr;
		uint16_t old_len, new_len;
	} __attribute__((__packed__)) raw = { poke->addr, poke->old_len, poke->new_len };
	struct frame f;

	frame_begin(&f, PERF_RECORD_TEXT_POKE, PERF_RECORD_MISC_KERNEL, to, room);
	frame_put(&f, &raw, sizeof(raw));
	frame_put(&f, poke->old_bytes, poke->old_len);
	frame_put(&f, poke->new_bytes, poke->new_len);
	return frame_end(&f, trailer);
}
