/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>

#include "daemon/config/config.h"
#include "daemon/evidence.h"
#include "daemon/objects/objectstore.h"
#include "daemon/retention.h"
#include "tests/lib/failing.h"
#include "tests/lib/tempdir.h"

#define MIB ((uint64_t)1 << 20)

/* MaxUse= of which snapshots may take so many MiB. */
#define MAX_USE(n_mib) ((n_mib)*MIB / (RETENTION_COPIES_PART - 1) * RETENTION_COPIES_PART)

struct fixture {
	char dir[TEMPDIR_SIZE]; /* a file system of its own, of 16 MiB and 100 inodes, if it may */
	bool mounted;
	struct retention retention;
	_Atomic uint64_t n_removed;
	struct evidence evidence;
	uint64_t to_evict, evict_least; /* what was asked for last */
	uint64_t evict;                 /* what is answered */
};

/* In a namespace of our own, which ends with us. */
static bool mount_small(const char *dir)
{
	static int r = 1;

	if (r > 0)
		r = unshare(CLONE_NEWNS) == 0 &&
			    mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0
			? 0
			: -errno;
	return r == 0 && mount("room", dir, "tmpfs", 0, "size=16m,nr_inodes=100") == 0;
}

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	tempdir_make("room", f->dir);
	f->mounted = mount_small(f->dir);
	f->retention.limits = (struct spool_limits){ .max_use = UINT64_MAX };
	f->retention.n_removed = &f->n_removed;
	f->retention.evidence = &f->evidence;
	evidence_init(&f->evidence);
	assert_int_equal(spool_new(f->dir, &f->retention.spool), 0);
	assert_int_equal(objectstore_new(spool_store_fd(f->retention.spool), &f->retention.limits,
					 "/dev/null", &f->retention.store),
			 0);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	(void)objectstore_free(f->retention.store);
	evidence_deinit(&f->evidence);
	(void)spool_free(f->retention.spool);
	if (f->mounted)
		(void)umount(f->dir);
	tempdir_remove(f->dir);
	free(f);
	return 0;
}

static bool exists(const struct fixture *f, const char *path)
{
	char whole[128];

	(void)snprintf(whole, sizeof(whole), "%s/%s", f->dir, path);
	return access(whole, F_OK) == 0;
}

static void limits(void **state)
{
	struct fixture *f = *state;
	struct config config;
	struct diskuse_amount capacity;

	assert_int_equal(spool_capacity(f->retention.spool, &capacity), 0);
	assert_true(capacity.bytes > 0);
	config_init(&config);
	assert_int_equal(retention_set_limits(&f->retention, &config), 0);
	assert_int_equal(f->retention.limits.max_use, capacity.bytes / 100 * 10);
	assert_int_equal(f->retention.limits.keep_free, capacity.bytes / 100 * 15);
	config.max_use = (struct config_limit){ .percent = 100 };
	config.keep_free = (struct config_limit){ .percent = 1 };
	assert_int_equal(retention_set_limits(&f->retention, &config), 0);
	assert_int_equal(f->retention.limits.max_use, capacity.bytes / 100 * 100);
	assert_int_equal(f->retention.limits.keep_free, capacity.bytes / 100);
	config.max_use = (struct config_limit){ .bytes = 7 };
	config.keep_free = (struct config_limit){ .bytes = 0 };
	assert_int_equal(retention_set_limits(&f->retention, &config), 0);
	assert_int_equal(f->retention.limits.max_use, 7);
	assert_int_equal(f->retention.limits.keep_free, 0);
}

/* Inodes are left free in the same proportion as bytes. */
static void limits_of_inodes(void **state)
{
	struct fixture *f = *state;
	struct config config;

	if (!f->mounted)
		skip();
	config_init(&config);
	config.keep_free = (struct config_limit){ .percent = 50 };
	assert_int_equal(retention_set_limits(&f->retention, &config), 0);
	assert_in_range(f->retention.limits.keep_free_inodes, 48, 50);
	config.keep_free = (struct config_limit){ .bytes = 4 * MIB };
	assert_int_equal(retention_set_limits(&f->retention, &config), 0);
	assert_int_equal(f->retention.limits.keep_free_inodes, 25);
	config.keep_free = (struct config_limit){ .bytes = 1000 * MIB };
	assert_int_equal(retention_set_limits(&f->retention, &config), 0);
	assert_int_equal(f->retention.limits.keep_free_inodes, 100);
}

