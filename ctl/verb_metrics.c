/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * ptctl metrics: the state of the recorder in the text format of OpenMetrics 1.0. The
 * older text format of Prometheus understands everything that is used here.
 */

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "ctl/client.h"
#include "ctl/verb.h"

#define CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

/* Of a request: its size, and how long the client may take to send it. */
#define REQUEST_MAX     8192
#define REQUEST_TIME_NS UINT64_C(5000000000)

#define UNKNOWN UINT64_MAX /* a number that the recorder does not state */

/* --- the text --------------------------------------------------------------------------------- */

struct metric {
	const char *name; /* without the suffix of a counter; the same as of the row before: another
			   * sample of that metric */
	const char *key;  /* of GetStatus */
	char type;
	const char *help;
	const char *labels; /* or NULL */
	const char *unit;   /* the end of the name; NULL: none */
	bool is_counter;
};

static const struct metric metrics[] = {
	{ "ptd_recording", "recording", 'b',
	  .help = "Whether something is being written to the rings." },
	{ "ptd_paused", "paused", 'b', .help = "Whether Intel PT was given to other programs." },
	{ "ptd_cpus", "cpus", 'u', .help = "CPUs to be recorded." },
	{ "ptd_cpu_states", "cpus_recording", 'u', .help = "CPUs by what is known of their PT.",
	  .labels = "{state=\"recording\"}" },
	{ "ptd_cpu_states", "cpus_offline", 'u', .labels = "{state=\"offline\"}" },
	{ "ptd_cpu_states", "cpus_busy", 'u', .labels = "{state=\"busy\"}" },
	{ "ptd_cpu_states", "cpus_failed", 'u', .labels = "{state=\"failed\"}" },
	{ "ptd_ring_bytes", "aux_size", 't', .help = "What the rings of each CPU keep.",
	  .labels = "{ring=\"pt\"}", .unit = "bytes" },
	{ "ptd_ring_bytes", "switch_size", 't', .labels = "{ring=\"switches\"}", .unit = "bytes" },
	{ "ptd_sideband_bytes", "sideband_bytes", 't',
	  .help = "Memory that the records of tasks and mappings take.", .unit = "bytes" },
	{ "ptd_sideband_limit_bytes", "sideband_max", 't',
	  .help = "Memory that these records may take.", .unit = "bytes" },
	{ "ptd_sideband_lost_records", "sideband_lost", 't',
	  .help = "Records of tasks and mappings for which there was no room.", .unit = "records",
	  .is_counter = true },
	{ "ptd_objects", "objects", 't', .help = "Executed files that are known." },
	{ "ptd_snapshots", "snapshots", 't', .help = "Snapshots on the disk." },
	{ "ptd_snapshots_pending", "pending", 'u',
	  .help = "Snapshots that are being written or wait." },
	{ "ptd_snapshots_taken", "snapshots_taken", 't',
	  .help = "Snapshots that were written since ptd was started.", .is_counter = true },
	{ "ptd_snapshots_failed", "snapshots_failed", 't',
	  .help = "Snapshots that could not be written since ptd was started.",
	  .is_counter = true },
	{ "ptd_snapshots_removed", "snapshots_removed", 't',
	  .help = "Snapshots that were removed to make room since ptd was started.",
	  .is_counter = true },
};

static void print_about(FILE *f, const struct metric *metric)
{
	fprintf(f, "# TYPE %s %s\n", metric->name, metric->is_counter ? "counter" : "gauge");
	if (metric->unit)
		fprintf(f, "# UNIT %s %s\n", metric->name, metric->unit);
	fprintf(f, "# HELP %s %s\n", metric->name, metric->help);
}

/* The value of a label: a text of the recorder. */
static void print_label(FILE *f, const char *text)
{
	for (; *text; text++) {
		if (*text == '\\' || *text == '"')
			fputc('\\', f);
		fputc(*text == '\n' ? ' ' : *text, f);
	}
}

/* The values as the message has them. */
union value {
	int b;
	uint32_t u;
	uint64_t t;
};

static uint64_t number_of(char type, const union value *value)
{
	return type == 'b' ? value->b > 0 : type == 'u' ? value->u : value->t;
}

static bool is_stated(char type, const union value *value)
{
	return type == 'b'   ? value->b >= 0
	       : type == 'u' ? value->u != UINT32_MAX
			     : value->t != UNKNOWN;
}

static int print_refused(FILE *f, sd_bus_message *reply)
{
	_cleanup_(freep) struct client_refused *list = NULL;
	size_t n;
	int r;

	r = client_read_refused(reply, &list, &n);
	if (r < 0)
		return client_bad_reply("GetStatus", r);
	if (n > 0)
		print_about(f, &(struct metric){ .name = "ptd_refused",
						 .help = "How often something was refused to a "
							 "user, and why.",
						 .is_counter = true });
	for (size_t i = 0; i < n; i++) {
		fputs("ptd_refused_total{what=\"", f);
		print_label(f, list[i].what);
		fprintf(f, "\",uid=\"%" PRIu32 "\"", list[i].uid);
		if (list[i].reason[0]) {
			fputs(",reason=\"", f);
			print_label(f, list[i].reason);
			fputs("\"", f);
		}
		fprintf(f, "} %" PRIu64 "\n", list[i].times);
	}
	return EXIT_OK;
}

