// SPDX-License-Identifier: LGPL-2.1-or-later
//
// usage: node report.mjs PAGE
//
// Prints what the HTML report PAGE shows, as JSON: the scripts of the page read its data, without a browser. Before that
// it checks the page itself: its policy, its elements, and that nothing in it could be fetched.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import fs from "node:fs";
import vm from "node:vm";

const page = fs.readFileSync(process.argv[2], "utf8");

// A browser ends a script at the first "</script".
const scripts = [...page.matchAll(/<script([^>]*)>([\s\S]*?)<\/script/g)].map(([, attributes, text]) => ({ attributes, text }));
const ids = scripts.map((script) => /id="([a-z]+)"/.exec(script.attributes)?.[1]);
assert.deepEqual(ids, ["report", "spans", "nodes", undefined], "the scripts of the page");
const data = Object.fromEntries(ids.map((id, i) => [id, scripts[i].text]));
const code = scripts[3].text;
assert.doesNotMatch(data.report + data.spans + data.nodes, /[<>&]/, "data have no markup");
assert.doesNotMatch(code, /<!--|<\/?script/i);

const style = /<style>([\s\S]*?)<\/style>/.exec(page)[1];
const source = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;
const policy = /<meta http-equiv="Content-Security-Policy" content="([^"]*)">/.exec(page)[1];
assert.equal(policy, "default-src 'none'; base-uri 'none'; form-action 'none'; " +
	`script-src ${source(code)}; style-src ${source(style)}`);
const markup = page.replace(/<script[\s\S]*?<\/script>/g, "").replace(style, "");
assert.doesNotMatch(markup, /\b(src|href|srcset|action|on[a-z]+|style)=/i, "nothing is fetched, and no script stands elsewhere");
assert.doesNotMatch(style, /url\(|@import/);

// What does not need a browser comes first.
const model = fs.readFileSync(new URL("../../decoder/sink/html/model.js", import.meta.url), "utf8");
assert.ok(code.startsWith(model), "the page has the scripts of the tree");
const context = vm.createContext({ atob, BigInt });
vm.runInContext(model, context);
Object.assign(context, { text: data });
const said = vm.runInContext(`(() => {
	const model = new Model(JSON.parse(text.report), text.spans, text.nodes);
	const base = BigInt(model.data.base), at = (t) => Number(base + BigInt(t));
	const spans = [], others = [], stacks = [], noted = [];
	for (const track of model.tracks) {
		track.calls.forEach((row, number) => {
			for (let i = 0; i < row.n; i++) {
				if (i > 0 && row.t[i] < row.end(i - 1))
					throw new Error("spans of a row overlap: " + model.spanName(row, i));
				const above = track.calls[number - 1];
				if (above && model.data.left_out.resolution === 0 && above.covering(row.t[i], row.end(i)) < 0)
					throw new Error("nothing stands above " + model.spanName(row, i));
				if (row.kind === KIND.noted)
					noted.push([model.spanName(row, i), at(row.t[i]), row.duration[i], track.tid]);
				else
					spans.push([model.spanName(row, i), at(row.t[i]), row.duration[i], row.insns[i], row.count[i], track.tid]);
			}
		});
		for (const row of [track.run, track.gap, track.mark, track.signal])
			for (let i = 0; row && i < row.n; i++)
				others.push([row.kind, model.spanName(row, i), at(row.t[i]), row.duration[i], row.count[i], track.tid]);
	}
	const work = [[model.flame(-1, model.metrics[0]), "all"]];
	while (work.length > 0) {
		const [node, path] = work.pop();
		stacks.push([path, node.tSelf, node.iSelf, node.calls]);
		for (const child of node.children)
			work.push([child, path + ";" + model.nameOf(child.f).replaceAll(";", ":")]);
	}
	return { spans, others, stacks, noted, left_out: model.data.left_out, text: model.leftOut(),
		moments: model.moments().map(([t, text]) => [String(base + BigInt(t)), text]), calls: model.data.calls,
		partial: model.data.partial, functions: model.functions, command: model.command(0, model.end),
		slowest: model.outliers(model.metrics[0]).slice(0, 5).map(({ f }) => [f.name, f.slowest.map((one) => [at(one.t),
			one.duration, one.insns, model.tracks[one.track].tid])]),
		matched: model.matches("MAIN").reduce((n, one) => n + one, 0) };
})()`, context);
process.stdout.write(`${JSON.stringify(said)}\n`);
