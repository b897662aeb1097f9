/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/walk.h"

#include <assert.h>

#include "decoder/pt/peek.h"
#include "util/psb.h"

/* The bytes of the longest packet, and of what an erratum looks at behind it. */
#define READ_SIZE (PACKET_SIZE_MAX + 1)

/* To look ahead by: few packets are, and not far. */
#define AHEAD_SIZE (size_t)(1 << 12)

static_assert(READ_SIZE <= WALK_WINDOW_MIN && PSB_SIZE <= WALK_WINDOW_MIN, "packets fit");

/* Packets that repeat in a PSB+ what is known. */
#define PACKETS_OF_STATUS                                                                    \
	(PACKET_BIT(MODE_EXEC) | PACKET_BIT(MODE_TSX) | PACKET_BIT(PIP) | PACKET_BIT(VMCS) | \
	 PACKET_BIT(CBR))

/* Packets that may stand between a packet of time and the TIP.PGE whose time that is. */
#define PACKETS_BEFORE_PGE \
	(PACKET_BIT(TIP_PGE) | PACKET_BIT(MODE_EXEC) | PACKET_BIT(MODE_TSX) | PACKET_BIT(PIP))

/* What event a packet makes, and where in the code. */
static const struct meaning {
	uint8_t kind;   /* enum walk_kind */
	uint8_t mark;   /* of WALK_MARK: enum ptd_mark_kind */
	uint8_t at_fup; /* enum walk_place, if it waits for a FUP; */
	uint8_t alone;  /* and if it stands alone */
} meanings[_PACKET_TYPES] = {
	[PACKET_TIP_PGE] = { .kind = WALK_ENABLED },
	[PACKET_TIP_PGD] = { .kind = WALK_DISABLED, .alone = WALK_NEXT },
	[PACKET_FUP] = { .kind = WALK_ASYNC, .at_fup = WALK_BEFORE },
	[PACKET_MODE_EXEC] = { .kind = WALK_MODE },
	[PACKET_MODE_TSX] = { .kind = WALK_TSX },
	[PACKET_PIP] = { .kind = WALK_PAGING, .alone = WALK_NEXT },
	[PACKET_VMCS] = { .kind = WALK_VMCS, .alone = WALK_NEXT },
	[PACKET_OVF] = { .kind = WALK_OVERFLOW },
	[PACKET_CBR] = { WALK_MARK, PTD_MARK_CBR, WALK_HERE, WALK_HERE },
	[PACKET_STOP] = { WALK_MARK, PTD_MARK_STOP, WALK_HERE, WALK_HERE },
	[PACKET_PTW] = { WALK_MARK, PTD_MARK_PTWRITE, WALK_BEHIND, WALK_NEXT },
	[PACKET_MWAIT] = { WALK_MARK, PTD_MARK_MWAIT, WALK_HERE, WALK_HERE },
	[PACKET_PWRE] = { WALK_MARK, PTD_MARK_PWRE, WALK_HERE, WALK_HERE },
	[PACKET_PWRX] = { WALK_MARK, PTD_MARK_PWRX, WALK_HERE, WALK_HERE },
	[PACKET_EXSTOP] = { WALK_MARK, PTD_MARK_EXSTOP, WALK_HERE, WALK_HERE },
	[PACKET_BEP] = { WALK_MARK, PTD_MARK_PEBS, WALK_HERE, WALK_HERE },
	[PACKET_CFE] = { WALK_MARK, PTD_MARK_CFE, WALK_BEHIND, WALK_HERE },
	[PACKET_EVD] = { WALK_MARK, PTD_MARK_EVD, WALK_HERE, WALK_HERE },
	[PACKET_TRIG] = { WALK_MARK, PTD_MARK_TRIG, WALK_HERE, WALK_HERE },
};

void walk_init(struct walk *w, const struct walk_config *config)
{
	const bool is_whole = config->pt.memory && !config->window;
	const uint32_t eax = config->cpuid_15_eax, ebx = config->cpuid_15_ebx;
	const uint32_t divisor = eax > 0 && ebx % eax == 0 ? eax : 1;

	*w = (struct walk){
		.size = config->pt.size,
		.quick_max = UINT64_MAX,
		.join = UINT64_MAX,
		.next_at = UINT64_MAX,
		.reader = { .errata = config->errata },
		.has_events = config->has_events,
		.tsc = { .mtc_freq = config->mtc_freq,
			 .nom_freq = config->nom_freq,
			 .eax = eax / divisor,
			 .ebx = ebx / divisor,
			 .loses_cycles = config->errata & ERRATUM_SKL168 },
	};
	window_init(&w->window, &config->pt, is_whole ? 0 : config->window ?: WINDOW_SIZE);
	window_init(&w->ahead, &config->pt, is_whole ? 0 : config->window ?: AHEAD_SIZE);
}

