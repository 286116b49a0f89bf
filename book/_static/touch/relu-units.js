// <relu-units>: a feed-forward network of a few hidden units on one number, whose weights
// a reader edits, and the curve that it draws: each unit bends the line once.
{
  // Equation (2) with d_model = 1.
  const network = ({ units, b_2 }, x) => units.reduce((sum, [w_1, b_1, w_2]) => sum + Math.max(0, x * w_1 + b_1) * w_2, b_2);

  const X = Array.from({ length: 121 }, (_, i) => -3 + i / 20);
  const at = (x, y) => `${(40 + (x + 3) * 60).toFixed(1)} ${(120 - y * 34).toFixed(1)}`;
  const curve = (f) => `M${X.map((x) => at(x, f(x))).join(" L")}`;
  const picture = (state) => {
    const [low, high] = [at(-3, 0), at(3, 0)];
    const ticks = [-3, -2, -1, 1, 2, 3].map((x) => `<text x="${40 + (x + 3) * 60}" y="138">${`${x}`.replace("-", "−")}</text>`).join("");
    const heights = [-3, -2, -1, 1, 2, 3].map((y) => `<text x="210" y="${124 - y * 34}">${`${y}`.replace("-", "−")}</text>`).join("");
    const each = state.units.map((unit) => `<path class="axis" stroke-dasharray="3 3" d="${curve((x) => network({ units: [unit], b_2: 0 }, x))}"/>`).join("");
    const target = state.goal ? `<path class="moved" stroke-opacity=".5" d="${curve((x) => network(state.goal, x))}"/>` : "";
    return `<svg class="drawing" style="max-width:440px" viewBox="0 0 440 240" role="img" aria-label="The network’s output over its input from −3 to 3, and dashed what each hidden unit adds."><path class="axis" d="M${low} L${high} M${at(0, -3.2)} L${at(0, 3.2)}"/><g class="words">${ticks}${heights}</g><svg x="40" y="11" width="360" height="218" viewBox="40 11 360 218">${each}${target}<path class="curve" d="${curve((x) => network(state, x))}"/></svg></svg>`;
  };
  const still = (data) => `<div class="drawing-box">${picture({ ...data, goal: null })}</div>\n`;

  const GOALS = {
    "|x|": { units: [[1, 0, 1], [-1, 0, 1]], b_2: 0 },
    "min(x, 1)": { units: [[-1, 1, -1]], b_2: 1 },
    "a bump": { units: [[1, 1, 1], [1, 0, -2], [1, -1, 1]], b_2: 0 },
  };
  const gap = (state) => Math.max(...X.map((x) => Math.abs(network(state, x) - network(state.goal, x))));

  if (typeof module !== "undefined") module.exports = { still, network, GOALS, gap };
  else customElements.define("relu-units", class extends HTMLElement {
    connectedCallback() {
      this.first = JSON.parse(this.querySelector("script").textContent);
      const box = Object.assign(document.createElement("div"), { className: "part" });
      this.append(box);
      const cell = (i, j) => `<td><input type="number" step="0.5" data-row="${i}" data-column="${j}" aria-label="${["W_1", "b_1", "W_2"][j]} of unit ${i + 1}"></td>`;
      box.innerHTML = `<div class="grids"><table><caption>hidden units</caption><thead><tr><td></td><th scope="col">W_1</th><th scope="col">b_1</th><th scope="col">W_2</th></tr></thead><tbody>${
        this.first.units.map((_, i) => `<tr><th scope="row">${i + 1}</th>${[0, 1, 2].map((j) => cell(i, j)).join("")}</tr>`).join("")}</tbody></table>
        <div class="what"><div class="picture"></div></div></div>
        <div class="controls"><label>b_2 <input type="number" step="0.5" name="b_2"></label>
          <label>draw <select name="goal"><option>what you like</option>${Object.keys(GOALS).map((name) => `<option>${name}</option>`).join("")}</select></label>
          <button type="button" data-again>start again</button></div>
        <p class="told" role="status"></p><p class="hint">With the keyboard: Tab goes to the units, ← and → from number to number, ↑ and ↓ change it.</p>`;
      this.inputs = [...box.querySelectorAll("td input")];
      this.inputs.forEach((each, i) => { each.tabIndex = i ? -1 : 0; });
      this.addEventListener("keydown", (event) => this.move(event));
      this.addEventListener("input", () => this.follow());
      box.querySelector("[data-again]").addEventListener("click", () => this.start());
      this.start();
    }

    move(event) {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const next = step && this.inputs[this.inputs.indexOf(event.target) + step];
      if (!next || !this.inputs.includes(event.target)) return;
      event.preventDefault();
      for (const each of this.inputs) each.tabIndex = each === next ? 0 : -1;
      next.focus();
    }

    start() {
      for (const input of this.inputs) input.value = this.first.units[input.dataset.row][input.dataset.column];
      this.querySelector("[name=b_2]").value = this.first.b_2;
      this.follow();
    }

    follow() {
      const units = this.first.units.map(() => [0, 0, 0]);
      for (const { dataset, valueAsNumber } of this.inputs) units[dataset.row][dataset.column] = valueAsNumber || 0;
      const wanted = this.querySelector("[name=goal]").value;
      const state = { units, b_2: this.querySelector("[name=b_2]").valueAsNumber || 0, goal: GOALS[wanted] };
      this.querySelector(".picture").innerHTML = picture(state);
      const bends = new Set(units.filter(([w_1, , w_2]) => w_1 && w_2).map(([w_1, b_1]) => -b_1 / w_1)).size;
      const say = `At x = −2 it gives ${network(state, -2)}, at 2 it gives ${network(state, 2)}; the line bends at ${bends} ${bends === 1 ? "place" : "places"}.`.replaceAll("gives -", "gives −");
      const left = state.goal && gap(state);
      this.querySelector(".told").textContent = state.goal ? `${say} ${left < 0.01 ? `That is ${wanted}.` : `${wanted} is at most ${left.toFixed(1)} away.`}` : say;
    }
  });
}
