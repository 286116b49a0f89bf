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
    return { ...value, data: Float32Array.from(whole, (each) => each * value.scale) };
  }

  return { packed: (run) => JSON.stringify(run, shortened), unpacked };
})();

if (typeof module !== "undefined") module.exports = { savedRun };