static uint64_t evict(uint64_t bytes, uint64_t least, void *userdata)
{
	struct fixture *f = userdata;

	f->to_evict = bytes;
	f->evict_least = least;
	return f->evict;
}

/* A snapshot with a file of so many MiB, or a link to another one's. */
static void put_snapshot(const struct fixture *f, const char *id, size_t n_mib, const char *link_to)
{
	char path[64], whole[192], other[192];
	uint8_t *bytes = calloc(n_mib + 1, MIB);

	(void)snprintf(path, sizeof(path), "snapshots/%s/manifest", id);
	tempdir_put_text(f->dir, path, "x=y\n");
	(void)snprintf(path, sizeof(path), "snapshots/%s/data", id);
	(void)snprintf(whole, sizeof(whole), "%s/%s", f->dir, path);
	(void)snprintf(other, sizeof(other), "%s/%s", f->dir, link_to ? link_to : "");
	if (link_to)
		assert_int_equal(link(other, whole), 0);
	else
		tempdir_put(f->dir, path, bytes, n_mib * MIB);
	free(bytes);
}

/* Which of A-1, B-2, C-3 and D-4 are there, as a string of their letters. */
static const char *there(const struct fixture *f)
{
	static const char *const ids[] = { "A-1", "B-2", "C-3", "D-4" };
	static char letters[5];
	size_t n = 0;
	char path[64];

	for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
		(void)snprintf(path, sizeof(path), "snapshots/%s/manifest", ids[i]);
		if (exists(f, path))
			letters[n++] = ids[i][0];
	}
	letters[n] = 0;
	return letters;
}

static void put_snapshots(const struct fixture *f)
{
	put_snapshot(f, "A-1", 3, NULL);
	put_snapshot(f, "B-2", 3, NULL);
	put_snapshot(f, "C-3", 0, "snapshots/B-2/data");
	put_snapshot(f, "D-4", 3, NULL);
}

static void remove_all(const struct fixture *f)
{
	static const char *const ids[] = { "A-1", "B-2", "C-3", "D-4" };

	for (size_t i = 0; i < ARRAY_LEN(ids); i++)
		(void)!spool_remove(f->retention.spool, ids[i]);
	assert_string_equal(there(f), "");
}

/* Of 16 MiB some 7 are free, and 3 more without A, 3 more only without B and C. */
static void room_for_another(void **state)
{
	static const struct {
		uint64_t n_mib, inodes, evict;
		int error;
		const char *left;
		const char *kept;
		uint64_t to_evict, evict_least; /* in MiB, rounded up */
	} rows[] = {
		{ 6, 1, 0, 0, "ABCD", NULL, 0, 0 },
		{ 20, 1, 0, -ENOSPC, "ABCD", NULL, 14, 8 },
		{ 9, 1, 0, 0, "BCD", NULL, 3, 0 },
		{ 9, 1, 0, 0, "AD", "A-1", 3, 0 },
		{ 12, 1, 0, 0, "D", NULL, 6, 0 },
		{ 12, 1, 0, -ENOSPC, "ABCD", "A-1", 6, 3 },
		{ 12, 1, 0, -ENOSPC, "ABCD", "C-3", 6, 3 },
		/* The newest always stays. */
		{ 14, 1, 0, -ENOSPC, "ABCD", NULL, 8, 2 },
		{ 14, 1, 2 * MIB, 0, "D", NULL, 8, 2 },
		/* A and its two files. */
		{ 1, 83, 0, 0, "ABCD", NULL, 0, 0 },
		{ 1, 86, 0, 0, "BCD", NULL, 0, 0 },
		{ 1, 99, 0, -ENOSPC, "ABCD", NULL, 0, 0 },
	};
	struct fixture *f = *state;

	if (!f->mounted)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct diskuse_amount needed = { rows[i].n_mib * MIB, rows[i].inodes };

		print_message("  row %zu\n", i);
		put_snapshots(f);
		f->to_evict = f->evict_least = 0;
		f->evict = rows[i].evict;
		if (rows[i].kept)
			assert_int_equal(spool_keep(f->retention.spool, rows[i].kept, true, 0), 0);
		f->n_removed = 0;
		assert_int_equal(retention_make_room(&f->retention, &needed, 0, evict, f),
				 rows[i].error);
		assert_string_equal(there(f), rows[i].left);
		assert_int_equal(f->n_removed, 4 - strlen(rows[i].left));
		assert_int_equal((f->to_evict + MIB - 1) / MIB, rows[i].to_evict);
		assert_int_equal((f->evict_least + MIB - 1) / MIB, rows[i].evict_least);
		if (rows[i].kept)
			assert_int_equal(spool_keep(f->retention.spool, rows[i].kept, false, 0), 0);
		remove_all(f);
	}
}

