// <attention-arcs>: a sentence, its translation, and where each word of it looked. The
// translation is written once, word by word, when a reader comes; then a word that is
// pointed at, or reached with ← and →, shows its own arcs. What the reader has the page
// translate takes its place.
{
  const word = (token) => token.replace("▁", "").replace("</s>", "end");
  const escaped = (token) => word(token).replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
  const LEAST = 0.05; // weights below it aren't drawn

  // The middle of each token in a line, and the line's length.
  const line = (tokens) => {
    let x = 0;
    const middles = tokens.map((token) => {
      const width = 22 + 9 * word(token).length;
      x += width;
      return x - width / 2;
    });
    return { middles, width: x };
  };

  const most = (weights) => weights.indexOf(Math.max(...weights));

  const picture = ({ source, target, weights }, now) => {
    const above = line(source), below = line(target);
    const width = Math.max(above.width, below.width);
    const [from, to] = [above, below].map(({ middles, width: own }) => middles.map((x) => (x + (width - own) / 2).toFixed(1)));
    const arc = (i, j) => `<path d="M${to[i]} 132 C${to[i]} 86 ${from[j]} 84 ${from[j]} 38" stroke-width="${(1 + 6 * weights[i][j]).toFixed(1)}" stroke-opacity="${weights[i][j].toFixed(2)}"/>`;
    const arcs = target.map((_, i) => `<g class="arcs"${i === now ? ' aria-current="step"' : ""}>${source.map((_, j) => (weights[i][j] < LEAST ? "" : arc(i, j))).join("")}</g>`).join("");
    const sources = source.map((token, j) => `<text x="${from[j]}" y="28">${escaped(token)}</text>`).join("");
    const targets = target.map((token, i) => `<g class="joint" data-at="${i}"${i === now ? ' aria-current="step"' : ""}><rect x="${(to[i] - 8 - 4.5 * word(token).length).toFixed(1)}" y="134" width="${16 + 9 * word(token).length}" height="26" rx="6"/><text x="${to[i]}" y="152">${escaped(token)}</text></g>`).join("");
    return `<svg class="drawing" style="max-width:${Math.round(width * 1.25)}px" viewBox="0 0 ${width} 166" role="img" aria-label="Above: ${source.map(escaped).join(" ")}. Below: ${target.map(escaped).join(" ")}. It looks most, ${target.map((token, i) => `for ${escaped(token)}, at ${escaped(source[most(weights[i])])}`).join("; ")}.">${arcs}<g class="words">${sources}</g><g class="words">${targets}</g></svg>`;
  };

  const sentence = ({ source, target, weights }, now) => {
    const best = most(weights[now]);
    return `To write “${word(target[now])}”, it looks most at “${word(source[best])}” (${weights[now][best].toFixed(2)}).`;
  };

  const still = (data) => `<div class="drawing-box">${picture(data, data.start)}<p>${sentence(data, data.start)}</p></div>\n`;

  if (typeof module !== "undefined") module.exports = { still };
  else customElements.define("attention-arcs", class extends HTMLElement {
    connectedCallback() {
      this.data = JSON.parse(this.querySelector("script").textContent);
      this.box = Object.assign(document.createElement("div"), { className: "part", tabIndex: 0, role: "group" });
      this.box.ariaLabel = "The translation, word by word: left and right arrow keys";
      this.box.innerHTML = '<div></div><p class="told"></p>';
      this.append(this.box);
      const at = ({ target }) => target.closest("[data-at]")?.dataset.at;
      for (const kind of ["pointerover", "click"]) {
        this.addEventListener(kind, (event) => { if (at(event)) this.chosen(Number(at(event))); });
      }
      this.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!step) return;
        event.preventDefault();
        this.chosen(this.now + step);
      });
      document.addEventListener("translated", ({ detail }) => this.take(detail));
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) this.go(this.data.start);
      else this.write(0);
    }

    // Words after the one that is being written are not there yet.
    write(now) {
      this.go(now);
      for (const kind of [".joint", ".arcs"]) [...this.box.querySelectorAll(kind)].slice(now + 1).forEach((each) => { each.style.visibility = "hidden"; });
      this.next = setTimeout(() => (now + 1 < this.data.target.length ? this.write(now + 1) : this.go(this.data.start)), 480);
    }

    // The mean of the last layer's heads, as in the recorded one.
    take({ source, target, looks }) {
      const heads = Object.entries(looks).filter(([name]) => name.startsWith("cross.")).at(-1)[1].weights;
      const mean = (i, j) => heads.reduce((sum, head) => sum + head[i][j], 0) / heads.length;
      const weights = target.map((_, i) => source.map((_, j) => mean(i, j)));
      this.data = { source, target, weights, start: 0 };
      this.go(0);
    }

    // Only what the reader asks for is read aloud.
    chosen(now) {
      this.box.lastChild.role = "status";
      this.go(now);
    }

    go(now) {
      clearTimeout(this.next);
      this.now = Math.max(0, Math.min(this.data.target.length - 1, now));
      this.box.firstChild.innerHTML = picture(this.data, this.now);
      this.box.lastChild.textContent = sentence(this.data, this.now);
    }
  });
}
