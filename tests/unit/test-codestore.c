/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * The store of code that ran: records that programs wrote, and what the file of each program then
 * says; forks, limits, and records that make no sense.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/objects/codestore.h"
#include "daemon/plugin/coderecord.h"
#include "daemon/share/share.h"
#include "ptd/snapshot.h"
#include "tests/lib/failing.h"

#define PAGE_SIZE 8600u /* a little more than a page takes in the store */

#define BIG (UINT64_C(1) << 20)

/* Nobody has this number: the kernel gives out none as high. */
#define DEAD UINT32_C(0x7ffffff0)

static uint8_t bytes[1 << 16];
static size_t n_bytes;

/* This process is one user's, all others are another's. Otherwise all are root's. */
static bool has_users;

static uid_t user_of(uint32_t pid)
{
	return !has_users ? 0 : pid == (uint32_t)getpid() ? 1000 : 1001;
}

static void put(enum coderecord_kind kind, uint32_t pid, uint64_t start, uint64_t time,
		uint64_t address, const char *code)
{
	const struct coderecord record = {
		.size = coderecord_size((uint32_t)strlen(code)),
		.kind = kind,
		.pid = pid,
		.start = start,
		.time = time,
		.address = address,
		.n_bytes = (uint32_t)strlen(code),
		.uid = user_of(pid),
	};

	memset(bytes + n_bytes, 0, record.size);
	memcpy(bytes + n_bytes, &record, sizeof(record));
	memcpy(bytes + n_bytes + sizeof(record), code, strlen(code));
	n_bytes += record.size;
}

static void put_fork(uint32_t pid, uint64_t start, uint64_t time, uint32_t parent,
		     uint64_t parent_start)
{
	struct coderecord record;
	const size_t at = n_bytes;

	put(CODERECORD_START, pid, start, time, parent_start, "");
	memcpy(&record, bytes + at, sizeof(record));
	record.parent_pid = parent;
	memcpy(bytes + at, &record, sizeof(record));
}

static int add(struct codestore *store)
{
	const size_t n = n_bytes;

	n_bytes = 0;
	return codestore_add(store, bytes, n);
}

static struct codestore *make(uint64_t bytes_max)
{
	struct codestore *store = NULL;

	assert_int_equal(codestore_new(bytes_max, &store), 0);
	return store;
}

/* The file of a program, as text: "TIME@ADDRESS:BYTES" for each piece; where they are not known it
 * has ?SIZE. */
static const char *text_up_to(struct codestore *store, uint32_t pid, uint64_t start,
			      uint64_t size_max)
{
	static char text[4096];
	struct codestore_program program = { .pid = pid, .start = start };
	struct ptd_code_header header;
	struct ptd_code_piece piece;
	uint8_t *file;
	size_t size, n = 0;

	text[0] = '\0';
	if (codestore_copy(store, &program, size_max, &file, &size) < 0)
		return "none";
	memcpy(&header, file, sizeof(header));
	assert_true(header.magic == PTD_CODE_MAGIC && header.version == PTD_CODE_VERSION);
	for (uint32_t i = 0; i < header.n_pieces; i++) {
		memcpy(&piece, file + sizeof(header) + i * sizeof(piece), sizeof(piece));
		assert_true(!piece.offset ||
			    (piece.offset <= size && piece.size <= size - piece.offset));
		if (piece.offset)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d@%x:%.*s",
					      i > 0 ? " " : "", (int)piece.time,
					      (unsigned)piece.address, (int)piece.size,
					      (const char *)file + piece.offset);
		else
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%d@%x:?%" PRIx64,
					      i > 0 ? " " : "", (int)piece.time,
					      (unsigned)piece.address, piece.size);
	}
	free(file);
	return text;
}

static const char *text_of(struct codestore *store, uint32_t pid, uint64_t start)
{
	return text_up_to(store, pid, start, UINT64_MAX);
}

