// <byte-pairs>: a text cut into tokens. With a trained `model`, the reader replays its
// merges step by step; with a `corpus`, the reader's own, they are learned in the page.
{
  // As annotated_transformer.data.pair_tokenizer.empty_tokenizer cuts a text, then as
  // merge, learn_merges and apply_merges in annotated_transformer.data.tokenizer.
  const pieces = (text) => `▁${text.normalize("NFC").replaceAll(" ", "▁")}`.match(/▁?[\p{L}\p{M}]+|▁?\p{N}|▁?[^▁\p{L}\p{M}\p{N}]+|▁/gu) ?? [];
  const merge = (word, [left, right]) => word.reduce((joined, symbol) => {
    if (joined.length && joined.at(-1) === left && symbol === right) joined.push(joined.pop() + symbol);
    else joined.push(symbol);
    return joined;
  }, []);
  const name = (a, b) => `${a} ${b}`;  // no symbol holds a space

  const learn = (text, steps) => {
    const counts = new Map();
    for (const piece of text.split("\n").filter(Boolean).flatMap(pieces)) counts.set(piece, (counts.get(piece) ?? 0) + 1);
    let words = [...counts].map(([piece, count]) => [[...piece], count]);
    const merges = [];
    while (merges.length < steps) {
      const pairs = new Map();
      for (const [word, count] of words) for (let i = 1; i < word.length; i++) {
        const pair = name(word[i - 1], word[i]);
        pairs.set(pair, (pairs.get(pair) ?? 0) + count);
      }
      let best = null;
      for (const [pair, count] of pairs) if (!best || count > best[1] || (count === best[1] && pair > best[0])) best = [pair, count];
      if (!best || best[1] < 2) break;
      const pair = best[0].split(" ");
      merges.push({ pair, count: best[1] });
      words = words.map(([word, count]) => [merge(word, pair), count]);
    }
    return merges;
  };

  // A text's stages from letters to tokens: at each, its words, and the merge made last.
  const replay = (text, pairs) => {
    const ranks = new Map(pairs.map(([a, b], rank) => [name(a, b), rank]));
    let words = pieces(text).map((piece) => [...piece]);
    const stages = [{ words, rank: null }];
    for (;;) {
      let rank = Infinity;
      for (const word of words) for (let i = 1; i < word.length; i++) rank = Math.min(rank, ranks.get(name(word[i - 1], word[i])) ?? Infinity);
      if (rank === Infinity) return stages;
      words = words.map((word) => merge(word, pairs[rank]));
      stages.push({ words, rank });
    }
  };
  const known = ({ vocab }, symbol) => vocab[symbol] ?? vocab["[unk]"];

  const safe = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const marked = (token) => safe(token).replaceAll("▁", "<i>▁</i>");
  const chip = (token, below = "") => `<span class="chip">${marked(token)}${below === "" ? "" : `<small>${below}</small>`}</span>`;
  const chips = (words, model) => words.map((word) => `<span class="word">${word.map((token) => chip(token, model && known(model, token))).join("")}</span>`).join(" ");
  const size = (words) => words.reduce((sum, word) => sum + word.length, 0);
  const plural = (n, thing) => `${n} ${thing}${n === 1 ? "" : "s"}`;

  // The drawing for who has no script: letters above, tokens below.
  const still = ({ text, model, corpus, steps }) => {
    const stages = replay(text, model ? model.merges : learn(corpus, steps).map(({ pair }) => pair));
    const from = [...stages[0].words.flat()], to = stages.at(-1).words.flat();
    const unit = 440 / from.length, heights = [24, 92];
    const boxes = [from, to].map((tokens, row) => {
      let left = 10;
      return tokens.map((token) => {
        const width = [...token].length * unit, x = left;
        left += width;
        const id = row && model ? `<text x="${(x + width / 2).toFixed(1)}" y="${heights[row] + 48}">${known(model, token)}</text>` : "";
        return [`<rect x="${(x + 1).toFixed(1)}" y="${heights[row]}" width="${(width - 2).toFixed(1)}" height="28" rx="3"/>`, `<text x="${(x + width / 2).toFixed(1)}" y="${heights[row] + 19}">${safe(token)}</text>${id}`];
      });
    });
    const [letters, tokens] = boxes.map((row) => row.map(([box]) => box).join(""));
    return `<svg class="drawing" style="max-width:460px" viewBox="0 0 460 ${model ? 148 : 128}" role="img" aria-label="The text ${safe(text)} as ${from.length} symbols, and below as ${plural(to.length, "token")}: ${safe(to.join(", "))}."><g class="boxes">${letters}</g><g class="boxes second">${tokens}</g><g class="words">${boxes.flat().map(([, words]) => words).join("")}</g><g class="words left"><text x="10" y="14">letters</text><text x="10" y="82">after ${plural(stages.length - 1, "merge")}</text></g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { still, learn, replay };
  else customElements.define("byte-pairs", class extends HTMLElement {
    connectedCallback() {
      this.data = JSON.parse(this.querySelector("script").textContent);
      const { text, corpus, steps } = this.data;
      const box = Object.assign(document.createElement("div"), { className: "part" });
      this.append(box);
      const own = corpus === undefined ? "" : `<label class="corpus">a text to learn from <textarea name="corpus" rows="5" maxlength="20000">${safe(corpus)}</textarea></label>`;
      box.innerHTML = `${own}<div class="controls"><label>${own ? "a word to cut" : "a word or a phrase"} <input type="text" name="text" maxlength="60" value="${safe(text)}" autocomplete="off" spellcheck="false"></label>
        <label>${own ? "merges learned" : "merges replayed"} <input type="range" name="at" min="0" max="${steps ?? 0}" value="0"><output></output></label></div>
        ${own ? '<ol class="merges"></ol>' : ""}<div class="chips"></div><p class="told" role="status"></p>`;
      [this.slider, this.chips, this.told, this.list] = ["[name=at]", ".chips", ".told", ".merges"].map((each) => box.querySelector(each));
      this.field = box.querySelector("[name=text]");
      this.addEventListener("input", ({ target }) => {
        if (target !== this.slider) this.read();
        this.follow();
      });
      if (own) this.slider.value = Math.min(5, steps);
      this.read();
      this.follow();
    }

    read() {
      const { model, steps } = this.data;
      if (model) this.stages = replay(this.field.value, model.merges);
      else this.learned = learn(this.querySelector("[name=corpus]").value, steps);
      const most = model ? this.stages.length - 1 : this.learned.length;
      this.slider.max = most;
      this.slider.disabled = !most;
    }

    follow() {
      const at = Number(this.slider.value);
      this.slider.nextElementSibling.textContent = at;
      if (this.data.model) this.replayed(at);
      else this.taught(at);
    }

    replayed(at) {
      const { model } = this.data, { words, rank } = this.stages[at];
      this.chips.innerHTML = `${chips(words, model)} <span class="word end">${chip("</s>", model.vocab["[eos]"])}</span>`;
      const tokens = `${plural(size(words) + 1, "number")} go into the model, the end’s included.`;
      const lost = words.flat().filter((token) => !(token in model.vocab));
      const more = lost.length ? ` ${lost.join(" ")} isn’t in the vocabulary: id 3, unknown.` : "";
      if (rank === null) this.told.textContent = `No merge yet: ${tokens}${more}`;
      else this.told.textContent = `Merge ${at} of ${this.stages.length - 1} joins ${model.merges[rank].join(" and ")}, number ${rank + 1} of ${model.merges.length} that were learned. ${tokens}${more}`;
    }

    taught(at) {
      const learned = this.learned.slice(0, at), pairs = learned.map(({ pair }) => pair);
      const cut = (text) => replay(text, pairs).at(-1).words;
      const lines = this.querySelector("[name=corpus]").value.split("\n").filter(Boolean);
      this.list.innerHTML = learned.map(({ pair, count }) => `<li>${marked(pair[0])} + ${marked(pair[1])} <small>${count}×</small></li>`).join("");
      this.chips.innerHTML = chips(cut(this.field.value));
      const length = (merges) => lines.reduce((sum, line) => sum + size(replay(line, merges).at(-1).words), 0);
      const last = learned.at(-1);
      const what = last ? `Merge ${at} joins ${last.pair.join(" and ")}, which are neighbours ${last.count} times.` : "No merge yet.";
      this.told.textContent = `${what} The text above has ${plural(length(pairs), "token")}, from ${length([])} symbols; the word has ${size(cut(this.field.value))}.`;
    }
  });
}
