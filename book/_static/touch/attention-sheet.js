// <attention-sheet>: a few words whose queries, keys and values a reader edits, and the
// grids of equation (1) that follow: a row for each query, a column for each key. `asks`
// names the queries, where they aren't the words' own; `rows` says how many of them ask;
// each of `tasks` changes something of the beginning.
{
  const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);

  // As annotated_transformer.model.attention.attention: scores, weights and output. A row
  // that may attend nowhere is NaN.
  const attention = ({ query, key, value, mask, scale = true }) => {
    const by = scale ? Math.sqrt(key[0].length) : 1;
    const scores = query.map((q, i) => key.map((k, j) => (mask && !mask[i][j] ? -Infinity : dot(q, k) / by)));
    const weights = scores.map((row) => {
      const most = Math.max(...row);
      const powers = row.map((s) => Math.exp(s - most));
      const sum = powers.reduce((a, b) => a + b);
      return powers.map((p) => p / sum);
    });
    const output = weights.map((row) => value[0].map((_, c) => dot(row, value.map((v) => v[c]))));
    return { scores, weights, output };
  };

  // The state that a page's values begin with, and that of a task.
  const start = (data) => ({ asks: data.words, rows: data.query.length, scale: true, mask: data.query.map(() => data.words.map(() => true)), tasks: {}, ...structuredClone(data) });
  const asking = ({ rows, query, ...state }) => ({ ...state, query: query.slice(0, rows) });

  const STOPS = "input, button";
  const number = (x) => (x === -Infinity ? "−∞" : Number.isNaN(x) ? "NaN" : x.toFixed(2).replace("-", "−"));
  const heads = (names) => names.map((each) => `<th scope="col">${each}</th>`).join("");

  const told = ({ asks, words, rows }, weights) => asks.slice(0, rows).map((ask, i) => {
    const who = `${asks}` === `${words}` ? `${ask} looks` : `${ask[0].toUpperCase()}${ask.slice(1)} it looks`;
    const best = words.filter((_, j) => weights[i][j] > Math.max(...weights[i]) - .005);
    const share = number(Math.max(...weights[i]));
    if (!best.length) return `${who} nowhere: its row is NaN.`;
    if (best.length === 1) return `${who} most at ${best[0]} (${share}).`;
    return `${who} alike at ${best.slice(0, -1).join(", ")} and ${best.at(-1)} (${share} each).`;
  }).join(" ");

  // The drawing for who has no script: the weights as squares.
  const still = (data) => {
    const state = start(data);
    const { words, asks, rows } = state;
    const { weights } = attention(asking(state));
    const at = (i) => 46 + i * 56;
    const cells = weights.map((row, i) => row.map((w, j) => `<rect x="${94 + j * 76}" y="${at(i)}" width="72" height="48" rx="4" fill-opacity="${w.toFixed(3)}"/>`).join("")).join("");
    const texts = weights.map((row, i) => row.map((w, j) => `<text x="${130 + j * 76}" y="${at(i) + 29}">${number(w)}</text>`).join("")).join("");
    const columns = words.map((word, j) => `<text x="${130 + j * 76}" y="36">${word}</text>`).join("");
    const names = asks.slice(0, rows).map((ask, i) => `<text x="8" y="${at(i) + 29}">${ask}</text>`).join("");
    const width = 102 + words.length * 76;
    return `<svg class="drawing" style="max-width:${width}px" viewBox="0 0 ${width} ${at(rows) + 4}" role="img" aria-label="Attention weights. ${told(state, weights)}"><g class="weights">${cells}</g><g class="words">${texts}${columns}</g><g class="words left">${names}<text x="8" y="14">weights: each row asks</text></g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { attention, still };
  else customElements.define("attention-sheet", class extends HTMLElement {
    connectedCallback() {
      this.first = JSON.parse(this.querySelector("script").textContent);
      this.state = start(this.first);
      this.box = Object.assign(document.createElement("div"), { className: "part" });
      this.append(this.box);
      this.build();
      this.addEventListener("keydown", (event) => this.move(event));
      this.addEventListener("input", (event) => this.change(event.target));
      this.addEventListener("click", (event) => this.press(event.target));
    }

    build(task = "") {
      const { words, asks, rows, entries, outputs, scale, tasks } = this.state;
      const asked = asks.slice(0, rows);
      const fields = (part, names, i, of) => names.map((name, c) => `<td><input type="number" step="0.5" value="${this.state[part][i][c]}" data-part="${part}" data-row="${i}" data-column="${c}" aria-label="${part} of ${of}, ${name}"></td>`).join("");
      const title = (text, columns) => `<th scope="colgroup" colspan="${columns}">${text}</th>`;
      const cells = (name, columns, i) => columns.map((_, j) => `<td class="value" data-grid="${name}" data-row="${i}" data-column="${j}"></td>`).join("");
      const paint = (i) => words.map((_, j) => `<td class="button"><button type="button" aria-pressed="true" data-row="${i}" data-column="${j}"></button></td>`).join("");
      const grid = (about, columns, cell) => `<table><caption>${about}</caption><thead><tr><td></td>${columns}</tr></thead><tbody>${asked.map((ask, i) => `<tr><th scope="row">${ask}</th>${cell(i)}</tr>`).join("")}</tbody></table>`;
      this.box.innerHTML = `<div class="controls">${["start", ...Object.keys(tasks)].map((each, i) => `<button type="button" data-task="${i ? each : ""}" aria-pressed="${task === (i ? each : "")}">${each}</button>`).join("")}
          <label><input type="checkbox" name="scale" ${scale ? "checked" : ""}>divide by √d_k</label></div>
        <div class="grids"><table class="sheet"><thead><tr><td></td>${heads(entries)}${heads(outputs)}</tr></thead>
          <tbody><tr><td></td>${title("query", entries.length)}</tr>${asked.map((ask, i) => `<tr><th scope="row">${ask}</th>${fields("query", entries, i, ask)}</tr>`).join("")}</tbody>
          <tbody><tr><td></td>${title("key", entries.length)}${title("value", outputs.length)}</tr>${words.map((word, i) => `<tr><th scope="row">${word}</th>${fields("key", entries, i, word)}${fields("value", outputs, i, word)}</tr>`).join("")}</tbody></table>
          <div>${grid("scores; press one to mask it", heads(words), paint)}
          ${grid("weights, and the average of the values", heads(words) + heads(outputs), (i) => cells("weights", words, i) + cells("output", outputs, i))}</div></div>
        <p class="told" role="status"></p><p class="hint">With the keyboard: Tab goes from grid to grid, ← and → from entry to entry, ↑ and ↓ change a number, the space bar a mask.</p>`;
      // Each grid is one stop of the Tab key.
      for (const table of this.querySelectorAll("table")) [...table.querySelectorAll(STOPS)].forEach((each, i) => { each.tabIndex = i ? -1 : 0; });
      this.follow();
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
      const { task, row, column } = button.dataset;
      if (button.localName !== "button") return;
      if (task === undefined) {
        this.state.mask[row][column] = !this.state.mask[row][column];
        this.follow();
        return;
      }
      this.state = { ...start(this.first), ...structuredClone(this.first.tasks[task]) };
      this.build(task);
      this.querySelector(`[data-task="${task}"]`).focus();
    }

    follow() {
      const { asks, words, mask } = this.state;
      const found = attention(asking(this.state));
      const most = { weights: 1, output: Math.max(...found.output.flat().map(Math.abs), 1e-9) };
      for (const cell of this.querySelectorAll("[data-grid]")) {
        const { grid: name, row, column } = cell.dataset;
        const x = found[name][row][column];
        cell.textContent = number(x);
        cell.classList.toggle("minus", x < 0);
        cell.style.setProperty("--share", Math.abs(x) / most[name] || 0);
      }
      for (const button of this.querySelectorAll("td button")) {
        const { row, column } = button.dataset;
        button.textContent = number(found.scores[row][column]);
        button.setAttribute("aria-pressed", mask[row][column]);
        button.setAttribute("aria-label", `${asks[row]} may look at ${words[column]}, score ${button.textContent}`);
      }
      this.querySelector(".told").textContent = told(this.state, found.weights);
    }
  });
}
