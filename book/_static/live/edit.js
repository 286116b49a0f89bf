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

  // A language by its English name, by its code where that is none, or by its part.
  function language(code, part) {
    if (code === "und") return `its ${part} language`;
    try {
      return new Intl.DisplayNames("en", { type: "language" }).of(code.replace("_", "-"));
    } catch {
      return code;
    }
  }

  async function marian() {
    if (!window.liveMarian) await Live.script("marian.js");
    return liveMarian({});
  }

  async function own(files) {
    if (modelFolder.isRun(files)) return Live.openRun(files[0]);
    try {
      const found = await modelFolder.read(files, marian), made = await Live.withModel(found);
      Live.use(found, made);
      describe(found.folder, made.codes);
      use(null);
    } catch (error) {
      at("own-model").textContent = `That's no model for this page: ${error.message}.`;
    }
    return undefined;
  }

  function describe({ config: { N, decoder_N = N, d_model }, text: { src_lang, tgt_lang } },
    codes = []) {
    const [from, to] = [language(src_lang, "source"), language(tgt_lang, "target")];
    document.querySelector("#live-answers strong").textContent = `In ${to}`;
    for (const place of ["output", "changed-output", "own"]) at(place).lang = tgt_lang;
    at("own").labels[0].textContent = `Your translation (${to})`;
    at("source").labels[0].textContent = `A sentence for your model (${from})`;
    const layers = N === decoder_N ? N : `${N} and ${decoder_N}`;
    const begin = codes.length
      ? ` Begin a sentence with the language that you want, as ${codes.slice(0, 5).join(" or ")}.` : "";
    at("own-model").textContent = `Your model: ${src_lang} to ${tgt_lang}, ${layers} layers, `
      + `d_model ${d_model}. It never leaves this device.${begin}`;
    at("code-status").textContent = "";
  }

  async function drop(event) {
    if (!event.dataTransfer.types.includes("Files")) return; // a text, for a field
    event.preventDefault();
    if (event.type !== "drop") return;
    const files = await modelFolder.dropped(event.dataTransfer.items).catch(() => null);
    if (files) own(files);
    else at("own-model").textContent = "This browser doesn't hand over a dropped folder here: choose it.";
  }

  at("part").addEventListener("change", choose);
  at("edit").addEventListener("click", choose);
  at("code-run").addEventListener("click", runCode);
  at("code-reset").addEventListener("click", reset);
  for (const field of [at("files"), at("folder")])
    field.addEventListener("change", () => own(modelFolder.chosen(field.files)));
  for (const event of ["dragover", "drop"]) document.addEventListener(event, drop);

  Live.begin(savedRun.unpacked(Live.first));
})();
