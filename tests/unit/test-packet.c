/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Packets: each kind is read as it was written, and refused where it is cut off or spoiled. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "decoder/pt/packet.h"
#include "ptd/record.h"
#include "tests/lib/packets.h"

struct row {
	const char *line;
	struct packet packet; /* but for its size */
};

static const struct row rows[] = {
	{ "pad", { .type = PACKET_PAD } },
	{ "tnt 1", { .type = PACKET_TNT, .n_bits = 1, .bits = UINT64_C(1) << 63 } },
	{ "tnt 011", { .type = PACKET_TNT, .n_bits = 3, .bits = UINT64_C(3) << 61 } },
	{ "tnt64 10", { .type = PACKET_TNT, .n_bits = 2, .bits = UINT64_C(1) << 63, .value = 6 } },
	{ "tip 401000", { .type = PACKET_TIP, .ip_bytes = 3, .value = 0x401000 } },
	{ "tip0", { .type = PACKET_TIP } },
	{ "tip16 1234", { .type = PACKET_TIP, .ip_bytes = 1, .value = 0x1234 } },
	{ "tip32 12345678", { .type = PACKET_TIP, .ip_bytes = 2, .value = 0x12345678 } },
	{ "tip.pge48 123456789abc",
	  { .type = PACKET_TIP_PGE, .ip_bytes = 4, .value = 0x123456789abc } },
	{ "tip.pgd64 ffffffff81000000",
	  { .type = PACKET_TIP_PGD, .ip_bytes = 6, .value = 0xffffffff81000000 } },
	{ "fup0", { .type = PACKET_FUP } },
	{ "mode.exec 16", { .type = PACKET_MODE_EXEC, .value = 16 } },
	{ "mode.exec 32", { .type = PACKET_MODE_EXEC, .value = 32 } },
	{ "mode.exec 64 if", { .type = PACKET_MODE_EXEC, .value = 64, .flag = true } },
	{ "mode.tsx begin", { .type = PACKET_MODE_TSX, .value = PACKET_TSX_BEGIN } },
	{ "mode.tsx abort", { .type = PACKET_MODE_TSX, .value = PACKET_TSX_ABORT } },
	{ "mode.tsx commit", { .type = PACKET_MODE_TSX } },
	{ "pip 12345000 nr", { .type = PACKET_PIP, .value = 0x12345000, .extra = 1 } },
	{ "pip 3000", { .type = PACKET_PIP, .value = 0x3000 } },
	{ "vmcs 7", { .type = PACKET_VMCS, .value = 0x7000 } },
	{ "tsc 1122334455", { .type = PACKET_TSC, .value = 0x1122334455 } },
	{ "tma 1234 1ff", { .type = PACKET_TMA, .value = 0x1234, .extra = 0x1ff } },
	{ "mtc ab", { .type = PACKET_MTC, .value = 0xab } },
	{ "cyc 1f", { .type = PACKET_CYC, .value = 0x1f } },
	{ "cyc 20", { .type = PACKET_CYC, .value = 0x20 } },
	{ "cyc 123456789", { .type = PACKET_CYC, .value = 0x123456789 } },
	{ "cbr 21", { .type = PACKET_CBR, .value = 0x21 } },
	{ "psb", { .type = PACKET_PSB } },
	{ "psbend", { .type = PACKET_PSBEND } },
	{ "ovf", { .type = PACKET_OVF } },
	{ "stop", { .type = PACKET_STOP } },
	{ "mnt 1122334455667788", { .type = PACKET_MNT, .value = 0x1122334455667788 } },
	{ "ptw4 11223344", { .type = PACKET_PTW, .value = 0x11223344, .extra = 4 } },
	{ "ptw8 1122334455667788 ip",
	  { .type = PACKET_PTW, .value = 0x1122334455667788, .extra = 8, .flag = true } },
	{ "mwait 20 1", { .type = PACKET_MWAIT, .value = 0x20, .extra = 1 } },
	{ "pwre 6 1 hw", { .type = PACKET_PWRE, .value = 0x61, .flag = true } },
	{ "pwrx 6 3 store", { .type = PACKET_PWRX, .value = 0x63, .extra = PTD_WAKE_STORE } },
	{ "exstop", { .type = PACKET_EXSTOP } },
	{ "exstop ip", { .type = PACKET_EXSTOP, .flag = true } },
	{ "bbp 4", { .type = PACKET_BBP, .value = 4 } },
	{ "bep", { .type = PACKET_BEP } },
	{ "bep ip", { .type = PACKET_BEP, .flag = true } },
	{ "cfe 1 e ip", { .type = PACKET_CFE, .value = PTD_CFE_INTR, .extra = 0xe, .flag = true } },
	{ "evd 1 1122334455667788",
	  { .type = PACKET_EVD, .value = PTD_EVD_VMXQ, .extra = 0x1122334455667788 } },
	{ "trig 80 more", { .type = PACKET_TRIG, .value = 0x80 | PTD_TRIG_MORE } },
	{ "trig 3 2", { .type = PACKET_TRIG, .value = 3, .extra = 3 } },
	{ "trig 1 ip 0", { .type = PACKET_TRIG, .value = 1, .flag = true } },
};

