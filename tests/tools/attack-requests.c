/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * attack-requests COUNT DIRECTORY PID ID PATH...: asks ptd for everything that it can be asked
 * for.
 *
 * It makes COUNT requests, of every method in turn, with arguments that mean what is not the
 * caller's: the process PID, the snapshot ID, the PATHs. All that comes back is written into the
 * directory: answers and errors, what can be read from descriptors, and files of directories. At
 * the end it prints a line for each method: how many requests there were, and how many were
 * granted.
 */

#include <dirent.h>
#include <err.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#include "base/base.h"
#include "ptd/control.h"
#include "tests/lib/controlbus.h"

/* Own snapshots take long: there are fewer of them. */
#define OWN_PART 4u

/* Requests over one connection. */
#define A_CONNECTION 50u

static FILE *answers; /* what came back */
static uint64_t n_requests;
static uint32_t pid;
static const char *ids[6];
static char *const *paths;
static size_t n_paths;

static const char *const formats[] = {
	"text",     "calls",  "functions", "summary",          "addresses", "html",
	"sideband", "stacks", "fxt",       "../../etc/passwd", "crash",     "collapsed"
};

static const char *one_id(void)
{
	return ids[n_requests / 7 % ARRAY_LEN(ids)];
}

static const char *one_path(void)
{
	return paths[n_requests / 5 % n_paths];
}

/* --- what comes back ------------------------------------------------------------------------- */

/* What does not come within a while does not count. */
static void keep_bytes(int fd, FILE *to)
{
	struct pollfd wanted = { .fd = fd, .events = POLLIN };
	static char bytes[1 << 16];
	ssize_t n;

	while (poll(&wanted, 1, 20000) > 0 && (n = read(fd, bytes, sizeof(bytes))) > 0)
		(void)fwrite(bytes, 1, (size_t)n, to);
}

/* A snapshot's directory, with the first files of it. */
static void keep_directory(int fd)
{
	DIR *dir = fdopendir(dup(fd));
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		const int file = openat(fd, entry->d_name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

		fprintf(answers, "file %s\n", entry->d_name);
		if (file >= 0)
			keep_bytes(file, answers);
		(void)fd_close(file);
	}
	if (dir)
		(void)closedir(dir);
}

/* All of a pool, now and then, since it is large: the next one takes its place. */
static void keep_pool(int fd)
{
	static char bytes[1 << 20];
	static unsigned n_pools;
	FILE *pool = NULL;
	off_t at = 0;
	ssize_t n;

	if (n_pools++ % 100 != 0)
		return;
	pool = fopen("pool", "we");
	if (!pool)
		err(1, "pool");
	while ((n = pread(fd, bytes, sizeof(bytes), at)) > 0) {
		(void)fwrite(bytes, 1, (size_t)n, pool);
		at += n;
	}
	(void)fclose(pool);
}

static void keep_fd(int fd)
{
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return;
	if (S_ISDIR(st.st_mode))
		keep_directory(fd);
	else if (S_ISFIFO(st.st_mode))
		keep_bytes(fd, answers);
	else
		keep_pool(fd);
}

/* Keep the descriptor that is behind @before, and a string if there is one there. */
static void keep_fds(sd_bus_message *reply, const char **ret_id)
{
	const char *signature = sd_bus_message_get_signature(reply, true);
	int fd = -1, r = 0;

	*ret_id = NULL;
	if (strcmp(signature, "sh") == 0)
		r = sd_bus_message_read(reply, "sh", ret_id, &fd);
	else if (strcmp(signature, "h") == 0)
		r = sd_bus_message_read(reply, "h", &fd);
	if (r >= 0)
		keep_fd(fd);
}

/* --- requests -------------------------------------------------------------------------------- */

struct method {
	const char *name;
	const char *types; /* s: an id, a path or a format; u: a number; b; o: options */
	uint64_t n_requests, n_granted;
};

static struct method methods[] = {
	{ .name = "GetStatus", .types = "" },       { .name = "OpenSource", .types = "o" },
	{ .name = "Pause", .types = "" },           { .name = "Resume", .types = "" },
	{ .name = "TakeSnapshot", .types = "o" },   { .name = "WaitSnapshot", .types = "s" },
	{ .name = "TakeOwn", .types = "fo" },       { .name = "WaitOwn", .types = "s" },
	{ .name = "ListSnapshots", .types = "" },   { .name = "OpenSnapshot", .types = "s" },
	{ .name = "RemoveSnapshot", .types = "s" }, { .name = "KeepSnapshot", .types = "sb" },
	{ .name = "AddTrigger", .types = "to" },    { .name = "RemoveTrigger", .types = "u" },
	{ .name = "ListTriggers", .types = "" },    { .name = "Reload", .types = "" },
};

