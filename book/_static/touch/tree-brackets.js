// <tree-brackets>: a tree drawn from the row of brackets and tags that a reader edits.
// A row that isn't a tree is repaired, and each token shows what became of it.
{
  // As annotated_transformer.translation.repair: which written tag takes how many words.
  const longest = (a, [from, to], b, [start, end]) => {
    let best = [from, start, 0];
    for (let i = from; i < to; i++) for (let j = start; j < end; j++) {
      let size = 0;
      while (i + size < to && j + size < end && a[i + size] === b[j + size]) size += 1;
      if (size > best[2]) best = [i, j, size];
    }
    return best;
  };
  const wordsForTags = (written, tags) => {
    const takes = Array(written.length + 1).fill(0);
    const align = (from, to, start, end) => {
      const [i, j, size] = longest(written, [from, to], tags, [start, end]);
      if (!size) {
        for (let at = start; at < end; at++) takes[Math.min(from + at - start, Math.max(from, to - 1))] += 1;
        return;
      }
      align(from, i, start, j);
      for (let at = i; at < i + size; at++) takes[at] += 1;
      align(i + size, to, j + size, end);
    };
    align(0, written.length, 0, tags.length);
    return takes;
  };
  // Each token of the row with its fate: kept, added or dropped.
  const repair = (tokens, tags) => {
    const row = [], opened = [], rest = [...tags];
    const takes = wordsForTags(tokens.filter((token) => !/^[()]/.test(token)), tags);
    const add = (token, fate) => row.push({ token, fate });
    const fill = () => { if (opened.length) opened.at(-1).filled = true; };
    const close = (depth, written) => {
      while (opened.length > depth) {
        const { label, at, filled } = opened.pop(), own = written && opened.length === depth;
        if (!filled) row[at].fate = "dropped";
        if (filled || own) add(`)${label}`, filled ? (own ? "kept" : "added") : "dropped");
        if (filled) fill();
      }
    };
    for (const token of tokens) {
      if (token[0] === "(") {
        opened.push({ label: token.slice(1), at: row.length, filled: false });
        add(token, "kept");
      } else if (token[0] === ")") {
        const depth = opened.findLastIndex(({ label }) => label === token.slice(1));
        if (depth < 0) add(token, "dropped");
        else close(depth, true);
      } else {
        const taken = rest.splice(0, takes.shift());
        if (!taken.includes(token)) add(token, "dropped");
        let free = true;
        for (const tag of taken) {
          add(tag, free && tag === token ? "kept" : "added");
          if (tag === token) free = false;
        }
        if (taken.length) fill();
      }
    }
    close(1, false);
    for (const tag of rest) add(tag, "added");
    if (rest.length) fill();
    close(0, false);
    return row;
  };

  const safe = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  // The tree of a row: constituents with their place above the words.
  const layout = (row, words) => {
    const opened = [{ children: [] }];
    let [x, at] = [4, 0];
    for (const { token } of row.filter(({ fate }) => fate !== "dropped")) {
      if (token[0] === "(") opened.push({ label: token.slice(1), children: [] });
      else if (token[0] === ")") {
        const part = opened.pop(), ends = [part.children[0].x, part.children.at(-1).x];
        const height = 1 + Math.max(...part.children.map((child) => child.height));
        opened.at(-1).children.push({ ...part, x: (ends[0] + ends[1]) / 2, height });
      } else {
        const wide = Math.max(8.2 * (words[at] ?? "").length, 9 * token.length + 14, 44) + 6;
        opened.at(-1).children.push({ label: token, word: words[at++] ?? "", x: x + wide / 2, height: 0 });
        x += wide;
      }
    }
    return { roots: opened[0].children, wide: x };
  };
  const picture = ({ words, tags, row: text }) => {
    const row = repair(text.split(/\s+/).filter(Boolean), tags.split(" "));
    const { roots, wide: tree } = layout(row, words.split(" "));
    const wide = Math.round(Math.max(tree + 4, 400));
    const floor = 46 * Math.max(...roots.map(({ height }) => height)) + 8;
    let [lines, boxes, seconds, added, texts, labels] = ["", "", "", "", "", ""];
    const put = (x, y, label, width) => {
      texts += `<text x="${x.toFixed(1)}" y="${y + 17}">${safe(label)}</text>`;
      return `<rect x="${(x - width / 2).toFixed(1)}" y="${y}" width="${width}" height="24" rx="5"/>`;
    };
    const top = (part, depth) => (part.children ? 8 + 46 * depth : floor);
    const draw = (part, depth) => {
      const { label, word, x, children } = part, y = top(part, depth);
      const box = put(x, y, label, 9 * label.length + 14);
      if (!children) {
        seconds += box;
        texts += `<text x="${x.toFixed(1)}" y="${floor + 44}">${safe(word)}</text>`;
        return;
      }
      boxes += box;
      for (const child of children) {
        lines += `<path d="M${x.toFixed(1)} ${y + 24} L${child.x.toFixed(1)} ${top(child, depth + 1)}"/>`;
        draw(child, depth + 1);
      }
    };
    roots.forEach((root) => draw(root, 0));
    let [x, y] = [4, floor + 80];
    const label = (words) => { labels += `<text x="4" y="${y - 8}">${words}</text>`; };
    const chip = (token, group) => {
      const width = 8.6 * token.length + 10;
      if (x + width > wide - 4) [x, y] = [4, y + 30];
      const box = put(x + width / 2, y, token, width);
      if (group === "dropped") lines += `<path d="M${x} ${y + 12} h${width}"/>`;
      else if (group === "added") added += box;
      else if (/^[()]/.test(token)) boxes += box;
      else seconds += box;
      x += width + 4;
    };
    label("the model reads");
    [...tags.split(" "), "</s>"].forEach((tag) => chip(tag, "kept"));
    [x, y] = [4, y + 60];
    label("and writes");
    row.forEach(({ token, fate }) => chip(token, fate));
    const said = (part) => (part.children ? `${part.label} of ${part.children.map(said).join(", ")} (end of ${part.label})` : part.word);
    return `<svg class="drawing" style="max-width:${wide}px;--width:${wide}px" viewBox="0 0 ${wide} ${y + 32}" role="img" aria-label="A tree. ${safe(roots.map(said).join(", "))}."><g class="arrows plain">${lines}</g><g class="boxes">${boxes}</g><g class="boxes second">${seconds}</g><g class="hidden">${added}</g><g class="words">${texts}</g><g class="words left">${labels}</g></svg>`;
  };
  const sentence = ({ tags, row: text, readings = {} }) => {
    const row = repair(text.split(/\s+/).filter(Boolean), tags.split(" "));
    const count = (fate) => row.filter((each) => each.fate === fate).length;
    const [added, dropped] = [count("added"), count("dropped")];
    const whole = row.filter(({ fate }) => fate !== "dropped").map(({ token }) => token);
    const first = added + dropped ? `Repaired: ${added} added (dashed), ${dropped} dropped (struck through).` : "A tree, nothing to repair.";
    return [first, `${whole.length} tokens over ${tags.split(" ").length} words.`, readings[whole.join(" ")]].filter(Boolean).join(" ");
  };
  const still = ({ sentences }) => `<div class="drawing-box">${picture(sentences[0])}</div>\n`;

  if (typeof module !== "undefined") module.exports = { repair, sentence, still };
  else customElements.define("tree-brackets", class extends HTMLElement {
    connectedCallback() {
      const { sentences } = JSON.parse(this.querySelector("script").textContent);
      this.sentences = sentences;
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      const options = sentences.map(({ words }, i) => `<option value="${i}">${safe(words)}</option>`).join("");
      part.innerHTML = `<div class="controls"><label>sentence <select name="sentence">${options}</select></label></div>
        <label class="corpus">row of tokens <textarea name="row" rows="3" maxlength="400" autocomplete="off" spellcheck="false"></textarea></label>
        <p class="told" role="status"></p><div class="picture drawing-box"></div>`;
      this.choose();
      this.addEventListener("input", ({ target }) => (target.name === "sentence" ? this.choose() : this.follow()));
    }

    choose() {
      this.chosen = this.sentences[this.querySelector("select").value];
      this.querySelector("textarea").value = this.chosen.row;
      this.follow();
    }

    follow() {
      const state = { ...this.chosen, row: this.querySelector("textarea").value };
      this.querySelector(".picture").innerHTML = picture(state);
      this.querySelector(".told").textContent = sentence(state);
    }
  });
}
