// <attention-check>: the reader's attention, on plain lists, against the check's own
// diagnoses (annotated_transformer/check/attention.py). It runs in a worker, which is
// stopped if it doesn't end.
{
  // Everything that the worker needs, as text.
  function tools() {
    const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
    const softmax = (row) => {
      const top = Math.max(...row), shares = row.map((x) => Math.exp(x - top));
      const sum = shares.reduce((a, b) => a + b);
      return shares.map((x) => x / sum);
    };
    const mix = (weights, rows) => rows[0].map((_, j) => dot(weights, rows.map((row) => row[j])));

    const draw = (rows, columns, from) => Array.from({ length: rows }, (_, i) =>
      Array.from({ length: columns }, (_, j) => Math.sin(from + 7 * i + 3 * j * j)));
    const query = draw(3, 4, 1), key = draw(5, 4, 2), value = draw(5, 6, 3);
    const units = key.map((_, i) => key.map((_, j) => Number(i === j))); // as values they give the weights
    const mask = query.map((_, i) => key.map((_, j) => j < 3 + (i > 0)));

    const weigh = (scale, see) => query.map((q) => key.map((k) => dot(q, k) / scale))
      .map((row, i) => softmax(row.map((x, j) => (see(i, j) ? x : -Infinity))));
    const transposed = (rows) => rows[0].map((_, j) => rows.map((row) => row[j]));
    const shape = (rows) => `${rows.length} rows of ${[...new Set(rows.map((row) => row.length))].join(" or ")} numbers`;
    const close = (a, b) => a.every((row, i) => row.every((x, j) => Math.abs(x - b[i][j]) < 1e-4));

    class Wrong extends Error {
      constructor(sentence, tables = {}) {
        super(sentence);
        Object.assign(this, tables);
      }
    }
    const call = (attention, values, given) => {
      const found = attention(query, key, values, given);
      if (!Array.isArray(found) || !found.every(Array.isArray)) throw new Wrong("attention should return the output, a list of rows.");
      const wanted = query.map(() => values[0]);
      if (shape(found) !== shape(wanted)) throw new Wrong(`attention should return ${shape(wanted)}, one row a query, and returns ${shape(found)}.`);
      return found;
    };
    const expectWeights = (found, given) => {
      const see = (i, j) => given === null || given[i][j];
      const expected = weigh(2, see), plain = weigh(2, () => true);
      if (close(found, expected)) return;
      const row = found[0].reduce((a, b) => a + b).toFixed(2);
      const overQueries = transposed(transposed(query.map((q) => key.map((k) => dot(q, k) / 2))).map(softmax));
      const mistakes = [
        ["The scores aren’t divided by √d_k before the softmax.", weigh(1, see)],
        ["The scores are divided by d_k; the paper divides by its square root.", weigh(4, see)],
        ["The weights are divided by √d_k after the softmax; divide the scores, before it.", weigh(1, see).map((row) => row.map((x) => x / 2))],
        ["The softmax runs over the queries; each row should sum to one over the keys.", overQueries],
        ["The mask isn’t used yet: a key that a query may not see gets the weight 0.", plain],
        ["The mask is inverted: true means “may attend”, so hide where it is false.", weigh(2, (i, j) => !see(i, j))],
        [`Each row should sum to one over the keys that it may see, but query 0’s sums to ${row}: mask the scores before the softmax, not the weights after it.`,
          plain.map((weights, i) => weights.map((x, j) => (see(i, j) ? x : 0)))],
      ];
      const mistake = mistakes.find(([, weights]) => close(found, weights));
      throw new Wrong(mistake?.[0] ?? "The weights should be softmax(query · key / √d_k) over the keys that a query may see.", { expected, found });
    };

    // What is wrong first; an empty sentence if nothing is.
    const judge = (attention) => {
      try {
        const weights = call(attention, units, null);
        expectWeights(weights, null);
        const found = call(attention, value, null), expected = weights.map((row) => mix(row, value));
        if (!close(found, expected)) throw new Wrong("The weights are right, but the output isn’t the values mixed by them.", { expected, found });
        expectWeights(call(attention, units, mask), mask);
        return { sentence: "" };
      } catch (error) {
        const { message, expected, found } = error;
        return { sentence: error instanceof Wrong ? message : `It stops: ${message}.`, expected, found };
      }
    };
    return { dot, softmax, mix, judge };
  }

  const START = `function attention(query, key, value, mask) {
  const scores = query.map((q) => key.map((k) => dot(q, k)));
  const weights = scores.map((row) => softmax(row));
  return weights.map((row) => mix(row, value));
}`;
  const FIRST = "Two things are missing. Check it, and mend what the check says.";
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const still = () => {
    const lines = START.split("\n").map((line, i) => `<text x="8" y="${20 + 20 * i}" xml:space="preserve">${escaped(line)}</text>`);
    return `<svg class="drawing" style="max-width:560px" viewBox="0 0 560 ${10 + 20 * lines.length}" role="img" aria-label="A first try at attention on lists: scores, softmax, mix."><g class="words left">${lines.join("")}</g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { still, tools, START };
  else customElements.define("attention-check", class extends HTMLElement {
    connectedCallback() {
      const box = Object.assign(document.createElement("div"), { className: "part" });
      box.innerHTML = `<label class="code">your attention, in JavaScript <textarea name="code" rows="9" spellcheck="false" autocapitalize="off" autocomplete="off">${escaped(START)}</textarea></label>
        <div class="controls"><button type="button" name="check">check</button><button type="button" name="again">start again</button></div>
        <p class="told" role="status"></p><div class="grids"></div>`;
      this.append(box);
      [this.code, this.told, this.grids] = ["textarea", ".told", ".grids"].map((each) => box.querySelector(each));
      box.querySelector("[name=check]").addEventListener("click", () => this.check());
      box.querySelector("[name=again]").addEventListener("click", () => {
        this.code.value = START;
        this.show({ sentence: null });
      });
      this.show({ sentence: null });
    }

    check() {
      const text = `"use strict"; const { dot, softmax, mix, judge } = (${tools})();\n${this.code.value}\npostMessage(judge(attention));`;
      const url = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
      const worker = new Worker(url);
      const end = (verdict) => {
        clearTimeout(timer);
        worker.terminate();
        URL.revokeObjectURL(url);
        this.show(verdict);
      };
      const timer = setTimeout(end, 3000, { sentence: "It doesn’t end, and was stopped after three seconds." });
      worker.onmessage = ({ data }) => end(data);
      worker.onerror = (event) => {
        event.preventDefault();
        end({ sentence: `It doesn’t run: ${event.message.replace(/^Uncaught /, "")}.` });
      };
    }

    show({ sentence, expected, found }) {
      this.told.textContent = sentence === null ? FIRST : sentence ? `✗ ${sentence}` : "✓ attention is right: scaled, masked before the softmax, and each row sums to one.";
      const rows = (all) => all.map((row, i) => `<tr><th scope="row">query ${i}</th>${row.map((x) => `<td class="number">${x.toFixed(2)}</td>`).join("")}</tr>`).join("");
      const table = (caption, all) => `<table><caption>${caption}</caption>${rows(all)}</table>`;
      this.grids.innerHTML = expected ? table("expected", expected) + table("found", found) : "";
    }
  });
}
