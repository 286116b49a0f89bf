// <training-diary>: what a model says of three phrases after each tenth of its first 600
// updates, as benchmarks/training/diary.py has recorded it.
{
  const HIGH = 8, TOP = 30, FOOT = 130, LONGEST = 38;
  const x = (step, last) => 40 + (step / last) * 392;
  const y = (loss) => FOOT - (loss / HIGH) * (FOOT - TOP);
  const short = (text) => (text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text) || "(nothing)";
  const safe = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt()};`);

  const draw = ({ at, phrases, diary }) => {
    const last = diary.at(-1).step, { step, loss, says } = diary[at];
    const points = diary.slice(1).map((look) => `${x(look.step, last).toFixed(1)} ${y(look.loss).toFixed(1)}`);
    const ticks = [0, 2, 4, 6, 8].map((n) => `<text x="24" y="${(y(n) + 5).toFixed(1)}">${n}</text>`).join("");
    const steps = [0, 200, 400, 600].map((n) => `<text x="${x(n, last)}" y="${FOOT + 20}">${n}</text>`).join("");
    const lines = phrases.map((phrase, i) => `<text class="quiet" x="40" y="${192 + i * 52}">${phrase}</text><text class="said" x="40" y="${212 + i * 52}">${safe(short(says[i]))}</text>`).join("");
    const mark = step ? `<circle class="here-dot" cx="${x(step, last).toFixed(1)}" cy="${y(loss).toFixed(1)}" r="6"/>` : "";
    return `<svg class="drawing diary" style="max-width:450px" viewBox="0 0 450 330" role="img" aria-label="The loss per token over ${last} updates, and what the model says after ${step} of them: ${phrases.map((phrase, i) => `for “${phrase}”, “${safe(short(says[i]))}”`).join("; ")}."><path class="axis" d="M40 ${TOP} V${FOOT} H436"/><path class="axis" stroke-dasharray="3 4" d="M${x(step, last).toFixed(1)} ${TOP} V${FOOT}"/><polyline class="curve" points="${points.join(", ")}"/>${mark}<g class="words">${ticks}${steps}<text x="238" y="${FOOT + 38}">update</text></g><g class="words left"><text x="40" y="18">loss per token, nats</text>${lines}</g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { still: draw };
  else customElements.define("training-diary", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      const { at, diary } = this.state;
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls">
          <label>updates <input type="range" name="at" min="0" max="${diary.length - 1}" value="${at}"><output></output></label>
        </div><div class="picture"></div><p class="told" role="status"></p>`;
      this.addEventListener("input", ({ target }) => {
        this.state.at = Number(target.value);
        this.follow();
      });
      this.follow();
    }

    follow() {
      const { at, phrases, diary } = this.state;
      const { step, says } = diary[at];
      const slider = this.querySelector("[name=at]");
      slider.setAttribute("aria-valuetext", `${step} updates`);
      this.querySelector("output").textContent = step;
      this.querySelector(".picture").innerHTML = draw(this.state);
      this.querySelector(".told").textContent = `After ${step} updates, “${phrases[0]}” is ${says[0] ? `“${short(says[0])}”` : "nothing at all"}.`;
    }
  });
}
