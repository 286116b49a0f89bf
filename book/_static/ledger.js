// The ledger: its rows by section and by label.
{
  const labelOf = (row) => row.cells[4].textContent.trim();
  const parts = [...document.querySelectorAll("article section section")].flatMap((section) => {
    const table = [...section.querySelectorAll("table")]
      .find((each) => each.rows[0].cells[4]?.textContent.trim() === "label");
    return table ? [{ section, rows: [...table.rows].slice(1),
      name: section.querySelector("h2").firstChild.textContent.trim() }] : [];
  });
  const labels = [...new Set(parts.flatMap(({ rows }) => rows.map(labelOf)))];
  const choice = (name, values) => `<label>${name} <select name="${name}"><option value="">all</option>${
    values.map((each) => `<option>${each}</option>`).join("")}</select></label> `;
  const form = document.createElement("form");
  form.innerHTML = `<p>Show ${choice("section", parts.map(({ name }) => name))}${
    choice("label", labels)}<output></output></p>`;
  parts[0].section.before(form);

  const show = () => {
    let shown = 0;
    for (const { section, rows, name } of parts) {
      const here = !form.section.value || form.section.value === name;
      for (const row of rows) {
        row.hidden = !here || Boolean(form.label.value && labelOf(row) !== form.label.value);
        shown += !row.hidden;
      }
      section.hidden = rows.every((row) => row.hidden);
    }
    form.querySelector("output").textContent = `${shown} numbers`;
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
  show();
}