static void first_bytes_and_changes(void **state)
{
	_cleanup_(codestore_freep) struct codestore *s = make(BIG);

	(void)state;
	put(CODERECORD_START, 7, 100, 0, 0, "");
	put(CODERECORD_NEW, 7, 100, 110, 0x1ffe, "abcd");
	put(CODERECORD_NEW, 7, 100, 120, 0x2010, "xy");
	put(CODERECORD_CHANGED, 7, 100, 130, 0x1fff, "BC");
	/* Half of it is known already; what was there first stays. */
	put(CODERECORD_NEW, 7, 100, 140, 0x2001, "Def");
	put(CODERECORD_CHANGED, 7, 100, 150, 0x1fff, "bc");
	assert_int_equal(add(s), 0);
	assert_string_equal(text_of(s, 7, 100), "0@1ffe:abcdef 0@2010:xy 130@1fff:BC 150@1fff:bc");
	assert_string_equal(text_of(s, 7, 101), "none");
	assert_string_equal(text_of(s, 8, 100), "none");
}

static void programs_of_one_process_are_apart(void **state)
{
	_cleanup_(codestore_freep) struct codestore *s = make(BIG);
	struct codestore_program p = {};

	(void)state;
	put(CODERECORD_START, 7, 100, 0, 0, "");
	put(CODERECORD_NEW, 7, 100, 110, 0x1000, "ab");
	put(CODERECORD_START, 7, 200, 0, 0, "");
	put(CODERECORD_START, 9, 300, 0, 0, "");
	put(CODERECORD_NEW, 9, 300, 110, 0x1000, "cd");
	assert_int_equal(add(s), 0);
	assert_string_equal(text_of(s, 7, 100), "0@1000:ab");
	assert_string_equal(text_of(s, 7, 200), "");
	assert_true(codestore_next(s, &p) && p.pid == 7 && p.start == 100);
	assert_true(codestore_next(s, &p) && p.pid == 7 && p.start == 200);
	assert_true(codestore_next(s, &p) && p.pid == 9 && p.start == 300);
	assert_false(codestore_next(s, &p));
	assert_int_equal(p.pid, 9);
}

static void forks_have_what_their_parent_had(void **state)
{
	_cleanup_(codestore_freep) struct codestore *s = make(BIG);

	(void)state;
	put(CODERECORD_START, 7, 100, 0, 0, "");
	put(CODERECORD_NEW, 7, 100, 110, 0x1000, "ab");
	put(CODERECORD_CHANGED, 7, 100, 120, 0x1000, "AB");
	put(CODERECORD_CHANGED, 7, 100, 140, 0x1000, "xy");
	put_fork(8, 150, 130, 7, 100);
	put(CODERECORD_NEW, 7, 100, 160, 0x1002, "P");
	put(CODERECORD_NEW, 8, 150, 160, 0x1002, "C");
	put(CODERECORD_CHANGED, 8, 150, 170, 0x1000, "CC");
	assert_int_equal(add(s), 0);
	assert_string_equal(text_of(s, 7, 100), "0@1000:abP 120@1000:AB 140@1000:xy");
	assert_string_equal(text_of(s, 8, 150), "0@1000:abC 120@1000:AB 170@1000:CC");
	/* Of a parent that is not known nothing is inherited. */
	put_fork(9, 180, 170, 7, 101);
	assert_int_equal(add(s), 0);
	assert_string_equal(text_of(s, 9, 180), "");
}

/* A beginning that was said late: what the parent handed over after the fork is not the child's. */
static void forks_that_were_said_late(void **state)
{
	_cleanup_(codestore_freep) struct codestore *s = make(BIG);
	static char expected[4096];
	size_t n = 0;

	(void)state;
	put(CODERECORD_START, 7, 100, 0, 0, "");
	for (unsigned int i = 0; i < 200; i++)
		put(CODERECORD_NEW, 7, 100, 110 + i, 0x1000 + 2 * i, "x");
	put_fork(8, 301, 300, 7, 100);
	put(CODERECORD_NEW, 8, 301, 320, 0x1000 + 2 * 191, "y");
	assert_int_equal(add(s), 0);
	for (unsigned int i = 0; i <= 191; i++)
		n += (size_t)snprintf(expected + n, sizeof(expected) - n, "%s0@%x:%s",
				      i > 0 ? " " : "", 0x1000 + 2 * i, i < 191 ? "x" : "y");
	assert_string_equal(text_of(s, 8, 301), expected);
}

