// <patch-shuffle>: a digit of ours whose sixteen patches change places, swap by swap, and what two
// Transformers read in it, by the numbers that benchmarks/after/shuffled.py has recorded.
{
  const NAMES = { "in order": "learned in order", shuffled: "learned shuffled" };
  // Rows of pixels, with patch order[i] at place i.
  const shuffled = (rows, order) => rows.map((row, y) => row.map((_, x) => {
    const from = order[4 * (y >> 1) + (x >> 1)];
    return rows[2 * (from >> 2) + (y & 1)][2 * (from & 3) + (x & 1)];
  }));
  const percent = (p) => `${Math.round(100 * p)} %`;

  const told = ({ digit, swaps, read }) => {
    const says = Object.entries(NAMES).map(([way, name]) => {
      const [guess, p] = read[way][digit][swaps];
      return `the model that ${name} reads a ${guess} (${percent(p)})`;
    });
    return `A ${digit} after ${swaps} of 15 swaps: ${says.join("; ")}.`;
  };

  const still = (state) => {
    const { digit, swaps, pictures, orders, read } = state;
    const place = (i) => 8 + 24 * i + 6 * (i >> 1);
    const pixels = shuffled(pictures[digit], orders[swaps]).flatMap((row, y) => row.map((v, x) => `<rect x="${place(x)}" y="${place(y)}" width="24" height="24" fill="rgb(${v},${v},${v})"/>`)).join("");
    const bars = Object.entries(NAMES).map(([way, name], i) => {
      const [guess, p] = read[way][digit][swaps];
      const y = 40 + 100 * i;
      return `<text x="240" y="${y}">${name}</text><text x="240" y="${y + 34}">${guess === Number(digit) ? "✓" : "✗"} a ${guess}, ${percent(p)}</text><rect class="bar" x="240" y="${y + 44}" width="${(190 * p).toFixed(1)}" height="10"/>`;
    }).join("");
    return `<svg class="drawing" style="max-width:450px" viewBox="0 0 450 226" role="img" aria-label="${told(state)}"><g>${pixels}</g><g class="words left">${bars}</g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { still, shuffled, told };
  else customElements.define("patch-shuffle", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      const { digit, swaps, pictures } = this.state;
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls">
          <label>swaps <input type="range" name="swaps" min="0" max="15" value="${swaps}"><output></output></label>
          <label>digit <select name="digit">${Object.keys(pictures).map((each) => `<option ${each === String(digit) ? "selected" : ""}>${each}</option>`).join("")}</select></label>
        </div><div class="picture"></div><p class="told" role="status"></p>`;
      this.addEventListener("input", ({ target }) => {
        this.state[target.name] = Number(target.value);
        this.follow();
      });
      this.follow();
    }

    follow() {
      this.querySelector("output").textContent = this.state.swaps;
      this.querySelector(".picture").innerHTML = still(this.state);
      this.querySelector(".told").textContent = told(this.state);
    }
  });
}
