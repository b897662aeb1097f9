/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * What a member of the software source's pool may do to ptd and to other members. It asks ptd for
 * the pool, as `ptctl record` does, and then, until it is killed:
 *
 * attack-pool forge PID ADDRESS PATH...: writes records that say that process PID, this process,
 * process 1, and one that is gone run, and have each PATH mapped, and anonymous memory at ADDRESS.
 *
 * attack-pool claim PATH OFFSET: writes records that say that this process has the file mapped,
 * which it may not even see, and runs what is at the offset.
 *
 * attack-pool scribble: changes the header of the pool all the time.
 *
 * attack-pool litter: has the rings of tasks and of code make no sense.
 *
 * attack-pool victim TEXT: has TEXT in executable memory, prints "PID ADDRESS" of that, and waits.
 */

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <systemd/sd-bus.h>
#include <time.h>
#include <unistd.h>

#include "daemon/plugin/lease.h"
#include "ptd/control.h"
#include "tests/lib/controlbus.h"
#include "util/perf/codec.h"

static void rest(void)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
}

/* Return: a descriptor of the pool. */
static int open_pool(void)
{
	sd_bus_message *reply = NULL;
	sd_bus *bus = NULL;
	const char *name;
	int fd, r;

	r = controlbus_open(&bus);
	if (r >= 0)
		r = sd_bus_call_method(bus, NULL, PTD_CONTROL_OBJECT, PTD_CONTROL_INTERFACE,
				       "OpenSource", NULL, &reply, "a{sv}", 0);
	if (r >= 0)
		r = sd_bus_message_read(reply, "sh", &name, &fd);
	if (r < 0)
		errx(1, "cannot get the pool: %s", strerror(-r));
	fd = dup(fd);
	(void)sd_bus_message_unref(reply);
	(void)sd_bus_flush_close_unref(bus);
	return fd;
}

static struct attach attach_pool(int fd)
{
	struct attach attach;
	const char *what;

	if (attach_init(&attach, fd, &what) < 0)
		errx(1, "%s", what);
	return attach;
}

_Noreturn static void be_victim(const char *text)
{
	uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		err(1, "mmap");
	(void)snprintf((char *)page, 4096, "%s", text);
	printf("%d 0x%lx\n", (int)getpid(), (unsigned long)page);
	(void)fflush(stdout);
	for (;;)
		(void)pause();
}

/* --- forge ----------------------------------------------------------------------------------- */

static uint32_t gone(void)
{
	const pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	(void)waitpid(pid, NULL, 0);
	return (uint32_t)pid;
}

static void run_as(const struct attach *attach, uint32_t pid)
{
	struct lease lease = { .attach = attach, .mode = 64, .who = { .pid = pid, .tid = pid } };

	poolrecord_fork(attach, lease.who, 1, 1);
	poolrecord_comm(attach, lease.who, "forged", true);
	if (lease_take(&lease, LEASE_WAIT) != 0)
		return;
	encode_enable(&lease.encode, 0x400000, lease.since_ns);
	encode_disable(&lease.encode);
	lease_give(&lease, true);
}

static void forge_map(const struct attach *attach, uint32_t pid, uint64_t addr, const char *name)
{
	const struct poolrecord_who who = { .pid = pid, .tid = pid };

	poolrecord_mmap(attach, who,
			&(struct record_mmap2){ .addr = addr,
						.len = 4096,
						.prot = PROT_READ | PROT_EXEC,
						.flags = MAP_PRIVATE,
						.name = name });
}

static void forge(const struct attach *attach, uint32_t victim, uint64_t address,
		  char *const *paths)
{
	const uint32_t pids[] = { victim, (uint32_t)getpid(), 1, gone() };

	/* Root owns /proc/PID of such a process. */
	(void)prctl(PR_SET_DUMPABLE, 0);
	for (;;) {
		for (size_t i = 0; i < ARRAY_LEN(pids); i++) {
			run_as(attach, pids[i]);
			forge_map(attach, pids[i], address, "//anon");
			for (size_t k = 0; paths[k]; k++)
				forge_map(attach, pids[i], 0x400000 + 0x1000 * k, paths[k]);
		}
		rest();
	}
}

/* --- claim ----------------------------------------------------------------------------------- */

static void claim(const struct attach *attach, const char *path, uint64_t offset)
{
	const struct poolrecord_who who = { .pid = (uint32_t)getpid(), .tid = (uint32_t)getpid() };

	poolrecord_comm(attach, who, "claimer", true);
	poolrecord_mmap(attach, who,
			&(struct record_mmap2){ .addr = 0x400000,
						.len = 0x10000,
						.prot = PROT_READ | PROT_EXEC,
						.flags = MAP_PRIVATE,
						.name = path });
	for (;;) {
		struct lease lease = { .attach = attach, .mode = 64, .who = who };

		if (lease_take(&lease, LEASE_WAIT) == 0) {
			encode_enable(&lease.encode, 0x400000 + offset, lease.since_ns);
			encode_disable(&lease.encode);
			lease_give(&lease, true);
		}
		rest();
	}
}

/* --- scribble ------------------------------------------------------------------------------- */

static void scribble(const struct attach *attach)
{
	struct emu_pool *pool = attach->pool;
	const struct emu_pool_header good = pool->header;

	for (unsigned i = 0;; i++) {
		struct emu_pool_header bad = good;
		uint8_t *bytes = (uint8_t *)&bad;

		bad.layout.aux_size = UINT64_C(0x4141414141410000);
		if (i % 2)
			bytes[i / 2 % sizeof(bad)] ^= 0x41;
		for (unsigned k = 0; k < 1000; k++) {
			memcpy(&pool->header, &bad, sizeof(bad));
			memcpy(&pool->header, &good, sizeof(good));
		}
		/* So that programs find a header as it is to be, too. */
		if (i % 64 == 0)
			rest();
	}
}

/* --- litter ---------------------------------------------------------------------------------- */

static void litter(const struct attach *attach)
{
	struct emu_pool *pool = attach->pool;

	for (uint64_t i = 1;; i++) {
		memset(attach_at(attach, emu_task_offset(&attach->layout)), (int)i, 4096);
		memset(attach_at(attach, emu_code_offset(&attach->layout)), (int)i, 4096);
		pool->task_head = i % 3 ? pool->task_tail + 64 : i << 40;
		pool->code_head = i % 3 ? pool->code_tail + 64 : i << 40;
		rest();
	}
}

int main(int argc, char **argv)
{
	const char *verb = argc > 1 ? argv[1] : "";
	struct attach attach = attach_pool(open_pool());

	if (strcmp(verb, "victim") == 0 && argc == 3)
		be_victim(argv[2]);
	else if (strcmp(verb, "forge") == 0 && argc >= 4)
		forge(&attach, (uint32_t)strtoul(argv[2], NULL, 0), strtoul(argv[3], NULL, 0),
		      argv + 4);
	else if (strcmp(verb, "claim") == 0 && argc == 4)
		claim(&attach, argv[2], strtoul(argv[3], NULL, 0));
	else if (strcmp(verb, "scribble") == 0 && argc == 2)
		scribble(&attach);
	else if (strcmp(verb, "litter") == 0 && argc == 2)
		litter(&attach);
	errx(2, "usage: attack-pool victim TEXT | forge PID ADDRESS PATH... | claim PATH OFFSET | "
		"scribble | litter");
}
