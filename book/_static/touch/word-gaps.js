// <word-gaps>: what a model puts into the gap of a phrase, as it learns, by the record of
// benchmarks/after/hidden_words.py. A reader moves the gap and the number of updates.
{
  const safe = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
  const bare = (token) => token.replace("▁", "");
  const percent = (share) => `${Math.round(100 * share)} %`;
  const phrase = ({ tokens, gap }) => tokens.map((token, i) => (i === gap ? (token.startsWith("▁") ? " [MASK]" : "[MASK]") : token.replace("▁", " "))).join("").trim();
  const here = ({ steps, step, gap }) => ({ step: steps[step].step, ...steps[step].gaps[gap] });

  const picture = (state) => {
    const { step, likeliest } = here(state), own = state.tokens[state.gap];
    const bar = ([, share], i) => `<rect x="112" y="${6 + 24 * i}" width="${Math.max(1, 220 * share).toFixed(1)}" height="16" rx="2"/>`;
    const right = likeliest.map((each, i) => (each[0] === own ? bar(each, i) : "")).join("");
    const wrong = likeliest.map((each, i) => (each[0] === own ? "" : bar(each, i))).join("");
    const names = likeliest.map(([token], i) => `<text x="4" y="${19 + 24 * i}">${safe(bare(token))}</text>`).join("");
    const shares = likeliest.map(([, share], i) => `<text x="${(120 + 220 * share).toFixed(1)}" y="${19 + 24 * i}">${percent(share)}</text>`).join("");
    const said = likeliest.map(([token, share]) => `${bare(token)} ${percent(share)}`).join(", ");
    return `<svg class="drawing" style="max-width:400px" viewBox="0 0 400 ${24 * likeliest.length + 8}" role="img" aria-label="After ${step.toLocaleString("en")} updates, “${safe(phrase(state))}” is filled with: ${safe(said)}."><g class="boxes">${wrong}</g><g class="boxes second">${right}</g><g class="words left">${names}${shares}</g></svg>\n`;
  };
  const sentence = (state) => {
    const { step, own } = here(state);
    return `“${phrase(state)}”, after ${step.toLocaleString("en")} updates: “${bare(state.tokens[state.gap])}”, which stood there, has ${percent(own)}.`;
  };

  if (typeof module !== "undefined") module.exports = { phrase, sentence, still: picture };
  else customElements.define("word-gaps", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      const { tokens, steps, step, gap } = this.state;
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls">
          <label>updates <input type="range" name="step" min="0" max="${steps.length - 1}" value="${step}"><output></output></label>
          <label>hidden <select name="gap">${tokens.map((each, i) => `<option value="${i}" ${i === gap ? "selected" : ""}>${safe(bare(each))}</option>`).join("")}</select></label>
        </div><p class="told" role="status"></p><div class="picture"></div>`;
      this.addEventListener("input", ({ target }) => {
        this.state[target.name] = Number(target.value);
        this.follow();
      });
      this.follow();
    }

    follow() {
      const { steps, step } = this.state;
      this.querySelector("output").textContent = steps[step].step.toLocaleString("en");
      this.querySelector(".picture").innerHTML = picture(this.state);
      this.querySelector(".told").textContent = sentence(this.state);
    }
  });
}
