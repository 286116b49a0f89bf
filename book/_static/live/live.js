/* The page "Live": what a reader types, touches and sees. The Transformer itself is in
   transformer.js beside this file. */
"use strict";

(() => {
  const HERE = document.currentScript.src.replace(/[^/]*$/, "");
  const at = (id) => document.getElementById(`live-${id}`);
  const KINDS = { encoder: "encoder", decoder: "decoder", cross: "across" };
  const chosen = { kind: "cross", layer: 0, head: 0 }, off = new Set();
  let model = null, shown = null, asked = 0, seed = 1;

  // -- Making elements ------------------------------------------------------------------

  function make(name, attributes = {}, ...inside) {
    const svg = ["svg", "g", "line", "path", "rect", "text", "title"].includes(name);
    const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name)
      : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else if (value !== false && value !== undefined)
        node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...inside);
    return node;
  }
  const percent = (p) => (p >= 0.0005 || p === 0 ? `${(100 * p).toFixed(1)} %` : "< 0.1 %");
  const number = (x, digits = 2) => x.toFixed(digits).replace("-", "−");
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);
  const name = (id) => {
    const { bos_id, eos_id } = model.config;
    return { [bos_id]: "<s>", [eos_id]: "</s>" }[id] || model.tokenizer.names[id];
  };
  const pause = () => new Promise((resolve) => setTimeout(resolve));
  const calm = matchMedia("(prefers-reduced-motion: reduce)");

  // -- Loading --------------------------------------------------------------------------

  function progress(share) {
    at("progress").hidden = share === 1;
    if (share === undefined) at("progress").removeAttribute("value");
    else at("progress").value = share;
  }

  // From a server: the file itself, as it comes in.
  async function fetched() {
    const response = await fetch(`${HERE}model.safetensors`);
    if (!response.ok) throw new Error(`the server answers ${response.status}`);
    const packed = response.headers.get("Content-Encoding");
    const total = packed ? 0 : Number(response.headers.get("Content-Length"));
    const reader = response.body.getReader(), parts = [];
    let length = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      parts.push(value);
      length += value.length;
      progress(total ? Math.min(length / total, 0.99) : undefined);
    }
    return new Blob(parts).arrayBuffer();
  }

  // From a disk, where a page may not read files: the same bytes in base64, as scripts.
  async function fromScripts() {
    const parts = [];
    let count = 1;
    window.LivePart = (index, total, text) => {
      count = total;
      parts[index] = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    };
    for (let index = 0; index < count; index++) {
      await new Promise((resolve, reject) => {
        const src = `${HERE}model-${String(index).padStart(2, "0")}.js`;
        document.head.append(make("script", { src, onload: resolve,
          onerror: () => reject(new Error(`${src} is missing`)) }));
      });
      progress((index + 0.99) / count);
    }
    return new Blob(parts).arrayBuffer();
  }

  async function load() {
    say("Loading the model …");
    progress(0);
    const bytes = await (location.protocol === "file:" ? fromScripts() : fetched());
    model = Transformer.read(bytes);
    progress(1);
  }

  const say = (text) => { at("status").textContent = text; };

  // -- Translating ----------------------------------------------------------------------

  const checked = (id) => at(id).checked;
  const switches = () => ({ positions: !checked("no-positions"), scale: !checked("no-scale"),
    residual: !checked("no-residual"), heads: new Set([...off, ...blind()]) });
  const options = () => ({ size: Number(at("beam-size").value),
    alpha: Number(at("alpha").value) });
  const heads = (kind, layer) =>
    Array.from({ length: model.config.h }, (_, head) => `${kind}.${layer}.${head}`);
  const blind = () => (checked("no-source") && model
    ? model.decoder.layers.flatMap((_, layer) => heads("cross", layer)) : []);
  const isChanged = () => off.size || at("switches").querySelector(":checked")
    || at("alpha").value !== "0.6" || at("beam-size").value !== "4";

  // One search, which lets the page breathe at each step; null once another has begun.
  async function search(source, how, without, turn, onStep) {
    const steps = [], running = Transformer.beam(model, source, how, without);
    for (;;) {
      const { done, value } = running.next();
      if (done) return { ...value, steps };
      steps.push(value);
      if (onStep && !calm.matches) onStep(value);
      await pause();
      if (turn !== asked) return null;
    }
  }

  async function run() {
    const turn = ++asked, text = at("source").value;
    if (!text.trim()) return say("Type an English sentence first.");
    if (!model) {
      try {
        await load();
      } catch (error) {
        progress(1);
        return say(`The model couldn't be loaded: ${error.message}. Try once more.`);
      }
      if (turn !== asked) return undefined;
    }
    const typed = model.tokenizer.encode(text), { max_length } = model.config;
    if (typed.length > max_length)
      return say(`That's ${typed.length} tokens, and this model reads at most ${max_length}.`);
    say("Translating …");
    at("answers").hidden = false;
    await pause();
    const grow = (place) => ({ live }) => {
      if (live[0]) at(place).textContent = `${model.tokenizer.decode(live[0].tokens)} …`;
    };
    const began = performance.now(), asTrained = Transformer.encode(model, typed);
    const plain = await search(asTrained, {}, {}, turn, grow("output"));
    if (!plain) return undefined;
    const took = performance.now() - began;
    at("output").textContent = model.tokenizer.decode(plain.tokens);
    let ids = typed, source = asTrained, best = plain;
    at("changed").hidden = !isChanged();
    if (isChanged()) {
      ids = checked("shuffled") ? Transformer.shuffle(typed, seed) : typed;
      source = Transformer.encode(model, ids, switches());
      best = await search(source, options(), switches(), turn, grow("changed-output"));
      if (!best) return undefined;
      at("changed-output").textContent = model.tokenizer.decode(best.tokens);
      at("changed-source").textContent = checked("shuffled")
        ? `The model reads: ${model.tokenizer.decode(ids)}` : "";
    }
    const unknown = model.tokenizer.names.indexOf("[unk]");
    const strange = typed.includes(unknown)
      ? " It has characters that this model never saw, which it reads as [unk]." : "";
    const per = took / (plain.tokens.length + 1);
    say(`${typed.length} tokens in, ${plain.tokens.length + 1} out, ${per.toFixed(0)} ms for `
      + `each.${strange}`);
    const answer = [...best.tokens, ...(best.finished ? [model.config.eos_id] : [])];
    shown = { ids, source, best, answer,
      forced: Transformer.force(model, source, answer, switches()) };
    draw();
    return undefined;
  }

  function draw() {
    if (!shown) return;
    document.querySelectorAll(".live-panel").forEach((panel) => { panel.hidden = false; });
    document.querySelectorAll(".live-wait").forEach((line) => { line.hidden = true; });
    for (const part of [drawTokens, drawVectors, drawHeads, drawAttention, drawSteps,
      drawTree]) part();
    if (at("own").value.trim()) drawOwn();
  }

  // -- Tokens and vectors ---------------------------------------------------------------

  function drawTokens() {
    const list = (ids) => ids.map((id) => make("li", {}, make("span", {}, name(id)),
      make("small", {}, String(id))));
    at("source-tokens").replaceChildren(...list(shown.ids));
    at("target-tokens").replaceChildren(...list(shown.answer));
  }

  function drawVectors() {
    const { tokens, places, sum } = shown.source.embedding;
    const parts = { tokens: ["token × √d_model", tokens], places: ["position", places],
      sum: ["sum, what the encoder reads", sum] };
    const first = (X, n) => Array.from(X.data.subarray(n * X.columns, n * X.columns + 4),
      (x) => number(x)).join(", ");
    at("vectors").replaceChildren(...Object.values(parts).map(([title, X]) =>
      make("figure", {}, strip(X, title), make("figcaption", {}, title))));
    const tell = (n) => () => {
      at("vector-value").textContent = `${name(shown.ids[n])} at position ${n}: `
        + `(${first(tokens, n)}, …) + (${first(places, n)}, …) = (${first(sum, n)}, …)`;
      at("vectors").querySelectorAll("i").forEach((mark) => {
        mark.style.top = `${(100 * n) / shown.ids.length}%`;
        mark.style.height = `${100 / shown.ids.length}%`;
        mark.hidden = false;
      });
    };
    at("vector-words").replaceChildren(...shown.ids.map((id, n) =>
      make("button", { type: "button", onfocus: tell(n), onmouseenter: tell(n),
        onclick: tell(n) }, name(id))));
  }

  // A matrix as a picture: a row for each token, blue above zero and orange below.
  function strip(X, title) {
    const canvas = make("canvas", { width: X.columns, height: X.rows, role: "img",
      "aria-label": `${title}: ${X.rows} rows of ${X.columns} numbers` });
    canvas.style.height = `${Math.min(14 * X.rows, 220)}px`;
    const context = canvas.getContext("2d");
    const [above, below] = [colour("--pst-color-primary"), colour("--book-departure")];
    X.data.forEach((value, k) => {
      context.globalAlpha = Math.min(1, Math.abs(value) / 3);
      context.fillStyle = value > 0 ? above : below;
      context.fillRect(k % X.columns, Math.floor(k / X.columns), 1, 1);
    });
    return make("div", { class: "live-strip" }, canvas, make("i", { hidden: true }));
  }

  // -- Attention ------------------------------------------------------------------------

  // The weights of one head: rows of queries, and the words of both sides.
  function view({ kind, layer, head }) {
    const { ids, source, answer, forced } = shown;
    if (kind === "encoder")
      return { weights: source.weights[layer][head], queries: ids.map(name),
        keys: ids.map(name) };
    const read = [model.config.bos_id, ...answer.slice(0, -1)];
    const keys = (kind === "cross" ? ids : read).map(name);
    const weights = forced.map((step) =>
      keys.map((_, j) => step[kind][layer][head][j] || 0));
    return { weights, queries: answer.map(name), keys };
  }

  function drawHeads() {
    const layers = { encoder: model.encoder.layers, decoder: model.decoder.layers,
      cross: model.decoder.layers };
    const silent = switches().heads, rows = [];
    for (const [kind, of] of Object.entries(layers)) of.forEach((_, layer) => {
      rows.push(make("div", { role: "group", class: "live-heads" },
        make("span", {}, `${KINDS[kind]} ${layer + 1}`),
        ...heads(kind, layer).map((id, head) => thumbnail({ kind, layer, head },
          silent.has(id)))));
    });
    at("heads").replaceChildren(...rows);
  }

  function thumbnail(place, silent) {
    const { weights, keys } = view(place), { kind, layer, head } = place;
    const same = Object.keys(place).every((key) => place[key] === chosen[key]);
    const canvas = make("canvas", { width: keys.length, height: weights.length });
    const context = canvas.getContext("2d");
    context.fillStyle = colour("--pst-color-primary");
    weights.forEach((of, i) => of.forEach((weight, j) => {
      context.globalAlpha = weight;
      context.fillRect(j, i, 1, 1);
    }));
    const label = `${KINDS[kind]}, layer ${layer + 1}, head ${head + 1}`;
    return make("button", { type: "button", "aria-pressed": String(same), title: label,
      "aria-label": label + (silent ? ", off" : ""), tabindex: same ? 0 : -1,
      class: silent && "off", onclick: () => choose(place), onkeydown: move }, canvas);
  }

  function choose(place) {
    Object.assign(chosen, place);
    drawHeads();
    drawAttention();
    at("heads").querySelector("[aria-pressed=true]").focus({ preventScroll: true });
  }

  // The arrow keys go from head to head.
  function move(event) {
    const buttons = [...at("heads").querySelectorAll("button")], { h } = model.config;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -h, ArrowDown: h }[event.key];
    const next = by && buttons[buttons.indexOf(event.currentTarget) + by];
    if (!next) return;
    event.preventDefault();
    next.click();
  }

  function drawAttention() {
    const { kind, layer, head } = chosen, { weights, queries, keys } = view(chosen);
    const id = `${kind}.${layer}.${head}`;
    at("head-name").textContent = `${KINDS[kind]}, layer ${layer + 1}, head ${head + 1}`;
    at("head-off").checked = off.has(id);
    at("layer-off").checked = heads(kind, layer).every((each) => off.has(each));
    const words = wordLines(weights, queries, keys), squares = grid(weights, queries, keys);
    at("lines").replaceChildren(words);
    at("matrix").replaceChildren(squares);
    at("attention-value").textContent = "";
    const point = (i) => {
      for (const svg of [words, squares]) {
        svg.classList.toggle("one", i >= 0);
        svg.querySelectorAll("[data-row]").forEach((node) =>
          node.classList.toggle("on", Number(node.dataset.row) === i));
      }
      if (i < 0) return;
      const order = Transformer.top(weights[i], 3).map((j) =>
        `${keys[j]} ${percent(weights[i][j])}`);
      at("attention-value").textContent = `${queries[i]} looks at ${order.join(", ")}`;
    };
    for (const svg of [words, squares]) svg.querySelectorAll("[data-row]").forEach((node) => {
      node.addEventListener("mouseenter", () => point(Number(node.dataset.row)));
      // Chromium would take any shape that listens for the focus for a stop of the Tab key.
      if (node.hasAttribute("tabindex"))
        node.addEventListener("focus", () => point(Number(node.dataset.row)));
      node.addEventListener("click", () => point(Number(node.dataset.row)));
    });
    for (const svg of [words, squares]) svg.addEventListener("mouseleave", () => point(-1));
  }

  const STEP = 24;

  // Both sentences from top to bottom, and a line for each weight, as thick as it is large.
  function wordLines(weights, queries, keys) {
    const height = STEP * Math.max(queries.length, keys.length) + 8, middle = STEP / 2 + 4;
    const svg = make("svg", { viewBox: `0 0 320 ${height}`, width: 320, height, role: "group",
      "aria-label": "Queries on the left, keys on the right, and lines between them" });
    weights.forEach((of, i) => of.forEach((weight, j) => {
      if (weight < 0.01) return;
      svg.append(make("line", { x1: 118, x2: 202, y1: i * STEP + middle,
        y2: j * STEP + middle, "data-row": i, "stroke-width": 0.5 + 4 * weight,
        "stroke-opacity": Math.max(0.12, weight) }));
    }));
    queries.forEach((word, i) => {
      const best = Transformer.top(weights[i], 1)[0];
      svg.append(make("g", { tabindex: 0, role: "img", "data-row": i,
        "aria-label": `${word} looks most at ${keys[best]}, ${percent(weights[i][best])}` },
      make("rect", { x: 2, y: i * STEP + 5, width: 112, height: STEP - 2, rx: 3 }),
      make("text", { x: 110, y: i * STEP + middle + 5, "text-anchor": "end" }, clip(word))));
    });
    keys.forEach((word, j) => {
      svg.append(make("text", { x: 208, y: j * STEP + middle + 5 }, clip(word)));
    });
    return svg;
  }

  const clip = (word) => (word.length > 13 ? `${word.slice(0, 12)}…` : word);

  // The same weights as a matrix: a row for each query, a column for each key.
  function grid(weights, queries, keys) {
    const left = 112, top = 96, side = 20;
    const width = left + side * keys.length + 46, height = top + side * queries.length + 4;
    const svg = make("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img",
      "aria-label": "The same weights as a matrix, a row for each query" });
    keys.forEach((word, j) => svg.append(make("text", { transform:
      `translate(${left + (j + 0.7) * side},${top - 6}) rotate(-60)` }, clip(word))));
    queries.forEach((word, i) => {
      const line = make("g", { "data-row": i }, make("text", { x: left - 6,
        y: top + (i + 0.72) * side, "text-anchor": "end" }, clip(word)));
      weights[i].forEach((weight, j) => line.append(make("rect", { x: left + j * side,
        y: top + i * side, width: side - 1, height: side - 1, "fill-opacity": weight },
      make("title", {}, `${word} → ${keys[j]}: ${percent(weight)}`))));
      svg.append(line);
    });
    return svg;
  }

  // -- Step by step ---------------------------------------------------------------------

  function drawSteps() {
    const slider = at("step");
    slider.max = shown.answer.length;
    slider.value = Math.min(slider.value, shown.answer.length);
    showStep();
  }

  function showStep() {
    const n = Number(at("step").value) - 1, { logProbs, id } = shown.forced[n];
    const before = model.tokenizer.decode(shown.answer.slice(0, n));
    at("step-name").textContent = `${n + 1} of ${shown.answer.length}`;
    at("so-far").textContent = before ? `“${before}” so far, and next:` : "To begin with:";
    at("step").setAttribute("aria-valuetext", `step ${n + 1}: ${name(id)}`);
    at("candidates").replaceChildren(...Transformer.top(logProbs, 5).map((each) =>
      bar(name(each), Math.exp(logProbs[each]), each === id)));
  }

  function bar(word, p, isTaken) {
    const length = make("span", { class: "live-bar" });
    length.style.width = `${100 * p}%`;
    return make("tr", { class: isTaken && "taken" },
      make("th", { scope: "row" }, word, isTaken ? make("small", {}, " taken") : ""),
      make("td", {}, percent(p)), make("td", { "aria-hidden": "true" }, length));
  }

  // -- The beam -------------------------------------------------------------------------

  function drawTree() {
    const { steps, node: best } = shown.best, wide = 104, high = 26, top = 26;
    const most = Math.max(...steps.map((step) => step.candidates.length));
    const width = wide * (steps.length + 1), height = top + high * most + 4;
    const winners = new Set();
    for (let node = best; node; node = node.parent) winners.add(node);
    const places = new Map(), lines = [], nodes = [];
    const root = steps[0].candidates[0].parent;
    places.set(root, [4, top + high / 2]);
    nodes.push(make("g", { class: "kept won" }, make("text", { x: 8, y: top + high / 2 + 4 },
      "<s>")));
    steps.forEach((step, column) => step.candidates.forEach((each, n) => {
      const x = wide * (column + 1) - 40, y = top + high * n + high / 2;
      places.set(each, [x, y]);
      const [px, py] = places.get(each.parent), from = px + (each.parent === root ? 26 : 84);
      const kind = each.counts ? "ended" : each.kept ? "kept" : "pruned";
      const state = `${kind}${winners.has(each) ? " won" : ""}`;
      lines.push(make("path", { class: state,
        d: `M${from} ${py} C${from + 12} ${py} ${x - 12} ${y} ${x} ${y}` }));
      const p = Math.exp(each.total - each.parent.total);
      nodes.push(make("g", { class: state },
        make("title", {}, `${model.tokenizer.decode(each.tokens)}: ${kind}, log-probability `
          + `${number(each.total)}, score ${number(each.score)}`),
        make("rect", { x, y: y - 10, width: 84, height: 20, rx: 3 }),
        make("text", { x: x + 5, y: y + 4 }, short(name(each.token))),
        make("text", { x: x + 80, y: y + 4, "text-anchor": "end", class: "share" },
          `${Math.round(100 * p)}`)));
    }));
    at("tree").replaceChildren(make("svg", { viewBox: `0 0 ${width} ${height}`, width, height,
      role: "img", "aria-label": `A tree of ${steps.length} steps; the table below says the `
        + "same in words" },
    ...steps.map((_, n) => make("text", { x: wide * (n + 1) - 36, y: 16, class: "share" },
      `step ${n + 1}`)), ...lines, ...nodes));
    const list = (found) => found.map((each) =>
      `${model.tokenizer.decode(each.tokens)} (${number(each.total)})`).join("; ") || "–";
    at("tree-table").replaceChildren(...steps.map(({ length, candidates }) => make("tr", {},
      make("th", { scope: "row" }, String(length)),
      make("td", {}, list(candidates.filter((each) => each.kept))),
      make("td", {}, list(candidates.filter((each) => each.counts))),
      make("td", {}, list(candidates.filter((each) => !each.kept && !each.counts))))));
  }

  const short = (word) => (word.length > 7 ? `${word.slice(0, 6)}…` : word);

  // -- The reader's own translation -----------------------------------------------------

  function drawOwn() {
    const ids = model.tokenizer.encode(at("own").value);
    if (!shown || ids.length < 2) return;
    if (ids.length > model.config.max_length) {
      at("own-value").textContent = `That's ${ids.length} tokens, which is too long.`;
      return;
    }
    const steps = Transformer.force(model, shown.source, ids, switches());
    const total = steps.reduce((sum, step) => sum + step.logProbability, 0);
    at("own-value").textContent = `The log-probability of yours is ${number(total, 4)}, `
      + `that of the model's own translation ${number(shown.best.logProbability, 4)}.`;
    at("own-table").replaceChildren(...steps.map(({ id, logProbability }) =>
      bar(name(id), Math.exp(logProbability), false)));
    at("own-panel").hidden = false;
  }

  // -- Listening ------------------------------------------------------------------------

  const PRESETS = {
    trained: ["", "The model as it was trained, searched with the paper's beam."],
    order: ["shuffled", "With its positions the model reads the shuffled words as another "
      + "sentence."],
    bag: ["no-positions shuffled", "Without positions a sentence is a bag of words: shuffle "
      + "it again and the translation stays what it is."],
    blind: ["no-source", "Without a view of the source the decoder is a language model: it "
      + "says the same whatever you type."],
    scale: ["no-scale", "Scores √d_k times as large make each head look at nearly one word "
      + "only."],
    alone: ["no-residual", "Without residual connections each sub-layer overwrites what the "
      + "one before it found."],
  };

  function preset(which) {
    const [on, line] = PRESETS[which];
    off.clear();
    at("switches").querySelectorAll("input[type=checkbox]").forEach((box) => {
      box.checked = on.split(" ").includes(box.id.replace("live-", ""));
    });
    at("alpha").value = 0.6;
    at("beam-size").value = 4;
    changed();
    at("story").textContent = line;
  }

  function changed() {
    at("story").textContent = "";
    at("alpha-value").textContent = Number(at("alpha").value).toFixed(1);
    at("beam-value").textContent = at("beam-size").value;
    at("again").disabled = !checked("shuffled");
    run();
  }

  function turnOff(ids, isOff) {
    ids.forEach((id) => (isOff ? off.add(id) : off.delete(id)));
    run();
  }

  function start() {
    if (!at("form")) return;
    at("form").hidden = false;
    const on = (id, event, act) => at(id).addEventListener(event, act);
    on("form", "submit", (event) => { event.preventDefault(); run(); });
    on("source", "keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      run();
    });
    document.querySelectorAll("[data-example]").forEach((button) =>
      button.addEventListener("click", () => {
        at("source").value = button.textContent;
        run();
      }));
    document.querySelectorAll("[data-preset]").forEach((button) =>
      button.addEventListener("click", () => preset(button.dataset.preset)));
    on("switches", "change", changed);
    on("again", "click", () => { seed += 1; run(); });
    on("head-off", "change", (event) => turnOff(
      [`${chosen.kind}.${chosen.layer}.${chosen.head}`], event.target.checked));
    on("layer-off", "change", (event) => turnOff(
      heads(chosen.kind, chosen.layer), event.target.checked));
    on("step", "input", showStep);
    on("own-form", "submit", (event) => { event.preventDefault(); drawOwn(); });
    new MutationObserver(draw).observe(document.documentElement,
      { attributeFilter: ["data-theme"] }); // canvases take the new theme's colours
  }

  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
