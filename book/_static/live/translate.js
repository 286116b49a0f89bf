/* The form that translates, on the cover and on the page "Live". When a reader first asks,
   it loads the Transformer (transformer.js beside this file) and its weights, and lets a
   worker compute. */
"use strict";

var Live = (() => {
  const HERE = document.currentScript.src.replace(/[^/]*$/, "");
  const at = (id) => document.getElementById(`live-${id}`);
  const say = (text) => { at("status").textContent = text; };
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const LONGEST = 2000, MEGABYTE = 2 ** 20; // characters, bytes
  let asked = 0, running = Promise.resolve();

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

  let loaded = null;
  const scripts = () => (loaded ??= Promise.all(
    ["transformer.js", "missing.js", "worker.js"].map(script))
    .catch((error) => { loaded = null; throw error; }));

  // From a server: the file itself, as it comes in.
  async function fetched(show) {
    const response = await fetch(`${HERE}model.packed`);
    if (!response.ok) throw new Error(`the server answers ${response.status}`);
    const packed = response.headers.get("Content-Encoding");
    const total = packed ? 0 : Number(response.headers.get("Content-Length"));
    const reader = response.body.getReader(), parts = [];
    let length = 0, shown = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return parts;
      parts.push(new Blob([value])); // copied now, bit by bit
      length += value.length;
      if (length - shown < MEGABYTE / 4) continue;
      shown = length;
      show(total ? Math.min(length / total, 0.99) : undefined);
      await new Promise((resolve) => setTimeout(resolve)); // the page can answer between
    }
  }

  // From a disk, where a page may not read files: the same bytes in base64, as scripts.
  async function fromScripts(show) {
    const parts = [];
    let count = 1;
    window.LivePart = (index, total, text) => {
      count = total;
      const letters = atob(text), bytes = new Uint8Array(letters.length);
      for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
      parts[index] = new Blob([bytes]);
    };
    for (let index = 0; index < count; index++) {
      await script(`model-${String(index).padStart(2, "0")}.js`);
      show((index + 0.99) / count);
    }
    return parts;
  }

  // A worker with a Transformer of this code, and with marian.js for such a model:
  // `ask(task, given, show)` promises its answer.
  function start(code, marian) {
    const made = marian ? `(${liveMarian})((${code})())` : `(${code})()`;
    const text = `"use strict"; (${liveWorker})(self, ${made}, (${liveMissing})());`;
    const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    const worker = new Worker(url), waiting = new Map();
    let count = 0;
    const fail = (message) => {
      waiting.forEach(({ reject }) => reject(new Error(message)));
      waiting.clear();
    };
    worker.onerror = (event) => { event.preventDefault(); fail(event.message.replace(/^Uncaught /, "")); };
    worker.onmessage = ({ data: { id, shown, found, error } }) => {
      const each = waiting.get(id);
      if (!each) return;
      if (shown !== undefined) return each.show(shown);
      waiting.delete(id);
      if (error === undefined) each.resolve(found);
      else each.reject(new Error(error));
    };
    return {
      ask: (task, given = {}, show = () => {}) => new Promise((resolve, reject) => {
        const id = ++count;
        waiting.set(id, { resolve, reject, show });
        worker.postMessage({ id, task, given });
      }),
      stop(message) {
        worker.terminate();
        URL.revokeObjectURL(url);
        fail(message);
      },
    };
  }

  // A worker with a model in it, by default the book's, loaded when it is first asked for;
  // `show` is told which share has come.
  let opened = null, files = null;

  function open(show = () => {}) {
    return opened ??= (async () => {
      show(0);
      const parts = await (location.protocol === "file:" ? fromScripts(show) : fetched(show));
      files = { weights: new Blob(parts), packed: true };
      const made = await withModel(files);
      show(1);
      return made;
    })().catch((error) => {
      opened = null;
      throw new Error(`The model couldn't be loaded: ${error.message}. Try once more.`);
    });
  }

  // The same for any model's files, and for code that a reader has edited.
  async function withModel(found, code) {
    await scripts();
    const made = start(code || makeTransformer, found.marian);
    try {
      return { ...made, ...await made.ask("load", found) };
    } catch (error) {
      made.stop();
      throw error;
    }
  }

  const UNKNOWN = {
    "[unk]": " What it reads as [unk], characters that it never saw, addresses and telephone numbers, is put back.",
    "<unk>": " What it reads as <unk>, it doesn't know, and leaves out.",
    written: " [unk] stands for a character that it can't write.",
  };

  // -- Translating ----------------------------------------------------------------------

  // One translation in the page's element `place`, growing step by step, for those who
  // don't mind motion; null once the reader has asked for another.
  async function translate(turn, place, worker, given) {
    const found = await worker.ask("translate", given, (text) => {
      if (turn === asked && !calm.matches) at(place).textContent = `${text} …`;
    });
    if (!found || turn !== asked) return null;
    at(place).textContent = found.output || "(nothing)";
    mark(place, found);
    return found;
  }

  // What the translation in this place lacks of its sentence, beside it.
  function mark(place, { missing }) {
    at(place).toggleAttribute("data-lacks", Boolean(missing?.length));
    if (missing?.length) at(place).dataset.lacks = missing.join(", ");
  }

  const run = () => (running = answered());

  async function answered() {
    const turn = ++asked, text = at("source").value;
    at("answers").hidden = true;
    for (const place of ["output", "final"]) at(place).textContent = "";
    mark("output", {});
    try {
      if (!text.trim()) throw new Error("Type a sentence first.");
      if (text.length > LONGEST)
        throw new Error(`That's ${text.length} characters, and this page takes ${LONGEST}: `
          + "shorten it.");
      if (!opened) say("Loading the model …");
      const worker = await open(progress);
      if (turn !== asked) return undefined;
      say("Translating …");
      at("answers").hidden = false;
      const found = await translate(turn, "output", worker, { text });
      if (!found) return undefined;
      if (live.after && !await live.after({ worker, turn, text, found })) return undefined;
      at("final").textContent = at("output").textContent;
      document.dispatchEvent(new CustomEvent("translated", { detail: found }));
      const strange = found.output.includes("[unk]") ? UNKNOWN.written
        : found.unknown ? UNKNOWN[found.source.includes("[unk]") ? "[unk]" : "<unk>"] : "";
      const lost = found.missing.length ? ` The translation lacks ${found.missing.join(", ")}.` : "";
      return say(`${found.ids.length} tokens in, ${found.answer.length} out, `
        + `${found.milliseconds.toFixed(0)} ms for each.${strange}${lost}`);
    } catch (error) {
      if (turn !== asked) return undefined;
      progress(1);
      at("answers").hidden = true;
      live.clear?.();
      return say(error.message);
    }
  }

  function listen() {
    if (!at("form")) return;
    at("form").addEventListener("submit", (event) => { event.preventDefault(); run(); });
    at("source").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
      event.preventDefault();
      run();
    });
    at("source").addEventListener("input", () => open(progress).catch(() => {}), { once: true });
    document.querySelectorAll("[data-example]").forEach((button) =>
      button.addEventListener("click", () => {
        at("source").value = button.textContent;
        run();
      }));
    if (at("form").dataset.asked) run(); // before this script was there
  }

  // `after` is what the page does with a translation, and `clear` if there is none; `use`
  // puts another model to work; `done` waits for the last translation that was asked for.
  const live = { at, open, mark, run, script, scripts, translate, withModel,
    done: () => running,
    files: () => files,
    use(found, worker) {
      files = found;
      opened = Promise.resolve(worker);
    } };
  listen();
  return live;
})();
