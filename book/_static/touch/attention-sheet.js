// <attention-sheet>: a few words whose queries, keys and values a reader edits, and the
// grids of equation (1) that follow.
{
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

  // As annotated_transformer.model.attention.attention, on the first d_k entries: dot
  // products, scores, weights and output. A row that may attend nowhere is NaN.
  const attention = ({ query, key, value, mask, d_k = query[0].length, temperature = 1, scale = true }) => {
    const by = temperature * (scale ? Math.sqrt(d_k) : 1);
    const products = query.map((q) => key.map((k) => dot(q.slice(0, d_k), k)));
    const scores = products.map((row, i) => row.map((s, j) => (mask && !mask[i][j] ? -Infinity : s / by)));
    const weights = scores.map((row) => {
      const most = Math.max(...row);
      const powers = row.map((s) => Math.exp(s - most));
      const sum = powers.reduce((a, b) => a + b);
      return powers.map((p) => p / sum);
    });
    const output = weights.map((row) => value[0].map((_, c) => dot(row, value.map((v) => v[c]))));
    return { products, scores, weights, output };
  };

  const STOPS = "input:enabled, button";
  const number = (x) => (x === -Infinity ? "−∞" : Number.isNaN(x) ? "NaN" : x.toFixed(2).replace("-", "−"));
  const grid = (about, rows, columns, cell) =>
    `<table><caption>${about}</caption><thead><tr><td></td>${columns.map((c) => `<th scope="col">${c}</th>`).join("")}</tr></thead><tbody>${
      rows.map((row, i) => `<tr><th scope="row">${row}</th>${columns.map((_, j) => cell(i, j)).join("")}</tr>`).join("")}</tbody></table>`;

  // The drawing for who has no script: the weights as squares.
  const still = (data) => {
    const { words } = data;
    const { weights } = attention(data);
    const at = (i) => 46 + i * 56;
    const cells = weights.map((row, i) => row.map((w, j) => `<rect x="${94 + j * 76}" y="${at(i)}" width="72" height="48" rx="4" fill-opacity="${w.toFixed(3)}"/>`).join("")).join("");
    const texts = weights.map((row, i) => row.map((w, j) => `<text x="${130 + j * 76}" y="${at(i) + 29}">${number(w)}</text>`).join("")).join("");
    const heads = words.map((word, j) => `<text x="${130 + j * 76}" y="36">${word}</text>`).join("");
    const names = words.map((word, i) => `<text x="8" y="${at(i) + 29}">${word}</text>`).join("");
    const width = 102 + words.length * 76;
    return `<svg class="drawing" style="max-width:${width}px" viewBox="0 0 ${width} ${at(words.length) + 4}" role="img" aria-label="Attention weights of ${words.join(", ")}: a row for each word that asks."><g class="weights">${cells}</g><g class="words">${texts}${heads}</g><g class="words left">${names}<text x="8" y="14">weights: each row asks</text></g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { attention, still };
  else customElements.define("attention-sheet", class extends HTMLElement {
    connectedCallback() {
      const data = JSON.parse(this.querySelector("script").textContent);
      const n = data.words.length;
      this.state = { temperature: 1, scale: true, d_k: data.query[0].length, ...data };
      this.state.mask ??= Array.from({ length: n }, () => Array(n).fill(true));
      this.box = Object.assign(document.createElement("div"), { className: "part" });
      this.append(this.box);
      this.build();
      this.addEventListener("keydown", (event) => this.move(event));
      this.addEventListener("input", (event) => this.change(event.target));
      this.addEventListener("click", (event) => this.press(event.target));
      this.follow();
    }

    build() {
      const { words, query } = this.state;
      const vectors = ["query", "key", "value"].map((part) => grid(
        `${part} of each word`, words, this.state[part][0].map((_, c) => c + 1),
        (i, c) => `<td><input type="number" step="0.5" value="${this.state[part][i][c]}" data-part="${part}" data-row="${i}" data-column="${c}" aria-label="${part} of ${words[i]}, entry ${c + 1}"></td>`,
      )).join("");
      const cells = (name) => (i, j) => `<td class="value" data-grid="${name}" data-row="${i}" data-column="${j}"></td>`;
      const paint = (i, j) => `<td class="button"><button type="button" aria-pressed="true" data-row="${i}" data-column="${j}"></button></td>`;
      const entries = this.state.value[0].map((_, c) => c + 1);
      this.box.innerHTML = `<div class="grids">${vectors}</div>
        <div class="controls">
          <label>d_k <input type="range" name="d_k" min="1" max="${query[0].length}" value="${this.state.d_k}"><output></output></label>
          <label>temperature <input type="range" name="temperature" min="0.25" max="4" step="0.25" value="${this.state.temperature}"><output></output></label>
          <label><input type="checkbox" name="scale" ${this.state.scale ? "checked" : ""}>divide by √d_k</label>
          <button type="button" data-mask="all">no mask</button><button type="button" data-mask="causal">causal mask</button>
          <button type="button" data-mask="again">start again</button>
        </div>
        <div class="grids">${grid("QKᵀ", words, words, cells("products"))}${grid("scores; press one to mask it", words, words, paint)}
          ${grid("softmax: the weights", words, words, cells("weights"))}${grid("times V: the output", words, entries, cells("output"))}</div>
        <p class="told" role="status"></p><p class="hint">With the keyboard: Tab goes from grid to grid, ← and → from entry to entry, ↑ and ↓ change a number, the space bar a mask.</p>`;
      // Each grid is one stop of the Tab key.
      for (const table of this.querySelectorAll("table")) [...table.querySelectorAll(STOPS)].forEach((each, i) => { each.tabIndex = i ? -1 : 0; });
      this.first ??= JSON.stringify(this.state);
    }

    move(event) {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const stops = [...event.target.closest("table")?.querySelectorAll(STOPS) || []];
      const next = step && stops[stops.indexOf(event.target) + step];
      if (!next) return;
      event.preventDefault();
      for (const each of stops) each.tabIndex = each === next ? 0 : -1;
      next.focus();
    }

    change(input) {
      const { part, row, column } = input.dataset;
      const value = input.type === "checkbox" ? input.checked : input.valueAsNumber;
      if (Number.isNaN(value)) return;
      if (part) this.state[part][row][column] = value;
      else this.state[input.name] = value;
      this.follow();
    }

    press(button) {
      const { mask, row, column } = button.dataset;
      if (button.localName !== "button") return;
      if (mask === "again") {
        this.state = JSON.parse(this.first);
        this.build();
        this.querySelector("[data-mask=again]").focus();
      } else if (mask) this.state.mask = this.state.mask.map((line, i) => line.map((_, j) => mask === "all" || j <= i));
      else this.state.mask[row][column] = !this.state.mask[row][column];
      this.follow();
    }

    follow() {
      const { words, mask, d_k } = this.state;
      const found = attention(this.state);
      const largest = (rows) => Math.max(...rows.flat().map(Math.abs), 1e-9);
      const most = { products: largest(found.products), weights: 1, output: largest(found.output) };
      for (const cell of this.querySelectorAll("[data-grid]")) {
        const { grid: name, row, column } = cell.dataset;
        const x = found[name][row][column];
        cell.textContent = number(x);
        cell.classList.toggle("minus", x < 0);
        cell.style.setProperty("--share", Math.abs(x) / most[name] || 0);
      }
      for (const button of this.querySelectorAll("[aria-pressed]")) {
        const { row, column } = button.dataset;
        button.textContent = number(found.scores[row][column]);
        button.setAttribute("aria-pressed", mask[row][column]);
        button.setAttribute("aria-label", `${words[row]} may look at ${words[column]}, score ${button.textContent}`);
      }
      for (const input of this.querySelectorAll("[type=range]")) input.nextElementSibling.textContent = input.value;
      for (const input of this.querySelectorAll("[data-part=query], [data-part=key]")) input.disabled = input.dataset.column >= d_k;
      this.querySelector(".told").textContent = words.map((word, i) => {
        const row = found.weights[i];
        if (row.some(Number.isNaN)) return `${word} may look nowhere: its row is NaN.`;
        const best = row.indexOf(Math.max(...row));
        return `${word} looks most at ${words[best]} (${number(row[best])}).`;
      }).join(" ");
    }
  });
}
