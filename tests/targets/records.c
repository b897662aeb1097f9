/* SPDX-License-Identifier: LGPL-2.1-or-later */

/*
 * Reads records from a file, one in each line: a letter and a number. A record of the kind 'p'
 * points to another record, and a wrong number makes it point to nowhere.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORDS_MAX 64

struct record {
	char kind;
	long number;
	const struct record *next;
};

static struct record records[RECORDS_MAX];
static size_t n_records;

__attribute__((__noinline__)) static const struct record *find_record(long number)
{
	for (size_t i = 0; i < n_records; i++)
		if (records[i].number == number)
			return &records[i];
	return NULL;
}

/* The one that crashes if there is no record with that number. */
__attribute__((__noinline__)) static long follow_record(const struct record *record)
{
	const struct record *next = find_record(record->number + 1);

	return next->number; /* the crash */
}

__attribute__((__noinline__)) static void skip_record(const struct record *record)
{
	fprintf(stderr, "record of kind %c is skipped\n", record->kind);
}

__attribute__((__noinline__)) static long check_record(const struct record *record)
{
	if (record->kind == 'p')
		return follow_record(record) + 1;
	if (record->kind == 'v')
		return record->number;
	skip_record(record);
	return 0;
}

int main(int argc, char **argv)
{
	FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
	struct record record;
	long sum = 0;

	if (!f)
		return 1;
	while (n_records < RECORDS_MAX && fscanf(f, " %c %ld", &record.kind, &record.number) == 2)
		records[n_records++] = record;
	for (size_t i = 0; i < n_records; i++)
		sum += check_record(&records[i]);
	printf("%ld\n", sum);
	return 0;
}
