/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/taken.h"

#include <string.h>
#include <sys/mman.h>

#include "daemon/objects/objectstore.h"
#include "record/record.h"
#include "util/map.h"
#include "util/mapname.h"
#include "util/objectsmap.h"
#include "util/vec.h"

/* Paths that are told though no object is for them: a reader takes a limited number of lines. */
#define UNKNOWN_MAX 65536u

#define ID_SIZE 256 /* of what objects.map says of an object: a hash, or why it is not there */

struct entry {
	const struct object *object; /* borrowed */
	size_t alike;                /* 1 + index of another whose path hashes alike; 0: none */
	size_t same_id;              /* the same of one taken before whose build-id hashes alike */
	bool taken;
	bool late; /* it still waits to be copied, and is not waited for */
	bool by_content;
};

struct taken {
	struct entry *entries;
	size_t n_entries;
	struct map by_path; /* hash of path → 1 + index of the last */
	VEC(const char *) unknown;
	struct map is_unknown; /* hash of path → 1 */
	struct map claimed;    /* hash of a build-id that is claimed for what is missing → 1 */
};

static uint64_t *find(const struct taken *t, const char *path)
{
	return map_get(&t->by_path, map_hash(path, strlen(path)));
}

int taken_new(struct object *const *objects, size_t n_objects, struct taken **ret_taken)
{
	_cleanup_(taken_freep) struct taken *t = calloc(1, sizeof(*t));
	const uint64_t *head;

	if (!t)
		return -ENOMEM;
	t->entries = calloc(n_objects + 1, sizeof(*t->entries));
	if (!t->entries)
		return -ENOMEM;
	for (size_t i = 0; i < n_objects; i++) {
		const char *path = objects[i]->path;

		head = find(t, path);
		t->entries[i] =
		    (struct entry){ .object = objects[i], .alike = head ? (size_t)*head : 0 };
		if (map_put(&t->by_path, map_hash(path, strlen(path)), i + 1) < 0)
			return -ENOMEM;
	}
	t->n_entries = n_objects;
	*ret_taken = TAKE(t);
	return 0;
}

struct taken *taken_free(struct taken *taken)
{
	if (!taken)
		return NULL;

	free(taken->entries);
	map_deinit(&taken->by_path);
	vec_deinit(&taken->unknown);
	map_deinit(&taken->is_unknown);
	map_deinit(&taken->claimed);
	free(taken);
	return NULL;
}

/* A file is missing for which a record claims this build-id: one that is kept and has it may be
 * another. There are no more claims than records in the sideband. */
static int claim(struct taken *t, const struct buildid *id)
{
	const uint64_t key = map_hash(id->bytes, id->size);

	return id->size == 0 || map_get(&t->claimed, key) ? 0 : map_put(&t->claimed, key, 1);
}

/* It is code that is in a file. Memory and jitdumps are no objects of the object store. */
static int add_unknown(struct taken *t, const struct record_mmap2 *mmap)
{
	const uint64_t key = map_hash(mmap->name, strlen(mmap->name));
	int r;

	r = mmap->prot & PROT_EXEC ? claim(t, &mmap->build_id) : 0;
	if (r < 0)
		return r;
	if (!object_is_meant(mmap) || mapname_is_memory(mmap->name) ||
	    mapname_is_jitdump(mmap->name) || map_get(&t->is_unknown, key) ||
	    t->unknown.n == UNKNOWN_MAX)
		return 0;
	r = map_put(&t->is_unknown, key, 1);
	return r < 0 ? r : vec_push(&t->unknown, mmap->name);
}

int taken_add(struct taken *taken, const struct record_mmap2 *mmap)
{
	const uint64_t *head = find(taken, mmap->name);
	bool known = false;

	for (size_t i = head ? (size_t)*head : 0; i > 0; i = taken->entries[i - 1].alike)
		if (object_matches(taken->entries[i - 1].object, mmap))
			known = taken->entries[i - 1].taken = true;
	return known ? 0 : add_unknown(taken, mmap);
}

