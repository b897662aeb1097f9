/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <systemd/sd-event.h>

#include "daemon/sideband/scanner.h"
#include "daemon/sideband/sideband.h"
#include "daemon/source/source.h"
#include "tests/unit/records.h"

#define N_TASKS 5u

/* A source that tells of one task at a time. */
struct teller {
	struct source source;
	uint32_t n;   /* told of in this round */
	int fails;    /* how often it will */
	size_t n_put; /* that the owner heard of */
	size_t n_scans;
};

static int tasks(struct source *source, const struct tasks *known, uint64_t budget_ns,
		 record_put_fn put, void *userdata)
{
	struct teller *t = (struct teller *)source;
	uint8_t record[RECORD_OWN_MAX];
	struct trailer trailer;
	size_t size;

	assert_non_null(known);
	if (budget_ns == 0)
		return SOURCE_MORE;
	assert_in_range(budget_ns, 1, 20000000);
	if (t->fails > 0) {
		t->fails--;
		t->n = 0;
		return -EIO;
	}
	t->n++;
	trailer = record_trailer(t->n, t->n, 100 + t->n);
	size = record_write_comm(&(struct record_comm){ .pid = t->n, .tid = t->n, .comm = "task" },
				 &trailer, record, sizeof(record));
	assert_int_equal(put(userdata, record, size), 0);
	if (t->n < N_TASKS)
		return 1;
	t->n = 0;
	t->n_scans++;
	return 0;
}

static int heard(void *userdata, void *bytes, size_t size)
{
	struct teller *t = userdata;

	(void)bytes;
	assert_true(size > 0);
	t->n_put++;
	return 0;
}

static const struct source_ops ops = { .tasks = tasks };

static void tells_when_wanted(void **state)
{
	_cleanup_(sideband_freep) struct sideband *sideband = NULL;
	_cleanup_(scanner_freep) struct scanner *scanner = NULL;
	struct teller teller = { .source.ops = &ops, .fails = 1 };
	struct records r = {};
	struct perfbuild *b;
	sd_event *event;

	(void)state;
	assert_int_equal(sd_event_new(&event), 0);
	assert_int_equal(sideband_new(1 << 20, NULL, &teller.source, &sideband), 0);
	assert_int_equal(scanner_new(&(struct scanner_options){ .event = event,
								.source = &teller.source,
								.sideband = sideband,
								.put = heard,
								.userdata = &teller },
				     &scanner),
			 0);
	/* Nobody has asked yet. */
	assert_int_equal(sd_event_run(event, 0), 0);
	assert_int_equal(teller.n_put, 0);

	/* It fails first, and is asked again. */
	scanner_check(scanner);
	while (sideband_wants_look(sideband))
		assert_true(sd_event_run(event, UINT64_MAX) >= 0);
	assert_int_equal(teller.fails, 0);
	assert_int_equal(teller.n_scans, 1);
	assert_int_equal(teller.n_put, N_TASKS);
	scanner_check(scanner);
	assert_int_equal(sd_event_run(event, 0), 0);

	b = records_at(1, 200, 0);
	records_take(&r, b, perfbuild_lost(b, 1));
	assert_int_equal(sideband_add(sideband, r.bytes, r.size), 0);
	records_deinit(&r);
	assert_true(sideband_wants_look(sideband));
	scanner_check(scanner);
	scanner_check(scanner);
	while (sideband_wants_look(sideband))
		assert_true(sd_event_run(event, UINT64_MAX) >= 0);
	assert_int_equal(teller.n_scans, 2);
	assert_int_equal(teller.n_put, 2 * N_TASKS);

	scanner = scanner_free(scanner);
	(void)sd_event_unref(event);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tells_when_wanted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