/* For what is not worth that anything is removed. */
static void room_that_is_there(void **state)
{
	static const struct {
		struct spool_limits limits;
		struct diskuse_amount needed;
		bool expected;
	} rows[] = {
		{ {}, { MIB, 1 }, true },
		{ {}, { 100 * MIB, 1 }, false },
		{ { .keep_free = 1 * MIB }, { MIB, 1 }, true },
		{ { .keep_free = 100 * MIB }, { MIB, 1 }, false },
		{ {}, { MIB, 100 }, false },
		{ { .keep_free_inodes = 100 }, { MIB, 1 }, false },
	};
	struct fixture *f = *state;

	if (!f->mounted)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  row %zu\n", i);
		put_snapshots(f);
		f->retention.limits = rows[i].limits;
		assert_int_equal(retention_has_room(&f->retention, &rows[i].needed),
				 rows[i].expected);
		assert_string_equal(there(f), "ABCD");
		remove_all(f);
	}
}

/* How much of that is a user's part is what a snapshot may have of his. */
static void what_snapshots_may_take(void **state)
{
	const struct diskuse_amount needed = { 9 * MIB, 1 };
	struct fixture *f = *state;
	struct share others;
	uint64_t max, taken;

	if (!f->mounted)
		skip();
	assert_int_equal(retention_set_room(&f->retention), 0);
	assert_int_equal(retention_get_use(&f->retention, &max, &taken, &others), 0);
	assert_int_equal(max / MIB, 16); /* the disk */
	assert_int_equal(taken, 0);
	put_snapshots(f);
	assert_int_equal(retention_set_room(&f->retention), 0);
	f->retention.limits.max_use = MAX_USE(7);
	assert_int_equal(retention_get_use(&f->retention, &max, &taken, &others), 0);
	assert_int_equal(max, 7 * MIB);
	assert_int_equal(taken / MIB, 9);
	f->retention.limits.max_use = UINT64_MAX;
	assert_int_equal(retention_make_room(&f->retention, &needed, 0, evict, f), 0);
	assert_int_equal(retention_get_use(&f->retention, &max, &taken, &others), 0);
	assert_int_equal(max / MIB, 16);
	assert_int_equal(taken / MIB, 6);
	assert_int_equal(others.taken, 0);
	remove_all(f);

	/* Code that is in no file is in each snapshot's own files, and its manifest says whose. */
	put_snapshots(f);
	tempdir_put_text(f->dir, "snapshots/A-1/manifest", "code_bytes.1001=70\n");
	tempdir_put_text(f->dir, "snapshots/C-3/manifest",
			 "x=y\ncode_bytes.1001=5\ncode_bytes.1002=300\n");
	assert_int_equal(retention_set_room(&f->retention), 0);
	assert_int_equal(retention_get_use(&f->retention, &max, &taken, &others), 0);
	assert_int_equal(share_taken(&others, 1001), 75);
	assert_int_equal(share_taken(&others, 1002), 300);
	assert_int_equal(spool_remove(f->retention.spool, "A-1"), 0);
	assert_int_equal(retention_set_room(&f->retention), 0);
	assert_int_equal(retention_get_use(&f->retention, &max, &taken, &others), 0);
	assert_int_equal(share_taken(&others, 1001), 5);
	remove_all(f);
}

