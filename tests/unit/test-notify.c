/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/base.h"
#include "daemon/control/recorder.h"
#include "daemon/notify.h"

static int manager_fd = -1;

/* The service manager's socket, with a name the kernel picks. */
static int listen_as_manager(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	socklen_t size = sizeof(address);
	char name[sizeof(address.sun_path) + 1];

	(void)state;
	manager_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (manager_fd < 0 ||
	    bind(manager_fd, (struct sockaddr *)&address, sizeof(sa_family_t)) < 0 ||
	    getsockname(manager_fd, (struct sockaddr *)&address, &size) < 0)
		return -1;
	(void)snprintf(name, sizeof(name), "@%.*s",
		       (int)(size - offsetof(struct sockaddr_un, sun_path) - 1),
		       address.sun_path + 1);
	return setenv("NOTIFY_SOCKET", name, 1);
}

static int stop_listening(void **state)
{
	(void)state;
	manager_fd = fd_close(manager_fd);
	return unsetenv("NOTIFY_SOCKET");
}

/* What the manager has been told since the last call; "" if nothing. */
static const char *told(void)
{
	static char message[1024];
	const ssize_t n = recv(manager_fd, message, sizeof(message) - 1, 0);

	assert_true(n >= 0 || errno == EAGAIN);
	message[n > 0 ? n : 0] = 0;
	return message;
}

static void what_it_does(void **state)
{
	static const struct {
		struct recorder_status status;
		const char *text;
	} rows[] = {
		{ { .source = "emu", .n_cpus = 4 },
		  "STATUS=Ready, nothing is being recorded (emu, 4 CPUs)." },
		{ { .source = "emu", .n_cpus = 4, .n_objects = 3, .sideband_bytes = 7 }, "" },
		{ { .source = "emu", .n_cpus = 4, .recording = true },
		  "STATUS=Recording (emu, 4 CPUs)." },
		{ { .source = "emu", .n_cpus = 4, .recording = true }, "" },
		{ { .source = "emu", .n_cpus = 4, .recording = true, .n_pending = 1 },
		  "STATUS=Recording (emu, 4 CPUs). Writing a snapshot." },
		{ { .source = "emu", .n_cpus = 4, .n_pending = 9, .sideband_lost = UINT64_MAX },
		  "STATUS=Ready, nothing is being recorded (emu, 4 CPUs). Writing a snapshot, 8 "
		  "more wait. 18446744073709551615 task records were lost." },
	};
	struct notify n = {};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  row %zu\n", i);
		notify_status(&n, &rows[i].status);
		assert_string_equal(told(), rows[i].text);
	}
}

static void its_life(void **state)
{
	const struct recorder_status idle = { .source = "emu", .n_cpus = 1 };
	struct recorder_status busy = { .source = "emu", .n_cpus = 1, .recording = true };
	unsigned long long usec;
	struct notify n = {};

	(void)state;
	notify_ready(&n, &idle);
	assert_string_equal(told(),
			    "READY=1\nSTATUS=Ready, nothing is being recorded (emu, 1 CPU).");
	notify_status(&n, &idle);
	assert_string_equal(told(), "");

	notify_reloading();
	assert_int_equal(sscanf(told(), "RELOADING=1\nMONOTONIC_USEC=%llu", &usec), 1);
	assert_in_range(usec, 1, UINT64_MAX);
	/* Ready is said in any case. */
	notify_ready(&n, &idle);
	assert_string_equal(told(),
			    "READY=1\nSTATUS=Ready, nothing is being recorded (emu, 1 CPU).");

	notify_stopping(&n);
	assert_string_equal(told(), "STOPPING=1\nSTATUS=Stopping.");
	notify_status(&n, &busy);
	assert_string_equal(told(), "");
}

static void no_manager(void **state)
{
	const struct recorder_status idle = { .source = "emu", .n_cpus = 1 };
	struct notify n = {};

	(void)state;
	notify_ready(&n, &idle);
	notify_reloading();
	notify_stopping(&n);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_it_does, listen_as_manager, stop_listening),
		cmocka_unit_test_setup_teardown(its_life, listen_as_manager, stop_listening),
		cmocka_unit_test(no_manager),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
