/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Eviction: which objects, and whose copies, go first. The copier is one of the test's own, which
 * has no files.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>

#include "daemon/objects/copier.h"
#include "daemon/objects/eviction.h"
#include "daemon/objects/object.h"
#include "daemon/objects/objectstore.h"
#include "daemon/share/share.h"
#include "tests/lib/failing.h"

#define MOMENT 1000000u /* programs have mapped what was named later */
#define MANY   OBJECTSTORE_MAX

struct copier {
	struct share share;
	uint64_t max;
};

int copier_result(struct copier *copier, const struct object *object)
{
	(void)copier;
	return object->error;
}

/* Bytes of a copy to which no snapshot links. */
uint64_t copier_alone(struct copier *copier, const struct object *object)
{
	(void)copier;
	return object->ahead;
}

void copier_take_back(struct copier *copier, struct object *object)
{
	(void)copier;
	object->error = -EDQUOT;
}

void copier_get_share(struct copier *copier, struct share *ret_share, uint64_t *ret_max)
{
	*ret_share = copier->share;
	*ret_max = copier->max;
}

/* --- objects of the test ---------------------------------------------------------------------- */

static struct object objects[MANY], *pointers[MANY];
static struct copier the_copier;
static struct eviction eviction;

static int set_up(void **state)
{
	(void)state;
	the_copier = (struct copier){};
	eviction =
	    (struct eviction){ .copier = &the_copier, .objects = pointers, .moment = MOMENT };
	return 0;
}

/* Add an object of @bytes, which the user owns and pays for. */
static struct object *add(uid_t uid, uint64_t seen, uint64_t bytes)
{
	struct object *o = &objects[eviction.n_objects];

	assert_true(eviction.n_objects < MANY);
	*o = (struct object){
		.n_refs = 1, .seen = seen, .ahead = bytes, .original.uid = uid, .payer = uid
	};
	pointers[eviction.n_objects++] = o;
	share_take(&the_copier.share, uid, bytes);
	return o;
}

static void add_many(unsigned n, uid_t uid, uint64_t seen)
{
	for (unsigned i = 0; i < n; i++)
		(void)add(uid, seen + i, 1);
}

/* Return: how many objects from the @first on are marked; the marks are gone then. */
static unsigned marked(size_t first, size_t n)
{
	unsigned n_marked = 0;

	for (size_t i = first; i < first + n; i++) {
		n_marked += objects[i].goes;
		objects[i].goes = false;
	}
	return n_marked;
}

/* --- objects that go -------------------------------------------------------------------------- */

static void half_stays(void **state)
{
	const unsigned n = OBJECTSTORE_SOFT_MAX / 2;

	(void)state;
	add_many(n, 0, 1);
	assert_int_equal(eviction_choose(&eviction), 0);
	assert_int_equal(marked(0, n), 0);
	(void)add(0, 0, 1);
	assert_int_equal(eviction_choose(&eviction), 0);
	assert_true(objects[n].goes); /* the one that was not named for the longest time */
	assert_int_equal(marked(0, n + 1), 1);
}

/* In this order: what failed, what is of a user who has many, what nothing has mapped. */
static void in_order(void **state)
{
	const unsigned n_failed = 100, n_many = OBJECTSTORE_SOFT_MAX / 4 + 1, n_root = 1500;
	const size_t many_at = n_failed, root_at = many_at + n_many;
	const unsigned n = n_failed + n_many + n_root, n_go = n - OBJECTSTORE_SOFT_MAX / 2;

	(void)state;
	add_many(n_failed, 0, 5000);
	for (unsigned i = 0; i < n_failed; i++)
		objects[i].error = -ENOENT;
	add_many(n_many, 1000, 3000);
	add_many(n_root, 0, 1);
	assert_int_equal(eviction_choose(&eviction), 0);
	assert_int_equal(marked(0, n_failed), n_failed);
	assert_int_equal(marked(many_at, n_go - n_failed), n_go - n_failed);
	assert_int_equal(marked(0, n), 0);
	/* One fewer, and the user has no more than their part: root's were named earlier. */
	objects[many_at].original.uid = 0;
	assert_int_equal(eviction_choose(&eviction), 0);
	assert_int_equal(marked(0, n_failed), n_failed);
	assert_int_equal(marked(root_at, n_go - n_failed), n_go - n_failed);
	assert_int_equal(marked(0, n), 0);
}

static void what_is_mapped_stays_longer(void **state)
{
	const unsigned n_most = OBJECTSTORE_MAX / 8 * 7;

	(void)state;
	add_many(n_most, 0, MOMENT + 1);
	assert_int_equal(eviction_choose(&eviction), 0);
	assert_int_equal(marked(0, n_most), 0);
	add_many(OBJECTSTORE_MAX - n_most, 1000, MOMENT + MANY);
	/* That user has many: his go, though they were named later. */
	assert_int_equal(eviction_choose(&eviction), 0);
	assert_int_equal(marked(n_most, OBJECTSTORE_MAX - n_most), OBJECTSTORE_MAX - n_most);
	assert_int_equal(marked(0, n_most), 0);
	objects[0].seen = MOMENT;
	objects[1].n_refs = 2; /* a snapshot needs it */
	objects[1].seen = 1;
	assert_int_equal(eviction_choose(&eviction), 0);
	assert_true(objects[0].goes);
	assert_false(objects[1].goes);
	(void)marked(0, MANY);
}