void walk_deinit(struct walk *w)
{
	window_deinit(&w->window);
	window_deinit(&w->ahead);
}

/* Nothing of what waits will come any more. */
static void forget_queues(struct walk *w)
{
	w->fup.n = w->tip.n = w->psb.n = 0;
	w->has_waiting = false;
	w->follows_mode = false;
}

/* The packet's address, if it has one, is the last one now. */
static bool take_ip(struct walk *w)
{
	return packet_ip(&w->packet, &w->last_ip);
}

/* Begin the event of the packet that is next, and take its address. */
static struct walk_event event_of(struct walk *w)
{
	const struct meaning *meaning = &meanings[w->packet.type];
	const bool has_ip = take_ip(w);

	return (struct walk_event){ .kind = meaning->kind,
				    .mark = meaning->mark,
				    .place = meaning->at_fup,
				    .has_ip = has_ip,
				    .ip = has_ip ? w->last_ip : 0,
				    .t = walk_now(w),
				    .value = w->packet.value,
				    .extra = w->packet.extra };
}

static enum walk_next fail_here(struct walk *w, enum ptd_gap_reason reason)
{
	w->error = reason;
	return WALK_ERROR;
}

/* Let @event wait for the packet of @queue, behind the one that is next. */
static enum walk_next enqueue(struct walk *w, struct walk_queue *queue, struct walk_event event)
{
	if (queue->n == WALK_QUEUE_MAX)
		return fail_here(w, PTD_GAP_BAD_PACKET);
	if (!w->has_waiting && queue != &w->psb && event.kind != WALK_ASYNC) {
		w->has_waiting = true;
		w->waiting = w->offset;
	}
	queue->items[queue->n++] = event;
	return WALK_ON;
}

static struct walk_event dequeue(struct walk_queue *queue)
{
	const struct walk_event event = queue->items[0];

	assert(queue->n > 0);
	queue->n--;
	memmove(queue->items, queue->items + 1, queue->n * sizeof(*queue->items));
	return event;
}

/* Return: the event that the packet of @type, which waits in @queue, makes; NULL: none waits. */
static struct walk_event *find_queued(struct walk_queue *queue, enum packet_type type)
{
	const struct meaning *meaning = &meanings[type];

	for (size_t i = 0; i < queue->n; i++)
		if (queue->items[i].kind == meaning->kind && queue->items[i].mark == meaning->mark)
			return &queue->items[i];
	return NULL;
}

/* Make a note of the packet that is next. */
static void add_note(struct walk *w, bool interrupts)
{
	if (w->n_notes == WALK_NOTES_MAX)
		return;
	w->notes[w->n_notes++] = (struct walk_note){
		.kind = meanings[w->packet.type].mark,
		.value = w->packet.value,
		.extra = w->packet.extra,
		.offset = w->offset,
		.next = UINT64_MAX,
		.interrupts = interrupts,
	};
}

/* Notes are of the packet that is next. */
static void settle_notes(struct walk *w)
{
	for (size_t i = 0; i < w->n_notes; i++)
		if (w->notes[i].next == UINT64_MAX)
			w->notes[i].next = w->offset;
}

struct walk_note walk_take_note(struct walk *w)
{
	const struct walk_note first = w->notes[0];

	w->n_notes--;
	memmove(w->notes, w->notes + 1, w->n_notes * sizeof(*w->notes));
	return first;
}

static void pass_packet(struct walk *w)
{
	w->offset += w->packet.size;
	w->next_at = UINT64_MAX;
}

/* Let all that waits in @queue come next: at @ip, if it is known. */
static void make_ready(struct walk *w, struct walk_queue *queue, bool has_ip, uint64_t ip)
{
	assert(w->ready.n == 0);
	for (size_t i = 0; i < queue->n; i++) {
		struct walk_event *event = &w->ready.items[i];

		*event = queue->items[i];
		event->has_ip = has_ip && event->kind != WALK_MARK;
		event->ip = event->has_ip ? ip : 0;
		event->place = event->has_ip ? WALK_BEFORE : WALK_HERE;
		if (queue == &w->psb)
			event->t = walk_now(w);
	}
	w->ready.n = queue->n;
	w->ready_from = w->offset;
	queue->n = 0;
	w->has_waiting = w->has_waiting && w->tip.n + w->fup.n > 0;
}

/*
 * PSB+
 */

/* Keep what a PSB+ would repeat. */
static void take_state(struct walk *w)
{
	switch (w->packet.type) {
	case PACKET_MODE_EXEC:
		w->state.mode = (uint8_t)w->packet.value;
		return;
	case PACKET_MODE_TSX:
		w->state.tsx = w->packet.value;
		return;
	case PACKET_PIP:
		w->state.cr3 = w->packet.value;
		w->state.non_root = w->packet.extra;
		w->state.has_cr3 = true;
		return;
	case PACKET_VMCS:
		w->state.vmcs = w->packet.value;
		w->state.has_vmcs = true;
		return;
	case PACKET_CBR:
		w->state.cbr = w->packet.value;
		return;
	default:
		return;
	}
}

