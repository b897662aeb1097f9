// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A program for benchmarks most of whose code is made by node's JIT compilers.
'use strict';

function sieve(n) {
	const composite = new Uint8Array(n);
	let primes = 0;

	for (let i = 2; i < n; i++) {
		if (composite[i])
			continue;
		primes++;
		for (let j = 2 * i; j < n; j += i)
			composite[j] = 1;
	}
	return primes;
}

function words(n) {
	const counts = new Map();

	for (let i = 0; i < n; i++) {
		const word = `w${(i * 7919) % 1009}`;

		counts.set(word, (counts.get(word) || 0) + 1);
	}
	return counts.size;
}

console.log(sieve(400000), words(20000));
