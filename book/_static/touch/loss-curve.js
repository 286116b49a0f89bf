// <loss-curve>: the price of a token over the probability of the right one. A reader drags
// the probability and, where the data has `eps`, the share that smoothing gives away.
{
  // annotated_transformer.training.loss, where the wrong tokens share 1 − p evenly.
  const loss = (p, eps, vocab) => -(1 - eps) * Math.log(p) - (eps && eps * Math.log((1 - p) / (vocab - 1)));

  const P = [...Array.from({ length: 99 }, (_, i) => (i + 1) / 100), 0.995, 0.998, 0.999];
  const x = (p) => 44 + p * 360;
  const y = (nats) => 214 - nats * 36;
  const at = (p, nats) => `${x(p).toFixed(1)} ${y(nats).toFixed(1)}`;
  const curve = (eps, vocab) => `M${P.map((p) => at(p, loss(p, eps, vocab))).join(" L")}`;
  const push = ({ p, eps = 0 }) => 1 - eps - p;

  const draw = (state) => {
    const { p, eps = 0, vocab = 37000 } = state;
    const here = loss(p, eps, vocab);
    const ticks = [0, 0.25, 0.5, 0.75, 1].map((each) => `<text x="${x(each)}" y="234">${each}</text>`).join("");
    const nats = [0, 1, 2, 3, 4, 5].map((each) => `<text x="30" y="${y(each) + 5}">${each}</text>`).join("");
    const plain = eps ? `<path class="axis" stroke-dasharray="4 4" d="${curve(0, vocab)}"/>` : "";
    const asked = eps ? `<path class="axis" d="M${x(1 - eps).toFixed(1)} 214 V30"/>` : "";
    const words = eps ? `<text x="${x(1 - eps).toFixed(1)}" y="22">asked: ${(1 - eps).toFixed(2)}</text>` : "";
    return `<svg class="drawing" style="max-width:440px" viewBox="0 0 440 262" role="img" aria-label="The price of a token in nats over the probability p of the right one${eps ? `, smoothed with ε = ${eps}, and dashed without` : ", a curve that falls to 0 at p = 1"}. At p = ${p} it is ${here.toFixed(2)}."><path class="axis" d="M44 18 V214 H410"/><g class="words">${ticks}${nats}${words}<text x="224" y="256">p, the probability of the right token</text></g><g class="words left"><text x="50" y="16">price, nats</text></g>${plain}${asked}<path class="curve" d="${curve(eps, vocab)}"/><circle class="here-dot" cx="${x(p).toFixed(1)}" cy="${y(here).toFixed(1)}" r="7"/><rect class="grip" x="44" y="10" width="360" height="210" fill="none"/></svg>\n`;
  };

  const told = (state) => {
    const { p, eps, vocab = 37000 } = state;
    const here = loss(p, eps ?? 0, vocab);
    const price = `At p = ${p.toFixed(3)} the token costs ${here.toFixed(3)} nats`;
    if (eps === undefined) return `${price}.`;
    const least = eps && loss(1 - eps, eps, vocab);
    const way = Math.abs(push(state)) < 5e-4 ? "stays" : push(state) > 0 ? "goes up" : "goes down";
    return `${price}, ${Math.max(0, here - least).toFixed(3)} above the lowest price. Training: the right token’s score ${way}.`;
  };

  if (typeof module !== "undefined") module.exports = { loss, push, told, still: draw };
  else customElements.define("loss-curve", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      const { p, eps } = this.state;
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls">
          <label>p <input type="range" name="p" min="0.01" max="0.999" step="0.001" value="${p}"><output></output></label>
          ${eps === undefined ? "" : `<label>ε <input type="range" name="eps" min="0" max="0.3" step="0.01" value="${eps}"><output></output></label>`}
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
      this.set("p", Math.max(0.01, Math.min(0.999, Math.round(((point.x - 44) / 360) * 1000) / 1000)));
    }

    set(name, value) {
      this.state[name] = value;
      this.follow();
    }

    follow() {
      for (const input of this.querySelectorAll("input")) {
        input.value = this.state[input.name];
        input.nextElementSibling.textContent = this.state[input.name].toFixed(input.name === "p" ? 3 : 2);
      }
      this.picture.innerHTML = draw(this.state);
      this.querySelector(".told").textContent = told(this.state);
    }
  });
}