static enum walk_next bind_status(struct walk *w, enum packet_type type, uint64_t value,
				  uint64_t extra)
{
	return enqueue(w, &w->psb,
		       (struct walk_event){ .kind = meanings[type].kind,
					    .mark = meanings[type].mark,
					    .place = WALK_BEFORE,
					    .is_status = true,
					    .value = value,
					    .extra = extra });
}

/*
 * The packet that is next is one of time. A TSC is of the packet that follows it; so is a CYC, if
 * MTC packets keep the count of cycles right. The time of an MTC may be from long before.
 */
static void take_time(struct walk *w)
{
	const enum packet_type type = w->packet.type;

	if (w->state.non_root && packet_is_of_tsc(&w->packet)) {
		w->leads = false;
		return;
	}
	w->is_timed = w->is_timed || tsc_tells(&w->tsc, type);
	w->leads = type == PACKET_TSC || (w->leads && type != PACKET_MTC) ||
		   (type == PACKET_CYC && tsc_counts(&w->tsc));
	tsc_take(&w->tsc, &w->packet, false, w->offset);
}

static enum walk_next take_in_psb(struct walk *w)
{
	const struct packet *packet = &w->packet;

	take_state(w);
	if (packet_is_in(packet, PACKETS_OF_TIME)) {
		w->is_timed = w->is_timed || packet->type == PACKET_TSC;
		tsc_take(&w->tsc, packet, true, w->offset);
	}
	if (packet_is_in(packet, PACKETS_OF_STATUS))
		return bind_status(w, packet->type, packet->value, packet->extra);
	if (packet->type == PACKET_FUP) {
		if (w->reader.errata & ERRATUM_BDM70 && !w->enabled &&
		    peek_has_pge(w, w->offset + packet->size))
			return WALK_ON;
		w->psb_has_ip = take_ip(w) || w->psb_has_ip;
		w->enabled = w->enabled || w->psb_has_ip;
		return WALK_ON;
	}
	return packet_is_in(packet, PACKETS_OF_TIME | PACKETS_OF_REPORTS)
		   ? WALK_ON
		   : fail_here(w, PTD_GAP_BAD_PACKET);
}

static int read_packet(struct walk *w)
{
	size_t n;
	const uint8_t *p = window_at(&w->window, w->offset, READ_SIZE, &n);

	return packet_read(&w->reader, p, n, &w->packet);
}

/*
 * Read the PSB+ whose PSB is next. Its events are to be taken then.
 *
 * Return: 0, PACKET_CUT, or PACKET_BAD; then the PSB is next as before.
 */
static int take_psb(struct walk *w)
{
	const uint64_t offset = w->offset;
	const bool was_timed = w->is_timed;
	struct tsc before;
	int r;

	w->last_ip = 0;
	w->psb_has_ip = false;
	w->is_status = true;
	w->leads = false;
	tsc_take_psb(&w->tsc, offset);
	if (offset == w->join) {
		tsc_forget(&w->tsc);
		w->state = (struct walk_state){};
	}
	before = w->tsc;
	for (pass_packet(w);; pass_packet(w)) {
		r = read_packet(w);
		if (r != 0)
			break;
		if (w->packet.type == PACKET_OVF || w->packet.type == PACKET_PSBEND) {
			/* That a guest runs may stand behind its TSC. */
			if (w->state.non_root) {
				w->tsc = before;
				w->is_timed = was_timed;
			}
			if (w->packet.type == PACKET_PSBEND && offset == w->join) {
				w->psb.items[w->psb.n++] =
				    (struct walk_event){ .kind = WALK_JOIN, .value = offset };
			}
			make_ready(w, &w->psb, w->psb_has_ip, w->last_ip);
			if (w->packet.type == PACKET_PSBEND) {
				w->is_status = false;
				pass_packet(w);
			}
			return 0;
		}
		if (take_in_psb(w) != WALK_ON) {
			r = PACKET_BAD;
			break;
		}
	}
	w->psb.n = 0;
	w->offset = offset;
	return r;
}

/*
 * Overflows
 */

bool walk_pass_until(struct walk *w, uint64_t end, uint64_t limit)
{
	while (walk_now(w) <= limit && w->offset < end && read_packet(w) == 0) {
		if (packet_is_in(&w->packet, PACKETS_OF_TIME))
			take_time(w);
		take_state(w);
		pass_packet(w);
	}
	return walk_now(w) > limit;
}

/* Take the OVF that is next. Return: WALK_EVENT; WALK_ON if it waits for its FUP; WALK_ERROR. */
static enum walk_next take_overflow(struct walk *w, struct walk_event *ret_event)
{
	struct walk_event event;
	struct peek_overflow over;

