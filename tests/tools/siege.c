/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Many hostile clients at the control socket, for a while: siege SOCKET CLIENTS SECONDS
 *
 * Each is a process of its own; if we are root, every other one is user 65534's. It says how many
 * connections each kind of them made.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>

#include "base/base.h"

#define FDS_MAX  250 /* the kernel passes 253 at once */
#define HELD_MAX 8   /* half-open connections of one client */
#define NOBODY   65534

static const char auth[] = "AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n";

struct client {
	struct sockaddr_un address;
	uint64_t random;
	time_t end;
	atomic_ulong *n_connections;
};

static uint64_t next_random(struct client *c)
{
	c->random ^= c->random << 13;
	c->random ^= c->random >> 7;
	c->random ^= c->random << 17;
	return c->random;
}

static bool is_over(const struct client *c)
{
	struct timespec now;

	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec >= c->end;
}

static int dial(struct client *c)
{
	const struct timeval patience = { .tv_usec = 500000 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
	    connect(fd, (const struct sockaddr *)&c->address, sizeof(c->address)) < 0)
		return fd_close(fd);
	(void)atomic_fetch_add(c->n_connections, 1);
	return fd;
}

static bool say(int fd, const void *bytes, size_t size)
{
	return send(fd, bytes, size, MSG_NOSIGNAL) == (ssize_t)size;
}

/* A connection that has authenticated itself. */
static int dial_in(struct client *c)
{
	const int fd = dial(c);

	if (fd >= 0 && say(fd, "", 1) && say(fd, auth, strlen(auth)))
		return fd;
	return fd_close(fd);
}

/* --- messages -------------------------------------------------------------------------------- */

struct message {
	uint8_t bytes[128 << 10];
	size_t size;
};

static void align(struct message *m, size_t to)
{
	while (m->size % to)
		m->bytes[m->size++] = 0;
}

static void put_u32(struct message *m, uint32_t value)
{
	align(m, sizeof(value));
	memcpy(m->bytes + m->size, &value, sizeof(value));
	m->size += sizeof(value);
}

static void put_string(struct message *m, const char *s)
{
	put_u32(m, (uint32_t)strlen(s));
	memcpy(m->bytes + m->size, s, strlen(s) + 1);
	m->size += strlen(s) + 1;
}

static void put_signature(struct message *m, const char *s)
{
	m->bytes[m->size++] = (uint8_t)strlen(s);
	memcpy(m->bytes + m->size, s, strlen(s) + 1);
	m->size += strlen(s) + 1;
}

static void put_field(struct message *m, uint8_t code, const char *type, const char *value)
{
	align(m, 8);
	m->bytes[m->size++] = code;
	put_signature(m, type);
	if (type[0] == 'g')
		put_signature(m, value);
	else
		put_string(m, value);
}

/* A call of @member with an a{sv} of @n_options, or with nothing. */
static void make_call(struct message *m, const char *member, unsigned n_options)
{
	static const uint8_t start[] = { 'l', 1, 0, 1 };
	uint32_t fields_size, body, options, size;
	char key[24];

	memcpy(m->bytes, start, sizeof(start));
	m->size = sizeof(start);
	put_u32(m, 0);
	put_u32(m, 1); /* serial */
	put_u32(m, 0);
	put_field(m, 1, "o", "/org/ptd/Recorder1");
	put_field(m, 2, "s", "org.ptd.Recorder1");
	put_field(m, 3, "s", member);
	if (n_options > 0)
		put_field(m, 8, "g", "a{sv}");
	fields_size = (uint32_t)m->size - 16;
	memcpy(m->bytes + 12, &fields_size, sizeof(fields_size));
	align(m, 8);
	body = (uint32_t)m->size;
	if (n_options > 0) {
		put_u32(m, 0);
		align(m, 8);
		options = (uint32_t)m->size;
		for (unsigned i = 0; i < n_options; i++) {
			align(m, 8);
			(void)snprintf(key, sizeof(key), "option-%u", i);
			put_string(m, key);
			put_signature(m, "u");
			put_u32(m, i);
		}
		size = (uint32_t)m->size - options;
		memcpy(m->bytes + body, &size, sizeof(size));
	}
	size = (uint32_t)m->size - body;
	memcpy(m->bytes + 4, &size, sizeof(size));
}

/* --- what they do ---------------------------------------------------------------------------- */

/* Random bytes, in place of the authentication or after it. */
static void babble(struct client *c)
{
	const int fd = next_random(c) % 2 ? dial(c) : dial_in(c);
	uint64_t bytes[128];

	do
		for (size_t i = 0; i < ARRAY_LEN(bytes); i++)
			bytes[i] = next_random(c);
	while (fd >= 0 && say(fd, bytes, 1 + next_random(c) % sizeof(bytes)) && !is_over(c));
	(void)fd_close(fd);
}