static bool same(const struct packet *a, const struct packet *b)
{
	return a->type == b->type && a->n_bits == b->n_bits && a->ip_bytes == b->ip_bytes &&
	       a->flag == b->flag && a->bits == b->bits && a->value == b->value &&
	       a->extra == b->extra;
}

static void every_packet(void **state)
{
	bool covered[_PACKET_TYPES] = { [PACKET_BIP] = true };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct packet_reader reader = {};
		struct packet packet;
		uint8_t bytes[64];
		const int size = packets_write(rows[i].line, bytes);

		print_message("  %s\n", rows[i].line);
		assert_true(size > 0 && size <= PACKET_SIZE_MAX);
		assert_int_equal(packet_read(&reader, bytes, (size_t)size, &packet), 0);
		assert_int_equal(packet.size, size);
		assert_true(same(&packet, &rows[i].packet));
		covered[packet.type] = true;
		for (int left = 0; left < size; left++) {
			reader = (struct packet_reader){};
			assert_int_equal(packet_read(&reader, bytes, (size_t)left, &packet),
					 PACKET_CUT);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(covered); i++)
		assert_true(covered[i]);
}

/* What no CPU writes. */
static void no_packets(void **state)
{
	static const uint8_t bad[][PACKET_SIZE_MAX] = {
		{ 0x02, 0xff },                         /* no such extension */
		{ 0x02, 0xa3 },                         /* a long TNT without its highest 1 */
		{ 0x02, 0x82, 0x02, 0x82, 0x02, 0x83 }, /* a PSB that changes */
		{ 0x02, 0xc3, 0x87 },                   /* an MNT with another third byte */
		{ 0x02, 0x52 },                         /* a PTW of no known size */
		{ 0x02, 0x73, 0, 0, 1 },                /* a TMA with reserved bits */
		{ 0xad },                               /* an address of no known form */
		{ 0x99, 0x40 },                         /* a MODE of no known kind */
		{ 0x05 },                               /* no such opcode */
		{ 0xd9, 0x80, 1 }, /* a TRIG with an address, without a count */
		{ 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff }, /* CYC */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct packet_reader reader = {};
		struct packet packet;

		assert_int_equal(packet_read(&reader, bad[i], sizeof(bad[i]), &packet), PACKET_BAD);
	}
}

/* The items of a PEBS record are told from TNT packets by the block that they are in. */
static void blocks(void **state)
{
	static const char *const lines[] = {
		"bip 0 1122334455667788",
		"bbp 4",
		"bip 0 1122334455667788",
		"bip 1 9999999999999999",
		"bbp 5 4",
		"bip 0 11223344",
		"pad",
		"bip 2 1",
		"bep",
		"tnt 10",
		"bbp 4",
		"bip 0 1",
		"ovf",
		"tnt 10",
	};
	static const enum packet_type types[] = {
		PACKET_TNT, PACKET_BBP, PACKET_BIP, PACKET_BIP, PACKET_BBP, PACKET_BIP, PACKET_PAD,
		PACKET_BIP, PACKET_BEP, PACKET_TNT, PACKET_BBP, PACKET_BIP, PACKET_OVF, PACKET_TNT,
	};
	struct packet_reader reader = {};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct packet packet;
		uint8_t bytes[64];
		const int size = packets_write(lines[i], bytes);

		assert_int_equal(packet_read(&reader, bytes, (size_t)size, &packet), 0);
		assert_int_equal(packet.type, types[i]);
		if (i > 0)
			assert_int_equal(packet.size, size);
	}
}

static void addresses(void **state)
{
	static const struct {
		const char *line;
		bool has_ip;
		uint64_t ip;
	} steps[] = {
		{ "tip 401000", true, 0x401000 },
		{ "tip16 2000", true, 0x402000 },
		{ "tip0", false, 0x402000 },
		{ "tip 800000000000", true, 0xffff800000000000 },
		{ "tip32 1000", true, 0xffff800000001000 },
		{ "tip48 7fff00001000", true, 0xffff7fff00001000 },
		{ "tip64 123", true, 0x123 },
	};
	uint64_t ip = 0;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		struct packet_reader reader = {};
		struct packet packet;
		uint8_t bytes[64];
		const int size = packets_write(steps[i].line, bytes);

		assert_int_equal(packet_read(&reader, bytes, (size_t)size, &packet), 0);
		assert_int_equal(packet_ip(&packet, &ip), steps[i].has_ip);
		assert_true(ip == steps[i].ip);
	}
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_packet),
		cmocka_unit_test(no_packets),
		cmocka_unit_test(blocks),
		cmocka_unit_test(addresses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
