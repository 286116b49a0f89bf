/* The form that translates, on the cover and on the page "Live". When a reader first asks,
   it loads the Transformer (transformer.js beside this file) and its weights. */
"use strict";

var Live = (() => {
  const HERE = document.currentScript.src.replace(/[^/]*$/, "");
  const at = (id) => document.getElementById(`live-${id}`);
  const say = (text) => { at("status").textContent = text; };
  const pause = () => new Promise((resolve) => setTimeout(resolve));
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  let model = null, asked = 0;

  // -- Loading --------------------------------------------------------------------------

  function progress(share) {
    at("progress").hidden = share === 1;
    if (share === undefined) at("progress").removeAttribute("value");
    else at("progress").value = share;
  }

  function script(name) {
    return new Promise((resolve, reject) => {
      const node = document.createElement("script");
      node.src = HERE + name;
      node.onload = resolve;
      node.onerror = () => reject(new Error(`${node.src} is missing`));
      document.head.append(node);
    });
  }

  // From a server: the file itself, as it comes in.
  async function fetched(show) {
    const response = await fetch(`${HERE}model.safetensors`);
    if (!response.ok) throw new Error(`the server answers ${response.status}`);
    const packed = response.headers.get("Content-Encoding");
    const total = packed ? 0 : Number(response.headers.get("Content-Length"));
    const reader = response.body.getReader(), parts = [];
    let length = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return parts;
      parts.push(value);
      length += value.length;
      show(total ? Math.min(length / total, 0.99) : undefined);
    }
  }

  // From a disk, where a page may not read files: the same bytes in base64, as scripts.
  async function fromScripts(show) {
    const parts = [];
    let count = 1;
    window.LivePart = (index, total, text) => {
      count = total;
      parts[index] = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    };
    for (let index = 0; index < count; index++) {
      await script(`model-${String(index).padStart(2, "0")}.js`);
      show((index + 0.99) / count);
    }
    return parts;
  }

  // The model, loaded when it is first asked for; `show` is told which share has come.
  async function open(show) {
    if (model) return model;
    show(0);
    if (!window.Transformer) await script("transformer.js");
    const parts = await (location.protocol === "file:" ? fromScripts(show) : fetched(show));
    model = Transformer.read(await new Blob(parts).arrayBuffer());
    show(1);
    return model;
  }

  // -- Translating ----------------------------------------------------------------------

  // One search, which shows its best beginning and lets the page breathe at each step;
  // null once the reader has asked for another.
  async function search(turn, place, source, options, switches) {
    const steps = [], running = Transformer.beam(model, source, options, switches);
    for (;;) {
      const { done, value } = running.next();
      if (turn !== asked) return null;
      const best = done ? value : value.live[0];
      if (done || (best && !calm.matches))
        at(place).textContent = done ? model.tokenizer.decode(best.tokens) || "(nothing)"
          : `${model.tokenizer.decode(best.tokens)} …`;
      if (done) return { ...value, steps };
      steps.push(value);
      await pause();
    }
  }

  async function run() {
    const turn = ++asked, text = at("source").value;
    if (!text.trim()) return say("Type an English sentence first.");
    try {
      if (!model) say("Loading the model …");
      await open(progress);
    } catch (error) {
      progress(1);
      return say(`The model couldn't be loaded: ${error.message}. Try once more.`);
    }
    if (turn !== asked) return undefined;
    const ids = model.tokenizer.encode(text), { max_length } = model.config;
    if (ids.length > max_length)
      return say(`That's ${ids.length} tokens, and this model reads at most ${max_length}.`);
    say("Translating …");
    at("answers").hidden = false;
    await pause();
    const began = performance.now(), source = Transformer.encode(model, ids);
    const best = await search(turn, "output", source);
    if (!best) return undefined;
    const length = best.tokens.length + 1, took = (performance.now() - began) / length;
    if (live.after && !await live.after({ model, turn, ids, source, best })) return undefined;
    const strange = ids.includes(model.tokenizer.names.indexOf("[unk]"))
      ? " It has characters that this model never saw, which it reads as [unk]." : "";
    return say(`${ids.length} tokens in, ${length} out, ${took.toFixed(0)} ms for each.`
      + strange);
  }

  function start() {
    if (!at("form")) return;
    at("form").addEventListener("submit", (event) => { event.preventDefault(); run(); });
    at("source").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      run();
    });
    document.querySelectorAll("[data-example]").forEach((button) =>
      button.addEventListener("click", () => {
        at("source").value = button.textContent;
        run();
      }));
    if (at("form").dataset.asked) run(); // before this script was there
  }

  const live = { at, open, pause, run, search }; // `after` is what the page does with a translation
  start();
  return live;
})();
