/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "daemon/source/kept.h"
#include "tests/lib/failing.h"

/* Return: what a process would find that is started after @kept was killed at this moment. */
static struct kept *find(const struct kept *kept)
{
	struct kept *found;
	const int fd = fcntl(kept_fd(kept), F_DUPFD_CLOEXEC, 0);

	assert_return_code(fd, errno);
	assert_int_equal(kept_resume(fd, &found), 0);
	assert_true(kept_is_resumed(found));
	return found;
}

static uint64_t found_tail(const struct kept *kept)
{
	struct kept *found = find(kept);
	const uint64_t tail = kept_draft(found)->pool.task_tail;

	(void)kept_free(found);
	return tail;
}

static void only_what_is_published_is_found(void **state)
{
	_cleanup_(kept_freep) struct kept *kept = NULL;
	struct kept *none;

	(void)state;
	assert_int_equal(kept_new(&kept), 0);
	assert_false(kept_is_resumed(kept));
	kept_draft(kept)->pool.task_tail = 1;
	assert_int_equal(kept_resume(kept_fd(kept), &none), -EBADMSG);
	kept_publish(kept);
	assert_int_equal(found_tail(kept), 1);
	for (uint64_t i = 2; i < 10; i++) {
		kept_draft(kept)->pool.task_tail = i;
		assert_int_equal(found_tail(kept), i - 1);
		kept_publish(kept);
		assert_int_equal(found_tail(kept), i);
	}
}

/* Processes that end before they publish a state change nothing. */
static void code_does_not_outlive_its_process(void **state)
{
	_cleanup_(kept_freep) struct kept *kept = NULL;
	_cleanup_(kept_freep) struct kept *second = NULL;
	_cleanup_(kept_freep) struct kept *third = NULL;

	(void)state;
	assert_int_equal(kept_new(&kept), 0);
	assert_int_equal(kept_draft(kept)->taken_over_ns, 0);
	kept_draft(kept)->code_bytes = 100;
	kept_publish(kept);
	(void)kept_free(find(kept));
	second = find(kept);
	assert_true(kept_draft(second)->taken_over_ns >= kept_draft(kept)->made_ns);
	assert_int_equal(kept_draft(second)->code_bytes, 0);
	assert_int_equal(kept_draft(second)->code_lost_bytes, 100);
	kept_draft(second)->code_bytes = 20;
	kept_publish(second);
	third = find(second);
	assert_int_equal(kept_draft(third)->code_lost_bytes, 120);
}

static size_t file_blocks(const struct kept *kept)
{
	struct stat st;

	assert_int_equal(fstat(kept_fd(kept), &st), 0);
	return (size_t)st.st_blocks;
}

/* The present state may count on a slot that was freed since. */
static void freed_slots_wait_for_the_next_state(void **state)
{
	_cleanup_(kept_freep) struct kept *kept = NULL;
	struct kept *found;
	char *a, *b;
	size_t at = 0, blocks;
	void *slot;

	(void)state;
	assert_int_equal(kept_new(&kept), 0);
	a = kept_slot_new(kept);
	assert_non_null(a);
	memset(a, 'a', KEPT_SLOT_SIZE);
	kept_publish(kept);
	blocks = file_blocks(kept);
	assert_null(kept_slot_free(kept, a));
	b = kept_slot_new(kept);
	assert_non_null(b);
	b[0] = 'b';

	found = find(kept);
	assert_int_equal(kept_slot_next(found, &at, &slot), 0);
	assert_int_equal(((char *)slot)[KEPT_SLOT_SIZE - 1], 'a');
	assert_null(kept_slot_free(NULL, slot));
	assert_int_equal(kept_slot_next(found, &at, &slot), 0);
	assert_int_equal(((char *)slot)[0], 'b');
	assert_null(kept_slot_free(NULL, slot));
	assert_int_equal(kept_slot_next(found, &at, &slot), -ENOENT);
	found = kept_free(found);

	kept_publish(kept);
	assert_true(file_blocks(kept) < blocks);
	a = kept_slot_new(kept);
	assert_non_null(a);
	assert_int_equal(a[0], 0);
	assert_int_equal(a[KEPT_SLOT_SIZE - 1], 0);
	assert_null(kept_slot_free(kept, a));
	/* A slot outlives the state that it was in. */
	kept = kept_free(kept);
	assert_int_equal(b[0], 'b');
	assert_null(kept_slot_free(NULL, b));
	assert_null(kept_slot_free(NULL, NULL));
}

static void slots_need_not_be_kept(void **state)
{
	char *a = kept_slot_new(NULL);

	(void)state;
	assert_non_null(a);
	assert_int_equal(a[KEPT_SLOT_SIZE - 1], 0);
	assert_null(kept_slot_free(NULL, a));
}

static void other_files_are_refused(void **state)
{
	static const char zeros[KEPT_SLOT_SIZE];
	struct kept *kept = NULL;
	const int fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	(void)state;
	assert_int_equal(kept_resume(fd, &kept), -EBADMSG);
	assert_int_equal(write(fd, zeros, sizeof(zeros)), sizeof(zeros));
	assert_int_equal(kept_resume(fd, &kept), -EBADMSG);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	assert_int_equal(kept_resume(fd, &kept), -EBADMSG);
	assert_int_equal(kept_resume(-1, &kept), -EBADF);
	assert_null(kept);
	(void)close(fd);
}

struct attempt {
	struct kept *kept, *found;
};

static int make_and_find(void *userdata)
{
	struct attempt *a = userdata;
	void *slot;
	int fd, r;

	r = kept_new(&a->kept);
	if (r < 0)
		return r;
	slot = kept_slot_new(a->kept);
	kept_publish(a->kept);
	fd = fcntl(kept_fd(a->kept), F_DUPFD_CLOEXEC, 0);
	r = slot ? kept_resume(fd, &a->found) : -ENOMEM;
	(void)kept_slot_free(a->kept, slot);
	if (r < 0) {
		(void)close(fd);
		a->kept = kept_free(a->kept);
	}
	return r;
}

static void check_and_free(void *userdata)
{
	struct attempt *a = userdata;

	a->found = kept_free(a->found);
	a->kept = kept_free(a->kept);
}

static void failures_are_passed_up(void **state)
{
	struct attempt a = {};

	(void)state;
	failing_each(make_and_find, check_and_free, &a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_published_is_found),
		cmocka_unit_test(code_does_not_outlive_its_process),
		cmocka_unit_test(freed_slots_wait_for_the_next_state),
		cmocka_unit_test(slots_need_not_be_kept),
		cmocka_unit_test(other_files_are_refused),
		cmocka_unit_test(failures_are_passed_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
