// <padding-sheet>: sentences cut into batches under a budget of positions, sorted or as
// they come, and what of each batch is padding.
{
  // As annotated_transformer.data.batching.cut_points; each batch is a list of lengths.
  const batches = ({ lengths, budget, sorted }) => {
    const found = [[]];
    for (const length of sorted ? [...lengths].sort((a, b) => a - b) : lengths) {
      const rows = [...found.at(-1), length];
      if (rows.length * Math.max(...rows) > budget) found.push([length]);
      else found[found.length - 1] = rows;
    }
    return found;
  };
  const counts = (found) => {
    const all = found.reduce((n, rows) => n + rows.length * Math.max(...rows), 0);
    return { all, padding: all - found.flat().reduce((a, b) => a + b, 0) };
  };

  // One square is 6 wide and 8 high; the batches stand side by side, in as many lines as they need.
  const [WIDE, HIGH, GAP, ACROSS] = [6, 8, 12, 440];
  const picture = (state) => {
    const found = batches(state);
    const { all, padding } = counts(found);
    let [x, y, deepest, tokens, filled] = [2, 2, 0, "", ""];
    for (const rows of found) {
      const longest = Math.max(...rows);
      if (x + longest * WIDE > ACROSS) [x, y, deepest] = [2, y + deepest + GAP, 0];
      const bar = (from, to, row) => `<rect x="${x + from * WIDE}" y="${y + row * HIGH}" width="${(to - from) * WIDE}" height="${HIGH - 1.5}"/>`;
      rows.forEach((length, row) => {
        tokens += bar(0, length, row);
        if (length < longest) filled += bar(length, longest, row);
      });
      x += longest * WIDE + GAP;
      deepest = Math.max(deepest, rows.length * HIGH);
    }
    return `<svg class="drawing" style="max-width:${ACROSS}px" viewBox="0 0 ${ACROSS} ${y + deepest + 2}" role="img" aria-label="${state.lengths.length} sentences as bars, in ${found.length} batches; ${padding} of ${all} positions are padding."><g class="cells">${tokens}</g><g class="padding" stroke-width="0">${filled}</g></svg>`;
  };
  const still = (data) => `<div class="drawing-box">${picture(data)}</div>\n`;

  if (typeof module !== "undefined") module.exports = { still, batches, counts };
  else customElements.define("padding-sheet", class extends HTMLElement {
    connectedCallback() {
      this.first = JSON.parse(this.querySelector("script").textContent);
      const { lengths, budget, sorted } = this.first;
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls">
          <label>positions in a batch, at most <input type="range" name="budget" min="${Math.max(...lengths)}" max="240" value="${budget}"><output></output></label>
          <label><input type="checkbox" name="sorted"${sorted ? " checked" : ""}> sorted by length</label>
        </div><p class="told" role="status"></p><div class="picture"></div>`;
      this.addEventListener("input", () => this.follow());
      this.follow();
    }

    follow() {
      const [budget, sorted] = ["budget", "sorted"].map((name) => this.querySelector(`[name=${name}]`));
      const state = { ...this.first, budget: budget.valueAsNumber, sorted: sorted.checked };
      const found = batches(state);
      const { all, padding } = counts(found);
      this.querySelector("output").textContent = state.budget;
      this.querySelector(".picture").innerHTML = picture(state);
      this.querySelector(".told").textContent = `${found.length} ${found.length === 1 ? "batch" : "batches"}; ${padding} of ${all} positions are padding, ${Math.round((100 * padding) / all)} %.`;
    }
  });
}
