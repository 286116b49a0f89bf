// <bug-gallery>: runs of a small model with a bug each, as benchmarks/training/bugs.py
// has recorded them. The reader picks the bug, then sees the line.
{
  const HIGH = 7, LEFT = 40, RIGHT = 436, TOP = 30, FOOT = 150;
  const x = (i, n) => LEFT + ((i + 1) / n) * (RIGHT - LEFT);
  const y = (loss) => FOOT - (Math.min(loss, HIGH) / HIGH) * (FOOT - TOP);
  const safe = (text) => text.replace(/[&<>"]/g, (sign) => `&#${sign.charCodeAt()};`);
  const short = (text) => (text.length > 60 ? `${text.slice(0, 60)}…` : text) || "(nothing)";

  // {right} is the run's own number, {healthy.right} the healthy one's; {forced%} a share.
  const filled = (text, run, healthy) => text.replace(/\{(healthy\.)?(\w+)(%?)\}/g, (_, other, key, share) => {
    const value = (other ? healthy : run)[key];
    return share ? `${Math.round(100 * value)} %` : key === "weights" ? value.toLocaleString("en") : value;
  });
  // What one number says: by default how many phrases are right, then a case's `more`.
  const RIGHT_OF = "{right} of 100 unseen phrases are right (healthy: {healthy.right}).";
  const told = ({ number = RIGHT_OF, more = "" }, run, healthy) => filled(`${number} ${more}`.trim(), run, healthy);
  const label = (text) => safe(text).replace(/`([^`]+)`/g, "<code>$1</code>");

  const line = (losses) => losses.map((loss, i) => (loss === null ? null : `${x(i, losses.length).toFixed(1)} ${y(loss).toFixed(1)}`)).filter(Boolean).join(", ");
  const curve = (run, healthy) => {
    const ticks = [0, 2, 4, 6].map((n) => `<text x="24" y="${(y(n) + 5).toFixed(1)}">${n}</text>`).join("");
    const last = 10 * healthy.losses.length;
    const steps = [0, last / 3, 2 * last / 3, last].map((n) => `<text x="${LEFT + (n / last) * (RIGHT - LEFT)}" y="${FOOT + 20}">${n}</text>`).join("");
    const mine = run.losses ? line(run.losses) : "";
    const both = run.name === "healthy" ? "" : `<polyline class="axis" stroke-dasharray="5 4" points="${line(healthy.losses)}"/>`;
    const about = !run.losses ? "The loss of the healthy run." : mine ? `The loss falls from ${run.losses[0]} to ${run.losses.at(-1)}; that of the healthy run ends at ${healthy.losses.at(-1)}.` : "The loss is NaN from the first update on.";
    return `<svg class="drawing bugs" style="max-width:450px" viewBox="0 0 450 190" role="img" aria-label="${about}"><path class="axis" d="M${LEFT} ${TOP} V${FOOT} H${RIGHT}"/>${both}${mine ? `<polyline class="curve" points="${mine}"/>` : ""}<g class="words">${ticks}${steps}<text x="238" y="${FOOT + 38}">update</text></g><g class="words left"><text x="${LEFT}" y="18">loss per token (dashed: the healthy run)</text></g></svg>`;
  };

  const diff = ({ before, after }) => {
    const [old, fresh] = [before, after].map((text) => text.replace(/\n+$/, "").split("\n"));
    const marked = [...old.filter((each) => each && !fresh.includes(each)).map((each) => `- ${each}`), ...fresh.filter((each) => each && !old.includes(each)).map((each) => `+ ${each}`)];
    return marked.map((each) => each.replace(/^([-+]) +/, "$1 ")).join("\n");
  };

  // What a model's loss is when it gives just the smoothed target.
  const floor = (tokens, smoothing = 0.1) => -(1 - smoothing) * Math.log(1 - smoothing) - smoothing * Math.log(smoothing / (tokens - 1));

  // A case's run; that of the search shows the sentences that it changes.
  const runOf = ({ runs, cache, searches, vocabulary }, name) => {
    if (name !== "cache") return { vocabulary, floor: floor(vocabulary).toFixed(2), ...runs.find((run) => run.name === name) };
    const [right, wrong] = ["beam", "cache"].map((each) => searches.find((search) => search.name === each));
    const changed = [...right.says.keys()].filter((i) => right.says[i] !== wrong.says[i]);
    const [sources, says] = [right.sources, wrong.says].map((texts) => changed.slice(0, 5).map((i) => texts[i]));
    return { ...cache, sources, says, changed: changed.length, right: wrong.right };
  };

  // Without script: a list of all, folded.
  const still = (state) => {
    const healthy = runOf(state, "healthy");
    const rows = state.cases.map((each) => {
      const run = runOf(state, each.name);
      const changed = each.name === "healthy" ? "" : `<pre>${safe(diff(run))}</pre>`;
      return `<tr><td>${safe(each.title)}: ${label(told(each, run, healthy))}</td><td>${label(state.labels[each.name])}${changed}</td><td>${safe(run.check || "nothing")}</td></tr>`;
    }).join("");
    return `<div class="drawing-box">${curve(healthy, healthy)}<details><summary>All cases and their bugs</summary><table><thead><tr><th>what one sees</th><th>the bug</th><th>the check says</th></tr></thead><tbody>${rows}</tbody></table></details></div>\n`;
  };

  if (typeof module !== "undefined") module.exports = { still, diff, filled, floor, runOf };
  else customElements.define("bug-gallery", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      this.picked = {}; // by case: what was chosen first
      this.at = 0;
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      const options = this.state.cases.map((each, i) => `<option value="${i}">${i + 1}. ${safe(each.title)}</option>`).join("");
      part.innerHTML = `<div class="controls"><label>case <select name="case">${options}</select></label><button type="button" name="next">Next case</button></div>
        <div class="picture"></div><div class="report"></div><form></form><p class="told" role="status"></p><div class="reveal"></div>`;
      part.querySelector("[name=case]").addEventListener("change", ({ target }) => this.show(Number(target.value)));
      part.querySelector("[name=next]").addEventListener("click", () => this.show((this.at + 1) % this.state.cases.length));
      part.querySelector("form").addEventListener("submit", (event) => {
        event.preventDefault();
        const chosen = this.querySelector("form input:checked")?.value;
        if (!chosen) this.querySelector(".told").textContent = "Choose a suspect first.";
        else {
          this.picked[this.case.name] ??= chosen;
          this.reveal();
        }
      });
      this.show(0);
    }

    get case() { return this.state.cases[this.at]; }

    show(at) {
      this.at = at;
      const { name, title, suspects } = this.case;
      const healthy = runOf(this.state, "healthy"), run = runOf(this.state, name);
      this.querySelector("[name=case]").value = at;
      this.querySelector(".picture").innerHTML = curve(run, healthy);
      const sources = run.sources ?? this.state.phrases;
      const rows = run.says.map((text, i) => `<tr><th scope="row">${safe(sources[i])}</th><td>${safe(short(text))}</td></tr>`).join("");
      this.querySelector(".report").innerHTML = `<table><caption>${safe(title)}</caption>${rows}</table><p>${label(told(this.case, run, healthy))}</p>`;
      const choices = suspects.map((each) => `<label><input type="radio" name="suspect" value="${each}"><span>${label(this.state.labels[each])}</span></label>`).join("");
      this.querySelector("form").innerHTML = `<fieldset><legend>Which is it?</legend>${choices}<button>Accuse</button></fieldset>`;
      this.querySelector(".reveal").innerHTML = "";
      this.querySelector(".told").textContent = `Case ${at + 1} of ${this.state.cases.length}.`;
      if (this.picked[name]) this.reveal();
    }

    reveal() {
      const { name, why, known } = this.case, run = runOf(this.state, name);
      const tried = Object.entries(this.picked), right = tried.filter(([each, chosen]) => each === chosen).length;
      const hit = this.picked[name] === name;
      this.querySelector(`form input[value="${this.picked[name]}"]`).checked = true;
      this.querySelector(".told").innerHTML = `${hit ? "✓ Caught: " : "✗ Innocent. It was this: "}${label(this.state.labels[name])}. ${right} of ${tried.length} solved.`;
      const changed = name === "healthy" ? "" : `<p>In <code>${safe(run.file)}</code>:</p><pre>${safe(diff(run))}</pre>`;
      const says = name === "healthy" ? "" : `<p><b>The check</b> ${run.check ? `says: ${safe(run.check)}` : "sees nothing: it judges what the parts do, with whatever weights, and not the loop around them."}</p>`;
      const seen = known ? `<p><b>Seen in the wild</b>: <a href="https://github.com/${known.replace(/#.*/, "")}/issues/${known.replace(/.*#/, "")}">${safe(known)}</a></p>` : "";
      this.querySelector(".reveal").innerHTML = `${changed}<p>${label(filled(why, run, runOf(this.state, "healthy")))}</p>${says}${seen}`;
    }
  });
}
