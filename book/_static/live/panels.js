/* The page "Live": its tokens, its heads, its steps, its beam, and the reader's own German. */
"use strict";

(() => {
  const { at, number } = Live;
  const { make, percent } = customElements.get("attention-view");
  const DOUBTFUL = 0.23; // as in translation/confidence.py

  // -- Tokens ---------------------------------------------------------------------------

  // A token that other panels follow, by pointer and by keyboard.
  function token(side, name, n, small) {
    const point = () => Live.point({ [side]: n });
    return make("li", {}, make("button", { type: "button", "data-place": `${side} ${n}`,
      onclick: point, onmouseenter: point, onfocus: point }, make("span", {}, name),
    make("small", {}, small)));
  }

  function drawTokens({ source, target, ids, probabilities }) {
    at("source-tokens").replaceChildren(...source.map((name, n) =>
      token("source", name, n, String(ids[n]))));
    at("target-tokens").replaceChildren(...target.map((name, n) =>
      token("step", name, n, percent(probabilities[n]))));
    at("target-tokens").querySelectorAll("button").forEach((button, n) =>
      button.classList.toggle("doubtful", probabilities[n] < DOUBTFUL));
  }

  // -- Attention ------------------------------------------------------------------------

  function drawAttention({ source, target, looks }) {
    const read = ["<s>", ...target.slice(0, -1)];
    // A step gives no weight to what comes later.
    const rows = (kind, keys) => Array.from({ length: Live.layers(kind) }, (_, layer) =>
      looks[`${kind}.${layer}`].weights.map((head) =>
        head.map((row) => keys.map((_, j) => row[j] || 0))));
    at("attention").show([
      { name: "encoder", queries: source, keys: source, weights: rows("encoder", source) },
      { name: "decoder", queries: target, keys: read, weights: rows("decoder", read) },
      { name: "cross", queries: target, keys: source, weights: rows("cross", source) },
    ], Live.off);
  }

  // -- Step by step ---------------------------------------------------------------------

  function drawSteps({ target }) {
    at("step").max = target.length;
    Live.point({});
  }

  function showStep({ step }) {
    const { candidates, answer, target } = Live.shown;
    at("step").value = step + 1;
    at("step-name").textContent = `${step + 1} of ${target.length}`;
    at("so-far").textContent = step ? `“${target.slice(0, step).join("").replaceAll("▁", " ").trim()}” so far, and next:`
      : "To begin with:";
    at("step").setAttribute("aria-valuetext", `step ${step + 1}: ${target[step]}`);
    at("candidates").replaceChildren(...candidates[step].map(({ id, name, probability }) =>
      bar(name, probability, id === answer[step])));
  }

  function bar(word, p, isTaken) {
    const length = make("span", { class: "live-bar" });
    length.style.width = `${100 * p}%`;
    return make("tr", { class: isTaken && "taken" },
      make("th", { scope: "row" }, word, isTaken ? make("small", {}, " taken") : ""),
      make("td", {}, percent(p)), make("td", { "aria-hidden": "true" }, length));
  }

  // -- The beam: a line for each step, the best on the left -------------------------------

  const WIDE = 92, HIGH = 44, BOX = 84;

  function drawTree({ tree, target }) {
    const steps = Math.max(...tree.map((node) => node.step)), lines = [], nodes = [];
    const columns = Array.from({ length: steps + 1 }, () => 0);
    const spots = tree.map(({ step }) => [8 + WIDE * columns[step]++, 20 + HIGH * step]);
    tree.forEach(({ name, parent, state, won, probability, text, total, score }, n) => {
      const [x, y] = spots[n], kind = `${state}${won || n === 0 ? " won" : ""}`;
      if (n) {
        const [px, py] = spots[parent], from = py + 10, middle = (from + y - 10) / 2;
        lines.push(make("path", { class: kind, d: `M${px + BOX / 2} ${from} C${px + BOX / 2} `
          + `${middle} ${x + BOX / 2} ${middle} ${x + BOX / 2} ${y - 10}` }));
      }
      nodes.push(make("g", { class: kind },
        n ? make("title", {}, `${text}: ${state}, log-probability ${number(total)}, score `
          + `${number(score)}`) : "",
        make("rect", { x, y: y - 10, width: BOX, height: 20, rx: 3 }),
        make("text", { x: x + 5, y: y + 4 }, short(name)),
        n ? make("text", { x: x + BOX - 4, y: y + 4, "text-anchor": "end", class: "share" },
          `${Math.round(100 * probability)}`) : ""));
    });
    const width = 16 + WIDE * Math.max(...columns), height = 40 + HIGH * steps;
    at("tree").replaceChildren(make("svg", { viewBox: `0 0 ${width} ${height}`, width, height,
      role: "img", "aria-label": `A tree of ${steps} steps, from the top to the end of `
        + `${target.length} tokens; the table below says the same in words` }, ...lines, ...nodes));
    const list = (step, state) => tree.filter((each) => each.step === step
      && each.state === state).map(({ text, total }) => `${text} (${number(total)})`)
      .join("; ") || "–";
    at("tree-table").replaceChildren(...Array.from({ length: steps }, (_, n) => make("tr", {},
      make("th", { scope: "row" }, String(n + 1)), ...["kept", "ended", "pruned"].map((state) =>
        make("td", {}, list(n + 1, state))))));
  }

  const short = (word) => (word.length > 7 ? `${word.slice(0, 6)}…` : word);

  // -- The reader's own translation -----------------------------------------------------

  let typed = false;

  function drawOwn({ output }) {
    if (!typed) at("own").value = output;
    at("own-panel").hidden = true;
    at("own-value").textContent = "";
    if (typed && Live.worker) measure();
  }

  async function measure() {
    const { shown } = Live, text = at("own").value;
    if (!text.trim()) return;
    try {
      Live.worker ||= await Live.open();
      const found = await Live.worker.ask("given", { ids: shown.ids, text,
        switches: Live.switches() });
      if (Live.shown !== shown) return;
      at("own-value").textContent = `The log-probability of yours is `
        + `${number(found.logProbability, 4)}, that of the model's own translation `
        + `${number(shown.logProbability, 4)}.`;
      at("own-table").replaceChildren(...found.names.map((name, n) =>
        bar(name, found.probabilities[n], false)));
      at("own-panel").hidden = false;
    } catch (error) {
      at("own-value").textContent = error.message;
    }
  }

  Live.views.push(drawTokens, drawAttention, drawTree, drawOwn, drawSteps);
  Live.follow.push(showStep, ({ source, step }) => {
    at("attention").mark("encoder", source);
    ["decoder", "cross"].forEach((name) => at("attention").mark(name, step));
  });
  at("step").addEventListener("input", () => Live.point({ step: at("step").value - 1 }));
  at("attention").addEventListener("point", ({ detail: { name, row } }) =>
    Live.point(name === "encoder" ? { source: row } : { step: row }));
  at("own").addEventListener("input", () => { typed = true; });
  at("own-form").addEventListener("submit", (event) => { event.preventDefault(); measure(); });
})();