	forget_queues(w);
	w->last_ip = 0;
	w->enabled = w->is_timed = false;
	w->is_status = true;
	w->state.tsx = 0;
	tsc_forget_rate(&w->tsc);
	event = event_of(w);
	pass_packet(w);
	over = peek_overflow(w);
	if (over.end == PEEK_BAD)
		return fail_here(w, PTD_GAP_BAD_PACKET);
	if (over.end == PEEK_FUP) {
		w->enabled = true;
		return enqueue(w, &w->fup, event);
	}
	(void)walk_pass_until(w, over.offset, UINT64_MAX);
	event.t = walk_now(w);
	w->enabled = event.has_ip = over.end == PEEK_ON;
	w->is_timed = false;
	if (w->enabled)
		w->last_ip = event.ip = over.ip;
	*ret_event = event;
	return WALK_EVENT;
}

/*
 * What each packet does
 */

/* A FUP is that of the oldest event that waits for one; or of a MODE.Exec, which then says that the
 * instruction at its address has changed the interrupt flag; or an interruption begins. */
static enum walk_next take_fup(struct walk *w)
{
	const bool follows_mode = w->follows_mode;
	struct walk_event event = event_of(w);

	w->follows_mode = false;
	if (w->fup.n > 0)
		return WALK_EVENT;
	if (follows_mode && w->has_events) {
		w->tip.n--;
		event.kind = WALK_NOTHING;
		event.place = WALK_HERE;
		(void)enqueue(w, &w->fup, event);
		return WALK_EVENT;
	}
	if (!event.has_ip)
		return fail_here(w, PTD_GAP_BAD_FLOW);
	event.fup = w->offset;
	w->is_status = false;
	return enqueue(w, &w->tip, event);
}

static enum walk_next take_mode(struct walk *w)
{
	const enum walk_next next = enqueue(w, &w->tip, event_of(w));

	w->follows_mode = !w->is_status && next == WALK_ON;
	return next;
}

/* A change of the page table, or of the VMCS, is part of the interruption that is being told; or of
 * what an instruction did. Of the two, the VMCS changes first. */
static enum walk_next take_paging(struct walk *w)
{
	struct walk_event *paging = find_queued(&w->tip, PACKET_PIP);
	struct walk_event event = event_of(w), vmcs = event;

	if (!find_queued(&w->tip, PACKET_FUP))
		return WALK_EVENT;
	if (event.kind == WALK_VMCS && paging) {
		event = *paging;
		*paging = vmcs;
	}
	return enqueue(w, &w->tip, event);
}

/* An event of event trace whose address, if it has one, is that of the instruction that did it. */
static bool is_of_instruction(uint64_t cfe)
{
	return cfe == PTD_CFE_IRET || cfe == PTD_CFE_VMENTRY || cfe == PTD_CFE_UIRET;
}

static enum walk_next take_cfe(struct walk *w)
{
	const struct packet *packet = &w->packet;
	struct peek peek = peek_from(w, w->offset + packet->size);
	struct packet next;
	/* Its address may have been lost. */
	const bool has_fup = packet->flag && !(peek_next(&peek, &next) && next.type == PACKET_OVF);

	/* While packets are off, a FUP begins no interruption. */
	if (has_fup && (is_of_instruction(packet->value) || !w->enabled))
		return enqueue(w, &w->fup, event_of(w));
	add_note(w, has_fup);
	/* What it is about was told before it. */
	for (size_t i = w->n_notes; i-- > 0 && w->notes[w->n_notes - 1].interrupts;)
		if (w->notes[i].kind == PTD_MARK_EVD && w->notes[i].next == UINT64_MAX)
			w->notes[i].interrupts = true;
	return WALK_ON;
}

/* A C-state is entered. If an EXSTOP with an address follows, code still ran until then. */
static enum walk_next take_pwre(struct walk *w)
{
	struct peek peek = peek_from(w, w->offset + w->packet.size);
	struct packet next;

	if (w->fup.n > 0 ||
	    (peek_past(&peek, PACKETS_OF_TIME, &next) && next.type == PACKET_EXSTOP && next.flag))
		return enqueue(w, &w->fup, event_of(w));
	return WALK_EVENT;
}

/* Look at the packet that is next. What is only state, or has to wait, is passed over by the
 * caller. */
static enum walk_next take_packet(struct walk *w)
{
	const struct packet *packet = &w->packet;

