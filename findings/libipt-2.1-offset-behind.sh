#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# One would guess that the offset which libipt's instruction decoder states is where it stands: packets before it are
# used up, and the next one is not. So it is in 2.0. Since 2.1 the decoder has read the next packet ahead, within one
# minor version and under the same soname: behind a TNT of which no bit was taken the offset is that of the packet after
# it. Whoever finds out by the offset whether a branch took a bit, such as a return, finds out nothing any more.
#
# Depended on by: decoder/pt/insn.c, which finds the TNT that was read ahead by its packets.
. "$(dirname "$0")/lib.sh"
command -v cc >/dev/null || missing "cc is not installed"
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
[[ -r $keyring ]] || missing "debian-archive-keyring is not installed"
cat >offset.c <<'EOT'
#include <intel-pt.h>
#include <stdio.h>
#include <string.h>

/* 1000: jz 1002; 1002: jz 1004; 1004: syscall */
static const uint8_t code[] = { 0x74, 0, 0x74, 0, 0x0f, 5 };

static int read_code(uint8_t *to, size_t size, const struct pt_asid *asid, uint64_t ip, void *context)
{
	(void)asid;
	(void)context;
	if (ip < 0x1000 || ip >= 0x1000 + sizeof(code))
		return -pte_nomap;
	size = size < 0x1000 + sizeof(code) - ip ? size : 0x1000 + sizeof(code) - ip;
	memcpy(to, code + ip - 0x1000, size);
	return (int)size;
}

int main(void)
{
	static const struct pt_packet packets[] = {
		{ .type = ppt_psb },
		{ .type = ppt_mode, .payload.mode = { .leaf = pt_mol_exec, .bits.exec = { .csl = 1 } } },
		{ .type = ppt_psbend },
		{ .type = ppt_tip_pge, .payload.ip = { .ipc = pt_ipc_full, .ip = 0x1000 } },
		{ .type = ppt_tnt_8, .payload.tnt = { .bit_size = 2, .payload = 3 } },
		{ .type = ppt_tip_pgd, .payload.ip = { .ipc = pt_ipc_suppressed } },
	};
	uint8_t trace[64] = { 0 };
	uint64_t offset, starts[6];
	struct pt_config config;
	struct pt_encoder *encoder;
	struct pt_insn_decoder *decoder;
	struct pt_version version = pt_library_version();
	struct pt_image *image = pt_image_alloc("offset");
	struct pt_insn insn;
	int status;

	pt_config_init(&config);
	config.begin = trace;
	config.end = trace + sizeof(trace);
	encoder = pt_alloc_encoder(&config);
	for (size_t i = 0; i < 6; i++) {
		struct pt_packet packet = packets[i];

		(void)pt_enc_get_offset(encoder, &starts[i]);
		if (pt_enc_next(encoder, &packet) < 0)
			return 2;
	}
	decoder = pt_insn_alloc_decoder(&config);
	pt_image_set_callback(image, read_code, NULL);
	if (pt_insn_set_image(decoder, image) < 0)
		return 2;
	status = pt_insn_sync_forward(decoder);
	while (status >= 0 && status & pts_event_pending) {
		struct pt_event event;

		status = pt_insn_event(decoder, &event, sizeof(event));
	}
	if (status < 0 || pt_insn_get_offset(decoder, &offset) < 0)
		return 2;
	printf("libipt %u.%u.%u: the TNT is at %u, and before any branch the offset is %u\n", version.major,
	       version.minor, version.build, (unsigned)starts[4], (unsigned)offset);
	return pt_insn_next(decoder, &insn, sizeof(insn)) < 0 ? 2 : offset == starts[4] ? 0 : offset == starts[5] ? 1 : 3;
}
EOT
printf '#include <intel-pt.h>\n' | cc -E - >/dev/null 2>&1 || missing "libipt-dev is not installed"
cc -o offset offset.c -lipt || changed "it does not compile"

# of_suite SUITE DIR: unpack that release's libipt.
of_suite() {
	local mirror
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | head -n 1)
	mkdir -p "$2/lists/partial" "$2/archives/partial" && : >"$2/status"
	echo "deb [signed-by=$keyring] $mirror $1 main" >"$2/list"
	set -- "$1" "$2" -qq -o Dir::State="$2" -o Dir::State::status="$2/status" -o Dir::Cache="$2" \
		-o Dir::Etc::sourcelist="$2/list" -o Dir::Etc::sourceparts=- -o APT::Sandbox::User=
	apt-get "${@:3}" update >"$T/said" 2>&1 && (cd "$2" && apt-get "${@:3}" download libipt2 >"$T/said" 2>&1) ||
		missing "libipt of $1: $(tail -n 1 "$T/said")"
	dpkg -x "$2"/libipt2_*.deb "$2"
}
of_suite bookworm "$T/old"
of_suite trixie "$T/new"
for of in old new; do
	LD_LIBRARY_PATH=$(dirname "$(find "$T/$of/usr" -name libipt.so.2)") ./offset
	status=$?
	[[ $of.$status == old.0 || $of.$status == new.1 ]] || changed "$of: exit status $status"
done
