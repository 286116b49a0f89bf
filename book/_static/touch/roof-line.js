// <roof-line>: how fast one matrix multiplies 1 to 512 rows, under the two bounds of memory
// and arithmetic, by the numbers that benchmarks/speed/roofline.py has recorded.
{
  // Each number of the matrix is fetched once and used for two operations a row.
  const memory = ({ bandwidth, bytes_a_number }, rows) => (2 * rows * bandwidth) / bytes_a_number;
  const roof = (data, rows) => Math.min(data.peak, memory(data, rows));
  const measured = ({ rates }, rows) => rates["search's"][rows];
  const milliseconds = (data, rows) => (2e3 * rows * data.numbers) / measured(data, rows);

  const x = (rows) => 62 + 40 * Math.log2(rows);
  const y = (rate) => 224 - 100 * (Math.log10(rate) - 9);
  const draw = (data) => {
    const { batch, peak, rates } = data;
    const bend = (peak * data.bytes_a_number) / (2 * data.bandwidth);
    const across = [1, 10, 100].map((n) => `<path class="axis" stroke-opacity=".35" d="M54 ${y(n * 1e9)} H432"/><text x="32" y="${y(n * 1e9) + 5}">${n}</text>`).join("");
    const along = [1, 4, 16, 64, 256].map((n) => `<text x="${x(n)}" y="246">${n}</text>`).join("");
    const limit = `<path class="curve" d="M${x(1)} ${y(memory(data, 1)).toFixed(1)} L${x(bend).toFixed(1)} ${y(peak).toFixed(1)} H432"/>`;
    const dot = (rows) => `<circle class="${rows === batch ? "there" : "here-dot"}" cx="${x(rows)}" cy="${y(measured(data, rows)).toFixed(1)}" r="${rows === batch ? 7 : 4.5}"/>`;
    const dots = Object.keys(rates["search's"]).map((rows) => dot(Number(rows))).join("");
    return `<svg class="drawing" style="max-width:450px" viewBox="0 0 450 274" role="img" aria-label="A roof that rises with the rows and then is level, and below it a measured dot for each of 1 to 512 rows; the one for ${batch} is larger."><g class="words left"><text x="54" y="14">billion operations a second</text></g>${limit}<g class="words">${across}${along}<text x="240" y="268">rows</text></g>${dots}</svg>\n`;
  };

  const told = (data) => {
    const { batch } = data;
    const g = (rate) => Number((rate / 1e9).toPrecision(2)).toString();
    const bound = memory(data, batch) < data.peak ? `memory allows ${g(memory(data, batch))}` : `the arithmetic allows ${g(data.peak)}`;
    const took = milliseconds(data, batch);
    return `${batch === 1 ? "1 row" : `${batch} rows`}: ${bound} billion operations a second, and ${g(measured(data, batch))} were measured. All take ${took.toFixed(0)} ms, ${(took / batch).toFixed(1)} ms a row.`;
  };

  if (typeof module !== "undefined") module.exports = { roof, told, still: draw };
  else customElements.define("roof-line", class extends HTMLElement {
    connectedCallback() {
      this.state = JSON.parse(this.querySelector("script").textContent);
      const part = Object.assign(document.createElement("div"), { className: "part" });
      this.append(part);
      part.innerHTML = `<div class="controls"><label>rows <input type="range" name="rows" min="0" max="9" value="${Math.log2(this.state.batch)}"><output></output></label></div>
        <div class="picture"></div><p class="told" role="status"></p>`;
      this.addEventListener("input", () => this.follow());
      this.follow();
    }

    follow() {
      const input = this.querySelector("input");
      this.state.batch = 2 ** Number(input.value);
      input.setAttribute("aria-valuetext", `${this.state.batch} rows`);
      this.querySelector("output").textContent = this.state.batch;
      this.querySelector(".picture").innerHTML = draw(this.state);
      this.querySelector(".told").textContent = told(this.state);
    }
  });
}
