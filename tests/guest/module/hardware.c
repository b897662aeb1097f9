// SPDX-License-Identifier: GPL-2.0

#include <asm/desc.h>
#include <asm/msr.h>
#include <linux/io.h>
#include <linux/pci.h>
#include <linux/sched.h>
#include <linux/tracepoint.h>

#include "softpt.h"

#define TICK_NS    NSEC_PER_MSEC
#define PSB_PERIOD 4096

/* ivshmem-plain: a PCI device whose BAR 2 is memory of the host. */
#define IVSHMEM_VENDOR 0x1af4
#define IVSHMEM_DEVICE 0x1110
#define IVSHMEM_BAR    2

DEFINE_PER_CPU(struct pt_cpu, pt_cpus);
static struct pci_dev *shared_device;
static void *shared;
static struct tracepoint *switches;

/* --- the buffer ------------------------------------------------------------------------------ */

/* Bytes went up to a page boundary: in full-trace mode it may be marked. */
static void cross(struct pt_cpu *cpu, struct pt_buffer *buffer)
{
	if (buffer->overwrite || offset_in_page(buffer->offset))
		return;
	if (buffer->offset == buffer->stop_at)
		buffer->stopped = true;
	if (buffer->offset == buffer->stop_at || buffer->offset == buffer->interrupt_at)
		cpu->pending = true;
}

void hardware_write(struct pt_cpu *cpu, const void *bytes, size_t n)
{
	struct pt_buffer *buffer = cpu->on ? perf_get_aux(&cpu->handle) : NULL;

	while (n && buffer && !buffer->stopped) {
		size_t at = offset_in_page(buffer->offset);
		size_t chunk = min_t(size_t, n, PAGE_SIZE - at);

		memcpy(buffer->pages[buffer->offset >> PAGE_SHIFT] + at, bytes, chunk);
		bytes += chunk;
		n -= chunk;
		cpu->stats.written += chunk;
		cpu->since_psb += chunk;
		buffer->offset += chunk;
		if (buffer->offset == buffer->size) {
			buffer->offset = 0;
			buffer->wrapped = true;
		}
		cross(cpu, buffer);
	}
	cpu->stats.dropped += n;
}

/* --- packets of what the CPU runs, which QEMU's plugin makes ---------------------------------- */

static void take(struct pt_cpu *cpu)
{
	struct vmring *ring = cpu->ring;
	u64 head, tail;

	if (!ring || ring->stalled)
		return;
	head = smp_load_acquire(&ring->head);
	for (tail = ring->tail; tail < head;) {
		u64 at = tail & (VMRING_SIZE - 1);
		u64 n = min_t(u64, head - tail, VMRING_SIZE - at);

		hardware_write(cpu, (u8 *)ring + VMRING_OFFSET + at, n);
		tail += n;
	}
	smp_store_release(&ring->tail, head);
}

/*
 * The plugin looks at the ring's control before each block of code that runs. The MSR does nothing
 * in QEMU, but ends a block: what comes behind it runs with the new value, as on hardware.
 */
static void set_control(struct pt_cpu *cpu, u64 control)
{
	if (!cpu->ring)
		return;
	WRITE_ONCE(cpu->ring->control, control);
	(void)wrmsrl_safe(MSR_IA32_RTIT_CTL, control);
}

/* --- packets that are made up ----------------------------------------------------------------- */

static u8 *put(u8 *to, u64 value, size_t n)
{
	memcpy(to, &value, n);
	return to + n;
}

/* PTW packets that count, between PSBs: what was overwritten or dropped shows. */
static void generate(struct pt_cpu *cpu)
{
	size_t n = 0;

	while (n < cpu->rate && cpu->on) {
		u8 bytes[64], *end = bytes;

		if (cpu->since_psb >= PSB_PERIOD) {
			cpu->since_psb = 0;
			for (int i = 0; i < 8; i++)
				end = put(end, 0x8202, 2);
			end = put(end, 0x19 | rdtsc() << 8, 8);
			end = put(end, 0x2302, 2);
		}
		end = put(end, 0x3202, 2);
		end = put(end, cpu->sequence++, 8);
		hardware_write(cpu, bytes, end - bytes);
		n += end - bytes;
		if (cpu->pending)
			pmu_interrupt(cpu);
	}
}

/* --- on and off ------------------------------------------------------------------------------ */

static u64 control_for(const struct perf_event *event)
{
	const struct perf_event_attr *attr = &event->attr;
	u64 control = attr->config | VMRING_TRACE_EN;

	/* Without bit 0, "pt", branches are always on. */
	if (!(attr->config & VMRING_TRACE_EN))
		control |= VMRING_BRANCH_EN;
	if (!attr->exclude_kernel)
		control |= VMRING_OS;
	if (!attr->exclude_user)
		control |= VMRING_USER;
	return control;
}

