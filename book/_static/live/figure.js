/* The page "Live": Figure 1, box by box. A box shows what leaves it and, for an attention,
   how one word's vector comes about; each is its own off-switch. */
"use strict";

(() => {
  const { at, number } = Live;
  const { make, percent } = customElements.get("attention-view");
  const { BOXES, figure } = customElements.get("figure-one");
  const PARTS = { // the part behind each box, as transformer.js names it
    "src-embedding": "encoder.embedding", "src-positions": "encoder.positions",
    "enc-attention": "encoder.*.attention", "enc-norm-1": "encoder.*.after_attention",
    "enc-feed-forward": "encoder.*.feed_forward", "enc-norm-2": "encoder.*.after_feed_forward",
    "tgt-embedding": "decoder.embedding", "tgt-positions": "decoder.positions",
    "dec-attention": "decoder.*.self_attention", "dec-norm-1": "decoder.*.after_self_attention",
    "cross-attention": "decoder.*.source_attention",
    "dec-norm-2": "decoder.*.after_source_attention",
    "dec-feed-forward": "decoder.*.feed_forward", "dec-norm-3": "decoder.*.after_feed_forward",
    linear: "linear", softmax: "softmax",
  };
  const LOOKS = { "enc-attention": "encoder", "dec-attention": "decoder",
    "cross-attention": "cross" };
  const PAUSE = 1000; // milliseconds at a box, long enough to read its line
  let way = [], spot = 0, head = 0, playing = null;

  // The way of the data: up the encoder, layer by layer, then up the decoder.
  function wayOf() {
    const names = Object.keys(BOXES), layered = (those) => Array.from(
      { length: layers(those[0]) }, (_, layer) => those.map((box) => [box, layer])).flat();
    const plain = (those) => those.map((box) => [box, 0]);
    return [...plain(names.slice(0, 2)), ...layered(names.slice(2, 6)),
      ...plain(names.slice(6, 8)), ...layered(names.slice(8, 14)), ...plain(names.slice(14))];
  }

  const here = () => way[spot];
  const isLayered = (box) => PARTS[box].includes("*");
  const layers = (box) => Live.layers(PARTS[box].split(".")[0]);
  const part = ([box, layer]) => PARTS[box].replace("*", layer);
  const side = ([box]) => (PARTS[box].startsWith("encoder") ? "source" : "step");

  // What the off-switch of a box turns off; nothing for those that have none.
  function silenced([box, layer]) {
    if (LOOKS[box]) return Live.heads(LOOKS[box], layer);
    return /positions|feed_forward|after/.test(PARTS[box]) ? [part([box, layer])] : [];
  }
  const isOff = (which) => silenced(which).length && silenced(which).every((id) => Live.off.has(id));

  // -- Drawing --------------------------------------------------------------------------

  function draw() {
    way = wayOf();
    at("way").max = way.length - 1;
    go(Math.min(spot, way.length - 1));
  }

  function go(next) {
    spot = next;
    const [box, layer] = here(), [, , name, what, chapter] = BOXES[box];
    const off = Object.keys(BOXES).filter((each) => isOff([each, layer]));
    at("way").value = spot;
    at("way").setAttribute("aria-valuetext", `${name}, layer ${layer + 1}`);
    at("figure").innerHTML = figure(box, off); // of our own text alone
    at("box-name").textContent = name + (isLayered(box) ? `, layer ${layer + 1} of ${layers(box)}` : "");
    at("box-what").replaceChildren(`${what} `, make("a", { href: `model/${chapter}.html` }, "Its chapter"));
    at("box-off").checked = isOff(here());
    at("box-off").closest("label").hidden = !silenced(here()).length;
    at("box-off").nextSibling.textContent = box.includes("norm")
      ? " leave out the residual connection" : " leave this part out";
    open();
  }

  // The inside of the box, for the word or step that the reader points at.
  function open() {
    const [box, layer] = here(), { shown } = Live, n = Live.place[side(here())];
    const names = side(here()) === "source" ? shown.source : ["<s>", ...shown.target.slice(0, -1)];
    const parts = [];
    if (LOOKS[box]) parts.push(...attention(`${LOOKS[box]}.${layer}`, n));
    if (shown.boxes[part(here())]) parts.push(strip(shown.boxes[part(here())], names, n));
    else parts.push(make("p", {}, "The most probable next tokens: ", shown.candidates[n]
      .map(({ name, probability }) => `${name} ${percent(probability)}`).join(", ")));
    at("box").replaceChildren(...parts);
  }

  // A matrix as a picture: a row for each token, blue above zero and orange below.
  function strip(X, names, n) {
    const canvas = make("canvas", { width: X.columns, height: X.rows, role: "img",
      "aria-label": `What leaves the box: ${X.rows} rows of ${X.columns} numbers` });
    const image = new ImageData(X.columns, X.rows);
    X.data.forEach((value, k) => image.data.set([...(value > 0 ? [47, 143, 206] : [213, 94, 0]),
      255 * Math.min(1, Math.abs(value) / 3)], 4 * k)); // legible in both themes
    canvas.getContext("2d").putImageData(image, 0, 0);
    const mark = make("i"), labels = make("div", {}, ...names.map((name) => make("span", {}, name)));
    mark.style.top = `${(100 * n) / X.rows}%`;
    mark.style.height = `${100 / X.rows}%`;
    const first = Array.from(X.data.subarray(n * X.columns, n * X.columns + 4), (x) => number(x));
    return make("figure", {}, make("div", { class: "live-strip" }, labels,
      make("div", {}, canvas, mark)), make("figcaption", {},
      `What leaves the box, ${X.columns} numbers a row; ${names[n]}: ${first.join(", ")}, …`));
  }

  // One head's attention for one query: scores, mask, softmax, and the mean of the values.
  function attention(name, n) {
    const { shown, config } = Live, { h, d_k, d_v } = config, look = shown.looks[name];
    head = Math.min(head, h - 1);
    const masked = name.startsWith("decoder"), written = ["<s>", ...shown.target.slice(0, -1)];
    const keys = masked ? written : shown.source;
    const query = name.startsWith("encoder") ? shown.source[n] : written[n];
    const scores = look.scores[head][n], weights = look.weights[head][n];
    const divided = !at("no-scale").checked, root = Math.sqrt(d_k);
    const rows = keys.map((key, j) => {
      const seen = j < scores.length, bar = make("span", { class: "live-bar" });
      bar.style.width = `${seen ? 100 * weights[j] : 0}%`;
      return make("tr", {}, make("th", { scope: "row" }, key),
        make("td", {}, seen ? number(divided ? scores[j] * root : scores[j], 1) : "–"),
        make("td", {}, seen ? number(scores[j]) : "−∞"),
        make("td", {}, seen ? percent(weights[j]) : "0"), make("td", {}, bar),
        make("td", {}, seen ? vector(look.values, j, head * d_v, d_v) : ""));
    });
    const sum = make("tr", {}, make("th", { scope: "row", colspan: 5 },
      "the sum of the values, each times its share"),
    make("td", {}, vector(look.joined, n, head * d_v, d_v)));
    const heads = Array.from({ length: h }, (_, k) => make("button", { type: "button",
      "aria-pressed": String(k === head), onclick: () => { head = k; open(); } }, `head ${k + 1}`));
    const titles = ["key", "q · k", divided ? "÷ √d_k" : "not divided", "softmax", "", "value"];
    return [make("p", { role: "group", "aria-label": "Heads" }, ...heads),
      make("div", { class: "wide", tabindex: 0, role: "region", "aria-label": "One query’s attention" },
        make("table", { class: "inside" }, make("caption", {}, `The query is ${query}.`
          + (masked ? " What is written later is masked: −∞." : "")),
        make("thead", {}, make("tr", {}, ...titles.map((title) => (title
          ? make("th", { scope: "col" }, title) : make("td"))))), make("tbody", {}, ...rows, sum)))];
  }

  function vector({ columns, data }, n, start, length) {
    const from = n * columns + start;
    const canvas = strip({ rows: 1, columns: length, data: data.subarray(from, from + length) },
      [""], 0).querySelector("canvas");
    canvas.setAttribute("aria-label", `${length} numbers`);
    return canvas;
  }

  // -- Play: up the encoder, then up the decoder for the word in view ---------------------

  function play() {
    if (playing) return stop();
    at("play").textContent = "Stop";
    if (spot === way.length - 1) go(0);
    playing = setInterval(() => (spot < way.length - 1 ? go(spot + 1) : stop()), PAUSE);
    return undefined;
  }

  function stop() {
    clearInterval(playing);
    playing = null;
    at("play").textContent = "Play";
  }

  // The next of a box's layers after the one in view, or its first.
  function next(box) {
    const after = way.findIndex((each, i) => i > spot && each[0] === box);
    return after < 0 ? way.findIndex((each) => each[0] === box) : after;
  }

  Live.views.push(draw);
  Live.follow.push(() => { if (way.length) open(); });
  at("way").addEventListener("input", () => { stop(); go(Number(at("way").value)); });
  at("play").addEventListener("click", play);
  at("box-off").addEventListener("change", (event) =>
    Live.turnOff(silenced(here()), event.target.checked));
  at("figure").addEventListener("click", ({ target }) => {
    const box = target.closest("[data-box]")?.dataset.box;
    if (box) { stop(); go(next(box)); }
  });
})();