static int append_option(sd_bus_message *m, const char *key, const char *type, const void *value)
{
	int r;

	r = sd_bus_message_open_container(m, 'e', "sv");
	if (r >= 0)
		r = sd_bus_message_append_basic(m, 's', key);
	if (r >= 0)
		r = sd_bus_message_open_container(m, 'v', type);
	if (r >= 0)
		r = sd_bus_message_append_basic(m, type[0], value);
	if (r >= 0)
		r = sd_bus_message_close_container(m);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

/* Some requests name the other's process, some everything, some nothing. */
static int append_options(sd_bus_message *m, const char *method)
{
	static const uint32_t zero;
	static const uint64_t last = 20000;
	const unsigned which = n_requests / 3 % 5;
	int r;

	r = sd_bus_message_open_container(m, 'a', "{sv}");
	if (r >= 0 && which == 1)
		r = append_option(m, "pid", "u", &pid);
	if (r >= 0 && which == 2)
		r = append_option(m, "pid", "u", &zero);
	if (r >= 0 && which == 3)
		r = append_option(m, "cgroup", "s", one_path());
	if (r >= 0 && strcmp(method, "TakeOwn") == 0)
		r = append_option(m, "last", "t", &last);
	return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append(sd_bus_message *m, const struct method *method, char type)
{
	char text[4096];

	switch (type) {
	case 's':
		return sd_bus_message_append(m, "s", n_requests % 9 ? one_id() : one_path());
	case 'f':
		return sd_bus_message_append(m, "s", formats[n_requests % ARRAY_LEN(formats)]);
	case 't':
		(void)snprintf(text, sizeof(text), "enter:main@%s", one_path());
		return sd_bus_message_append(m, "s", text);
	case 'u':
		return sd_bus_message_append(m, "u", (uint32_t)(n_requests % 3));
	case 'b':
		return sd_bus_message_append(m, "b", (int)(n_requests % 2));
	default:
		return append_options(m, method->name);
	}
}

/*
 * @ret_id: what the answer calls the caller's own job; the caller frees it
 *
 * Return: whether the connection is still there. If not, the request does not count.
 */
static bool call(sd_bus *bus, struct method *method, const char *wanted, char **ret_id)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	sd_bus_message *m = NULL, *reply = NULL;
	const char *id;
	bool connected;
	int r;

	*ret_id = NULL;
	r = sd_bus_message_new_method_call(bus, &m, NULL, PTD_CONTROL_OBJECT, PTD_CONTROL_INTERFACE,
					   method->name);
	if (r >= 0 && wanted)
		r = sd_bus_message_append(m, "s", wanted);
	for (const char *type = method->types; r >= 0 && !wanted && *type; type++)
		r = append(m, method, *type);
	if (r < 0)
		errx(1, "%s: %s", method->name, strerror(-r));
	r = sd_bus_call(bus, m, UINT64_C(30000000), &error, &reply);
	fprintf(answers, "%s: %s %s\n", method->name, r < 0 ? error.name : "granted",
		r < 0 ? error.message : "");
	if (r >= 0) {
		method->n_granted++;
		(void)sd_bus_message_dump(reply, answers, SD_BUS_MESSAGE_DUMP_WITH_HEADER);
		(void)sd_bus_message_rewind(reply, true);
		keep_fds(reply, &id);
		*ret_id = id ? strdup(id) : NULL;
	}
	connected = r >= 0 || strncmp(error.name, "System.Error.", strlen("System.Error.")) != 0;
	method->n_requests += connected;
	n_requests += connected;
	sd_bus_error_free(&error);
	(void)sd_bus_message_unref(m);
	(void)sd_bus_message_unref(reply);
	return connected;
}

static sd_bus *connect_ptd(void)
{
	sd_bus *bus;
	const int r = controlbus_open(&bus);

	if (r < 0)
		errx(1, "cannot connect to ptd: %s", strerror(-r));
	return bus;
}

static struct method *find_method(const char *name)
{
	size_t i = 0;

	while (strcmp(methods[i].name, name) != 0)
		i++;
	return &methods[i];
}

int main(int argc, char **argv)
{
	const struct method *own = find_method("TakeOwn");
	uint64_t count, next = 0;

	if (argc < 6)
		errx(2, "Usage: attack-requests COUNT DIRECTORY PID ID PATH...");
	count = strtoull(argv[1], NULL, 10);
	pid = (uint32_t)strtoul(argv[3], NULL, 10);
	paths = argv + 5;
	n_paths = (size_t)argc - 5;
	memcpy(ids, (const char *[]){ argv[4], "latest", "", "../store", "1", argv[4] },
	       sizeof(ids));
	if (chdir(argv[2]) < 0 || !(answers = fopen("answers", "we")))
		err(1, "%s", argv[2]);
	while (n_requests < count) {
		sd_bus *bus = connect_ptd();

		bool connected = true;

		/* Who stays for too long is cut off. */
		for (unsigned i = 0; connected && i < A_CONNECTION && n_requests < count; i++) {
			struct method *method = &methods[next++ % ARRAY_LEN(methods)];
			char *id, *none = NULL;

			if (method == own && next / ARRAY_LEN(methods) % OWN_PART != 0)
				continue;
			connected = call(bus, method, NULL, &id);
			if (id && method == own)
				connected = call(bus, find_method("WaitOwn"), id, &none);
			free(none);
			free(id);
		}
		(void)sd_bus_flush_close_unref(bus);
	}
	if (fclose(answers) != 0)
		err(1, "answers");
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		printf("%s %llu %llu\n", methods[i].name, (unsigned long long)methods[i].n_requests,
		       (unsigned long long)methods[i].n_granted);
	return 0;
}
