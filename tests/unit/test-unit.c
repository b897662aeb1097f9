/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The PT unit of an emulated CPU. The test is the CPU: it begins blocks, pushes frames of
 * interrupts, and takes from the ring; the packets must be the ones expected.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#include "daemon/plugin/qemu.h"
#include "tests/lib/emufree.h"
#include "tests/system/unit.h"

#define USER    UINT64_C(0x401000)
#define KERNEL  UINT64_C(0xffffffff81000000)
#define HANDLER UINT64_C(0xffffffff81c00000)
#define STACK   UINT64_C(0xffffc90000000000)

#define CONTROL (VMRING_TRACE_EN | VMRING_BRANCH_EN | VMRING_TSC_EN)

/* --- the machine ------------------------------------------------------------------------------ */

static uint64_t stack[3], cr3, now;
static uint8_t register_bytes[8];
static struct byte_array bytes = { register_bytes, 0 };

struct CPUState *qemu_get_cpu(int index)
{
	assert_int_equal(index, 0);
	return (struct CPUState *)&now;
}

int x86_cpu_gdb_read_register(struct CPUState *cpu, struct byte_array *array, int n)
{
	const uint64_t value = n == QEMU_X86_CR3 ? cr3 : STACK;

	assert_ptr_equal(cpu, &now);
	memcpy(array->data, &value, sizeof(value));
	return sizeof(value);
}

int cpu_memory_rw_debug(struct CPUState *cpu, uint64_t address, void *to, uint64_t size, bool write)
{
	assert_ptr_equal(cpu, &now);
	assert_false(write);
	assert_int_equal(address, STACK);
	assert_int_equal(size, sizeof(stack));
	memcpy(to, stack, sizeof(stack));
	return 0;
}

int64_t cpu_get_ticks(void)
{
	return (int64_t)now;
}

struct byte_array *g_byte_array_new(void)
{
	return &bytes;
}

struct byte_array *g_byte_array_set_size(struct byte_array *array, unsigned size)
{
	array->len = size;
	return array;
}

/* --- what it runs ----------------------------------------------------------------------------- */

static union {
	struct vmring ring;
	uint8_t bytes[VMRING_STRIDE];
} shared;
static struct truth truth;
static struct unit unit;
static uint32_t number;

/* A block of one instruction. */
static void run(uint64_t ip, const char *code, size_t size)
{
	const struct block_insn insn = { ip, (const uint8_t *)code, size };
	struct block *block;

	assert_true(truth_block(&truth, ip, &insn, 1, &block) >= 0);
	if (unit_has_handler(&unit, ip))
		block->marks = BLOCK_HANDLER;
	unit_begin_block(&unit, block);
}

#define NOP     "\x90", 1
#define RET     "\xc3", 1
#define SYSCALL "\x0f\x05", 2
#define IRET    "\x48\xcf", 2
#define SET_CR3 "\x0f\x22\xd8", 3

static void begin(uint64_t control)
{
	memset(&shared, 0, sizeof(shared));
	shared.ring.handlers[3] = HANDLER;
	shared.ring.restarts = 1;
	assert_int_equal(truth_init(&truth, NULL), 0);
	unit_init(&unit, 0, &shared.ring, &number, &truth);
	shared.ring.control = control;
}

static void end(void)
{
	blocks_deinit(&truth.blocks);
}

/* The packets behind @from, which do not wrap, are these. Return: where they end. */
static uint64_t expect(uint64_t from, const char *packets, size_t n)
{
	const uint8_t *at = shared.bytes + VMRING_OFFSET + (from & (VMRING_SIZE - 1));
	const uint64_t size = shared.ring.head - from;

	if (size != n || memcmp(at, packets, n) != 0) {
		print_message("written:");
		for (uint64_t i = 0; i < size && i < 80; i++)
			print_message(" %02x", at[i]);
		fail_msg(", which are %llu bytes", (unsigned long long)size);
	}
	return shared.ring.head;
}

#define EXPECT(from, packets) expect(from, packets, sizeof(packets) - 1)

