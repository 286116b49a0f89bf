/* The page "Live": a run as a file, with all that the page shows of it, to save and to open
   without its model. The run that is in the page from the start is such a file. */
"use strict";

var savedRun = (() => {
  // A matrix becomes whole numbers of one byte and a scale, other numbers get four digits.
  function shortened(key, value) {
    if (value && value.data instanceof Float32Array) {
      const most = value.data.reduce((a, b) => Math.max(a, Math.abs(b)), 1e-9);
      const scale = most / 127, { rows, columns } = value;
      const letters = Array.from(value.data, (x) =>
        String.fromCharCode(Math.round(x / scale) & 255));
      return { rows, columns, scale, bytes: btoa(letters.join("")) };
    }
    return typeof value === "number" ? Number(value.toPrecision(4)) : value;
  }

  function unpacked(value) {
    if (value === null || typeof value !== "object") return value;
    if (value.bytes === undefined)
      return Array.isArray(value) ? value.map(unpacked)
        : Object.fromEntries(Object.entries(value).map(([k, each]) => [k, unpacked(each)]));
    const whole = Int8Array.from(atob(value.bytes), (letter) => letter.charCodeAt(0));
    if (whole.length !== value.rows * value.columns) throw new Error("its numbers don't fit");
    return { ...value, data: Float32Array.from(whole, (each) => each * value.scale) };
  }

  // What the page draws grows with these, so that larger ones would stop it.
  const MOST = { N: 9, decoder_N: 9, h: 16, d_model: 2048, d_ff: 8192, max_length: 4096 };

  function checkConfig({ decoder_N, ...config }) {
    const sizes = { decoder_N: decoder_N ?? config.N, ...config };
    for (const [name, most] of Object.entries(MOST))
      if (!Number.isInteger(sizes[name]) || sizes[name] < 1 || sizes[name] > most)
        throw new Error(`its ${name} is ${sizes[name]}, and this page takes 1 to ${most}`);
  }

  // A tree's steps go from 0 on, each after that of its parent.
  function checkRun({ text, worth, tree, config }) {
    if (!text || !worth || !Array.isArray(tree) || !config)
      throw new Error("it isn’t a file that “Save this run” wrote");
    checkConfig(config);
    const fits = ({ step, parent }, n) => (n === 0 ? step === 0
      : Number.isInteger(parent) && parent < n && step === tree[parent]?.step + 1);
    if (!tree.every(fits)) throw new Error("its tree of steps doesn't fit together");
  }

  return { checkConfig, checkRun, packed: (run) => JSON.stringify(run, shortened), unpacked };
})();

if (typeof module !== "undefined") module.exports = { savedRun };
