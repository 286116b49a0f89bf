// <nearest-rows>: a word that a reader types, and the rows of the everyday model's
// embedding that lie nearest to its own, as benchmarks/model/nearest_rows.py recorded them.
{
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

  // The tokens that a text may be: the word, which begins with ▁, and the piece of a word.
  const found = ({ names, nearest }, text) => [`▁${text}`, text].flatMap((token) => {
    const of = nearest[names.indexOf(token)];
    return of ? [{ token, rows: of.flatMap((at, i) => (i % 2 ? [] : [[names[at], of[i + 1] / 100]])) }] : [];
  });
  const title = ({ token }) => `nearest to ${token}, ${token.startsWith("▁") ? "a word or its beginning" : "a piece inside a word"}`;

  const still = (data) => {
    const lines = found(data, data.word).flatMap((each) => [[title(each)], ...each.rows]);
    const rows = lines.map(([name, x], i) => `<text x="${x ? 20 : 4}" y="${20 + 22 * i}"${x ? "" : ' font-weight="600"'}>${escaped(name)}</text>${x ? `<text x="160" y="${20 + 22 * i}">${x.toFixed(2)}</text><rect class="bar" x="210" y="${10 + 22 * i}" width="${(x * 150).toFixed(1)}" height="11"/>` : ""}`);
    return `<svg class="drawing" style="max-width:400px" viewBox="0 0 400 ${lines.length * 22 + 8}" role="img" aria-label="${lines.map(([name, x]) => (x ? `${name} ${x.toFixed(2)}` : `${name}:`)).join(" ")}"><g class="words left">${rows.join("")}</g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { found, still };
  else customElements.define("nearest-rows", class extends HTMLElement {
    connectedCallback() {
      this.data = JSON.parse(this.querySelector("script").textContent);
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls"><label>a word <input type="text" name="word" spellcheck="false" autocapitalize="off" value="${this.data.word}"></label></div>
        <div class="grids"></div><p class="told" role="status"></p>`;
      this.addEventListener("input", () => this.follow());
      this.follow();
    }

    follow() {
      const text = this.querySelector("input").value.trim();
      const all = found(this.data, text);
      const row = ([name, x]) => `<tr><th scope="row">${escaped(name)}</th><td class="number">${x.toFixed(2)}</td><td class="bar"><i style="width:${100 * x}%"></i></td></tr>`;
      this.querySelector(".grids").innerHTML = all.map((each) => `<table><caption>${escaped(title(each))}</caption><tbody>${each.rows.map(row).join("")}</tbody></table>`).join("");
      const { chance, nearest } = this.data;
      this.querySelector(".told").textContent = all.length
        ? `${all.map(({ token, rows: [[name, x]] }) => `The nearest row to ${token} is ${name} (${x.toFixed(2)}).`).join(" ")} A random vector finds one at ${chance.toFixed(2)}.`
        : `“${text}” isn’t one of the ${nearest.length} tokens that this page knows; try another word.`;
    }
  });
}
