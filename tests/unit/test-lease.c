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
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/plugin/lease.h"
#include "tests/lib/emufree.h"
#include "tests/lib/emupool.h"

static const struct emu_pool_layout layout = {
	.n_cpus = 3,
	.n_busy_max = 2,
	.aux_size = 4096,
	.switch_size = 4096,
	.event_size = 4096,
	.task_size = 4096,
	.code_size = 65536,
	.psb_period = 4096,
	.return_compression = true,
};

/* A thread of this process, so that it is alive. */
static struct lease make_lease(void)
{
	return (struct lease){
		.attach = &emupool,
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
		{ "magic", offsetof(struct emu_pool_header, magic), 1 },
		{ "version", offsetof(struct emu_pool_header, version), EMU_POOL_VERSION + 1 },
		{ "no cpus", offsetof(struct emu_pool_header, layout.n_cpus), 0 },
		{ "too many cpus", offsetof(struct emu_pool_header, layout.n_cpus),
		  EMU_CPUS_MAX + 1 },
		{ "none may be busy", offsetof(struct emu_pool_header, layout.n_busy_max), 0 },
		{ "more busy than there are", offsetof(struct emu_pool_header, layout.n_busy_max),
		  4 },
		{ "ring no power of two", offsetof(struct emu_pool_header, layout.aux_size), 4097 },
		{ "ring too small", offsetof(struct emu_pool_header, layout.switch_size), 2048 },
		{ "no events", offsetof(struct emu_pool_header, layout.event_size), 0 },
		{ "events do not fit", offsetof(struct emu_pool_header, layout.event_size), 4128 },
		{ "ring of another size", offsetof(struct emu_pool_header, layout.task_size),
		  8192 },
		{ "ring huge", offsetof(struct emu_pool_header, layout.aux_size) + 4, UINT32_MAX },
		{ "ring of letters", offsetof(struct emu_pool_header, layout.aux_size) + 4,
		  0x41414141 },
		{ "bool of 2", offsetof(struct emu_pool_header, layout.return_compression), 2 },
		{ "another bool of 2", offsetof(struct emu_pool_header, layout.long_tnt), 2 },
		{ "timing of letters", offsetof(struct emu_pool_header, layout.timing),
		  0x41414141 },
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
	assert_int_equal(attach_cpu(&emupool, 0)->owner, (uint64_t)a.who.pid << 32 | a.who.tid);
	lease_give(&a, true);
	lease_give(&b, true);
	assert_int_equal(attach_cpu(&emupool, 0)->owner, 0);
	assert_int_equal(attach_cpu(&emupool, 0)->current_tid, 0);
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
	assert_int_equal(emupool.pool->exhausted, 1);
	assert_false(lease_wanted(&emupool, attach_now_ns()));
	assert_true(b.lost);

	/* The next CPU it gets says that something is missing. */
	lease_give(&a[0], false);
	assert_int_equal(lease_take(&b, LEASE_TRY), 0);
	assert_false(b.lost);
	e = &b.encode;
	assert_memory_equal(e->ring + e->state.head - 10, "\x02\xf3\x19", 3);
	assert_int_equal(attach_cpu(&emupool, b.who.cpu)->aux_head, 0);
	lease_give(&b, false);
	assert_int_equal(attach_cpu(&emupool, b.who.cpu)->aux_head, e->state.head);
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
	assert_false(lease_wanted(&emupool, attach_now_ns()));
	assert_int_equal(emupool.pool->exhausted, 0);
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
		emupool.pool->wait_until_ns = rows[i].until_ns;
		assert_int_equal(lease_wanted(&emupool, 10000000), rows[i].wanted);
		assert_int_equal(emupool.pool->wait_until_ns,
				 rows[i].wanted ? rows[i].until_ns : 0);
	}
}

/* The program is not where ptd is, or it is not known. */
static void elsewhere(void **state)
{
	const struct emu_pool_home here = emupool.home;

	(void)state;
	assert_int_not_equal(here.pid_ns, 0);
	assert_null(attach_obstacle(&emupool));
	emupool.home = (struct emu_pool_home){};
	assert_null(attach_obstacle(&emupool));
	emupool.home = (struct emu_pool_home){ here.pid_ns + 1, here.time_ns };
	assert_string_equal(attach_obstacle(&emupool), "it is in another pid namespace than ptd");
	emupool.home = (struct emu_pool_home){ here.pid_ns, here.time_ns + 1 };
	assert_string_equal(attach_obstacle(&emupool), "it is in another time namespace than ptd");
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
		struct emu_cpu *cpu = attach_cpu(&emupool, i);

		cpu->owner = (uint64_t)child << 32 | (uint64_t)child;
		cpu->is_used = 1;
		cpu->encode = (struct encode_state){ .enabled = true, .tnt = 013 };
	}
	assert_int_equal(lease_take(&a, LEASE_WAIT), 0);
	e = &a.encode;
	assert_false(e->state.enabled);
	assert_int_equal(e->state.tnt, 1);
	assert_memory_equal(e->ring + e->state.head - 10, "\x02\xf3\x19", 3);
	lease_give(&a, false);
}

