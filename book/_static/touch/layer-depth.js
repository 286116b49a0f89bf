// <layer-depth>: how large vectors and first gradients are in each of 1 to 24 decoder layers, by
// the numbers that benchmarks/model/depth.py has recorded.
{
  const HEIGHT = 110;
  // Powers of ten from LOW to HIGH fill a panel.
  const panel = (title, values, top, [low, high]) => {
    const x = (i) => 48 + i * 16;
    const y = (value) => {
      const share = (Math.log10(value) - low) / (high - low);
      return top + HEIGHT * (1 - Math.max(0, Math.min(1, share)));
    };
    const powers = Array.from({ length: high - low + 1 }, (_, i) => low + i);
    const lines = powers.map((p) => `<path class="axis" stroke-opacity=".35" d="M44 ${y(10 ** p).toFixed(1)} H436"/><text x="23" y="${(y(10 ** p) + 5).toFixed(1)}">${Number(`1e${p}`)}</text>`).join("");
    // A logarithmic axis has no zero for a bar to stand on.
    const dots = values.map((v, i) => `<circle class="here-dot" cx="${x(i) + 6}" cy="${y(v).toFixed(1)}" r="4.5"/>`).join("");
    return `<g class="words left"><text x="44" y="${top - 14}">${title}</text></g><g class="words">${lines}${[1, 6, 12, 18, 24].map((n) => `<text x="${x(n - 1) + 6}" y="${top + HEIGHT + 18}">${n}</text>`).join("")}</g>${dots}`;
  };

  const draw = ({ way, N, runs }) => {
    const { sizes, gradients } = runs[way][N - 1];
    return `<svg class="drawing" style="max-width:450px" viewBox="0 0 450 354" role="img" aria-label="${N} decoder layers with ${way}: the size of the vectors and the gradient in each layer, logarithmic."><g>${panel("size of the vectors after each layer", sizes, 30, [-1, 1])}${panel("gradient of each layer’s W_2, as a share of the top’s", gradients.map((g) => g / gradients.at(-1)), 200, [-4, 1])}</g><g class="words"><text x="240" y="348">decoder layer</text></g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { still: draw };
  else customElements.define("layer-depth", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      const { way, N, runs } = this.state;
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls">
          <label>layers <input type="range" name="N" min="1" max="24" value="${N}"><output></output></label>
          <label>norm <select name="way">${Object.keys(runs).map((each) => `<option ${each === way ? "selected" : ""}>${each}</option>`).join("")}</select></label>
        </div><div class="picture"></div><p class="told" role="status"></p>`;
      this.addEventListener("input", ({ target }) => {
        this.state[target.name] = target.name === "N" ? Number(target.value) : target.value;
        this.follow();
      });
      this.follow();
    }

    follow() {
      const { way, N, runs } = this.state;
      const { sizes, gradients } = runs[way][N - 1];
      this.querySelector("output").textContent = N;
      this.querySelector(".picture").innerHTML = draw(this.state);
      const share = Number((gradients[0] / gradients.at(-1)).toPrecision(2));
      this.querySelector(".told").textContent = `On top of ${N} ${way} layers the vectors have the size ${sizes.at(-1)}; the gradient of layer 1 is ${share} of the top layer’s.`;
    }
  });
}