/* What is too much goes, the oldest first; what is shared is counted once. */
static void limits_are_kept(void **state)
{
	static const struct {
		struct spool_limits limits;
		uint64_t evict;
		const char *left;
		const char *kept;
	} rows[] = {
		{ { .max_use = UINT64_MAX }, 0, "ABCD", NULL },
		{ { .max_use = MAX_USE(10) }, 0, "ABCD", NULL },
		{ { .max_use = MAX_USE(9) }, 0, "BCD", NULL },
		{ { .max_use = MAX_USE(7) }, 0, "BCD", NULL },
		{ { .max_use = MAX_USE(5) }, 0, "D", NULL },
		{ { .max_use = MAX_USE(5) }, 0, "BD", "B-2" },
		{ { .max_use = 0 }, 0, "D", NULL },
		{ { .max_use = 0 }, 0, "AD", "A-1" },
		/* Copies that no snapshot has go first. */
		{ { .max_use = MAX_USE(9) }, 1, "BCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free = 6 * MIB }, 0, "ABCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free = 8 * MIB }, 0, "BCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free_inodes = 83 }, 0, "ABCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free_inodes = 86 }, 0, "BCD", NULL },
		/* D has 3 MiB and 3 inodes: no more goes, however little others leave. */
		{ { .max_use = UINT64_MAX, .keep_free = 11 * MIB }, 0, "BCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free = 100 * MIB }, 0, "BCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free = 100 * MIB }, 0, "AD", "A-1" },
		{ { .max_use = UINT64_MAX, .keep_free_inodes = 89 }, 0, "BCD", NULL },
		{ { .max_use = UINT64_MAX, .keep_free_inodes = 100 }, 0, "BCD", NULL },
	};
	const uid_t root = 0;
	struct fixture *f = *state;

	if (!f->mounted)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  row %zu\n", i);
		put_snapshots(f);
		f->to_evict = 0;
		f->evict = rows[i].evict;
		f->retention.limits = rows[i].limits;
		if (rows[i].kept)
			assert_int_equal(spool_keep(f->retention.spool, rows[i].kept, true, 0), 0);
		f->n_removed = 0;
		assert_int_equal(retention_enforce(&f->retention, &root, evict, f), 0);
		assert_string_equal(there(f), rows[i].left);
		assert_int_equal(f->n_removed, 4 - strlen(rows[i].left));
		if (rows[i].kept)
			assert_int_equal(spool_keep(f->retention.spool, rows[i].kept, false, 0), 0);
		remove_all(f);
	}
}

/* Snapshots of the users that @uids names by digits, oldest first, of 2 MiB each. */
static void put_snapshots_of(const struct fixture *f, const char *uids)
{
	for (size_t i = 0; uids[i]; i++) {
		char id[32], path[64], text[64];

		(void)snprintf(id, sizeof(id), "%c-%zu", (char)('A' + i), i + 1);
		put_snapshot(f, id, 2, NULL);
		(void)snprintf(path, sizeof(path), "snapshots/%s/manifest", id);
		(void)snprintf(text, sizeof(text), "taken_by_uid=%c\n", uids[i]);
		tempdir_put_text(f->dir, path, text);
	}
}

/* Return: the letters of those that are left, which are removed. */
static const char *take_all(const struct fixture *f)
{
	static char letters[8];
	size_t n = 0;

	for (size_t i = 0; i < 7; i++) {
		char id[32];

		(void)snprintf(id, sizeof(id), "%c-%zu", (char)('A' + i), i + 1);
		(void)!spool_keep(f->retention.spool, id, false, 0);
		if (spool_remove(f->retention.spool, id) == 0)
			letters[n++] = id[0];
	}
	letters[n] = 0;
	return letters;
}

/* Who fills the disk, or has the settings read again, removes nothing by it. */
static void full_disk(void **state)
{
	struct fixture *f = *state;

	if (!f->mounted)
		skip();
	put_snapshots(f);
	f->evict = 0;
	f->retention.limits = (struct spool_limits){ .max_use = UINT64_MAX,
						     .keep_free = 100 * MIB,
						     .keep_free_inodes = 100 };
	assert_int_equal(retention_enforce(&f->retention, NULL, evict, f), 0);
	assert_int_equal(retention_expire(&f->retention), 0);
	assert_string_equal(there(f), "ABCD");
	remove_all(f);
	/* Nor does one who takes snapshots, of what others have. */
	put_snapshots_of(f, "020001");
	assert_int_equal(retention_enforce(&f->retention, &(uid_t){ 1 }, evict, f), 0);
	assert_string_equal(take_all(f), "ABCDEF");
	put_snapshots_of(f, "010101");
	assert_int_equal(retention_enforce(&f->retention, &(uid_t){ 1 }, evict, f), 0);
	assert_string_equal(take_all(f), "ACDEF");
	put_snapshots_of(f, "010100");
	assert_int_equal(retention_enforce(&f->retention, &(uid_t){ 0 }, evict, f), 0);
	assert_string_equal(take_all(f), "ACDEF");
}

/* Who has more than his share gives, however new what he has is; root gives before users give of
 * their parts. */