/* --- copies that go --------------------------------------------------------------------------- */

static void copies_without_a_link(void **state)
{
	uint64_t bytes = 7;

	(void)state;
	(void)add(0, 3, 100);
	(void)add(0, 1, 0); /* a snapshot links to it */
	(void)add(0, 2, 10);
	add(0, 0, 1000)->error = -EIO;
	add(0, 0, 1000)->n_refs = 2;
	(void)add(0, MOMENT + 1, 1000);
	assert_int_equal(eviction_choose_alone(&eviction, 10, 0, &bytes), 0);
	assert_int_equal(bytes, 10);
	assert_true(objects[2].goes);
	assert_int_equal(marked(0, 6), 1);
	assert_int_equal(eviction_choose_alone(&eviction, 11, 110, &bytes), 0);
	assert_int_equal(bytes, 110);
	assert_true(objects[0].goes && objects[2].goes);
	assert_int_equal(marked(0, 6), 2);
	/* There is not enough: nothing goes. */
	assert_int_equal(eviction_choose_alone(&eviction, 1000, 111, &bytes), 0);
	assert_int_equal(bytes, 0);
	assert_int_equal(marked(0, 6), 0);
}

/* Take back, and return how many have been, by their place among the objects. */
static unsigned taken_back(uint64_t bytes, uid_t uid)
{
	uint64_t freed = 7;
	uid_t whose = 12345;
	unsigned places = 0;

	assert_int_equal(eviction_take_back(&eviction, &freed, &whose), 0);
	assert_int_equal(freed, bytes);
	assert_int_equal(whose, bytes > 0 ? uid : 12345);
	for (size_t i = 0; i < eviction.n_objects; i++) {
		places |= (objects[i].error == -EDQUOT ? 1u : 0u) << i;
		objects[i].error = objects[i].error == -EDQUOT ? 0 : objects[i].error;
	}
	return places;
}

static void the_user_with_most_gives(void **state)
{
	struct object *failed;

	(void)state;
	(void)add(1000, 2, 20);
	(void)add(1000, 1, 20);
	(void)add(1000, MOMENT + 1, 20);
	(void)add(0, 0, 20);
	(void)add(1001, 0, 10);
	failed = add(1000, 0, 0);
	failed->error = -EIO;
	failed->ahead = 20;
	the_copier.max = 110;
	assert_false(eviction_is_due(&the_copier.share, the_copier.max));
	assert_int_equal(taken_back(0, 0), 0);
	/* Nothing is left for others. */
	the_copier.max = 90;
	assert_true(eviction_is_due(&the_copier.share, the_copier.max));
	assert_int_equal(taken_back(20, 1000), 1u << 1);
}

/* For then no user has more than their part. */
static void root_gives_what_is_too_much(void **state)
{
	(void)state;
	(void)add(0, MOMENT + 1, 40);
	(void)add(0, 2, 40);
	(void)add(0, 1, 40);
	(void)add(1000, 1, 20);
	the_copier.max = 140;
	assert_false(eviction_is_due(&the_copier.share, the_copier.max));
	the_copier.max = 139;
	assert_true(eviction_is_due(&the_copier.share, the_copier.max));
	assert_int_equal(taken_back(40, 0), 1u << 2);
	the_copier.max = 59;
	the_copier.share.users[1].taken = 14; /* of the user's, whose part it is */
	the_copier.share.taken = 134;
	assert_int_equal(taken_back(80, 0), 1u << 1 | 1u << 2);
}

/* Only what no program has mapped goes for what a user needs. */
static void root_gives_what_is_needed(void **state)
{
	(void)state;
	(void)add(0, MOMENT + 1, 50);
	(void)add(0, MOMENT, 50);
	the_copier.max = 100;
	assert_int_equal(taken_back(0, 0), 0);
	the_copier.share.needed = 20;
	the_copier.share.needed_by = 1000;
	assert_int_equal(taken_back(50, 0), 1u << 1);
	objects[1].seen = MOMENT + 1;
	assert_true(eviction_is_due(&the_copier.share, the_copier.max));
	assert_int_equal(taken_back(0, 0), 0);
}

static int each_call(void *userdata)
{
	uint64_t bytes;
	uid_t uid;
	int r;

	(void)userdata;
	r = eviction_choose(&eviction);
	if (r == 0)
		r = eviction_choose_alone(&eviction, 1, 0, &bytes);
	if (r == 0)
		r = eviction_take_back(&eviction, &bytes, &uid);
	return r;
}

static void nothing_more(void *userdata)
{
	(void)userdata;
}

static void calls_that_fail(void **state)
{
	(void)state;
	(void)add(0, 1, 1);
	failing_each(each_call, nothing_more, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(half_stays, set_up),
		cmocka_unit_test_setup(in_order, set_up),
		cmocka_unit_test_setup(what_is_mapped_stays_longer, set_up),
		cmocka_unit_test_setup(copies_without_a_link, set_up),
		cmocka_unit_test_setup(the_user_with_most_gives, set_up),
		cmocka_unit_test_setup(root_gives_what_is_too_much, set_up),
		cmocka_unit_test_setup(root_gives_what_is_needed, set_up),
		cmocka_unit_test_setup(calls_that_fail, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
