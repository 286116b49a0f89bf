// <next-token>: the probabilities of a text's next token, as a model gave them
// (benchmarks/after/next_token.py), under temperature, top-k and top-p; a reader draws.
{
  const SHOWN = 10, DRAWN = 20;
  // annotated_transformer.decoding.search.sampling_distribution, of a sorted row.
  const chances = (logs, { T = 1, k = 0, p = 1 }) => {
    const normed = (each) => {
      const sum = each.reduce((all, one) => all + one, 0);
      return each.map((one) => one / sum);
    };
    const kept = normed(logs.map((log, i) => (k && i >= k ? 0 : Math.exp((log - logs[0]) / T))));
    if (p === 1) return kept;
    let before = 0;
    return normed(kept.map((one) => {
      const has = before < p;
      before += one;
      return has ? one : 0;
    }));
  };
  const draw = (found, uniform) => {
    let sum = 0;
    const at = found.findIndex((one) => (sum += one) > uniform);
    return at < 0 ? found.findLastIndex((one) => one > 0) : at;
  };

  const safe = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const name = (token) => token.replaceAll(" ", "·").replaceAll("\n", "⏎");
  const percent = (share) => (share && share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(1)} %`);
  const here = ({ prompts, at = 0, ...knobs }) => {
    const { prompt, tokens, log_probs } = prompts[at];
    const found = chances(log_probs, knobs);
    return { prompt, tokens, found, kept: found.filter(Boolean).length, tail: found.slice(SHOWN).reduce((all, one) => all + one, 0) };
  };

  const picture = (state) => {
    const { prompt, tokens, found, tail } = here(state);
    const rows = [...tokens.slice(0, SHOWN).map((token, i) => [name(token), found[i]]), [`${tokens.length - SHOWN} others`, tail]];
    const bars = rows.map(([, share], i) => `<rect x="112" y="${6 + 24 * i}" width="${Math.max(share && 1, 220 * share).toFixed(1)}" height="16" rx="2"/>`);
    const names = rows.map(([text], i) => `<text x="4" y="${19 + 24 * i}">${safe(text)}</text>`).join("");
    const shares = rows.map(([, share], i) => `<text x="${(120 + 220 * share).toFixed(1)}" y="${19 + 24 * i}">${share ? percent(share) : "cut"}</text>`).join("");
    const said = rows.map(([text, share]) => `${text} ${percent(share)}`).join(", ");
    return `<svg class="drawing" style="max-width:400px" viewBox="0 0 400 ${24 * rows.length + 8}" role="img" aria-label="After “${safe(prompt)}”: ${safe(said)}."><g class="boxes">${bars.slice(0, SHOWN).join("")}</g><g class="boxes second">${bars[SHOWN]}</g><g class="words left">${names}${shares}</g></svg>\n`;
  };
  const sentence = (state) => {
    const { found, kept, tail } = here(state);
    return `${kept} ${kept === 1 ? "token" : "tokens"} can be drawn. The likeliest has ${percent(found[0])}, the ${found.length - SHOWN} others together ${percent(tail)}.`;
  };

  if (typeof module !== "undefined") module.exports = { chances, draw, sentence, still: picture };
  else customElements.define("next-token", class extends HTMLElement {
    connectedCallback() {
      this.state = { at: 0, T: 1, k: 0, p: 1, ...JSON.parse(this.querySelector("script").textContent) };
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      const range = (label, key, least, most, step, value) => `<label>${label} <input type="range" name="${key}" min="${least}" max="${most}" step="${step}" value="${value}"><output></output></label>`;
      part.innerHTML = `<div class="controls">
          <label>after <select name="at">${this.state.prompts.map(({ prompt }, i) => `<option value="${i}">${safe(prompt)}</option>`).join("")}</select></label>
          ${range("T", "T", 0.1, 2, 0.1, 1)}${range("top-k", "k", 1, 51, 1, 51)}${range("top-p", "p", 0.05, 1, 0.05, 1)}
          <button type="button">Draw ${DRAWN} tokens</button>
        </div><p class="told" role="status"></p><div class="picture"></div><p class="drawn" role="status"></p>`;
      this.addEventListener("input", ({ target }) => {
        this.state[target.name] = target.name === "k" && target.value === target.max ? 0 : Number(target.value);
        this.querySelector(".drawn").textContent = "";
        this.follow();
      });
      this.querySelector("button").addEventListener("click", () => this.draw());
      this.follow();
    }

    draw() {
      const { tokens, found } = here(this.state);
      const drawn = Array.from({ length: DRAWN }, () => draw(found, Math.random()));
      const outside = drawn.filter((i) => i >= SHOWN).length;
      this.querySelector(".drawn").textContent = `Drawn: ${drawn.map((i) => name(tokens[i])).join(" ")} (${outside} of ${DRAWN} are among the others).`;
    }

    follow() {
      const { T, k, p } = this.state;
      const says = [T.toFixed(1), k || "off", p === 1 ? "off" : p.toFixed(2)];
      this.querySelectorAll("output").forEach((each, i) => { each.textContent = says[i]; });
      this.querySelector(".picture").innerHTML = picture(this.state);
      this.querySelector(".told").textContent = sentence(this.state);
    }
  });
}
