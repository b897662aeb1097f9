/* SPDX-License-Identifier: GPL-2.0-or-later */
#pragma once

/*
 * QEMU
 *
 * What the plugin uses of QEMU. No package has the header for plugins, so the functions of
 * that interface are declared here. The symbols in the second part belong to no interface, but
 * Debian's binaries export them. They are weak, and the plugin refuses to load without them.
 *
 * Source: QEMU 7.2, docs/devel/tcg-plugins.rst.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* QEMU 7.2 offers version 1 only, and 9.0 to 10.0 offer 2 and more: what is used here is the same
 * in versions 1 to 4, but for qemu_plugin_insn_data(). */
#define QEMU_PLUGIN_VERSION_MAX 4

struct qemu_plugin_tb;
struct qemu_plugin_insn;

struct qemu_plugin_info {
	const char *target_name;
	struct {
		int min;
		int cur;
	} version;
	bool system_emulation;
	struct {
		int smp_vcpus;
		int max_vcpus;
	} system;
};

enum qemu_plugin_cb_flags {
	QEMU_PLUGIN_CB_NO_REGS,
};

typedef void (*qemu_plugin_vcpu_cb)(uint64_t id, unsigned vcpu);
typedef void (*qemu_plugin_tb_trans_cb)(uint64_t id, struct qemu_plugin_tb *tb);
typedef void (*qemu_plugin_exec_cb)(unsigned vcpu, void *userdata);
typedef void (*qemu_plugin_simple_cb)(uint64_t id);
typedef void (*qemu_plugin_atexit_cb)(uint64_t id, void *userdata);
typedef void (*qemu_plugin_syscall_cb)(uint64_t id, unsigned vcpu, int64_t number, uint64_t a1,
				       uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5,
				       uint64_t a6, uint64_t a7, uint64_t a8);
typedef void (*qemu_plugin_syscall_ret_cb)(uint64_t id, unsigned vcpu, int64_t number, int64_t ret);

void qemu_plugin_register_vcpu_init_cb(uint64_t id, qemu_plugin_vcpu_cb cb);
void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t id, qemu_plugin_tb_trans_cb cb);
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *tb, qemu_plugin_exec_cb cb,
					  enum qemu_plugin_cb_flags flags, void *userdata);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *insn, qemu_plugin_exec_cb cb,
					    enum qemu_plugin_cb_flags flags, void *userdata);
void qemu_plugin_register_vcpu_syscall_cb(uint64_t id, qemu_plugin_syscall_cb cb);
void qemu_plugin_register_vcpu_syscall_ret_cb(uint64_t id, qemu_plugin_syscall_ret_cb cb);
/* All translations are dropped. */
void qemu_plugin_register_flush_cb(uint64_t id, qemu_plugin_simple_cb cb);
void qemu_plugin_register_atexit_cb(uint64_t id, qemu_plugin_atexit_cb cb, void *userdata);

size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *tb);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *tb);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *tb, size_t i);
size_t qemu_plugin_insn_size(const struct qemu_plugin_insn *insn);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *insn);

#define _weak_ __attribute__((__weak__))

/* Not called. It is new in version 2. */
void qemu_plugin_scoreboard_new(void) _weak_;

/* Return: the version to ask for, which must be known before QEMU says what it offers. */
static inline int qemu_interface(void)
{
	return qemu_plugin_scoreboard_new ? 2 : 1;
}

#define QEMU_INSN_MAX 15

/* Which function this is depends on the version: up to 2 it returns the bytes, from 3 on it copies
 * them. */
void qemu_plugin_insn_data(void);

/*
 * Get the bytes of an instruction by @data, which is qemu_plugin_insn_data() of a QEMU that offers
 * version @offered. Return: them; they may be in @copy.
 */
