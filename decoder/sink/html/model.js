// SPDX-License-Identifier: LGPL-2.1-or-later
//
// Model: what report.c wrote, as the views of the page use it. Nothing here needs a browser.
"use strict";

const KIND = { run: 0, gap: 1, mark: 2, signal: 3, call: 4, noted: 5 };
const OUT_OF_SCOPE = 1 << 16, FATAL = 1 << 16;

// Signals of x86-64 Linux, by their numbers.
const SIGNALS = ("0 HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP " +
	"TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS").split(" ");

// Numbers as report.c writes them.
class Numbers {
	constructor(base64) {
		const text = atob(base64);
		this.bytes = new Uint8Array(text.length);
		for (let i = 0; i < text.length; i++)
			this.bytes[i] = text.charCodeAt(i);
		this.at = 0;
	}
	get isAtEnd() {
		return this.at >= this.bytes.length;
	}
	next() {
		let byte = this.bytes[this.at++];
		if (byte < 128)
			return byte;
		let value = byte & 127, scale = 128;
		do {
			byte = this.bytes[this.at++];
			value += (byte & 127) * scale;
			scale *= 128;
		} while (byte >= 128);
		return value;
	}
}

// The spans of one kind on one row of a track, by their times.
class Row {
	constructor(track, kind, number, n) {
		Object.assign(this, { track, kind, number, n });
		this.t = new Float64Array(n);
		this.duration = new Float64Array(n);
		this.value = new Uint32Array(n);
		this.insns = new Float64Array(n);
		this.count = new Float64Array(n).fill(1);
		this.busy = this.duration;
		this.isMixed = new Uint8Array(n);
	}
	read(numbers) {
		let t = 0;
		for (let i = 0; i < this.n; i++) {
			t += numbers.next();
			this.t[i] = t;
			this.duration[i] = numbers.next();
			const value = numbers.next(), isSeveral = value % 2 === 1;
			this.value[i] = Math.floor(value / 2);
			if (this.kind === KIND.call)
				this.insns[i] = numbers.next();
			if (!isSeveral)
				continue;
			if (this.busy === this.duration)
				this.busy = this.duration.slice();
			const count = numbers.next();
			this.count[i] = Math.floor(count / 2);
			this.isMixed[i] = count % 2;
			this.busy[i] = numbers.next();
		}
		if (this.busy !== this.duration)
			for (let i = 0; i < this.n; i++)
				if (this.count[i] === 1)
					this.busy[i] = this.duration[i];
	}
	end(i) {
		return this.t[i] + this.duration[i];
	}
	// The first span that ends at @t or later; those of a row do not overlap.
	firstEndingAt(t, from = 0) {
		let low = from, high = this.n;
		while (low < high) {
			const middle = (low + high) >> 1;
			if (this.end(middle) < t)
				low = middle + 1;
			else
				high = middle;
		}
		return low;
	}
	// A span that contains all from @from to @to, and has that value, if one is given; -1: there is none.
	covering(from, to, value = undefined) {
		for (let i = this.firstEndingAt(from); i < this.n && this.t[i] <= from; i++)
			if (this.end(i) >= to && (value === undefined || this.value[i] === value))
				return i;
		return -1;
	}
	// The span at @t, or one that is at most @near away; -1: there is none.
	at(t, near) {
		const i = this.firstEndingAt(t - near);
		return i < this.n && this.t[i] <= t + near ? i : -1;
	}
}

function readTracks(data, text) {
	const numbers = new Numbers(text);
	const tracks = data.tracks.map(([pid, tid, comm, stack], i) => ({
		i, pid, tid, comm, stack, calls: [], run: null, gap: null, mark: null, signal: null, n: 0 }));
	while (!numbers.isAtEnd) {
		const track = tracks[numbers.next()], kind = numbers.next(), number = numbers.next(), n = numbers.next();
		const row = new Row(track, kind, number, n);
		row.read(numbers);
		if (kind === KIND.call || kind === KIND.noted)
			track.calls[number] = row;
		else
			track[["run", "gap", "mark", "signal"][kind]] = row;
		track.n += n;
	}
	for (const track of tracks)
		for (let i = 0; i < track.calls.length; i++)
			track.calls[i] ||= new Row(track, KIND.call, i, 0);
	return tracks;
}

// --- the flame graph ------------------------------------------------------------------------------------------------

// A function below a sequence of callers. @f: its index, + 1; 0: it is not listed; -1: @thread, or all threads.
class FlameNode {
	constructor(f, parent) {
		Object.assign(this, { f, parent, calls: 0, tSelf: 0, iSelf: 0, t: 0, i: 0, tBelow: 0, iBelow: 0 });
		this.depth = parent ? parent.depth + 1 : 0;
		this.children = [];
	}
	cost(metric) {
		return metric === "time" ? this.t : this.i;
	}
	self(metric) {
		return metric === "time" ? this.tSelf : this.iSelf;
	}
}

