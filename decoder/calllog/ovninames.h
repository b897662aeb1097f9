/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * ovni names
 *
 * What the events of ovni begin and end, which takes the place of functions: the values of marks,
 * tasks by their types, and the regions of the models of parallel runtimes. Labels of marks belong
 * to the whole trace, types and tasks to a process and a model.
 */

#include <stdint.h>

#include "base/base.h"
#include "decoder/util/ovni.h"
#include "util/arena.h"
#include "util/map.h"
#include "util/vec.h"

#define OVNINAMES_MAX       (1u << 20) /* more names are refused, */
#define OVNINAMES_TASKS_MAX (1u << 22) /* and more tasks that threads other than theirs execute */
#define OVNINAMES_SIZE      1024       /* bytes of a name; the rest is cut off */

struct ovnimark {
	const char *title; /* NULL: not known */
	struct map names;  /* value → number of the name */
};

struct ovninames {
	struct arena arena;
	VEC(const char *) all; /* by number */
	struct map by_text; /* hash → number; where two are equal, the next free number is it */
	struct ovnimark marks[OVNI_MARK_TYPES];
	struct map types; /* of tasks: process, model and number → number of the name */
	struct map tasks; /* likewise → key of its type */
	struct map other; /* letters of other events → number of the name */
};

/* What identifies a type or a task. @model is its letter, @process the number of the process. */
uint64_t ovninames_key(char model, uint32_t process, uint32_t number);

/* Note a title or label of a mark, the name of a type of tasks, or the type of a task.
 *
 * Return: 0; -EFBIG: there are too many; or -ENOMEM.
 */
_must_check_ int ovninames_title(struct ovninames *names, unsigned int type, const char *title);
_must_check_ int ovninames_label(struct ovninames *names, unsigned int type, int64_t value,
				 const char *label);
_must_check_ int ovninames_type(struct ovninames *names, uint64_t key, const char *label);
_must_check_ int ovninames_task(struct ovninames *names, uint64_t key, uint64_t type);

/*
 * Get the number of the name of a mark's value, a task's type (whose key is 0 if it is not known),
 * or another event; see ovni_model_of(). It is made if there is none.
 *
 * Return: 0, -EFBIG or -ENOMEM.
 */
_must_check_ int ovninames_of_mark(struct ovninames *names, uint32_t type, int64_t value,
				   uint32_t *ret_name);
_must_check_ int ovninames_of_type(struct ovninames *names, char model, uint64_t type,
				   uint32_t *ret_name);
_must_check_ int ovninames_of_event(struct ovninames *names,
				    const char letters[static OVNI_LETTERS], uint32_t *ret_name);

void ovninames_deinit(struct ovninames *names);
