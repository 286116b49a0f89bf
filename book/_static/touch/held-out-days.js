// <held-out-days>: the days of a year in six languages, and the split that each is in: a
// letter a day, t for test, v for validation, a dot for training.
{
  const LENGTHS = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
  const SPLITS = { t: "the test", v: "validation", ".": "training" };
  const NAMES = { en: "English", de: "German", fr: "French", es: "Spanish", it: "Italian", nl: "Dutch" };
  // Months and days count from 0.
  const split = ({ splits }, month, day) => splits[LENGTHS.slice(0, month).reduce((a, b) => a + b, day)];
  const said = ({ days, months }, month, day) => Object.fromEntries(Object.keys(NAMES).map((lang) => [lang, days[lang][day] + months[lang][month]]));
  const told = (state, month, day) => `“${said(state, month, day).en}” is in ${SPLITS[split(state, month, day)]}, in each of its wordings and languages.`;

  const [WIDE, HIGH, LEFT, TOP] = [13, 16, 34, 4];
  const picture = (state, month, day) => {
    const cells = { t: "", v: "", ".": "" };
    LENGTHS.forEach((length, m) => {
      for (let d = 0; d < length; d++) cells[split(state, m, d)] += `<rect data-at="${m} ${d}" x="${LEFT + d * WIDE}" y="${TOP + m * HIGH}" width="${WIDE - 2}" height="${HIGH - 3}" rx="2"/>`;
    });
    const names = state.months.en.map((name, m) => `<text x="0" y="${TOP + m * HIGH + 11}">${name.slice(0, 3)}</text>`).join("");
    const below = TOP + 12 * HIGH + 14;
    const key = `<text x="${LEFT + 16}" y="${below}">test</text><text x="${LEFT + 96}" y="${below}">validation</text><text x="${LEFT + 206}" y="${below}">training</text>`;
    const mark = (x) => `<rect x="${LEFT + x}" y="${below - 10}" width="${WIDE - 2}" height="${HIGH - 3}" rx="2"/>`;
    return `<svg class="drawing days" style="max-width:440px" viewBox="0 0 440 ${below + 6}" role="img" aria-label="A calendar: eleven days are in the test, eleven in validation, and all others in training; ${told(state, month, day)}"><g class="train">${cells["."]}${mark(190)}</g><g class="val">${cells.v}${mark(80)}</g><g class="test">${cells.t}${mark(0)}</g><rect class="chosen" x="${LEFT + day * WIDE - 1}" y="${TOP + month * HIGH - 1}" width="${WIDE}" height="${HIGH - 1}" rx="2"/><g class="words left">${names}${key}</g></svg>`;
  };
  const still = (state) => `<div class="drawing-box">${picture(state, ...state.first)}</div>\n`;

  if (typeof module !== "undefined") module.exports = { still, said, split, told };
  else customElements.define("held-out-days", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls">
          <label>month <select name="month">${this.state.months.en.map((name, m) => `<option value="${m}">${name}</option>`).join("")}</select></label>
          <label>day <select name="day"></select></label>
        </div><p class="told" role="status"></p><dl class="texts"></dl><div class="picture"></div>`;
      this.addEventListener("change", () => this.choose(...["month", "day"].map((name) => Number(this.field(name).value))));
      this.addEventListener("click", ({ target }) => {
        if (target.dataset?.at) this.choose(...target.dataset.at.split(" ").map(Number));
      });
      this.choose(...this.state.first);
    }

    field(name) { return this.querySelector(`[name=${name}]`); }

    choose(month, wanted) {
      const day = Math.min(wanted, LENGTHS[month] - 1);
      this.field("day").innerHTML = Array.from({ length: LENGTHS[month] }, (_, d) => `<option value="${d}">${d + 1}</option>`).join("");
      this.field("month").value = month;
      this.field("day").value = day;
      this.querySelector(".told").textContent = told(this.state, month, day);
      this.querySelector("dl").innerHTML = Object.entries(said(this.state, month, day)).map(([lang, text]) => `<dt>${NAMES[lang]}</dt><dd lang="${lang}">${text}</dd>`).join("");
      this.querySelector(".picture").innerHTML = picture(this.state, month, day);
    }
  });
}
