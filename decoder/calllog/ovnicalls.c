/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "decoder/calllog/ovnicalls.h"

#include <errno.h>
#include <string.h>

#include "decoder/calllog/ovninames.h"

/* In which categories tasks and their types are, by model. */
static const struct {
	char model, task, type;
} task_models[] = { { 'V', 'T', 'Y' }, { '6', 'T', 'Y' }, { 'P', 'P', 'O' } };

/*
 * The values that begin a region, by model and category; the capital letters end it. Besides these,
 * '[' begins and ']' ends one in all of them.
 */
static const char *const regions[] = {
	"6Bbfuw",   "6Dru",
	"6Helmw",   "6Maf",
	"6Sap",     "6Wgmrstw",
	"MAagr",    "MCbes",
	"MDbgs",    "MEbs",
	"MRos",     "MSbrs",
	"MTasy",    "MUfit",
	"MWasy",    "Maagr",
	"Mcbes",    "Mdbgs",
	"Mebs",     "Mros",
	"Msbrs",    "PBbfjst",
	"PCfi",     "PIar",
	"PMiu",     "PTacdgirstwy",
	"PWcdeisy", "TCi",
	"TGc",      "TLip",
	"TQat",     "TRacst",
	"TTcw",     "VAabcdegijklmnoprstuwy",
	"VHadw",    "VMaf",
};

/* Regions that end with another letter. */
static const struct {
	char begin[OVNI_LETTERS + 1], end;
} odd_regions[] = { { "VSN", 'n' }, { "VSh", 'f' }, { "KCO", 'I' } };

void ovnicalls_begin(struct ovnicalls *calls)
{
	calls->made = (struct ovnitask){};
	calls->running.n = 0;
}

void ovnicalls_deinit(struct ovnicalls *calls)
{
	vec_deinit(&calls->running);
}

/* An event of a stream that is taken. */
struct step {
	struct ovnicalls *calls;
	struct ovninames *names;
	const struct ovnievent *event;
	struct ovnicall *call;
};

/* --- regions ---------------------------------------------------------------------------------- */

/* Return: whether the event begins or ends a region, and in @ret_begin the letters that begin it.
 */
static bool find_region(const char letters[static OVNI_LETTERS], char ret_begin[OVNI_LETTERS],
			bool *ret_begins)
{
	const char value = letters[2];
	const bool is_upper = value >= 'A' && value <= 'Z';
	const char lower = is_upper ? (char)(value - 'A' + 'a') : value;

	memcpy(ret_begin, letters, OVNI_LETTERS);
	*ret_begins = true;
	if (value == '[' || value == ']') {
		*ret_begins = value == '[';
		ret_begin[2] = '[';
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(odd_regions); i++) {
		if (memcmp(odd_regions[i].begin, letters, 2) != 0 ||
		    (value != odd_regions[i].begin[2] && value != odd_regions[i].end))
			continue;
		*ret_begins = value == odd_regions[i].begin[2];
		ret_begin[2] = odd_regions[i].begin[2];
		return true;
	}
	for (size_t i = 0; i < ARRAY_LEN(regions); i++) {
		if (memcmp(regions[i], letters, 2) != 0 || !strchr(regions[i] + 2, lower))
			continue;
		*ret_begins = !is_upper;
		ret_begin[2] = lower;
		return true;
	}
	return false;
}

static int take_other(struct step *s)
{
	char begin[OVNI_LETTERS];
	bool begins;

	if (find_region(s->event->letters, begin, &begins))
		s->call->kind = begins ? OVNICALL_ENTER : OVNICALL_LEAVE;
	else
		s->call->kind = OVNICALL_POINT;
	return ovninames_of_event(s->names, begin, &s->call->name);
}

/* --- ovni's own events ------------------------------------------------------------------------ */

static int take_mark(struct step *s)
{
	switch (s->event->letters[2]) {
	case '[':
		s->call->kind = OVNICALL_ENTER;
		break;
	case ']':
		s->call->kind = OVNICALL_LEAVE;
		break;
	default:
		s->call->kind = OVNICALL_POINT;
		break;
	}
	return ovninames_of_mark(s->names, ovnievent_u32(s->event, 8),
				 (int64_t)ovnievent_u64(s->event, 0), &s->call->name);
}

static int take_ovni(struct step *s)
{
	const struct ovnievent *event = s->event;
	const bool begins = memcmp(event->letters, "OHx", OVNI_LETTERS) == 0;

	switch (event->letters[1]) {
	case 'M':
		return take_mark(s);
	case 'H':
	case 'A':
		if (!begins && memcmp(event->letters, "OAs", OVNI_LETTERS) != 0)
			return 0;
		s->call->kind = OVNICALL_CPU;
		s->call->cpu = event->size >= 4 ? (int32_t)ovnievent_u32(event, 0) : -1;
		return 0;
	case 'C': /* how many CPUs there are */
	case 'U': /* events that are not in their order */
		return 0;
	default:
		return take_other(s);
	}
}