static inline const void *qemu_insn_bytes(int offered, void (*data)(void),
					  const struct qemu_plugin_insn *insn,
					  uint8_t copy[static QEMU_INSN_MAX])
{
	if (offered < 3)
		return ((const void *(*)(const struct qemu_plugin_insn *))data)(insn);
	(void)((size_t(*)(const struct qemu_plugin_insn *, void *, size_t))data)(insn, copy,
										 QEMU_INSN_MAX);
	return copy;
}

/* --- internals that Debian's qemu-x86_64, -i386 and -system-x86_64 export --------------------- */

struct CPUState;

/* GLib's GByteArray, as its header documents it. */
struct byte_array {
	uint8_t *data;
	unsigned len;
};

enum qemu_x86_register {
	QEMU_X86_RDX = 3,
	QEMU_X86_RSI = 4,
	QEMU_X86_RDI = 5,
	QEMU_X86_RSP = 7,
	QEMU_X86_RIP = 16,
	QEMU_X86_CR3 = 29,
	/* Of qemu-i386, which has fewer. */
	QEMU_I386_ECX = 1,
	QEMU_I386_EDX = 2,
	QEMU_I386_ESP = 4,
	QEMU_I386_EIP = 8,
};

extern uintptr_t guest_base _weak_; /* host address of the target's address 0 */
extern char *exec_path _weak_;      /* path of the target's program, as QEMU got it */
struct CPUState *qemu_get_cpu(int index) _weak_;
/* Between these two calls all other vCPUs stand still. Not to be called in a callback of a block or
 * an instruction. */
void start_exclusive(void) _weak_;
void end_exclusive(void) _weak_;
/* QEMU calls this before it exits: all vCPUs stand still while it calls the plugins. */
void qemu_plugin_user_exit(void) _weak_;
/* Append the value of register @n to @bytes. Return: its size in bytes; 0 if there is none. */
int x86_cpu_gdb_read_register(struct CPUState *cpu, struct byte_array *bytes, int n) _weak_;
/* Set register @n to the number at @bytes. Return: its size in bytes; 0 if there is none. */
int x86_cpu_gdb_write_register(struct CPUState *cpu, uint8_t *bytes, int n) _weak_;
/* Guest memory at a virtual @address. Return: 0; or -1 if it is not mapped. */
int cpu_memory_rw_debug(struct CPUState *cpu, uint64_t address, void *bytes, uint64_t size,
			bool write) _weak_;
int64_t cpu_get_ticks(void) _weak_; /* the TSC of a guest */
/* Drop all translations as soon as all vCPUs stand still, so that code is translated again. */
void tb_flush(struct CPUState *cpu) _weak_;
struct byte_array *g_byte_array_new(void) _weak_;
struct byte_array *g_byte_array_set_size(struct byte_array *bytes, unsigned size) _weak_;

/* Return: the value of a register of @vcpu between two blocks; 0 if it cannot be read. */
static inline uint64_t qemu_register(unsigned vcpu, enum qemu_x86_register which)
{
	static __thread struct byte_array *bytes __attribute__((__tls_model__("initial-exec")));
	struct CPUState *cpu = qemu_get_cpu((int)vcpu);
	uint64_t value = 0;
	int size;

	if (!bytes)
		bytes = g_byte_array_new();
	if (!cpu || !bytes)
		return 0;
	g_byte_array_set_size(bytes, 0);
	size = x86_cpu_gdb_read_register(cpu, bytes, which);
	if (size == 8 || size == 4)
		memcpy(&value, bytes->data, (size_t)size);
	return value;
}

/* Set a register of @vcpu, which is at the start of a block. */
static inline void qemu_set_register(unsigned vcpu, enum qemu_x86_register which, uint64_t value)
{
	struct CPUState *cpu = qemu_get_cpu((int)vcpu);
	uint8_t bytes[sizeof(value)];

	memcpy(bytes, &value, sizeof(value));
	if (cpu)
		(void)x86_cpu_gdb_write_register(cpu, bytes, which);
}