static void shares(void **state)
{
	static const struct {
		const char *uids;
		uint64_t max_mib;
		const char *left;
		const char *kept;
		uid_t given_by; /* 0: nobody gave of more than his share */
		uint64_t n_given;
	} rows[] = {
		/* Of one user, and of root: the oldest. */
		{ "111111", 9, "CDEF", NULL, 1, 2 },
		{ "000000", 9, "CDEF", NULL, 0, 0 },
		/* 1 asks again and again: his own go, down to his part. */
		{ "021111", 9, "ABEF", NULL, 1, 2 },
		{ "223111", 9, "BCEF", NULL, 1, 1 },
		/* Root is the first beyond that. */
		{ "120003", 9, "ABEF", NULL, 0, 0 },
		/* The more users, the smaller the parts. */
		{ "123456", 9, "CDEF", NULL, 1, 1 },
		/* The newest is more than its user's part: nothing of others goes for it. */
		{ "0001", 7, "ABCD", NULL, 0, 0 },
		{ "0011", 7, "ABD", NULL, 1, 1 },
		/* What is kept, and the newest, stays, and counts for its user. */
		{ "011111", 9, "ACEF", "C-3", 1, 2 },
		{ "111112", 3, "F", NULL, 1, 5 },
		{ "222221", 3, "F", NULL, 2, 5 },
	};
	struct fixture *f = *state;
	struct share share;

	if (!f->mounted)
		skip();
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		print_message("  row %zu\n", i);
		put_snapshots_of(f, rows[i].uids);
		if (rows[i].kept)
			assert_int_equal(spool_keep(f->retention.spool, rows[i].kept, true, 0), 0);
		f->evict = 0;
		f->evidence.share = (struct share){};
		f->retention.limits = (struct spool_limits){ .max_use = MAX_USE(rows[i].max_mib) };
		assert_int_equal(retention_enforce(&f->retention, NULL, evict, f), 0);
		assert_string_equal(take_all(f), rows[i].left);
		evidence_get_share(&f->evidence, &share);
		for (size_t k = 0; k < share.n_users; k++)
			if (share.users[k].uid == rows[i].given_by)
				assert_int_equal(share_n_refused(&share.users[k]), rows[i].n_given);
		assert_int_equal(share.n_users > 0, rows[i].n_given > 0);
	}
}

/* All snapshots have 8 of 14 MiB in common, half of them for each user: 1 has 6, and 0 has 8. */
static void what_is_nobodys(void **state)
{
	struct fixture *f = *state;
	uint8_t *bytes;

	if (!f->mounted)
		skip();
	bytes = calloc(8, MIB);
	assert_non_null(bytes);
	put_snapshots_of(f, "010");
	tempdir_put(f->dir, "snapshots/A-1/common", bytes, 8 * MIB);
	free(bytes);
	for (unsigned i = 0; i < 2; i++) {
		char from[128], to[128];

		(void)snprintf(from, sizeof(from), "%s/snapshots/A-1/common", f->dir);
		(void)snprintf(to, sizeof(to), "%s/snapshots/%s/common", f->dir, i ? "C-3" : "B-2");
		assert_int_equal(link(from, to), 0);
	}
	f->evict = 0;
	f->retention.limits = (struct spool_limits){ .max_use = MAX_USE(12) + MIB / 2 };
	assert_int_equal(retention_enforce(&f->retention, NULL, evict, f), 0);
	assert_string_equal(take_all(f), "AC");
}

/* Room is made for a user's snapshot at the cost of others only as long as he has no more than his
 * share: of 16 MiB, 14 are snapshots'. */
static void room_for_whom(void **state)
{
	static const struct {
		const char *uids;
		uid_t uid;
		uint64_t n_mib;
		int error;
		const char *left;
	} rows[] = {
		{ "2000000", 1, 3, 0, "ACDEFG" },
		{ "2333333", 1, 3, 0, "ACDEFG" },
		{ "2222000", 1, 3, 0, "BCDEFG" },
		/* A part is 4 MiB. */
		{ "2000000", 1, 5, -EDQUOT, "ABCDEFG" },
		{ "2000000", 0, 5, 0, "ADEFG" },
		{ "1000000", 1, 3, 0, "BCDEFG" },
		{ "0110000", 1, 3, 0, "ACDEFG" },
		{ "0010000", 1, 5, -EDQUOT, "ABCDEFG" },
		{ "0011110", 1, 5, 0, "ABEFG" },
	};
	struct fixture *f = *state;

	if (!f->mounted)
		skip();
	f->evict = 0;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct diskuse_amount needed = { rows[i].n_mib * MIB, 1 };

		print_message("  row %zu\n", i);
		put_snapshots_of(f, rows[i].uids);
		assert_int_equal(retention_make_room(&f->retention, &needed, rows[i].uid, evict, f),
				 rows[i].error);
		assert_string_equal(take_all(f), rows[i].left);
	}
}

