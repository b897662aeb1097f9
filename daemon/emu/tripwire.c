/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/emu/tripwire.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/clock.h"

int tripwire_init(struct tripwire *tripwire, const char *socket, const char *text)
{
	_cleanup_(freep) char *copy = strdup(text);
	char *rest = copy, *one;
	int r = 0;

	*tripwire = (struct tripwire){ .socket = socket, .text = text };
	if (!copy)
		return -ENOMEM;
	while (r == 0 && (one = strsep(&rest, (char[]){ CONDITION_SEPARATOR, 0 }))) {
		if (tripwire->n_conditions == CONDITIONS_MAX)
			return -EINVAL;
		r = condition_parse(one, &tripwire->conditions[tripwire->n_conditions]);
		if (r == 0)
			tripwire->n_conditions++;
	}
	return r;
}

static bool holds(const struct condition *condition, enum condition_kind kind, uint32_t number)
{
	if (condition->kind != kind)
		return false;
	return condition->number == number ||
	       (condition->number == CONDITION_ANY_STATUS && number != 0);
}

uint32_t tripwire_holds(const struct tripwire *tripwire, enum condition_kind kind, uint32_t number)
{
	if (atomic_load_explicit(&tripwire->is_over, memory_order_relaxed))
		return 0;
	for (uint32_t i = 0; i < tripwire->n_conditions; i++)
		if (holds(&tripwire->conditions[i], kind, number))
			return i + 1;
	return 0;
}

/* Connect to ptctl. Return: the socket, or negative errno. */
static int connect_ptctl(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	const size_t n = strlen(name);
	socklen_t size;
	int fd, r;

	if (n >= sizeof(address.sun_path) - 1)
		return -ENAMETOOLONG;
	memcpy(address.sun_path + 1, name, n);
	size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, size) == 0)
		return fd;
	r = -errno;
	(void)fd_close(fd);
	return r;
}

/* Wait for the answer. Without one the thread goes on. */
static enum condition_answer await_answer(int fd)
{
	const uint64_t end_ns =
	    clock_ns(CLOCK_MONOTONIC) + TRIPWIRE_PATIENCE_MS * UINT64_C(1000000);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t now_ns;
	uint8_t answer;

	/* Signals of the program interrupt poll(). */
	while ((now_ns = clock_ns(CLOCK_MONOTONIC)) < end_ns) {
		if (poll(&p, 1, (int)((end_ns - now_ns) / 1000000) + 1) <= 0)
			continue;
		if (recv(fd, &answer, sizeof(answer), MSG_DONTWAIT) != sizeof(answer))
			break;
		return answer;
	}
	return CONDITION_GO_ON;
}

void tripwire_pull(struct tripwire *tripwire, const struct condition_event *event)
{
	_cleanup_(fd_closep) int fd = -1;

	if (atomic_load(&tripwire->is_over))
		return;
	fd = connect_ptctl(tripwire->socket);
	/* ptctl has ended. */
	if (fd == -ECONNREFUSED ||
	    (fd >= 0 && (send(fd, event, sizeof(*event), MSG_NOSIGNAL) != sizeof(*event) ||
			 await_answer(fd) == CONDITION_OVER)))
		atomic_store(&tripwire->is_over, true);
}
