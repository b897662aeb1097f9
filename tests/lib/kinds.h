/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* All kinds of sinks, for tests that go through them or open one by its name. */

#include "decoder/sink/sink.h"

/* Return: the kind of sink with the number @i, from 0; NULL behind the last. */
const struct sink_ops *sink_at(size_t i);

/* Return: the kind of sink with the name @name, or NULL. */
const struct sink_ops *sink_find(const char *name);

/* Open and empty what is at @path, and open a sink that writes to it. Return: 0, or -errno. */
int sink_open(const struct sink_ops *ops, const char *path, const struct ptd_info *info,
	      const char *const *options, struct sink **ret_sink);
