/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/sink/memtrace/mappings.h"

#include <inttypes.h>
#include <string.h>

#include "util/outdir.h"

#define NAME       "aux/mappings.tsv"
#define NAME_BYTES 8192 /* of a name, which are written; no path is longer */

static const char columns[] = "pid\tobject\tbuild_id\tbase\tvalid_from\n";

void memtrace_mappings_init(struct memtrace_mappings *mappings,
			    const struct ptd_sink_config *config,
			    const struct memtrace_clock *clock)
{
	*mappings = (struct memtrace_mappings){
		.dir_fd = config->fd,
		.clock = clock,
		.config = { .size = sizeof(mappings->config), .fd = -1, .room = config->room },
		.output = output_none(),
	};
}

void memtrace_mappings_deinit(struct memtrace_mappings *mappings)
{
	output_deinit(&mappings->output);
	map_deinit(&mappings->bases);
}

static int create(struct memtrace_mappings *mappings)
{
	_cleanup_(fd_closep) int fd = outdir_open(mappings->dir_fd, NAME, true);
	int r;

	if (fd < 0)
		return fd;
	mappings->config.fd = fd;
	r = output_init(&mappings->output, &mappings->config);
	if (r < 0)
		return r;
	fd = -1;
	return ptd_output_write(&mappings->output, columns, sizeof(columns) - 1);
}

static int write_line(struct memtrace_mappings *mappings, uint64_t pid, const struct ptd_run *run,
		      uint64_t base)
{
	const struct ptd_object *object = run->block->object;
	struct ptd_output *output = &mappings->output;
	char name[NAME_BYTES];
	int r = output->fd < 0 ? create(mappings) : 0;

	if (r < 0)
		return r;
	ptd_output_printf(output, "%" PRIu64 "\t", pid);
	(void)ptd_output_write(output, name, output_printable(name, object->name, sizeof(name)));
	ptd_output_printf(output, "\t");
	for (size_t i = 0; i < object->build_id_size; i++)
		ptd_output_printf(output, "%02x", object->build_id[i]);
	ptd_output_printf(output, "%s\t%" PRIx64 "\t%" PRIu64 "\n",
			  object->build_id_size ? "" : "-", base,
			  memtrace_stamp(mappings->clock, run->t));
	return output->error;
}

/* Return: whether the code was mapped: code of JIT compilers and of the kernel lies where it is. */
static bool is_mapped(const struct ptd_run *run)
{
	const char *name = run->block->object->name;

	return (name[0] == '/' || strcmp(name, "[vdso]") == 0) && !(run->base >> 63);
}

int memtrace_mappings_add(struct memtrace_mappings *mappings, uint64_t pid,
			  const struct ptd_run *run)
{
	const uint64_t base = run->base - run->block->address;
	const uint64_t *known;
	uint64_t key;
	int r;

	if (!run->block->object)
		return 0;
	key = pid << 32 | run->block->object->id;
	if ((mappings->has_last && key == mappings->last_key && base == mappings->last_base) ||
	    !is_mapped(run))
		return 0;
	known = map_get(&mappings->bases, key);
	if (!known || *known != base) {
		r = map_put(&mappings->bases, key, base);
		if (r == 0)
			r = write_line(mappings, pid, run, base);
		if (r < 0)
			return r;
	}
	mappings->has_last = true;
	mappings->last_key = key;
	mappings->last_base = base;
	return 0;
}

int memtrace_mappings_finish(struct memtrace_mappings *mappings)
{
	return mappings->output.fd < 0 ? 0 : output_finish(&mappings->output);
}
