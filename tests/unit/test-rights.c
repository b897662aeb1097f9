/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "daemon/pt/rights.h"

#define MIB (UINT64_C(1) << 20)

static void checks(void **state)
{
	static const struct {
		const char *what;
		struct rights rights;
		enum rights_of of;
		int error;
		const char *says[3];
	} rows[] = {
		{ "the service",
		  { .paranoid = 2, .perfmon = true, .ipc_lock = true },
		  RIGHTS_OF_KERNEL,
		  0,
		  {} },
		{ "the service under Debian's default",
		  { .paranoid = 3, .perfmon = true, .ipc_lock = true },
		  RIGHTS_OF_USERS,
		  -EACCES,
		  { "perf_event_paranoid is 3", "ptd.service does while it runs" } },
		{ "root under Debian's default",
		  { .paranoid = 3, .perfmon = true, .sys_admin = true, .ipc_lock = true },
		  RIGHTS_OF_KERNEL,
		  0,
		  {} },
		{ "an older root",
		  { .paranoid = 2, .sys_admin = true, .ipc_lock = true },
		  RIGHTS_OF_KERNEL,
		  0,
		  {} },
		{ "no capabilities",
		  { .paranoid = 2, .memlock = UINT64_MAX },
		  RIGHTS_OF_USERS,
		  -EACCES,
		  { "CAP_PERFMON" } },
		{ "nothing at all",
		  { .paranoid = 4 },
		  RIGHTS_OF_USERS,
		  -EACCES,
		  { "is 4", "CAP_PERFMON", "CAP_IPC_LOCK" } },
		{ "anybody may", { .paranoid = -1 }, RIGHTS_OF_KERNEL, 0, {} },
		{ "anybody may but the kernel",
		  { .paranoid = 0, .memlock = 64 * MIB },
		  RIGHTS_OF_USERS,
		  0,
		  {} },
		{ "not the kernel",
		  { .paranoid = 0, .memlock = 64 * MIB },
		  RIGHTS_OF_KERNEL,
		  -EACCES,
		  { "CAP_PERFMON" } },
		{ "limit just enough",
		  { .paranoid = 2, .perfmon = true, .memlock = 63 * MIB, .free_bytes = MIB },
		  RIGHTS_OF_USERS,
		  0,
		  {} },
		{ "limit a byte too low",
		  { .paranoid = 2, .perfmon = true, .memlock = 63 * MIB, .free_bytes = MIB - 1 },
		  RIGHTS_OF_USERS,
		  -EACCES,
		  { "64 MiB of rings", "CAP_IPC_LOCK", "LimitMEMLOCK=" } },
		{ "one's own processes",
		  { .paranoid = 2, .memlock = 64 * MIB },
		  RIGHTS_OF_CHILDREN,
		  0,
		  {} },
		{ "not even those",
		  { .paranoid = 3, .memlock = 64 * MIB },
		  RIGHTS_OF_CHILDREN,
		  -EACCES,
		  { "perf_event_paranoid is 3" } },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char message[1024] = "untouched";

		print_message("  %s\n", rows[i].what);
		assert_int_equal(
		    rights_check(&rows[i].rights, rows[i].of, 64 * MIB, message, sizeof(message)),
		    rows[i].error);
		if (rows[i].error == 0)
			assert_string_equal(message, "untouched");
		for (size_t k = 0; k < ARRAY_LEN(rows[i].says) && rows[i].says[k]; k++)
			assert_non_null(strstr(message, rows[i].says[k]));
		assert_int_not_equal(message[strlen(message) - 1], ' ');
	}
}

/* A message that does not fit is cut, not written past its end. */
static void a_small_message(void **state)
{
	const struct rights rights = { .paranoid = 4 };
	char message[32];

	(void)state;
	memset(message, 'x', sizeof(message));
	assert_int_equal(rights_check(&rights, RIGHTS_OF_USERS, 64 * MIB, message, 16), -EACCES);
	assert_int_equal(message[15], 0);
	assert_int_equal(message[16], 'x');
}

/* Return: the number in a file; @fallback where the kernel has no such file. */
static long number_in(const char *path, long fallback)
{
	FILE *f = fopen(path, "re");
	long n;

	if (!f)
		return fallback;
	assert_int_equal(fscanf(f, "%ld", &n), 1);
	assert_int_equal(fclose(f), 0);
	return n;
}

static bool is_effective(unsigned capability)
{
	struct __user_cap_header_struct header = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	assert_int_equal(syscall(SYS_capget, &header, data), 0);
	return data[capability / 32].effective >> capability % 32 & 1;
}

/* What the kernel allows this process. */
static void here(void **state)
{
	const long paranoid = number_in("/proc/sys/kernel/perf_event_paranoid", 2);
	const long mlock_kib = number_in("/proc/sys/kernel/perf_event_mlock_kb", 516);
	struct rlimit limit;
	struct rights rights;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_MEMLOCK, &limit), 0);
	rights_read(4, &rights);
	assert_int_equal(rights.paranoid, paranoid);
	assert_int_equal(rights.free_bytes, (uint64_t)mlock_kib * 1024 * 4);
	assert_int_equal(rights.memlock,
			 limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur);
	assert_int_equal(rights.perfmon, is_effective(CAP_PERFMON));
	assert_int_equal(rights.sys_admin, is_effective(CAP_SYS_ADMIN));
	assert_int_equal(rights.ipc_lock, is_effective(CAP_IPC_LOCK));
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(checks),
		cmocka_unit_test(a_small_message),
		cmocka_unit_test(here),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
