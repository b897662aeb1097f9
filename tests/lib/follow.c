/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/follow.h"

#include <Zydis/Zydis.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "tests/lib/mapped.h"
#include "util/vec.h"

/* Where control can be after an instruction. */
enum way {
	WAY_ON,     /* behind it */
	WAY_TARGET, /* at its target */
	WAY_EITHER,
	WAY_ANY, /* the bytes do not say */
};

/* What was found out about a block. */
struct seen {
	uint32_t pid; /* for whom, where and when the bytes were compared */
	uint64_t base, from, to;
	uint16_t first, end; /* which of its instructions */
	enum way way;        /* of the last of them */
	uint64_t disp;       /* target = base + disp */
	bool is_cut;         /* the target keeps only its lower 16 bits */
};

struct follow {
	struct mapped *mapped;
	enum ptd_clock clock;
	FILE *faults;
	uint64_t n_insns, n_faults;
	ZydisDecoder decoders[3]; /* 16, 32, 64 bit */
	VEC(struct seen) seen;    /* by block id */

	/* The last instruction of this slice. */
	const struct ptd_slice *slice;
	uint64_t slice_id;
	bool is_free; /* anything may follow: there is none, or a mark stands behind it */
	enum way way;
	uint64_t ip, next, target;
	uint64_t mask; /* of addresses in its mode */
};

int follow_new(const struct ptd_options *options, const struct ptd_info *info, FILE *faults,
	       struct follow **ret_follow)
{
	_cleanup_(follow_freep) struct follow *f = calloc(1, sizeof(*f));
	int r;

	if (!f)
		return -ENOMEM;
	*f = (struct follow){ .clock = info->clock, .faults = faults, .slice_id = UINT64_MAX };
	r = options->input ? mapped_new(options->input, &f->mapped)
			   : mapped_new_raw(options->raw_code, options->n_raw_code, &f->mapped);
	if (r < 0)
		return r;
	(void)ZydisDecoderInit(&f->decoders[0], ZYDIS_MACHINE_MODE_LONG_COMPAT_16,
			       ZYDIS_STACK_WIDTH_16);
	(void)ZydisDecoderInit(&f->decoders[1], ZYDIS_MACHINE_MODE_LONG_COMPAT_32,
			       ZYDIS_STACK_WIDTH_32);
	(void)ZydisDecoderInit(&f->decoders[2], ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
	*ret_follow = TAKE(f);
	return 0;
}

struct follow *follow_free(struct follow *follow)
{
	if (!follow)
		return NULL;
	mapped_free(follow->mapped);
	vec_deinit(&follow->seen);
	free(follow);
	return NULL;
}

uint64_t follow_n_insns(const struct follow *follow)
{
	return follow->n_insns;
}

uint64_t follow_n_faults(const struct follow *follow)
{
	return follow->n_faults;
}

_printf_(3, 4) static void fault(struct follow *f, uint64_t ip, const char *format, ...)
{
	va_list ap;

	if (f->n_faults++ >= FOLLOW_FAULTS_MAX)
		return;
	fprintf(f->faults, "%" PRIu32 ".%" PRIu32 " cpu %" PRIu32 ": %#" PRIx64 ": ", f->slice->pid,
		f->slice->tid, f->slice->cpu, ip);
	va_start(ap, format);
	(void)vfprintf(f->faults, format, ap);
	va_end(ap);
	fputc('\n', f->faults);
}

/* The code. */

static enum way way_of(const ZydisDecodedInstruction *insn)
{
	const bool relative = insn->raw.imm[0].is_relative;