#define PSB       "\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82\x02\x82"
#define TSC       "\x19\0\0\0\0\0\0\0"
#define CBR       "\x02\x03\x0a\0"
#define PSBEND    "\x02\x23"
#define EXEC      "\x99\x01"
#define PGE_USER  "\x51\x00\x10\x40\0"
#define PGE_WHOLE "\x71\x00\x10\x40\0\0\0"
#define PGD       "\x01"
#define IP_KERNEL "\x00\x00\x00\x81\xff\xff"

static void user_only(void **state)
{
	uint64_t at;

	(void)state;
	begin(CONTROL | VMRING_USER);
	run(KERNEL, IRET);
	run(USER, NOP);
	run(USER + 1, SYSCALL);
	at = EXPECT(0, PSB TSC CBR PSBEND TSC EXEC PGE_USER);
	run(KERNEL + 16, IRET);
	at = EXPECT(at, PGD);

	/* An interrupt, with an error code; and one at the handler of which nothing is known. */
	run(USER + 3, NOP);
	memcpy(stack, (uint64_t[]){ 6, USER + 4, 0x33 }, sizeof(stack));
	run(HANDLER, NOP);
	at = EXPECT(at, TSC "\x31\x03\x10\x3d\x04\x10" PGD);
	run(USER + 4, NOP);
	memcpy(stack, (uint64_t[]){ USER + 4, 0x33, 0 }, sizeof(stack));
	run(KERNEL, NOP);
	at = EXPECT(at, TSC "\x31\x04\x10\x3d\x04\x10" PGD);
	assert_int_equal(unit.n_frameless, 0);

	/* Nothing tells. */
	run(USER + 4, NOP);
	memset(stack, 0, sizeof(stack));
	run(KERNEL, NOP);
	EXPECT(at, TSC "\x31\x04\x10\x3d\x04\x10" PGD);
	assert_int_equal(unit.n_frameless, 1);
	assert_int_equal(unit.flow.n_odd, 0);
	end();
}

static void with_kernel(void **state)
{
	uint64_t at;

	(void)state;
	begin(CONTROL | VMRING_USER | VMRING_OS);
	cr3 = 0x1000;
	run(USER, SYSCALL);
	at = EXPECT(0, PSB TSC "\x02\x43\0\x01\0\0\0\0" CBR PSBEND TSC EXEC PGE_USER);
	run(KERNEL, SET_CR3);
	at = EXPECT(at, "\x6d" IP_KERNEL);
	cr3 = 0x2000;
	run(KERNEL + 3, RET);
	at = EXPECT(at, "\x02\x43\0\x02\0\0\0\0");

	/* The interrupt comes before what the return led to has run. */
	memcpy(stack, (uint64_t[]){ KERNEL + 9, 0x10, 0 }, sizeof(stack));
	run(HANDLER, IRET);
	at = EXPECT(at, "\x2d\x09\0\x3d\x09\0\x4d\0\0\xc0\x81");
	run(KERNEL + 9, IRET);
	at = EXPECT(at, "\x4d\x09\0\0\x81");
	run(USER + 2, NOP);
	at = EXPECT(at, "\x6d\x02\x10\x40\0\0\0");

	/* The module stops it. */
	shared.ring.control = 0;
	run(USER + 3, NOP);
	at = EXPECT(at, "\x3d\x03\x10" PGD);
	run(USER + 4, NOP);
	assert_int_equal(shared.ring.head, at);
	end();
}

static void kernel_only(void **state)
{
	uint64_t at;

	(void)state;
	begin(CONTROL | VMRING_OS);
	run(USER, NOP);
	at = EXPECT(0, PSB TSC "\x02\x43\0\x02\0\0\0\0" CBR PSBEND);
	run(HANDLER, IRET);
	at = EXPECT(at, TSC EXEC "\x71\0\0\xc0\x81\xff\xff");
	run(USER + 1, NOP);
	EXPECT(at, PGD);
	end();
}

/* Two recorders take turns on the CPU, each with a buffer of its own, which begins with a PSB: also
 * if its thread has run nothing of what is recorded when the other's comes. */
