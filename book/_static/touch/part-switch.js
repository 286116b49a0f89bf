// <part-switch>: the everyday model with one part of the Transformer left out. The first
// sentence's translations are recorded; for another the page loads the model.
{
  const PARTS = {
    positions: "the position codes",
    scale: "the division by √d_k",
    source: "every look at the source",
    residual: "the residual connections",
  };
  const switches = (model, part) => (part === "source"
    ? { heads: new Set(model.decoder.layers.flatMap((_, layer) => Array.from({ length: model.config.h }, (_, head) => `cross.${layer}.${head}`))) }
    : { [part]: false });
  const title = (part) => (part === "trained" ? "As trained" : `Without ${PARTS[part]}`);

  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  const still = ({ source, answers }) => {
    const lines = [source, ...Object.entries(answers).map(([part, text]) => `${title(part)}: ${text}`)];
    const texts = lines.map((line, i) => `<text x="8" y="${22 + 24 * i}">${escaped(line)}</text>`).join("");
    return `<svg class="drawing" style="max-width:560px" viewBox="0 0 560 ${14 + 24 * lines.length}" role="img" aria-label="${escaped(lines.join(" ")).replaceAll('"', "&quot;")}"><g class="words left">${texts}</g></svg>\n`;
  };

  // One search of the model, which lets the page breathe at each step.
  const translated = async (model, ids, off) => {
    const search = Transformer.beam(model, Transformer.encode(model, ids, off), { size: 4, alpha: 0.6 }, off);
    for (;;) {
      const { done, value } = search.next();
      if (done) return model.tokenizer.decode(value.tokens) || "(nothing)";
      await Live.pause();
    }
  };

  if (typeof module !== "undefined") module.exports = { still, switches, PARTS };
  else {
    const folder = document.currentScript.src.replace(/touch\/part-switch\.js.*/, "live/");
    const script = (name) => new Promise((resolve, reject) => {
      document.head.append(Object.assign(document.createElement("script"), { src: folder + name, onload: resolve, onerror: () => reject(new Error(`${name} is missing`)) }));
    });

    // One model for all such parts of a page, loaded once.
    let model = null;
    const opened = (show) => (model ??= (async () => {
      if (!window.Live) await script("translate.js");
      return Live.open(show);
    })().catch((error) => { model = null; throw error; }));

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
          <p class="hint">This sentence’s translations are recorded; for one of your own the page loads the model, 5 MB.</p>`;
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
          return this.say(error.message);
        }
      }

      async answers(text) {
        const model = await opened((share) => this.say(`Loading the model … ${share ? `${Math.round(100 * share)} %` : ""}`))
          .catch((error) => { throw new Error(`The model couldn’t be loaded: ${error.message}. Try once more.`); });
        const ids = model.tokenizer.encode(text), { max_length } = model.config;
        if (ids.length > max_length) throw new Error(`That’s ${ids.length} tokens, and this model reads at most ${max_length}.`);
        this.say("Translating …");
        return { trained: await translated(model, ids, {}), [this.off]: await translated(model, ids, switches(model, this.off)) };
      }
    });
  }
}
