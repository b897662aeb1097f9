// SPDX-License-Identifier: LGPL-2.1-or-later
//
// The tables: a header that sorts, a part of the rows, and a button for more of them.

const ROWS_AT_ONCE = 200;

// A column: @title; @value of a row, by which it is sorted; @text of the value, or @cell, an element.
class Table {
	constructor(place, label, columns, sortedBy) {
		Object.assign(this, { place, label, columns, sortedBy, isAscending: false, rows: [], shown: ROWS_AT_ONCE });
	}
	setRows(rows, columns = this.columns) {
		this.rows = rows;
		this.columns = columns;
		this.shown = ROWS_AT_ONCE;
		this.sort();
	}
	sort() {
		const column = this.columns[this.sortedBy] ?? this.columns[0], sign = this.isAscending ? 1 : -1;
		const keyed = this.rows.map((row, i) => [column.value(row), row, i]);
		const compare = (a, b) => (typeof a === "string" ? a.localeCompare(b) : a - b);
		keyed.sort((a, b) => sign * compare(a[0], b[0]) || a[2] - b[2]);
		this.rows = keyed.map((key) => key[1]);
		this.draw();
	}
	sortBy(i) {
		this.isAscending = this.sortedBy === i ? !this.isAscending : !this.columns[i].isNumber;
		this.sortedBy = i;
		this.sort();
		this.place.querySelectorAll("th button")[i].focus();
	}
	head(column, i) {
		const isSorted = i === this.sortedBy;
		const arrow = element("span", { "aria-hidden": "true", class: "arrow" }, isSorted ? (this.isAscending ? "▲" : "▼") : "");
		return element("th", { scope: "col", class: column.isNumber ? "number" : undefined,
			"aria-sort": isSorted ? (this.isAscending ? "ascending" : "descending") : undefined, title: column.help },
		element("button", { type: "button", onclick: () => this.sortBy(i) }, column.title, arrow));
	}
	draw() {
		const head = element("thead", {}, element("tr", {}, ...this.columns.map((column, i) => this.head(column, i))));
		const body = element("tbody");
		for (const row of this.rows.slice(0, this.shown))
			body.append(element("tr", {}, ...this.columns.map((column) => element("td",
				{ class: column.isNumber ? "number" : column.class }, column.cell ? column.cell(row) : column.text(row)))));
		const all = [element("table", { "aria-label": this.label }, head, body)];
		if (this.rows.length > this.shown) {
			const rest = this.rows.length - this.shown;
			all.push(element("button", { type: "button", class: "more", onclick: () => this.showMore() },
				`Show more (${formatCount(rest)} left)`));
		}
		if (this.rows.length === 0)
			all.push(element("p", { class: "empty" }, "Nothing to show."));
		this.place.replaceChildren(...all);
	}
	showMore() {
		this.shown *= 4;
		this.draw();
	}
}

// A name that opens the function's details.
function functionButton(report, f) {
	return element("button", { type: "button", class: "link name", title: f.name, onclick: () => report.showFunction(f) }, f.name);
}

class FunctionTable {
	constructor(report) {
		this.report = report;
		this.table = new Table(byId("functions-table"), "Functions", [], 1);
		this.show(null);
	}
	columns() {
		const { report } = this, { model, metric } = report, whole = model.data[metric];
		const cost = (title, help, key) => ({ title, help, isNumber: true, value: (f) => f[metric][key],
			text: (f) => (f[metric].n > 0 || key === "self" || key === "total" ? model.formatCost(f[metric][key], metric) : "–") });
		const share = (f) => {
			const bar = element("span", { class: "bar" });
			bar.style.width = `${whole > 0 ? (100 * f[metric].self) / whole : 0}%`;
			return element("span", { class: "share" }, bar, element("span", {}, formatShare(f[metric].self, whole)));
		};
		return [
			{ title: "Function", class: "wide", value: (f) => f.name, cell: (f) => functionButton(report, f) },
			cost("Self", "in the function itself", "self"),
			{ title: "Self %", isNumber: true, value: (f) => f[metric].self, cell: share },
			cost("Total", "with what it called; a function that calls itself counts once", "total"),
			{ title: "Calls", isNumber: true, value: (f) => f.calls, text: (f) => formatCount(f.calls) },
			cost("Median", "of the calls that were seen from beginning to end", "median"),
			cost("99 %", "99 % of these calls took at most so much", "p99"),
			cost("Max", "of these calls", "max"),
			{ title: "Object", class: "object", value: (f) => f.object, cell: (f) => element("span", { title: f.object }, f.object) },
		];
	}
	// Functions that were found; NULL: all.
	show(found) {
		const { data, functions } = this.report.model;
		const rows = found ? functions.filter((f) => found[f.i]) : functions;
		this.table.setRows(rows, this.columns());
		const listed = found ? `${formatCount(rows.length)} found of ` : "";
		byId("functions-count").textContent = `${listed}${formatCount(data.n_functions)} functions, ` +
			`${formatCount(data.calls)} calls, ${formatCount(data.partial)} of them partial`;
	}
}

class LatencyTable {
	constructor(report) {
		this.report = report;
		this.table = new Table(byId("latency-table"), "Latency outliers", [], 4);
		this.show(null);
	}
	columns() {
		const { report } = this, { model, metric } = report;
		const format = (value) => model.formatCost(value, metric);
		const cost = (title, help, value) => ({ title, help, isNumber: true, value, text: (row) => format(value(row)) });
		return [
			{ title: "Function", class: "wide", value: (row) => row.f.name, cell: (row) => functionButton(report, row.f) },
			{ title: "Whole calls", isNumber: true, help: "that were seen from beginning to end",
				value: (row) => row.f[metric].n, text: (row) => formatCount(row.f[metric].n) },
			cost("Median", undefined, (row) => row.f[metric].median),
			cost("Max", undefined, (row) => row.f[metric].max),
			cost("Max − median", "what the slowest call lost", (row) => row.excess),
			{ title: "Ratio", isNumber: true, value: (row) => row.ratio, text: (row) => (row.f[metric].median > 0 ? `${row.ratio.toFixed(1)} ×` : "–") },
			{ title: "Instructions: slowest / median", isNumber: true, help: "of the slowest execution, and of the median call",
				value: (row) => this.more(row), text: (row) => this.instructions(row) },
			{ title: "Slowest executions", class: "wide", value: (row) => row.f.slowest[0].t, cell: (row) => this.slowest(row) },
		];
	}
	more({ f }) {
		return f.slowest[0].insns / Math.max(f.instructions.median, 1);
	}
	instructions(row) {
		return `${formatCount(row.f.slowest[0].insns)} / ${formatCount(row.f.instructions.median)}`;
	}
	slowest({ f }) {
		const { report } = this, { model } = report, list = element("span", { class: "slowest" });
		for (const one of f.slowest) {
			if ((model.hasTime ? one.duration : one.insns) <= f[model.metrics[0]].median)
				break;
			const text = model.hasTime ? model.formatDuration(one.duration) : formatCount(one.insns);
			list.append(element("button", { type: "button", class: "link",
				title: `${model.exactTime(one.t)}, ${formatCount(one.insns)} instructions, thread ` +
					model.trackName(model.tracks[one.track] ?? { comm: "?" }),
				onclick: () => report.showExecution(f, one) }, text));
		}
		return list;
	}
	show(found) {
		const rows = this.report.model.outliers(this.report.metric).filter((row) => !found || found[row.f.i]);
		this.table.setRows(rows, this.columns());
	}
}
