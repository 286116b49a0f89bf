// Questions that a reader answers before seeing an output (book/_ext/predict.py).
for (const place of document.querySelectorAll(".predict")) {
  const { right, within = 0 } = place.dataset;
  const inputs = [...place.querySelectorAll("input")];
  const [button, verdict, answer] = ["button", ".verdict", "details"].map((each) => place.querySelector(each));

  // The next output of the section; it keeps its room while it waits.
  let waiting = place;
  do waiting = waiting.nextElementSibling;
  while (waiting && !waiting.matches(".predict, section") && !waiting.matches(".cell:has(.cell_output)"));
  if (!waiting?.matches(".cell")) waiting = null;
  // Who follows a link to the output itself has come to see it.
  const linked = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (!(linked && waiting?.contains(linked))) waiting?.classList.add("predict-waits");

  const check = () => {
    const [first] = inputs;
    const chosen = first.type === "radio" ? inputs.find((each) => each.checked) : first.value && first;
    if (!chosen) {
      verdict.textContent = "Choose an answer first.";
      return;
    }
    const hit = first.type === "radio"
      ? chosen.value === right
      : Math.abs(chosen.value - right) <= Number(within) + 1e-9;
    place.dataset.verdict = hit ? "right" : "wrong";
    verdict.textContent = hit ? "✓ Right." : "✗ Not so. The answer is:";
    answer.open = true;
  };
  button.hidden = false;
  button.addEventListener("click", check);
  for (const each of inputs) {
    each.addEventListener("keydown", (event) => {
      if (event.key === "Enter") check();
    });
  }
  answer.addEventListener("toggle", () => {
    if (answer.open) waiting?.classList.remove("predict-waits");
  });
}
