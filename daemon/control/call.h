/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/*
 * Call
 *
 * What the methods of the interface have in common: their options and their replies. Functions
 * return 0 or more, or negative errno; those that have @error may say why in it.
 */

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-bus.h>

#include "base/base.h"

/* Add an entry to the dictionary a{sv} that is open in @m. */
_must_check_ int call_append_string(sd_bus_message *m, const char *key, const char *value);
_must_check_ int call_append_u64(sd_bus_message *m, const char *key, uint64_t value);
_must_check_ int call_append_u32(sd_bus_message *m, const char *key, uint32_t value);

/* Close the container that is open in @reply and send it, unless @r is an error of filling it. */
_must_check_ int call_send_reply(sd_bus_message *reply, int r);

/* Read options, a{sv}. @read reads the value of one into @userdata. */
_must_check_ int call_read_options(sd_bus_message *m,
				   int (*read)(sd_bus_message *m, const char *option,
					       void *userdata, sd_bus_error *error),
				   void *userdata, sd_bus_error *error);

/* There is no such option. */
_must_check_ int call_no_option(const char *option, sd_bus_error *error);

/* There is no such snapshot. */
_must_check_ int call_no_snapshot(sd_bus_error *error, const char *id);

/* Read the value of an option that is a text which others will see; a longer one is cut. */
_must_check_ int call_read_text(sd_bus_message *m, char *ret_text, size_t size);
