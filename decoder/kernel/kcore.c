/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/kernel/kcore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "decoder/symbol/elfbytes.h"
#include "ptd/snapshot.h"
#include "util/message.h"

#define KERNEL_NAME "[kernel.kallsyms]"

static bool is_usable(const GElf_Phdr *h, uint64_t size)
{
	return h->p_type == PT_LOAD && (h->p_flags & PF_X) && h->p_filesz > 0 &&
	       h->p_filesz - 1 <= UINT64_MAX - h->p_vaddr && h->p_offset <= size &&
	       h->p_filesz <= size - h->p_offset;
}

/* Return: whether an earlier segment has some of the memory of @h; then the earlier one counts. */
static bool is_in_segment(const struct kcore *k, const GElf_Phdr *h)
{
	for (size_t i = 0; i < k->segments.n; i++) {
		const struct kcore_segment *s = &k->segments.items[i];

		if (h->p_vaddr <= s->start + (s->size - 1) &&
		    s->start <= h->p_vaddr + (h->p_filesz - 1))
			return true;
	}
	return false;
}

static int read_segments(struct kcore *k)
{
	_cleanup_(elfbytes_endp) Elf *elf = elfbytes_begin(k->kernel->file);
	size_t n_headers;
	int r = 0;

	if (!elf || elf_getphdrnum(elf, &n_headers) < 0)
		return 0;
	for (size_t i = 0; r == 0 && i < n_headers; i++) {
		GElf_Phdr h;

		if (!gelf_getphdr(elf, (int)i, &h) || !is_usable(&h, k->kernel->size))
			continue;
		if (k->segments.n == KCORE_SEGMENTS_MAX)
			k->n_segments_left_out++;
		else if (!is_in_segment(k, &h))
			r = vec_push(
			    &k->segments,
			    { .start = h.p_vaddr, .size = h.p_filesz, .offset = h.p_offset });
	}
	return r;
}

struct kcore_module {
	struct object *object; /* has the bytes of the kernel's object, under another name */
	struct kallsyms_source source;
};

static struct kcore_module *module_free(struct kcore_module *module)
{
	if (!module)
		return NULL;
	kallsyms_source_deinit(&module->source);
	free(module);
	return NULL;
}
DEFINE_CLEANUP(struct kcore_module *, module_free);

static int add_kernel(struct kcore *k, const char *path)
{
	struct object *object;
	int r;

	r = objects_add_named(k->objects, path, KERNEL_NAME, &object);
	if (r < 0)
		return r;
	kallsyms_source_init(&k->source, &k->kallsyms, NULL);
	object->symbols = &k->source.source;
	k->kernel = object;
	return 0;
}

static int add_module(struct kcore *k, const char *name, const struct object **ret_object)
{
	_cleanup_(module_freep) struct kcore_module *module = calloc(1, sizeof(*module));
	int r;

	if (!module)
		return -ENOMEM;
	r = objects_share(k->objects, k->kernel, false, name, &module->object);
	if (r < 0)
		return r;
	r = vec_push(&k->modules, module);
	if (r < 0)
		return r;
	kallsyms_source_init(&module->source, &k->kallsyms, module->object->id.name);
	module->object->symbols = &module->source.source;
	*ret_object = TAKE(module)->object;
	return 0;
}

int kcore_init(struct kcore *kcore, struct objects *objects)
{
	const char *dir = objects_dir(objects);
	_cleanup_(freep) char *names = NULL, *path = NULL;
	int r;

	*kcore = (struct kcore){ .objects = objects };
	if (!dir)
		return 0;
	names = message_text("%s/" PTD_SNAPSHOT_KALLSYMS, dir);
	path = message_text("%s/" PTD_SNAPSHOT_KCORE, dir);
	if (!names || !path)
		return -ENOMEM;
	r = mapfile_read(&kcore->kallsyms_text, AT_FDCWD, names);
	if (r == -ENOMEM)
		return r;
	kcore->kallsyms.text = &kcore->kallsyms_text;
	r = add_kernel(kcore, path);
	if (r < 0)
		return r == -ENOMEM ? r : 0;
	return read_segments(kcore);
}

