/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calls/functions.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_SHOWN 256 /* bytes of an object's name in that of a function without a symbol */

void functions_deinit(struct functions *functions)
{
	vec_deinit(&functions->all);
	starts_deinit(&functions->starts);
	map_deinit(&functions->by_symbol);
	map_deinit(&functions->by_note);
	map_deinit(&functions->by_linkage_name);
	arena_deinit(&functions->arena);
}

/* --- what a name says ------------------------------------------------------------------------- */

/*
 * Underscores before a name do not count, and "*" stands for the rest of it.
 *
 * Thunks are those of Linux 4.15 to 6.17, of gcc (also with -mindirect-branch-register and for
 * MPX), of clang and of Go. What Linux calls in its entry code, such as clear_bhb_loop and
 * entry_untrain_ret, is none: it does work of its own, and returns.
 */
static const struct {
	const char *name;
	uint8_t role;
} roles[] = {
	{ "swapcontext", FUNCTION_SWAP },
	{ "setcontext", FUNCTION_SET },
	{ "jump_fcontext", FUNCTION_SWAP },
	{ "ontop_fcontext", FUNCTION_SWAP },
	{ "gogo", FUNCTION_GO },
	{ "runtime.gogo", FUNCTION_GO },
	{ "runtime.gogo.abi0", FUNCTION_GO },
	{ "runtime.mcall", FUNCTION_PARK },
	{ "runtime.mcall.abi0", FUNCTION_PARK },
	{ "runtime.morestack", FUNCTION_GROW },
	{ "runtime.morestack.abi0", FUNCTION_GROW },
	{ "runtime.goexit0", FUNCTION_FREE },
	{ "Builtins_InterpreterEntryTrampoline", FUNCTION_INTERPRETER },
	{ "Builtin:InterpreterEntryTrampoline", FUNCTION_INTERPRETER },
	{ "Builtins_BaselineOutOfLinePrologue", FUNCTION_RESTART },
	{ "Builtin:BaselineOutOfLinePrologue", FUNCTION_RESTART },
	{ "__x86_indirect_*",
	  FUNCTION_THUNK }, /* …thunk_REG, …its_thunk_REG, …call_thunk_REG and kin */
	{ "__llvm_retpoline_*", FUNCTION_THUNK },
	{ "__llvm_lvi_thunk_*", FUNCTION_THUNK },
	{ "runtime.retpoline*", FUNCTION_THUNK },
	{ "__x86_return_thunk*", FUNCTION_RET }, /* …thunk_ecx and …thunk_bnd, too */
	{ "__x86_return_skl", FUNCTION_RET },
	{ "its_return_thunk", FUNCTION_RET },
	{ "uretprobe_trampoline", FUNCTION_RET },
	{ "call_depth_return_thunk", FUNCTION_RET },
	{ "srso_return_thunk", FUNCTION_RET },
	{ "srso_alias_return_thunk", FUNCTION_RET },
	{ "srso_safe_ret*", FUNCTION_RET },
	{ "srso_alias_safe_ret", FUNCTION_RET },
	{ "retbleed_return_thunk", FUNCTION_RET },
	{ "__bhi_args_*", FUNCTION_RET }, /* called in a prefix, and returns to it */
	{ "__pfx_*", FUNCTION_PREFIX },
	{ "__cfi_*", FUNCTION_PREFIX },
};

/*
 * A cold part is called "NAME.cold" or "NAME.cold.N"; demangled, "NAME [clone .cold]".
 *
 * Return: the size of NAME; 0 if @name is not of this form.
 */
static size_t size_of_whole(const char *name)
{
	static const char clone[] = " [clone ";
	const char *cold = NULL;
	size_t size;

	for (const char *at = strstr(name, ".cold"); at; at = strstr(at + 1, ".cold"))
		cold = at;
	if (!cold || (cold[5] != '\0' && cold[5] != '.' && cold[5] != ']'))
		return 0;
	size = (size_t)(cold - name);
	if (size > sizeof(clone) - 1 &&
	    memcmp(cold - (sizeof(clone) - 1), clone, sizeof(clone) - 1) == 0)
		size -= sizeof(clone) - 1;
	return size;
}

