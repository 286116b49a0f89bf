// <error-cards>: translations whose mistake a reader looks for, one card after the other. The
// data's `examples` are a record's; `cards` say of each line what is wrong, and what its
// German means.
{
  const KINDS = ["nothing", "a fact", "something is missing", "a word or an ending"];
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
  const example = ({ examples, cards }, at) => ({ ...examples.find(({ line }) => line === cards[at].line), ...cards[at] });

  // Lines of at most so many letters.
  const broken = (text, wide) => text.split(" ").reduce((lines, word) => {
    if (`${lines.at(-1)} ${word}`.length > wide) lines.push(word);
    else lines[lines.length - 1] = `${lines.at(-1)} ${word}`.trim();
    return lines;
  }, [""]);

  const still = (state) => {
    const { source, output, gloss } = example(state, 0);
    const lines = [`English: ${source}`, `ours: ${output}`, `that is: ${gloss}`, "What is wrong?"].flatMap((text) => broken(text, 64));
    const texts = lines.map((line, i) => `<text x="8" y="${22 + 24 * i}">${escaped(line)}</text>`).join("");
    return `<svg class="drawing" style="max-width:520px" viewBox="0 0 520 ${14 + 24 * lines.length}" role="img" aria-label="${escaped(lines.join(" "))}"><g class="words left">${texts}</g></svg>\n`;
  };

  const answer = (card, kind) => `${card.kinds.includes(kind) ? "Yes" : `No, ${KINDS[card.kinds[0]]}`}: ${card.say} The reference says “${card.reference}”; BLEU gives ${Math.round(card.bleu)}.`;

  if (typeof module !== "undefined") module.exports = { still, answer, KINDS };
  else customElements.define("error-cards", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      this.at = 0;
      this.found = 0;
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<dl class="texts"></dl><div class="controls" role="group" aria-label="What is wrong?">What is wrong?
          ${KINDS.map((kind, i) => `<button type="button" value="${i}">${kind}</button>`).join(" ")}</div>
        <p class="told" role="status"></p><div class="controls"><button type="button" name="next">next card</button></div>`;
      this.addEventListener("click", ({ target }) => {
        if (target.name === "next") this.turn();
        else if (target.value) this.judge(Number(target.value));
      });
      this.show();
    }

    show() {
      const { source, output, gloss } = example(this.state, this.at);
      const rows = { English: source, ours: output, "that is": gloss };
      this.querySelector("dl").innerHTML = Object.entries(rows).map(([name, text]) => `<dt>${name}</dt><dd>${escaped(text)}</dd>`).join("");
      this.say(`Card ${this.at + 1} of ${this.state.cards.length}.`);
      this.wait(true);
    }

    say(text) { this.querySelector(".told").textContent = text; }

    wait(open) {
      for (const button of this.querySelectorAll("[value]:not([name])")) button.disabled = !open;
      this.querySelector("[name=next]").disabled = open;
    }

    judge(kind) {
      const card = example(this.state, this.at);
      this.found += card.kinds.includes(kind);
      this.say(`${answer(card, kind)} (${this.found} of ${this.at + 1} found.)`);
      this.wait(false);
      this.querySelector("[name=next]").focus();
    }

    turn() {
      this.at = (this.at + 1) % this.state.cards.length;
      if (!this.at) this.found = 0;
      this.show();
      this.querySelector("[value]").focus();
    }
  });
}