/* Have it judged whether the @n-th snapshot may become visible, which it is not yet. */
static int admit(const struct fixture *f, size_t n, uid_t uid)
{
	char visible[128], hidden[128];
	int dir, r;

	(void)snprintf(visible, sizeof(visible), "%s/snapshots/%c-%zu", f->dir, (char)('A' + n - 1),
		       n);
	(void)snprintf(hidden, sizeof(hidden), "%s/snapshots/.new-it", f->dir);
	assert_int_equal(rename(visible, hidden), 0);
	dir = open(hidden, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dir >= 0);
	r = retention_admit(&f->retention, dir, uid);
	assert_int_equal(close(dir), 0);
	assert_int_equal(rename(hidden, visible), 0);
	return r;
}

/* For a snapshot of a user, the newest, which takes 2 MiB as all do. */
static void whose_goes_for_whom(void **state)
{
	static const struct {
		const char *uids;
		uint64_t max_mib;
		const char *left;
		const char *kept;
		int admitted;
	} rows[] = {
		/* There is room. */
		{ "00001", 11, "ABCDE", NULL, 0 },
		/* Who has more than his part loses his own, and nothing else. */
		{ "01111", 7, "ADE", NULL, 0 },
		{ "22211", 7, "ABCE", NULL, -EDQUOT },
		{ "0001", 7, "ABCD", NULL, -EDQUOT },
		{ "0221", 7, "ABCD", NULL, -EDQUOT },
		{ "0111", 7, "ABD", "B-2", 0 },
		{ "0111", 3, "AD", NULL, -EDQUOT },
		/* Nor do others lose anything if all are his. */
		{ "1111", 3, "D", NULL, 0 },
		{ "1111", 3, "BD", "B-2", 0 },
		{ "1", 1, "A", NULL, 0 },
		/* Others give what they have beyond their part, who has most first; then root. */
		{ "022321", 9, "ADEF", NULL, 0 },
		{ "000221", 9, "BCEF", NULL, 0 },
		{ "000001", 9, "CDEF", NULL, 0 },
		{ "000001", 9, "ADEF", "A-1", 0 },
		/* Root loses none for itself as long as others have more than their parts. */
		{ "011110", 9, "ADEF", NULL, 0 },
		{ "011110", 9, "ABEF", "B-2", 0 },
		{ "000110", 9, "BCEF", NULL, 0 },
	};
	struct fixture *f = *state;

	if (!f->mounted)
		skip();
	f->evict = 0;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const size_t n = strlen(rows[i].uids);
		const uid_t uid = (uid_t)(rows[i].uids[n - 1] - '0');

		print_message("  row %zu\n", i);
		put_snapshots_of(f, rows[i].uids);
		if (rows[i].kept)
			assert_int_equal(spool_keep(f->retention.spool, rows[i].kept, true, 0), 0);
		f->retention.limits = (struct spool_limits){ .max_use = MAX_USE(rows[i].max_mib) };
		f->n_removed = 0;
		assert_int_equal(admit(f, n, uid), rows[i].admitted);
		assert_int_equal(f->n_removed, 0);
		/* Also if one was written that is not admitted. */
		assert_int_equal(retention_enforce(&f->retention, &uid, evict, f), 0);
		assert_string_equal(take_all(f), rows[i].left);
	}
}

/* A snapshot of user @uid with a file of so many MiB. */
static void put_snapshot_of(const struct fixture *f, const char *id, size_t n_mib, uid_t uid)
{
	char path[64], text[64];

	put_snapshot(f, id, n_mib, NULL);
	(void)snprintf(path, sizeof(path), "snapshots/%s/manifest", id);
	(void)snprintf(text, sizeof(text), "taken_by_uid=%u\n", (unsigned)uid);
	tempdir_put_text(f->dir, path, text);
}

/* A snapshot of more than a user's part does not go for others' if it is his only one: of 9 MiB, a
 * part is 2.25. */