/* Programs that ended make room; then what comes is refused, and of that it is said that the bytes
 * are not known. */
static void the_limit_holds(void **state)
{
	_cleanup_(codestore_freep) struct codestore *s = make(3 * PAGE_SIZE);
	const uint32_t self = (uint32_t)getpid();
	struct codestore_program p = {};

	(void)state;
	put(CODERECORD_START, DEAD, 100, 0, 0, "");
	put(CODERECORD_NEW, DEAD, 100, 110, 0x1000, "ab");
	put(CODERECORD_START, self, 200, 0, 0, "");
	put(CODERECORD_NEW, self, 200, 210, 0x1000, "cd");
	put(CODERECORD_NEW, self, 200, 211, 0x2000, "ef");
	assert_int_equal(add(s), 0);
	assert_string_equal(text_of(s, DEAD, 100), "0@1000:ab");
	put(CODERECORD_NEW, self, 200, 212, 0x4000, "gh");
	assert_int_equal(add(s), 0);
	assert_string_equal(text_of(s, DEAD, 100), "");
	put(CODERECORD_NEW, self, 200, 213, 0x6000, "ij");
	assert_int_equal(add(s), -ENOBUFS);
	assert_string_equal(text_of(s, self, 200), "0@1000:cd 0@2000:ef 0@4000:gh 213@6000:?2");
	/* A small change still fits. */
	put(CODERECORD_CHANGED, self, 200, 214, 0x1000, "C");
	codestore_set_max(s, 3 * PAGE_SIZE + 4096);
	assert_int_equal(add(s), 0);
	assert_true(codestore_next(s, &p) && p.pid == DEAD && p.n_refused == 0);
	assert_true(codestore_next(s, &p) && p.pid == self && p.n_refused == 1);
}

/* A user cannot take all, and what he has does not go for one who wants more than their part. */
static void two_users(void **state)
{
	_cleanup_(codestore_freep) struct codestore *s = make(16 * PAGE_SIZE);
	const uint32_t self = (uint32_t)getpid(), init = 1;
	uint64_t n_refused[2] = {};
	struct share share;

	(void)state;
	has_users = true;
	/* The other user's program that has ended takes no more than their part. */
	put(CODERECORD_START, DEAD, 90, 0, 0, "");
	put(CODERECORD_NEW, DEAD, 90, 91, 0x1000, "ab");
	put(CODERECORD_START, self, 100, 0, 0, "");
	assert_int_equal(add(s), 0);
	for (uint32_t i = 0; i < 14; i++) {
		put(CODERECORD_NEW, self, 100, 110 + i, 0x1000 * (i + 1), "ab");
		assert_int_equal(add(s), i < 13 ? 0 : -ENOBUFS);
	}
	assert_string_equal(text_of(s, DEAD, 90), "0@1000:ab");
	put(CODERECORD_START, init, 200, 0, 0, "");
	put(CODERECORD_NEW, init, 200, 210, 0x1000, "cd");
	put(CODERECORD_NEW, init, 200, 210, 0x2000, "cd");
	assert_int_equal(add(s), 0);
	assert_string_equal(text_of(s, init, 200), "0@1000:cd 0@2000:cd");
	codestore_get_share(s, &share);
	for (size_t i = 0; i < share.n_users; i++)
		n_refused[share.users[i].uid - 1000] = share_n_refused(&share.users[i]);
	assert_int_equal(n_refused[0], 1);
	assert_int_equal(n_refused[1], 0);
	assert_int_equal(share.taken, codestore_size(s));
	has_users = false;
}

/* Of what is forgotten, or is more than a snapshot takes, it stays known where it was changed, and
 * since when: a decoder would show what was there before. */
