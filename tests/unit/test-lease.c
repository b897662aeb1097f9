/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Leases: who gets which virtual CPU, what a pool does that is exhausted or whose owners died, and
 * which pools are refused.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/wait.h>

#include "daemon/emu/lease.h"
#include "tests/unit/emupool.h"

static const struct emu_pool_layout layout = {
	.n_cpus = 3,
	.n_busy_max = 2,
	.aux_size = 4096,
	.switch_size = 4096,
	.task_size = 4096,
	.psb_period = 4096,
	.return_compression = true,
};

static struct attach attach;

static int setup(void **state)
{
	(void)state;
	emupool_attach(&layout, &attach);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	attach_deinit(&attach);
	return 0;
}

/* A thread of this process, so that it is alive. */
static struct lease make_lease(void)
{
	return (struct lease){
		.attach = &attach,
		.mode = 64,
		.who = { .pid = (uint32_t)getpid(), .tid = (uint32_t)gettid() },
	};
}

static void refused(void **state)
{
	static const struct {
		const char *name;
		size_t at; /* a 32-bit field of the header that gets another value */
		uint32_t value;
	} rows[] = {
		{ "magic", offsetof(struct emu_pool, magic), 1 },
		{ "version", offsetof(struct emu_pool, version), EMU_POOL_VERSION + 1 },
		{ "no cpus", offsetof(struct emu_pool, layout.n_cpus), 0 },
		{ "too many cpus", offsetof(struct emu_pool, layout.n_cpus), EMU_CPUS_MAX + 1 },
		{ "none may be busy", offsetof(struct emu_pool, layout.n_busy_max), 0 },
		{ "more busy than there are", offsetof(struct emu_pool, layout.n_busy_max), 4 },
		{ "ring no power of two", offsetof(struct emu_pool, layout.aux_size), 4097 },
		{ "ring too small", offsetof(struct emu_pool, layout.switch_size), 2048 },
		{ "ring of another size", offsetof(struct emu_pool, layout.task_size), 8192 },
		{ "ring huge", offsetof(struct emu_pool, layout.aux_size) + 4, UINT32_MAX },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(fd_closep) int fd = emupool_fd(&layout);
		const char *what = NULL;
		struct attach other;

		print_message("  %s\n", rows[i].name);
		assert_int_equal(pwrite(fd, &rows[i].value, 4, (off_t)rows[i].at), 4);
		assert_int_equal(attach_init(&other, fd, &what), -EBADMSG);
		assert_non_null(what);
	}
}

static void not_a_pool(void **state)
{
	_cleanup_(fd_closep) int fd = memfd_create("small", MFD_CLOEXEC);
	const char *what = NULL;
	struct attach other;

	(void)state;
	assert_int_equal(attach_init(&other, -1, &what), -EBADF);
	assert_int_equal(attach_init(&other, fd, &what), -EBADMSG);
}

static void preferred(void **state)
{
	struct lease a = make_lease(), b = make_lease();

	(void)state;
	assert_int_equal(lease_take(&a, LEASE_WAIT), 0);
	assert_int_equal(lease_take(&b, LEASE_WAIT), 0);
	assert_int_equal(a.who.cpu, 0);
	assert_int_equal(b.who.cpu, 1);
	lease_give(&a, false);
	lease_give(&b, false);
	/* Each comes back to its own, whoever is first. */
	assert_int_equal(lease_take(&b, LEASE_WAIT), 0);
	assert_int_equal(lease_take(&a, LEASE_WAIT), 0);
	assert_int_equal(b.who.cpu, 1);
	assert_int_equal(a.who.cpu, 0);
	assert_int_equal(attach_cpu(&attach, 0)->owner, (uint64_t)a.who.pid << 32 | a.who.tid);
	lease_give(&a, true);
	lease_give(&b, true);
	assert_int_equal(attach_cpu(&attach, 0)->owner, 0);
	assert_int_equal(attach_cpu(&attach, 0)->current_tid, 0);
}

static void exhausted(void **state)
{
	struct lease a[3] = { make_lease(), make_lease(), make_lease() }, b = make_lease();
	struct encode *e;

	(void)state;
	assert_int_equal(lease_take(&a[0], LEASE_WAIT), 0);
	assert_int_equal(lease_take(&a[1], LEASE_WAIT), 0);
	/* It waits in vain, and then gets one of those that are kept back. */
	assert_int_equal(lease_take(&a[2], LEASE_WAIT), 0);
	assert_int_equal(a[2].who.cpu, 2);
	assert_int_equal(lease_take(&b, LEASE_WAIT), LEASE_NONE);
	assert_int_equal(lease_take(&b, LEASE_TRY), LEASE_NONE);
	assert_int_equal(attach.pool->exhausted, 1);
	assert_false(lease_wanted(&attach, attach_now_ns()));
	assert_true(b.lost);

	/* The next CPU it gets says that something is missing. */
	lease_give(&a[0], false);
	assert_int_equal(lease_take(&b, LEASE_TRY), 0);
	assert_false(b.lost);
	e = &b.encode;
	assert_memory_equal(e->ring + e->head - 10, "\x02\xf3\x19", 3);
	assert_int_equal(attach_cpu(&attach, b.who.cpu)->aux_head, 0);
	lease_give(&b, false);
	assert_int_equal(attach_cpu(&attach, b.who.cpu)->aux_head, e->head);
}