static int print_metrics(FILE *f, sd_bus_message *reply)
{
	const char *version = "", *source = "", *name = "";
	union value values[ARRAY_LEN(metrics)];
	struct client_field fields[ARRAY_LEN(metrics) + 2];
	int r;

	for (size_t i = 0; i < ARRAY_LEN(metrics); i++) {
		values[i].t = UNKNOWN;
		fields[i] = (struct client_field){ metrics[i].key, metrics[i].type, &values[i] };
	}
	fields[ARRAY_LEN(metrics)] = (struct client_field){ "version", 's', &version };
	fields[ARRAY_LEN(metrics) + 1] = (struct client_field){ "source", 's', &source };
	r = client_read_fields(reply, fields, ARRAY_LEN(fields));
	if (r < 0)
		return client_bad_reply("GetStatus", r);
	fputs("# TYPE ptd_build_info gauge\n"
	      "# HELP ptd_build_info The version of ptd, and the source that it records.\n"
	      "ptd_build_info{version=\"",
	      f);
	print_label(f, version);
	fputs("\",source=\"", f);
	print_label(f, source);
	fputs("\"} 1\n", f);
	for (size_t i = 0; i < ARRAY_LEN(metrics); i++) {
		const struct metric *metric = &metrics[i];

		if (!is_stated(metric->type, &values[i]))
			continue;
		if (strcmp(metric->name, name) != 0)
			print_about(f, metric);
		name = metric->name;
		fprintf(f, "%s%s%s %" PRIu64 "\n", name, metric->is_counter ? "_total" : "",
			metric->labels ?: "", number_of(metric->type, &values[i]));
	}
	r = print_refused(f, reply);
	if (r == EXIT_OK)
		fputs("# EOF\n", f);
	return r;
}

static int get_metrics(const struct context *context, FILE *f)
{
	_cleanup_(sd_bus_flush_close_unrefp) sd_bus *bus = NULL;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
	int r;

	r = client_connect(context->socket, &bus);
	if (r == EXIT_OK)
		r = client_call(bus, "GetStatus", &reply, "");
	return r == EXIT_OK ? print_metrics(f, reply) : r;
}

/* --- over HTTP -------------------------------------------------------------------------------- */

/* Read a request up to the end of its header. Return: whether it is one. */
static bool read_request(char request[static REQUEST_MAX])
{
	const uint64_t end = clock_ns(CLOCK_MONOTONIC) + REQUEST_TIME_NS;
	size_t n = 0;

	request[0] = '\0';
	while (!strstr(request, "\r\n\r\n")) {
		struct pollfd in = { .fd = STDIN_FILENO, .events = POLLIN };
		const int left_ms = clock_ms_until(end);
		ssize_t r;

		if (n == REQUEST_MAX - 1 || left_ms == 0)
			return false;
		r = poll(&in, 1, left_ms);
		if (r > 0)
			r = read(STDIN_FILENO, request + n, REQUEST_MAX - 1 - n);
		if (r < 0 && errno == EINTR)
			continue;
		if (r <= 0 || memchr(request + n, '\0', (size_t)r))
			return false;
		n += (size_t)r;
		request[n] = '\0';
	}
	return true;
}

/* Return: the status of the answer. */
static const char *judge_request(const char *request)
{
	const char *path = strchr(request, ' ');

	if (!path)
		return "400 Bad Request";
	if (strncmp(request, "GET ", 4) != 0)
		return "405 Method Not Allowed";
	path++;
	if (strncmp(path, "/metrics ", 9) != 0 && strncmp(path, "/metrics?", 9) != 0)
		return "404 Not Found";
	return strncmp(path + strcspn(path, " \r\n"), " HTTP/1.", 8) == 0 ? "200 OK"
									  : "400 Bad Request";
}

/* Answer the one request that is read from standard input. */
static int serve(const struct context *context)
{
	const char *status = "400 Bad Request";
	char request[REQUEST_MAX], *text = NULL;
	int r = EXIT_OK;
	size_t size = 0;
	FILE *f;

	f = open_memstream(&text, &size);
	if (!f)
		return log_as(EXIT_FAILED, "metrics: %m");
	if (read_request(request))
		status = judge_request(request);
	if (status[0] == '2')
		r = get_metrics(context, f);
	if (r != EXIT_OK)
		status = "503 Service Unavailable";
	if (fclose(f) != 0 || r != EXIT_OK)
		size = 0;
	printf(
	    "HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
	    status, size > 0 ? CONTENT_TYPE : "text/plain", size);
	if (size > 0)
		(void)fwrite(text, 1, size, stdout);
	free(text);
	return r;
}

int verb_metrics(const struct context *context, int argc, char **argv)
{
	const bool http = argc > 1 && strcmp(argv[1], "--http") == 0;

	if (argc > 1 + http)
		return log_as(EXIT_USAGE, "metrics: unexpected argument \"%s\"", argv[1 + http]);
	return http ? serve(context) : get_metrics(context, stdout);
}
