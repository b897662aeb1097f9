// SPDX-License-Identifier: LGPL-2.1-or-later
//
// What the views share: elements, a canvas that fits its place, colours, and the card beside the pointer.

// Texts are foreign, and stay texts: nothing here makes HTML of them.
function element(tag, properties = {}, ...children) {
	const made = document.createElement(tag);
	for (const [key, value] of Object.entries(properties)) {
		if (key.startsWith("on"))
			made.addEventListener(key.slice(2), value);
		else if (key === "class")
			made.className = value;
		else if (value !== undefined && value !== false)
			made.setAttribute(key, value === true ? "" : value);
	}
	made.append(...children);
	return made;
}

function byId(id) {
	return document.getElementById(id);
}

// A canvas whose pixels are those of the screen.
class Surface {
	constructor(canvas, draw) {
		this.canvas = canvas;
		this.context = canvas.getContext("2d", { alpha: false });
		this.draw = draw;
		this.isAsked = false;
		new ResizeObserver(() => this.fit()).observe(canvas.parentElement);
	}
	fit() {
		const box = this.canvas.parentElement.getBoundingClientRect(), ratio = window.devicePixelRatio || 1;
		if (box.width === 0)
			return;
		this.width = this.canvas.parentElement.clientWidth;
		this.height = this.canvas.parentElement.clientHeight;
		this.canvas.width = Math.round(this.width * ratio);
		this.canvas.height = Math.round(this.height * ratio);
		this.canvas.style.width = `${this.width}px`;
		this.canvas.style.height = `${this.height}px`;
		this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
		this.ask();
	}
	// Draw with the next frame of the screen.
	ask() {
		if (this.isAsked)
			return;
		this.isAsked = true;
		requestAnimationFrame(() => {
			this.isAsked = false;
			if (this.width > 0 && !this.canvas.closest("[hidden]"))
				this.draw(this.context);
		});
	}
}

const FONT = '11px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
const CHARACTER = 6.7; // its width in that font

// As much of the text as fits into @width.
function fitText(text, width) {
	const n = Math.floor(width / CHARACTER);
	return text.length <= n ? text : n < 3 ? "" : `${text.slice(0, n - 1)}…`;
}

class Colours {
	constructor() {
		this.read();
	}
	read() {
		const style = getComputedStyle(document.documentElement);
		const get = (name) => style.getPropertyValue(`--${name}`).trim();
		for (const name of ["surface", "raised", "line", "text", "muted", "accent", "match", "gap", "gap-text", "signal",
			"box-text", "dim", "unlisted"])
			this[name.replace("-t", "T")] = get(name);
		this.box = [get("box-saturation"), get("box-lightness")];
		this.ofFunction = [];
	}
	// Functions of one object have hues that are near each other.
	of(f) {
		if (!f)
			return this.unlisted;
		return (this.ofFunction[f.i] ||= `hsl(${this.hue(f)} ${this.box[0]} ${this.box[1]})`);
	}
	ofName(name) {
		return `hsl(${hash(name) % 360} ${this.box[0]} ${this.box[1]})`;
	}
	hue(f) {
		return (hash(f.object) % 360 + hash(f.name) % 50) % 360;
	}
	ofCpu(cpu) {
		return `hsl(${(cpu * 67 + 200) % 360} 45% 55%)`;
	}
}

function hash(text) {
	let value = 7;
	for (let i = 0; i < text.length; i++)
		value = (Math.imul(value, 31) + text.charCodeAt(i)) >>> 0;
	return value;
}

// The card beside the pointer: a name, and rows of a key and a value.
class Card {
	constructor(place) {
		this.place = place;
	}
	show(event, title, rows) {
		this.place.replaceChildren(...describe(title, rows));
		this.place.hidden = false;
		const box = this.place.getBoundingClientRect();
		const left = event.clientX + 16 + box.width > innerWidth ? event.clientX - box.width - 12 : event.clientX + 16;
		const top = event.clientY + 16 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 16;
		this.place.style.left = `${Math.max(left, 4)}px`;
		this.place.style.top = `${Math.max(top, 4)}px`;
	}
	hide() {
		this.place.hidden = true;
	}
}

function describe(title, rows) {
	const list = element("dl");
	for (const [key, value] of rows)
		list.append(element("dt", {}, key), element("dd", {}, value));
	return [element("strong", { class: "name" }, title), list];
}

// What a command line shows, with a button that copies it.
function commandLine(text) {
	const code = element("code", {}, text);
	const copy = () => {
		getSelection().selectAllChildren(code);
		navigator.clipboard?.writeText(text).catch(() => {});
	};
	return element("span", { class: "command" }, code, element("button", { type: "button", onclick: copy }, "Copy"));
}

