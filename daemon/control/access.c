/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/access.h"

#include <stdbool.h>
#include <string.h>

#include "ptd/control.h"

/* The least access that a client must have to call a method. Whoever may have a whole snapshot sees
 * code of every user. */
static const struct {
	const char *method;
	enum access access;
} methods[] = {
	{ "GetStatus", ACCESS_OWN },  /* it says less to those who have no more */
	{ "OpenSource", ACCESS_OWN }, /* each user's programs write to a pool of his own */
	{ "TakeOwn", ACCESS_OWN },        { "WaitOwn", ACCESS_OWN },
	{ "Pause", ACCESS_ALL },          { "Resume", ACCESS_ALL },
	{ "TakeSnapshot", ACCESS_ALL },   { "WaitSnapshot", ACCESS_ALL },
	{ "ListSnapshots", ACCESS_ALL },  { "OpenSnapshot", ACCESS_ALL },
	{ "RemoveSnapshot", ACCESS_ALL }, { "KeepSnapshot", ACCESS_ALL },
	{ "AddTrigger", ACCESS_ALL },     { "RemoveTrigger", ACCESS_ALL },
	{ "ListTriggers", ACCESS_ALL },   { "Reload", ACCESS_ALL },
};

/* Return: whether @access suffices for the method. */
static bool suffices(const char *method, enum access access)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++)
		if (strcmp(methods[i].method, method) == 0)
			return access != ACCESS_NONE && access >= methods[i].access;
	return false;
}

int access_check(sd_bus_message *m, enum access access, sd_bus_error *error)
{
	const char *interface = sd_bus_message_get_interface(m);
	const char *method = sd_bus_message_get_member(m);

	/* A call without an interface reaches the methods of all of them. */
	if (sd_bus_message_is_method_call(m, NULL, NULL) <= 0 ||
	    (interface && strcmp(interface, PTD_CONTROL_INTERFACE) != 0))
		return 0;
	if (method && suffices(method, access))
		return 0;
	return sd_bus_error_setf(
	    error, PTD_ERROR_ACCESS_DENIED,
	    "only root, the recorder's user and members of the group " PTD_CONTROL_GROUP
	    " may call %s%s",
	    method ? method : "this",
	    method && strcmp(method, "TakeSnapshot") == 0
		? ": others can have `ptctl snapshot --own -f FORMAT`"
		: "");
}