	switch (insn->mnemonic) {
	case ZYDIS_MNEMONIC_XBEGIN: /* names where an abort lands; itself it only falls through */
	case ZYDIS_MNEMONIC_XABORT:
	case ZYDIS_MNEMONIC_XEND:
		return WAY_ON;
	case ZYDIS_MNEMONIC_JMP:
	case ZYDIS_MNEMONIC_CALL:
		return relative ? WAY_TARGET : WAY_ANY;
	case ZYDIS_MNEMONIC_VMCALL:
	case ZYDIS_MNEMONIC_VMLAUNCH:
	case ZYDIS_MNEMONIC_VMRESUME:
	case ZYDIS_MNEMONIC_SEAMCALL:
	case ZYDIS_MNEMONIC_SEAMRET:
	case ZYDIS_MNEMONIC_TDCALL:
	case ZYDIS_MNEMONIC_UIRET:
		return WAY_ANY;
	default:
		break;
	}
	switch (insn->meta.category) {
	case ZYDIS_CATEGORY_COND_BR:
		return WAY_EITHER;
	case ZYDIS_CATEGORY_UNCOND_BR:
	case ZYDIS_CATEGORY_CALL:
	case ZYDIS_CATEGORY_RET:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_INTERRUPT:
		return WAY_ANY;
	default:
		return WAY_ON;
	}
}

/*
 * Return: whether Zydis does not know this branch: an erets or eretu with its prefix, or a jmpabs.
 */
static bool is_unknown_branch(const uint8_t *bytes, size_t size)
{
	static const uint8_t prefixes[] = { 0x26, 0x2e, 0x36, 0x3e, 0x64,
					    0x65, 0x66, 0x67, 0xf2, 0xf3 };
	bool repeats = false;

	if (size == 11 && memcmp(bytes, "\xd5\x00\xa1", 3) == 0)
		return true;
	if (size < 4 || memcmp(bytes + size - 3, "\x0f\x01\xca", 3) != 0)
		return false;
	for (size_t i = 0; i < size - 3; i++) {
		if ((bytes[i] & 0xf0) != 0x40 && !memchr(prefixes, bytes[i], sizeof(prefixes)))
			return false;
		repeats = repeats || bytes[i] == 0xf2 || bytes[i] == 0xf3;
	}
	return repeats;
}

/* Decode what @block says is its instruction @i. Return: whether it is one of that size. */
static bool decode_insn(struct follow *f, const struct ptd_run *run, uint16_t i, struct seen *seen)
{
	const struct ptd_block *block = run->block;
	const struct ptd_insn *insn = &block->insns[i];
	const ZydisDecoder *decoder = &f->decoders[block->mode == 64   ? 2
						   : block->mode == 32 ? 1
								       : 0];
	ZydisDecodedInstruction z;

	seen->way = WAY_ON;
	seen->is_cut = false;
	if (block->mode == 64 && is_unknown_branch(block->bytes + insn->offset, insn->size)) {
		seen->way = WAY_ANY;
		return true;
	}
	/* Instructions that are younger than this Zydis: no others of them are branches. */
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeInstruction(decoder, NULL, block->bytes + insn->offset,
							insn->size, &z)))
		return true;
	seen->way = way_of(&z);
	seen->disp = (uint64_t)insn->offset + z.length + (uint64_t)z.raw.imm[0].value.s;
	/* SDM vol. 2, Jcc, JMP, CALL: EIP AND 0000FFFFH. The segment of 32-bit code begins at 0. */
	seen->is_cut = block->mode == 32 && z.operand_width == 16;
	return z.length == insn->size;
}

/* Compare the bytes of @run with those that were mapped. Return: whether they are. */
static bool compare_insn(struct follow *f, const struct ptd_run *run, uint64_t time,
			 struct seen *seen)
{
	const struct ptd_insn *insns = run->block->insns + run->first;
	const size_t start = insns->offset;
	const size_t end = (size_t)insns[run->n - 1].offset + insns[run->n - 1].size;
	struct mapped_bytes mapped;

	for (size_t at = start; at < end;) {
		size_t size = end - at;
		const char *what = NULL;

		if (mapped_find(f->mapped, seen->pid, time, run->base + at, &mapped) < 0) {
			what = "is in no file that was mapped there";
		} else {
			if (size > mapped.size)
				size = mapped.size;
			if (memcmp(run->block->bytes + at, mapped.bytes, size) != 0)
				what = "the bytes are not those of the file mapped there";
		}
		if (what && mapped_jitted(f->mapped, seen->pid, time, run->base + at,
					  run->block->bytes + at, end - at, &seen->from, &seen->to))
			return true;
		if (what && mapped_kernel(f->mapped, time, run->base + at, run->block->bytes + at,
					  end - at, &seen->from, &seen->to))
			return true;
		if (what) {
			fault(f, run->base + at, "%s at %" PRIu64, what, run->t);
			return false;
		}
		if (seen->from < mapped.from)
			seen->from = mapped.from;
		if (seen->to > mapped.to)
			seen->to = mapped.to;
		at += size;
	}
	return true;
}

