/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/pt/scan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decoder/pt/ipt_walk.h"
#include "decoder/pt/ticks.h"

struct scan {
	struct ipt_walk walk;
	bool asks;

	/* What a PSB+ says. */
	struct ticks ticks;
	uint16_t cbr;
	struct pt_packet_mode_exec exec;
	bool has_exec;
	struct pt_packet_mode_tsx tsx;
	struct pt_packet_pip pip;
	bool has_pip;
	uint64_t vmcs;
	bool has_vmcs;

	bool enabled;     /* between TIP.PGE and TIP.PGD */
	bool in_psb;      /* between PSB and PSBEND */
	bool is_overflow; /* the FUP that follows says where execution is */
};

int scan_new(const struct pt_config *config, struct scan **ret_scan)
{
	_cleanup_(scan_freep) struct scan *scan = calloc(1, sizeof(*scan));

	if (!scan || ipt_walk_init(&scan->walk, config) < 0)
		return -ENOMEM;
	ticks_init(&scan->ticks, config);
	*ret_scan = TAKE(scan);
	return 0;
}

struct scan *scan_free(struct scan *scan)
{
	if (!scan)
		return NULL;
	ipt_walk_deinit(&scan->walk);
	free(scan);
	return NULL;
}

static void take_mode(struct scan *scan, const struct pt_packet_mode *mode)
{
	if (mode->leaf == pt_mol_exec) {
		scan->exec = mode->bits.exec;
		scan->has_exec = true;
	} else if (mode->leaf == pt_mol_tsx) {
		scan->tsx = mode->bits.tsx;
	}
}

/* A packet of state: nothing about where execution is. */
static void take_state(struct scan *scan, const struct pt_packet *packet)
{
	switch (packet->type) {
	case ppt_tsc:
	case ppt_mtc:
		scan->asks = true;
		(void)ticks_take(&scan->ticks, packet);
		return;
	case ppt_tma:
		(void)ticks_take(&scan->ticks, packet);
		return;
	case ppt_cbr:
		scan->cbr = packet->payload.cbr.ratio;
		return;
	case ppt_mode:
		take_mode(scan, &packet->payload.mode);
		return;
	case ppt_pip:
		scan->pip = packet->payload.pip;
		scan->has_pip = true;
		scan->asks = true;
		return;
	case ppt_vmcs:
		scan->vmcs = packet->payload.vmcs.base;
		scan->has_vmcs = true;
		return;
	default:
		return;
	}
}

/* A PSB or an overflow: packets begin anew. */
static void begin(struct scan *scan, bool is_overflow)
{
	scan->enabled = false;
	scan->in_psb = !is_overflow;
	scan->is_overflow = is_overflow;
	scan->tsx = (struct pt_packet_mode_tsx){};
}

/* Return: whether the packet says where execution is. */
static bool take(struct scan *scan, const struct pt_packet *packet)
{
	bool has_ip = scan->walk.has_ip;

	switch (packet->type) {
	case ppt_psb:
	case ppt_ovf:
		begin(scan, packet->type == ppt_ovf);
		return false;
	case ppt_psbend:
		scan->in_psb = false;
		return false;
	case ppt_tip:
		return has_ip && scan->enabled;
	case ppt_tip_pge:
		scan->enabled = true;
		scan->is_overflow = false;
		scan->asks = true;
		return has_ip;
	case ppt_tip_pgd:
		scan->enabled = false;
		return false;
	case ppt_fup:
		has_ip = has_ip && scan->is_overflow;
		scan->enabled = scan->enabled || scan->in_psb || scan->is_overflow;
		scan->is_overflow = false;
		return has_ip;
	default:
		take_state(scan, packet);
		return false;
	}
}

int scan_find(struct scan *scan, uint64_t from, struct scan_point *ret_point)
{
	struct pt_packet packet;

	scan->asks = false;
	while (ipt_walk_next(&scan->walk, &packet)) {
		const bool is_point = take(scan, &packet);

		if (scan->walk.offset < from)
			scan->asks = false;
		else if (packet.type == ppt_psb)
			return SCAN_PSB;
		else if (is_point) {
			*ret_point = (struct scan_point){
				.offset = scan->walk.end,
				.ip = scan->walk.ip,
				.asks = scan->asks,
				.has_paging = scan->has_pip,
				.cr3 = scan->pip.cr3,
				.non_root = scan->pip.nr,
			};
			return 0;
		}
	}
	return SCAN_PSB;
}

/* The packets of a PSB+ in the order in which CPUs write them. */
static size_t list_state(const struct scan *scan, uint64_t ip, struct pt_packet packets[static 12])
{
	const struct ticks *ticks = &scan->ticks;
	size_t n = 0;

	packets[n++].type = ppt_psb;
	if (ticks->has_tsc) {
		packets[n].type = ppt_tsc;
		packets[n++].payload.tsc.tsc = ticks_now(ticks);
	}
	if (ticks->has_crystal) {
		packets[n].type = ppt_tma;
		packets[n++].payload.tma.ctc = (uint16_t)ticks_ctc(ticks);
	}
	if (scan->cbr) {
		packets[n].type = ppt_cbr;
		packets[n++].payload.cbr.ratio = (uint8_t)scan->cbr;
	}
	if (scan->has_pip) {
		packets[n].type = ppt_pip;
		packets[n++].payload.pip = scan->pip;
	}
	if (scan->has_vmcs) {
		packets[n].type = ppt_vmcs;
		packets[n++].payload.vmcs.base = scan->vmcs;
	}
	if (scan->has_exec) {
		packets[n].type = ppt_mode;
		packets[n].payload.mode.leaf = pt_mol_exec;
		packets[n++].payload.mode.bits.exec = scan->exec;
	}
	if (scan->tsx.intx) {
		packets[n].type = ppt_mode;
		packets[n].payload.mode.leaf = pt_mol_tsx;
		packets[n++].payload.mode.bits.tsx = scan->tsx;
	}
	packets[n].type = ppt_fup;
	packets[n++].payload.ip = (struct pt_packet_ip){ .ipc = pt_ipc_full, .ip = ip };
	packets[n++].type = ppt_psbend;
	return n;
}

size_t scan_make_psb(const struct scan *scan, uint64_t ip, uint8_t ret_bytes[static SCAN_PSB_MAX])
{
	struct pt_packet packets[12] = {};
	const size_t n = list_state(scan, ip, packets);
	struct pt_config config;
	struct pt_encoder *encoder;
	uint64_t size = 0;
	int r = 0;

	pt_config_init(&config);
	config.begin = ret_bytes;
	config.end = ret_bytes + SCAN_PSB_MAX;
	encoder = pt_alloc_encoder(&config);
	if (!encoder)
		return 0;
	for (size_t i = 0; i < n && r >= 0; i++)
		r = pt_enc_next(encoder, &packets[i]);
	if (r < 0 || pt_enc_get_offset(encoder, &size) < 0)
		size = 0;
	pt_free_encoder(encoder);
	return size;
}