static bool kept(const struct entry *entry)
{
	return entry->taken && !entry->late && entry->object->error == 0;
}

/* Of those that claim one build-id, with different contents, none has a right to it; nor if one of
 * them is missing, for its content is not known. */
static void judge(struct taken *t, struct entry *entry, size_t same_id)
{
	const struct object *object = entry->object, *other;
	bool disputed =
	    map_get(&t->claimed, map_hash(object->build_id.bytes, object->build_id.size)) != NULL;

	for (size_t i = same_id; i > 0; i = t->entries[i - 1].same_id) {
		other = t->entries[i - 1].object;
		if (buildid_equal(&other->build_id, &object->build_id) &&
		    (t->entries[i - 1].by_content || strcmp(other->sha256, object->sha256) != 0))
			disputed = true;
	}
	entry->by_content = disputed;
	for (size_t i = same_id; disputed && i > 0; i = t->entries[i - 1].same_id)
		if (buildid_equal(&t->entries[i - 1].object->build_id, &object->build_id))
			t->entries[i - 1].by_content = true;
}

int taken_settle(struct taken *taken, struct objectstore *store, const atomic_bool *cancel)
{
	struct map by_id = {}; /* hash of build-id → 1 + index of the last */
	int r = 0;

	objectstore_measure(store);
	for (size_t i = 0; i < taken->n_entries; i++)
		taken->entries[i].late = !objectstore_is_near(store, taken->entries[i].object);
	for (size_t i = 0; r == 0 && i < taken->n_entries; i++)
		if (taken->entries[i].taken && !taken->entries[i].late)
			r = objectstore_wait(store, taken->entries[i].object, cancel);
	for (size_t i = 0; r == 0 && i < taken->n_entries; i++)
		if (taken->entries[i].taken && !kept(&taken->entries[i]))
			r = claim(taken, &taken->entries[i].object->claimed);
	for (size_t i = 0; r == 0 && i < taken->n_entries; i++) {
		struct entry *entry = &taken->entries[i];
		const struct buildid *id = &entry->object->build_id;
		const uint64_t *head;

		if (!kept(entry))
			continue;
		if (id->size == 0) {
			entry->by_content = true;
			continue;
		}
		head = map_get(&by_id, map_hash(id->bytes, id->size));
		entry->same_id = head ? (size_t)*head : 0;
		judge(taken, entry, entry->same_id);
		r = map_put(&by_id, map_hash(id->bytes, id->size), i + 1);
	}
	map_deinit(&by_id);
	return r;
}

const struct object *taken_next(const struct taken *taken, size_t *at, bool *ret_by_content)
{
	while (*at < taken->n_entries && !kept(&taken->entries[*at]))
		(*at)++;
	if (*at == taken->n_entries)
		return NULL;
	*ret_by_content = taken->entries[*at].by_content;
	return taken->entries[(*at)++].object;
}

size_t taken_n_missing(const struct taken *taken)
{
	size_t n = taken->unknown.n;

	for (size_t i = 0; i < taken->n_entries; i++)
		n += taken->entries[i].taken && !kept(&taken->entries[i]);
	return n;
}

void taken_print(const struct taken *taken, FILE *stream)
{
	for (size_t i = 0; i < taken->n_entries; i++) {
		const struct entry *entry = &taken->entries[i];
		char id[ID_SIZE];

		if (!entry->taken)
			continue;
		if (entry->late)
			(void)snprintf(
			    id, sizeof(id),
			    "- more than 768 MiB of its owner's files wait to be copied");
		else if (!kept(entry))
			(void)snprintf(id, sizeof(id), "- %s", object_why(entry->object->error));
		else if (entry->by_content)
			(void)snprintf(id, sizeof(id), "sha256:%s", entry->object->sha256);
		else
			(void)buildid_hex(&entry->object->build_id, id);
		objectsmap_put(stream, id, entry->object->path);
	}
	for (size_t i = 0; i < taken->unknown.n; i++)
		objectsmap_put(stream, "- there was no room for it, or room was made for others",
			       taken->unknown.items[i]);
}