function readThreads(data, text) {
	const numbers = new Numbers(text), nodes = [], roots = [];
	while (!numbers.isAtEnd) {
		const up = numbers.next(), f = numbers.next();
		const parent = up > 0 ? nodes[nodes.length - up] : null;
		const node = new FlameNode(parent ? f : -1, parent);
		node.calls = numbers.next();
		node.tSelf = numbers.next();
		node.iSelf = numbers.next();
		node.tBelow = numbers.next();
		node.iBelow = numbers.next();
		nodes.push(node);
		if (parent)
			parent.children.push(node);
		else
			roots.push(Object.assign(node, { thread: data.threads[f] }));
	}
	for (let i = nodes.length - 1; i >= 0; i--) {
		const node = nodes[i];
		node.t += node.tSelf + node.tBelow;
		node.i += node.iSelf + node.iBelow;
		if (node.parent) {
			node.parent.t += node.t;
			node.parent.i += node.i;
		}
	}
	return roots.filter((root) => root.i > 0 || root.t > 0 || root.children.length > 0);
}

// What the trees have in common is one node.
function mergeThreads(roots) {
	const all = new FlameNode(-1, null);
	const work = roots.map((root) => [all, root]);
	while (work.length > 0) {
		const [into, from] = work.pop();
		for (const key of ["calls", "tSelf", "iSelf", "t", "i", "tBelow", "iBelow"])
			into[key] += from[key];
		if (from.children.length > 0)
			into.byFunction ||= new Map(into.children.map((child) => [child.f, child]));
		for (const child of from.children) {
			let found = into.byFunction.get(child.f);
			if (!found) {
				found = new FlameNode(child.f, into);
				into.children.push(found);
				into.byFunction.set(child.f, found);
			}
			work.push([found, child]);
		}
	}
	return all;
}

// The largest first, at each node.
function sortFlame(root, metric) {
	const work = [root];
	while (work.length > 0) {
		const node = work.pop();
		node.children.sort((a, b) => b.cost(metric) - a.cost(metric) || a.f - b.f);
		work.push(...node.children);
	}
}

// --- all of it ------------------------------------------------------------------------------------------------------

const COST = ["self", "total", "n", "min", "median", "p99", "max"];

function readCost(row, from) {
	return Object.fromEntries(COST.map((key, i) => [key, row[from + i]]));
}

