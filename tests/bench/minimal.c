/* SPDX-License-Identifier: GPL-2.0-or-later */

/*
 * How fast a program under QEMU can be recorded at best: a plugin that writes TNT and TIP packets
 * in one callback a block, into a ring of one thread that nobody reads. It has no clock, and no
 * idea of signals, mappings, other threads or code that changes. tests/bench/run.sh compares ptd's
 * plugin with it.
 */

#include <stdlib.h>

#include "daemon/plugin/flow.h"
#include "daemon/plugin/qemu.h"

#define RING (UINT64_C(64) << 20)

#define EXPORT __attribute__((__visibility__("default")))

EXPORT int qemu_plugin_version = 1;
EXPORT int qemu_plugin_install(uint64_t id, const struct qemu_plugin_info *info, int argc,
			       char **argv);

static struct blocks blocks = { .mode = 64 };
static struct encode encode;
static const struct block *last;

static void on_block(unsigned vcpu, void *userdata)
{
	const struct block *block = userdata;

	if (last && !flow_leads(last, block->ip, &encode))
		(void)flow_leads_far(last, block->ip, &encode);
	if (encode_is_full(&encode))
		encode_flush(&encode);
	last = block;
}

static void on_translate(uint64_t id, struct qemu_plugin_tb *tb)
{
	static struct block_insn insns[BLOCK_INSNS_MAX];
	uint8_t unused[QEMU_INSN_MAX];
	const size_t n = qemu_plugin_tb_n_insns(tb);
	struct block *block;

	for (size_t i = 0; i < n; i++) {
		const struct qemu_plugin_insn *insn = qemu_plugin_tb_get_insn(tb, i);

		insns[i] =
		    (struct block_insn){ qemu_plugin_insn_vaddr(insn),
					 qemu_insn_bytes(1, qemu_plugin_insn_data, insn, unused),
					 qemu_plugin_insn_size(insn) };
	}
	if (blocks_get(&blocks, qemu_plugin_tb_vaddr(tb), insns, n, &block) >= 0)
		qemu_plugin_register_vcpu_tb_exec_cb(tb, on_block, QEMU_PLUGIN_CB_NO_REGS, block);
}

int qemu_plugin_install(uint64_t id, const struct qemu_plugin_info *info, int argc, char **argv)
{
	encode_init(&encode, RING, 4096, true, false);
	encode.ring = malloc(RING);
	if (!encode.ring)
		return 1;
	qemu_plugin_register_vcpu_tb_trans_cb(id, on_translate);
	return 0;
}
