/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "daemon/soft/poolasker.h"
#include "daemon/soft/poolwriters.h"
#include "tests/lib/tempdir.h"

static struct poolasker *asker;
static char dir[TEMPDIR_SIZE];

static int set_up(void **state)
{
	(void)state;
	tempdir_make("poolwriters", dir);
	assert_int_equal(poolasker_new(dir, &asker), 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	asker = poolasker_free(asker);
	tempdir_remove(dir);
	return 0;
}

/* A process that has the memory of @fd mapped, if it is one. */
static uint32_t start(int fd)
{
	int pair[2];
	pid_t pid;
	char byte;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	pid = fork();
	if (pid == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (fd >= 0 && mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0) == MAP_FAILED)
			_exit(1);
		(void)!write(pair[1], "!", 1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(pair[0], &byte, 1), 1);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return (uint32_t)pid;
}

static void stop(uint32_t pid)
{
	(void)kill((pid_t)pid, SIGKILL);
	assert_int_equal(waitpid((pid_t)pid, NULL, 0), pid);
}

static int make_pool(void)
{
	const int fd = memfd_create("pool", MFD_CLOEXEC);

	assert_int_equal(ftruncate(fd, 4096), 0);
	return fd;
}

static void who_is_one(void **state)
{
	struct poolwriters w = { .asker = asker, .pool_fd = make_pool() };
	const uint32_t writer = start(w.pool_fd), other = start(-1);
	unsigned n_checks = 0;

	(void)state;
	assert_false(poolwriters_alive(&w));
	poolwriters_note(&w, other, &n_checks);
	poolwriters_note(&w, 0, &n_checks);
	poolwriters_note(&w, UINT32_MAX, &n_checks);
	assert_int_equal(n_checks, 1);
	assert_false(poolwriters_has_pool(&w, other));
	assert_false(poolwriters_alive(&w));

	poolwriters_note(&w, writer, &n_checks);
	poolwriters_note(&w, writer, &n_checks); /* is known now */
	assert_int_equal(n_checks, 2);
	assert_true(poolwriters_has_pool(&w, writer));
	assert_true(poolwriters_alive(&w));
	stop(writer);
	assert_false(poolwriters_alive(&w));
	assert_int_equal(w.n, 0);
	stop(other);
	(void)close(w.pool_fd);
}

/* Records may name any number of processes: only so many are looked at. */
static void many_claims(void **state)
{
	struct poolwriters w = { .asker = asker, .pool_fd = make_pool() };
	const uint32_t writer = start(w.pool_fd);
	unsigned n_checks = 0;

	(void)state;
	for (uint32_t pid = INT32_MAX - 2 * POOLWRITERS_MAX; pid < INT32_MAX; pid++)
		poolwriters_note(&w, pid, &n_checks);
	assert_int_equal(n_checks, POOLWRITERS_MAX);
	poolwriters_note(&w, writer, &n_checks);
	assert_int_equal(w.n, 0);
	n_checks = 0;
	poolwriters_note(&w, writer, &n_checks);
	assert_int_equal(w.n, 1);
	stop(writer);
	(void)close(w.pool_fd);
}

/* Those that are dead make room. */
static void short_lived_ones(void **state)
{
	struct poolwriters w = { .asker = asker, .pool_fd = make_pool() };
	const uint32_t writer = start(w.pool_fd);
	unsigned n_checks = 0;

	(void)state;
	for (w.n = 0; w.n < POOLWRITERS_MAX; w.n++)
		w.pids[w.n] = INT32_MAX - (uint32_t)w.n;
	poolwriters_note(&w, writer, &n_checks);
	assert_int_equal(w.n, 1);
	assert_int_equal(w.pids[0], writer);
	assert_true(poolwriters_alive(&w));
	stop(writer);
	(void)close(w.pool_fd);
}

/* There is room for POOLWRITERS_MAX that live. */
static void too_many_alive(void **state)
{
	struct poolwriters w = { .asker = asker, .pool_fd = make_pool() };
	const uint32_t writer = start(w.pool_fd);
	unsigned n_checks = 0;

	(void)state;
	for (w.n = 0; w.n < POOLWRITERS_MAX; w.n++)
		w.pids[w.n] = (uint32_t)getpid();
	poolwriters_note(&w, writer, &n_checks);
	assert_int_equal(n_checks, 1);
	assert_int_equal(w.n, POOLWRITERS_MAX);
	assert_int_equal(w.pids[POOLWRITERS_MAX - 1], getpid());
	stop(writer);
	(void)close(w.pool_fd);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_one),
		cmocka_unit_test(many_claims),
		cmocka_unit_test(short_lived_ones),
		cmocka_unit_test(too_many_alive),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
