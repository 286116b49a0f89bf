// Questions that a reader answers before seeing what follows (book/_ext/predict.py). The
// rest of the section is shown while the answer is open (book.css); what was chosen is
// kept for the next visit, and forgotten when the answer is folded again.
let memory = {};
try {
  memory = localStorage;
} catch { /* this browser keeps nothing */ }

for (const place of document.querySelectorAll(".predict")) {
  const { right, within = 0 } = place.dataset;
  const inputs = [...place.querySelectorAll("input")];
  const [first] = inputs;
  const [button, verdict, answer] = ["button", ".verdict", "details"].map((each) => place.querySelector(each));
  const key = `predict ${location.pathname} ${place.querySelector("legend").textContent}`;
  const chosen = () => (first.type === "radio" ? inputs.find((each) => each.checked) : first)?.value ?? "";

  const clear = () => {
    verdict.textContent = "";
    delete place.dataset.verdict;
  };
  const check = () => {
    const value = chosen();
    if (!value) {
      verdict.textContent = "Choose an answer first.";
      return;
    }
    const hit = first.type === "radio" ? value === right : Math.abs(value - right) <= Number(within) + 1e-9;
    place.dataset.verdict = hit ? "right" : "wrong";
    verdict.textContent = hit ? "✓ Right." : "✗ Not quite: ";
    if (!hit) verdict.append(...answer.querySelector("strong").cloneNode(true).childNodes);
    answer.open = true;
  };

  button.hidden = false;
  button.addEventListener("click", check);
  for (const each of inputs) {
    each.addEventListener("input", clear);
    each.addEventListener("keydown", (event) => {
      if (event.key === "Enter") check();
    });
  }
  answer.addEventListener("toggle", () => {
    if (answer.open) memory[key] = place.dataset.verdict ? chosen() : "";
    else {
      delete memory[key];
      clear();
    }
  });

  if (memory[key]) {
    if (first.type === "radio") inputs.find((each) => each.value === memory[key])?.click();
    else first.value = memory[key];
    check();
  } else if (key in memory) answer.open = true;

  // Who follows a link to something covered has come to see it.
  const linked = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (answer.open || target?.closest("section") !== place.closest("section")) return;
    if (place.compareDocumentPosition(target) !== Node.DOCUMENT_POSITION_FOLLOWING) return;
    answer.open = true;
    target.scrollIntoView();
  };
  linked();
  addEventListener("hashchange", linked);
}