/* Judge the inside of @run, which was not seen before for this process, place and time. */
static void look_at_insn(struct follow *f, const struct ptd_run *run, uint64_t time,
			 struct seen *seen)
{
	const struct ptd_block *block = run->block;
	const uint16_t end = (uint16_t)(run->first + run->n);

	*seen = (struct seen){ .pid = f->slice->pid,
			       .base = run->base,
			       .to = UINT64_MAX,
			       .first = run->first,
			       .end = end };
	if (!compare_insn(f, run, time, seen))
		seen->to = 0; /* look again next time */
	for (uint16_t i = run->first; i < end; i++) {
		const struct ptd_insn *insn = &block->insns[i];

		if (!decode_insn(f, run, i, seen))
			fault(f, run->base + insn->offset, "has not %u bytes", insn->size);
		if (i + 1 == end)
			break;
		if (seen->way == WAY_ANY || seen->way == WAY_TARGET)
			fault(f, run->base + insn->offset, "is a branch inside of a run");
		if (insn[1].offset != insn->offset + insn->size)
			fault(f, run->base + insn[1].offset, "does not follow inside of a run");
	}
}

/* The flow. */

static bool follows(const struct follow *f, uint64_t ip)
{
	const bool on = ((ip ^ f->next) & f->mask) == 0;
	const bool target = ((ip ^ f->target) & f->mask) == 0;

	switch (f->way) {
	case WAY_ON:
		return on;
	case WAY_TARGET:
		return target;
	case WAY_EITHER:
		return on || target;
	default:
		return true;
	}
}

static void judge_run(struct follow *f, const struct ptd_run *run)
{
	const uint64_t time = f->clock == PTD_CLOCK_NS ? run->t : UINT64_MAX;
	const struct ptd_insn *last = &run->block->insns[run->first + run->n - 1];
	struct seen *seen = &f->seen.items[run->block->id];
	const uint64_t ip = ptd_run_ip(run, 0);
	const unsigned int end = (unsigned int)run->first + run->n;

	if (seen->pid != f->slice->pid || seen->base != run->base || time < seen->from ||
	    time >= seen->to || run->first < seen->first || end > seen->end)
		look_at_insn(f, run, time, seen);

	if (!f->is_free && !follows(f, ip))
		fault(f, ip, "does not follow from the instruction at %#" PRIx64, f->ip);
	f->is_free = false;
	f->way = end == seen->end ? seen->way : WAY_ON;
	f->ip = run->base + last->offset;
	f->next = f->ip + last->size;
	f->target = run->base + seen->disp;
	if (seen->is_cut)
		f->target = (uint16_t)f->target;
	f->mask = run->block->mode == 64 ? UINT64_MAX : UINT32_MAX;
	f->n_insns += run->n;
}

static void judge_mark(struct follow *f, const struct ptd_mark *mark)
{
	if (mark->kind == PTD_MARK_ASYNC && mark->ip && !f->is_free && !follows(f, mark->ip))
		fault(f, mark->ip,
		      "is where it was interrupted, but does not follow from the instruction at "
		      "%#" PRIx64,
		      f->ip);
	f->is_free = true;
}

int follow_batch(struct follow *f, const struct ptd_batch *batch)
{
	size_t mark = 0;

	f->slice = batch->slice;
	if (batch->slice->id != f->slice_id)
		f->is_free = true;
	f->slice_id = batch->slice->id;

	for (size_t i = 0; i < batch->n_runs; i++) {
		const uint32_t id = batch->runs[i].block->id;

		for (; mark < batch->n_marks && batch->marks[mark].run <= i; mark++)
			judge_mark(f, &batch->marks[mark]);
		if (id >= f->seen.n) {
			if (vec_reserve(&f->seen, id + 1 - f->seen.n) < 0)
				return -ENOMEM;
			while (f->seen.n <= id)
				f->seen.items[f->seen.n++] = (struct seen){};
		}
		judge_run(f, &batch->runs[i]);
	}
	for (; mark < batch->n_marks; mark++)
		judge_mark(f, &batch->marks[mark]);
	return 0;
}
