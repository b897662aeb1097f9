/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Functions
 *
 * The functions that code belongs to, and what their names say about how they behave. Code with a
 * symbol belongs to the function of this symbol; symbols of the same note in a jitdump are one
 * function, as bytes that the compiler changed later are in another object. Code without a symbol
 * belongs to the nearest function below it that was called, and that has no symbol either.
 *
 * A code is a number that is the same for instructions that can follow each other without a call:
 * of code with a symbol the number of its function, of code without one a number for the object.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "ptd/calls.h"
#include "ptd/decode.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/vec.h"

/*
 * Where functions without a symbol begin, in order, so that the nearest one below an address is
 * found quickly. They come one by one, and one is looked for after each that came. So they lie in
 * parts of bounded size: to add one moves some of its part only.
 */

#define STARTS_PART 256

struct start {
	uint32_t object;
	uint32_t function;
	uint64_t address;
};

/* An empty list has only zeros. */
struct starts {
	VEC(struct starts_part *) parts; /* none is empty; owned */
};

void starts_deinit(struct starts *starts);

/* Add one whose object and address are not in the list. Return: 0 or -ENOMEM. */
_must_check_ int starts_add(struct starts *starts, const struct start *start);

/*
 * Return: the one of @object with the highest address that is at most @address, valid until the
 *         next is added; NULL if there is none.
 */
const struct start *starts_nearest(const struct starts *starts, uint32_t object, uint64_t address);

enum function_role {
	FUNCTION_PLAIN,
	/* Silent: they lead to a function. */
	FUNCTION_STUB,   /* of the PLT: jumps to a function */
	FUNCTION_THUNK,  /* stands for an indirect branch: jumps to a function, or into its user */
	FUNCTION_PREFIX, /* called in place of the function that is behind it */

	FUNCTION_RET,  /* jumped to for a return that the CPU does not predict */
	FUNCTION_COLD, /* a part of another function, which the compiler put elsewhere */
	FUNCTION_SWAP, /* goes on on another stack, and returns when its own goes on */
	FUNCTION_SET,  /* goes on on another stack; its own has ended */
	FUNCTION_GO,   /* the same, but it is the thread's scheduler that calls it */
	FUNCTION_PARK, /* what it calls runs on the scheduler's stack; it returns when its own goes
			  * on */
	FUNCTION_GROW, /* the same; it makes its own stack larger, and then lets that go on */
	FUNCTION_FREE, /* runs on the scheduler's stack; its caller's has ended */

	/* Of V8: */
	FUNCTION_INTERPRETER, /* executes any function of a script */
	FUNCTION_RESTART,     /* instead of returning it may begin the caller anew */
};

#define FUNCTION_NONE UINT32_MAX

/* Return: whether a call of a function with this role is silent until that leads to another. */
static inline bool function_leads_on(uint8_t role)
{
	return role == FUNCTION_STUB || role == FUNCTION_THUNK || role == FUNCTION_PREFIX;
}

struct function {
	struct ptd_function shown; /* the first field */
	uint8_t role;              /* enum function_role */

	/* Of a cold part: bytes of its name that are the whole's. If the whole has no name, 0: then
	 * the first function that jumps to the part is the whole (FUNCTION_NONE: none did). */
	size_t whole_size;
	uint32_t whole;

	/* Of JavaScript: what follows the mark in its name that says which compiler made the code.
	 * Else NULL. */
	const char *script;

	/* Of what a compiler inlined, its linkage name. Else NULL. */
	const char *inlined;
};

#define CODE_UNNAMED (UINT32_C(1) << 31) /* and the id of the object */
#define CODE_NONE    UINT32_MAX          /* no instruction has it */

struct functions {
	struct arena arena;
	VEC(const struct ptd_function *) all; /* each is in a struct function */
	struct map by_symbol;                 /* object and symbol → number */
	struct map by_note;                   /* note in a jitdump → number */
	struct map by_linkage_name;           /* of those that were inlined: its hash → number */
	struct starts starts;                 /* of those without a symbol */
	size_t n_starts;
	size_t n_learned; /* functions whose role was not known at first */
};

void functions_deinit(struct functions *functions);

static inline const struct function *functions_get(const struct functions *functions, uint32_t i)
{
	return (const struct function *)(const void *)functions->all.items[i];
}

/*
 * Return: whether @function, to which instruction @i of @block belongs, begins with it. A cold part
 * is not called.
 */
static inline bool functions_is_beginning(const struct function *function,
					  const struct ptd_batch *batch,
					  const struct ptd_block *block, size_t i)
{
	return function->role != FUNCTION_COLD && batch->symbols[block->insns[i].symbol]->address ==
						      block->address + block->insns[i].offset;
}

/* Get the code of instruction @i of @block. Return: 0 or -ENOMEM. */
_must_check_ int functions_code(struct functions *functions, const struct ptd_batch *batch,
				const struct ptd_block *block, size_t i, uint32_t *ret_code);

/* Get the function of the symbol @symbol, which is in @object. Return: 0 or -ENOMEM. */
_must_check_ int functions_of_symbol(struct functions *functions, const struct ptd_batch *batch,
				     const struct ptd_object *object, uint32_t symbol,
				     uint32_t *ret_function);

/*
 * Get the function that begins at instruction @i of @block, which is called and has no symbol.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int functions_begin(struct functions *functions, const struct ptd_block *block,
				 size_t i, uint32_t *ret_function);

/*
 * Get the function that was inlined at @place in @object, which is another one than that which was
 * compiled on its own. @address is that of the instruction that was seen there first.
 *
 * Return: 0 or -ENOMEM.
 */
_must_check_ int functions_of_inlined(struct functions *functions, const struct ptd_object *object,
				      const struct ptd_inlined *place, uint64_t address,
				      uint32_t *ret_function);

/* Return: whether a function without a symbol begins at instruction @i of @block. */
bool functions_begins(const struct functions *functions, const struct ptd_block *block, size_t i);

/*
 * Find the function without a symbol that instruction @i of @block belongs to.
 *
 * Return: whether one is known.
 */
bool functions_nearest(const struct functions *functions, const struct ptd_block *block, size_t i,
		       uint32_t *ret_function);

/*
 * The function turned out to be FUNCTION_SWAP. What is kept of its role elsewhere is out of date.
 *
 * Return: false if it has another role already.
 */
bool functions_learn_swap(struct functions *functions, uint32_t function);

/* The function @whole jumps to @part: if that is a cold part that knows of no whole, this is it. */
void functions_join(struct functions *functions, uint32_t part, uint32_t whole);

/*
 * Return: whether both may be code of the same function of a script, made by different compilers or
 *         at different times, or the interpreter. One that is running goes on in the middle of the
 *         other.
 */
bool functions_is_same_script(const struct functions *functions, uint32_t a, uint32_t b);

/* Return: whether @part is a cold part of @whole. */
bool functions_is_cold_part(const struct functions *functions, uint32_t part, uint32_t whole);