static void note_gap(struct pt_cpu *cpu)
{
	struct pt_stats *stats = &cpu->stats;

	if (!cpu->off_since_ns)
		return;
	stats->last_gap_ns = ktime_get_mono_fast_ns() - cpu->off_since_ns;
	stats->longest_gap_ns = max(stats->longest_gap_ns, stats->last_gap_ns);
	stats->gap_ns += stats->last_gap_ns;
	stats->gaps++;
}

void hardware_start(struct pt_cpu *cpu, struct perf_event *event, bool again)
{
	note_gap(cpu);
	cpu->on = true;
	cpu->stats.starts++;
	if (!again)
		cpu->since_psb = PSB_PERIOD;
	if (cpu->ring) {
		cpu->ring->pid = current->tgid;
		cpu->ring->tid = current->pid;
		WRITE_ONCE(cpu->ring->tail, READ_ONCE(cpu->ring->head));
		if (!again)
			cpu->ring->restarts++;
	}
	hrtimer_start(&cpu->timer, ns_to_ktime(TICK_NS), HRTIMER_MODE_REL_PINNED_HARD);
	set_control(cpu, control_for(event));
}

void hardware_stop(struct pt_cpu *cpu)
{
	if (!cpu->on)
		return;
	set_control(cpu, 0);
	take(cpu);
	cpu->on = false;
	cpu->off_since_ns = ktime_get_mono_fast_ns();
	/* If it is the timer that we are in, it sees that we are off. */
	hrtimer_try_to_cancel(&cpu->timer);
}

static enum hrtimer_restart tick(struct hrtimer *timer)
{
	struct pt_cpu *cpu = container_of(timer, struct pt_cpu, timer);

	take(cpu);
	if (cpu->pending)
		pmu_interrupt(cpu);
	generate(cpu);
	if (!cpu->on || hrtimer_is_queued(timer))
		return HRTIMER_NORESTART;
	hrtimer_forward_now(timer, ns_to_ktime(TICK_NS));
	return HRTIMER_RESTART;
}

static void find_shared(void)
{
	shared_device = pci_get_device(IVSHMEM_VENDOR, IVSHMEM_DEVICE, NULL);
	if (!shared_device || pci_enable_device(shared_device))
		return;
	if (pci_resource_len(shared_device, IVSHMEM_BAR) < (u64)nr_cpu_ids * VMRING_STRIDE)
		return;
	shared = memremap(pci_resource_start(shared_device, IVSHMEM_BAR),
			  pci_resource_len(shared_device, IVSHMEM_BAR), MEMREMAP_WB);
}

/* Tell the plugin where the CPU goes when it is interrupted. */
static void tell_handlers(struct vmring *ring)
{
	const gate_desc *gates;
	struct desc_ptr idt;

	store_idt(&idt);
	gates = (const gate_desc *)idt.address;
	for (size_t i = 0; i < VMRING_VECTORS && (i + 1) * sizeof(*gates) <= idt.size + 1u; i++)
		ring->handlers[i] = gate_offset(&gates[i]);
}

/* Tell it whose the instructions are, for its log. */
static void on_switch(void *unused, bool preempt, struct task_struct *from, struct task_struct *to,
		      unsigned int state)
{
	struct vmring *ring = this_cpu_ptr(&pt_cpus)->ring;

	ring->pid = to->tgid;
	ring->tid = to->pid;
}

static void find_switch(struct tracepoint *tracepoint, void *found)
{
	if (!strcmp(tracepoint->name, "sched_switch"))
		*(struct tracepoint **)found = tracepoint;
}

int hardware_init(void)
{
	unsigned int i;

	find_shared();
	for_each_possible_cpu(i)
	{
		struct pt_cpu *cpu = per_cpu_ptr(&pt_cpus, i);

		hrtimer_init(&cpu->timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
		cpu->timer.function = tick;
		if (!shared)
			continue;
		cpu->ring = shared + (size_t)i * VMRING_STRIDE;
		tell_handlers(cpu->ring);
	}
	if (!shared)
		return 0;
	for_each_kernel_tracepoint(find_switch, &switches);
	return switches ? tracepoint_probe_register(switches, on_switch, NULL) : -ENOENT;
}

void hardware_exit(void)
{
	if (switches)
		tracepoint_probe_unregister(switches, on_switch, NULL);
	tracepoint_synchronize_unregister();
	if (shared)
		memunmap(shared);
	pci_dev_put(shared_device);
}