/* A message that claims 100 MiB, and as much of it as is taken; or a line without end. */
static void oversize(struct client *c)
{
	static const uint8_t piece[32 << 10] = { 'A' };
	const int fd = next_random(c) % 4 ? dial_in(c) : dial(c);
	static struct message m;
	const uint32_t claimed = 100 << 20;

	make_call(&m, "GetStatus", 0);
	memcpy(m.bytes + 4, &claimed, sizeof(claimed));
	for (bool ok = fd >= 0 && say(fd, m.bytes, m.size); ok && !is_over(c);)
		ok = say(fd, piece, sizeof(piece));
	(void)fd_close(fd);
}

/* Connections that say nothing, or begin to. */
static void half_open(struct client *c)
{
	static const struct timespec while_held = { .tv_nsec = 300000000 };
	int fds[HELD_MAX];

	for (size_t i = 0; i < HELD_MAX; i++) {
		fds[i] = dial(c);
		if (fds[i] >= 0 && i % 2)
			(void)(say(fds[i], "", 1) && say(fds[i], auth, 1 + i));
	}
	while (!is_over(c) && next_random(c) % 8)
		(void)nanosleep(&while_held, NULL);
	for (size_t i = 0; i < HELD_MAX; i++)
		(void)fd_close(fds[i]);
}

/* As many descriptors as the kernel passes with every byte. */
static void stuff(struct client *c)
{
	const int fd = next_random(c) % 2 ? dial(c) : dial_in(c),
		  null = open("/dev/null", O_RDONLY);
	union {
		struct cmsghdr header;
		uint8_t bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = { .header = { .cmsg_level = SOL_SOCKET,
				  .cmsg_type = SCM_RIGHTS,
				  .cmsg_len = CMSG_LEN(FDS_MAX * sizeof(int)) } };
	struct iovec byte = { (char[]){ 'l' }, 1 };
	struct msghdr m = { .msg_iov = &byte,
			    .msg_iovlen = 1,
			    .msg_control = &control,
			    .msg_controllen = sizeof(control) };

	for (size_t i = 0; i < FDS_MAX; i++)
		memcpy(CMSG_DATA(&control.header) + i * sizeof(int), &null, sizeof(int));
	while (fd >= 0 && null >= 0 && sendmsg(fd, &m, MSG_NOSIGNAL) == 1 && !is_over(c))
		;
	(void)fd_close(null);
	(void)fd_close(fd);
}

/* More options than there can be, in messages that are too long and in such that are not. */
static void many_options(struct client *c)
{
	const int fd = dial_in(c);
	static struct message m;
	char answer[4096];

	make_call(&m, "TakeSnapshot", next_random(c) % 2 ? 3000 : 400);
	for (unsigned i = 0; i < 64 && fd >= 0 && say(fd, m.bytes, m.size) && !is_over(c); i++)
		(void)!recv(fd, answer, sizeof(answer), MSG_DONTWAIT);
	(void)fd_close(fd);
}

/* Calls whose answers it never reads. */
static void deaf(struct client *c)
{
	const int fd = dial_in(c);
	static struct message m;

	make_call(&m, next_random(c) % 2 ? "GetStatus" : "ListSnapshots", 0);
	while (fd >= 0 && say(fd, m.bytes, m.size) && !is_over(c))
		;
	(void)fd_close(fd);
}

static const struct {
	const char *name;
	void (*act)(struct client *client);
} kinds[] = {
	{ "random bytes", babble }, { "oversize", oversize },         { "half-open", half_open },
	{ "descriptors", stuff },   { "many options", many_options }, { "deaf", deaf },
};

static int run(struct client *c, unsigned i)
{
	if (geteuid() == 0 && i / ARRAY_LEN(kinds) % 2 &&
	    (setgid(NOBODY) < 0 || setuid(NOBODY) < 0))
		return 1;
	while (!is_over(c)) {
		kinds[i % ARRAY_LEN(kinds)].act(c);
		/* They besiege ptd, not the machine's CPUs. */
		(void)nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct client client = { .address = { .sun_family = AF_UNIX } };
	struct timespec now;
	atomic_ulong *counts;
	unsigned n;
	int status, failed = 0;

	if (argc != 4 || strlen(argv[1]) >= sizeof(client.address.sun_path)) {
		fputs("Usage: siege SOCKET CLIENTS SECONDS\n", stderr);
		return 2;
	}
	strcpy(client.address.sun_path, argv[1]);
	n = (unsigned)strtoul(argv[2], NULL, 10);
	counts = mmap(NULL, sizeof(*counts) * ARRAY_LEN(kinds), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED)
		return 1;
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	client.end = now.tv_sec + (time_t)strtoul(argv[3], NULL, 10);
	for (unsigned i = 0; i < n; i++) {
		client.random = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
		client.n_connections = &counts[i % ARRAY_LEN(kinds)];
		switch (fork()) {
		case 0:
			_exit(run(&client, i));
		case -1:
			perror("fork");
			failed++;
		}
	}
	while (wait(&status) > 0)
		failed += status != 0;
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		printf("%s%s %lu", i ? ", " : "connections: ", kinds[i].name, counts[i]);
		failed += counts[i] == 0;
	}
	putchar('\n');
	return failed ? 1 : 0;
}
