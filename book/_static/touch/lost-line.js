// <lost-line>: two files whose lines belong together, until a line is lost. Each line is
// its number, so that a pair is right if both sides have the same one.
{
  const SIDES = ["english", "german"];
  const kept = ({ lines, lost }, side) => lines.map((_, i) => i).filter((i) => !(lost[side] ?? []).includes(i));
  // What stands side by side: [line of the English file, line of the German one]; null below a file's end.
  const pairs = (state) => {
    const [one, other] = SIDES.map((side) => kept(state, side));
    return Array.from({ length: Math.max(one.length, other.length) }, (_, i) => [one[i] ?? null, other[i] ?? null]);
  };
  const told = (state) => {
    const [one, other] = SIDES.map((side) => kept(state, side).length);
    const right = pairs(state).filter(([a, b]) => a === b).length;
    return `${one} English lines, ${other} German lines; ${right} of ${Math.min(one, other)} pairs ${right === 1 ? "is" : "are"} right.`;
  };

  const still = (state) => {
    const rows = pairs(state).map(([a, b], i) => `<text x="8" y="${44 + 24 * i}">${state.lines[a]?.english ?? ""}</text><text x="250" y="${44 + 24 * i}">${state.lines[b]?.german ?? ""}</text>`).join("");
    const high = 56 + 24 * state.lines.length;
    return `<svg class="drawing" style="max-width:520px" viewBox="0 0 520 ${high}" role="img" aria-label="Two files side by side. ${told(state)}"><g class="words left"><text x="8" y="18">English file</text><text x="250" y="18">German file</text>${rows}</g></svg>\n`;
  };

  if (typeof module !== "undefined") module.exports = { still, pairs, told };
  else customElements.define("lost-line", class extends HTMLElement {
    connectedCallback() {
      this.first = JSON.parse(this.querySelector("script").textContent);
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<p class="told" role="status"></p><table class="files"></table>
        <div class="controls"><button type="button" name="back">all lines back</button></div>`;
      this.addEventListener("click", ({ target }) => {
        if (target.name === "back") this.show(this.first.lost);
        else if (target.dataset.side) this.lose(target.dataset.side, Number(target.value));
      });
      this.show(this.first.lost);
    }

    lose(side, line) {
      this.show({ ...this.state.lost, [side]: [...(this.state.lost[side] ?? []), line] });
      this.querySelector("[name=back]").focus();
    }

    show(lost) {
      this.state = { ...this.first, lost };
      const { lines, open } = this.state;
      const cell = (side, i) => {
        if (i === null) return "<td></td>";
        const text = lines[i][side];
        const button = open.includes(side) && kept(this.state, side).length > 1 ? `<button type="button" data-side="${side}" value="${i}" aria-label="lose “${text}”">×</button> ` : "";
        return `<td lang="${side === "german" ? "de" : "en"}">${button}${text}</td>`;
      };
      const row = ([a, b]) => {
        const right = a === b;
        const says = b === null ? "" : lines[b].english;
        return `<tr class="${right ? "right" : "wrong"}">${cell("english", a)}${cell("german", b)}<td>${says}</td><td aria-label="${right ? "right" : "wrong"}">${right ? "✓" : "✗"}</td></tr>`;
      };
      this.querySelector("table").innerHTML = `<thead><tr><th scope="col">English file</th><th scope="col">German file</th><th scope="col">which means</th><th scope="col">pair</th></tr></thead><tbody>${pairs(this.state).map(row).join("")}</tbody>`;
      this.querySelector(".told").textContent = told(this.state);
    }
  });
}