static void restarts(void **state)
{
	uint64_t at = 0;

	(void)state;
	begin(CONTROL | VMRING_USER);
	for (int i = 0; i < 2; i++) {
		shared.ring.control = CONTROL | VMRING_USER;
		run(KERNEL, NOP);
		at = EXPECT(at, PSB TSC CBR PSBEND);
		shared.ring.control = 0;
		run(KERNEL + 1, NOP);
		shared.ring.restarts++;
	}
	/* It goes on. */
	shared.ring.restarts--;
	shared.ring.control = CONTROL | VMRING_USER;
	run(KERNEL, NOP);
	assert_int_equal(shared.ring.head, at);
	run(KERNEL, IRET);
	run(USER, NOP);
	at = EXPECT(at, TSC EXEC PGE_WHOLE);
	shared.ring.control = 0;
	run(KERNEL + 1, NOP);
	at = EXPECT(at, "\x3d\x00\x10" PGD);
	/* And so does the other, whose buffer has neither the mode nor an address yet. */
	shared.ring.control = CONTROL | VMRING_USER;
	run(KERNEL, IRET);
	run(USER, NOP);
	EXPECT(at, TSC EXEC PGE_WHOLE);
	end();
}

/* Fill the ring with indirect jumps. */
static void fill(void)
{
	for (int i = 0; shared.ring.overflows == 0; i++)
		run(USER + (uint64_t)(i % 2), "\xff\xe0", 2);
	assert_in_range(shared.ring.head - shared.ring.tail, VMRING_SIZE - 2048, VMRING_SIZE);
}

#define OVF "\x02\xf3"

static void overflows(void **state)
{
	uint64_t at;

	(void)state;
	begin(CONTROL | VMRING_USER);
	fill();
	at = shared.ring.head;
	run(USER, NOP);
	run(USER + 1, SYSCALL);
	run(KERNEL, NOP);
	run(USER + 3, "\xff\xe0", 2);
	run(USER, NOP);
	assert_int_equal(shared.ring.head, at);
	assert_int_equal(shared.ring.lost, 0);

	/* There is room while packets are on. */
	shared.ring.tail = shared.ring.head;
	run(USER + 1, SYSCALL);
	at = EXPECT(at, OVF TSC "\x7d\x01\x10\x40\0\0\0");
	assert_true(shared.ring.lost > 0);

	/* And while they are off. */
	run(KERNEL, NOP);
	shared.ring.overflows = 0;
	fill();
	at = shared.ring.head;
	memcpy(stack, (uint64_t[]){ USER, 0x33, 0 }, sizeof(stack));
	run(HANDLER, NOP);
	shared.ring.tail = shared.ring.head;
	run(KERNEL, NOP);
	assert_int_equal(shared.ring.head, at);
	run(USER, NOP);
	run(USER + 1, NOP);
	EXPECT(at, OVF TSC TSC "\x71\x00\x10\x40\0\0\0");
	assert_int_equal(shared.ring.overflows, 1);
	end();
}

/* --- the plugin's interface ------------------------------------------------------------------- */

static const uint8_t code[QEMU_INSN_MAX] = { 0x48, 0x89, 0xe5 };

static const void *data_by_address(const struct qemu_plugin_insn *insn)
{
	assert_ptr_equal(insn, &now);
	return code;
}

static size_t data_by_copy(const struct qemu_plugin_insn *insn, void *to, size_t size)
{
	assert_ptr_equal(insn, &now);
	assert_int_equal(size, QEMU_INSN_MAX);
	memcpy(to, code, 3);
	return 3;
}

static void bytes_of_an_instruction(void **state)
{
	const struct qemu_plugin_insn *insn = (const struct qemu_plugin_insn *)&now;

	(void)state;
	for (int offered = 1; offered <= QEMU_PLUGIN_VERSION_MAX; offered++) {
		void (*data)(void) =
		    offered < 3 ? (void (*)(void))data_by_address : (void (*)(void))data_by_copy;
		uint8_t copy[QEMU_INSN_MAX] = {};

		assert_memory_equal(qemu_insn_bytes(offered, data, insn, copy), code, 3);
	}
	/* This program has no function of version 2. */
	assert_int_equal(qemu_interface(), 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(user_only),   cmocka_unit_test(with_kernel),
		cmocka_unit_test(kernel_only), cmocka_unit_test(restarts),
		cmocka_unit_test(overflows),   cmocka_unit_test(bytes_of_an_instruction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