	if (packet_is_in(packet, PACKETS_OF_TIME & ~PACKET_BIT(CBR))) {
		take_time(w);
		return WALK_ON;
	}
	take_state(w);
	w->leads = w->leads && packet_is_in(packet, PACKETS_BEFORE_PGE);
	if (!packet_is_in(packet, PACKET_BIT(FUP) | PACKET_BIT(CBR)))
		w->follows_mode = false;
	if (packet_is_in(packet, PACKET_BIT(TNT) | PACKET_BIT(TIP) | PACKET_BIT(TIP_PGE) |
				     PACKET_BIT(TIP_PGD) | PACKET_BIT(OVF) | PACKET_BIT(FUP)))
		settle_notes(w);
	switch (packet->type) {
	case PACKET_TNT:
		return WALK_TNT;
	case PACKET_TIP:
		return find_queued(&w->tip, PACKET_FUP) ? WALK_EVENT : WALK_TIP;
	case PACKET_FUP:
		return take_fup(w);
	case PACKET_MODE_EXEC:
		return take_mode(w);
	case PACKET_MODE_TSX:
		return w->enabled ? enqueue(w, &w->fup, event_of(w)) : WALK_EVENT;
	case PACKET_PIP:
	case PACKET_VMCS:
		return take_paging(w);
	case PACKET_PWRE:
		return take_pwre(w);
	case PACKET_MWAIT:
		return enqueue(w, &w->fup, event_of(w));
	case PACKET_CFE:
		return take_cfe(w);
	case PACKET_EVD:
		add_note(w, false);
		return WALK_ON;
	case PACKET_MNT:
	case PACKET_BBP:
	case PACKET_BIP:
		return WALK_ON;
	case PACKET_PSBEND:
		return fail_here(w, PTD_GAP_BAD_PACKET);
	default:
		return packet->flag ? enqueue(w, &w->fup, event_of(w)) : WALK_EVENT;
	}
}

/* Return: whether a packet that is cut off would only have been state. */
static bool is_state(const struct walk *w)
{
	if (w->packet.type == PACKET_PAD)
		return w->size - w->offset > 1;
	if (w->packet.type == PACKET_FUP)
		return w->fup.n == 0;
	return packet_is_in(&w->packet, PACKET_BIT(TSC) | PACKET_BIT(TMA) | PACKET_BIT(MTC) |
					    PACKET_BIT(CYC) | PACKET_BIT(PSB) | PACKET_BIT(CFE) |
					    PACKET_BIT(EVD) | PACKET_BIT(TRIG) | PACKET_BIT(BBP) |
					    PACKET_BIT(BIP));
}

/* The packet at the end is cut off. */
static enum walk_next end_inside(struct walk *w)
{
	if (!is_state(w))
		return fail_here(w, PTD_GAP_CUT);
	w->offset = w->size;
	return WALK_END;
}

/* Where nothing waits for anything, a TNT or a TIP is just that. */
static void set_quick(struct walk *w)
{
	const bool is_plain = w->tip.n == 0 && w->fup.n == 0 && w->ready.n == 0 &&
			      w->n_notes == 0 && w->reader.item_size == 0 &&
			      w->offset >= w->window.start;

	w->quick = is_plain ? w->window.start + w->window.n : 0;
	if (w->quick > w->quick_max)
		w->quick = w->quick_max;
}

/*
 * Does the packet that is next show that no FUP comes for what waits for one? An MWAIT shares the
 * FUP of the EXSTOP behind it, which has none if packets are off. The FUP of whatever runs once
 * packets are on again is another one.
 */
static bool lacks_fup(struct walk *w)
{
	switch (w->packet.type) {
	case PACKET_EXSTOP:
		return !w->packet.flag && find_queued(&w->fup, PACKET_MWAIT);
	case PACKET_TIP_PGE:
		return w->fup.n > 0;
	case PACKET_OVF:
		return w->fup.n > 0 && w->fup.items[0].kind == WALK_MARK;
	default:
		return false;
	}
}

/* Real streams have many of these. */
static void pass_pads(struct walk *w)
{
	const uint64_t end = w->window.start + w->window.n;

	while (w->offset >= w->window.start && w->offset < end &&
	       w->window.bytes[w->offset - w->window.start] == 0)
		w->offset++;
}

/* A PSB+ that repeats nothing has ended. The time in it is not told before it is needed. */
static void note_psb(struct walk *w)
{
	w->psb.items[w->psb.n++] = (struct walk_event){ .kind = WALK_NOTHING, .is_status = true };
	make_ready(w, &w->psb, w->psb_has_ip, w->last_ip);
	w->ready.items[0].t = 0;
}

static enum walk_next look_ahead(struct walk *w)
{
	while (w->ready.n == 0) {
		enum walk_next next = WALK_ON;
		int r;

		pass_pads(w);
		if (w->offset == w->size)
			return WALK_END;
		r = read_packet(w);
		if (r == 0 && w->packet.type == PACKET_PSB) {
			settle_notes(w);
			r = take_psb(w);
			if (r == 0 && w->ready.n == 0)
				note_psb(w);
		} else if (r == 0 && lacks_fup(w)) {
			make_ready(w, &w->fup, false, 0);
		} else if (r == 0) {
			next = take_packet(w);
			if (next == WALK_ON)
				pass_packet(w);
		}
		if (r != 0)
			return r == PACKET_CUT ? end_inside(w) : fail_here(w, PTD_GAP_BAD_PACKET);
		if (next != WALK_ON)
			return next;
	}
	return WALK_EVENT;
}

