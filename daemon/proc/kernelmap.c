/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/kernelmap.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

#include "util/textfile.h"

#define PAGE        KERNELMAP_PAGE
#define PIECES_MAX  4096u            /* readers of kcore accept no more segments */
#define MODULES_MAX (PIECES_MAX - 1) /* besides the kernel itself */
#define LOOSE_MAX   (1u << 17)  /* pieces outside of modules, before adjacent ones are joined */
#define NEAR        (16 * PAGE) /* two pieces at this distance or less are joined */
#define LOOSE_SIZE  (16 * PAGE) /* largest code outside of modules: a BPF program, a trampoline */

struct counts {
	size_t n_symbols, n_addresses; /* that are not 0 */
};

void kernelmap_deinit(struct kernelmap *map)
{
	vec_deinit(&map->pieces);
	vec_deinit(&map->modules);
	*map = (struct kernelmap){};
}

static int add_code_piece(struct kernelmap *map, uint64_t start, uint64_t end, bool is_loose)
{
	if (end <= start || end > UINT64_MAX - PAGE)
		return 0;
	return vec_push(&map->pieces, { .start = start & ~(PAGE - 1),
					.end = (end + PAGE - 1) & ~(PAGE - 1),
					.is_loose = is_loose });
}

/* Code outside of modules, which may be long. */
static int add_loose(struct kernelmap *map, uint64_t address)
{
	if (map->pieces.n < LOOSE_MAX)
		return add_code_piece(map, address, address + LOOSE_SIZE, true);
	map->n_left_out++;
	return 0;
}

/* Return: 1 if the line names a function; 0 if not; or -ENOMEM. */
static int read_symbol(struct kernelmap *map, struct counts *counts, const char *line)
{
	char kind, name[512], module[KERNELMAP_NAME_SIZE] = "";
	uint64_t address;
	int r = 0;

	if (sscanf(line, "%" SCNx64 " %c %511s [%60[^]]]", &address, &kind, name, module) < 3)
		return 0;
	counts->n_symbols++;
	counts->n_addresses += address != 0;
	if (!strchr("tTwW", kind))
		return 0;
	if (!module[0] && strcmp(name, "_text") == 0)
		map->text = address;
	else if (!module[0] && strcmp(name, "_etext") == 0)
		map->etext = address;
	else if (module[0] &&
		 (strcmp(module, "bpf") == 0 || strncmp(module, "__builtin__", 11) == 0))
		r = add_loose(map, address);
	return r < 0 ? r : 1;
}

static int put_line(struct kernelmap_texts *texts, FILE *to, const char *line)
{
	const size_t size = strlen(line);

	if (size > texts->size_max)
		return -EFBIG;
	texts->size_max -= size;
	(void)fputs(line, to); /* an error shows at its end */
	return 0;
}

static enum kernellack find_lack(const struct kernelmap *map, const struct counts *counts)
{
	if (counts->n_symbols == 0)
		return KERNELLACK_EMPTY_NAMES;
	if (counts->n_addresses == 0)
		return KERNELLACK_NO_ADDRESS;
	if (map->text == 0 || map->etext <= map->text ||
	    map->etext - map->text > KERNELMAP_CODE_MAX)
		return KERNELLACK_ODD_NAMES;
	return KERNELLACK_NONE;
}

/* Read all names, and copy those of functions. */
static int read_kallsyms(int proc_fd, struct kernelmap *map, struct kernelmap_texts *texts,
			 enum kernellack *ret_lack)
{
	_cleanup_(textfile_closep) FILE *from = NULL;
	_cleanup_(freep) char *line = NULL;
	struct counts counts = {};
	size_t size = 0;
	int r;

	r = textfile_open(proc_fd, "kallsyms", &from);
	if (r == -ENOENT) {
		*ret_lack = KERNELLACK_NO_NAMES;
		return 0;
	}
	while (r >= 0 && getline(&line, &size, from) > 0) {
		r = read_symbol(map, &counts, line);
		if (r > 0 && texts)
			r = put_line(texts, texts->names, line);
	}
	if (r < 0)
		return r;
	*ret_lack = find_lack(map, &counts);
	return *ret_lack ? 0 : add_code_piece(map, map->text, map->etext, false);
}

static int compare_modules(const void *a, const void *b)
{
	const struct kernelmap_module *x = a, *y = b;

	return COMPARE(x->start, y->start);
}

/* Newer kernels count parts that are no code and lie elsewhere, so a module ends where the next one
 * begins. */