static void changes_are_not_forgotten(void **state)
{
	_cleanup_(codestore_freep) struct codestore *s = make(2 * PAGE_SIZE + 1000);

	(void)state;
	put(CODERECORD_START, DEAD, 100, 0, 0, "");
	put(CODERECORD_NEW, DEAD, 100, 110, 0x1000, "ab");
	put(CODERECORD_CHANGED, DEAD, 100, 130, 0x7010, "ef");
	put(CODERECORD_CHANGED, DEAD, 100, 140, 0x5fff, "gh");
	put(CODERECORD_CHANGED, DEAD, 100, 150, 0x3000, "cd");
	assert_int_equal(add(s), 0);
	assert_string_equal(text_up_to(s, DEAD, 100, 151), "130@5000:?3000 150@3000:?1000");
	put(CODERECORD_START, (uint32_t)getpid(), 200, 0, 0, "");
	put(CODERECORD_NEW, (uint32_t)getpid(), 200, 210, 0x1000, "cd");
	put(CODERECORD_NEW, (uint32_t)getpid(), 200, 211, 0x2000, "ef");
	assert_int_equal(add(s), 0);
	assert_string_equal(text_of(s, DEAD, 100), "130@5000:?3000 150@3000:?1000");
	/* It goes on: what of it had come late. Its children have what it had. */
	put(CODERECORD_CHANGED, DEAD, 100, 160, 0xa000, "ij");
	put(CODERECORD_NEW, DEAD, 100, 170, 0xb000, "kl");
	put_fork(DEAD + 1, 180, 175, DEAD, 100);
	assert_int_equal(add(s), -ENOBUFS);
	assert_string_equal(text_of(s, DEAD, 100), "130@5000:?3000 150@3000:?1000 160@a000:?1000");
	assert_string_equal(text_of(s, DEAD + 1, 180),
			    "130@5000:?3000 150@3000:?1000 160@a000:?1000");
}

/* Of a program that began unheard nothing is known. */
static void a_beginning_that_was_lost(void **state)
{
	_cleanup_(codestore_freep) struct codestore *s = make(BIG);

	(void)state;
	put(CODERECORD_NEW, 7, 100, 215, 0x1000, "zz");
	assert_int_equal(add(s), -ENOBUFS);
	assert_string_equal(text_of(s, 7, 100), "100@0:?ffffffffffffffff");
}

/* What was lost may have replaced any code of any program. */
static void all_is_lost(void **state)
{
	_cleanup_(codestore_freep) struct codestore *s = make(BIG);

	(void)state;
	put(CODERECORD_START, 7, 100, 0, 0, "");
	put(CODERECORD_NEW, 7, 100, 110, 0x1000, "ab");
	put(CODERECORD_CHANGED, 7, 100, 120, 0x1001, "B");
	put(CODERECORD_START, 8, 105, 0, 0, "");
	assert_int_equal(add(s), 0);
	assert_true(codestore_size(s) > 4096);
	codestore_lose(s);
	assert_in_range(codestore_size(s), 1, 1024);
	assert_string_equal(text_of(s, 7, 100), "120@0:?ffffffffffffffff");
	assert_string_equal(text_of(s, 8, 105), "120@0:?ffffffffffffffff");
	/* Of one that begins now all is known. */
	put(CODERECORD_START, 9, 130, 0, 0, "");
	put(CODERECORD_NEW, 9, 130, 140, 0x1000, "cd");
	assert_int_equal(add(s), 0);
	assert_string_equal(text_of(s, 9, 130), "0@1000:cd");
}

/* What was taken is given back, in whatever way it goes. */
static void room_is_counted(void **state)
{
	_cleanup_(codestore_freep) struct codestore *s = make(BIG), *other = make(BIG);
	uint64_t size, smaller;

	(void)state;
	assert_int_equal(codestore_size(s), 0);
	put(CODERECORD_START, 7, 100, 0, 0, "");
	assert_int_equal(add(s), 0);
	assert_int_equal(codestore_size(s), 0);
	put(CODERECORD_NEW, 7, 100, 110, 0x1000, "ab");
	assert_int_equal(add(s), 0);
	size = codestore_size(s);
	assert_in_range(size, 4096, PAGE_SIZE);
	/* More of a page that is there is for nothing; a fork shares it. */
	put(CODERECORD_NEW, 7, 100, 115, 0x1100, "cd");
	put_fork(8, 120, 120, 7, 100);
	assert_int_equal(add(s), 0);
	assert_int_equal(codestore_size(s), size);
	/* Until one of them has its own. */
	put(CODERECORD_NEW, 8, 120, 125, 0x1200, "ef");
	assert_int_equal(add(s), 0);
	assert_int_equal(codestore_size(s), 2 * size);
	put(CODERECORD_CHANGED, 8, 120, 126, 0x1200, "E");
	assert_int_equal(add(s), 0);
	smaller = codestore_size(s);
	assert_in_range(smaller, 2 * size + 1, 2 * size + 128);
	put(CODERECORD_CHANGED, 8, 120, 127, 0x1200, "EEEE");
	assert_int_equal(add(s), 0);
	assert_int_equal(codestore_size(s) - smaller, smaller - 2 * size + 3);

	/* One that had less, or other things, before it lost all takes as much then. */
	put(CODERECORD_START, 7, 100, 0, 0, "");
	put(CODERECORD_START, 8, 120, 0, 0, "");
	assert_int_equal(add(other), 0);
	codestore_lose(s);
	codestore_lose(other);
	assert_int_equal(codestore_size(s), codestore_size(other));
	codestore_lose(s);
	assert_int_equal(codestore_size(s), codestore_size(other));
}

