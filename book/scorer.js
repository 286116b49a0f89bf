// How the search of the book ranks what it finds: a title that a reader typed comes first,
// chapters come before the pages that list (the reference, the glossary, the questions).
var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    score / (/^(api\/|plots|house|results|references)/.test(page) ? 4
      : /^(glossary|questions|welcome)/.test(page) ? 2 : 1),
  title: 60,
  partialTitle: 8,
  term: 5,
  partialTerm: 1,
  objNameMatch: 40,
  objPartialMatch: 2,
  objPrio: { 0: 5, 1: 3, 2: 0 },
  objPrioDefault: 0,
};