class Model {
	constructor(data, spans, nodes) {
		this.data = data;
		this.hasTime = data.clock !== null;
		this.functions = data.functions.map((row, i) => ({
			i, name: row[0], object: data.objects[row[1]], address: row[2], calls: row[3], partial: row[4],
			time: readCost(row, 5), instructions: readCost(row, 5 + COST.length),
			slowest: data.slowest[i].map(([t, duration, insns, track]) => ({ t, duration, insns, track })),
		}));
		this.tracks = readTracks(data, spans);
		this.nodesText = nodes;
		this.end = 1;
		for (const track of this.tracks)
			for (const row of [...track.calls.slice(0, 1), track.run, track.gap, track.mark, track.signal])
				if (row && row.n > 0)
					this.end = Math.max(this.end, row.end(row.n - 1));
		this.nGaps = data.gaps.reduce((n, gap) => n + gap[1], 0);
	}
	// The flame graph of one thread, or of all, which are many nodes: it is made when it is needed.
	get threads() {
		this.roots ||= readThreads(this.data, this.nodesText);
		return this.roots;
	}
	flame(thread, metric) {
		this.merged ||= thread < 0 ? mergeThreads(this.threads) : undefined;
		const root = thread < 0 ? this.merged : this.threads[thread];
		sortFlame(root, metric);
		return root;
	}
	get metrics() {
		return this.hasTime ? ["time", "instructions"] : ["instructions"];
	}
	functionOf(value) {
		return value > 0 ? this.functions[value - 1] : null;
	}
	nameOf(value) {
		const f = this.functionOf(value);
		return f ? f.name : `(one of ${formatCount(this.data.left_out.functions)} functions that are not listed)`;
	}
	threadName([pid, tid, comm]) {
		return `${comm || "?"} ${pid ?? "?"}/${tid ?? "?"}`;
	}
	trackName(track) {
		if (track.stack === "events")
			return `${this.threadName([track.pid, track.tid, track.comm])}, events`;
		const stack = track.stack === undefined ? "" : `, stack ${track.stack}`;
		return stack ? `${track.comm || "?"} ${track.pid ?? "?"}${stack}` : this.threadName([track.pid, track.tid, track.comm]);
	}
	// What the span stands for, in words.
	spanName(row, i) {
		const value = row.value[i];
		switch (row.kind) {
		case KIND.run:
			return `on CPU ${value}`;
		case KIND.gap: {
			const reason = this.data.gaps[value % OUT_OF_SCOPE]?.[0] ?? "?";
			return value >= OUT_OF_SCOPE ? `not asked for: ${reason}` : `gap: ${reason}`;
		}
		case KIND.noted:
			return this.data.noted[value] ?? "?";
		case KIND.mark:
			return this.data.marks[value] ?? "?";
		case KIND.signal: {
			const name = SIGNALS[value % FATAL] ? `SIG${SIGNALS[value % FATAL]}` : `signal ${value % FATAL}`;
			return value >= FATAL ? `killed by ${name}` : name;
		}
		default:
			return this.nameOf(value);
		}
	}
	// A byte for each function, by its index: whether its name or that of its object contains the text.
	matches(text) {
		const wanted = text.toLowerCase(), found = new Uint8Array(this.functions.length);
		if (wanted)
			this.functions.forEach((f, i) => {
				found[i] = f.name.toLowerCase().includes(wanted) || f.object.toLowerCase().includes(wanted);
			});
		return found;
	}
	// What of the tree lies in functions that match: the outermost ones count.
	matchedCost(root, found, metric) {
		let cost = 0;
		const work = [root];
		while (work.length > 0) {
			const node = work.pop();
			if (node.f > 0 && found[node.f - 1])
				cost += node.cost(metric);
			else
				work.push(...node.children);
		}
		return cost;
	}
	// Functions whose slowest execution took longer than usual, those that lost most first.
	outliers(metric) {
		const rows = [];
		for (const f of this.functions) {
			const cost = f[metric];
			if (cost.n >= 2 && cost.max > cost.median && f.slowest.length > 0)
				rows.push({ f, excess: cost.max - cost.median, ratio: cost.max / Math.max(cost.median, 1) });
		}
		return rows.sort((a, b) => b.excess - a.excess);
	}
	formatCost(value, metric) {
		return metric === "time" ? this.formatDuration(value) : formatCount(value);
	}
	formatDuration(value) {
		return this.data.clock === "ns" ? formatNs(value)
			: formatCount(value) + (this.data.clock === "tsc" ? " ticks" : " instructions");
	}
	// A time as the other formats show it.
	exactTime(t) {
		const all = BigInt(this.data.base) + BigInt(Math.round(t));
		if (this.data.clock !== "ns")
			return String(all);
		return `${all / 1000000000n}.${String(all % 1000000000n).padStart(9, "0")}`;
	}
	// Times of the whole trace that the timeline marks, with a text for each.
	moments() {
		const { complete_since: since, snapshot } = this.data, moments = [];
		if (since)
			moments.push([since, "all CPUs since here"]);
		if (snapshot && snapshot <= this.end)
			moments.push([snapshot, "the snapshot was taken"]);
		const later = snapshot > this.end ? `; the snapshot was taken ${this.formatDuration(snapshot - this.end)} later` : "";
		moments.push([this.end, `the trace ends${later}`]);
		return moments;
	}
	// The command line that shows in full what lies between two times.
	command(from, to) {
		if (!this.hasTime)
			return "";
		return `ptdecode html -o detail.html --time=${this.exactTime(Math.max(from, 0))},${this.exactTime(to)} RECORDING`;
	}
	// Sentences on what is not in the page.
	leftOut() {
		const out = this.data.left_out, said = [];
		const say = (n, text) => n > 0 && said.push(text.replace("#", formatCount(n)));
		say(out.resolution, `Timeline: before ${this.exactTime(out.whole_since)}, neighbouring calls shorter than ` +
			`${this.formatDuration(out.resolution)} are shown as one. What ended later is shown call by call.`);
		say(out.deep, "Timeline: # calls lie below 192 others and are not shown.");
		say(out.tracks, "Timeline: # further threads and stacks are not shown.");
		say(out.outer, "Timeline: # functions that were open before a gap are not shown behind it.");
		say(out.signals, "Timeline: # signals are not shown.");
		say(out.nodes, "Flame graph: # stacks that cost least are counted with their callers.");
		say(out.stacks, "Flame graph: # calls on further different stacks are counted with their callers.");
		say(out.functions, "Functions: # that cost least are not listed.");
		return said;
	}
}

function formatCount(value) {
	return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u202f");
}

function formatNs(ns) {
	const [unit, size] = ns < 1e3 ? ["ns", 1] : ns < 1e6 ? ["µs", 1e3] : ns < 1e9 ? ["ms", 1e6] : ["s", 1e9];
	const value = ns / size;
	return `${size === 1 ? Math.round(value) : value.toFixed(value < 10 ? 3 : value < 100 ? 2 : 1)} ${unit}`;
}

function formatShare(part, whole) {
	return `${(whole > 0 ? (100 * part) / whole : 0).toFixed(2)} %`;
}
