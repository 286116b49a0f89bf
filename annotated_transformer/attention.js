/* Where each head of a Transformer looks: one picture for the book, for notebooks and for
   `annotated-transformer attend`.

     <attention-view panels='[{"name": "cross", "queries": [], "keys": [], "weights": []}]'>

   with weights[layer][head][query][key]. A script may call `show(panels, off)` instead,
   where `off` is the Set of heads that are turned off, by name: "cross.0.3" is head 3 of
   layer 0, both from 0. `value(worth)` marks each head with what it is worth, by name,
   `mark(name, row)` a row of a panel, and `pictures()` are the heads' canvases. `chosen`
   names the head in view; a "choose" event tells of a new one, a "point" event of a row,
   { name, row }. What is written inside the element stands between the heads and their
   words. */
(() => {
  "use strict";
  if (customElements.get("attention-view")) return;

  const STYLE = `
:host { display: block; --ink: var(--pst-color-primary, #2f8fce); --quiet: var(--book-quiet, color-mix(in srgb, currentColor 75%, transparent)); --mark: var(--pst-color-link-hover, #d55e00); }
p { margin: .5rem 0; }
.heads { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, var(--least)), 1fr)); gap: 0 1.2rem; }
.heads [role=group] { display: flex; flex-wrap: wrap; gap: 3px; margin: 2px 0; }
.heads span { flex: 1 0 100%; font-size: .85rem; color: var(--quiet); }
button { position: relative; flex: 1 1 0; min-width: 0; max-width: 5rem; aspect-ratio: 1; padding: 2px 2px 6px; line-height: 0; background: none; border: 1px solid var(--quiet); border-radius: 4px; }
button[aria-pressed=true] { border-color: var(--mark); box-shadow: 0 0 0 1px var(--mark); }
button.off { background: repeating-linear-gradient(45deg, transparent 0 4px, var(--quiet) 4px 5px); }
:focus-visible { outline: 2px solid var(--mark); outline-offset: 1px; }
button i { position: absolute; inset: auto auto 1px 2px; height: 4px; max-width: calc(100% - 4px); background: var(--mark); }
canvas { width: 100%; height: 100%; image-rendering: pixelated; }
.value { min-height: 1.6em; font-variant-numeric: tabular-nums; }
.both { display: flex; flex-wrap: wrap; gap: 1rem; align-items: flex-start; }
.both > * { overflow-x: auto; max-width: 100%; }
svg { display: block; }
text { font-size: 13px; fill: currentColor; }
line { stroke: var(--ink); }
g > rect { fill: transparent; }
g:focus > rect, .lines .on > rect { fill: color-mix(in srgb, var(--ink) 16%, transparent); }
.lines .one line:not(.on) { stroke-opacity: .04; }
.matrix { position: relative; }
.matrix canvas { position: absolute; outline: 1px solid var(--quiet); }
.matrix rect { fill: none; }
.matrix .on > rect { stroke: var(--mark); stroke-width: 2; }
`;
  const DRAWN = ["svg", "g", "line", "path", "rect", "text", "title"];
  const ROW = 24; // the height of a word
  const clip = (word) => (word.length > 13 ? `${word.slice(0, 12)}…` : word);
  const percent = (p) => (p >= 0.0005 || p === 0 ? `${(100 * p).toFixed(1)} %` : "< 0.1 %");

  // An element with attributes, listeners ("onclick") and what is inside it.
  function make(name, attributes = {}, ...inside) {
    const node = DRAWN.includes(name)
      ? document.createElementNS("http://www.w3.org/2000/svg", name)
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (value !== false && value !== undefined)
        node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...inside);
    return node;
  }

  // The keys with the largest weights, the largest first.
  const strongest = (weights, count) =>
    [...weights.keys()].sort((a, b) => weights[b] - weights[a]).slice(0, count);

  // The head of a panel's last layer whose words look most decidedly at one word.
  function sharpest({ name, weights }) {
    const scores = weights.at(-1).map((rows) =>
      rows.reduce((sum, row) => sum + Math.max(...row), 0));
    return `${name}.${weights.length - 1}.${strongest(scores, 1)}`;
  }

  class AttentionView extends HTMLElement {
    static make = make;
    static percent = percent;
    #panels = []; #off = new Set(); #heads; #name; #value; #lines; #matrix; #point;

    connectedCallback() {
      if (this.shadowRoot) return;
      this.attachShadow({ mode: "open" }).append(make("style", {}, STYLE),
        this.#heads = make("div", { class: "heads" }),
        make("p", {}, this.#name = make("strong")), make("slot"),
        this.#value = make("p", { class: "value", role: "status" }),
        make("div", { class: "both" }, this.#lines = make("div", { class: "lines" }),
          this.#matrix = make("div", { class: "matrix", tabindex: 0, role: "region",
            "aria-label": "The weights as a matrix" })));
      const panels = this.getAttribute("panels");
      if (panels) this.show(JSON.parse(panels));
    }

    show(panels, off = new Set()) {
      this.#panels = panels;
      this.#off = off;
      this.chosen ||= sharpest(panels.at(-1));
      // A column for each panel, if every head has room for two letters.
      this.#heads.style.setProperty("--least", `${2.6 * panels[0].weights[0].length}rem`);
      this.#heads.replaceChildren(...panels.map(({ name, weights }) => make("div", {},
        ...weights.map((heads, layer) => make("div", { role: "group" },
          make("span", {}, `${name} ${layer + 1}`),
          ...heads.map((rows, head) => this.#head(rows, `${name}.${layer}.${head}`)))))));
      this.#choose(this.chosen);
    }

    // A bar for each head: how much log-probability it brings, against the one that brings
    // the most; none for a head that brings nothing.
    value(worth) {
      const most = Math.max(...Object.values(worth), 1e-9);
      this.#heads.querySelectorAll("button").forEach((button) => {
        const brings = worth[button.value], bar = make("i");
        bar.style.width = `${100 * Math.max(0, brings / most)}%`;
        const told = `${button.getAttribute("aria-label").replace(/; without it.*/, "")}; `
          + `without it the log-probability ${brings < 0 ? "rises" : "falls"} by `
          + Math.abs(brings).toFixed(2);
        button.setAttribute("aria-label", told);
        button.title = told;
        button.querySelector("i")?.remove();
        button.append(bar);
      });
    }

    // Every head in small, in the order of the panels.
    pictures() {
      return [...this.#heads.querySelectorAll("canvas")];
    }

    mark(name, row) {
      const panel = this.#panels.find((each) => each.name === name);
      if (this.chosen.startsWith(`${name}.`) && row < panel.queries.length) this.#point(row);
    }

    // One head in small.
    #head(rows, id) {
      const canvas = paint(rows), off = this.#off.has(id), label = this.#label(id);
      return make("button", { type: "button", value: id, title: label,
        "aria-label": label + (off ? ", off" : ""), class: off && "off",
        onclick: () => this.#choose(id), onkeydown: (event) => this.#move(event) }, canvas);
    }

    #label(id) {
      const [name, layer, head] = id.split(".");
      return `${name}, layer ${Number(layer) + 1}, head ${Number(head) + 1}`;
    }

    // The arrow keys go from head to head.
    #move(event) {
      const buttons = [...this.#heads.querySelectorAll("button")];
      const wide = this.#panels[0].weights[0].length;
      const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -wide, ArrowDown: wide }[event.key];
      const next = by && buttons[buttons.indexOf(event.currentTarget) + by];
      if (!next) return;
      event.preventDefault();
      next.focus();
      next.click();
    }

    #choose(id) {
      this.chosen = id;
      this.#heads.querySelectorAll("button").forEach((button) => {
        button.setAttribute("aria-pressed", button.value === id);
        button.tabIndex = button.value === id ? 0 : -1;
      });
      const [name, layer, head] = id.split(".");
      const panel = this.#panels.find((each) => each.name === name);
      const { queries, keys } = panel, weights = panel.weights[layer][head];
      const matrix = drawMatrix(weights, queries, keys);
      const pictures = [drawLines(weights, queries, keys), matrix.lastChild];
      this.#name.textContent = this.#label(id);
      this.#value.textContent = "Point at a word, or reach it with the Tab key.";
      this.#lines.replaceChildren(pictures[0]);
      this.#matrix.replaceChildren(matrix);
      const point = this.#point = (i) => {
        for (const svg of pictures) {
          svg.classList.toggle("one", i >= 0);
          svg.querySelectorAll("[data-row]").forEach((node) =>
            node.classList.toggle("on", Number(node.dataset.row) === i));
        }
        if (i >= 0) this.#value.textContent = `${queries[i]} looks at `
          + strongest(weights[i], 3).map((j) => `${keys[j]} ${percent(weights[i][j])}`).join(", ");
      };
      for (const svg of pictures) {
        svg.addEventListener("mouseleave", () => point(-1));
        svg.querySelectorAll("[data-row]").forEach((node) => {
          const tell = () => {
            point(Number(node.dataset.row));
            this.dispatchEvent(new CustomEvent("point",
              { detail: { name, row: Number(node.dataset.row) } }));
          };
          node.addEventListener("mouseenter", tell);
          node.addEventListener("click", tell);
          // Chromium would take any shape that listens for the focus for a stop of the Tab key.
          if (node.hasAttribute("tabindex")) node.addEventListener("focus", tell);
        });
      }
      this.dispatchEvent(new Event("choose"));
    }
  }

  // Weights as pixels. Their blue is legible in both themes, so it needn't follow them.
  function paint(rows) {
    const width = rows[0].length, canvas = make("canvas", { width, height: rows.length });
    const image = new ImageData(width, rows.length);
    rows.forEach((row, i) => row.forEach((weight, j) =>
      image.data.set([47, 143, 206, 255 * weight], 4 * (i * width + j))));
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  // Both sentences from top to bottom, and a line for each weight, as thick as it is large.
  function drawLines(weights, queries, keys) {
    const height = ROW * Math.max(queries.length, keys.length) + 8, middle = ROW / 2 + 4;
    const svg = make("svg", { viewBox: `0 0 320 ${height}`, width: 320, height, role: "group",
      "aria-label": "Queries on the left, keys on the right, and lines between them" });
    const least = keys.length > 20 ? 0.05 : 0.01; // a long sentence has too many to see
    weights.forEach((row, i) => row.forEach((weight, j) => {
      if (weight < least) return;
      svg.append(make("line", { x1: 118, x2: 202, y1: i * ROW + middle, y2: j * ROW + middle,
        "data-row": i, "stroke-width": 0.5 + 4 * weight,
        "stroke-opacity": Math.max(0.12, weight) }));
    }));
    queries.forEach((word, i) => {
      const [best] = strongest(weights[i], 1);
      svg.append(make("g", { tabindex: 0, role: "img", "data-row": i,
        "aria-label": `${word} looks most at ${keys[best]}, ${percent(weights[i][best])}` },
      make("rect", { x: 2, y: i * ROW + 5, width: 112, height: ROW - 2, rx: 3 }),
      make("text", { x: 110, y: i * ROW + middle + 5, "text-anchor": "end" }, clip(word))));
    });
    keys.forEach((word, j) => svg.append(
      make("text", { x: 208, y: j * ROW + middle + 5 }, clip(word))));
    return svg;
  }

  // The same weights as a matrix: a row for each query, a column for each key.
  function drawMatrix(weights, queries, keys) {
    const left = 112, top = 96, side = 20;
    const width = left + side * keys.length + 46, height = top + side * queries.length + 4;
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
      "aria-label": "The same weights as a matrix, a row for each query" });
    keys.forEach((word, j) => svg.append(make("text", { transform:
      `translate(${left + (j + 0.7) * side},${top - 6}) rotate(-60)` }, clip(word))));
    queries.forEach((word, i) => svg.append(make("g", { "data-row": i },
      make("text", { x: left - 6, y: top + (i + 0.72) * side, "text-anchor": "end" }, clip(word)),
      make("rect", { x: left, y: top + i * side, width: side * keys.length, height: side,
        "pointer-events": "all" }))));
    svg.addEventListener("mousemove", ({ offsetX, offsetY }) => {
      const i = Math.floor((offsetY - top) / side), j = Math.floor((offsetX - left) / side);
      svg.parentNode.title = weights[i]?.[j] === undefined ? ""
        : `${queries[i]} → ${keys[j]}: ${percent(weights[i][j])}`;
    });
    const canvas = paint(weights);
    Object.assign(canvas.style, { left: `${left}px`, top: `${top}px`,
      width: `${side * keys.length}px`, height: `${side * queries.length}px` });
    const both = document.createDocumentFragment();
    both.append(canvas, svg);
    return both;
  }

  customElements.define("attention-view", AttentionView);
})();
