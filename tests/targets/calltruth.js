// SPDX-License-Identifier: LGPL-2.1-or-later

// As calltruth.c, for node: functions that become hot while they run, call each other through built-in
// functions written in C++ or in assembly, are resumed in their middle, and whose code is thrown away
// because it was compiled for other types. The log is kept in memory, so that a note is two instructions of
// the function's own code. Usage: calltruth.js LOG calm|deopt|throw ROUNDS
"use strict";
const fs = require("fs");

const names = [];
const notes = new Int16Array(1 << 22);
let n = 0, sum = 0;

function id(name) {
	return names.push(name);
}

const LEAF = id("leaf");
function leaf(i) {
	notes[n++] = LEAF;
	sum = (sum + i) | 0;
	notes[n++] = -LEAF;
	return sum;
}

const RECURSE = id("recurse");
function recurse(i) {
	notes[n++] = RECURSE;
	const r = i > 0 ? recurse(i - 1) + 1 : leaf(i);
	notes[n++] = -RECURSE;
	return r;
}

const EVEN = id("even"), ODD = id("odd");
function even(i) {
	notes[n++] = EVEN;
	const r = i === 0 ? true : odd(i - 1);
	notes[n++] = -EVEN;
	return r;
}
function odd(i) {
	notes[n++] = ODD;
	const r = i === 0 ? false : even(i - 1);
	notes[n++] = -ODD;
	return r;
}

// It becomes hot in a loop: its code is changed while it runs.
const LOOPS = id("loops");
function loops(times) {
	notes[n++] = LOOPS;
	let s = 0;
	for (let i = 0; i < times; i++) {
		s = (s * 3 + i) | 0;
		if ((i & 1023) === 0)
			leaf(s);
	}
	notes[n++] = -LOOPS;
	return s;
}

const COMPARE = id("compare"), DOUBLE = id("double"), REPLACER = id("replacer");
function compare(a, b) {
	notes[n++] = COMPARE;
	leaf(a);
	notes[n++] = -COMPARE;
	return a - b;
}
function double(x) {
	notes[n++] = DOUBLE;
	leaf(x);
	notes[n++] = -DOUBLE;
	return x * 2;
}
function replacer(text) {
	notes[n++] = REPLACER;
	leaf(text.length);
	notes[n++] = -REPLACER;
	return "<" + text + ">";
}

const BUILTINS = id("builtins");
function builtins(i) {
	notes[n++] = BUILTINS;
	const a = [5, i & 7, 9, 1, 7].sort(compare).map(double);
	const s = "one two".replace(/o./g, replacer);
	Reflect.apply(double, null, [i]);
	notes[n++] = -BUILTINS;
	return a.length + s.length;
}

// Its code is entered when the generator is made, where the parameters are evaluated, and at each next().
const COUNTER = id("counter");
function* counter(times, made = (notes[n++] = COUNTER, notes[n++] = -COUNTER)) {
	notes[n++] = COUNTER;
	for (let i = 0; i < times; i++) {
		leaf(i);
		notes[n++] = -COUNTER;
		yield i;
		notes[n++] = COUNTER;
	}
	notes[n++] = -COUNTER;
}

const BOX = id("Box"), WIDTH = id("get width"), TOJSON = id("toJSON");
class Box {
	constructor(i) {
		notes[n++] = BOX;
		this.i = leaf(i);
		notes[n++] = -BOX;
	}
	get width() {
		notes[n++] = WIDTH;
		const r = leaf(this.i);
		notes[n++] = -WIDTH;
		return r;
	}
	toJSON() {
		notes[n++] = TOJSON;
		const r = leaf(1);
		notes[n++] = -TOJSON;
		return r;
	}
}

const RUN = id("run");
function run(i) {
	notes[n++] = RUN;
	recurse(6);
	even(i & 7);
	builtins(i);
	for (const k of counter(3))
		leaf(k);
	const box = new Box(i);
	leaf(box.width);
	JSON.stringify(box);
	notes[n++] = -RUN;
}

// --- code that is thrown away --------------------------------------------------------------------------

const ADD = id("add"), ADDS = id("adds");
function add(a, b) {
	notes[n++] = ADD;
	const r = a + b;
	leaf(1);
	notes[n++] = -ADD;
	return r;
}
function adds(i, x) {
	notes[n++] = ADDS;
	const r = i > 0 ? adds(i - 1, x) : add(1, x);
	leaf(2);
	notes[n++] = -ADDS;
	return r;
}

// The code of those that are open is thrown away, and they go on in other code when one returns to them.
let shape = { leaf };
const CHANGE = id("change"), CHANGES = id("changes");
function change(really) {
	notes[n++] = CHANGE;
	if (really)
		shape = { other: 1, leaf };
	notes[n++] = -CHANGE;
}
function changes(i, really) {
	notes[n++] = CHANGES;
	if (i > 0)
		changes(i - 1, really);
	else
		change(really);
	shape.leaf(i);
	notes[n++] = -CHANGES;
}

function deopt(i) {
	for (let k = 0; k < 60; k++) {
		adds(4, 1);
		changes(3, false);
	}
	adds(4, i & 1 ? 0.5 : "x");
	changes(3, true);
}

// --- exceptions ----------------------------------------------------------------------------------------

const FAIL = id("fail"), CATCHES = id("catches");
function fail(depth, i) {
	notes[n++] = FAIL;
	if (i < depth) {
		fail(depth, i + 1);
	} else {
		for (let k = 0; k <= depth; k++)
			notes[n++] = -FAIL;
		throw 1;
	}
	notes[n++] = -FAIL;
}
function catches(depth) {
	notes[n++] = CATCHES;
	try {
		fail(depth, 0);
	} catch (e) {
		leaf(e);
	}
	notes[n++] = -CATCHES;
}

// -------------------------------------------------------------------------------------------------------

const parts = { calm: run, deopt, throw: (i) => catches(i & 7) };
const part = parts[process.argv[3]], rounds = +process.argv[4];

for (let i = 0; i < rounds; i++)
	part(i);
if (part === run)
	loops(100000);
fs.writeFileSync(process.argv[2], Array.from(notes.subarray(0, n),
	(x) => process.pid + (x > 0 ? " +" + names[x - 1] : " -" + names[-x - 1])).join("\n") + "\n");
