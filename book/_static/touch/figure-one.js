// <figure-one>: Figure 1 of the paper, walked through box by box with the numbers that
// benchmarks/model/figure_one.py has recorded.
{
  // Of each box: left, top, its name, what happens in it, and the chapter about it.
  const BOXES = {
    "src-embedding": [18, 440, "embedding", "Each source token picks its row of the matrix.", "embedding"],
    "src-positions": [18, 404, "+ positions", "The code of its position is added to each vector.", "position"],
    "enc-attention": [18, 356, "self-attention", "Every source token gathers from all source tokens.", "attention"],
    "enc-norm-1": [18, 324, "add & norm", "The sum of what came in and what was gathered, brought to one size.", "layers"],
    "enc-feed-forward": [18, 286, "feed-forward", "Each position by itself: wider, ReLU, and back.", "feed_forward"],
    "enc-norm-2": [18, 254, "add & norm", "Added and normalised again. After the last layer this is the memory.", "layers"],
    "tgt-embedding": [190, 440, "embedding", "Each target token written so far picks its row, of the same matrix.", "embedding"],
    "tgt-positions": [190, 404, "+ positions", "The code of its position is added.", "position"],
    "dec-attention": [190, 356, "masked attention", "Every target token gathers from itself and those before it.", "attention"],
    "dec-norm-1": [190, 324, "add & norm", "Added and normalised.", "layers"],
    "cross-attention": [190, 278, "cross-attention", "Every target token gathers from the memory: this is the line from the encoder.", "attention"],
    "dec-norm-2": [190, 246, "add & norm", "Added and normalised.", "layers"],
    "dec-feed-forward": [190, 208, "feed-forward", "Each position by itself.", "feed_forward"],
    "dec-norm-3": [190, 176, "add & norm", "Added and normalised; what leaves the last layer goes to the output.", "layers"],
    linear: [190, 122, "linear", "One score for each token of the vocabulary: the embedding’s matrix once more.", "embedding"],
    softmax: [190, 86, "softmax", "Scores become probabilities. Each position names the token after it.", "embedding"],
  };
  const WAYS = [
    ["M76 480 V464 M76 440 V430 M76 404 V382 M76 356 V350 M76 324 V312 M76 286 V280", ""],
    ["M248 480 V464 M248 440 V430 M248 404 V382 M248 356 V350 M248 324 V304 M248 278 V272 M248 246 V234 M248 208 V202 M248 176 V148 M248 122 V112 M248 86 V70", ""],
    ["M76 392 H8 V337 H18 M76 318 H8 V267 H18 M248 392 H316 V337 H306 M248 316 H316 V259 H306 M248 240 H316 V189 H306", ""],
    ["M76 254 V232 H162 V291 H190", "thick"],
  ];

  const figure = (now, off = []) => {
    const boxes = Object.entries(BOXES).map(([name, [x, y, label]]) => `<g class="joint${off.includes(name) ? " off" : ""}" data-box="${name}"${name === now ? ' aria-current="step"' : ""}><rect x="${x}" y="${y}" width="116" height="26" rx="6"/><text x="${x + 58}" y="${y + 18}">${label}</text></g>`).join("");
    const ways = WAYS.map(([d, kind]) => `<path class="${kind}" d="${d}"/>`).join("");
    return `<svg class="drawing" style="max-width:324px" viewBox="0 46 324 458" role="img" aria-label="Figure 1 of the paper. Left the encoder: embedding, positions, self-attention and feed-forward, each with add and norm. Right the decoder, with cross-attention to the encoder between the two, then linear and softmax."><g class="hidden"><rect x="2" y="244" width="148" height="146" rx="8"/><rect x="174" y="166" width="148" height="224" rx="8"/></g><g class="arrows">${ways}</g><g class="boxes words">${boxes}</g><g class="words"><text x="76" y="498">source</text><text x="248" y="498">target so far</text><text x="248" y="62">next token</text><text x="24" y="238">N ×</text><text x="196" y="160">N ×</text></g></svg>`;
  };

  const shown = (token) => token.replace("▁", "").replace("<", "&lt;");

  // Who looks where in one head: a row for each token that asks, a column for each key.
  const grid = (rows, columns, weights) => {
    const side = Math.min(34, 244 / columns.length);
    const cells = weights.map((row, i) => row.map((w, j) => `<rect x="${(104 + j * side).toFixed(1)}" y="${102 + i * 20}" width="${(side - 1).toFixed(1)}" height="19" fill-opacity="${w.toFixed(2)}"/>`).join("")).join("");
    const names = rows.map((name, i) => `<text x="4" y="${117 + i * 20}">${shown(name)}</text>`).join("");
    const heads = columns.map((name, j) => { const x = (104 + (j + .7) * side).toFixed(1); return `<text transform="translate(${x} 96) rotate(-60)">${shown(name)}</text>`; }).join("");
    return `<g class="words left">${names}${heads}</g><g class="cells">${cells}</g>`;
  };

  const numbers = ({ source, target, steps, head = 0 }, at) => {
    const { box, weights, likely } = steps[at];
    const names = box.startsWith("src") || box.startsWith("enc") ? source : target;
    const top = weights ? 112 + 20 * names.length : 0;
    const tokens = (best) => best.filter(([, p], i) => !i || p >= .005).map(([token, p]) => `${shown(token)} ${p.toFixed(2)}`).join(", ");
    const list = likely.map((best, i) => `<text x="4" y="${top + 40 + i * 20}">${shown(names[i])}</text><text x="120" y="${top + 40 + i * 20}">${tokens(best)}</text>`).join("");
    const looks = weights ? grid(names, box === "dec-attention" ? target : source, weights[head]) : "";
    const words = likely.map((best, i) => `${shown(names[i])}: ${tokens(best)}`).join("; ");
    return `<svg class="drawing" style="max-width:350px" viewBox="0 0 350 ${top + 30 + 20 * names.length}" role="img" aria-label="The token that each vector would name, with its probability. ${words}">${looks}<g class="words left"><text x="4" y="${top + 16}">the vector of</text><text x="120" y="${top + 16}">would name, if it were the last</text>${list}</g></svg>`;
  };

  const draw = (state) => `<div class="drawing-box">${figure(state.steps[state.at ?? 0].box)}${numbers(state, state.at ?? 0)}</div>\n`;

  if (typeof module !== "undefined") module.exports = { still: draw };
  else customElements.define("figure-one", class extends HTMLElement {
    static BOXES = BOXES; // for the page "Live"
    static figure = figure;

    connectedCallback() {
      this.state = { at: 0, ...JSON.parse(this.querySelector("script").textContent) };
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls"><button type="button" data-by="-1">back</button>
          <label>step <input type="range" name="at" min="0" max="${this.state.steps.length - 1}" value="0"></label>
          <button type="button" data-by="1">on</button>
          <label class="head">head <select name="head">${this.state.steps.find((step) => step.weights).weights.map((_, i) => `<option value="${i}">${i + 1}</option>`).join("")}</select></label></div>
        <div class="grids"><div class="figure"></div><div class="what"><p class="told" role="status"></p><div class="picture"></div></div></div>`;
      this.addEventListener("input", ({ target }) => {
        this.state[target.name] = Number(target.value);
        this.go(this.state.at);
      });
      this.addEventListener("click", ({ target }) => {
        const by = target.closest("[data-by]")?.dataset.by, box = target.closest("[data-box]")?.dataset.box;
        if (by) this.go(this.state.at + Number(by));
        if (box) this.go(this.next(box));
      });
      this.go(this.state.at);
    }

    // The next step in this box, or its first: a second tap goes to the next layer.
    next(box) {
      const { steps, at } = this.state;
      const after = steps.findIndex((step, i) => i > at && step.box === box);
      return after < 0 ? steps.findIndex((step) => step.box === box) : after;
    }

    go(at) {
      const { steps } = this.state;
      this.state.at = Math.max(0, Math.min(steps.length - 1, at));
      const { box, layer, shape, weights } = steps[this.state.at];
      this.querySelector(".head").style.visibility = weights ? "visible" : "hidden";
      const [, , name, what, chapter] = BOXES[box];
      this.querySelector("[name=at]").value = this.state.at;
      this.querySelector(".figure").innerHTML = figure(box);
      this.querySelector(".picture").innerHTML = numbers(this.state, this.state.at);
      this.querySelector(".told").innerHTML = `<b>${name}</b>${layer ? `, layer ${layer}` : ""}: ${shape.join(" × ")}. ${what} <a href="${chapter}.html">Its chapter</a>`;
    }
  });
}