void kcore_deinit(struct kcore *kcore)
{
	kallsyms_source_deinit(&kcore->source);
	vec_deinit_each(&kcore->modules, module, module_free(*module));
	kallsyms_deinit(&kcore->kallsyms);
	mapfile_deinit(&kcore->kallsyms_text);
	vec_deinit(&kcore->segments);
	*kcore = (struct kcore){};
}

void kcore_read(const struct kcore *kcore, uint64_t address, uint64_t size, uint16_t *to)
{
	for (size_t i = 0; i < kcore->segments.n; i++) {
		const struct kcore_segment *s = &kcore->segments.items[i];
		const uint64_t first = address > s->start ? address : s->start;
		const uint64_t last_asked = address + (size - 1),
			       last_had = s->start + (s->size - 1);
		const uint64_t last = last_asked < last_had ? last_asked : last_had;
		const uint8_t *from =
		    first <= last ? object_bytes(kcore->kernel, s->offset + (first - s->start),
						 last - first + 1)
				  : NULL;

		for (uint64_t k = 0; from && k <= last - first; k++)
			to[first - address + k] = from[k];
	}
}

int kcore_map_all(const struct kcore *kcore, struct kcore_mappings *mappings)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < kcore->segments.n; i++) {
		const struct kcore_segment *s = &kcore->segments.items[i];

		r = vec_push(&mappings->list, { .start = s->start,
						.size = s->size,
						.offset = s->offset,
						.object = kcore->kernel });
	}
	return r;
}

/*
 * Make "[xt_LOG]" of "[xt_LOG]" or "/lib/modules/…/xt_LOG.ko.xz". Return: whether @name is a
 * module.
 */
static bool module_name(const char *name, char *ret_name, size_t size)
{
	const char *base = basename(name), *end = strstr(base, ".ko");
	int n;

	if (name[0] == '[')
		n = snprintf(ret_name, size, "%s", name);
	else if (base > name && end > base)
		n = snprintf(ret_name, size, "[%.*s]", (int)(end - base), base);
	else
		return false;
	/* The name of a module has underscores where the name of its file may have dashes. */
	for (char *c = ret_name; base > name && *c; c++)
		*c = *c == '-' ? '_' : *c;
	return n > 2 && (size_t)n < size;
}

static int find_module(struct kcore *k, const char *name, const struct object **ret_object)
{
	int r;

	for (size_t i = 0; i < k->modules.n; i++)
		if (strcmp(k->modules.items[i]->object->id.name, name) == 0) {
			*ret_object = k->modules.items[i]->object;
			return 0;
		}
	if (k->modules.n == KCORE_MODULES_MAX) {
		k->n_modules_left_out++;
		*ret_object = k->kernel;
		return 0;
	}
	r = add_module(k, name, ret_object);
	return r < 0 && r != -ENOMEM ? -ENOENT : r;
}

int kcore_map_module(struct kcore *kcore, const char *name, uint64_t start, uint64_t size,
		     uint64_t time, struct kcore_mappings *mappings)
{
	const struct object *object;
	char module[128];
	int r;

	if (!kcore->kernel || size == 0 || size - 1 > UINT64_MAX - start ||
	    strncmp(name, KERNEL_NAME, strlen(KERNEL_NAME)) == 0 ||
	    !module_name(name, module, sizeof(module)))
		return 0;
	r = find_module(kcore, module, &object);
	if (r < 0)
		return r == -ENOMEM ? r : 0;

	for (size_t i = 0; r == 0 && i < kcore->segments.n; i++) {
		const struct kcore_segment *s = &kcore->segments.items[i];
		const uint64_t first = start > s->start ? start : s->start;
		const uint64_t last_asked = start + (size - 1), last_had = s->start + (s->size - 1);
		const uint64_t last = last_asked < last_had ? last_asked : last_had;

		if (first <= last)
			r = vec_push(&mappings->list, { .time = time,
							.start = first,
							.size = last - first + 1,
							.offset = s->offset + (first - s->start),
							.object = object });
	}
	return r;
}
