// SPDX-License-Identifier: LGPL-2.1-or-later
//
// usage: node browser.mjs PAGE FOLDER [WANTED]
//
// Opens the HTML report PAGE in Chromium without a network and uses it as a user does: clicks into the flame graph,
// searches, zooms by keys and wheel, sorts the table, changes the colours. Screenshots are put into FOLDER. What the page
// shows is printed as one line of JSON, for a comparison with other formats. WANTED is a function to search for.
//
// It talks to Chromium over a pipe (--remote-debugging-pipe): messages in JSON, each ended by a NUL.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const [page, folder, wanted] = process.argv.slice(2);

class Browser {
	constructor(profile) {
		this.process = spawn("chromium", ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars=false",
			`--user-data-dir=${profile}`, "--remote-debugging-pipe", "--window-size=1440,900", "about:blank"],
		{ stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
		this.waiting = new Map();
		this.events = [];
		this.n = 0;
		let rest = Buffer.alloc(0);
		this.process.stdio[4].on("data", (chunk) => {
			rest = Buffer.concat([rest, chunk]);
			for (let end; (end = rest.indexOf(0)) >= 0; rest = rest.subarray(end + 1))
				this.take(JSON.parse(rest.subarray(0, end)));
		});
	}
	take(message) {
		if (!message.id) {
			this.events.push(message);
			return;
		}
		const { resolve, reject } = this.waiting.get(message.id);
		this.waiting.delete(message.id);
		if (message.error)
			reject(new Error(JSON.stringify(message.error)));
		else
			resolve(message.result);
	}
	send(method, params = {}) {
		const id = ++this.n;
		this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId: this.session })}\0`);
		return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
	}
	async open(url) {
		const { targetInfos } = await this.send("Target.getTargets");
		const { targetId } = targetInfos.find((one) => one.type === "page");
		({ sessionId: this.session } = await this.send("Target.attachToTarget", { targetId, flatten: true }));
		for (const domain of ["Page", "Runtime", "Log", "Network"])
			await this.send(`${domain}.enable`);
		await this.send("Network.emulateNetworkConditions", { offline: true, latency: 0, downloadThroughput: 0, uploadThroughput: 0 });
		await this.send("Emulation.setDeviceMetricsOverride", { width: 1440, height: 900, deviceScaleFactor: 1, mobile: false });
		const start = performance.now();
		await this.send("Page.navigate", { url });
		while (!(await this.run("document.documentElement?.dataset.ready")))
			await new Promise((resolve) => setTimeout(resolve, 20));
		this.openMs = Math.round(performance.now() - start);
	}
	async run(expression) {
		const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, returnByValue: true, awaitPromise: true });
		if (exceptionDetails)
			throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
		return result.value;
	}
	// After the next picture.
	settle() {
		return this.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))");
	}
	async mouse(type, x, y, more = {}) {
		await this.send("Input.dispatchMouseEvent", { type, x, y, ...more });
	}
	async click(x, y, clickCount = 1) {
		await this.mouse("mouseMoved", x, y);
		await this.mouse("mousePressed", x, y, { button: "left", clickCount });
		await this.mouse("mouseReleased", x, y, { button: "left", clickCount });
		await this.settle();
	}
	async clickOn(id) {
		const [x, y] = await this.run(`(() => { const b = document.getElementById(${JSON.stringify(id)}).getBoundingClientRect();
			return [b.x + b.width / 2, b.y + b.height / 2]; })()`);
		await this.click(x, y);
	}
	async key(key) {
		const text = key.length === 1 ? key : key === "Enter" ? "\r" : undefined;
		const code = { Enter: 13, Escape: 27, ArrowDown: 40, ArrowRight: 39 }[key];
		await this.send("Input.dispatchKeyEvent", { type: "keyDown", key, text, windowsVirtualKeyCode: code });
		await this.send("Input.dispatchKeyEvent", { type: "keyUp", key, windowsVirtualKeyCode: code });
		await this.settle();
	}
	async screenshot(name) {
		const { data } = await this.send("Page.captureScreenshot", { format: "png" });
		fs.writeFileSync(path.join(folder, `${name}.png`), Buffer.from(data, "base64"));
	}
	close() {
		this.process.kill("SIGKILL");
	}
}

const browser = new Browser(path.join(folder, "profile"));
const text = (id) => browser.run(`document.getElementById(${JSON.stringify(id)}).textContent`);
const said = {};
try {
	await browser.open(pathToFileURL(path.resolve(page)).href);
	said.open_ms = browser.openMs;
	said.ready_ms = Number(await browser.run("document.documentElement.dataset.ready"));
	said.facts = Object.fromEntries(await browser.run(
		"[...document.querySelectorAll('#facts div')].map((d) => [d.children[0].textContent, d.children[1].textContent])"));
	await browser.screenshot("timeline-light");

	// The keys and the wheel zoom; 0 shows all.
	const size = () => browser.run("ptdReport.timeline.extent.size");
	const whole = await size();
	await browser.click(700, 400);
	await browser.key("w");
	const closer = await size();
	assert.ok(closer < whole, "w zooms in");
	await browser.mouse("mouseWheel", 900, 400, { deltaX: 0, deltaY: -300 });
	await browser.settle();
	assert.ok((await size()) < closer, "the wheel zooms in");
	const from = await browser.run("ptdReport.timeline.extent.from");
	await browser.key("d");
	await browser.key("ArrowRight");
	assert.ok((await browser.run("ptdReport.timeline.extent.from")) > from, "d and the arrow move");
	said.command = await browser.run("document.querySelector('#detail-command code')?.textContent ?? ''");
	await browser.screenshot("timeline-zoomed");
	await browser.key("s");
	await browser.key("0");
	assert.equal(await size(), whole, "0 shows all");
	await browser.key("]");
	said.timeline_details = await text("details");

	// The flame graph: a click selects, a double click zooms.
	await browser.key("2");
	await browser.screenshot("flame-light");
	const box = await browser.run(`(() => { const stage = document.getElementById("flame-stage").getBoundingClientRect();
		const b = ptdReport.flame.boxes.find((one) => one.node.depth === 2 && one.width > 40) ?? ptdReport.flame.boxes[0];
		return { x: stage.x + b.x + b.width / 2, y: stage.y + b.y + 8, name: ptdReport.flame.nameOf(b.node) }; })()`);
	await browser.click(box.x, box.y);
	said.clicked = box.name;
	said.details = await text("details");
	assert.ok(said.details.startsWith(box.name), `the details are of ${box.name}: ${said.details}`);
	await browser.key("Enter");
	assert.ok(await browser.run("Math.abs(ptdReport.flame.extent.size - ptdReport.flame.selected.cost(ptdReport.metric)) <= 10"),
		"Enter zooms to the selected function");
	await browser.key("ArrowDown");
	await browser.screenshot("flame-zoomed");
	await browser.key("0");

	// Search: "/" and typing.
	await browser.key("/");
	assert.equal(await browser.run("document.activeElement.id"), "search");
	await browser.send("Input.insertText", { text: wanted ?? box.name });
	await browser.settle();
	said.found = await text("search-count");
	said.found_share = await text("flame-found");
	await browser.screenshot("flame-search");
	await browser.key("Enter");
	await browser.key("3");
	said.found_rows = await text("functions-count");
	await browser.key("Escape");
	await browser.screenshot("functions-light");
	said.functions = await text("functions-count");
	said.rows = await browser.run("document.querySelectorAll('#functions-table tbody tr').length");
	await browser.run("document.querySelectorAll('#functions-table th button')[4].click()");
	said.most_called = await browser.run("document.querySelector('#functions-table tbody td').textContent");
	await browser.key("4");
	await browser.screenshot("latency-light");
	said.latency = await browser.run("document.querySelector('#latency-table tbody td')?.textContent ?? ''");
	if (said.latency) {
		await browser.run("document.querySelector('#latency-table .slowest button').click()");
		await browser.settle();
		await browser.screenshot("timeline-outlier");
		said.outlier_details = await text("details");
	}

	// Dark, by the system's wish and by the switch.
	await browser.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: "dark" }] });
	const surface = "getComputedStyle(document.body).backgroundColor";
	const dark = await browser.run(surface);
	await browser.run("ptdReport.setTheme('light')");
	assert.notEqual(await browser.run(surface), dark, "the switch wins over the system");
	await browser.run("ptdReport.setTheme('dark')");
	assert.equal(await browser.run(surface), dark);
	for (const [key, name] of [["1", "timeline"], ["2", "flame"], ["3", "functions"], ["4", "latency"], ["5", "about"]]) {
		await browser.key(key);
		if (key === "1")
			await browser.key("0");
		await browser.screenshot(`${name}-dark`);
	}
	said.left_out = await text("left-out");

	// Everything that can be operated has a name.
	const { nodes } = await browser.send("Accessibility.getFullAXTree");
	const operated = new Set(["button", "tab", "textbox", "searchbox", "combobox", "application", "link"]);
	said.nameless = nodes.filter((node) => !node.ignored && operated.has(node.role?.value) && !node.name?.value).length;
	said.requests = browser.events.filter((event) => event.method === "Network.requestWillBeSent")
		.map((event) => event.params.request.url).filter((url) => url !== pathToFileURL(path.resolve(page)).href);
	said.errors = browser.events.filter((event) => event.method === "Runtime.exceptionThrown" || event.method === "Log.entryAdded" ||
		(event.method === "Runtime.consoleAPICalled" && ["error", "warning"].includes(event.params.type)))
		.map((event) => JSON.stringify(event.params));
	console.log(JSON.stringify(said));
} finally {
	browser.close();
}
