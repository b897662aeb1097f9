// SPDX-License-Identifier: GPL-2.0

#include <linux/module.h>
#include <linux/slab.h>

#include "softpt.h"

static struct pmu pmu;

/* --- what perf is told of the buffer ---------------------------------------------------------- */

static void update(struct pt_buffer *buffer)
{
	size_t offset = buffer->offset;

	if (buffer->overwrite) {
		buffer->new_bytes = offset;
		buffer->wrapped = false;
		return;
	}
	if (offset < buffer->reported || (offset == buffer->reported && buffer->wrapped))
		offset += buffer->size;
	buffer->new_bytes += offset - buffer->reported;
	buffer->reported = buffer->offset;
	buffer->wrapped = false;
}

static u64 take_new_bytes(struct pt_buffer *buffer)
{
	u64 n = buffer->new_bytes;

	buffer->new_bytes = 0;
	return n;
}

/* Full trace: write no further than perf's reader allows, and interrupt before that. */
static int mark(struct pt_buffer *buffer, struct perf_output_handle *handle)
{
	size_t n_pages = buffer->size >> PAGE_SHIFT;
	size_t head = buffer->offset, free_pages, last;

	if (offset_in_page(head) + handle->size + 1 < PAGE_SIZE) {
		perf_aux_output_flag(handle, PERF_AUX_FLAG_TRUNCATED);
		return -EINVAL;
	}
	free_pages = handle->size >> PAGE_SHIFT;
	if (!offset_in_page(head + handle->size + 1))
		free_pages++;
	last = (head >> PAGE_SHIFT) + free_pages;
	buffer->stop_at = (last & (n_pages - 1)) << PAGE_SHIFT;
	last = min_t(size_t, last - 1, handle->wakeup >> PAGE_SHIFT);
	buffer->interrupt_at = (last & (n_pages - 1)) << PAGE_SHIFT;
	return 0;
}

static void reset(struct pt_buffer *buffer, size_t head)
{
	buffer->offset = buffer->reported = head & (buffer->size - 1);
	buffer->new_bytes = 0;
	buffer->stopped = false;
}

static void note_stopped(struct pt_cpu *cpu, struct pt_buffer *buffer)
{
	if (buffer->stopped)
		perf_aux_output_flag(&cpu->handle, PERF_AUX_FLAG_TRUNCATED);
	buffer->stopped = false;
}

/* Begin an output. Return: the buffer; NULL if perf has no room. */
static struct pt_buffer *begin(struct pt_cpu *cpu, struct perf_event *event)
{
	struct pt_buffer *buffer = perf_aux_output_begin(&cpu->handle, event);

	if (!buffer)
		return NULL;
	reset(buffer, cpu->handle.head);
	if (!buffer->overwrite && mark(buffer, &cpu->handle)) {
		perf_aux_output_end(&cpu->handle, 0);
		return NULL;
	}
	return buffer;
}

void pmu_interrupt(struct pt_cpu *cpu)
{
	struct perf_event *event = cpu->handle.event;
	struct pt_buffer *buffer;

	cpu->pending = false;
	if (!cpu->handles_interrupt || !event)
		return;
	cpu->stats.interrupts++;
	hardware_stop(cpu);
	buffer = perf_get_aux(&cpu->handle);
	note_stopped(cpu, buffer);
	update(buffer);
	perf_aux_output_end(&cpu->handle, take_new_bytes(buffer));
	if (event->hw.state)
		return;
	if (begin(cpu, event))
		hardware_start(cpu, event, true);
	else
		event->hw.state = PERF_HES_STOPPED;
}

/* --- the PMU's operations --------------------------------------------------------------------- */

static void pt_start(struct perf_event *event, int flags)
{
	struct pt_cpu *cpu = this_cpu_ptr(&pt_cpus);
	bool again = event->hw.config != 0;

	if (!begin(cpu, event)) {
		event->hw.state = PERF_HES_STOPPED;
		return;
	}
	cpu->handles_interrupt = true;
	event->hw.state = 0;
	/* perf_event_itrace_started() is not exported to modules, but this is what it does. */
	if (!again)
		event->attach_state |= PERF_ATTACH_ITRACE;
	if (event->hw.addr_filters)
		perf_event_addr_filters_sync(event);
	event->hw.config = event->attr.config | VMRING_TRACE_EN;
	hardware_start(cpu, event, again);
}

