// <beam-steps>: a beam search of the everyday model, step by step. The first sentence's
// search is recorded; for other sentences and settings the page loads the model.
{
  const STATES = { kept: "lives on", ended: "has ended", pruned: "is dropped" };
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
  const signed = (number) => number.toFixed(2).replace("-", "−");
  const last = (nodes) => Math.max(...nodes.map(({ step }) => step));
  // What has ended by a step, the best score first.
  const ended = (nodes, step) => nodes.filter((node) => node.state === "ended" && node.step <= step)
    .sort((a, b) => b.score - a.score);

  // The tree: a column for each step, a box for each candidate.
  const still = ({ source, size, nodes }) => {
    const rows = {}, wide = 82, high = 46;
    const placed = nodes.map((node) => {
      const row = rows[node.step] ??= 0;
      rows[node.step] += 1;
      return { ...node, x: 4 + wide * node.step, y: 8 + high * row };
    });
    const width = wide * (last(nodes) + 1), height = 8 + high * Math.max(...Object.values(rows));
    const lines = placed.slice(1).map(({ x, y, parent }) => `<path d="M${placed[parent].x + 72} ${placed[parent].y + 18} L${x} ${y + 18}"/>`).join("");
    const boxes = (those) => placed.filter(({ state }) => those.includes(state))
      .map(({ x, y }) => `<rect x="${x}" y="${y}" width="72" height="36" rx="5"/>`).join("");
    const words = placed.map(({ x, y, name, total }) => `<text x="${x + 36}" y="${y + 16}">${escaped(name)}</text>`
      + (total === undefined ? "" : `<text x="${x + 36}" y="${y + 31}">${signed(total)}</text>`)).join("");
    const best = ended(nodes, last(nodes))[0];
    const label = `A beam of ${size} over “${source}”, a column for each step. Blue beginnings live on, orange ones have ended, dashed ones are dropped. ${best ? `The best that ends is “${best.text}”.` : ""}`;
    return `<svg class="drawing" style="max-width:${width}px" viewBox="0 0 ${width} ${height}" role="img" aria-label="${escaped(label)}"><g class="arrows">${lines}</g><g class="boxes">${boxes(["kept"])}</g><g class="boxes second">${boxes(["ended"])}</g><g class="boxes" stroke-dasharray="3 3" opacity=".5">${boxes(["pruned"])}</g><g class="words">${words}</g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { still, ended };
  else {
    customElements.define("beam-steps", class extends HTMLElement {
      connectedCallback() {
        const { source, size, alpha, nodes } = JSON.parse(this.querySelector("script").textContent);
        this.known = { [JSON.stringify([source, size, alpha])]: nodes }; // searches, or their promises
        const box = Object.assign(document.createElement("div"), { className: "part" });
        box.innerHTML = `<form class="controls"><label>English <input type="text" name="source"></label><button>search</button></form>
          <div class="controls"><label>beam <select name="size">${[1, 2, 4, 8].map((n) => `<option>${n}</option>`).join("")}</select></label>
          <label>α <input type="range" name="alpha" min="0" max="2" step="0.1"><output></output></label>
          <label>step <input type="range" name="step" min="1" step="1"><output></output></label></div>
          <p class="told" role="status"></p><div class="grids"><table class="grows"></table><table class="ends"></table></div>
          <p class="hint">This search is recorded; for another sentence, beam or α the page loads the model, 8 MB.</p>`;
        this.append(box);
        this.at("source").value = source;
        this.at("size").value = size;
        this.at("alpha").value = alpha;
        this.querySelector("form").addEventListener("submit", (event) => { event.preventDefault(); this.run(); });
        for (const name of ["size", "alpha"]) this.at(name).addEventListener("change", () => this.run());
        this.at("alpha").addEventListener("input", () => this.number("alpha"));
        this.at("step").addEventListener("input", () => this.show());
        this.number("alpha");
        this.load(nodes, 3);
      }

      at(name) { return this.querySelector(`[name=${name}]`); }
      number(name) { this.at(name).nextElementSibling.textContent = this.at(name).value; }
      say(text) { this.querySelector(".told").textContent = text; }

      load(nodes, step) {
        this.nodes = nodes;
        this.at("step").max = last(nodes);
        this.at("step").value = Math.min(step, last(nodes));
        this.show();
      }

      show() {
        const { nodes } = this, step = Number(this.at("step").value);
        this.number("step");
        const here = nodes.filter((node) => node.step === step), done = ended(nodes, step);
        const row = (node, ...cells) => `<tr><th scope="row">${escaped(node.text || "(nothing)")}</th>${cells.map((each) => `<td class="number">${each}</td>`).join("")}</tr>`;
        this.querySelector(".grows").innerHTML = `<caption>Candidates of step ${step}</caption><tr><th scope="col">so far</th><th scope="col">log P</th><th scope="col">what becomes of it</th></tr>`
          + here.map((node) => row(node, signed(node.total), STATES[node.state])).join("");
        this.querySelector(".ends").innerHTML = done.length ? `<caption>Ended, by score</caption><tr><th scope="col">sentence</th><th scope="col">log P</th><th scope="col">score</th></tr>`
          + done.slice(0, 4).map((node) => row(node, signed(node.total), signed(node.score))).join("") : "";
        const best = done[0] ? `The best that has ended: ${done[0].text || "(nothing)"}` : "Nothing has ended yet.";
        this.say(`Step ${step} of ${last(nodes)}. ${best}`);
      }

      async run() {
        const text = this.at("source").value.trim();
        if (!text) return this.say("Type an English sentence first.");
        const size = Number(this.at("size").value), alpha = Number(this.at("alpha").value);
        const key = this.asked = JSON.stringify([text, size, alpha]);
        try {
          const nodes = await (this.known[key] ??= this.search(text, { size, alpha }));
          return key === this.asked && this.load(nodes, last(nodes));
        } catch (error) {
          delete this.known[key];
          return key === this.asked && this.say(error.message);
        }
      }

      async search(text, options) {
        const worker = await openModel((share) => this.say(`Loading the model … ${share ? `${Math.round(100 * share)} %` : ""}`));
        this.say("Searching …");
        const found = await worker.ask("translate", { text, options });
        if (!found) throw new Error("Another search came first: try once more.");
        return found.tree;
      }
    });
  }
}
