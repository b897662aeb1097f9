/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "tests/system/unit.h"

#include "daemon/plugin/qemu.h"

/* Bytes of the ring that are never exceeded by the packets of one block and a PSB+. */
#define RESERVE 1024

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

void unit_init(struct unit *unit, unsigned vcpu, struct vmring *ring, volatile uint32_t *number,
	       struct truth *truth)
{
	*unit = (struct unit){ .vcpu = vcpu, .ring = ring, .number = number, .truth = truth };
	encode_init(&unit->encode, VMRING_SIZE, UINT32_MAX, true, false);
	unit->encode.ring = (uint8_t *)ring + VMRING_OFFSET;
	unit->encode.state.head = ring->head;
	encode_init(&unit->nowhere, UNIT_SINK_SIZE, UINT32_MAX, true, false);
	unit->nowhere.ring = unit->sink;
}

bool unit_has_handler(const struct unit *unit, uint64_t ip)
{
	for (size_t i = 0; i < VMRING_VECTORS; i++)
		if (unit->ring->handlers[i] == ip)
			return true;
	return false;
}

static bool is_kernel(uint64_t ip)
{
	return ip >> 63;
}

static bool unit_covers(const struct unit *unit, uint64_t ip)
{
	return unit->control & (is_kernel(ip) ? VMRING_OS : VMRING_USER) &&
	       unit->control & VMRING_BRANCH_EN;
}

/* --- the ring --------------------------------------------------------------------------------- */

static uint64_t ring_room(const struct unit *unit)
{
	const uint64_t tail = __atomic_load_n(&unit->ring->tail, __ATOMIC_ACQUIRE);

	return VMRING_SIZE - (unit->encode.state.head - tail);
}

static void publish_head(struct unit *unit)
{
	if (unit->encode.state.head != unit->ring->head)
		__atomic_store_n(&unit->ring->head, unit->encode.state.head, __ATOMIC_RELEASE);
}

/* Discard packets from now on. */
static void discard_packets(struct unit *unit)
{
	unit->nowhere.state.enabled = true;
	unit->flow.encode = &unit->nowhere;
}

/* The ring is full, except for the pending packets. */
static void drop_packets(struct unit *unit)
{
	encode_flush(&unit->encode);
	unit->encode.state.enabled = false;
	unit->dropping = true;
	unit->ring->overflows++;
	discard_packets(unit);
}

/* If there is room again, write an OVF. Return: whether there is room. */
static bool recover_ring(struct unit *unit)
{
	if (ring_room(unit) < VMRING_SIZE / 2)
		return false;
	unit->dropping = false;
	unit->ring->lost += unit->nowhere.state.head;
	unit->nowhere.state.head = 0;
	encode_overflow(&unit->encode, (uint64_t)cpu_get_ticks());
	return true;
}

/* --- what is traced --------------------------------------------------------------------------- */

static void configure(struct unit *unit, uint64_t control)
{
	struct encode *e = &unit->encode;
	const bool was_on = unit->control & VMRING_TRACE_EN;

	unit->control = control;
	if (!(control & VMRING_TRACE_EN))
		return;
	if (!was_on)
		encode_forget(e);
	e->psb_period = 1u << ((control >> VMRING_PSB_FREQ & VMRING_FREQ_MASK) + VMRING_PSB_FREQ_0);
	e->return_compression = !(control & VMRING_DIS_RETC);
	e->timing = (struct encode_timing){
		.mtc = control & VMRING_MTC_EN,
		.cyc = control & VMRING_CYC_EN,
		.mtc_period = control >> VMRING_MTC_FREQ & VMRING_FREQ_MASK,
	};
	e->state.paging = 0;
	if (control & VMRING_OS)
		encode_paging(e, qemu_register(unit->vcpu, QEMU_X86_CR3));
	if (unit->restarts != unit->ring->restarts) {
		unit->restarts = unit->ring->restarts;
		e->state.timed = e->state.now;
		/* Now, as hardware does ("Packet Generation Scenarios"), though nothing may run of
		 * what is recorded: the next buffer may be another's. */
		encode_begin(e, (uint64_t)cpu_get_ticks());
	}
}

static void enter_unit(struct unit *unit, uint64_t ip)
{
	if (unit->dropping && !recover_ring(unit)) {
		discard_packets(unit);
		return;
	}
	encode_enable(&unit->encode, ip, (uint64_t)cpu_get_ticks());
	unit->flow.encode = &unit->encode;
}

/* --- where a block came from ------------------------------------------------------------------ */

/* Selectors of Linux's code segments. */
#define KERNEL_CS 0x10
#define USER32_CS 0x23
#define USER_CS   0x33

static bool is_code_segment(uint64_t selector)
{
	return selector == KERNEL_CS || selector == USER32_CS || selector == USER_CS;
}

/* Find the address at which an interrupt or exception interrupted @vcpu, from what the CPU pushed
 * on the stack. The first instruction of the handler must not have run yet. */