static void pt_stop(struct perf_event *event, int flags)
{
	struct pt_cpu *cpu = this_cpu_ptr(&pt_cpus);
	struct pt_buffer *buffer;

	cpu->handles_interrupt = false;
	hardware_stop(cpu);
	if (event->hw.state == PERF_HES_STOPPED)
		return;
	event->hw.state = PERF_HES_STOPPED;
	if (!(flags & PERF_EF_UPDATE) || cpu->handle.event != event)
		return;
	buffer = perf_get_aux(&cpu->handle);
	if (WARN_ON_ONCE(!buffer))
		return;
	note_stopped(cpu, buffer);
	update(buffer);
	if (buffer->overwrite) {
		/* The head is an offset, and the record says "all of it". */
		cpu->handle.head = buffer->new_bytes;
		buffer->new_bytes = buffer->size;
	}
	perf_aux_output_end(&cpu->handle, take_new_bytes(buffer));
}

static int pt_add(struct perf_event *event, int flags)
{
	struct pt_cpu *cpu = this_cpu_ptr(&pt_cpus);

	if (cpu->handle.event)
		return -EBUSY;
	event->hw.state = PERF_HES_STOPPED;
	if (flags & PERF_EF_START) {
		pt_start(event, 0);
		if (event->hw.state == PERF_HES_STOPPED)
			return -EINVAL;
	}
	return 0;
}

static void pt_del(struct perf_event *event, int flags)
{
	pt_stop(event, PERF_EF_UPDATE);
}

static void pt_read(struct perf_event *event)
{
}

/* perf_output_copy_aux() is not exported to modules: AUX sampling gets nothing. */
static long pt_snapshot_aux(struct perf_event *event, struct perf_output_handle *handle,
			    unsigned long size)
{
	return 0;
}

static void *pt_setup_aux(struct perf_event *event, void **pages, int n_pages, bool overwrite)
{
	struct pt_buffer *buffer;

	if (!n_pages || (event->attr.aux_sample_size && !overwrite))
		return NULL;
	buffer = kzalloc(sizeof(*buffer), GFP_KERNEL);
	if (!buffer)
		return NULL;
	buffer->pages = pages;
	buffer->size = (size_t)n_pages << PAGE_SHIFT;
	buffer->overwrite = overwrite;
	buffer->stop_at = -1;
	buffer->interrupt_at = -1;
	return buffer;
}

static void pt_free_aux(void *buffer)
{
	kfree(buffer);
}

static int pt_filters_validate(struct list_head *filters)
{
	struct perf_addr_filter *filter;
	unsigned int n = 0;

	list_for_each_entry(filter, filters, entry)
	{
		if (!filter->size || filter->action == PERF_ADDR_FILTER_ACTION_START)
			return -EOPNOTSUPP;
		if (++n > caps_address_ranges())
			return -EOPNOTSUPP;
	}
	return 0;
}

static void pt_filters_sync(struct perf_event *event)
{
}

static int pt_event_init(struct perf_event *event)
{
	if (event->attr.type != pmu.type)
		return -ENOENT;
	if (!caps_has(event->attr.config))
		return -EINVAL;
	return caps_is_busy() ? -EBUSY : 0;
}

int pmu_init(void)
{
	pmu = (struct pmu){
		.module = THIS_MODULE,
		.capabilities = PERF_PMU_CAP_EXCLUSIVE | PERF_PMU_CAP_ITRACE |
				(caps_scatters() ? 0 : PERF_PMU_CAP_AUX_NO_SG),
		.attr_groups = caps_groups,
		.task_ctx_nr = perf_sw_context,
		.event_init = pt_event_init,
		.add = pt_add,
		.del = pt_del,
		.start = pt_start,
		.stop = pt_stop,
		.read = pt_read,
		.snapshot_aux = pt_snapshot_aux,
		.setup_aux = pt_setup_aux,
		.free_aux = pt_free_aux,
		.addr_filters_sync = pt_filters_sync,
		.addr_filters_validate = pt_filters_validate,
		.nr_addr_filters = caps_address_ranges(),
	};
	return perf_pmu_register(&pmu, "intel_pt", -1);
}

void pmu_exit(void)
{
	perf_pmu_unregister(&pmu);
}

static int __init softpt_init(void)
{
	int ret;

	caps_init();
	ret = hardware_init();
	if (ret)
		return ret;
	ret = pmu_init();
	if (ret) {
		hardware_exit();
		return ret;
	}
	feed_init();
	return 0;
}

static void __exit softpt_exit(void)
{
	feed_exit();
	pmu_exit();
	hardware_exit();
}

module_init(softpt_init);
module_exit(softpt_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("A PMU like intel_pt whose hardware is software");
