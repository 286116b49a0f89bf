// <part-switch>: the everyday model with one part of the Transformer left out. The first
// sentence's translations are recorded; for another the page loads the model.
{
  const PARTS = {
    positions: "the position codes",
    scale: "the division by √d_k = 8", // its heads have 64 numbers
    source: "every look at the source",
    residual: "the residual connections",
  };
  const title = (part) => (part === "trained" ? "As trained" : `Without ${PARTS[part]}`);

  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const still = ({ source, answers }) => {
    const lines = [source, ...Object.entries(answers).map(([part, text]) => `${title(part)}: ${text}`)];
    const texts = lines.map((line, i) => `<text x="8" y="${22 + 24 * i}">${escaped(line)}</text>`).join("");
    return `<svg class="drawing" style="max-width:560px" viewBox="0 0 560 ${14 + 24 * lines.length}" role="img" aria-label="${escaped(lines.join(" ")).replaceAll('"', "&quot;")}"><g class="words left">${texts}</g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { still, PARTS };
  else {
    customElements.define("part-switch", class extends HTMLElement {
      connectedCallback() {
        const { source, answers, part } = JSON.parse(this.querySelector("script").textContent);
        this.off = part;
        this.known = { [source]: answers }; // answers, or the promise of them
        this.asked = source;
        const box = Object.assign(document.createElement("div"), { className: "part" });
        box.innerHTML = `<form class="controls"><label>English <input type="text" name="source"></label><button>translate</button></form>
          <div class="controls"><label><input type="checkbox" name="off">leave out ${PARTS[part]}</label></div>
          <p class="told" role="status"></p>
          <p class="hint">This sentence’s translations are recorded; for one of your own the page loads the model, 8 MB.</p>`;
        this.append(box);
        this.querySelector("[name=source]").value = source;
        this.querySelector("form").addEventListener("submit", (event) => { event.preventDefault(); this.run(); });
        this.querySelector("[name=off]").addEventListener("change", () => this.run());
        this.show(answers);
      }

      say(text) { this.querySelector(".told").textContent = text; }

      show(answers) {
        const parts = this.querySelector("[name=off]").checked ? ["trained", this.off] : ["trained"];
        this.say(parts.map((part) => `${title(part)}: ${answers[part]}`).join("\n"));
      }

      async run() {
        const text = this.querySelector("[name=source]").value.trim();
        if (!text) return this.say("Type an English sentence first.");
        this.asked = text;
        try {
          const answers = await (this.known[text] ??= this.answers(text));
          return text === this.asked && this.show(answers);
        } catch (error) {
          delete this.known[text];
          return text === this.asked && this.say(error.message);
        }
      }

      async answers(text) {
        const worker = await openModel((share) => this.say(`Loading the model … ${share ? `${Math.round(100 * share)} %` : ""}`));
        this.say("Translating …");
        const translated = async (switches) => {
          const found = await worker.ask("translate", { text, switches });
          if (!found) throw new Error("Another sentence came first: try once more.");
          return found.output || "(nothing)";
        };
        return { trained: await translated({}), [this.off]: await translated({ [this.off]: false }) };
      }
    });
  }
}
