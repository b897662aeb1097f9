/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/snapshot/selection.h"

#include <string.h>
#include <sys/mman.h>

#include "daemon/objects/copier.h"
#include "daemon/objects/object.h"
#include "daemon/snapshot/userparts.h"
#include "util/map.h"
#include "util/mapname.h"
#include "util/objectsmap.h"
#include "util/perf/record.h"
#include "util/vec.h"

/* Paths that are told though no object is for them: a reader takes a limited number of lines. */
#define UNKNOWN_MAX 65536u

#define ID_SIZE 320 /* of what objects.map says of an object: a hash, or why it is not there */

struct entry {
	const struct object *object; /* borrowed */
	size_t alike;                /* 1 + index of another whose path hashes alike; 0: none */
	size_t same_id; /* the same of one selected before whose build-id hashes alike */
	bool is_selected;
	const char *late; /* why it, which still waits to be copied, is not waited for; or NULL */
	bool by_content;

	uint64_t ran; /* when a process that has it mapped ran last */

	/* Once there is a copy of it. */
	uint64_t bytes; /* on the disk that it takes more */
	uid_t payer;
	bool has_all;  /* everything of its user may be selected */
	bool left_out; /* its user has too much */
};

struct selection {
	struct entry *entries;
	size_t n_entries;
	struct map by_path; /* hash of path → 1 + index of the last */
	VEC(const char *) unknown;
	struct map is_unknown; /* hash of path → 1 */
	struct map claimed;    /* hash of a build-id that is claimed for what is missing → 1 */
};

static uint64_t *find_path(const struct selection *s, const char *path)
{
	return map_get(&s->by_path, map_hash(path, strlen(path)));
}

int selection_new(struct object *const *objects, size_t n_objects, struct selection **ret_selection)
{
	_cleanup_(selection_freep) struct selection *s = calloc(1, sizeof(*s));
	const uint64_t *head;

	if (!s)
		return -ENOMEM;
	s->entries = calloc(n_objects + 1, sizeof(*s->entries));
	if (!s->entries)
		return -ENOMEM;
	for (size_t i = 0; i < n_objects; i++) {
		const char *path = objects[i]->path;

		head = find_path(s, path);
		s->entries[i] =
		    (struct entry){ .object = objects[i], .alike = head ? (size_t)*head : 0 };
		if (map_put(&s->by_path, map_hash(path, strlen(path)), i + 1) < 0)
			return -ENOMEM;
	}
	s->n_entries = n_objects;
	*ret_selection = TAKE(s);
	return 0;
}

struct selection *selection_free(struct selection *selection)
{
	if (!selection)
		return NULL;

	free(selection->entries);
	map_deinit(&selection->by_path);
	vec_deinit(&selection->unknown);
	map_deinit(&selection->is_unknown);
	map_deinit(&selection->claimed);
	free(selection);
	return NULL;
}

/* A file is missing for which a record claims this build-id: one that is kept and has it may be
 * another. There are no more claims than records in the sideband. */
static int claim_build_id(struct selection *s, const struct buildid *id)
{
	const uint64_t key = map_hash(id->bytes, id->size);

	return id->size == 0 || map_get(&s->claimed, key) ? 0 : map_put(&s->claimed, key, 1);
}

/* It is code that is in a file. Memory and jitdumps are no objects of the object store. */
static int add_unknown(struct selection *s, const struct record_mmap2 *mmap)
{
	const uint64_t key = map_hash(mmap->name, strlen(mmap->name));
	int r;

	r = mmap->prot & PROT_EXEC ? claim_build_id(s, &mmap->build_id) : 0;
	if (r < 0)
		return r;
	if (!object_is_meant(mmap) || mapname_is_memory(mmap->name) ||
	    mapname_is_jitdump(mmap->name) || map_get(&s->is_unknown, key) ||
	    s->unknown.n == UNKNOWN_MAX)
		return 0;
	r = map_put(&s->is_unknown, key, 1);
	return r < 0 ? r : vec_push(&s->unknown, mmap->name);
}

int selection_add(struct selection *selection, const struct record_mmap2 *mmap, uint64_t ran)
{
	const uint64_t *head = find_path(selection, mmap->name);
	bool known = false;

	for (size_t i = head ? (size_t)*head : 0; i > 0; i = selection->entries[i - 1].alike) {
		struct entry *entry = &selection->entries[i - 1];

		if (!object_matches(entry->object, mmap))
			continue;
		known = entry->is_selected = true;
		entry->ran = ran > entry->ran ? ran : entry->ran;
	}
	return known ? 0 : add_unknown(selection, mmap);
}

