/* The page "Live": the folder of a model, chosen or dropped, and what of it the worker needs.
   An error is what doesn't fit, in the words that follow "That's no model for this page". */
"use strict";

var modelFolder = (() => {
  const WEIGHTS = "model.safetensors", RUN = /\.json$/;
  const OURS = ["text.json", "tokenizer.json"], SECOND = "target_tokenizer.json";
  const CONVERT = "from transformers import MarianMTModel as M; "
    + 'M.from_pretrained(".").save_pretrained(".")';

  // The files of a folder's own level, not of the folders in it.
  const chosen = (files) => Array.from(files).filter(({ webkitRelativePath = "" }) =>
    webkitRelativePath.split("/").length <= 2);

  // The same of what was dropped: files, or a folder.
  async function dropped(items) {
    const entries = Array.from(items, (item) =>
      item.webkitGetAsEntry()?.isDirectory ? within(item.webkitGetAsEntry()) : item.getAsFile());
    return (await Promise.all(entries)).flat().filter(Boolean);
  }

  async function within(folder) {
    const reader = folder.createReader(), found = [];
    for (;;) { // a hundred at a time
      const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      if (!some.length) break;
      found.push(...some.filter((entry) => entry.isFile));
    }
    return Promise.all(found.map((entry) => new Promise((resolve, reject) =>
      entry.file(resolve, reject))));
  }

  // One file of another name is a saved run.
  const isRun = (files) => files.length === 1 && RUN.test(files[0].name)
    && !["config.json", ...OURS, SECOND].includes(files[0].name);

  function need(files, ...names) {
    const missing = names.filter((name) => !files[name]);
    if (missing.length) throw new Error(`choose ${missing.join(" and ")} as well`);
  }

  // The tokenizer that this package writes, as transformer.js's `read` takes it.
  async function readText(files, json) {
    need(files, ...OURS);
    const [text, tokenizer] = await Promise.all(OURS.map(json));
    if (text.moses) throw new Error("its text is cut by Moses' rules, which this page lacks");
    return { text, tokenizer, target: text.joint ? tokenizer : await json(SECOND) };
  }

  // The model in some files: its weights, and what the worker's `read` takes with them.
  // `openMarian` gives what marian.js makes, for a model of that type.
  async function read(list, openMarian) {
    const files = Object.fromEntries(list.map((file) => [file.name, file]));
    const json = async (name) => {
      need(files, name);
      try {
        return JSON.parse(await files[name].text());
      } catch {
        throw new Error(`${name} is damaged`);
      }
    };
    const file = await json("config.json");
    if (!["transformer", "marian"].includes(file.model_type))
      throw new Error(`config.json: model_type is ${file.model_type}, and this page runs a `
        + "transformer of this package, or marian");
    const marian = file.model_type === "marian" && await openMarian();
    if (marian && !files[WEIGHTS] && files["pytorch_model.bin"])
      throw new Error(`its weights are in pytorch_model.bin, and this page reads ${WEIGHTS}: `
        + `convert them in its folder with python -c '${CONVERT}'`);
    need(files, WEIGHTS);
    const config = marian ? marian.readConfig(file) : file;
    savedRun.checkConfig(config);
    if (!marian && config.positions !== "sinusoidal")
      throw new Error(`its positions are ${config.positions}, this page has the paper's`);
    const text = marian && !files[OURS[0]] ? await marian.readText(files, json)
      : await readText(files, json);
    return { weights: files[WEIGHTS], marian: Boolean(marian), folder: { config, ...text } };
  }

  return { chosen, dropped, isRun, read };
})();

if (typeof module !== "undefined") module.exports = { modelFolder };
