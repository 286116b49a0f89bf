// How the book's search ranks what it finds, and four steps that Sphinx's own search
// lacks: a word that no page has gives way to the nearest one, a title counts where it
// holds the phrase, a page is listed once, and results come while one types.

// Exact titles come first, chapters before the pages that list (the reference, the
// glossary, the questions).
var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    score / (/^(api\/|architecture|results|references)/.test(page) ? 4
      : /^(glossary|questions|index)/.test(page) ? 2 : 1),
  title: 60,
  partialTitle: 8,
  term: 5,
  partialTerm: 1,
  objNameMatch: 40,
  objPartialMatch: 2,
  objPrio: { 0: 5, 1: 3, 2: 0 },
  objPrioDefault: 0,
};

// A browser doesn't let a page from a disk read others, so there are no excerpts.
DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY &&= location.protocol !== "file:";

// How many letters to change, add, leave out or swap with their neighbours.
function distance(from, to) {
  let earlier = [], above = Array.from({ length: to.length + 1 }, (_, j) => j);
  for (let i = 1; i <= from.length; i++) {
    const row = [i];
    for (let j = 1; j <= to.length; j++) {
      const same = from[i - 1] === to[j - 1];
      row[j] = Math.min(row[j - 1] + 1, above[j] + 1, above[j - 1] + !same);
      if (j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1])
        row[j] = Math.min(row[j], earlier[j - 2] + 1);
    }
    [earlier, above] = [above, row];
  }
  return above[to.length];
}

// A word of which a page has some form, or else the nearest word of a title, a subject or
// a text, and of several the one on most pages.
function nearest(word) {
  const { terms, titleterms, alltitles, indexentries } = Search._index;
  const typed = word.toLowerCase(), texts = Object.keys({ ...terms, ...titleterms });
  const stem = (each) => new Stemmer().stemWord(each);
  const known = (each) => each === stem(typed) || each.includes(typed);
  if (stopwords.includes(typed) || texts.some(known)
      || Search.performObjectSearch(typed, new Set([typed])).length) return word;
  const titles = Object.keys({ ...alltitles, ...indexentries }).join(" ").toLowerCase();
  const most = typed.length < 8 ? 1 : 2;
  let best = word, least = most;
  for (const each of [...splitQuery(titles), ...texts]) {
    const letters = Math.abs(each.length - typed.length) > most ? Infinity
      : distance(typed, each);
    if (letters > most) continue;
    const away = letters - [terms[stem(each)] ?? []].flat().length / 1000;
    if (away < least) [best, least] = [each, away];
  }
  return best;
}

const { query, _performSearch } = Search;

Search.query = (typed) => {
  const meant = typed.replace(/\p{Letter}{4,}/gu, nearest);
  if (meant !== typed)
    Search.status.before(`No page has “${typed}”. The search was for “${meant}”.`);
  query(meant);
};

let results = [];  // still to be shown, the best last

// The sections whose titles hold the words as they were typed, one beside the other, and
// the subject that they name; a hyphen is a space.
const spaced = (text) => text.toLowerCase().replace(/[-\s]+/g, " ").trim();
function phrases(typed) {
  const { alltitles, indexentries, docnames, titles, filenames } = Search._index;
  const phrase = spaced(typed);
  const rows = (entries, score, holds) => Object.entries(entries).filter(([text]) => holds(spaced(text)))
    .flatMap(([, places]) => places.map(([file, id]) =>
      [docnames[file], titles[file], id ? `#${id}` : "", null, score, filenames[file]]));
  return [...rows(alltitles, 80, (title) => title.includes(phrase)),
    ...rows(indexentries, 100, (entry) => entry === phrase)]
    .map((each) => each.with(4, Scorer.score(each)));
}

Search._performSearch = (typed, ...words) => {
  const seen = new Set(), found = _performSearch(typed, ...words);
  return results = [...found, ...(/[- ]/.test(typed) ? phrases(typed) : [])]
    .sort((a, b) => a[4] - b[4]).reverse()
    .filter(([page]) => !seen.has(page) && seen.add(page)).reverse();
};

// An excerpt is of what a chapter says, not of the buttons and contents above it, whose
// handlers this page's policy would report.
Search.htmlToText = (html, anchor) => {
  const text = html.replace(/ on\w+="[^"]*"/g, "");
  const page = new DOMParser().parseFromString(text, "text/html");
  page.querySelectorAll("h1, .headerlink, script, style").forEach((each) => each.remove());
  return page.querySelector(`article ${anchor || ""}`)?.textContent.trim() ?? "";
};

// The theme means to, but takes the box that opens above every page.
const box = document.querySelector(".bd-search-container input");
box.focus();
box.select();

let pause;
box.addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(() => {
    results.length = 0;
    history.replaceState(null, "", `?q=${encodeURIComponent(box.value)}`);
    document.getElementById("search-results").replaceChildren();
    if (box.value.trim()) Search.performSearch(box.value);
  }, 150);
});