static void only_one(void **state)
{
	static const struct {
		uid_t uids[4];
		size_t n_mib[4];
		int admitted;
		const char *left;
	} rows[] = {
		{ { 2, 0, 1 }, { 6, 3, 1 }, -EDQUOT, "ABC" },
		{ { 0, 2, 1 }, { 6, 3, 1 }, -EDQUOT, "ABC" },
		{ { 1, 2, 0, 1 }, { 1, 4, 3, 1 }, 0, "BCD" },
		/* His second one is. */
		{ { 2, 2, 0, 1 }, { 1, 4, 3, 1 }, 0, "BCD" },
		{ { 0, 2, 0, 1 }, { 1, 4, 3, 1 }, 0, "BCD" },
		/* Root's can have it go. */
		{ { 2, 0, 0 }, { 6, 3, 1 }, 0, "BC" },
	};
	struct fixture *f = *state;

	if (!f->mounted)
		skip();
	f->evict = 0;
	f->retention.limits = (struct spool_limits){ .max_use = MAX_USE(9) };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		size_t n = 0;

		print_message("  row %zu\n", i);
		for (; n < 4 && rows[i].n_mib[n] > 0; n++) {
			char id[32];

			(void)snprintf(id, sizeof(id), "%c-%zu", (char)('A' + n), n + 1);
			put_snapshot_of(f, id, rows[i].n_mib[n], rows[i].uids[n]);
		}
		assert_int_equal(admit(f, n, rows[i].uids[n - 1]), rows[i].admitted);
		assert_int_equal(retention_enforce(&f->retention, &rows[i].uids[n - 1], evict, f),
				 0);
		assert_string_equal(take_all(f), rows[i].left);
	}
}

/* Of 9 MiB a part is 2.25, and each snapshot has 2: nobody but root keeps two. */
static void keeping(void **state)
{
	struct fixture *f = *state;
	const struct retention *r = &f->retention;
	struct share share;

	if (!f->mounted)
		skip();
	f->retention.limits = (struct spool_limits){ .max_use = MAX_USE(9) };
	put_snapshots_of(f, "110022");
	assert_int_equal(retention_keep(r, "Z-9", 1), -ENOENT);
	assert_int_equal(retention_keep(r, "../A-1", 1), -ENOENT);
	assert_int_equal(retention_keep(r, "A-1", 1), 0);
	assert_int_equal(retention_keep(r, "A-1", 1), 0);
	evidence_get_share(&f->evidence, &share);
	assert_int_equal(share.n_users, 0);
	assert_int_equal(retention_keep(r, "B-2", 1), -EDQUOT);
	/* Whoever's snapshot it is, it counts for him who keeps it; or had it kept first. */
	assert_int_equal(retention_keep(r, "E-5", 1), -EDQUOT);
	assert_int_equal(retention_keep(r, "A-1", 2), 0);
	assert_int_equal(retention_keep(r, "B-2", 2), 0);
	assert_int_equal(retention_keep(r, "latest", 2), -EDQUOT);
	evidence_get_share(&f->evidence, &share);
	assert_int_equal(share.n_users, 2);
	/* Root may. */
	assert_int_equal(retention_keep(r, "C-3", 0), 0);
	assert_int_equal(retention_keep(r, "latest", 0), 0);
	assert_int_equal(spool_remove(r->spool, "F-6"), -EPERM);
	/* Who has another one released has room for it. */
	assert_int_equal(spool_keep(r->spool, "A-1", false, 1), 0);
	assert_int_equal(retention_keep(r, "D-4", 1), 0);
	assert_int_equal(spool_remove(r->spool, "A-1"), 0);
	assert_int_equal(spool_remove(r->spool, "D-4"), -EPERM);
	/* An earlier ptd did not say for whom: for him whose it is. */
	tempdir_put_text(f->dir, "snapshots/.keep-B-2", "");
	assert_int_equal(retention_keep(r, "E-5", 2), 0);
	assert_string_equal(take_all(f), "BCDEF");
}

static void newest_is_there(void *userdata)
{
	(void)userdata;
}

static int keep_one(void *userdata)
{
	struct fixture *f = userdata;

	return retention_keep(&f->retention, "A-1", 1);
}

static void failing_to_keep(void **state)
{
	struct fixture *f = *state;

	f->retention.limits = (struct spool_limits){ .max_use = MAX_USE(100) };
	put_snapshots_of(f, "11");
	failing_each(keep_one, newest_is_there, f);
	assert_int_equal(spool_remove(f->retention.spool, "A-1"), -EPERM);
}

