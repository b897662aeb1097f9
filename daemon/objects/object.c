/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/objects/object.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "util/mapname.h"

#define PATH_SIZE_MAX 4096u

bool object_is_meant(const struct record_mmap2 *mmap)
{
	const char *name = mmap->name;

	return mmap->prot & PROT_EXEC && strlen(name) < PATH_SIZE_MAX &&
	       (mapname_is_vdso(name) || (name[0] == '/' && name[1] != '/'));
}

const char *object_why(int error)
{
	switch (-error) {
	case EDQUOT:
		return "copies to which no snapshot links have the room that there is for them, "
		       "and those of this file's owner have their share of it";
	case ENOSPC:
		return "the disk is full, or less than KeepFree= would be left";
	case ESTALE:
		return "another file is at this path by now";
	case ENOEXEC:
		return "it is not a regular file";
	case EACCES:
		return "not every user may read it, and the process does not have it mapped "
		       "any more";
	case EFBIG:
		return "it is larger than 512 MiB, or grew while it was copied";
	case ETIMEDOUT:
		return "reading it took too long";
	case ENOTCONN:
		return "the collector was not there";
	default:
		return strerror(-error);
	}
}

struct object *object_new(const struct record_mmap2 *mmap)
{
	struct object *o = malloc(sizeof(*o));

	if (!o)
		return NULL;
	*o = (struct object){ .n_refs = 1, .fd = -1, .claimed = mmap->build_id, .mapped = *mmap };
	o->path = strdup(mmap->name);
	o->mapped.name = o->path;
	return o->path ? o : object_unref(o);
}

struct object *object_ref(struct object *object)
{
	object->n_refs++;
	return object;
}

struct object *object_unref(struct object *object)
{
	if (object && --object->n_refs == 0) {
		(void)fd_close(object->fd);
		free(object->path);
		free(object);
	}
	return NULL;
}

bool object_is_by_inode(const struct object *object)
{
	return object->claimed.size > 0 && object->mapped.build_id.size == 0;
}

bool object_matches(const struct object *object, const struct record_mmap2 *mmap)
{
	const uint64_t ino = object->mapped.ino;

	return buildid_equal(&object->mapped.build_id, &mmap->build_id) &&
	       (ino == 0 || mmap->ino == 0 || ino == mmap->ino) &&
	       strcmp(object->path, mmap->name) == 0;
}
