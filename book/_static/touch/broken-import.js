// <broken-import>: one step of an import done wrongly: how far the scores move, and what
// the model still translates, as benchmarks/after/broken_imports.py recorded them.
{
  const STEPS = {
    none: "nothing",
    order: "order of coordinates",
    queries: "queries and keys swapped",
    activation: "ReLU for swish",
    biases: "biases of attention lost",
    output: "bias of the output lost",
    keys: "biases of keys lost",
  };
  const ROUNDING = 1e-4; // what the tests call equal
  const shown = (x) => (x < ROUNDING ? `${x.toExponential(0)}`.replace("e-", " · 10⁻").replace(/⁻(\d)$/, (_, n) => `⁻${"⁰¹²³⁴⁵⁶⁷⁸⁹"[n]}`) : `${x}`);
  const share = (x) => Math.max(0, Math.min(1, (Math.log10(x) + 6) / 7)); // 10⁻⁶ to 10
  const verdict = ({ difference, as_right }) => `${difference < ROUNDING ? "The scores say: equal." : "The scores say: broken."} ${as_right === 100 ? "The translations say: equal." : "The translations say: broken."}`;
  const told = (step, found) => `Broken: ${STEPS[step]}. A score moves by up to ${shown(found.difference)}; ${found.as_right} of 100 translations are those of the right import. ${verdict(found)}`;

  const still = ({ imports }) => {
    const lines = Object.entries(imports).map(([step, found], i) => `<text x="4" y="${42 + 24 * i}">${STEPS[step]}</text><rect class="bar" x="190" y="${31 + 24 * i}" width="${(100 * share(found.difference)).toFixed(1)}" height="12"/><text x="296" y="${42 + 24 * i}">${shown(found.difference)}</text><text x="376" y="${42 + 24 * i}">${found.as_right}</text>`);
    const label = Object.entries(imports).map(([step, found]) => told(step, found)).join(" ");
    return `<svg class="drawing" style="max-width:430px" viewBox="0 0 430 ${32 + 24 * lines.length}" role="img" aria-label="${label}"><g class="words left"><text x="4" y="18">broken</text><text x="190" y="18">a score moves by</text><text x="356" y="18">same of 100</text>${lines.join("")}</g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { still, told, shown, STEPS };
  else customElements.define("broken-import", class extends HTMLElement {
    connectedCallback() {
      this.data = JSON.parse(this.querySelector("script").textContent);
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      const option = (step) => `<option value="${step}">${STEPS[step]}</option>`;
      part.innerHTML = `<div class="controls"><label>break <select>${Object.keys(STEPS).map(option).join("")}</select></label></div>
        <div class="grids"></div><p class="told" role="status"></p>`;
      this.addEventListener("input", () => this.follow());
      this.follow();
    }

    follow() {
      const step = this.querySelector("select").value;
      const { sources, imports } = this.data;
      const rows = sources.map((source, i) => `<tr><th scope="row">${source}</th><td>${imports[step].texts[i] || "(nothing)"}</td></tr>`);
      this.querySelector(".grids").innerHTML = `<table><caption>it translates</caption><tbody>${rows.join("")}</tbody></table>`;
      this.querySelector(".told").textContent = told(step, imports[step]);
    }
  });
}
