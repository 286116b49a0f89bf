/* The page "Live": what a reader touches and sees besides the translation. The form is in
   translate.js, the Transformer in transformer.js, and the picture of attention in the
   package's attention.js. */
"use strict";

(() => {
  const { at, run, search } = Live;
  const { make, percent } = customElements.get("attention-view");
  const off = new Set();
  let model = null, shown = null, seed = 1;

  const number = (x, digits = 2) => x.toFixed(digits).replace("-", "−");
  const name = (id) => {
    const { bos_id, eos_id } = model.config;
    return { [bos_id]: "<s>", [eos_id]: "</s>" }[id] || model.tokenizer.names[id];
  };

  // -- Translating with parts turned off ------------------------------------------------

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

  // After the trained model's translation: the changed model's, and a look inside it.
  Live.after = async (found) => {
    let { ids, source, best } = found;
    ({ model } = found);
    at("changed").hidden = !isChanged();
    if (isChanged()) {
      if (checked("shuffled")) ids = Transformer.shuffle(ids, seed);
      source = Transformer.encode(model, ids, switches());
      best = await search(found.turn, "changed-output", source, options(), switches());
      if (!best) return false;
      at("effect").textContent = effect(found, source);
      at("changed-source").textContent = checked("shuffled")
        ? `The model reads: ${model.tokenizer.decode(ids)}` : "";
    }
    const answer = [...best.tokens, ...(best.finished ? [model.config.eos_id] : [])];
    shown = { ids, source, best, answer,
      forced: Transformer.force(model, source, answer, switches()) };
    draw();
    showOff();
    at("share").hidden = false;
    at("copied").textContent = "";
    history.replaceState(null, "", link());
    return true;
  };

  // Most single heads leave the words as they are; the numbers move with each of them.
  function effect({ source, best }, changedSource) {
    const words = [...best.tokens, ...(best.finished ? [model.config.eos_id] : [])];
    const logProbability = (from, without) => Transformer.force(model, from, words, without)
      .reduce((sum, step) => sum + step.logProbability, 0);
    const before = logProbability(source, {}), now = logProbability(changedSource, switches());
    return `The first translation's log-probability was ${number(before)}, and is `
      + `${number(now)} with your changes.`;
  }

  function draw() {
    document.querySelectorAll(".live-panel").forEach((panel) => { panel.hidden = false; });
    document.querySelectorAll(".live-wait").forEach((line) => { line.hidden = true; });
    for (const part of [drawTokens, drawVectors, drawAttention, drawSteps, drawTree]) part();
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
    X.data.forEach((value, k) => {
      context.globalAlpha = Math.min(1, Math.abs(value) / 3);
      context.fillStyle = value > 0 ? "#2f8fce" : "#d55e00"; // legible in both themes
      context.fillRect(k % X.columns, Math.floor(k / X.columns), 1, 1);
    });
    return make("div", { class: "live-strip" }, canvas, make("i", { hidden: true }));
  }

  // -- Attention ------------------------------------------------------------------------

  function drawAttention() {
    const { ids, source, answer, forced } = shown;
    const read = [model.config.bos_id, ...answer.slice(0, -1)];
    // Every head's rows, one for each step; a step gives no weight to what comes later.
    const rows = (kind, keys) => model.decoder.layers.map((_, layer) =>
      Array.from({ length: model.config.h }, (_, head) => forced.map((step) =>
        keys.map((_, j) => step[kind][layer][head][j] || 0))));
    at("attention").show([
      { name: "encoder", queries: ids.map(name), keys: ids.map(name), weights: source.weights },
      { name: "decoder", queries: answer.map(name), keys: read.map(name),
        weights: rows("decoder", read) },
      { name: "cross", queries: answer.map(name), keys: ids.map(name),
        weights: rows("cross", ids) },
    ], switches().heads);
  }

  // The head in view, and all heads of its layer.
  const one = () => [at("attention").chosen];
  const layer = () => heads(...one()[0].split(".", 2));

  function showOff() {
    at("head-off").checked = one().every((id) => off.has(id));
    at("layer-off").checked = layer().every((id) => off.has(id));
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

  // -- A link to this sentence and these changes ----------------------------------------

  const BOXES = ["no-positions", "shuffled", "no-scale", "no-residual", "no-source"];
  const RANGES = { beam: "beam-size", alpha: "alpha" };

  // The page's address with #s=SENTENCE&off=no-scale,cross.2.0&beam=4&alpha=0.6
  function link() {
    const state = new URLSearchParams({ s: at("source").value });
    const parts = [...BOXES.filter(checked), ...off];
    if (parts.length) state.set("off", parts.join(","));
    if (checked("shuffled")) state.set("seed", seed);
    for (const [key, id] of Object.entries(RANGES))
      if (at(id).value !== at(id).defaultValue) state.set(key, at(id).value);
    return `${location.href.split("#")[0]}#${state}`;
  }

  // A browser keeps a range within its bounds, and the text is shown as text alone.
  function follow() {
    const state = new URLSearchParams(location.hash.slice(1));
    if (!state.get("s")) return;
    const parts = (state.get("off") || "").split(",");
    at("source").value = state.get("s").slice(0, at("source").maxLength);
    BOXES.forEach((id) => { at(id).checked = parts.includes(id); });
    off.clear();
    parts.filter((part) => /^(encoder|decoder|cross)(\.\d){2}$/.test(part))
      .forEach((part) => off.add(part));
    seed = Number.parseInt(state.get("seed"), 10) || 1;
    for (const [key, id] of Object.entries(RANGES))
      at(id).value = state.get(key) || at(id).defaultValue;
    changed();
  }

  async function copy() {
    try {
      await navigator.clipboard.writeText(link());
      at("copied").textContent = "Copied.";
    } catch { // no clipboard without https
      at("copied").textContent = "It stands in the address bar: copy it from there.";
    }
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

  document.querySelectorAll("[data-preset]").forEach((button) =>
    button.addEventListener("click", () => preset(button.dataset.preset)));
  const on = (id, event, act) => at(id).addEventListener(event, act);
  on("switches", "change", changed);
  on("again", "click", () => { seed += 1; run(); });
  on("attention", "choose", showOff);
  on("head-off", "change", (event) => turnOff(one(), event.target.checked));
  on("layer-off", "change", (event) => turnOff(layer(), event.target.checked));
  on("step", "input", showStep);
  on("copy", "click", copy);
  addEventListener("hashchange", follow);
  on("own-form", "submit", (event) => { event.preventDefault(); drawOwn(); });
  follow();
})();