/* What the store has and nobody needs goes before all else, and with the last that had it. */
static void the_store_is_swept(void **state)
{
	struct fixture *f = *state;

	tempdir_put_text(f->dir, "store/nobody's", "");
	tempdir_put_text(f->dir, "store/shared", "");
	put_snapshot(f, "A-1", 0, "store/shared");
	put_snapshot(f, "B-2", 0, NULL);
	assert_int_equal(retention_enforce(&f->retention, NULL, evict, f), 0);
	assert_false(exists(f, "store/nobody's"));
	assert_true(exists(f, "store/shared"));
	f->retention.limits.max_use = 0;
	assert_int_equal(retention_enforce(&f->retention, NULL, evict, f), 0);
	assert_string_equal(there(f), "B");
	assert_false(exists(f, "store/shared"));
}

/* Those that are too old go, the newest too, but for what is kept and what has no age. */
static void age(void **state)
{
	static const struct {
		uint64_t max_age_days;
		const char *kept;
		const char *left;
	} rows[] = {
		{ 0, NULL, "ABCD" }, { 40, NULL, "ABCD" }, { 20, NULL, "BCD" },
		{ 5, NULL, "CD" },   { 5, "20", "ACD" },   { 1, NULL, "D" },
	};
	static const int days[] = { 30, 10, 2 };
	struct fixture *f = *state;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char ids[4][SNAPID_SIZE] = { "", "", "", "D-4" }, left[5] = "";

		for (size_t k = 0; k < ARRAY_LEN(ids); k++) {
			const time_t taken = time(NULL) - (k < 3 ? days[k] : 0) * 86400;
			struct tm tm;

			if (k < 3)
				assert_true(strftime(ids[k], sizeof(ids[k]),
						     "%Y%m%dT%H%M%S.000000Z-1",
						     gmtime_r(&taken, &tm)) > 0);
			put_snapshot(f, ids[k], 0, NULL);
		}
		if (rows[i].kept)
			assert_int_equal(spool_keep(f->retention.spool, ids[0], true, 0), 0);
		f->retention.max_age_ns = rows[i].max_age_days * 86400 * 1000000000;
		assert_int_equal(retention_has_expired(&f->retention), strlen(rows[i].left) < 4);
		assert_int_equal(retention_enforce(&f->retention, NULL, evict, f), 0);
		assert_int_equal(retention_has_expired(&f->retention), false);
		(void)!spool_keep(f->retention.spool, ids[0], false, 0);
		for (size_t k = 0; k < ARRAY_LEN(ids); k++)
			if (spool_remove(f->retention.spool, ids[k]) == 0)
				left[strlen(left)] = (char)('A' + (int)k);
		assert_string_equal(left, rows[i].left);
	}
}

static int keep_to_limits(void *userdata)
{
	struct fixture *f = userdata;

	return retention_enforce(&f->retention, NULL, evict, f);
}

static int make_room(void *userdata)
{
	struct fixture *f = userdata;
	const struct diskuse_amount needed = { 9 * MIB, 1 };

	return retention_make_room(&f->retention, &needed, 0, evict, f);
}

/* No more goes because something fails. */
static void failing(void **state)
{
	struct fixture *f = *state;

	if (!f->mounted)
		skip();
	put_snapshots(f);
	f->retention.limits.max_use = 9 * MIB;
	failing_each(keep_to_limits, newest_is_there, f);
	assert_string_equal(there(f), "BCD");
	remove_all(f);
	put_snapshots(f);
	failing_each(make_room, newest_is_there, f);
	assert_string_equal(there(f), "BCD");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(limits, set_up, tear_down),
		cmocka_unit_test_setup_teardown(limits_of_inodes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(room_for_another, set_up, tear_down),
		cmocka_unit_test_setup_teardown(room_that_is_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_snapshots_may_take, set_up, tear_down),
		cmocka_unit_test_setup_teardown(limits_are_kept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(full_disk, set_up, tear_down),
		cmocka_unit_test_setup_teardown(whose_goes_for_whom, set_up, tear_down),
		cmocka_unit_test_setup_teardown(only_one, set_up, tear_down),
		cmocka_unit_test_setup_teardown(shares, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_nobodys, set_up, tear_down),
		cmocka_unit_test_setup_teardown(room_for_whom, set_up, tear_down),
		cmocka_unit_test_setup_teardown(keeping, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failing_to_keep, set_up, tear_down),
		cmocka_unit_test_setup_teardown(the_store_is_swept, set_up, tear_down),
		cmocka_unit_test_setup_teardown(age, set_up, tear_down),
		cmocka_unit_test_setup_teardown(failing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
