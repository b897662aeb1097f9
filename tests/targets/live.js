// SPDX-License-Identifier: LGPL-2.1-or-later
//
// A program that runs until its standard input ends, in code that node's JIT compilers make anew
// each round: functions that get hot, are optimised, turn out to be used otherwise, and are thrown
// away. Each round does the same, so what is printed at the end does not depend on how many there
// were.
'use strict';

const rounds = { first: undefined, changed: false, stop: false, n_made: 0 };

function make(k) {
	rounds.n_made++;
	// Its text is unlike any before, or the compiler would know it.
	return new Function('x', 'n',
		`/* ${rounds.n_made} */ let s = x; for (let i = 0; i < n; i++) s = (s * ${31 + k} + (i & ${k})) % 1000003; return s;`);
}

function round() {
	let sum = 0;
	for (let k = 0; k < 8; k++) {
		const f = make(k);
		for (let i = 0; i < 300; i++)
			sum += f(i, 40);
		// No small integers any more: what was compiled for those is given up.
		for (let i = 0; i < 100; i++)
			sum += f(i + 0.5, 40);
	}
	if (rounds.first === undefined)
		rounds.first = sum;
	rounds.changed ||= sum !== rounds.first;
	if (rounds.stop)
		console.log(rounds.first, rounds.changed ? 'CHANGED' : 'each time');
	else
		setImmediate(round);
}

process.stdin.on('data', () => {}).on('end', () => { rounds.stop = true; });
round();