// The part of an axis that is shown: from @from to @to, of all from 0 to @end.
class Extent {
	constructor(end, least, changed) {
		Object.assign(this, { end, least, changed, from: 0, to: end });
	}
	get size() {
		return this.to - this.from;
	}
	show(from, to) {
		const size = Math.min(Math.max(to - from, this.least), this.end);
		const middle = (from + to) / 2;
		this.from = Math.min(Math.max(middle - size / 2, 0), this.end - size);
		this.to = this.from + size;
		this.changed();
	}
	// @factor below 1 zooms in; what is at @at stays where it is.
	zoom(factor, at = (this.from + this.to) / 2) {
		const size = Math.min(Math.max(this.size * factor, this.least), this.end);
		const from = at - ((at - this.from) * size) / this.size;
		this.show(from, from + size);
	}
	// By a part of what is shown.
	pan(part) {
		const from = Math.min(Math.max(this.from + part * this.size, 0), this.end - this.size);
		this.show(from, from + this.size);
	}
	all() {
		this.show(0, this.end);
	}
}

// A canvas with an extent, which the wheel zooms and the pointer moves; it scrolls downwards.
class Chart {
	constructor(report, stage, least) {
		Object.assign(this, { report, model: report.model, stage });
		this.canvas = stage.querySelector("canvas");
		this.spacer = stage.querySelector(".spacer");
		this.surface = new Surface(this.canvas, (context) => this.draw(context));
		this.extent = new Extent(1, least, () => this.moved());
		this.found = new Uint8Array(this.model.functions.length);
		this.isSearching = false;
		stage.addEventListener("scroll", () => this.surface.ask());
		stage.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
		this.canvas.addEventListener("pointerdown", (event) => this.press(event));
		this.canvas.addEventListener("pointermove", (event) => this.move(event));
		this.canvas.addEventListener("pointerup", (event) => this.release(event));
		this.canvas.addEventListener("pointerleave", () => report.card.hide());
		this.canvas.addEventListener("dblclick", (event) => this.zoomTo(this.hit(event)));
	}
	moved() {
		this.surface.ask();
	}
	search(found, isSearching) {
		Object.assign(this, { found, isSearching });
		this.surface.ask();
	}
	isFound(value) {
		return value > 0 && this.found[value - 1] === 1;
	}
	setHeight(height) {
		this.spacer.style.height = `${Math.max(height - this.stage.clientHeight, 0)}px`;
	}
	xOf(value) {
		return ((value - this.extent.from) / this.extent.size) * this.surface.width;
	}
	valueAt(event) {
		return this.extent.from + (event.offsetX / this.surface.width) * this.extent.size;
	}
	wheel(event) {
		event.preventDefault();
		const delta = event.deltaY * (event.deltaMode === 1 ? 30 : 1);
		if (event.shiftKey)
			this.stage.scrollTop += delta;
		else if (Math.abs(event.deltaX) > Math.abs(event.deltaY))
			this.extent.pan(event.deltaX / this.surface.width);
		else
			this.extent.zoom(Math.exp(Math.min(Math.max(delta, -200), 200) * 0.004), this.valueAt(event));
		this.report.card.hide();
	}
	press(event) {
		this.canvas.setPointerCapture(event.pointerId);
		this.drag = { x: event.offsetX, y: event.offsetY, isMoved: false, at: this.valueAt(event) };
	}
	move(event) {
		if (!this.drag) {
			this.hover(event);
			return;
		}
		const dx = event.offsetX - this.drag.x, dy = event.offsetY - this.drag.y;
		if (!this.drag.isMoved && Math.abs(dx) + Math.abs(dy) < 4)
			return;
		this.drag.isMoved = true;
		this.report.card.hide();
		if (this.dragged(event))
			return;
		this.extent.pan(-dx / this.surface.width);
		this.stage.scrollTop -= dy;
		Object.assign(this.drag, { x: event.offsetX, y: event.offsetY });
	}
	dragged() {
		return false;
	}
	release(event) {
		const drag = this.drag;
		this.drag = null;
		if (drag && !drag.isMoved)
			this.select(this.hit(event));
	}
	// What all charts do at a key. Return: whether it was one.
	key(event) {
		switch (event.key) {
		case "w":
		case "+":
			this.extent.zoom(0.7);
			return true;
		case "s":
		case "-":
			this.extent.zoom(1 / 0.7);
			return true;
		case "a":
			this.extent.pan(-0.2);
			return true;
		case "d":
			this.extent.pan(0.2);
			return true;
		case "0":
			this.extent.all();
			return true;
		case "PageDown":
		case "PageUp":
			this.stage.scrollTop += (event.key === "PageUp" ? -0.8 : 0.8) * this.stage.clientHeight;
			return true;
		case "f":
		case "Enter":
			this.zoomTo(this.selected);
			return true;
		default:
			return false;
		}
	}
}
