// <word-shares>: reviews whose words a reader crosses out, and what each word that is left
// adds to the verdict, as benchmarks/after/word_shares.py recorded it for every choice.
{
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const signed = (x) => (x < 0 ? "−" : "+") + Math.abs(x).toFixed(2);

  // For the words kept, by their bits: each word's share, null where it is crossed out;
  // then the rest, their sum, and the probability that the sum stands for.
  const read = ({ words, shares }, bits) => {
    const kept = shares[bits].map((each) => each / 100), rest = kept.pop();
    const own = words.map((_, i) => ((bits >> i) & 1 ? kept.shift() : null));
    const sum = own.reduce((total, each) => total + (each ?? 0), rest);
    return { own, rest, sum, positive: 1 / (1 + Math.exp(-sum)) };
  };
  const rows = ({ words }, { own, rest }) => [...words.map((word, i) => [word, own[i]]), ["the end token and b", rest]];
  const verdict = ({ sum, positive }) => `Sum ${signed(sum)}: ${(100 * positive).toFixed(0)} % positive.`;
  const FULL = 2; // the share whose bar is full

  const still = ({ reviews, shown }) => {
    const review = reviews[shown], found = read(review, 2 ** review.words.length - 1);
    const line = ([word, x], i) => {
      const width = Math.min(1, Math.abs(x) / FULL) * 90, y = 22 + 24 * i;
      return `<text x="4" y="${y}">${escaped(word)}</text><text x="172" y="${y}">${signed(x)}</text><rect class="${x < 0 ? "bar minus" : "bar"}" x="${(x < 0 ? 320 - width : 320).toFixed(1)}" y="${y - 11}" width="${width.toFixed(1)}" height="12"/>`;
    };
    const all = rows(review, found), height = 24 * all.length + 40;
    return `<svg class="drawing" style="max-width:420px" viewBox="0 0 420 ${height}" role="img" aria-label="${all.map(([word, x]) => `${escaped(word)} ${signed(x)}`).join(", ")}. ${verdict(found)}"><g class="words left">${all.map(line).join("")}<text x="4" y="${height - 10}">${verdict(found)}</text></g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { read, still };
  else customElements.define("word-shares", class extends HTMLElement {
    connectedCallback() {
      const { reviews, shown } = JSON.parse(this.querySelector("script").textContent);
      this.reviews = reviews;
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls"><label>review <select name="review">${this.reviews.map(({ words }, i) => `<option value="${i}">${escaped(words.join(" "))}</option>`).join("")}</select></label><button type="button" name="all">all words back</button></div>
        <table><thead><tr><th scope="col">word</th><th scope="col">adds</th><th scope="col">against</th><th scope="col">for</th></tr></thead><tbody></tbody></table><p class="told" role="status"></p>`;
      this.querySelector("select").value = shown;
      this.querySelector("select").addEventListener("change", () => this.open());
      this.querySelector("[name=all]").addEventListener("click", () => this.open());
      this.querySelector("tbody").addEventListener("click", ({ target }) => {
        const button = target.closest("button");
        if (!button) return;
        this.bits ^= 1 << Number(button.value);
        this.follow();
      });
      this.open();
    }

    open() {
      this.review = this.reviews[Number(this.querySelector("select").value)];
      const { words } = this.review;
      this.bits = 2 ** words.length - 1;
      const bars = `<td class="number"></td><td class="bar minus"><i></i></td><td class="bar"><i></i></td>`;
      this.querySelector("tbody").innerHTML = words.map((word, i) => `<tr><td class="button"><button type="button" value="${i}">${escaped(word)}</button></td>${bars}</tr>`).join("") + `<tr><th scope="row">the end token and b</th>${bars}</tr>`;
      this.follow();
    }

    follow() {
      const found = read(this.review, this.bits);
      this.querySelectorAll("tbody tr").forEach((row, i) => {
        const [word, x] = rows(this.review, found)[i], button = row.querySelector("button");
        button?.setAttribute("aria-pressed", x !== null);
        button?.setAttribute("aria-label", x === null ? `${word}, crossed out` : `${word} ${signed(x)}`);
        row.querySelector(".number").textContent = x === null ? "" : signed(x);
        const [against, forIt] = row.querySelectorAll("i");
        const width = `${100 * Math.min(1, Math.abs(x ?? 0) / FULL)}%`;
        against.style.width = x < 0 ? width : 0;
        forIt.style.width = x > 0 ? width : 0;
      });
      this.querySelector(".told").textContent = verdict(found);
    }
  });
}
