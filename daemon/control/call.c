/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/control/call.h"

#include <stdio.h>
#include <string.h>

#include "base/printable.h"
#include "daemon/control/interface.h"
#include "ptd/control.h"

int call_append_string(sd_bus_message *m, const char *key, const char *value)
{
	return sd_bus_message_append(m, "{sv}", key, "s", value);
}

int call_append_u64(sd_bus_message *m, const char *key, uint64_t value)
{
	return sd_bus_message_append(m, "{sv}", key, "t", value);
}

int call_append_u32(sd_bus_message *m, const char *key, uint32_t value)
{
	return sd_bus_message_append(m, "{sv}", key, "u", value);
}

int call_send_reply(sd_bus_message *reply, int r)
{
	if (r >= 0)
		r = sd_bus_message_close_container(reply);
	return r < 0 ? r : sd_bus_send(NULL, reply, NULL);
}

int call_no_option(const char *option, sd_bus_error *error)
{
	return sd_bus_error_setf(error, SD_BUS_ERROR_INVALID_ARGS, "there is no option \"%s\"",
				 option);
}

int call_no_snapshot(sd_bus_error *error, const char *id)
{
	return sd_bus_error_setf(error, PTD_ERROR_NO_SNAPSHOT, "there is no snapshot \"%s\"", id);
}

int call_read_options(sd_bus_message *m,
		      int (*read)(sd_bus_message *m, const char *option, void *userdata,
				  sd_bus_error *error),
		      void *userdata, sd_bus_error *error)
{
	const char *option;
	int r;

	r = sd_bus_message_enter_container(m, 'a', "{sv}");
	while (r > 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
		r = sd_bus_message_read(m, "s", &option);
		if (r >= 0)
			r = read(m, option, userdata, error);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
		if (r >= 0)
			r = 1;
	}
	return r < 0 ? r : 0;
}

int call_read_text(sd_bus_message *m, char *ret_text, size_t size)
{
	const char *text;
	int r;

	r = sd_bus_message_read(m, "v", "s", &text);
	if (r < 0)
		return r;
	(void)snprintf(ret_text, size, "%s", text);
	printable_clean(ret_text, strlen(ret_text));
	return 0;
}
