// <head-switch>: the everyday model with the heads turned off that a reader unticks. The
// first sentence's translations without single heads are recorded; for two heads, or for
// another sentence, the page loads the model.
{
  const NAMES = ["encoder", "decoder", "cross"], LAYERS = [1, 2, 3], HEADS = [1, 2, 3, 4];
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const named = (id) => {
    const [name, layer, head] = id.split(".");
    return `${name} ${Number(layer) + 1}.${Number(head) + 1}`;
  };

  // The translations, each once, with the heads without which they come out.
  const still = ({ source, answers: { trained, ...others } }) => {
    const heads = {};
    for (const [id, text] of Object.entries(others)) if (text !== trained) (heads[text] ??= []).push(named(id));
    const lines = [source, `All heads: ${trained}`, ...Object.entries(heads).map(([text, those]) => `Without ${those.join(", or ")}: ${text}`)];
    const texts = lines.map((line, i) => `<text x="8" y="${22 + 24 * i}">${escaped(line)}</text>`).join("");
    return `<svg class="drawing" style="max-width:720px" viewBox="0 0 720 ${14 + 24 * lines.length}" role="img" aria-label="${escaped(lines.join(" ")).replaceAll('"', "&quot;")}"><g class="words left">${texts}</g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { still };
  else {
    const grid = (name) => `<table><caption>${name}</caption><tr><th scope="col">layer</th>${HEADS.map((head) => `<th scope="col">${head}</th>`).join("")}</tr>`
      + LAYERS.map((layer, i) => `<tr><th scope="row">${layer}</th>${HEADS.map((head, j) => `<td><input type="checkbox" checked value="${name}.${i}.${j}" aria-label="${name}, layer ${layer}, head ${head}"></td>`).join("")}</tr>`).join("") + "</table>";

    customElements.define("head-switch", class extends HTMLElement {
      connectedCallback() {
        const { source, answers } = JSON.parse(this.querySelector("script").textContent);
        this.known = {}; // answers by sentence and heads, or the promises of them
        for (const [id, text] of Object.entries(answers)) this.known[JSON.stringify([source, id === "trained" ? [] : [id]])] = text;
        const box = Object.assign(document.createElement("div"), { className: "part" });
        box.innerHTML = `<form class="controls"><label>English <input type="text" name="source"></label><button>translate</button><button type="button" name="all">all heads on</button></form>
          <div class="grids">${NAMES.map(grid).join("")}</div>
          <p class="told" role="status"></p>
          <p class="hint">The arrow keys go from head to head. With one head off, this sentence’s translations are recorded; for more, or a sentence of your own, the page loads the model, 8 MB.</p>`;
        this.append(box);
        this.querySelector("[name=source]").value = source;
        this.querySelector("form").addEventListener("submit", (event) => { event.preventDefault(); this.run(); });
        this.querySelector("[name=all]").addEventListener("click", () => {
          for (const each of this.boxes()) each.checked = true;
          this.run();
        });
        this.querySelector(".grids").addEventListener("change", () => this.run());
        for (const table of this.querySelectorAll("table")) this.within(table);
        this.run();
      }

      // A table is one stop of the Tab key; the arrow keys go on within it.
      within(table) {
        const all = [...table.querySelectorAll("input")];
        for (const each of all.slice(1)) each.tabIndex = -1;
        table.addEventListener("keydown", (event) => {
          const rows = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: HEADS.length, ArrowUp: -HEADS.length };
          const next = all[all.indexOf(event.target) + rows[event.key]];
          if (!next) return;
          event.preventDefault();
          [event.target.tabIndex, next.tabIndex] = [-1, 0];
          next.focus();
        });
      }

      boxes() { return [...this.querySelectorAll("[type=checkbox]")]; }
      say(text) { this.querySelector(".told").textContent = text; }

      async run() {
        const text = this.querySelector("[name=source]").value.trim();
        if (!text) return this.say("Type an English sentence first.");
        const off = this.boxes().filter((each) => !each.checked).map((each) => each.value);
        const asked = this.asked = JSON.stringify([text, off]);
        try {
          const lines = [`All heads: ${await this.answer(text, [])}`];
          if (asked === this.asked && off.length) lines.push(`Without ${off.map(named).join(", ")}: ${await this.answer(text, off)}`);
          return asked === this.asked && this.say(lines.join("\n"));
        } catch (error) {
          return asked === this.asked && this.say(error.message);
        }
      }

      answer(text, off) {
        const key = JSON.stringify([text, off]);
        return this.known[key] ??= this.translated(text, off).catch((error) => { delete this.known[key]; throw error; });
      }

      async translated(text, off) {
        const worker = await openModel((share) => this.say(`Loading the model … ${share ? `${Math.round(100 * share)} %` : ""}`));
        this.say("Translating …");
        const found = await worker.ask("translate", { text, switches: { off: new Set(off) } });
        if (!found) throw new Error("Another sentence came first: try once more.");
        return found.output || "(nothing)";
      }
    });
  }
}
