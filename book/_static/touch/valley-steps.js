// <valley-steps>: forty steps in a valley of two weights that is `walls` times as steep
// across as along, by gradient descent at a `rate` and, where `adam` is its rate, by Adam.
{
  const START = [-5, 1.5];
  const STEPS = 40;
  const walls = (state) => state.walls ?? 25;
  const slope = (state) => ([a, b]) => [a, walls(state) * b];
  const height = (state) => ([a, b]) => (a * a + walls(state) * b * b) / 2;

  const plain = (state) => {
    const path = [START];
    for (let t = 1; t <= STEPS; t += 1) {
      const g = slope(state)(path[t - 1]);
      path.push(path[t - 1].map((w, i) => w - state.rate * g[i]));
    }
    return path;
  };
  const adam = (state) => {
    const path = [START];
    let [m, v] = [[0, 0], [0, 0]];
    for (let t = 1; t <= STEPS; t += 1) {
      const g = slope(state)(path[t - 1]);
      m = m.map((old, i) => 0.9 * old + 0.1 * g[i]);
      v = v.map((old, i) => 0.98 * old + 0.02 * g[i] ** 2);
      path.push(path[t - 1].map((w, i) => w - (state.adam * m[i]) / (1 - 0.9 ** t) / (Math.sqrt(v[i] / (1 - 0.98 ** t)) + 1e-9)));
    }
    return path;
  };

  const X = (a) => 220 + Math.max(-60, Math.min(60, a)) * 30;
  const Y = (b) => 125 - Math.max(-60, Math.min(60, b)) * 24;
  const line = (path, more = "") => `<path class="curve" ${more}d="M${path.map(([a, b]) => `${X(a).toFixed(1)} ${Y(b).toFixed(1)}`).join(" L")}"/>`;
  const draw = (state) => {
    const level = (r, more) => `<ellipse class="axis" ${more} cx="220" cy="125" rx="${(r * 30).toFixed(1)}" ry="${((r * 24) / Math.sqrt(walls(state))).toFixed(1)}"/>`;
    const rings = [2, 4, 6.5, 12.5, 16.5, 21].map((r) => level(r, 'stroke-opacity=".35"')).join("");
    const both = "adam" in state;
    const dotted = both ? adam(state) : plain(state);
    const dots = dotted.slice(1).map((w) => `<circle class="here-dot" cx="${X(w[0]).toFixed(1)}" cy="${Y(w[1]).toFixed(1)}" r="3"/>`).join("");
    const how = `gradient descent at a rate of ${state.rate}${both ? `, dashed, and of Adam at ${state.adam}` : ""}`;
    const names = both ? '<path class="curve" stroke-dasharray="3 4" d="M286 20 H316"/><path class="curve" d="M286 40 H316"/><circle class="here-dot" cx="301" cy="40" r="3"/><g class="words"><text x="376" y="25">gradient descent</text><text x="341" y="45">Adam</text></g>' : "";
    return `<svg class="drawing" style="max-width:440px" viewBox="0 0 440 250" role="img" aria-label="The contour lines of a narrow valley, and ${STEPS} steps of ${how}.">${rings}${level(Math.sqrt(2 * height(state)(START)), 'stroke-dasharray="5 4"')}${both ? line(plain(state), 'stroke-dasharray="3 4" ') : ""}${line(dotted)}${dots}<circle class="there" cx="${X(START[0])}" cy="${Y(START[1])}" r="6"/><g class="words"><text x="${X(START[0])}" y="${Y(START[1]) - 12}">start</text></g>${names}</svg>\n`;
  };

  const told = (state) => {
    const loss = (path) => height(state)(path.at(-1));
    const number = (x) => (x < 1 ? x.toFixed(3) : x < 1000 ? x.toFixed(2) : "more than 1,000");
    const [start, end] = [height(state)(START), loss(plain(state))];
    const higher = end > start ? " Each step of gradient descent lands higher on the other side." : "";
    const ends = "adam" in state ? `${number(end)} by gradient descent and ${number(loss(adam(state)))} by Adam` : number(end);
    return `After ${STEPS} steps the loss is ${ends}, from ${start.toFixed(2)} at the start.${higher}`;
  };

  if (typeof module !== "undefined") module.exports = { plain, adam, told, still: draw };
  else customElements.define("valley-steps", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      const ranges = { rate: [0.005, 0.09, 0.001], adam: [0.05, 1, 0.05], walls: [5, 60, 1] };
      const names = "adam" in this.state ? { rate: "gradient descent’s rate", adam: "Adam’s rate", walls: "steepness across" } : {};
      const controls = Object.entries(this.state).map(([name, value]) => {
        const [min, max, step] = ranges[name];
        return `<label>${names[name] ?? name} <input type="range" name="${name}" min="${min}" max="${max}" step="${step}" value="${value}"><output></output></label>`;
      });
      const part = Object.assign(document.createElement("div"), { className: "part" });
      part.innerHTML = `<div class="controls">${controls.join("")}</div><div class="picture"></div><p class="told" role="status"></p>`;
      this.append(part);
      this.addEventListener("input", ({ target }) => {
        this.state[target.name] = Number(target.value);
        this.follow();
      });
      this.follow();
    }

    follow() {
      for (const input of this.querySelectorAll("input")) input.nextElementSibling.textContent = input.value;
      this.querySelector(".picture").innerHTML = draw(this.state);
      this.querySelector(".told").textContent = told(this.state);
    }
  });
}
