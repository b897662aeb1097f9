/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "tests/lib/copied.h"

#include <stddef.h>
#include <unistd.h>

#include "daemon/objects/copier.h"
#include "daemon/objects/objectstore.h"

int copied_wait(struct objectstore *store, const struct object *object)
{
	int r;

	while ((r = copier_wait(objectstore_copier(store), object, NULL)) == COPIER_STALLED)
		(void)usleep(10000);
	return r;
}
