// <valley-steps>: forty steps in a valley of two weights that is 25 times as steep across
// as along. With a `rate` in the data it is gradient descent; with a `peak` and a `warmup`
// it is Adam under a rate that climbs and then falls, as in equation (3).
{
  const START = [-5, 1.5];
  const STEPS = 40;
  const slope = ([a, b]) => [a, 25 * b];
  const height = ([a, b]) => (a * a + 25 * b * b) / 2;

  const plain = ({ rate }) => {
    const path = [START];
    for (let t = 1; t <= STEPS; t += 1) {
      const g = slope(path[t - 1]);
      path.push(path[t - 1].map((w, i) => w - rate * g[i]));
    }
    return path;
  };
  const adam = ({ peak, warmup }) => {
    const path = [START];
    let [m, v] = [[0, 0], [0, 0]];
    for (let t = 1; t <= STEPS; t += 1) {
      const rate = peak * Math.min((warmup / t) ** 0.5, t / warmup);
      const g = slope(path[t - 1]);
      m = m.map((old, i) => 0.9 * old + 0.1 * g[i]);
      v = v.map((old, i) => 0.98 * old + 0.02 * g[i] ** 2);
      path.push(path[t - 1].map((w, i) => w - (rate * m[i]) / (1 - 0.9 ** t) / (Math.sqrt(v[i] / (1 - 0.98 ** t)) + 1e-9)));
    }
    return path;
  };
  const walk = (state) => ("rate" in state ? plain(state) : adam(state));

  const X = (a) => 220 + Math.max(-60, Math.min(60, a)) * 30;
  const Y = (b) => 125 - Math.max(-60, Math.min(60, b)) * 24;
  const at = ([a, b]) => `${X(a).toFixed(1)} ${Y(b).toFixed(1)}`;
  const level = (r, more = "") => `<ellipse class="axis" ${more} cx="220" cy="125" rx="${(r * 30).toFixed(1)}" ry="${(r * 4.8).toFixed(1)}"/>`;
  const draw = (state) => {
    const path = walk(state);
    const how = "rate" in state ? `gradient descent at a rate of ${state.rate}` : `Adam with a peak of ${state.peak} and a warm-up of ${state.warmup}`;
    const rings = [2, 4, 6.5, 12.5, 16.5, 21].map((r) => level(r, 'stroke-opacity=".35"')).join("");
    const dots = path.slice(1).map((w) => `<circle class="here-dot" cx="${X(w[0]).toFixed(1)}" cy="${Y(w[1]).toFixed(1)}" r="3"/>`).join("");
    return `<svg class="drawing" style="max-width:440px" viewBox="0 0 440 250" role="img" aria-label="The contour lines of a narrow valley, and ${STEPS} steps of ${how}.">${rings}${level(Math.sqrt(2 * height(START)), 'stroke-dasharray="5 4"')}<path class="curve" d="M${path.map(at).join(" L")}"/>${dots}<circle class="there" cx="${X(START[0])}" cy="${Y(START[1])}" r="6"/><g class="words"><text x="${X(START[0])}" y="${Y(START[1]) - 12}">start</text></g></svg>\n`;
  };

  const told = (state) => {
    const heights = walk(state).map(height);
    const [start, end] = [heights[0], heights[STEPS]];
    const number = (x) => (x < 1 ? x.toFixed(3) : x < 1000 ? x.toFixed(2) : "more than 1,000");
    const ends = `After ${STEPS} steps the loss is ${number(end)}, from ${start.toFixed(2)} at the start.`;
    if ("rate" in state) return end > start ? `${ends} Each step lands higher on the other side.` : ends;
    const climb = Math.max(...heights.slice(1)) / start;
    return `${climb > 1 ? `The path climbs above its start, to ${climb.toFixed(1)} times its loss.` : "The path never climbs above its start."} ${ends}`;
  };

  if (typeof module !== "undefined") module.exports = { walk, told, still: draw };
  else customElements.define("valley-steps", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      const ranges = { rate: [0.005, 0.09, 0.001], peak: [0.1, 6, 0.1], warmup: [1, 20, 1] };
      const controls = Object.entries(this.state).map(([name, value]) => {
        const [min, max, step] = ranges[name];
        return `<label>${name.replace("warmup", "warm-up")} <input type="range" name="${name}" min="${min}" max="${max}" step="${step}" value="${value}"><output></output></label>`;
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