void walk_go_back(struct walk *w, const struct walk *before)
{
	const struct window window = w->window, ahead = w->ahead;

	*w = *before;
	w->window = window;
	w->ahead = ahead;
	set_quick(w);
}

enum walk_next walk_ahead(struct walk *w)
{
	enum walk_next next = w->next;

	if (w->offset != w->next_at || w->ready.n > 0) {
		next = look_ahead(w);
		if (w->ready.n == 0 && next != WALK_END && next != WALK_ERROR) {
			w->next_at = w->offset;
			w->next = next;
		}
	}
	set_quick(w);
	return next;
}

bool walk_quick_long_tnt(struct walk *w, uint64_t *ret_bits, unsigned *ret_n)
{
	const uint8_t *p = w->window.bytes + (w->offset - w->window.start);
	uint64_t payload;

	if (w->offset + sizeof(payload) > w->quick)
		return false;
	memcpy(&payload, p, sizeof(payload));
	if ((payload & 0xffff) != 0xa302 || payload >> 17 == 0)
		return false;
	*ret_n = 47 - (unsigned)__builtin_clzll(payload);
	*ret_bits = payload >> 16 << (64 - *ret_n);
	w->offset += sizeof(payload);
	w->leads = false;
	return true;
}

/*
 * Read the CYC at @p, without a branch for each of its bytes, whose number nothing foretells.
 * Return: its size; 0 if it is left to packet_read().
 */
static inline unsigned read_cycles(const struct walk *w, const uint8_t *p, uint64_t *ret_cycles)
{
	uint64_t last; /* a bit in the last byte */
	uint32_t word;

	memcpy(&word, p, sizeof(word));
	last = ~((word >> 2 & 1) | (word & 0x01010100)) & 0x01010101;
	last &= -last;
	word &= (uint32_t)((last << 8) - 1);
	*ret_cycles = (word & 0xf8) >> 3 | (word & 0xfe00) >> 4 | (word & 0xfe0000) >> 5 |
		      (word & 0xfe000000) >> 6;
	if (w->reader.errata & ERRATUM_SKD007 && last == 0x100 && p[2] == 0xf3)
		return 0;
	return ((unsigned)__builtin_ffsll((long long)last) + 7) / 8;
}

void walk_pass_time(struct walk *w)
{
	const uint64_t start = w->window.start;
	const bool counts = tsc_counts(&w->tsc);
	const uint8_t *p, *end;

	if (w->offset + PACKET_SIZE_MAX > w->quick)
		return;
	p = w->window.bytes + (w->offset - start);
	end = w->window.bytes + (w->quick - PACKET_SIZE_MAX - start);
	while (p <= end) {
		if ((p[0] & 3) == 3) {
			uint64_t cycles;
			const unsigned size = read_cycles(w, p, &cycles);

			if (size == 0)
				break;
			w->leads = w->leads || counts;
			p += size;
			tsc_take_cycles(&w->tsc, cycles, start + (uint64_t)(p - w->window.bytes));
		} else if (p[0] == 0x59) {
			w->is_timed = w->is_timed || counts;
			w->leads = false;
			tsc_take_mtc(&w->tsc, p[1], start + (uint64_t)(p - w->window.bytes));
			p += 2;
		} else if (p[0] == 0) {
			p++;
		} else {
			break;
		}
	}
	w->offset = start + (uint64_t)(p - w->window.bytes);
}

unsigned walk_take_tnt(struct walk *w, uint64_t *ret_bits)
{
	assert(w->packet.type == PACKET_TNT);
	pass_packet(w);
	*ret_bits = w->packet.bits;
	return w->packet.n_bits;
}

bool walk_take_tip(struct walk *w, uint64_t *ret_ip)
{
	const bool has_ip = take_ip(w);

	assert(w->packet.type == PACKET_TIP);
	make_ready(w, &w->tip, has_ip, w->last_ip);
	pass_packet(w);
	*ret_ip = w->last_ip;
	return has_ip;
}

/*
 * Events
 */

/* The FUP that is next belongs to what waits for it. An abort also begins an interruption. */
static bool take_fup_event(struct walk *w, struct walk_event *event)
{
	const bool has_ip = take_ip(w);

	*event = dequeue(&w->fup);
	event->has_ip = has_ip;
	event->ip = has_ip ? w->last_ip : 0;
	if (event->place == WALK_HERE && has_ip && event->kind != WALK_OVERFLOW)
		event->place = WALK_BEFORE;
	w->is_status = false;
	w->is_timed = w->is_timed && event->kind != WALK_OVERFLOW;
	w->has_waiting = w->has_waiting && w->tip.n + w->fup.n > 0;
	if (w->fup.n == 0 && !(event->kind == WALK_TSX && event->value & PACKET_TSX_ABORT))
		pass_packet(w);
	return has_ip || event->kind != WALK_OVERFLOW;
}

