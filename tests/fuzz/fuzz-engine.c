/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * PT bytes to both engines, over a small program. Whatever the bytes: each engine comes to an end,
 * runs stay inside the program, and in = decoded + lost.
 */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "decoder/image/cache.h"
#include "decoder/image/objects.h"
#include "decoder/image/space.h"
#include "decoder/image/view.h"
#include "decoder/pt/engine.h"

#define BASE 0x401000

/* nop; je +2; nop; nop; call +6; jmp *%rax; … nop; ret; syscall; nop; jmp self; nop */
static const uint8_t program[] = {
	0x90, 0x74, 0x02, 0x90, 0x90, 0xe8, 0x06, 0x00, 0x00, 0x00, 0xff, 0xe0,
	0x90, 0x90, 0x90, 0x90, 0x90, 0xc3, 0x0f, 0x05, 0x90, 0xeb, 0xfe, 0x90,
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void need(bool holds)
{
	if (!holds)
		abort();
}

static char path[] = "/tmp/ptd-fuzz-XXXXXX"; /* of code; the engines read it when they need it */

static void remove_file(void)
{
	unlink(path);
}

static struct space *make_space(struct objects **objects)
{
	const struct object *object = NULL;
	struct space *space = NULL;
	const int fd = mkstemp(path);

	need(fd >= 0);
	need(write(fd, program, sizeof(program)) == (ssize_t)sizeof(program));
	close(fd);
	need(objects_new(NULL, objects) == 0);
	need(objects_add_file(*objects, path, &object) == 0);
	atexit(remove_file);
	need(space_new(0, NULL, 0, &space) == 0);
	need(space_map(space, &(struct mapping){
				  .start = BASE, .size = sizeof(program), .object = object }) == 0);
	return space;
}

static void decode(const char *name, const uint8_t *data, size_t size, const struct space *space,
		   struct ptd_run *runs)
{
	_cleanup_(cache_freep) struct cache *cache = NULL;
	_cleanup_(views_freep) struct views *views = NULL;
	_cleanup_(engine_freep) struct engine *engine = NULL;
	struct engine_budget budget = { .n_insns = ENGINE_INSNS_MIN };
	struct engine_config config = { .has_threads = true, .budget = &budget };
	_cleanup_(freep) uint8_t *pt = malloc(size + 1); /* its own: an engine writes to it */
	uint64_t lost = 0;
	struct engine_step step;

	need(pt && cache_new(NULL, NULL, &cache) == 0 && views_new(cache, &views) == 0);
	if (size > 0)
		memcpy(pt, data, size);
	config.pt = fileparts_in_memory(pt, size);
	config.cache = cache;
	config.views = views;
	need(engine_new(engine_find(name), &config, &engine) == 0);
	do {
		need(engine_next(engine, runs, ENGINE_STEP_RUNS_MAX, &step) == 0);
		for (size_t i = 0; i < step.n_runs; i++) {
			const struct ptd_run *run = &runs[i];

			need(run->n > 0 && run->first + run->n <= run->block->n_insns);
			need(run->base >= BASE &&
			     run->base + run->block->size <= BASE + sizeof(program));
		}
		if (step.stop == ENGINE_GAP) {
			need(step.offset <= size && step.n_bytes <= size - step.offset);
			lost += step.n_bytes;
		}
		if (step.stop == ENGINE_ASK)
			need(engine_set_space(engine, space, 1, 1) == 0);
	} while (step.stop != ENGINE_END);
	need(engine_decoded(engine) + lost == size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct objects *objects;
	static struct space *space;
	static struct ptd_run *runs;

	if (!space) {
		space = make_space(&objects);
		runs = calloc(ENGINE_STEP_RUNS_MAX, sizeof(*runs));
		need(runs);
	}
	decode("insn", data, size, space, runs);
	decode("flow", data, size, space, runs);
	return 0;
}
