/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/callfeed.h"

int callfeed_init(struct callfeed *feed, const struct ptd_info *info)
{
	*feed = (struct callfeed){};
	return ptd_calls_new(info, &feed->layer);
}

void callfeed_deinit(struct callfeed *feed)
{
	ptd_calls_free(feed->layer);
	*feed = (struct callfeed){};
}

static void begin(struct callfeed *feed, const struct ptd_batch *batch)
{
	feed->batch = batch;
	feed->mark = 0;
	feed->found = NULL;
}

int callfeed_batch(struct callfeed *feed, const struct ptd_batch *batch)
{
	begin(feed, batch);
	return ptd_calls_batch(feed->layer, batch);
}

int callfeed_logged(struct callfeed *feed, const struct ptd_logged *logged)
{
	begin(feed, &logged->batch);
	return ptd_calls_logged(feed->layer, logged);
}

int callfeed_finish(struct callfeed *feed)
{
	feed->batch = NULL;
	feed->found = NULL;
	return ptd_calls_finish(feed->layer);
}

int callfeed_fill(struct callfeed *feed)
{
	int r;

	do {
		feed->found = NULL;
		feed->call = 0;
		r = ptd_calls_next(feed->layer, &feed->found);
	} while (r == 0 && feed->found->n_calls == 0);
	if (r != 0)
		feed->found = NULL;
	return r;
}