static bool has_copy(const struct entry *entry)
{
	return entry->is_selected && !entry->late && !entry->left_out && entry->object->error == 0;
}

/* Of those that claim one build-id, with different contents, none has a right to it; nor if one of
 * them is missing, for its content is not known. */
static void settle_place(struct selection *s, struct entry *entry, size_t same_id)
{
	const struct object *object = entry->object, *other;
	bool disputed =
	    map_get(&s->claimed, map_hash(object->build_id.bytes, object->build_id.size)) != NULL;

	for (size_t i = same_id; i > 0; i = s->entries[i - 1].same_id) {
		other = s->entries[i - 1].object;
		if (buildid_equal(&other->build_id, &object->build_id) &&
		    (s->entries[i - 1].by_content || strcmp(other->sha256, object->sha256) != 0))
			disputed = true;
	}
	entry->by_content = disputed;
	for (size_t i = same_id; disputed && i > 0; i = s->entries[i - 1].same_id)
		if (buildid_equal(&s->entries[i - 1].object->build_id, &object->build_id))
			s->entries[i - 1].by_content = true;
}

static int await_copy(struct entry *entry, struct copier *copier, const atomic_bool *cancel)
{
	const int r = copier_wait(copier, entry->object, cancel);

	if (r == COPIER_STALLED)
		entry->late = COPIER_WHY_STALLED;
	return r < 0 ? r : 0;
}

/* All objects of whom everything may be selected come first, then who ran last. */
static int by_precedence(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;

	if (x->has_all != y->has_all)
		return x->has_all ? -1 : 1;
	if (x->ran != y->ran)
		return x->ran > y->ran ? -1 : 1;
	return (x > y) - (x < y);
}

static uint64_t content_key(const struct entry *entry)
{
	return map_hash(entry->object->sha256, strlen(entry->object->sha256));
}

/* List the entries with a copy. Return: how many there are, in an array with room for all. */
static size_t list_copied(struct selection *s, struct copier *copier, struct userparts *parts,
			  struct entry **ret_copied)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_entries; i++) {
		struct entry *entry = &s->entries[i];

		if (!has_copy(entry))
			continue;
		entry->bytes = copier_bytes(copier, entry->object, &entry->payer);
		entry->has_all = userparts_has_all(entry->payer);
		userparts_add_user(parts, entry->payer);
		ret_copied[n++] = entry;
	}
	if (n > 1)
		qsort(ret_copied, n, sizeof(*ret_copied), by_precedence);
	return n;
}

/* Leave out what is beyond the parts of the users. One content takes room once. */
static int leave_some_out(struct selection *s, struct copier *copier, struct userparts *parts)
{
	_cleanup_(freep) struct entry **copied = malloc((s->n_entries + 1) * sizeof(*copied));
	_cleanup_(map_deinit) struct map contents = {}; /* that are selected */
	size_t n;
	int r = 0;

	if (!copied)
		return -ENOMEM;
	n = list_copied(s, copier, parts, copied);
	for (size_t i = 0; r == 0 && i < n; i++) {
		const struct entry *entry = copied[i];

		if (map_get(&contents, content_key(entry)) ||
		    entry->bytes > userparts_left(parts, entry->payer))
			continue;
		userparts_take(parts, entry->payer, entry->bytes);
		r = map_put(&contents, content_key(entry), 1);
	}
	for (size_t i = 0; r == 0 && i < n; i++) {
		copied[i]->left_out = !map_get(&contents, content_key(copied[i]));
		if (copied[i]->left_out)
			copier_count_left_out(copier, copied[i]->payer);
	}
	return r;
}

