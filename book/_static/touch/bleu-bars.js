// <bleu-bars>: BLEU of one sentence as the reader edits it. Each run of one to four
// words of the output is a bar, filled where the reference has the same run.
{
  // As annotated_transformer.translation.bleu: tokenize_13a, clipped_matches, bleu.
  const ENTITIES = [["<skipped>", ""], ["&quot;", '"'], ["&amp;", "&"], ["&lt;", "<"], ["&gt;", ">"]];
  const tokens = (text) => {
    for (const [entity, character] of ENTITIES) text = text.replaceAll(entity, character);
    text = ` ${text} `.replace(/([{-~[-` -&(-+:-@/])/g, " $1 ").replace(/([^0-9])([.,])/g, "$1 $2 ");
    return text.replace(/([.,])([^0-9])/g, " $1 $2").replace(/([0-9])(-)/g, "$1 $2 ").split(/\s+/).filter(Boolean);
  };
  const runs = (words, n) => words.slice(n - 1).map((_, i) => words.slice(i, i + n).join(" "));
  // For each run whether it counts: as often as the other side has it.
  const shared = (words, others, n) => {
    const left = new Map();
    for (const run of runs(others, n)) left.set(run, (left.get(run) ?? 0) + 1);
    return runs(words, n).map((run) => {
      const has = left.get(run) > 0;
      if (has) left.set(run, left.get(run) - 1);
      return has;
    });
  };
  const score = ({ output, reference }) => {
    const [words, others] = [tokens(output), tokens(reference)];
    let zeros = 0;
    const orders = [1, 2, 3, 4].map((n) => {
      const found = shared(words, others, n), matches = found.filter(Boolean).length;
      if (!matches) zeros += 1;
      return { found, matches, counted: matches || 0.5 ** zeros, total: found.length };
    });
    const penalty = words.length >= others.length ? 1 : words.length ? Math.exp(1 - others.length / words.length) : 0;
    const none = !orders[0].matches || !orders[3].total;
    const mean = none ? 0 : orders.reduce((product, { counted, total }) => (product * counted) / total, 1) ** 0.25;
    return { words, others, orders, penalty, mean, bleu: 100 * penalty * mean };
  };

  const safe = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const NAMES = ["words", "pairs", "threes", "fours"];
  // Where each word stands in its row: its left edge and its width.
  const row = (words) => {
    let x = 2;
    return words.map((word) => {
      const at = [x, 8.2 * [...word].length + 12];
      x += at[1] + 6;
      return at;
    });
  };
  const end = (places) => (places.length ? places.at(-1)[0] + places.at(-1)[1] : 0);
  const picture = (state) => {
    const { words, others, orders, bleu } = score(state);
    const above = row(others), below = row(words);
    const right = Math.max(end(below), 250) + 12;
    let [boxes, lost, texts, labels] = ["", "", "", ""];
    const word = ([x, width], y, text, has) => {
      const box = `<rect x="${x}" y="${y}" width="${width.toFixed(1)}" height="26" rx="4"/>`;
      if (has) boxes += box;
      else lost += box;
      texts += `<text x="${(x + width / 2).toFixed(1)}" y="${y + 18}">${safe(text)}</text>`;
    };
    const label = (x, y, text) => { labels += `<text x="${x}" y="${y}">${text}</text>`; };
    const count = (n, y) => label(right, y, `${NAMES[n]}: ${orders[n].matches} of ${orders[n].total}`);
    label(2, 15, "reference");
    const met = shared(others, words, 1);
    others.forEach((text, i) => word(above[i], 22, text, met[i]));
    label(2, 72, "output, and its runs of 2, 3 and 4 words");
    words.forEach((text, i) => word(below[i], 79, text, orders[0].found[i]));
    count(0, 97);
    let y = 116;
    for (const n of [2, 3, 4]) {
      orders[n - 1].found.forEach((has, i) => {
        const x = below[i][0] + 2, width = end(below.slice(i, i + n)) - 2 - x;
        const bar = `<rect x="${x}" y="${y + 12 * (i % n)}" width="${width.toFixed(1)}" height="8" rx="3"/>`;
        if (has) boxes += bar;
        else lost += bar;
      });
      count(n - 1, y + 6 * n + 3);
      y += 12 * n + 10;
    }
    const wide = Math.round(Math.max(right + 100, end(above) + 4));
    const told = orders.map(({ matches, total }, n) => `${matches} of ${total} ${NAMES[n]}`).join(", ");
    return `<svg class="drawing" style="max-width:${wide}px;--width:${wide}px" viewBox="0 0 ${wide} ${y}" role="img" aria-label="The output shares with the reference ${told}; BLEU is ${bleu.toFixed(1)}."><g class="boxes">${boxes}</g><g class="hidden">${lost}</g><g class="words">${texts}</g><g class="words left">${labels}</g></svg>`;
  };
  const sentence = (state) => {
    const { words, orders, penalty, mean, bleu } = score(state);
    if (!words.length) return "Nothing is written yet: BLEU is 0.";
    if (!orders[3].total) return "Fewer than four tokens hold no run of four: BLEU is 0.";
    if (!orders[0].matches) return "No word is shared: BLEU is 0.";
    const smoothed = orders.some(({ matches }) => !matches) ? " (A zero counts as a half, the next one as a quarter.)" : "";
    const product = orders.map(({ counted, total }) => `${counted}/${total}`).join(" · ");
    return `The fourth root of ${product} is ${mean.toFixed(3)}, and the penalty for shortness ${penalty.toFixed(3)}: BLEU is ${bleu.toFixed(1)}.${smoothed}`;
  };
  const still = (data) => `<div class="drawing-box">${picture(data)}</div>\n`;

  if (typeof module !== "undefined") module.exports = { still, tokens, score, sentence };
  else customElements.define("bleu-bars", class extends HTMLElement {
    connectedCallback() {
      const first = JSON.parse(this.querySelector("script").textContent);
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      const field = (name) => `<label>${name} <input type="text" name="${name}" maxlength="120" value="${safe(first[name])}" autocomplete="off" spellcheck="false"></label>`;
      part.innerHTML = `<div class="controls">${field("reference")}${field("output")}</div>
        <p class="told" role="status"></p><div class="picture drawing-box"></div>`;
      this.addEventListener("input", () => this.follow());
      this.follow();
    }

    follow() {
      const [reference, output] = ["reference", "output"].map((name) => this.querySelector(`[name=${name}]`).value);
      this.querySelector(".picture").innerHTML = picture({ reference, output });
      this.querySelector(".told").textContent = sentence({ reference, output });
    }
  });
}
