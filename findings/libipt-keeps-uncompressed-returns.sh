#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that a decoder takes a call off its stack at each return, as the CPU does that writes the trace.
# libipt does so only at a return that is compressed to a bit; at one whose target the trace states, as behind each
# retpoline, the call stays. The next compressed return then leads to it, and code that never ran is listed, without
# an error.
#
# Depended on by: decoder/pt/retstack.h, by which both engines take what a CPU takes.
. "$(dirname "$0")/lib.sh"
command -v cc >/dev/null || missing "cc is not installed"
cat >returns.c <<'EOT'
#include <intel-pt.h>
#include <stdio.h>
#include <string.h>

/* 1000 calls 2000, which calls 200c, which writes 3000 over its return address and returns there; 3000 returns to
 * 1005. 2005 to 200b is what stops speculation: it never runs. */
static uint8_t code[0x3000];

static int read_code(uint8_t *to, size_t size, const struct pt_asid *asid, uint64_t ip, void *context)
{
	(void)asid;
	(void)context;
	if (ip < 0x1000 || ip >= 0x4000)
		return -pte_nomap;
	size = size < 0x4000 - ip ? size : 0x4000 - ip;
	memcpy(to, code + ip - 0x1000, size);
	return (int)size;
}

int main(void)
{
	static const uint8_t call[] = { 0xe8, 0xfb, 0x0f, 0, 0, 0xff, 0xe0 };
	static const uint8_t thunk[] = { 0xe8, 7, 0, 0, 0, 0xf3, 0x90, 0x0f, 0xae, 0xe8, 0xeb, 0xf9, 0x48, 0x89, 4, 0x24, 0xc3 };
	static const struct pt_packet packets[] = {
		{ .type = ppt_psb },
		{ .type = ppt_mode, .payload.mode = { .leaf = pt_mol_exec, .bits.exec = { .csl = 1 } } },
		{ .type = ppt_psbend },
		{ .type = ppt_tip_pge, .payload.ip = { .ipc = pt_ipc_full, .ip = 0x1000 } },
		{ .type = ppt_tip, .payload.ip = { .ipc = pt_ipc_full, .ip = 0x3000 } }, /* the thunk's return */
		{ .type = ppt_tnt_8, .payload.tnt = { .bit_size = 1, .payload = 1 } },	 /* 3000's return, compressed */
		{ .type = ppt_tip, .payload.ip = { .ipc = pt_ipc_full, .ip = 0x1000 } }, /* the jump at 1005 */
	};
	uint8_t trace[256] = { 0 };
	struct pt_config config;
	struct pt_encoder *encoder;
	struct pt_insn_decoder *decoder;
	struct pt_version version = pt_library_version();
	struct pt_image *image = pt_image_alloc("returns");
	struct pt_insn insn;
	int status;

	memcpy(code, call, sizeof(call));
	memcpy(code + 0x1000, thunk, sizeof(thunk));
	code[0x2000] = 0xc3;
	pt_config_init(&config);
	config.begin = trace;
	config.end = trace + sizeof(trace);
	encoder = pt_alloc_encoder(&config);
	for (size_t i = 0; i < sizeof(packets) / sizeof(packets[0]); i++) {
		struct pt_packet packet = packets[i];

		if (pt_enc_next(encoder, &packet) < 0)
			return 2;
	}
	decoder = pt_insn_alloc_decoder(&config);
	pt_image_set_callback(image, read_code, NULL);
	if (pt_insn_set_image(decoder, image) < 0)
		return 2;
	status = pt_insn_sync_forward(decoder);
	fprintf(stderr, "libipt %u.%u.%u\n", version.major, version.minor, version.build);
	for (int i = 0; i < 8; i++) {
		struct pt_event event;

		while (status >= 0 && status & pts_event_pending)
			status = pt_insn_event(decoder, &event, sizeof(event));
		status = status < 0 ? status : pt_insn_next(decoder, &insn, sizeof(insn));
		if (status < 0) {
			printf("%s\n", pt_errstr(pt_errcode(status)));
			break;
		}
		printf("%llx\n", (unsigned long long)insn.ip);
	}
	return 0;
}
EOT
printf '#include <intel-pt.h>\n' | cc -E - >/dev/null 2>&1 || missing "libipt-dev is not installed"
cc -o returns returns.c -lipt || changed "it does not compile"
./returns >listed || changed "the trace is refused"
echo "ran:    1000 2000 200c 2010 3000 1005 1000 2000"
echo "listed: $(tr '\n' ' ' <listed)"
[[ $(head -n 6 listed | tr '\n' ' ') == "1000 2000 200c 2010 3000 2005 " ]] || changed "libipt lists something else"
