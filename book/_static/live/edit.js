/* The page "Live": the reader edits the Transformer's JavaScript, or puts a model of their
   own in the page. Last of its scripts, it sets the page going. */
"use strict";

(() => {
  const { at } = Live;
  const WAIT = 20000; // milliseconds for a sentence; a loop without end is stopped
  let original = "";

  // -- Edit -----------------------------------------------------------------------------

  // One function of transformer.js with the lines of text above it, as it stands there.
  function source(name) {
    const lines = original.split("\n");
    let from = lines.findIndex((line) => line.startsWith(`  function ${name}(`)), to = from;
    while (lines[from - 1].startsWith("  //")) from -= 1;
    while (lines[to] !== "  }") to += 1;
    return lines.slice(from, to + 1).join("\n");
  }

  const chosen = () => at("part").value;
  const plain = (text) => text.replace(/^ {2}/gm, "");

  async function choose() {
    await Live.scripts();
    original = String(makeTransformer);
    at("code").value = plain(source(chosen()));
    at("edit-panel").hidden = false;
  }

  // Code that came with a link or a saved run is shown, and waits.
  Live.offer = async (part, code) => {
    if (![...at("part").options].some(({ value }) => value === part)) return;
    Live.offered = { part, code };
    at("part").value = part;
    await choose();
    at("code").value = code;
    at("code-status").textContent = "This code came along, and hasn't run: read it, then press Run.";
  };

  async function runCode() {
    at("code-status").textContent = "Running …";
    const part = chosen(), text = at("code").value;
    const code = original.replace(source(part), () => text);
    let made, timer;
    try {
      await Live.open();
      made = await Live.withModel(Live.files(), code);
      timer = setTimeout(made.stop, WAIT, "it takes too long, and was stopped");
      await made.ask("translate", { text: at("source").value }); // before it counts
      use({ ...made, part, code: text });
      at("code-status").textContent = "Running your code: see “With your changes”.";
    } catch (error) {
      if (made) made.stop();
      at("code-status").textContent = `Your code doesn't run: ${error.message}.`;
    } finally {
      clearTimeout(timer);
    }
  }

  // The worker with the reader's code, or none; the one before it ends.
  function use(made) {
    if (Live.edited) Live.edited.stop("other code runs now");
    Live.edited = made;
    Live.offered = null;
    return Live.run();
  }

  function reset() {
    at("code").value = plain(source(chosen()));
    at("code-status").textContent = "The book's code again.";
    use(null);
  }

  // -- A model of the reader's own --------------------------------------------------------

  const NEEDED = ["model.safetensors", "config.json", "text.json", "tokenizer.json"];
  const SECOND = "target_tokenizer.json"; // of a model that has one

  async function own({ target }) {
    const files = Object.fromEntries(Array.from(target.files, (file) => [file.name, file]));
    if (target.files.length === 1 && !NEEDED.includes(target.files[0].name))
      return Live.openRun(target.files[0]);
    try {
      const missing = NEEDED.filter((name) => !files[name]);
      if (missing.length) throw new Error(`choose ${missing.join(" and ")} as well`);
      const json = async (name) => JSON.parse(await files[name].text());
      const [config, text, tokenizer] = await Promise.all(NEEDED.slice(1).map(json));
      savedRun.checkConfig(config);
      if (!config.shared_vocab) throw new Error("it has two vocabularies, this page takes one");
      if (config.positions !== "sinusoidal")
        throw new Error(`its positions are ${config.positions}, this page has the paper's`);
      if (text.moses) throw new Error("its text is cut by Moses' rules, which this page lacks");
      if (!text.joint && !files[SECOND]) throw new Error(`choose ${SECOND} as well`);
      const target = text.joint ? tokenizer : await json(SECOND);
      const found = { weights: files[NEEDED[0]],
        folder: { config, text, tokenizer, target } };
      Live.use(found, await Live.withModel(found));
      document.querySelector("#live-answers strong").textContent = `In ${text.tgt_lang}`;
      for (const place of ["output", "changed-output", "own"]) at(place).lang = text.tgt_lang;
      at("own-model").textContent = `Your model: ${text.src_lang} to ${text.tgt_lang}, `
        + `${config.N} layers, d_model ${config.d_model}. It never leaves this device.`;
      at("source").labels[0].textContent = `A sentence for your model (${text.src_lang})`;
      at("code-status").textContent = "";
      use(null);
    } catch (error) {
      at("own-model").textContent = `That's no model for this page: ${error.message}.`;
    }
    return undefined;
  }

  at("part").addEventListener("change", choose);
  at("edit").addEventListener("click", choose);
  at("code-run").addEventListener("click", runCode);
  at("code-reset").addEventListener("click", reset);
  at("files").addEventListener("change", own);

  Live.begin(savedRun.unpacked(Live.first));
})();