/* The TIP or TIP.PGD that is next ends an interruption. */
static void take_async(struct walk *w, struct walk_event *event, bool is_off)
{
	const bool has_ip = take_ip(w);

	*event = dequeue(&w->tip);
	event->to = has_ip ? w->last_ip : 0;
	if (is_off)
		event->kind = WALK_ASYNC_DISABLED;
	make_ready(w, &w->tip, has_ip && !is_off, w->last_ip);
	pass_packet(w);
}

/* Take the event of the packet that is next. Return: WALK_EVENT; WALK_ON if it has to wait; or
 * WALK_ERROR. */
static enum walk_next take_event(struct walk *w, struct walk_event *event)
{
	switch (w->packet.type) {
	case PACKET_FUP:
		return take_fup_event(w, event) ? WALK_EVENT : fail_here(w, PTD_GAP_BAD_FLOW);
	case PACKET_TIP:
		take_async(w, event, false);
		return WALK_EVENT;
	case PACKET_TIP_PGE:
		if (!take_ip(w))
			return fail_here(w, PTD_GAP_BAD_PACKET);
		make_ready(w, &w->tip, true, w->last_ip);
		w->enabled = true;
		w->is_timed = w->leads;
		w->is_status = w->leads = false;
		break;
	case PACKET_TIP_PGD:
		w->enabled = false;
		if (find_queued(&w->tip, PACKET_FUP) == w->tip.items) {
			take_async(w, event, true);
			return WALK_EVENT;
		}
		make_ready(w, &w->tip, false, 0);
		break;
	case PACKET_OVF:
		return take_overflow(w, event);
	case PACKET_CBR:
		tsc_take(&w->tsc, &w->packet, false, w->offset);
		break;
	default:
		break;
	}
	*event = event_of(w);
	event->place = meanings[w->packet.type].alone;
	pass_packet(w);
	return WALK_EVENT;
}

bool walk_take_event(struct walk *w, struct walk_event *ret_event)
{
	uint64_t offset = w->offset;
	enum walk_next next;

	w->next_at = UINT64_MAX;
	if (w->ready.n > 0) {
		*ret_event = dequeue(&w->ready);
		ret_event->offset = ret_event->end = w->offset;
		ret_event->now = walk_now(w);
		set_quick(w);
		return true;
	}
	/* An overflow waits for its FUP, which is known to come. */
	do {
		offset = w->offset;
		next = take_event(w, ret_event);
	} while (next == WALK_ON && look_ahead(w) == WALK_EVENT);
	set_quick(w);
	ret_event->offset = offset;
	ret_event->end = w->offset;
	ret_event->now = walk_now(w);
	if (next == WALK_ON)
		w->error = PTD_GAP_BAD_PACKET;
	return next == WALK_EVENT;
}

/*
 * Beginning anew
 */

static void forget_waiting(struct walk *w)
{
	forget_queues(w);
	w->ready.n = w->n_notes = 0;
	w->quick = 0;
	w->next_at = UINT64_MAX;
	w->reader.item_size = 0;
}

/* Know nothing, and stand at @offset. */
static void begin(struct walk *w, uint64_t offset)
{
	forget_waiting(w);
	tsc_forget(&w->tsc);
	w->state = (struct walk_state){};
	w->enabled = w->is_timed = w->leads = false;
	w->offset = offset;
}

bool walk_begin_at(struct walk *w, uint64_t offset)
{
	begin(w, offset);
	return read_packet(w) == 0 && take_psb(w) == 0;
}

bool walk_sync(struct walk *w, uint64_t from, uint64_t *ret_offset, bool *ret_has_ip)
{
	/* A packet before it that makes no sense may have taken its first bytes for its own. */
	from -= from < PSB_SIZE - 1 ? from : PSB_SIZE - 1;
	for (;; from = *ret_offset + 1) {
		*ret_offset = psb_find(&w->window, from);
		if (walk_begin_at(w, *ret_offset))
			break;
		if (*ret_offset == w->size)
			return false;
	}
	*ret_has_ip = w->psb_has_ip;
	set_quick(w);
	return true;
}

/* Return: whether the PSB that is next begins a PSB+ that makes no sense: another packet stands
 * where its PSBEND should. */
static bool is_broken_psb(struct walk *w)
{
	const struct walk before = *w;
	const int r = take_psb(w);

	walk_go_back(w, &before);
	return r == PACKET_BAD;
}

