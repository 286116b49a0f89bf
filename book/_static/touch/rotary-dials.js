// <rotary-dials>: a query and a key whose positions a reader moves. Each pair of entries is
// a hand that turns with its position; the score follows the distance alone.
{
  const LAST = 40;
  const frequency = (i, d_k) => 10000 ** ((-2 * i) / d_k);

  // As annotated_transformer.after.long_texts.rotate, for one vector.
  const rotate = (vector, position) => vector.map((_, c) => {
    const angle = position * frequency(c >> 1, vector.length);
    const [a, b] = [vector[c & ~1], vector[c | 1]];
    return c % 2 ? a * Math.sin(angle) + b * Math.cos(angle) : a * Math.cos(angle) - b * Math.sin(angle);
  });
  const score = ({ query, key, position, distance }) => {
    const turned = rotate(key, position);
    return rotate(query, position + distance).reduce((sum, x, c) => sum + x * turned[c], 0) / Math.sqrt(query.length);
  };

  const dial = (i, { query, key, position, distance }) => {
    const at = 58 + i * 108, shown = 44;
    const hand = (vector, where, kind) => {
      const [a, b] = rotate(vector, where).slice(2 * i, 2 * i + 2);
      const length = Math.hypot(a, b);
      return `<path class="${kind}" d="M${at} 62 L${(at + (shown * a) / length).toFixed(1)} ${(62 - (shown * b) / length).toFixed(1)}"/>`;
    };
    const turn = ((frequency(i, query.length) * 180) / Math.PI).toPrecision(2);
    return `<circle class="face" cx="${at}" cy="62" r="50"/>${hand(key, position, 'moved" stroke-dasharray="4 6')}${hand(query, position + distance, "hand")}<text x="${at}" y="134">${Number(turn)}° a place</text>`;
  };
  const draw = (state) => {
    const { words: [one, other], position, distance, query } = state;
    const line = (at, kind, words) => `<path class="${kind}" d="M${at} 160 h26"/><text x="${at + 34}" y="165">${words}</text>`;
    const pairs = Array.from({ length: query.length / 2 }, (_, i) => dial(i, state)).join("");
    return `<svg class="drawing clocks" style="max-width:440px" viewBox="0 0 440 196" role="img" aria-label="Four dials, each with the hand of a query at position ${position + distance} and of a key at ${position}. The score is ${score(state).toFixed(2)}."><g class="words">${pairs}</g><g class="words left">${line(10, "hand", `query of “${one}”, at ${position + distance}`)}${line(226, 'moved" stroke-dasharray="4 6', `key of “${other}”, at ${position}`)}</g><g class="words"><text x="220" y="190">score ${score(state).toFixed(2).replace("-", "−")}</text></g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { rotate, score, still: draw };
  else customElements.define("rotary-dials", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      const range = (name, words, min) => `<label>${words} <input type="range" name="${name}" min="${min}" max="${LAST}" value="${this.state[name]}"><output></output></label>`;
      part.innerHTML = `<div class="controls">${range("position", "move both", 0)}${range("distance", "places apart", 0)}</div><div class="picture"></div><p class="told" role="status"></p>`;
      this.addEventListener("input", ({ target }) => {
        this.state[target.name] = Number(target.value);
        this.follow();
      });
      this.follow();
    }

    follow() {
      const { state } = this;
      for (const input of this.querySelectorAll("input")) input.nextElementSibling.textContent = state[input.name];
      this.querySelector(".picture").innerHTML = draw(state);
      const found = score(state).toFixed(2).replace("-", "−");
      this.querySelector(".told").textContent = `The query at ${state.position + state.distance} meets the key ${state.distance} places before it: score ${found}.`;
    }
  });
}
