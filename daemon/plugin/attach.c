/* SPDX-License-Identifier: GPL-2.0-or-later */

#include "daemon/plugin/attach.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define RING_MIN UINT64_C(4096)
#define RING_MAX (UINT64_C(1) << 40)

static bool ring_ok(uint64_t size)
{
	return size >= RING_MIN && size <= RING_MAX && (size & (size - 1)) == 0;
}

/* Shared memory may have any byte, and most bytes are not valid as bool. */
static bool is_bool(const bool *b)
{
	uint8_t byte;

	memcpy(&byte, b, sizeof(byte));
	return byte <= 1;
}

static bool layout_ok(const struct emu_pool_layout *l)
{
	return l->n_cpus >= 1 && l->n_cpus <= EMU_CPUS_MAX && l->n_busy_max >= 1 &&
	       l->n_busy_max <= l->n_cpus && ring_ok(l->aux_size) && ring_ok(l->switch_size) &&
	       ring_ok(l->event_size) && ring_ok(l->task_size) && ring_ok(l->code_size) &&
	       is_bool(&l->return_compression) && is_bool(&l->long_tnt) &&
	       is_bool(&l->timing.mtc) && is_bool(&l->timing.cyc) &&
	       l->timing.mtc_period <= ENCODE_MTC_PERIOD_MAX;
}

static const char *check_header(const struct emu_pool_header *header, uint64_t size)
{
	if (header->magic != EMU_POOL_MAGIC)
		return "the file is no pool of ptd";
	if (header->version != EMU_POOL_VERSION)
		return "the pool is of another version of ptd: use the plugin that came with it";
	if (!layout_ok(&header->layout))
		return "the pool's layout makes no sense";
	if (emu_pool_size(&header->layout) != size)
		return "the pool's size does not fit its layout";
	return NULL;
}

/* The copy cannot be written to by other processes, so what was checked stays valid. */
static int read_pool_header(int fd, struct emu_pool_header *ret_header)
{
	ssize_t n;

	n = pread(fd, ret_header, sizeof(*ret_header), 0);
	if (n < 0)
		return -errno;
	return n == (ssize_t)sizeof(*ret_header) ? 0 : -EBADMSG;
}

int attach_init(struct attach *attach, int fd, const char **reterr_what)
{
	struct emu_pool_header header;
	struct emu_pool *pool;
	const char *what;
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0) {
		*reterr_what = "the descriptor of the pool is not open";
		return -errno;
	}
	if ((uint64_t)st.st_size < emu_page_up(sizeof(*pool))) {
		*reterr_what = "the file is too small to be a pool of ptd";
		return -EBADMSG;
	}
	r = read_pool_header(fd, &header);
	if (r < 0) {
		*reterr_what = "the pool cannot be read";
		return r;
	}
	what = check_header(&header, (uint64_t)st.st_size);
	if (what) {
		*reterr_what = what;
		return -EBADMSG;
	}
	pool = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (pool == MAP_FAILED) {
		*reterr_what = "the pool cannot be mapped";
		return -errno;
	}
	*attach = (struct attach){ .pool = pool, .layout = header.layout, .home = header.home };
	return 0;
}

static bool differs(uint64_t ours, uint64_t theirs)
{
	return ours != 0 && theirs != 0 && ours != theirs;
}

const char *attach_obstacle(const struct attach *attach)
{
	const struct emu_pool_home here = emu_pool_here();

	if (differs(here.pid_ns, attach->home.pid_ns))
		return "it is in another pid namespace than ptd";
	if (differs(here.time_ns, attach->home.time_ns))
		return "it is in another time namespace than ptd";
	return NULL;
}

static bool is_gone(uint32_t tid)
{
	return syscall(SYS_tkill, tid, 0) < 0 && errno == ESRCH;
}

bool attach_lock(_Atomic uint32_t *lock, uint64_t patience_ns)
{
	const uint32_t self = (uint32_t)syscall(SYS_gettid);
	const uint64_t since = attach_now_ns();

	for (;;) {
		uint32_t holder = 0;

		if (atomic_compare_exchange_strong(lock, &holder, self))
			return true;
		if (is_gone(holder) && atomic_compare_exchange_strong(lock, &holder, self))
			return true;
		if (attach_now_ns() - since > patience_ns)
			return false;
		(void)sched_yield();
	}
}

void attach_unlock(_Atomic uint32_t *lock)
{
	atomic_store_explicit(lock, 0, memory_order_release);
}

void attach_put(const struct attach *attach, uint64_t ring_offset, uint64_t ring_size,
		uint64_t head, const void *bytes, size_t size)
{
	uint8_t *ring = attach_at(attach, ring_offset);
	const uint64_t at = head & (ring_size - 1), room = ring_size - at;
	const size_t n = size < room ? size : (size_t)room;

	memcpy(ring + at, bytes, n);
	memcpy(ring, (const uint8_t *)bytes + n, size - n);
}
