// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The page: what is shown of the report, and how one moves in it.

const VIEWS = ["timeline", "flame", "functions", "latency", "about"];

// What is selected, at the foot of the page.
class Details {
	constructor(report) {
		Object.assign(this, { report, place: byId("details") });
	}
	show(title, rows, f, actions) {
		const all = [...actions];
		if (f) {
			all.push(["In the flame graph", () => this.report.showInFlame(f)]);
			all.push(["Find all", () => this.report.searchFor(f.name)]);
		}
		const buttons = all.map(([text, onclick]) => element("button", { type: "button", onclick }, text));
		this.place.replaceChildren(...describe(title, rows), element("span", { class: "actions" }, ...buttons));
	}
	say(text) {
		this.place.replaceChildren(element("span", {}, text));
	}
}

class Report {
	constructor(model) {
		this.model = model;
		this.metric = model.metrics[0];
		this.colours = new Colours();
		this.card = new Card(byId("card"));
		this.details = new Details(this);
		this.timeline = new Timeline(this);
		this.flame = new Flame(this);
		this.functions = new FunctionTable(this);
		this.latency = new LatencyTable(this);
		this.putHead();
		this.putAbout();
		this.listen();
		this.open("timeline");
		this.tellExtent(this.timeline.extent);
	}
	putHead() {
		const { model } = this, { data } = model;
		const names = [...new Set(data.tracks.map((track) => track[2]).filter((name) => name !== ""))];
		byId("title").textContent = names.length > 4 ? `${names.slice(0, 4).join(", ")}, …` : names.join(", ") || "nothing ran";
		document.title = `${byId("title").textContent} – ptdecode`;
		const facts = [["calls", data.calls], ["functions", data.n_functions], ["instructions", data.instructions],
			["threads", data.threads.length], ["gaps", model.nGaps]].map(([name, n]) => [name, formatCount(n)]);
		if (model.hasTime)
			facts.unshift(["length", model.formatDuration(model.end)]);
		byId("facts").replaceChildren(...facts.map(([name, value]) => element("div", {}, element("dt", {}, name),
			element("dd", { id: `fact-${name}` }, value))));
		byId("metric").hidden = model.metrics.length < 2;
		byId("metric").value = this.metric;
	}
	putAbout() {
		const { model } = this, { data } = model, out = model.leftOut();
		const items = (texts) => texts.map((text) => element("li", {}, text));
		byId("left-out").replaceChildren(...items(out.length > 0 ? out : ["Nothing: each call is shown."]));
		byId("left-out-note").hidden = out.length === 0;
		const gaps = data.gaps.filter((gap) => gap[1] > 0)
			.map(([reason, n, bytes]) => `${formatCount(n)} × ${reason}: ${formatCount(bytes)} bytes of PT`);
		if (data.bytes_overwritten > 0)
			gaps.push(`overwritten in the rings: ${formatCount(data.bytes_overwritten)} bytes of PT`);
		byId("gaps").replaceChildren(...items(gaps.length > 0 ? gaps : ["None."]));
		byId("complaints").replaceChildren(...items(data.complaints));
		byId("version").textContent = data.version;
		if (data.realtime_offset !== undefined && data.clock === "ns") {
			const ms = Number(BigInt(data.base) / 1000000n) + data.realtime_offset;
			byId("when").textContent = `It begins at ${model.exactTime(0)}, which is ${new Date(ms).toISOString()}. ` +
				"A snapshot ends when it was taken.";
		} else {
			byId("when").textContent = model.hasTime ? `It begins at ${model.exactTime(0)}.`
				: "It has no time: where the report shows a time, it is a number of instructions.";
		}
	}
	listen() {
		for (const view of VIEWS)
			byId(`tab-${view}`).addEventListener("click", () => this.open(view));
		byId("tabs").addEventListener("keydown", (event) => this.tabKey(event));
		byId("search").addEventListener("input", (event) => this.search(event.target.value));
		byId("search").addEventListener("keydown", (event) => {
			if (event.key === "Escape")
				this.searchFor("");
			if (event.key === "Escape" || event.key === "Enter")
				this.focusView();
		});
		byId("metric").addEventListener("change", (event) => this.setMetric(event.target.value));
		byId("theme").addEventListener("change", (event) => this.setTheme(event.target.value));
		matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.recolour());
		document.addEventListener("keydown", (event) => this.key(event));
	}
	get chart() {
		return { timeline: this.timeline, flame: this.flame }[this.view];
	}
	open(view) {
		this.view = view;
		for (const other of VIEWS) {
			byId(`view-${other}`).hidden = other !== view;
			byId(`tab-${other}`).setAttribute("aria-selected", String(other === view));
			byId(`tab-${other}`).tabIndex = other === view ? 0 : -1;
		}
		this.card.hide();
		if (view === "flame")
			this.flame.begin();
		this.chart?.surface.fit();
	}
	focusView() {
		(this.chart?.canvas ?? byId(`view-${this.view}`)).focus();
	}
	tabKey(event) {
		const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
		if (!by)
			return;
		event.stopPropagation();
		this.open(VIEWS[(VIEWS.indexOf(this.view) + by + VIEWS.length) % VIEWS.length]);
		byId(`tab-${this.view}`).focus();
	}
	key(event) {
		const isText = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
		if (isText || event.ctrlKey || event.metaKey || event.altKey)
			return;
		const view = VIEWS[Number(event.key) - 1];
		if (event.key === "/")
			byId("search").focus();
		else if (event.key === "?")
			this.open("about");
		else if (view)
			this.open(view);
		else if (event.key === "Escape")
			this.searchFor("");
		else if ((event.key === "Enter" && event.target.tagName === "BUTTON") || !this.chart?.key(event))
			return;
		event.preventDefault();
	}
	searchFor(text) {
		byId("search").value = text;
		this.search(text);
	}
	search(text) {
		const isSearching = text.trim() !== "", found = this.model.matches(text.trim());
		this.found = isSearching ? found : null;
		this.timeline.search(found, isSearching);
		this.flame.search(found, isSearching);
		this.functions.show(this.found);
		this.latency.show(this.found);
		byId("search-count").textContent = isSearching ? `${formatCount(found.reduce((n, one) => n + one, 0))} found` : "";
	}
	setMetric(metric) {
		this.metric = metric;
		this.flame.setMetric();
		this.functions.show(this.found ?? null);
		this.latency.show(this.found ?? null);
	}
	setTheme(theme) {
		if (theme === "auto")
			delete document.documentElement.dataset.theme;
		else
			document.documentElement.dataset.theme = theme;
		this.recolour();
	}
	recolour() {
		this.colours.read();
		this.timeline.surface.ask();
		this.flame.surface.ask();
	}
	tellExtent(extent) {
		const text = this.model.command(extent.from, extent.to), place = byId("detail-command");
		place.replaceChildren(...(text ? [element("span", {}, "In full: "), commandLine(text)] : []));
		byId("extent").textContent = `${this.model.formatDuration(extent.size)} shown, from ${this.model.exactTime(extent.from)}`;
	}
	showFunction(f) {
		const rows = this.model.metrics.flatMap((metric) => [
			[metric === "time" ? "Time of its own" : "Instructions of its own", this.model.formatCost(f[metric].self, metric)],
			["– with callees", this.model.formatCost(f[metric].total, metric)]]);
		rows.push(["Calls", formatCount(f.calls)], ["Object", f.object], ["Address", f.address]);
		this.details.show(f.name, rows, f, []);
	}
	showInFlame(f) {
		this.open("flame");
		this.flame.selectFunction(f);
	}
	showExecution(f, { t, duration, track }) {
		this.open("timeline");
		if (this.model.tracks[track])
			this.timeline.goTo(this.model.tracks[track], t, this.model.hasTime ? duration : 1000, f);
	}
}

{
	const text = (id) => byId(id).textContent;
	const report = new Report(new Model(JSON.parse(text("report")), text("spans"), text("nodes")));
	globalThis.ptdReport = report;
	// After the first picture.
	requestAnimationFrame(() => requestAnimationFrame(() => {
		document.documentElement.dataset.ready = String(Math.round(performance.now()));
	}));
}