int selection_finish(struct selection *selection, struct copier *copier, struct userparts *parts,
		     const atomic_bool *cancel)
{
	struct map by_id = {}; /* hash of build-id → 1 + index of the last */
	int r = 0;

	copier_measure(copier);
	for (size_t i = 0; i < selection->n_entries; i++)
		selection->entries[i].late =
		    copier_why_not_near(copier, selection->entries[i].object);
	for (size_t i = 0; r == 0 && i < selection->n_entries; i++)
		if (selection->entries[i].is_selected && !selection->entries[i].late)
			r = await_copy(&selection->entries[i], copier, cancel);
	if (r == 0)
		r = leave_some_out(selection, copier, parts);
	for (size_t i = 0; r == 0 && i < selection->n_entries; i++)
		if (selection->entries[i].is_selected && !has_copy(&selection->entries[i]))
			r = claim_build_id(selection, &selection->entries[i].object->claimed);
	for (size_t i = 0; r == 0 && i < selection->n_entries; i++) {
		struct entry *entry = &selection->entries[i];
		const struct buildid *id = &entry->object->build_id;
		const uint64_t *head;

		if (!has_copy(entry))
			continue;
		if (id->size == 0) {
			entry->by_content = true;
			continue;
		}
		head = map_get(&by_id, map_hash(id->bytes, id->size));
		entry->same_id = head ? (size_t)*head : 0;
		settle_place(selection, entry, entry->same_id);
		r = map_put(&by_id, map_hash(id->bytes, id->size), i + 1);
	}
	map_deinit(&by_id);
	return r;
}

const struct object *selection_next(const struct selection *selection, size_t *at,
				    bool *ret_by_content)
{
	while (*at < selection->n_entries && !has_copy(&selection->entries[*at]))
		(*at)++;
	if (*at == selection->n_entries)
		return NULL;
	*ret_by_content = selection->entries[*at].by_content;
	return selection->entries[(*at)++].object;
}

size_t selection_n_missing(const struct selection *selection)
{
	size_t n = selection->unknown.n;

	for (size_t i = 0; i < selection->n_entries; i++)
		n += selection->entries[i].is_selected && !has_copy(&selection->entries[i]);
	return n;
}

size_t selection_n_without_room(const struct selection *selection)
{
	size_t n = 0;

	for (size_t i = 0; i < selection->n_entries; i++) {
		const struct entry *e = &selection->entries[i];

		/* What is late may be being copied now. */
		n += e->is_selected && !e->late && !has_copy(e) && e->object->error == -ENOSPC;
	}
	return n;
}

/* Return: whether the object is told from others of its path by its inode: records that name a
 * build-id do not mean it. */
static bool is_told_by_inode(const struct selection *s, const struct entry *entry)
{
	const struct object *object = entry->object;
	size_t n = 0;

	if (object_is_by_inode(object))
		return true;
	if (object->claimed.size > 0 || object->mapped.ino == 0)
		return false;
	for (size_t i = (size_t)*find_path(s, object->path); i > 0 && n < 2;
	     i = s->entries[i - 1].alike)
		n += s->entries[i - 1].is_selected;
	return n > 1;
}

/* Why the snapshot does not have the object. */
static const char *why_missing(const struct entry *entry)
{
	return entry->late       ? entry->late
	       : entry->left_out ? USERPARTS_WHY
				 : object_why(entry->object->error);
}

/* What it is that the snapshot has of the object. */
static void write_id(const struct entry *entry, char *ret_id, size_t size)
{
	const char *hash = entry->object->sha256;
	char hex[BUILDID_HEX_MAX];

	if (!has_copy(entry) && !entry->late && hash[0] != '\0')
		(void)snprintf(ret_id, size, "- " OBJECTSMAP_HASH "%s %s", hash,
			       why_missing(entry));
	else if (!has_copy(entry))
		(void)snprintf(ret_id, size, "- %s", why_missing(entry));
	else if (entry->by_content)
		(void)snprintf(ret_id, size, OBJECTSMAP_HASH "%s", hash);
	else
		(void)snprintf(ret_id, size, "%s", buildid_hex(&entry->object->build_id, hex));
}

void selection_write_map(const struct selection *selection, FILE *stream)
{
	for (size_t i = 0; i < selection->n_entries; i++) {
		const struct entry *entry = &selection->entries[i];
		const struct record_mmap2 *mapped = &entry->object->mapped;
		char id[ID_SIZE];
		int n = 0;

		if (!entry->is_selected)
			continue;
		if (is_told_by_inode(selection, entry))
			n = snprintf(id, sizeof(id), OBJECTSMAP_INODE, mapped->maj, mapped->min,
				     mapped->ino);
		write_id(entry, id + n, sizeof(id) - (size_t)n);
		objectsmap_put(stream, id, entry->object->path);
	}
	for (size_t i = 0; i < selection->unknown.n; i++)
		objectsmap_put(stream, "- there was no room for it, or room was made for others",
			       selection->unknown.items[i]);
}