/* As in daemon/objects/codestore.c. */
#define PROGRAMS_MAX 65536u

/* Of too many programs the oldest that has ended goes; if none has, the latest is refused. */
static void many_programs(void **state)
{
	_cleanup_(codestore_freep) struct codestore *s = make(BIG);
	const uint32_t self = (uint32_t)getpid(), dead = DEAD - 2 * PROGRAMS_MAX;
	unsigned n = 0;

	(void)state;
	put(CODERECORD_START, self, 50, 0, 0, "");
	assert_int_equal(add(s), 0);
	for (uint32_t i = 0; i < PROGRAMS_MAX - 1; i++) {
		put(CODERECORD_START, dead + i, 100, 0, 0, "");
		assert_int_equal(add(s), 0);
	}
	assert_string_equal(text_of(s, dead, 100), "");
	put_fork(dead + PROGRAMS_MAX, 100, 100, dead, 100); /* whose parent is not the one to go */
	assert_int_equal(add(s), 0);
	assert_string_equal(text_of(s, self, 50), "");
	assert_string_equal(text_of(s, dead, 100), "");
	assert_string_equal(text_of(s, dead + 1, 100), "none");
	assert_string_equal(text_of(s, dead + 2, 100), "");
	assert_string_equal(text_of(s, dead + PROGRAMS_MAX, 100), "");
	for (struct codestore_program p = {}; codestore_next(s, &p);)
		n++;
	assert_int_equal(n, PROGRAMS_MAX);
	/* A number that another program has by now is that of one that ended. */
	put(CODERECORD_START, self, 60, 0, 0, "");
	assert_int_equal(add(s), 0);
	assert_string_equal(text_of(s, self, 50), "");
	put(CODERECORD_START, dead + PROGRAMS_MAX + 1, 100, 0, 0, "");
	assert_int_equal(add(s), 0);
	assert_string_equal(text_of(s, self, 50), "none");
	assert_string_equal(text_of(s, self, 60), "");
}

/* One user's programs, however many, do not make those of another be forgotten. */
static void many_programs_of_a_user(void **state)
{
	_cleanup_(codestore_freep) struct codestore *s = make(BIG);
	const uint32_t self = (uint32_t)getpid(), dead = DEAD - 2 * PROGRAMS_MAX;

	(void)state;
	has_users = true;
	put(CODERECORD_START, self, 50, 0, 0, "");
	put(CODERECORD_START, self, 60, 0, 0, "");
	assert_int_equal(add(s), 0);
	for (uint32_t i = 0; i < PROGRAMS_MAX + 10; i++) {
		put(CODERECORD_START, dead + i, 100, 0, 0, "");
		assert_int_equal(add(s), 0);
	}
	put(CODERECORD_START, self, 70, 0, 0, "");
	assert_int_equal(add(s), 0);
	has_users = false;
	assert_string_equal(text_of(s, self, 50), "");
	assert_string_equal(text_of(s, self, 60), "");
	assert_string_equal(text_of(s, self, 70), "");
	assert_string_equal(text_of(s, dead + 12, 100), "none");
	assert_string_equal(text_of(s, dead + 13, 100), "");
}

