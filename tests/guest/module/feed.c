// SPDX-License-Identifier: GPL-2.0

/*
 * In /sys/kernel/debug/softpt/cpuN:
 *	play	what is written here the CPU's unit writes, now, if it is on
 *	rate	bytes each ms of PTW packets that count, made up while it is on; 0: none
 *	stalled	only with packets of what the CPU runs: 1: they are not taken, until they overflow
 *	stats	struct pt_stats, a "name value" per line
 * and in /sys/kernel/debug/softpt, with packets of what the CPUs run:
 *	log	number of the log that the ground truth goes to from now on
 */

#include <linux/debugfs.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/uaccess.h>

#include "softpt.h"

#define PLAY_MAX (1u << 20) /* bytes at a time, with interrupts off */

static struct dentry *root;

struct play {
	const void *bytes;
	size_t n;
};

static void play_here(void *argument)
{
	struct pt_cpu *cpu = this_cpu_ptr(&pt_cpus);
	struct play *play = argument;
	const u8 *bytes = play->bytes;
	size_t n = play->n;

	/* By pages, so that the interrupt of a full buffer comes when it is due. */
	while (n) {
		size_t chunk = min_t(size_t, n, PAGE_SIZE);

		hardware_write(cpu, bytes, chunk);
		if (cpu->pending)
			pmu_interrupt(cpu);
		bytes += chunk;
		n -= chunk;
	}
}

static ssize_t play_write(struct file *file, const char __user *from, size_t n, loff_t *offset)
{
	struct play play = { .n = min_t(size_t, n, PLAY_MAX) };
	void *bytes = vmemdup_user(from, play.n);
	int ret;

	if (IS_ERR(bytes))
		return PTR_ERR(bytes);
	play.bytes = bytes;
	ret = smp_call_function_single((long)file->private_data, play_here, &play, 1);
	kvfree(bytes);
	return ret ? ret : play.n;
}

static const struct file_operations play_operations = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = play_write,
};

static ssize_t stats_read(struct file *file, char __user *to, size_t n, loff_t *offset)
{
	const struct pt_cpu *cpu = per_cpu_ptr(&pt_cpus, (long)file->private_data);
	const struct pt_stats *stats = &cpu->stats;
	char text[512];
	int length;

	length = scnprintf(text, sizeof(text),
			   "on %d\nstarts %llu\nwritten %llu\ndropped %llu\ninterrupts %llu\n"
			   "gaps %llu\ngap_ns %llu\nlast_gap_ns %llu\nlongest_gap_ns %llu\n"
			   "sequence %llu\nring_lost %llu\nring_overflows %llu\n",
			   cpu->on, stats->starts, stats->written, stats->dropped,
			   stats->interrupts, stats->gaps, stats->gap_ns, stats->last_gap_ns,
			   stats->longest_gap_ns, cpu->sequence, cpu->ring ? cpu->ring->lost : 0,
			   cpu->ring ? cpu->ring->overflows : 0);
	return simple_read_from_buffer(to, n, offset, text, length);
}

/* Whatever is written sets the gaps back. */
static ssize_t stats_write(struct file *file, const char __user *from, size_t n, loff_t *offset)
{
	struct pt_stats *stats = &per_cpu_ptr(&pt_cpus, (long)file->private_data)->stats;

	stats->gaps = stats->gap_ns = stats->last_gap_ns = stats->longest_gap_ns = 0;
	return n;
}

static const struct file_operations stats_operations = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = stats_read,
	.write = stats_write,
};

void feed_init(void)
{
	unsigned int i;

	root = debugfs_create_dir("softpt", NULL);
	if (per_cpu_ptr(&pt_cpus, 0)->ring)
		debugfs_create_u32("log", 0600, root, &per_cpu_ptr(&pt_cpus, 0)->ring->log);
	for_each_possible_cpu(i)
	{
		struct pt_cpu *cpu = per_cpu_ptr(&pt_cpus, i);
		void *number = (void *)(long)i;
		struct dentry *directory;
		char name[16];

		snprintf(name, sizeof(name), "cpu%u", i);
		directory = debugfs_create_dir(name, root);
		debugfs_create_file("play", 0200, directory, number, &play_operations);
		debugfs_create_file("stats", 0600, directory, number, &stats_operations);
		debugfs_create_u32("rate", 0600, directory, &cpu->rate);
		if (cpu->ring)
			debugfs_create_u64("stalled", 0600, directory, &cpu->ring->stalled);
	}
}

void feed_exit(void)
{
	debugfs_remove(root);
}