bool walk_sync_broken(struct walk *w, uint64_t from, uint64_t *ret_offset)
{
	from -= from < PSB_SIZE - 1 ? from : PSB_SIZE - 1;
	*ret_offset = psb_find(&w->window, from);
	if (*ret_offset == w->size || walk_begin_at(w, *ret_offset))
		return false;
	begin(w, *ret_offset);
	return read_packet(w) == 0 && is_broken_psb(w);
}

/* Let the next events be those of a PSB+ at @ip. */
static void repeat_state(struct walk *w, uint64_t ip)
{
	const struct walk_state *state = &w->state;

	static_assert(WALK_QUEUE_MAX >= 5, "they have room");
	if (state->cbr)
		(void)bind_status(w, PACKET_CBR, state->cbr, 0);
	if (state->has_cr3)
		(void)bind_status(w, PACKET_PIP, state->cr3, state->non_root);
	if (state->has_vmcs)
		(void)bind_status(w, PACKET_VMCS, state->vmcs, 0);
	if (state->mode)
		(void)bind_status(w, PACKET_MODE_EXEC, state->mode, 0);
	if (state->tsx & PACKET_TSX_BEGIN)
		(void)bind_status(w, PACKET_MODE_TSX, state->tsx, 0);
	make_ready(w, &w->psb, true, ip);
}

/* Take the packet that is next without code. Return: whether it says where execution is. */
static bool recover_at(struct walk *w, bool *is_overflow, bool *asks)
{
	const struct packet *packet = &w->packet;
	const bool was_kernel = w->last_ip >> 63, has_ip = take_ip(w);

	if (packet_is_in(packet, PACKETS_OF_TIME))
		take_time(w);
	w->leads = w->leads && packet_is_in(packet, PACKETS_OF_TIME | PACKETS_BEFORE_PGE);
	take_state(w);
	*asks = *asks || packet_is_in(packet, PACKET_BIT(TSC) | PACKET_BIT(MTC) | PACKET_BIT(PIP) |
						  PACKET_BIT(TIP_PGE));
	switch (packet->type) {
	case PACKET_OVF:
		w->last_ip = 0;
		w->enabled = w->is_timed = false;
		w->state.tsx = 0;
		*is_overflow = true;
		break;
	case PACKET_TIP:
		w->is_timed = w->is_timed && !(was_kernel && !(w->last_ip >> 63));
		break;
	case PACKET_TIP_PGE:
		w->enabled = true;
		w->is_timed = w->leads;
		*is_overflow = false;
		break;
	case PACKET_TIP_PGD:
		w->enabled = false;
		break;
	case PACKET_FUP:
		w->enabled = w->enabled || *is_overflow;
		w->is_timed = w->is_timed && !*is_overflow;
		*is_overflow = false;
		break;
	default:
		break;
	}
	return has_ip && w->enabled;
}

/* Does the packet that is next wait for a FUP, as part of its event? */
static bool is_before_fup(const struct packet *packet)
{
	return packet->flag || packet_is_in(packet, PACKET_BIT(MODE_EXEC) | PACKET_BIT(MODE_TSX) |
							PACKET_BIT(MWAIT) | PACKET_BIT(PWRE) |
							PACKET_BIT(CFE) | PACKET_BIT(EVD));
}

void walk_resume(struct walk *w, const struct walk_point *point)
{
	assert(w->offset == point->offset);
	w->is_status = false;
	repeat_state(w, point->ip);
	set_quick(w);
}

bool walk_recover(struct walk *w, struct walk_point *ret_point)
{
	bool is_overflow = false, is_in_event = false;
	struct walk before;

	forget_waiting(w);
	ret_point->asks = false;
	for (; w->offset < w->size && read_packet(w) == 0; pass_packet(w)) {
		const bool is_event = w->packet.type == PACKET_FUP && !is_overflow;
		const uint64_t offset = w->offset;

		if (w->packet.type == PACKET_PSB) {
			if (!is_broken_psb(w))
				break;
			/* What it would say of the state is not believed. */
			w->last_ip = 0;
			w->enabled = is_in_event = false;
			continue;
		}

		/* An event begins with the first packet that waits for its FUP. */
		if (!packet_is_in(&w->packet, PACKETS_OF_TIME)) {
			const bool waits = is_before_fup(&w->packet);

			if (!is_in_event && (waits || is_event))
				before = *w;
			is_in_event = waits;
		}
		if (!recover_at(w, &is_overflow, &ret_point->asks))
			continue;
		/* If the event itself is the error, it is met once and no more. */
		if (is_event && offset < w->recovered)
			continue;
		ret_point->ip = w->last_ip;
		if (is_event) {
			walk_go_back(w, &before);
			w->recovered = offset + 1;
		} else {
			pass_packet(w);
		}
		ret_point->offset = w->offset;
		return true;
	}
	return false;
}