static bool interrupted_at(unsigned vcpu, uint64_t *ret_ip)
{
	uint64_t words[3]; /* for some exceptions an error code, then RIP, then CS */

	if (cpu_memory_rw_debug(qemu_get_cpu((int)vcpu), qemu_register(vcpu, QEMU_X86_RSP), words,
				sizeof(words), false) != 0)
		return false;
	for (int i = 0; i < 2; i++) {
		if (is_code_segment(words[i + 1])) {
			*ret_ip = words[i];
			return true;
		}
	}
	return false;
}

void unit_enter_kernel(struct flow *flow, uint64_t to)
{
	const uint64_t from = flow->last_began ? flow->block->last_ip : flow->block->ip;

	if (flow->last_began && flow->block->end == BLOCK_SYSCALL) {
		truthlog_whole(flow->log, flow->block->id);
		encode_indirect(flow->encode, to);
	} else {
		flow_event(flow, from, to);
	}
}

void unit_leave(struct flow *flow)
{
	if (flow->last_began && flow->block->end == BLOCK_FAR) {
		truthlog_whole(flow->log, flow->block->id);
		encode_disable(flow->encode);
		flow->encode = NULL;
		flow->block = NULL;
		flow->last_began = false;
	} else {
		flow_odd(flow);
	}
}

/* An interrupt or exception led to its handler, @block. */
static void take_event(struct unit *unit, const struct block *block)
{
	struct flow *flow = &unit->flow;
	uint64_t ip;

	unit->n_events++;
	if (!interrupted_at(unit->vcpu, &ip)) {
		unit->n_frameless++;
		ip = flow->last_began ? flow->block->last_ip : flow->block->ip;
	}
	if (unit_covers(unit, block->ip))
		flow_event(flow, ip, block->ip);
	else
		flow_interrupt(flow, ip);
}

static bool is_event(const struct unit *unit, const struct block *block)
{
	const struct flow *flow = &unit->flow;

	if (!is_kernel(block->ip))
		return false;
	if (block_has_handler(block))
		return true;
	return !is_kernel(flow->block->ip) &&
	       !(flow->last_began && flow->block->end == BLOCK_SYSCALL);
}

/* Judge the last block, now that control is at the start of @block. */
static void judge_unit_block(struct unit *unit, const struct block *block)
{
	struct flow *flow = &unit->flow;

	if (unlikely(is_event(unit, block)))
		take_event(unit, block);
	else if (is_kernel(block->ip) && !is_kernel(flow->block->ip) &&
		 unit_covers(unit, block->ip))
		unit_enter_kernel(flow, block->ip);
	else if (is_kernel(block->ip) && !is_kernel(flow->block->ip))
		flow_syscall(flow);
	else if (!unit_covers(unit, block->ip))
		unit_leave(flow);
	else if (flow_step(flow, block->ip) == FLOW_ODD)
		flow_odd(flow);
}

/* Return: the truth log for the block at @ip. */
static struct truthlog *log_for(struct unit *unit, uint64_t ip)
{
	const uint32_t tid = unit->ring->tid, number = *unit->number;

	if (unlikely(number != unit->logs_number)) {
		unit->logs_number = number;
		unit->kernel_log = NULL;
		unit->user_log = NULL;
	}
	if (is_kernel(ip)) {
		if (unlikely(!unit->kernel_log))
			unit->kernel_log = truth_kernel_log(unit->truth, number, unit->vcpu);
		return unit->kernel_log;
	}
	if (unlikely(tid != unit->tid || !unit->user_log))
		unit->user_log = truth_log(unit->truth, number, unit->ring->pid, tid);
	unit->tid = tid;
	return unit->user_log;
}

/* Do what is due between two blocks, while packets are on. */
static void attend_unit(struct unit *unit, const struct block *last, uint64_t ip)
{
	if (unlikely(last->sets_cr3) && unit->control & VMRING_OS)
		encode_paging(&unit->encode, qemu_register(unit->vcpu, QEMU_X86_CR3));
	if (unlikely(unit->dropping)) {
		if (!recover_ring(unit))
			return;
		unit->nowhere.state.tnt = 1;
		unit->flow.encode = &unit->encode;
		encode_resume(&unit->encode, ip);
	}
	if (encode_psb_due(&unit->encode))
		encode_psb(&unit->encode, ip, (uint64_t)cpu_get_ticks());
	if (unlikely(ring_room(unit) < RESERVE))
		drop_packets(unit);
}

void unit_begin_block(struct unit *unit, const struct block *block)
{
	struct flow *flow = &unit->flow;
	const uint64_t control = unit->ring->control;

	if (unlikely(control != unit->control)) {
		if (flow->encode)
			flow_interrupt(flow, block->ip);
		publish_head(unit);
		configure(unit, control);
	}
	if (!(control & VMRING_TRACE_EN))
		return;
	if (likely(flow->encode != NULL)) {
		const struct block *last = flow->block;

		if (encode_is_timed(flow->encode))
			encode_tick(flow->encode, (uint64_t)cpu_get_ticks());
		judge_unit_block(unit, block);
		if (flow->encode)
			attend_unit(unit, last, block->ip);
	}
	if (!flow->encode && unit_covers(unit, block->ip))
		enter_unit(unit, block->ip);
	publish_head(unit);
	if (!flow->encode)
		return;
	flow->log = log_for(unit, block->ip);
	flow->block = block;
	flow->last_began = block->n == 1;
}