static int add_much(void *userdata)
{
	struct codestore **store = userdata;
	int r;

	r = codestore_new(BIG, store);
	if (r < 0)
		return r;
	put(CODERECORD_START, 7, 100, 0, 0, "");
	put(CODERECORD_NEW, 7, 100, 110, 0x1ffe, "abcd");
	put(CODERECORD_CHANGED, 7, 100, 120, 0x1000, "AB");
	put_fork(8, 150, 130, 7, 100);
	put(CODERECORD_NEW, 8, 150, 160, 0x2002, "C");
	put(CODERECORD_CHANGED, 8, 150, 170, 0x1000, "CC");
	r = add(*store);
	if (r < 0) {
		/* Nothing wrong is said. */
		const char *text = text_of(*store, 7, 100);

		assert_true(strcmp(text, "none") == 0 || strstr(text, "@0:?ffffffffffffffff") ||
			    strcmp(text, "0@1ffe:abcd 120@1000:AB") == 0);
		*store = codestore_free(*store);
	}
	return r;
}

static void has_much(void *userdata)
{
	struct codestore **store = userdata;

	assert_string_equal(text_of(*store, 7, 100), "0@1ffe:abcd 120@1000:AB");
	assert_string_equal(text_of(*store, 8, 150), "0@1ffe:abcdC 120@1000:AB 170@1000:CC");
	*store = codestore_free(*store);
}

static int copy(void *userdata)
{
	struct codestore **store = userdata;
	const struct codestore_program program = { .pid = 8, .start = 150 };
	uint8_t *file;
	size_t size;
	int r;

	r = codestore_copy(*store, &program, UINT64_MAX, &file, &size);
	if (r >= 0)
		free(file);
	return r < 0 ? r : r - 1;
}

static void nothing_more(void *userdata)
{
	(void)userdata;
}

static void calls_that_fail(void **state)
{
	struct codestore *s = NULL;

	(void)state;
	failing_each(add_much, has_much, &s);
	assert_int_equal(add_much(&s), 0);
	failing_each(copy, nothing_more, &s);
	s = codestore_free(s);
}

/* Nothing that may have been replaced by what was lost is believed any more. */
static void nonsense_is_not_survived(void **state)
{
	static const struct {
		const char *name;
		size_t field;
		uint32_t value;
	} rows[] = {
		{ "size that is not that of the bytes", offsetof(struct coderecord, size), 64 },
		{ "size beyond the end", offsetof(struct coderecord, size), 4096 },
		{ "no size", offsetof(struct coderecord, size), 0 },
		{ "no kind", offsetof(struct coderecord, kind), 0 },
		{ "kind that is unknown", offsetof(struct coderecord, kind), 5 },
		{ "too many bytes", offsetof(struct coderecord, n_bytes), UINT32_MAX },
		{ "address around the end", offsetof(struct coderecord, address) + 4, UINT32_MAX },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		_cleanup_(codestore_freep) struct codestore *s = make(BIG);
		size_t at;

		print_message("  %s\n", rows[i].name);
		put(CODERECORD_START, 7, 100, 0, 0, "");
		put(CODERECORD_NEW, 7, 100, 110, UINT64_C(0xfffff000), "ab");
		at = n_bytes;
		put(CODERECORD_NEW, 7, 100, 120, UINT64_C(0xffffff00), "cd");
		memcpy(bytes + at + rows[i].field, &rows[i].value, sizeof(rows[i].value));
		assert_int_equal(add(s), -EBADMSG);
		assert_string_equal(text_of(s, 7, 100), "110@0:?ffffffffffffffff");
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_bytes_and_changes),
		cmocka_unit_test(programs_of_one_process_are_apart),
		cmocka_unit_test(forks_have_what_their_parent_had),
		cmocka_unit_test(forks_that_were_said_late),
		cmocka_unit_test(the_limit_holds),
		cmocka_unit_test(two_users),
		cmocka_unit_test(changes_are_not_forgotten),
		cmocka_unit_test(a_beginning_that_was_lost),
		cmocka_unit_test(all_is_lost),
		cmocka_unit_test(room_is_counted),
		cmocka_unit_test(many_programs),
		cmocka_unit_test(many_programs_of_a_user),
		cmocka_unit_test(calls_that_fail),
		cmocka_unit_test(nonsense_is_not_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