/* --- tasks ------------------------------------------------------------------------------------ */

static uint64_t key_at(const struct step *s, size_t at)
{
	return ovninames_key(s->event->letters[0], s->calls->process, ovnievent_u32(s->event, at));
}

static uint64_t type_of(const struct step *s, uint64_t task)
{
	const uint64_t *type = map_get(&s->names->tasks, task);

	return type ? *type : 0;
}

/* The thread executes the task, or goes on with it. */
static int enter_task(struct step *s, struct ovnitask made)
{
	struct ovnitask task = { .task = key_at(s, 0) };

	task.type = made.task == task.task ? made.type : type_of(s, task.task);
	if (s->calls->running.n < OVNICALLS_TASKS_MAX && vec_push(&s->calls->running, task) < 0)
		return -ENOMEM;
	s->call->kind = OVNICALL_ENTER;
	return ovninames_of_type(s->names, s->event->letters[0], task.type, &s->call->name);
}

/* The task ends, or pauses, and then another thread may go on with it. */
static int leave_task(struct step *s, bool pauses)
{
	struct ovnitask task = { .task = key_at(s, 0) };
	size_t i = s->calls->running.n;
	int r = 0;

	task.type = type_of(s, task.task);
	if (i > 0 && s->calls->running.items[i - 1].task == task.task)
		task = s->calls->running.items[--s->calls->running.n];
	if (pauses && task.type)
		r = ovninames_task(s->names, task.task, task.type);
	s->call->kind = OVNICALL_LEAVE;
	return r < 0 ? r
		     : ovninames_of_type(s->names, s->event->letters[0], task.type, &s->call->name);
}

/* OpenMP's worksharing is a region that has the name of its type. */
static int take_worksharing(struct step *s)
{
	s->call->kind = s->event->letters[2] == 'x' ? OVNICALL_ENTER : OVNICALL_LEAVE;
	return ovninames_of_type(s->names, s->event->letters[0], key_at(s, 0), &s->call->name);
}

/* Return: 1 if the event is not of tasks; else 0 or negative errno. */
static int take_task(struct step *s, struct ovnitask made)
{
	switch (s->event->letters[2]) {
	case 'c':
	case 'C':
		s->calls->made = (struct ovnitask){ .task = key_at(s, 0), .type = key_at(s, 4) };
		return 0;
	case 'x':
	case 'r':
		return enter_task(s, made);
	case 'e':
	case 'p':
		return leave_task(s, s->event->letters[2] == 'p');
	default:
		return 1;
	}
}

static int take_type(struct step *s, const uint8_t *data, size_t n_data)
{
	char label[OVNINAMES_SIZE];
	uint32_t number;
	size_t n;

	if (n_data < sizeof(number))
		return 0;
	memcpy(&number, data, sizeof(number));
	if (s->event->is_reversed)
		number = __builtin_bswap32(number);
	n = strnlen((const char *)data + sizeof(number), n_data - sizeof(number));
	if (n >= sizeof(label))
		n = sizeof(label) - 1;
	memcpy(label, data + sizeof(number), n);
	label[n] = '\0';
	return ovninames_type(
	    s->names, ovninames_key(s->event->letters[0], s->calls->process, number), label);
}

int ovnicalls_take(struct ovnicalls *calls, struct ovninames *names, const struct ovnievent *event,
		   const uint8_t *data, size_t n_data, struct ovnicall *ret_call)
{
	struct step s = { .calls = calls, .names = names, .event = event, .call = ret_call };
	const struct ovnitask made = calls->made;
	int r = 0;

	*ret_call = (struct ovnicall){};
	calls->made = (struct ovnitask){};
	/* Other threads may execute a task that the thread does not execute at once. */
	if (made.task && (event->letters[2] != 'x' || key_at(&s, 0) != made.task))
		r = ovninames_task(names, made.task, made.type);
	if (r < 0)
		return r;
	if (event->letters[0] == 'O')
		return take_ovni(&s);
	for (size_t i = 0; i < ARRAY_LEN(task_models); i++) {
		if (task_models[i].model != event->letters[0])
			continue;
		if (task_models[i].type == event->letters[1] && event->is_jumbo)
			return take_type(&s, data, n_data);
		r = task_models[i].task == event->letters[1] ? take_task(&s, made) : 1;
		if (r <= 0)
			return r;
	}
	if (memcmp(event->letters, "PQx", OVNI_LETTERS) == 0 ||
	    memcmp(event->letters, "PQe", OVNI_LETTERS) == 0)
		return take_worksharing(&s);
	return take_other(&s);
}