static void *give_later(void *lease)
{
	usleep(300);
	lease_give(lease, false);
	return NULL;
}

static void waits(void **state)
{
	struct lease a[2] = { make_lease(), make_lease() }, b = make_lease();
	pthread_t thread;

	(void)state;
	/* Not for sure in time on a busy machine, but then with the kept back one. */
	for (int i = 0; i < 20; i++) {
		assert_int_equal(lease_take(&a[0], LEASE_WAIT), 0);
		assert_int_equal(lease_take(&a[1], LEASE_WAIT), 0);
		assert_int_equal(pthread_create(&thread, NULL, give_later, &a[0]), 0);
		assert_int_equal(lease_take(&b, LEASE_WAIT), 0);
		assert_int_equal(pthread_join(thread, NULL), 0);
		lease_give(&a[1], false);
		lease_give(&b, false);
	}
	assert_false(lease_wanted(&attach, attach_now_ns()));
	assert_int_equal(attach.pool->exhausted, 0);
}

/* One who was killed while it waited, or scribbled, wants nothing for long. */
static void wanted(void **state)
{
	static const struct {
		const char *name;
		uint64_t until_ns;
		bool wanted;
	} rows[] = {
		{ "nobody waits", 0, false },
		{ "somebody waits", 11000000, true },
		{ "somebody waited until now", 10000000, false },
		{ "somebody waited long ago", 1, false },
		{ "nobody waits that long", UINT64_MAX, false },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  %s\n", rows[i].name);
		attach.pool->wait_until_ns = rows[i].until_ns;
		assert_int_equal(lease_wanted(&attach, 10000000), rows[i].wanted);
		assert_int_equal(attach.pool->wait_until_ns, rows[i].wanted ? rows[i].until_ns : 0);
	}
}

/* The program is not where ptd is, or it is not known. */
static void elsewhere(void **state)
{
	const struct emu_pool_home here = attach.home;

	(void)state;
	assert_int_not_equal(here.pid_ns, 0);
	assert_null(attach_obstacle(&attach));
	attach.home = (struct emu_pool_home){};
	assert_null(attach_obstacle(&attach));
	attach.home = (struct emu_pool_home){ here.pid_ns + 1, here.time_ns };
	assert_string_equal(attach_obstacle(&attach), "it is in another pid namespace than ptd");
	attach.home = (struct emu_pool_home){ here.pid_ns, here.time_ns + 1 };
	assert_string_equal(attach_obstacle(&attach), "it is in another time namespace than ptd");
}

/* The CPUs of a process that was killed are taken from it, and its packets told to be cut off. */
static void orphaned(void **state)
{
	struct lease a = make_lease();
	const pid_t child = fork();
	struct encode *e;

	(void)state;
	if (child == 0)
		_exit(0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	for (uint32_t i = 0; i < layout.n_cpus; i++) {
		struct emu_cpu *cpu = attach_cpu(&attach, i);

		cpu->owner = (uint64_t)child << 32 | (uint64_t)child;
		encode_init(&cpu->encode, layout.aux_size, layout.psb_period, true);
		cpu->encode.enabled = true;
		cpu->encode.n_tnt = 3;
	}
	assert_int_equal(lease_take(&a, LEASE_WAIT), 0);
	e = &a.encode;
	assert_false(e->enabled);
	assert_int_equal(e->n_tnt, 0);
	assert_memory_equal(e->ring + e->head - 10, "\x02\xf3\x19", 3);
	lease_give(&a, false);
}

/* Whatever others write into the shared state, the ring is where the layout says. */
static void not_believed(void **state)
{
	struct lease a = make_lease();
	struct encode *shared = &attach_cpu(&attach, 0)->encode;

	(void)state;
	memset(shared, 0xff, sizeof(*shared));
	attach.pool->layout.aux_size = 1;
	assert_int_equal(lease_take(&a, LEASE_WAIT), 0);
	memset(shared, 0xff, sizeof(*shared)); /* while it runs */
	assert_int_equal(a.encode.ring_size, layout.aux_size);
	assert_ptr_equal(a.encode.ring, attach_at(&attach, emu_aux_offset(&layout, 0)));
	assert_false(a.encode.enabled);
	assert_int_equal(a.encode.n_tnt, 0);
	assert_true(a.encode.sdm.depth <= ENCODE_STACK && a.encode.ipt.depth <= ENCODE_STACK);
	encode_enable(&a.encode, 0x401000, 5);
	for (int i = 0; i < 200; i++) {
		encode_push(&a.encode, 0x401000 + (uint64_t)i);
		encode_return(&a.encode, 0x401000 + (uint64_t)i);
	}
	encode_flush(&a.encode);
	encode_disable(&a.encode);
	lease_give(&a, false);
	assert_null(shared->ring);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(refused),
		cmocka_unit_test(not_a_pool),
		TEST(preferred),
		TEST(exhausted),
		TEST(waits),
		TEST(wanted),
		TEST(elsewhere),
		TEST(orphaned),
		TEST(not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
