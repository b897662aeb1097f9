/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * A plugin for QEMU's system emulation, for tests: gives each CPU of a guest a PT unit (unit.h),
 * whose packets a module in the guest takes to the AUX area of its intel_pt PMU.
 *
 *	qemu-system-x86_64 … -plugin ptd-emu-system.so,shm=FILE[,log=DIR]
 *
 * FILE is the memory of the guest's ivshmem-plain device (vmring.h). The ground truth goes to DIR.
 *
 * Until the guest traces for the first time its code runs as if there were no plugin: only WRMSR is
 * watched, which the module executes when it sets a unit's control.
 */

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/plugin/qemu.h"
#include "tests/system/unit.h"

#define EXPORT    __attribute__((__visibility__("default")))
#define UNITS_MAX 64

EXPORT extern int qemu_plugin_version;
EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(uint64_t id, const struct qemu_plugin_info *info, int argc,
			       char **argv);

static struct unit units[UNITS_MAX];
static unsigned n_units;
static struct truth truth;
static atomic_bool armed;

static void on_block(unsigned vcpu, void *block)
{
	unit_begin_block(&units[vcpu], block);
}

static void on_last(unsigned vcpu, void *block)
{
	(void)block;
	unit_begin_last(&units[vcpu]);
}

static void instrument(struct qemu_plugin_tb *tb, struct block *block)
{
	qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, block);
	if (block->n > 1)
		qemu_plugin_register_vcpu_insn_exec_cb(qemu_plugin_tb_get_insn(tb, block->n - 1u),
						       on_last, QEMU_PLUGIN_CB_NO_REGS, NULL);
}

/* A unit is configured to record for the first time. From now on all code is watched. */
static void on_wrmsr(unsigned vcpu, void *unused)
{
	(void)unused;
	if (units[vcpu].ring->control != 0 && !atomic_exchange(&armed, true))
		tb_flush(qemu_get_cpu((int)vcpu));
}

static bool is_wrmsr(const struct block_insn *insn)
{
	return insn->size == 2 && insn->bytes[0] == 0x0f && insn->bytes[1] == 0x30;
}

static void on_translate(uint64_t id, struct qemu_plugin_tb *tb)
{
	const size_t n = qemu_plugin_tb_n_insns(tb);
	struct block_insn insns[BLOCK_INSNS_MAX];
	uint8_t copy[QEMU_INSN_MAX]; /* which this version of QEMU does not need */
	const uint64_t ip = qemu_plugin_tb_vaddr(tb);
	struct block *block;
	size_t i;

	(void)id;
	for (i = 0; i < n && i < BLOCK_INSNS_MAX; i++) {
		struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		insns[i] = (struct block_insn){
			.ip = qemu_plugin_insn_vaddr(insn),
			.bytes = qemu_insn_bytes(1, qemu_plugin_insn_data, insn, copy),
			.size = qemu_plugin_insn_size(insn),
		};
		if (!atomic_load(&armed) && is_wrmsr(&insns[i]))
			qemu_plugin_register_vcpu_insn_exec_cb(insn, on_wrmsr,
							       QEMU_PLUGIN_CB_NO_REGS, NULL);
	}
	if (!atomic_load(&armed))
		return;
	if (truth_block(&truth, ip, insns, i, &block) < 0) {
		fprintf(stderr, "ptd-emu-system.so: out of memory\n");
		abort();
	}
	if (unit_has_handler(&units[0], ip))
		(void)atomic_fetch_or(&block->marks, BLOCK_HANDLER);
	instrument(tb, block);
}

static void on_exit_guest(uint64_t id, void *userdata)
{
	(void)id;
	(void)userdata;
	truth_end(&truth);
	for (unsigned i = 0; i < n_units; i++)
		fprintf(stderr,
			"ptd-emu-system.so: vcpu %u: %" PRIu64 " bytes of packets, %" PRIu64
			" events, %" PRIu64 " odd, %" PRIu64 " without a frame, %" PRIu64
			" overflows\n",
			i, units[i].encode.state.head, units[i].n_events, units[i].flow.n_odd,
			units[i].n_frameless, (uint64_t)units[i].ring->overflows);
}

/* --- install ---------------------------------------------------------------------------------- */

static int check_qemu(const struct qemu_plugin_info *info)
{
	if (!info->system_emulation || strcmp(info->target_name, "x86_64") != 0 ||
	    info->system.max_vcpus > UNITS_MAX) {
		fprintf(stderr,
			"ptd-emu-system.so: is for qemu-system-x86_64 with at most %d CPUs\n",
			UNITS_MAX);
		return -1;
	}
	if (!qemu_get_cpu || !x86_cpu_gdb_read_register || !cpu_memory_rw_debug || !cpu_get_ticks ||
	    !tb_flush || !g_byte_array_new || !g_byte_array_set_size) {
		fprintf(stderr,
			"ptd-emu-system.so: this QEMU does not export what we need; known to "
			"work: qemu-system-x86 7.2 of Debian 12\n");
		return -1;
	}
	return 0;
}

static void *map_shared(const char *path, size_t size)
{
	_cleanup_(fd_closep) int fd = open(path, O_RDWR | O_CLOEXEC);
	void *shared = MAP_FAILED;

	if (fd >= 0)
		shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (shared == MAP_FAILED)
		fprintf(stderr, "ptd-emu-system.so: %s: %m\n", path);
	return shared == MAP_FAILED ? NULL : shared;
}

int qemu_plugin_install(uint64_t id, const struct qemu_plugin_info *info, int argc, char **argv)
{
	const char *path = NULL, *log_dir = NULL;
	uint8_t *shared;
	int r;

	if (check_qemu(info) < 0)
		return 1;
	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "shm=", 4) == 0)
			path = argv[i] + 4;
		else if (strncmp(argv[i], "log=", 4) == 0)
			log_dir = argv[i] + 4;
	}
	if (!path) {
		fprintf(stderr, "ptd-emu-system.so: needs shm=FILE\n");
		return 1;
	}
	n_units = (unsigned)info->system.max_vcpus;
	shared = map_shared(path, (size_t)n_units * VMRING_STRIDE);
	if (!shared)
		return 1;
	r = truth_init(&truth, log_dir);
	if (r < 0) {
		fprintf(stderr, "ptd-emu-system.so: cannot log to %s: %s\n", log_dir, strerror(-r));
		return 1;
	}
	for (unsigned i = 0; i < n_units; i++)
		unit_init(&units[i], i, (struct vmring *)(shared + (size_t)i * VMRING_STRIDE),
			  &((struct vmring *)shared)->log, &truth);
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	qemu_plugin_register_atexit_cb(id, on_exit_guest, NULL);
	return 0;
}
