/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* numeric: a program for benchmarks with long straight-line code: it multiplies matrices. */

#include <stdio.h>

#define SIZE   160
#define ROUNDS 17

static double a[SIZE][SIZE], b[SIZE][SIZE], c[SIZE][SIZE];

static void multiply(void)
{
	for (int i = 0; i < SIZE; i++)
		for (int j = 0; j < SIZE; j++) {
			double sum = 0;

			for (int k = 0; k < SIZE; k += 4)
				sum += a[i][k] * b[k][j] + a[i][k + 1] * b[k + 1][j] +
				       a[i][k + 2] * b[k + 2][j] + a[i][k + 3] * b[k + 3][j];
			c[i][j] = sum;
		}
}

int main(void)
{
	for (int i = 0; i < SIZE; i++)
		for (int j = 0; j < SIZE; j++) {
			a[i][j] = i + j;
			b[i][j] = i - j;
		}
	for (int round = 0; round < ROUNDS; round++) {
		multiply();
		for (int i = 0; i < SIZE; i++)
			a[i][i] = c[i][i] / (SIZE * SIZE);
	}
	printf("%g\n", c[SIZE - 1][1]);
	return 0;
}
