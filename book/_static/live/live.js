/* The page "Live": what a reader changes, and what is sent to a friend. The form is in
   translate.js, the Transformer in transformer.js; figure.js, panels.js and edit.js show
   what it does. They share `Live.shown`, the run in view, and `Live.views`, what draws it. */
"use strict";

(() => {
  const { at, run, translate } = Live;
  const off = new Set();
  let seed = 1;

  Live.number = (x, digits = 2) => x.toFixed(digits).replace("-", "−");
  Live.heads = (kind, layer) =>
    Array.from({ length: Live.config.h }, (_, head) => `${kind}.${layer}.${head}`);
  Live.layers = (side) =>
    (side === "encoder" ? Live.config.N : Live.config.decoder_N ?? Live.config.N);
  Live.off = off;

  // -- Translating with parts turned off ------------------------------------------------

  const checked = (id) => at(id).checked;
  const switches = () => ({ positions: !checked("no-positions"), scale: !checked("no-scale"),
    residual: !checked("no-residual"), source: !checked("no-source"), off });
  const options = () => ({ size: Number(at("beam-size").value),
    alpha: Number(at("alpha").value) });
  const isChanged = () => Live.edited || off.size
    || at("switches").querySelector(":checked")
    || at("alpha").value !== "0.6" || at("beam-size").value !== "4";
  Live.switches = switches;

  // After the trained model's translation: the changed model's, and a look inside it.
  Live.after = async ({ worker, turn, text, found }) => {
    let best = found;
    const changed = Live.edited || worker;
    setConfig(worker.config);
    at("changed").hidden = !isChanged();
    if (isChanged()) {
      ["changed-output", "changed-source", "effect"].forEach((id) => {
        at(id).textContent = "";
      });
      best = await translate(turn, "changed-output", changed, { text, options: options(),
        switches: switches(), seed: checked("shuffled") ? seed : 0 });
      if (!best) return false;
      at("effect").textContent = await effect(changed, found, best);
      at("changed-source").textContent = checked("shuffled") ? `The model reads: ${best.read}` : "";
    }
    await show(best, changed);
    if (Live.shown !== best) return false;
    history.replaceState(null, "", link());
    value();
    return true;
  };

  // Most single heads leave the words as they are; the numbers move with each of them.
  async function effect(changed, { answer, logProbability }, { ids }) {
    const now = await changed.ask("score", { ids, answer, switches: switches() });
    return `The first translation's log-probability was ${Live.number(logProbability)}, and is `
      + `${Live.number(now)} with your changes.`;
  }

  async function show(best, worker) {
    Live.shown = best;
    Live.worker = worker;
    document.querySelectorAll(".live-panel").forEach((panel) => { panel.hidden = false; });
    document.querySelectorAll(".live-wait").forEach((line) => { line.hidden = true; });
    for (const draw of Live.views) { // one at a time, so that the page can answer between
      draw(best);
      await new Promise((resolve) => setTimeout(resolve));
      if (Live.shown !== best) return;
    }
    showOff();
    at("share").hidden = false;
    at("copied").textContent = "";
  }

  // No panel shows another sentence than the one that was asked for.
  Live.clear = () => {
    document.querySelectorAll(".live-panel").forEach((panel) => { panel.hidden = true; });
    document.querySelectorAll(".live-wait").forEach((line) => { line.hidden = false; });
    at("share").hidden = true;
  };

  function setConfig(config) {
    const other = Live.config && ["N", "decoder_N", "h"].some((it) => Live.config[it] !== config[it]);
    Live.config = config;
    if (!other) return;
    at("attention").chosen = undefined; // another model's heads
    [...off].filter((part) => !has(part)).forEach((part) => off.delete(part));
  }

  // What each head is worth here: by how much the log-probability falls without it.
  async function value() {
    const { shown, worker } = Live;
    const { ids, answer } = shown;
    if (!shown.worth) at("worth").textContent = "Working out what each head is worth …";
    shown.worth ||= await (worker || await Live.open()).ask("worth",
      { ids, answer, switches: switches() }).catch(() => null); // its code was taken back
    if (Live.shown !== shown) return;
    at("worth").textContent = "";
    if (shown.worth) at("attention").value(shown.worth);
  }

  // The head in view, and all heads of its layer.
  const one = () => [at("attention").chosen];
  const layer = () => Live.heads(...one()[0].split(".", 2));

  function showOff() {
    at("head-off").checked = one().every((id) => off.has(id));
    at("layer-off").checked = layer().every((id) => off.has(id));
  }

  // -- One word and one step drive every panel -------------------------------------------

  Live.place = { source: 0, step: 0 };
  Live.point = (place) => {
    const { source, step } = { ...Live.place, ...place }, { shown } = Live;
    Live.place.source = Math.min(source, shown.source.length - 1);
    Live.place.step = Math.min(step, shown.target.length - 1);
    document.querySelectorAll("[data-place]").forEach((node) => {
      const [side, n] = node.dataset.place.split(" ");
      node.classList.toggle("here", Live.place[side] === Number(n));
    });
    Live.follow.forEach((each) => each(Live.place));
  };

  // -- A link to this sentence and these changes ----------------------------------------

  const BOXES = ["no-positions", "shuffled", "no-scale", "no-residual", "no-source"];
  const RANGES = { beam: "beam-size", alpha: "alpha" };
  const PART = /^((encoder|decoder|cross)\.\d\.\d+|(encoder|decoder)\.(positions|\d\.[a-z]\w*))$/;
  const HEAD = /^\w+\.\d\.\d+$/;

  // Whether the model in view has such a part.
  function has(part) {
    const [side, layer, head] = part.split(".");
    return PART.test(part) && !(Number(layer) >= Live.layers(side))
      && !(Number(head) >= Live.config.h);
  }

  // What is changed, as an address has it: off=no-scale,cross.2.0&beam=4&alpha=0.6
  function settings() {
    const state = new URLSearchParams(), parts = [...BOXES.filter(checked), ...off];
    if (parts.length) state.set("off", parts.join(","));
    if (checked("shuffled")) state.set("seed", seed);
    for (const [key, id] of Object.entries(RANGES))
      if (at(id).value !== at(id).defaultValue) state.set(key, at(id).value);
    const { part, code } = Live.edited || Live.offered || {};
    if (code) [["part", part], ["code", code]].forEach((pair) => state.set(...pair));
    return state;
  }

  function link() {
    const state = new URLSearchParams([["s", at("source").value], ...settings()]);
    return `${location.href.split("#")[0]}#${state}`;
  }

  // A browser keeps a range within its bounds, the text is shown as text alone, and code
  // waits until the reader runs it.
  function settle(state) {
    const parts = (state.get("off") || "").split(",");
    BOXES.forEach((id) => { at(id).checked = parts.includes(id); });
    off.clear();
    parts.filter(has).forEach((part) => off.add(part));
    const head = parts.find((part) => HEAD.test(part) && has(part));
    if (head) at("attention").chosen = head; // in view
    seed = Number(/^\d{1,9}$/.exec(state.get("seed")) || 1) || 1;
    for (const [key, id] of Object.entries(RANGES))
      at(id).value = state.get(key) || at(id).defaultValue;
    name();
    Live.offered = null;
    if (state.get("code")) Live.offer(state.get("part"), state.get("code"));
  }

  function follow() {
    const state = new URLSearchParams(location.hash.slice(1));
    if (!state.get("s")) return false;
    at("source").value = state.get("s");
    settle(state);
    run();
    return true;
  }

  // The changes in words.
  const changes = () => [
    ...BOXES.filter(checked).map((id) => at(id).labels[0].textContent.trim()),
    ...(off.size ? [`off: ${[...off].join(", ")}`] : []),
    `beam ${at("beam-size").value}`, `α ${at("alpha").value}`,
    ...(Live.edited ? [`edited: ${Live.edited.part}`] : [])].join("; ");

  async function copy() {
    try {
      await navigator.clipboard.writeText(link());
      at("copied").textContent = "Copied.";
    } catch { // no clipboard without https
      at("copied").textContent = "It stands in the address bar: copy it from there.";
    }
  }

  // A picture of the translation, with what each head sees of the words, to save.
  async function picture() {
    await Live.done();
    const canvas = document.createElement("canvas"), context = canvas.getContext("2d");
    Object.assign(canvas, { width: 1200, height: 630 });
    context.fillStyle = "#ffffff";
    context.fillRect(0, 0, 1200, 630);
    const write = (text, y, size, colour = "#111111") => {
      context.font = `${size}px Text, sans-serif`;
      context.fillStyle = colour;
      context.fillText(text, 50, y, 1100);
    };
    write(at("source").value, 90, 40);
    write(at("output").textContent, 160, 40, "#0b5394");
    if (!at("changed").hidden) {
      write(`With changes: ${at("changed-output").textContent}`, 215, 32, "#a04000");
      write(changes(), 250, 22, "#555555");
    }
    const small = at("attention").pictures(), { h } = Live.config, kinds = ["encoder", "decoder", "cross"];
    const side = Math.min(250 / Math.max(...kinds.map(Live.layers)), 370 / h);
    context.imageSmoothingEnabled = false;
    kinds.forEach((kind, block) => small.splice(0, h * Live.layers(kind)).forEach((each, n) => {
      const [x, y] = [50 + block * 380 + (n % h) * side, 280 + Math.floor(n / h) * side];
      context.strokeRect(x, y, side - 6, side - 6);
      context.drawImage(each, x, y, side - 6, side - 6);
    }));
    write("Every head of a Transformer: encoder, decoder, cross. The Annotated Transformer",
      575, 26, "#555555");
    write(document.querySelector("link[rel=canonical]").href, 608, 20, "#555555");
    const saved = Object.assign(document.createElement("a"), { download: "transformer.png",
      href: canvas.toDataURL() });
    saved.click();
  }

  // -- A run as a file --------------------------------------------------------------------

  // The trained model's translation stands beside the changed model's, with the changes.
  const here = () => ({ text: at("source").value, config: Live.config,
    settings: String(settings()),
    ...(at("changed").hidden ? {} : { trained: at("output").textContent,
      effect: at("effect").textContent, shuffled: at("changed-source").textContent }),
    ...Live.shown });

  async function showRun(run) {
    setConfig(run.config);
    at("source").value = run.text || at("source").value;
    at("answers").hidden = false;
    settle(new URLSearchParams(run.settings));
    const isPlain = run.trained === undefined;
    at("changed").hidden = isPlain;
    at("output").textContent = isPlain ? run.output : run.trained;
    at("changed-output").textContent = run.output;
    at("effect").textContent = run.effect || "";
    at("changed-source").textContent = run.shuffled || "";
    Live.mark("output", {});
    Live.mark(isPlain ? "output" : "changed-output", Array.isArray(run.missing) ? run : {});
    await show(run, null);
    value();
  }

  async function saveRun() {
    await Live.done();
    await value(); // may not have been worked out yet
    const file = new Blob([savedRun.packed(here())], { type: "application/json" });
    const saved = Object.assign(document.createElement("a"), { download: "transformer-run.json",
      href: URL.createObjectURL(file) });
    saved.click();
    setTimeout(() => URL.revokeObjectURL(saved.href), 1000);
  }

  Live.openRun = async (file) => {
    const say = (text) => { at("own-model").textContent = text; };
    const before = here();
    try {
      const run = savedRun.unpacked(JSON.parse(await file.text()));
      savedRun.checkRun(run);
      await showRun(run);
      say("The saved run is shown above. What you change or type is translated by the model "
        + "in this page.");
    } catch (error) {
      say(`That's no saved run: ${error.message}.`);
      if (before.output) await showRun(before);
    }
  };

  // -- Stories in three steps -----------------------------------------------------------

  const NOT = "I don't know where she lives.", TICKET = "Where can I buy a ticket?";
  const DOG = "I have never seen such a large dog.";
  // What is off, the line that tells it, and whether to draw again or which text to read.
  const STORIES = {
    order: [["shuffled", "The words are shuffled. With its positions the model reads another "
      + "sentence."], ["no-positions shuffled", "Now without positions: a sentence is a bag "
      + "of words."], ["no-positions shuffled", "Shuffled once more, and the translation "
      + "stays what it is: nothing else told the model about order.", { again: true }]],
    not: [["encoder.0.0", "One head of the encoder's first layer is off, and the “not” "
      + "stays. So it does without any other single head.", { text: NOT }],
      ["encoder.0.0 encoder.0.1 encoder.0.2 encoder.0.3", "All four are off, and the "
      + "translation says the opposite, fluently.", { text: NOT }],
      ["encoder.1.0 encoder.1.1 encoder.1.2 encoder.1.3", "Those of the second layer "
      + "instead: the “not” is back.", { text: NOT }]],
    blind: [["cross.2", "The decoder's last layer doesn't see the source; the two below it "
      + "still do."], ["cross.1 cross.2", "Nor does the second: what the first one found "
      + "has to carry the whole sentence."], ["no-source", "No layer sees it. The decoder "
      + "is a language model now, and says the same whatever you type."]],
    size: [["encoder.0.after_attention", "One residual connection is cut: the first "
      + "sub-layer overwrites the embeddings."], ["no-residual", "All of them are cut: each "
      + "sub-layer keeps nothing of what the one before it found."], ["no-scale", "With them "
      + "again, but scores √d_k times as large: each head looks at nearly one word only."]],
    search: [["beam.1", "A beam of one: the most probable word at each step.",
      { text: TICKET }], ["beam.8", "A beam of eight also follows beginnings that look "
      + "worse, and here one of them wins.", { text: TICKET }], ["beam.8 alpha.3", "A large "
      + "α rewards length, whether or not there is more to say.", { text: DOG }]],
  };
  let story = null, chapter = 0;

  function tell(which) {
    chapter = which === story ? (chapter + 1) % 3 : 0;
    story = which;
    const [on, line, { again, text } = {}] = STORIES[which][chapter], words = on.split(" ");
    reset();
    if (text) at("source").value = text;
    BOXES.forEach((id) => { at(id).checked = words.includes(id); });
    words.filter((word) => word.startsWith("encoder")).forEach((part) => off.add(part));
    words.filter((word) => word.startsWith("cross")).forEach((word) =>
      Live.heads(...word.split(".")).forEach((head) => off.add(head)));
    for (const [key, id] of Object.entries(RANGES))
      at(id).value = words.find((word) => word.startsWith(key))?.split(".")[1]
        || at(id).defaultValue;
    seed = again ? seed + 1 : seed;
    changed();
    at("story").textContent = `${chapter + 1} of 3. ${line}`;
    mark();
  }

  // Which story is told, beside its button.
  function mark() {
    document.querySelectorAll("[data-story]").forEach((button) => {
      const told = button.dataset.story === story;
      button.querySelector("small").textContent = told ? `${chapter + 1} of 3` : "";
    });
  }

  function reset() {
    off.clear();
    BOXES.forEach((id) => { at(id).checked = false; });
    for (const id of Object.values(RANGES)) at(id).value = at(id).defaultValue;
  }

  // The sliders say where they stand.
  function name() {
    at("story").textContent = "";
    at("alpha-value").textContent = Number(at("alpha").value).toFixed(1);
    at("beam-value").textContent = at("beam-size").value;
    at("again").disabled = !checked("shuffled");
  }

  function changed() {
    name();
    run();
  }

  Live.turnOff = (ids, isOff) => {
    ids.forEach((id) => (isOff ? off.add(id) : off.delete(id)));
    run();
  };

  // -- Listening, and the run that is in the page ----------------------------------------

  Live.begin = async (first) => {
    document.querySelectorAll("[data-story]").forEach((button) =>
      button.addEventListener("click", () => tell(button.dataset.story)));
    const on = (id, event, act) => at(id).addEventListener(event, act);
    on("switches", "change", changed);
    on("trained", "click", () => { story = null; mark(); reset(); changed(); });
    on("again", "click", () => { seed += 1; run(); });
    on("attention", "choose", showOff);
    on("head-off", "change", (event) => Live.turnOff(one(), event.target.checked));
    on("layer-off", "change", (event) => Live.turnOff(layer(), event.target.checked));
    on("copy", "click", copy);
    on("save", "click", picture);
    on("save-run", "click", saveRun);
    addEventListener("hashchange", follow);
    Live.config = first.config;
    if (follow() || at("form").dataset.asked) return;
    await showRun(first);
  };
  Live.views = [];
  Live.follow = [];
})();
