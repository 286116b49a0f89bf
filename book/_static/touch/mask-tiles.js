// <mask-tiles>: who may look at whom, as tiles that a reader fills and clears, and which
// member of the family lets through just these.
{
  // By the name of a member, whether row i may look at column j; s tokens are the source.
  const MEMBERS = {
    "encoder only": () => true,
    "decoder only": (i, j) => j <= i,
    "encoder-decoder": (i, j, s) => j <= i || j < s,
  };
  const mask = (name, n, s) => Array.from({ length: n }, (_, i) => Array.from({ length: n }, (_, j) => MEMBERS[name](i, j, s)));
  const ABOUT = {
    "encoder only": "every word sees every word: an encoder, like BERT’s",
    "decoder only": "no word looks ahead: a decoder, like GPT’s",
    "encoder-decoder": "the source sees itself, the target sees the source and what is written so far: the Transformer of 2017",
  };
  const filled = (tiles) => tiles.flat().filter(Boolean).length;

  const told = (tiles, words, s) => {
    const n = words.length, apart = Object.fromEntries(Object.keys(MEMBERS).map((name) => {
      const own = mask(name, n, s);
      return [name, tiles.flat().filter((on, k) => on !== own.flat()[k]).length];
    }));
    const count = `${filled(tiles)} of ${n * n} tiles.`;
    const member = Object.keys(apart).find((name) => !apart[name]);
    if (member) return `${count} ${ABOUT[member][0].toUpperCase()}${ABOUT[member].slice(1)}.`;
    const [nearest, missing] = Object.entries(apart).sort((a, b) => a[1] - b[1])[0];
    const row = tiles.findIndex((each, i) => i >= s && each.some((on, j) => on && j > i));
    const warning = row < 0 ? "" : ` ${words[row]} sees a word that it should predict.`;
    return `${count} ${missing} ${missing === 1 ? "tile" : "tiles"} away from ${nearest}.${warning}`;
  };

  const still = ({ words, source }) => {
    const grid = (name, k) => {
      const left = 10 + 150 * k;
      const tile = (on, i, j) => `<rect x="${left + 18 * j}" y="${34 + 18 * i}" width="16" height="16" rx="2"${on ? "" : ' opacity="0.15"'}/>`;
      return `<g class="cells">${mask(name, words.length, source).map((row, i) => row.map((on, j) => tile(on, i, j)).join("")).join("")}</g><g class="words"><text x="${left + 62}" y="20">${name}</text></g>`;
    };
    const names = Object.keys(MEMBERS);
    return `<svg class="drawing" style="max-width:450px" viewBox="0 0 450 170" role="img" aria-label="Three grids of ${words.length} rows and columns. ${names.map((name) => `${name}: ${ABOUT[name]}`).join(". ")}.">${names.map(grid).join("")}</svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { mask, told, still };
  else customElements.define("mask-tiles", class extends HTMLElement {
    connectedCallback() {
      ({ words: this.words, source: this.source } = JSON.parse(this.querySelector("script").textContent));
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      const { words } = this;
      const cell = (i, j) => `<td class="button"><button type="button" data-row="${i}" data-column="${j}" tabindex="${i || j ? -1 : 0}" aria-label="${words[i]} may look at ${words[j]}"></button></td>`;
      part.innerHTML = `<div class="controls">${Object.keys(MEMBERS).slice(0, 2).map((name) => `<button type="button" data-task="${name}">${name}</button>`).join("")}</div>
        <table><caption>a row looks, a column is looked at</caption><thead><tr><td></td>${words.map((word) => `<th scope="col"><span>${word}</span></th>`).join("")}</tr></thead>
        <tbody>${words.map((word, i) => `<tr><th scope="row">${word}</th>${words.map((_, j) => cell(i, j)).join("")}</tr>`).join("")}</tbody></table>
        <p class="told" role="status"></p><p class="hint">With the keyboard: arrows go from tile to tile, the space bar fills or clears one.</p>`;
      part.addEventListener("keydown", (event) => this.move(event));
      part.addEventListener("click", ({ target }) => {
        const { task, row, column } = target.dataset;
        if (task) this.tiles = mask(task, words.length, this.source);
        else if (row) this.tiles[row][column] = !this.tiles[row][column];
        this.follow();
      });
      this.tiles = mask("encoder only", words.length, this.source);
      this.follow();
    }

    at(i, j) { return this.querySelector(`[data-row="${i}"][data-column="${j}"]`); }

    move(event) {
      const step = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
      const { row, column } = event.target.dataset;
      const next = step && row && this.at(Number(row) + step[0], Number(column) + step[1]);
      if (!next) return;
      event.preventDefault();
      event.target.tabIndex = -1;
      next.tabIndex = 0;
      next.focus();
    }

    follow() {
      for (const tile of this.querySelectorAll("td button")) {
        const { row, column } = tile.dataset;
        tile.setAttribute("aria-pressed", this.tiles[row][column]);
      }
      this.querySelector(".told").textContent = told(this.tiles, this.words, this.source);
    }
  });
}
