// SPDX-License-Identifier: LGPL-2.1-or-later
//
// usage: node speedscope.mjs PACKAGE calls|stacks FILE
//
// Speedscope's importer reads FILE. Each profile that it makes is a line of JSON: its name, its unit, how many calls it
// has, and either each call that took time, as the function, when it began and the duration; or each stack, as the
// functions from the outermost to the innermost, with what the innermost one itself cost there. PACKAGE is the npm package speedscope,
// unpacked. A warning of the importer is an error.
import fs from "node:fs";
import path from "node:path";
import vm from "node:vm";

const [folder, what, file] = process.argv.slice(2);
const release = path.join(folder, "dist/release");
const script = fs.readdirSync(release).find((name) => /^speedscope-.*\.js$/.test(name));
const source = fs.readFileSync(path.join(release, script), "utf8");

// The script is of a browser: it ends by showing its page, instead of which it hands out the importer.
const start = source.lastIndexOf("console.log(`speedscope v");
const importer = /\(await ([\w$]+)\)\.importProfilesFromArrayBuffer/.exec(source)[1];
const complain = (...args) => {
	console.error(...args);
	process.exit(1);
};
// A page has everything but other libraries, such as that for long numbers.
const absent = new Set(["dcodeIO", "Long"]);
const anything = new Proxy(function () {}, {
	get: (target, key) => (key === Symbol.toPrimitive ? () => "" : absent.has(key) ? undefined : anything),
	set: () => true,
	apply: () => anything,
	construct: () => anything,
});
globalThis.window = globalThis.document = anything;
const quiet = { ...console, log: () => {}, warn: complain, error: complain };
const run = vm.runInThisContext(`(function (console, hand) {${source.slice(0, start)}hand(${importer});})();})`);
const { importProfilesFromArrayBuffer } = await new Promise((hand) => run(quiet, hand));

const bytes = fs.readFileSync(file);
const group = await importProfilesFromArrayBuffer(
	path.basename(file), bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
if (!group) complain("the format is not recognized");
for (const profile of group.profiles) {
	const calls = [], stacks = [], open = [];
	const waiting = profile.getAppendOrderCalltreeRoot().children.map((node) => [node, []]);
	let n = 0;
	for (; waiting.length; n++) {
		const [node, above] = waiting.pop(), stack = what === "stacks" ? [...above, node.frame.name] : above;
		if (what === "stacks" && node.getSelfWeight()) stacks.push([stack, node.getSelfWeight()]);
		for (const child of node.children) waiting.push([child, stack]);
	}
	if (what === "calls")
		profile.forEachCall(
			(node, t) => open.push([node.frame.name, t]),
			(node, t) => {
				const [name, from] = open.pop();
				calls.push([name, from, t - from]);
			});
	const text = JSON.stringify({ name: profile.getName(), unit: profile.getWeightUnit(), n, calls, stacks });
	await new Promise((written) => process.stdout.write(text + "\n", written));
}
