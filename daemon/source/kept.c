/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/source/kept.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "util/vec.h"

#define MAGIC 0x7470656bu /* "kept" */

/* The beginning of the file. */
struct header {
	uint32_t magic;
	uint32_t version;
	_Atomic uint64_t n_published; /* the state is states[n_published % 2]; 0: there is none */
	struct kept_state states[2];
};

static_assert(sizeof(struct header) <= KEPT_SLOT_SIZE, "the header takes the place of one slot");

enum use {
	FREE,
	USED,
	FREED, /* since the last state was published */
};

struct slot {
	void *at; /* NULL: not mapped */
	enum use use;
};

struct kept {
	int fd;
	struct header *header;
	struct kept_state draft;
	bool is_resumed;
	VEC(struct slot) slots; /* the n-th lies at (n + 1) * KEPT_SLOT_SIZE in the file */
};

static void *map_at(int fd, size_t n)
{
	void *at = mmap(NULL, KEPT_SLOT_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
			(off_t)(n * KEPT_SLOT_SIZE));

	return at == MAP_FAILED ? NULL : at;
}

static int kept_make(int fd, struct kept **ret_kept)
{
	struct kept *k = malloc(sizeof(*k));

	if (!k)
		return -ENOMEM;
	*k = (struct kept){ .fd = fd, .header = map_at(fd, 0) };
	if (!k->header) {
		free(k);
		return -ENOMEM;
	}
	*ret_kept = k;
	return 0;
}

int kept_new(struct kept **ret_kept)
{
	_cleanup_(fd_closep) int fd = memfd_create("ptd-kept", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	if (fd < 0 || ftruncate(fd, KEPT_SLOT_SIZE) < 0 ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return -errno;
	r = kept_make(fd, ret_kept);
	if (r < 0)
		return r;
	fd = -1;
	(*ret_kept)->header->magic = MAGIC;
	(*ret_kept)->header->version = KEPT_VERSION;
	(*ret_kept)->draft.made_ns = clock_ns(CLOCK_MONOTONIC);
	return 0;
}

static bool has_state(const struct header *header)
{
	return header->magic == MAGIC && header->version == KEPT_VERSION &&
	       atomic_load(&header->n_published) > 0;
}

int kept_resume(int fd, struct kept **ret_kept)
{
	_cleanup_(kept_freep) struct kept *k = NULL;
	struct stat st;
	size_t n_slots;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_size < (off_t)KEPT_SLOT_SIZE ||
	    !((unsigned)fcntl(fd, F_GET_SEALS) & F_SEAL_SHRINK))
		return -EBADMSG;
	r = kept_make(fd, &k);
	if (r < 0)
		return r;
	k->fd = -1;
	if (!has_state(k->header))
		return -EBADMSG;
	n_slots = (size_t)st.st_size / KEPT_SLOT_SIZE - 1;
	for (size_t i = 0; r == 0 && i < n_slots; i++)
		r = vec_push(&k->slots, { .use = USED });
	if (r < 0)
		return r;
	k->fd = fd;
	k->draft = k->header->states[atomic_load(&k->header->n_published) % 2];
	k->draft.taken_over_ns = clock_ns(CLOCK_MONOTONIC);
	k->draft.code_lost_bytes += k->draft.code_bytes;
	k->draft.code_bytes = 0;
	k->is_resumed = true;
	*ret_kept = TAKE(k);
	return 0;
}

struct kept *kept_free(struct kept *kept)
{
	if (!kept)
		return NULL;
	(void)munmap(kept->header, KEPT_SLOT_SIZE);
	vec_deinit(&kept->slots);
	(void)fd_close(kept->fd);
	free(kept);
	return NULL;
}

int kept_fd(const struct kept *kept)
{
	return kept->fd;
}

bool kept_is_resumed(const struct kept *kept)
{
	return kept->is_resumed;
}

struct kept_state *kept_draft(struct kept *kept)
{
	return &kept->draft;
}

/* Give back the memory of a slot, which is zeros then. */
static void clear_slot(struct kept *k, size_t i)
{
	if (fallocate(k->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
		      (off_t)((i + 1) * KEPT_SLOT_SIZE), KEPT_SLOT_SIZE) == 0)
		k->slots.items[i].use = FREE;
}

void kept_publish(struct kept *kept)
{
	const uint64_t n = atomic_load(&kept->header->n_published) + 1;

	/* The copy that does not hold is written before the number says that it does. */
	kept->header->states[n % 2] = kept->draft;
	atomic_store(&kept->header->n_published, n);
	for (size_t i = 0; i < kept->slots.n; i++)
		if (kept->slots.items[i].use == FREED)
			clear_slot(kept, i);
}

/* --- slots ------------------------------------------------------------------------------------ */

/* Return: the number of an unused slot, or negative errno. */
static ssize_t find_slot(struct kept *k)
{
	size_t i = 0;
	int r;

	while (i < k->slots.n && k->slots.items[i].use != FREE)
		i++;
	if (i < k->slots.n)
		return (ssize_t)i;
	if (ftruncate(k->fd, (off_t)((i + 2) * KEPT_SLOT_SIZE)) < 0)
		return -errno;
	r = vec_push(&k->slots, { .use = FREE });
	return r < 0 ? r : (ssize_t)i;
}

void *kept_slot_new(struct kept *kept)
{
	struct slot *slot;
	ssize_t i;
	void *at;

	if (!kept) {
		at = mmap(NULL, KEPT_SLOT_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
		return at == MAP_FAILED ? NULL : at;
	}
	i = find_slot(kept);
	if (i < 0)
		return NULL;
	slot = &kept->slots.items[i];
	slot->at = map_at(kept->fd, (size_t)i + 1);
	slot->use = slot->at ? USED : FREE;
	return slot->at;
}

void *kept_slot_free(struct kept *kept, void *slot)
{
	if (!slot)
		return NULL;
	for (size_t i = 0; kept && i < kept->slots.n; i++)
		if (kept->slots.items[i].at == slot)
			kept->slots.items[i] = (struct slot){ .use = FREED };
	(void)munmap(slot, KEPT_SLOT_SIZE);
	return NULL;
}

int kept_slot_next(struct kept *kept, size_t *at, void **ret_slot)
{
	const size_t i = *at;
	struct slot *slot;

	if (i == kept->slots.n)
		return -ENOENT;
	slot = &kept->slots.items[i];
	slot->at = map_at(kept->fd, i + 1);
	if (!slot->at)
		return -ENOMEM;
	*at = i + 1;
	*ret_slot = slot->at;
	return 0;
}
