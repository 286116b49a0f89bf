// <part-exchange>: one encoder layer whose parts a reader exchanges, from the paper's to
// LLaMA's. The drawing follows.
{
  const PARTS = {
    norm: ["the norm stands", "after the sum", "in the branch"],
    kind: ["norm", "LayerNorm", "RMSNorm"],
    network: ["network", "ReLU", "GELU", "SwiGLU"],
    positions: ["positions", "sines added", "rotary", "ALiBi"],
    biases: ["biases", "yes", "none"],
  };
  const LLAMA = { norm: "in the branch", kind: "RMSNorm", network: "SwiGLU", positions: "rotary", biases: "none" };
  const NAMES = Object.keys(PARTS);
  const inside = { "sines added": "", rotary: "q and k turned", ALiBi: "minus distance" };

  const told = (state) => {
    const hits = NAMES.filter((name) => state[name] === LLAMA[name]).length;
    if (hits === NAMES.length) return "All five are LLaMA’s. This is a layer of LLaMA, but for its sizes and its mask.";
    if (NAMES.every((name) => state[name] === PARTS[name][1])) return "The paper’s encoder layer of 2017. None of the five is LLaMA’s.";
    return `${hits} of the five ${hits === 1 ? "is" : "are"} LLaMA’s.`;
  };

  // From below: the stream, and two sub-layers that read it and are added to it. Each
  // gives arrows, a box, what is on the way of the second colour, and words.
  const sublayer = (y, title, note, { norm, kind }) => {
    const on = norm === "after the sum";
    const [x, top] = on ? [20, y - 160] : [180, y - 38];
    const reads = on ? `<path d="M70 ${y} H230 V${y - 44}" marker-end="url(#px)"/>` : `<path d="M70 ${y} H230 V${y - 8}" marker-end="url(#px)"/><path d="M230 ${y - 38} V${y - 44}"/>`;
    return {
      arrows: `${reads}<path d="M230 ${y - 92} V${y - 112} H87" marker-end="url(#px)"/>`,
      boxes: `<rect x="150" y="${y - 92}" width="160" height="48" rx="6"/>`,
      second: `<rect x="57" y="${y - 125}" width="26" height="26" rx="13"/><rect x="${x}" y="${top}" width="100" height="28" rx="6"/>`,
      words: `<text x="230" y="${y - (note ? 73 : 63)}">${title}</text>${note ? `<text x="230" y="${y - 54}">${note}</text>` : ""}<text x="70" y="${y - 107}">+</text><text x="${x + 50}" y="${top + 19}">${kind}</text>`,
    };
  };
  const draw = (state) => {
    const { norm, network, positions, biases } = state;
    const two = [sublayer(380, "self-attention", inside[positions], state), sublayer(208, `${network} network`, biases === "yes" ? "with biases" : "no biases", state)];
    const all = (name) => two.map((each) => each[name]).join("");
    const stream = norm === "after the sum" ? [[394, 281], [255, 248], [220, 109], [83, 76], [48, 22]] : [[394, 281], [255, 109], [83, 22]];
    const road = stream.map(([from, to], i) => `<path class="thick" d="M70 ${from} V${to}"${i === stream.length - 1 ? ' marker-end="url(#px)"' : ""}/>`).join("");
    return `<svg class="drawing" style="max-width:340px" viewBox="0 0 340 424" role="img" aria-label="One encoder layer: ${NAMES.map((name) => `${PARTS[name][0]} ${state[name]}`).join(", ")}."><defs><marker id="px" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="9" markerHeight="9" orient="auto"><path d="M0 0 L8 4 L0 8 z"/></marker></defs>`
      + `<g class="arrows">${road}${all("arrows")}</g><g class="boxes">${all("boxes")}</g><g class="boxes second">${all("second")}</g>`
      + `<g class="words">${all("words")}<text x="70" y="414">${positions === "sines added" ? "words + sines" : "words alone"}</text></g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { told, PARTS, LLAMA, still: draw };
  else customElements.define("part-exchange", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      const select = (name) => {
        const [words, ...choices] = PARTS[name];
        return `<label>${words} <select name="${name}">${choices.map((each) => `<option>${each}</option>`).join("")}</select></label>`;
      };
      part.innerHTML = `<div class="controls">${NAMES.map(select).join("")}</div><p class="told" role="status"></p><div class="picture"></div>`;
      for (const name of NAMES) this.querySelector(`[name=${name}]`).value = this.state[name];
      this.addEventListener("input", ({ target }) => {
        this.state[target.name] = target.value;
        this.follow();
      });
      this.follow();
    }

    follow() {
      this.querySelector(".picture").innerHTML = draw(this.state);
      this.querySelector(".told").textContent = told(this.state);
    }
  });
}
