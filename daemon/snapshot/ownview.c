/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/ownview.h"

#include "daemon/collector/link.h"
#include "daemon/objects/object.h"
#include "daemon/snapshot/ownpart.h"
#include "daemon/source/source.h"
#include "record/record.h"
#include "util/mapname.h"

void ownview_deinit(struct ownview *view)
{
	view->link = collectorlink_free(view->link);
	view->part = ownpart_free(view->part);
}

int ownview_pick(struct ownview *view, const struct owned_life *lives, size_t n)
{
	view->part = ownpart_free(view->part);
	return ownpart_new(lives, n, &view->part);
}

void ownview_get_cpus(const struct ownview *view, struct source *source, struct cpulist *ret_cpus)
{
	*ret_cpus = (struct cpulist){};
	for (uint32_t i = 0; i < source->n_cpus && i < CPULIST_MAX; i++)
		if (view->is_shared || source->ops->is_of(source, i, view->uid)) {
			ret_cpus->bits[i / 64] |= UINT64_C(1) << i % 64;
			ret_cpus->end = i + 1;
		}
}

bool ownview_has_record(const struct ownview *view, const struct record *record)
{
	uint8_t bytes[RECORD_OWN_MAX];

	if (view->is_shared)
		return view->part && ownpart_show(view->part, record, bytes) > 0;
	return !view->is_own || record->writer == RECORD_OF_USER(view->uid) ||
	       (record->writer == RECORD_TRUE && record->header.type == PERF_RECORD_LOST);
}

int ownview_connect(struct ownview *view, const char *runtime_dir)
{
	return view->is_own ? collectorlink_new(runtime_dir, false, &view->link) : 0;
}

bool ownview_has_object(const struct ownview *view, const struct object *object)
{
	struct original now;

	if (!view->is_own || mapname_is_vdso(object->path))
		return true;
	return original_read_by(view->link, view->uid, object->path, view->cancel, &now) == 0 &&
	       original_equal(&now, &object->copied);
}
