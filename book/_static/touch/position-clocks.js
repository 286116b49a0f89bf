// <position-clocks>: a position that a reader drags. Clocks turn, and the dot product of
// its code with all others follows; a shift turns each clock by an angle of its own.
{
  const LAST = 100;
  const frequency = (i, d_model) => 10000 ** ((-2 * i) / d_model);

  // As annotated_transformer.model.position.sinusoids: sines in even, cosines in odd places.
  const code = (position, d_model) => Array.from({ length: d_model }, (_, c) => {
    const angle = position * frequency(c >> 1, d_model);
    return c % 2 ? Math.cos(angle) : Math.sin(angle);
  });
  const product = (p, q, d_model) => {
    const other = code(q, d_model);
    return code(p, d_model).reduce((sum, x, c) => sum + x * other[c], 0);
  };
  const x = (position) => 40 + position * 4;
  const y = (value) => 250 - value * 110;
  const chosen = (d_model) => [0, 0.0625, 0.125, 0.1875, 0.25, 0.375].map((share) => Math.round(share * d_model));

  const clock = (i, n, { position, shift, d_model }) => {
    const at = 60 + n * 72;
    const hand = (where, kind) => {
      const angle = where * frequency(i, d_model);
      return `<path class="${kind}" d="M${at} 48 L${(at + 26 * Math.sin(angle)).toFixed(1)} ${(48 - 26 * Math.cos(angle)).toFixed(1)}"/>`;
    };
    const turn = ((shift * frequency(i, d_model) * 180) / Math.PI).toFixed(0).replace("-", "−").replace("−0", "0");
    return `<circle class="face" cx="${at}" cy="48" r="30"/>${shift ? hand(position + shift, 'moved" stroke-dasharray="4 6') : ""}${hand(position, "hand")}<text x="${at}" y="12">i = ${i}</text><text class="turn" x="${at}" y="98">${shift ? `turns ${turn}°` : ""}</text>`;
  };

  // The whole drawing, also the one for who has no script.
  const draw = (state) => {
    const { position, shift, d_model } = state;
    const whole = d_model / 2;
    const curve = Array.from({ length: LAST + 1 }, (_, q) => `${x(q)} ${y(product(position, q, d_model) / whole).toFixed(1)}`);
    const mark = (q, kind) => `<circle class="${kind}" cx="${x(q)}" cy="${y(product(position, q, d_model) / whole).toFixed(1)}" r="6"/>`;
    const key = (at, kind, words) => `<path class="${kind}" d="M${at} -13 h26"/><text x="${at + 34}" y="-8">${words}</text>`;
    const hands = `<g class="words left">${key(40, "hand", `position ${position}`)}${shift ? key(200, 'moved" stroke-dasharray="4 6', `shifted by ${`${shift}`.replace("-", "−")}: position ${position + shift}`) : ""}</g>`;
    const ticks = [0, 20, 40, 60, 80, 100].map((q) => `<text x="${x(q)}" y="306">${q}</text>`).join("");
    return `<svg class="drawing clocks" style="max-width:460px" viewBox="0 -24 460 354" role="img" aria-label="Six clocks at position ${position}${shift ? ` and at ${position + shift}` : ""}, and below them the dot product of the code of position ${position} with the codes of positions 0 to ${LAST}, highest at ${position}.">${hands}<g class="words">${chosen(d_model).map((i, n) => clock(i, n, state)).join("")}</g><path class="axis" d="M40 250 H440 M40 140 V290"/><polyline class="curve" points="${curve.join(", ")}"/>${shift ? mark(position + shift, "there") : ""}${mark(position, "here-dot")}<g class="words">${ticks}<text x="240" y="326">position</text></g><g class="words left"><text x="46" y="128">dot product with position ${position}, as a share of the largest</text><text x="20" y="145">1</text><text x="20" y="255">0</text></g><rect class="grip" x="40" y="134" width="400" height="180" fill="none"/></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { code, product, still: (data) => draw(data) };
  else customElements.define("position-clocks", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      const { position, shift, d_model } = this.state;
      this.wanted = shift;
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls">
          <label>position <input type="range" name="position" min="0" max="${LAST}" value="${position}"><output></output></label>
          <label>shift <input type="range" name="shift" min="-20" max="20" value="${shift}"><output></output></label>
          <label>d_model <select name="d_model">${[16, 64, 128, 512].map((d) => `<option ${d === d_model ? "selected" : ""}>${d}</option>`).join("")}</select></label>
        </div><div class="picture"></div><p class="told" role="status"></p>`;
      this.addEventListener("input", ({ target }) => this.set(target.name, Number(target.value)));
      this.picture = this.querySelector(".picture");
      this.picture.addEventListener("pointerdown", (event) => {
        this.picture.setPointerCapture(event.pointerId);
        this.drag(event);
      });
      this.picture.addEventListener("pointermove", (event) => {
        if (event.buttons) this.drag(event);
      });
      this.follow();
    }

    drag(event) {
      const svg = this.picture.firstElementChild;
      const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
      if (point.y > 110) this.set("position", Math.max(0, Math.min(LAST, Math.round((point.x - 40) / 4))));
    }

    set(name, value) {
      if (name === "shift") this.wanted = value;
      else this.state[name] = value;
      this.follow();
    }

    follow() {
      const { state } = this;
      // A shifted position stays on the line; away from its end the shift comes back.
      state.shift = Math.max(-state.position, Math.min(LAST - state.position, this.wanted));
      for (const input of this.querySelectorAll("input")) {
        input.value = state[input.name];
        input.nextElementSibling.textContent = input.value.replace("-", "−");
      }
      this.picture.innerHTML = draw(state);
      const there = state.position + state.shift;
      const found = product(state.position, there, state.d_model).toFixed(2).replace("-", "−");
      this.querySelector(".told").textContent = `The codes of ${state.position} and ${there} have the dot product ${found}, of ${state.d_model / 2} at most.`;
    }
  });
}
