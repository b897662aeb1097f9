/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/pt/rights.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/resource.h>

#include "util/textfile.h"

#define PARANOID_FILE "/proc/sys/kernel/perf_event_paranoid"
#define MLOCK_FILE    "/proc/sys/kernel/perf_event_mlock_kb"

/* From this level on Debian's kernel refuses all but CAP_SYS_ADMIN. */
#define PARANOID_DEBIAN 3
#define PARANOID_WANTED 2

void rights_read(uint32_t n_cpus, struct rights *ret_rights)
{
	const uint64_t effective = textfile_field("/proc/self/status", "CapEff:", 16);
	struct rlimit limit = { .rlim_cur = 0 };

	(void)getrlimit(RLIMIT_MEMLOCK, &limit);
	*ret_rights = (struct rights){
		.paranoid = (int)textfile_number(PARANOID_FILE, PARANOID_WANTED),
		.perfmon = effective >> CAP_PERFMON & 1,
		.sys_admin = effective >> CAP_SYS_ADMIN & 1,
		.ipc_lock = effective >> CAP_IPC_LOCK & 1,
		.memlock = limit.rlim_cur == RLIM_INFINITY ? UINT64_MAX : limit.rlim_cur,
		.free_bytes = (uint64_t)textfile_number(MLOCK_FILE, 516) * 1024 * n_cpus,
	};
}

struct complaint {
	char *text;
	size_t size, n;
};

_printf_(2, 3) static void add(struct complaint *c, const char *format, ...)
{
	va_list ap;
	int n;

	if (c->n >= c->size)
		return;
	va_start(ap, format);
	n = vsnprintf(c->text + c->n, c->size - c->n, format, ap);
	va_end(ap);
	c->n += n > 0 ? (size_t)n : 0;
}

uint64_t rights_lockable(const struct rights *rights)
{
	return rights->ipc_lock || rights->paranoid < 0 || rights->memlock == UINT64_MAX
		   ? UINT64_MAX
		   : rights->memlock + rights->free_bytes;
}

/* Up to these levels of kernel.perf_event_paranoid no capability is needed. */
static const int paranoid_free[] = {
	[RIGHTS_OF_CHILDREN] = PARANOID_WANTED,
	[RIGHTS_OF_USERS] = 0,
	[RIGHTS_OF_KERNEL] = -1,
};

int rights_check(const struct rights *rights, enum rights_of of, uint64_t bytes,
		 char *reterr_message, size_t message_size)
{
	const bool privileged = rights->perfmon || rights->sys_admin;
	struct complaint c = { .text = reterr_message, .size = message_size };

	if (rights->paranoid >= PARANOID_DEBIAN && !rights->sys_admin)
		add(&c,
		    "kernel.perf_event_paranoid is %d, which lets only CAP_SYS_ADMIN use "
		    "Intel PT: set it to %d (sysctl -w kernel.perf_event_paranoid=%d; "
		    "ptd.service does while it runs). ",
		    rights->paranoid, PARANOID_WANTED, PARANOID_WANTED);
	if (!privileged && rights->paranoid > paranoid_free[of])
		add(&c, "CAP_PERFMON is missing: run ptd as root or as ptd.service does. ");
	if (bytes > rights_lockable(rights))
		add(&c,
		    "%" PRIu64
		    " MiB of rings may not be locked in memory: give ptd CAP_IPC_LOCK, as "
		    "ptd.service does, or raise LimitMEMLOCK= (ulimit -l), or lower AuxSize=. ",
		    (bytes + (1 << 20) - 1) >> 20);
	if (c.n == 0)
		return 0;
	if (c.n <= c.size)
		reterr_message[c.n - 1] = 0; /* the last blank */
	return -EACCES;
}
