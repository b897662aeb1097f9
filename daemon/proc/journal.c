/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "daemon/proc/journal.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

/* The entry has these fields only, not those of the place in the source. */
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>

#include "base/log.h"
#include "base/printable.h"

/* Return: whether standard error is the journal. The variable alone may be inherited from another
 * process. */
static bool is_journal(void)
{
	const char *stream = getenv("JOURNAL_STREAM");
	char own[64];
	struct stat st;

	if (!stream || fstat(STDERR_FILENO, &st) < 0)
		return false;
	(void)snprintf(own, sizeof(own), "%" PRIuMAX ":%" PRIuMAX, (uintmax_t)st.st_dev,
		       (uintmax_t)st.st_ino);
	return strcmp(stream, own) == 0;
}

/* The fields of an entry, as sd_journal_sendv() takes them. */
struct entry {
	struct iovec items[JOURNAL_FIELDS_MAX + 3];
	int n;
};

static bool add_field(struct entry *entry, const char *name, const char *value)
{
	char *text;
	const int size = asprintf(&text, "%s=%s", name, value);

	if (size < 0)
		return false;
	entry->items[entry->n++] = (struct iovec){ text, (size_t)size };
	return true;
}

static bool send_entry(int level, const char *message_id, const struct journal_field *fields,
		       size_t n_fields, const char *message)
{
	const char priority[] = { (char)('0' + level), '\0' };
	struct entry entry = {};
	bool sent;

	sent = add_field(&entry, "MESSAGE", message) && add_field(&entry, "PRIORITY", priority) &&
	       add_field(&entry, "MESSAGE_ID", message_id);
	for (size_t i = 0; sent && i < n_fields && i < JOURNAL_FIELDS_MAX; i++)
		sent = !fields[i].value || add_field(&entry, fields[i].name, fields[i].value);
	sent = sent && sd_journal_sendv(entry.items, entry.n) >= 0;
	for (int i = 0; i < entry.n; i++)
		free(entry.items[i].iov_base);
	return sent;
}

void journal_log(int level, const char *message_id, const struct journal_field *fields,
		 size_t n_fields, const char *format, ...)
{
	const int saved = errno;
	char message[2048];
	va_list ap;

	va_start(ap, format);
	(void)vsnprintf(message, sizeof(message), format, ap);
	va_end(ap);
	printable_clean(message, strlen(message));
	if (!is_journal() || !send_entry(level, message_id, fields, n_fields, message))
		log_at(level, "%s", message);
	errno = saved;
}