/* Whatever others write into the shared state, the ring is where the layout says. */
static void not_believed(void **state)
{
	struct lease a = make_lease();
	struct emu_cpu *shared = attach_cpu(&emupool, 0);

	(void)state;
	shared->is_used = UINT32_MAX;
	memset(&shared->encode, 0xff, sizeof(shared->encode));
	memset(&emupool.pool->header, 0x41, sizeof(emupool.pool->header));
	assert_int_equal(lease_take(&a, LEASE_WAIT), 0);
	memset(&shared->encode, 0xff, sizeof(shared->encode)); /* while it runs */
	assert_int_equal(a.encode.ring_size, layout.aux_size);
	assert_ptr_equal(a.encode.ring, attach_at(&emupool, emu_aux_offset(&layout, 0)));
	assert_false(a.encode.state.enabled);
	assert_int_equal(a.encode.state.tnt, 1);
	assert_true(a.encode.state.calls.depth <= ENCODE_STACK);
	encode_enable(&a.encode, 0x401000, 5);
	for (int i = 0; i < 200; i++) {
		encode_push(&a.encode, 0x401000 + (uint64_t)i, 1);
		encode_return(&a.encode, 0x401000 + (uint64_t)i);
	}
	encode_flush(&a.encode);
	encode_disable(&a.encode);
	lease_give(&a, false);
}

/* --- others that write and read at the same time ---------------------------------------------- */

static atomic_bool over;

/* A header of which one field changes all the time. */
struct flicker {
	_Atomic uint32_t *word; /* shared */
	uint32_t good, bad;
};

static void *flicker(void *userdata)
{
	const struct flicker *f = userdata;

	while (!over) {
		atomic_store(f->word, f->bad);
		atomic_store(f->word, f->good);
	}
	return NULL;
}

/* Whatever changes between the check and the use: a pool is refused, or is what was checked. */
static void changed_after_check(void **state)
{
	static const struct {
		const char *name;
		size_t at; /* a 32-bit field of the header that gets another value */
		uint32_t value;
	} rows[] = {
		{ "AUX ring, low", offsetof(struct emu_pool_header, layout.aux_size), 0x41410000 },
		{ "AUX ring, high", offsetof(struct emu_pool_header, layout.aux_size) + 4,
		  0x41414141 },
		{ "switch ring", offsetof(struct emu_pool_header, layout.switch_size), 8192 },
		{ "task ring", offsetof(struct emu_pool_header, layout.task_size) + 4, 1 },
		{ "cpus", offsetof(struct emu_pool_header, layout.n_cpus), 200 },
		{ "busy", offsetof(struct emu_pool_header, layout.n_busy_max), 200 },
		{ "bool", offsetof(struct emu_pool_header, layout.return_compression), 0x41 },
		{ "timing", offsetof(struct emu_pool_header, layout.timing), 0x41410000 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(fd_closep) int fd = emupool_fd(&layout);
		uint8_t *shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		struct flicker f = { .bad = rows[i].value };
		size_t n_taken = 0;
		pthread_t thread;

		print_message("  %s\n", rows[i].name);
		assert_true(shared != MAP_FAILED);
		f.word = (_Atomic uint32_t *)(void *)(shared + rows[i].at);
		f.good = *f.word;
		over = false;
		assert_int_equal(pthread_create(&thread, NULL, flicker, &f), 0);
		for (unsigned n = 0; n < 20000 || (n_taken == 0 && n < 1000000); n++) {
			struct attach other;
			const char *what;

			if (attach_init(&other, fd, &what) < 0)
				continue;
			n_taken++;
			/* A copy of another layout may be as good: only what is checked counts. */
			assert_int_equal(emu_pool_size(&other.layout), emu_pool_size(&layout));
			assert_int_equal(other.layout.aux_size, layout.aux_size);
			assert_int_equal(other.layout.n_cpus, layout.n_cpus);
			assert_true(other.layout.n_busy_max <= layout.n_cpus);
			attach_deinit(&other);
		}
		over = true;
		assert_int_equal(pthread_join(thread, NULL), 0);
		assert_true(n_taken > 0);
		(void)munmap(shared, 4096);
	}
}

/* Looks for an address of this process's mapping in what others can read of a CPU. */
static void *watch(void *userdata)
{
	const volatile uint64_t *words = userdata;
	const uint64_t start = (uint64_t)(uintptr_t)emupool.pool;
	const uint64_t end = start + emu_pool_size(&layout);
	size_t n_seen = 0;

	while (!over)
		for (size_t i = 0; i < sizeof(struct emu_cpu) / sizeof(*words); i++) {
			const uint64_t word = words[i];

			n_seen += word >= start && word < end;
		}
	return (void *)n_seen;
}

static void no_address_is_published(void **state)
{
	struct lease a = make_lease();
	pthread_t thread;
	void *n_seen;

	(void)state;
	over = false;
	assert_int_equal(pthread_create(&thread, NULL, watch, attach_cpu(&emupool, 0)), 0);
	for (unsigned i = 0; i < 300000; i++) {
		assert_int_equal(lease_take(&a, LEASE_WAIT), 0);
		lease_give(&a, false);
	}
	over = true;
	assert_int_equal(pthread_join(thread, &n_seen), 0);
	assert_null(n_seen);
}

#define TEST(f) emupool_test(f, layout)

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
		cmocka_unit_test(changed_after_check),
		TEST(no_address_is_published),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
