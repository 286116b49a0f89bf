// <race-curves>: right next tokens of two models, over updates or over seconds, by the runs
// that benchmarks/paper/race.py has recorded.
{
  const KEYS = { updates: "step", seconds: "seconds" };
  const SIDES = ["recurrent", "Transformer"];
  const percent = (share) => `${(100 * share).toFixed(1)} %`;
  // As far as the shorter run goes.
  const end = ({ axis, runs }) => Math.floor(Math.min(...runs.map(({ curve }) => curve.at(-1)[KEYS[axis]])));

  // The share of right tokens at a point of the axis, on the line between two looks; the
  // mean over the seeds. Nothing was right before the first look.
  const share = ({ axis, runs }, side, at) => {
    const own = runs.filter((run) => run.side === side).map(({ curve }) => {
      const looks = [{ [KEYS[axis]]: 0, accuracy: 0 }, ...curve];
      const next = looks.find((look) => look[KEYS[axis]] >= at), last = looks[looks.indexOf(next) - 1] ?? next;
      const [a, b] = [last[KEYS[axis]], next[KEYS[axis]]];
      return last.accuracy + (b > a && (at - a) / (b - a)) * (next.accuracy - last.accuracy);
    });
    return own.reduce((sum, each) => sum + each, 0) / own.length;
  };

  const draw = (state) => {
    const { axis, runs } = state, most = end(state), here = Math.min(state.at, most);
    const top = Math.ceil(20 * Math.max(...runs.flatMap(({ curve }) => curve.map(({ accuracy }) => accuracy)))) / 20;
    const x = (value) => (48 + (372 * value) / most).toFixed(1);
    const y = (value) => (210 - (180 * value) / top).toFixed(1);
    const lines = runs.map(({ side, curve }) => {
      const looks = curve.filter((look) => look[KEYS[axis]] <= most).map((look) => `${x(look[KEYS[axis]])} ${y(look.accuracy)}`);
      return `<path class="curve"${side === SIDES[0] ? ' stroke-dasharray="6 4"' : ""} d="M${looks.join(" L")}"/>`;
    }).join("");
    const shares = Array.from({ length: Math.round(top / 0.1) + 1 }, (_, i) => i / 10).filter((each) => each <= top)
      .map((each) => `<text x="24" y="${Number(y(each)) + 5}">${Math.round(100 * each)} %</text>`).join("");
    const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => `<text x="${x(part * most)}" y="230">${Math.round(part * most)}</text>`).join("");
    const label = `Right next tokens over ${axis}, three runs of each. At ${here} the recurrent model has ${percent(share(state, SIDES[0], here))}, the Transformer ${percent(share(state, SIDES[1], here))}.`;
    return `<svg class="drawing" style="max-width:450px" viewBox="0 0 450 256" role="img" aria-label="${label}"><path class="axis" d="M44 26 V210 H424"/><path class="axis" d="M${x(here)} 26 V210"/><g class="words">${shares}${ticks}<text x="234" y="250">${axis}</text></g><g class="words left"><text x="48" y="16">right next tokens; recurrent dashed</text></g>${lines}</svg>\n`;
  };

  const told = (state) => {
    const [first, second] = SIDES.map((side) => share(state, side, state.at));
    const lead = Math.abs(first - second) < 5e-4 ? "nobody leads" : `the ${first > second ? "recurrent model" : "Transformer"} leads by ${(100 * Math.abs(first - second)).toFixed(1)} points`;
    return `After ${state.at} ${state.axis}: recurrent ${percent(first)}, Transformer ${percent(second)}; ${lead}.`;
  };

  if (typeof module !== "undefined") module.exports = { share, end, still: draw };
  else customElements.define("race-curves", class extends HTMLElement {
    connectedCallback() {
      const { axis, at, runs } = JSON.parse(this.querySelector("script").textContent);
      this.state = { axis, at, runs };
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls">
          <label>over <select name="axis">${Object.keys(KEYS).map((each) => `<option ${each === axis ? "selected" : ""}>${each}</option>`).join("")}</select></label>
          <label>after <input type="range" name="at" min="1"><output></output></label>
        </div><div class="picture"></div><p class="told" role="status"></p>`;
      this.addEventListener("input", ({ target }) => {
        const far = this.state.at / end(this.state);
        this.state[target.name] = target.name === "at" ? Number(target.value) : target.value;
        if (target.name === "axis") this.state.at = Math.round(far * end(this.state));
        this.follow();
      });
      this.follow();
    }

    follow() {
      const slider = this.querySelector("[name=at]");
      slider.max = end(this.state);
      slider.value = this.state.at;
      this.querySelector("output").textContent = this.state.at;
      this.querySelector(".picture").innerHTML = draw(this.state);
      this.querySelector(".told").textContent = told(this.state);
    }
  });
}
