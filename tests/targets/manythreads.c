/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Two thousand threads, at most fifty at a time, each of which sorts and prints into memory. */

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_TIMES     40
#define N_AT_A_TIME 50
#define N_VALUES    300

static int compare(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

static void *work(void *userdata)
{
	unsigned int seed = (unsigned int)(unsigned long)userdata;
	int values[N_VALUES];
	char text[64];

	for (int turn = 0; turn < 3; turn++) {
		for (int i = 0; i < N_VALUES; i++)
			values[i] = rand_r(&seed);
		qsort(values, N_VALUES, sizeof(*values), compare);
		snprintf(text, sizeof(text), "%d %f", values[0], values[1] / 3.0);
		if (strstr(text, "zz"))
			puts(text);
	}
	return NULL;
}

int main(void)
{
	pthread_t threads[N_AT_A_TIME];

	for (unsigned long i = 0; i < N_TIMES; i++) {
		for (unsigned long k = 0; k < N_AT_A_TIME; k++)
			if (pthread_create(&threads[k], NULL, work,
					   (void *)(i * N_AT_A_TIME + k + 1)) != 0)
				return 1;
		for (int k = 0; k < N_AT_A_TIME; k++)
			pthread_join(threads[k], NULL);
	}
	return 0;
}
