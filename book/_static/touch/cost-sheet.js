// <cost-sheet>: sizes that a reader sets, and what such a Transformer costs.
{
  // As annotated_transformer.model.costs, with d_k = d_v = d_model / h, one shared
  // vocabulary, sinusoidal positions, and source and target of one length.
  const costs = ({ N, d_model, h, d_ff, vocabulary, length }) => {
    const d_k = d_model / h;
    const attention = d_model * h * 4 * d_k;
    const per_token = 2 * d_model * h * 2 * d_k;
    const per_pair = 2 * h * 2 * d_k;
    return {
      parameters: {
        embedding: vocabulary * d_model,
        "encoder attention": N * attention,
        "decoder self-attention": N * attention,
        "decoder source attention": N * attention,
        "feed-forward": 2 * N * (2 * d_model * d_ff + d_ff + d_model),
        norms: 5 * N * 2 * d_model,
      },
      flops: {
        projections: 3 * N * per_token * 2 * length,
        "scores and averages": N * per_pair * 3 * length ** 2,
        "feed-forward": 4 * N * d_model * d_ff * 2 * length,
        "output layer": 2 * d_model * vocabulary * length,
      },
      // Keys and values of the decoder's two attentions, in bytes of float32.
      cache: { "of the target": 4 * N * h * 2 * d_k * length, "of the source": 4 * N * h * 2 * d_k * length },
    };
  };

  const PRESETS = {
    base: { N: 6, d_model: 512, h: 8, d_ff: 2048, vocabulary: 37000, length: 25 },
    big: { N: 6, d_model: 1024, h: 16, d_ff: 4096, vocabulary: 37000, length: 25 },
  };
  const NAMES = { parameters: ["Parameters", ""], flops: ["FLOPs of one forward pass", ""], cache: ["Cache of one sentence", "B"] };
  const LIMITS = { N: 200, d_model: 65536, h: 1024, d_ff: 262144, vocabulary: 1e6, length: 1e6 };
  const sum = (parts) => Object.values(parts).reduce((a, b) => a + b);
  const short = (n, unit = "") => {
    const [by, sign] = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]].find(([size]) => n >= size) || [1, ""];
    return `${Number((n / by).toPrecision(3))} ${sign}${unit}`.trim();
  };

  const still = (data) => {
    const found = costs(data);
    const lines = Object.entries(NAMES).flatMap(([kind, [name, unit]]) => [
      [name, short(sum(found[kind]), unit), 1], ...Object.entries(found[kind]).map(([part, n]) => [part, short(n, unit), 0, n / sum(found[kind])]),
    ]);
    const rows = lines.map(([name, n, head, share], i) => `<text x="${head ? 4 : 20}" y="${20 + 22 * i}"${head ? ' font-weight="600"' : ""}>${name}</text><text x="200" y="${20 + 22 * i}">${n}</text>${head ? "" : `<rect class="bar" x="280" y="${10 + 22 * i}" width="${(share * 150).toFixed(1)}" height="11"/>`}`);
    return `<svg class="drawing" style="max-width:440px" viewBox="0 0 440 ${lines.length * 22 + 8}" role="img" aria-label="Parameters, operations and cache of the base model, part by part."><g class="words left">${rows.join("")}</g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { costs, still, PRESETS };
  else customElements.define("cost-sheet", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      const field = ([name, most]) => `<label>${name} <input type="number" name="${name}" min="1" max="${most}" step="1" value="${this.state[name]}"></label>`;
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls">${Object.entries(LIMITS).map(field).join("")}
          <button type="button" data-preset="base">base</button><button type="button" data-preset="big">big</button></div>
        <p class="told" role="status"></p><div class="grids"></div>`;
      this.addEventListener("input", () => this.follow());
      this.addEventListener("click", ({ target }) => {
        const preset = PRESETS[target.dataset.preset];
        if (!preset) return;
        for (const [name, value] of Object.entries(preset)) this.querySelector(`[name=${name}]`).value = value;
        this.follow();
      });
      this.follow();
    }

    follow() {
      const inputs = [...this.querySelectorAll("input")];
      const wrong = inputs.find((each) => !each.checkValidity() || !each.value);
      const state = Object.fromEntries(inputs.map((each) => [each.name, each.valueAsNumber]));
      const told = this.querySelector(".told");
      this.querySelector(".grids").classList.toggle("stale", Boolean(wrong || state.d_model % state.h));
      if (wrong) told.textContent = `${wrong.name} is a whole number from 1 to ${wrong.max}.`;
      else if (state.d_model % state.h) told.textContent = `d_model ${state.d_model} can't be cut into ${state.h} heads of one size: change one of the two.`;
      else {
        const found = costs(state);
        told.textContent = `${short(sum(found.parameters))} parameters; ${short(sum(found.flops))} FLOPs and ${short(sum(found.cache), "B")} of cache for ${state.length} tokens each way; heads of ${state.d_model / state.h}.`;
        this.querySelector(".grids").innerHTML = Object.entries(NAMES).map(([kind, [name, unit]]) => this.table(name, unit, found[kind])).join("");
      }
    }

    table(name, unit, parts) {
      const whole = sum(parts);
      const row = ([part, n]) => `<tr><th scope="row">${part}</th><td class="number" title="${n.toLocaleString("en")}">${short(n, unit)}</td><td class="bar"><i style="width:${(100 * n) / whole}%"></i></td></tr>`;
      return `<table><caption>${name}: ${short(whole, unit)}</caption><tbody>${Object.entries(parts).map(row).join("")}</tbody></table>`;
    }
  });
}