/* Return: whether the first @size bytes of the function's name say where it begins: it has none. */
static bool is_address(const struct function *f, size_t size)
{
	char address[sizeof("+0x0123456789abcdef")];
	const int n = snprintf(address, sizeof(address), "+0x%" PRIx64, f->shown.address);

	return n > 0 && size > (size_t)n &&
	       memcmp(f->shown.name + size - (size_t)n, address, (size_t)n) == 0;
}

/*
 * V8 calls code "JS:*NAME FILE:LINE:COLUMN", or "LazyCompile:…" and the like before that.
 *
 * Return: what follows the mark; NULL if @name is not of this form.
 */
static const char *find_script(const char *name)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
	const char *colon = name + strspn(name, letters);

	return colon > name && colon[0] == ':' && colon[1] && strchr("~^+*", colon[1]) ? colon + 2
										       : NULL;
}

/* Return: whether @name is @pattern, in which a "*" at the end stands for any text. */
static bool is_like(const char *name, const char *pattern)
{
	const size_t size = strlen(pattern) - 1;

	return pattern[size] == '*' ? strncmp(name, pattern, size) == 0
				    : strcmp(name, pattern) == 0;
}

static void find_role(struct function *f)
{
	const char *name = f->shown.name;
	const size_t size = strlen(name);

	if (size > 4 && strcmp(name + size - 4, "@plt") == 0) {
		f->role = FUNCTION_STUB;
		return;
	}
	f->script = find_script(name);
	f->whole_size = size_of_whole(name);
	if (f->whole_size > 0) {
		f->role = FUNCTION_COLD;
		if (is_address(f, f->whole_size))
			f->whole_size = 0;
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if (is_like(name, roles[i].name) ||
		    is_like(name + strspn(name, "_"), roles[i].name))
			f->role = roles[i].role;
}

bool functions_learn_swap(struct functions *functions, uint32_t function)
{
	struct function *f = (struct function *)(uintptr_t)functions->all.items[function];

	if (f->role != FUNCTION_PLAIN)
		return false;
	f->role = FUNCTION_SWAP;
	functions->n_learned++;
	return true;
}

void functions_join(struct functions *functions, uint32_t part, uint32_t whole)
{
	struct function *p = (struct function *)(uintptr_t)functions->all.items[part];
	const struct function *w = functions_get(functions, whole);

	if (p->role == FUNCTION_COLD && p->whole_size == 0 && p->whole == FUNCTION_NONE &&
	    w->role == FUNCTION_PLAIN && p->shown.object == w->shown.object)
		p->whole = whole;
}

bool functions_is_same_script(const struct functions *functions, uint32_t a, uint32_t b)
{
	const struct function *f = functions_get(functions, a), *g = functions_get(functions, b);

	if (!f->script || !g->script)
		return (f->script && g->role == FUNCTION_INTERPRETER) ||
		       (g->script && f->role == FUNCTION_INTERPRETER);
	return f->shown.object == g->shown.object && strcmp(f->script, g->script) == 0;
}

bool functions_is_cold_part(const struct functions *functions, uint32_t part, uint32_t whole)
{
	const struct function *p = functions_get(functions, part);
	const struct function *w = functions_get(functions, whole);

	if (p->role != FUNCTION_COLD)
		return false;
	if (p->whole_size == 0)
		return p->whole == whole;
	return p->shown.object == w->shown.object &&
	       strncmp(p->shown.name, w->shown.name, p->whole_size) == 0 &&
	       w->shown.name[p->whole_size] == '\0';
}

/* --- finding and making them ------------------------------------------------------------------ */

/* Add a function, whose name stays where it is. */
static int add_function(struct functions *functions, const struct ptd_function *shown,
			uint32_t *ret_function)
{
	struct function *f = arena_alloc(&functions->arena, sizeof(*f));

	if (!f || functions->all.n >= CODE_UNNAMED)
		return -ENOMEM;
	f->shown = *shown;
	f->whole = FUNCTION_NONE;
	f->shown.id = (uint32_t)functions->all.n;
	if (shown->symbol != PTD_NO_SYMBOL)
		find_role(f);
	if (vec_push(&functions->all, &f->shown) < 0)
		return -ENOMEM;
	*ret_function = f->shown.id;
	return 0;
}

/* Find the function of a symbol that was not seen yet, or add one. */
static int find_symbol(struct functions *functions, const struct ptd_batch *batch,
		       const struct ptd_object *object, uint32_t id, uint32_t *ret_code)
{
	const struct ptd_symbol *symbol = batch->symbols[id];
	const uint64_t note = (uintptr_t)symbol->jit;
	const uint64_t *known = note ? map_get(&functions->by_note, note) : NULL;
	int r;

	if (known) {
		*ret_code = (uint32_t)*known;
		return 0;
	}
	r = add_function(
	    functions,
	    &(struct ptd_function){
		.symbol = id, .object = object, .name = symbol->name, .address = symbol->address },
	    ret_code);
	return r < 0 || !note ? r : map_put(&functions->by_note, note, *ret_code);
}

int functions_of_symbol(struct functions *functions, const struct ptd_batch *batch,
			const struct ptd_object *object, uint32_t symbol, uint32_t *ret_function)
{
	const uint64_t key = (uint64_t)object->id << 32 | symbol;
	const uint64_t *known = map_get(&functions->by_symbol, key);
	int r;

	if (known) {
		*ret_function = (uint32_t)*known;
		return 0;
	}
	r = find_symbol(functions, batch, object, symbol, ret_function);
	return r < 0 ? r : map_put(&functions->by_symbol, key, *ret_function);
}

int functions_code(struct functions *functions, const struct ptd_batch *batch,
		   const struct ptd_block *block, size_t i, uint32_t *ret_code)
{
	const uint32_t symbol = block->insns[i].symbol;

	if (symbol == PTD_NO_SYMBOL || symbol >= batch->n_symbols) {
		*ret_code = CODE_UNNAMED | (block->object->id & (CODE_UNNAMED - 1));
		return 0;
	}
	return functions_of_symbol(functions, batch, block->object, symbol, ret_code);
}

/* Return: the function without a symbol that begins at instruction @i; NULL if none is known. */
static const struct start *find_begin(const struct functions *functions,
				      const struct ptd_block *block, size_t i)
{
	const uint64_t address = block->address + block->insns[i].offset;
	const struct start *start = starts_nearest(&functions->starts, block->object->id, address);

	return start && start->address == address ? start : NULL;
}

bool functions_begins(const struct functions *functions, const struct ptd_block *block, size_t i)
{
	return find_begin(functions, block, i);
}

static char *make_name(struct functions *functions, const struct ptd_object *object,
		       uint64_t address)
{
	char name[FILE_SHOWN + 24];

	(void)snprintf(name, sizeof(name), "%.*s+0x%" PRIx64, FILE_SHOWN, basename(object->name),
		       address);
	return arena_strdup(&functions->arena, name);
}

int functions_begin(struct functions *functions, const struct ptd_block *block, size_t i,
		    uint32_t *ret_function)
{
	const uint64_t address = block->address + block->insns[i].offset;
	const struct start *known = find_begin(functions, block, i);
	const char *name;
	int r;

	if (known) {
		*ret_function = known->function;
		return 0;
	}
	name = make_name(functions, block->object, address);
	if (!name)
		return -ENOMEM;
	r = add_function(
	    functions,
	    &(struct ptd_function){ .object = block->object, .name = name, .address = address },
	    ret_function);
	if (r == 0)
		r = starts_add(&functions->starts, &(struct start){ .object = block->object->id,
								    .function = *ret_function,
								    .address = address });
	functions->n_starts += r == 0;
	return r;
}

bool functions_nearest(const struct functions *functions, const struct ptd_block *block, size_t i,
		       uint32_t *ret_function)
{
	const struct start *nearest = starts_nearest(&functions->starts, block->object->id,
						     block->address + block->insns[i].offset);

	if (!nearest)
		return false;
	*ret_function = nearest->function;
	return true;
}

/* --- functions that were inlined -------------------------------------------------------------- */

static int add_inlined(struct functions *functions, const struct ptd_object *object,
		       const struct ptd_inlined *place, uint64_t address, uint32_t *ret_function)
{
	char *name = arena_alloc(&functions->arena, strlen(place->name) + sizeof(PTD_INLINED_MARK));
	int r;

	if (!name)
		return -ENOMEM;
	(void)stpcpy(stpcpy(name, place->name), PTD_INLINED_MARK);
	r = add_function(
	    functions,
	    &(struct ptd_function){ .symbol = PTD_NO_SYMBOL,
				    .object = object,
				    .name = name,
				    .address = place->has_entry ? place->entry : address,
				    .is_inlined = true },
	    ret_function);
	if (r == 0)
		((struct function *)(uintptr_t)functions->all.items[*ret_function])->inlined =
		    place->linkage_name;
	return r;
}

int functions_of_inlined(struct functions *functions, const struct ptd_object *object,
			 const struct ptd_inlined *place, uint64_t address, uint32_t *ret_function)
{
	const char *name = place->linkage_name;
	uint64_t key = map_hash(name, strlen(name)) ^ (uint64_t)object->id << 44;
	const uint64_t *known;
	int r;

	for (; (known = map_get(&functions->by_linkage_name, key)); key++) {
		const struct function *f = functions_get(functions, (uint32_t)*known);

		if (f->shown.object == object && strcmp(f->inlined, name) == 0) {
			*ret_function = f->shown.id;
			return 0;
		}
	}
	r = add_inlined(functions, object, place, address, ret_function);
	return r < 0 ? r : map_put(&functions->by_linkage_name, key, *ret_function);
}

/* --- starts ----------------------------------------------------------------------------------- */

struct starts_part {
	size_t n;
	struct start items[STARTS_PART];
};

void starts_deinit(struct starts *starts)
{
	vec_deinit_each(&starts->parts, part, free(*part));
}

/* Return: whether @start is at most at @address of @object. */
static bool is_up_to(const struct start *start, uint32_t object, uint64_t address)
{
	return start->object != object ? start->object < object : start->address <= address;
}

/* Return: how many parts begin at most at the address. */
static size_t count_parts(const struct starts *starts, uint32_t object, uint64_t address)
{
	return vec_bisect(&starts->parts, part, is_up_to((*part)->items, object, address));
}

/* Return: how many starts of the part are at most at the address. */
static size_t count_starts(const struct starts_part *part, uint32_t object, uint64_t address)
{
	return vec_bisect(part, start, is_up_to(start, object, address));
}

/* Add an empty part as number @i. Return: it; NULL: no memory. */
static struct starts_part *add_part(struct starts *starts, size_t i)
{
	struct starts_part *part = calloc(1, sizeof(*part));

	if (!part || vec_reserve(&starts->parts, 1) < 0) {
		free(part);
		return NULL;
	}
	memmove(&starts->parts.items[i + 1], &starts->parts.items[i],
		(starts->parts.n++ - i) * sizeof(struct starts_part *));
	starts->parts.items[i] = part;
	return part;
}

/* Move the second half of part @i, which is full, to a new one behind it. */
static int split(struct starts *starts, size_t i)
{
	struct starts_part *whole = starts->parts.items[i];
	struct starts_part *half = add_part(starts, i + 1);

	if (!half)
		return -ENOMEM;
	half->n = STARTS_PART / 2;
	whole->n = STARTS_PART - half->n;
	memcpy(half->items, &whole->items[whole->n], half->n * sizeof(*half->items));
	return 0;
}

int starts_add(struct starts *starts, const struct start *start)
{
	size_t i = count_parts(starts, start->object, start->address);
	struct starts_part *part;
	size_t at;

	if (starts->parts.n == 0 && !add_part(starts, 0))
		return -ENOMEM;
	/* What comes before all others belongs to the first part. */
	i -= i > 0;
	if (starts->parts.items[i]->n == STARTS_PART) {
		if (split(starts, i) < 0)
			return -ENOMEM;
		i += is_up_to(starts->parts.items[i + 1]->items, start->object, start->address);
	}
	part = starts->parts.items[i];
	at = count_starts(part, start->object, start->address);
	memmove(&part->items[at + 1], &part->items[at], (part->n++ - at) * sizeof(*part->items));
	part->items[at] = *start;
	return 0;
}

const struct start *starts_nearest(const struct starts *starts, uint32_t object, uint64_t address)
{
	const size_t n_parts = count_parts(starts, object, address);
	const struct starts_part *part;
	const struct start *start;

	if (n_parts == 0)
		return NULL;
	/* It begins at most there, so that it has at least one. */
	part = starts->parts.items[n_parts - 1];
	start = &part->items[count_starts(part, object, address) - 1];
	return start->object == object ? start : NULL;
}