static int add_modules(struct kernelmap *map)
{
	struct kernelmap_module *m = map->modules.items;
	const size_t n = map->modules.n;
	int r = 0;

	vec_sort(&map->modules, compare_modules);
	for (size_t i = 0; r == 0 && i < n; i++) {
		if (i + 1 < n && m[i].size > m[i + 1].start - m[i].start)
			m[i].size = m[i + 1].start - m[i].start;
		r = add_code_piece(map, m[i].start, m[i].start + m[i].size, false);
	}
	return r;
}

static int read_modules(int proc_fd, struct kernelmap *map, struct kernelmap_texts *texts)
{
	_cleanup_(textfile_closep) FILE *from = NULL;
	_cleanup_(freep) char *line = NULL;
	size_t size = 0;
	int r;

	r = textfile_open(proc_fd, "modules", &from);
	if (r == -ENOENT)
		return 0; /* a kernel without */
	while (r == 0 && getline(&line, &size, from) > 0) {
		struct kernelmap_module m = { .name = "[" };

		if (texts)
			r = put_line(texts, texts->modules, line);
		if (r < 0 ||
		    sscanf(line, "%60s %" SCNu64 " %*s %*s %*s %" SCNx64, m.name + 1, &m.size,
			   &m.start) != 3 ||
		    m.start == 0 || m.size == 0 || m.size > KERNELMAP_CODE_MAX)
			continue;
		strcat(m.name, "]");
		if (map->modules.n < MODULES_MAX)
			r = vec_push(&map->modules, m);
		else
			map->n_left_out++;
	}
	return r < 0 ? r : add_modules(map);
}

static int compare_pieces(const void *a, const void *b)
{
	const struct kernelmap_piece *x = a, *y = b;

	return COMPARE(x->start, y->start);
}

/* Sort by address, and remove duplicates. */
static void settle_pieces(struct kernelmap *map)
{
	struct kernelmap_piece *p = map->pieces.items;
	size_t n = 0;

	vec_sort(&map->pieces, compare_pieces);
	for (size_t i = 0; i < map->pieces.n; i++)
		if (n > 0 && p[i].start <= p[n - 1].end + NEAR) {
			if (p[i].end > p[n - 1].end)
				p[n - 1].end = p[i].end;
			p[n - 1].is_loose = p[n - 1].is_loose && p[i].is_loose;
		} else {
			p[n++] = p[i];
		}
	map->pieces.n = n;
}

/* The kernel and its modules come first: there is room for all of them. */
static void leave_out_loose(struct kernelmap *map)
{
	struct kernelmap_piece *p = map->pieces.items;
	size_t excess = map->pieces.n > PIECES_MAX ? map->pieces.n - PIECES_MAX : 0, n = 0;

	map->n_left_out += excess;
	for (size_t i = 0; i < map->pieces.n; i++)
		if (excess > 0 && p[i].is_loose)
			excess--;
		else
			p[n++] = p[i];
	map->pieces.n = n;
}

int kernelmap_init(struct kernelmap *map, int proc_fd, struct kernelmap_texts *texts,
		   enum kernellack *ret_lack)
{
	enum kernellack lack = KERNELLACK_NONE;
	int r;

	*map = (struct kernelmap){};
	r = read_kallsyms(proc_fd, map, texts, &lack);
	if (r == 0 && !lack)
		r = read_modules(proc_fd, map, texts);
	if (r < 0 || lack)
		kernelmap_deinit(map);
	if (r < 0)
		return r;
	settle_pieces(map);
	leave_out_loose(map);
	*ret_lack = lack;
	return 0;
}

/* --- what is missing -------------------------------------------------------------------------- */

const char *kernellack_text(enum kernellack lack)
{
	switch (lack) {
	case KERNELLACK_NO_NAMES:
		return "/proc/kallsyms is not there: under systemd, ProcSubset=pid hides it";
	case KERNELLACK_EMPTY_NAMES:
		return "/proc/kallsyms is empty: under systemd, ProtectKernelTunables=yes does "
		       "that; set it to no";
	case KERNELLACK_NO_ADDRESS:
		return "/proc/kallsyms shows no addresses: CAP_SYSLOG is missing (under systemd, "
		       "ProtectKernelLogs=yes takes it away), or sysctl kernel.kptr_restrict is 2";
	case KERNELLACK_ODD_NAMES:
		return "/proc/kallsyms does not say where the kernel's code is";
	case KERNELLACK_NO_CODE:
		return "/proc/kcore cannot be read: CAP_SYS_RAWIO is missing (under systemd, "
		       "PrivateDevices=yes takes it away), or the kernel is locked down";
	case KERNELLACK_ODD_CODE:
		return "/proc/kcore is no ELF file of the kernel's memory";
	case KERNELLACK_NONE:
	case _KERNELLACKS:
		break;
	}
	return NULL;
}
