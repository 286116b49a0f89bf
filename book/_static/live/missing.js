/* What a translation lacks: numbers, prices and addresses of its source, in the manner of
   translation/missing.py and numerals.py, which say what each part is for. It becomes part
   of the worker (see `start` in translate.js). */
"use strict";

var liveMissing = () => {
  const LETTER = "[\\p{L}\\p{N}_]", NUMBER = "[0-9]+(?:[.,'’][0-9]+)*";
  const ADDRESS = new RegExp(
    /(?<![\p{L}\p{N}_.%+-])[\p{L}\p{N}_.%+-]+@[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)+|(?:https?:\/\/|www\.)\S*[\p{L}\p{N}_/]/u.source
    + /|(?<![\p{L}\p{N}_.@-])(?:[\p{L}\p{N}_-]+\.)+(?:com|org|net|edu|gov|info|io|eu|de|uk)(?![\p{L}\p{N}_-])(?:\/\S*[\p{L}\p{N}_])?/u.source, "gu");
  const ITEM = new RegExp("(?<groups>(?<![.,:$€£0-9])[0-9]+(?:[ ()/-]{1,2}[0-9]+)+(?![.,:]?[0-9]))"
    + "|(?<hour>[0-9]{1,2}):(?<minute>[0-9]{2})(?![0-9])"
    + `|(?:(?<sign>[$€£]) ?)?(?<number>${NUMBER})(?:(?<half> ?[ap]\\.?m(?!${LETTER})\\.?| Uhr(?!${LETTER}))`
    + "|(?<scale> [mb]illion)?(?: ?(?<unit>[$€£%]))?)", "gu");
  const SIGNS = { $: /\$|dollar|usd/i, "€": /€|euro?/i, "£": /£|pfund|pound|gbp/i,
    "%": /%|prozent|per ?cent/i, " million": /million|mio/i, " billion": /milliarde|mrd|billion/i };
  const POINTED = ["en", "he", "ja", "ko", "th", "zh"];

  // Numbers in words.
  const TIMES = { hundert: 100, tausend: 1000 };
  function table(small, tens, more, joined) {
    const words = Object.fromEntries(small.split(" ").map((word, value) => [word, value]));
    Object.assign(words, more);
    const units = Object.entries(words).filter(([, value]) => value > 0 && value < 10);
    tens.split(" ").forEach((ten, n) => {
      words[ten] = 10 * (n + 2);
      units.forEach(([word, value]) => { words[joined(ten, word)] = 10 * (n + 2) + value; });
    });
    return words;
  }
  const NUMERALS = {
    de: { ...table("null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn "
      + "vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn",
    "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig", {},
    (ten, unit) => `${unit}und${ten}`), ...TIMES, erst: 1, dritt: 3, siebt: 7 },
    en: { ...table("zero one two three four five six seven eight nine ten eleven twelve thirteen "
      + "fourteen fifteen sixteen seventeen eighteen nineteen",
    "twenty thirty forty fifty sixty seventy eighty ninety",
    { first: 1, once: 1, second: 2, twice: 2, third: 3, fifth: 5, eighth: 8, ninth: 9,
      twelfth: 12, twentieth: 20 },
    (ten, unit) => `${ten}-${unit}`), hundred: 100, thousand: 1000 },
  };
  const ENDINGS = { de: `(hundert|tausend)?${LETTER}*`, en: "()(?:s|th)?" };
  const WORDS = Object.fromEntries(Object.entries(NUMERALS).map(([lang, words]) => {
    const longest = Object.keys(words).sort((a, b) => b.length - a.length);
    return [lang, new RegExp(`^(${longest.join("|")})${ENDINGS[lang]}$`, "u")];
  }));

  function value(number, point) {
    const digits = number.replace(/[^0-9]/g, "");
    const [, mark = ".", after = number] = number.match(/^.*([^0-9])([0-9]*)$/s) || [];
    const once = number.split(mark).length === 2;
    const decimal = once && (mark === point || (".,".includes(mark) && after.length !== 3));
    let whole = decimal ? digits.slice(0, -after.length) : digits;
    const part = decimal ? after.replace(/0+$/, "") : "";
    if (whole.length < 3) whole = whole.replace(/^0+/, "") || "0";
    return part ? `${whole}.${part}` : whole;
  }

  function values(text, lang) {
    const found = new Map(), point = POINTED.includes(lang) ? "." : ",";
    const add = (each) => found.set(each, (found.get(each) || 0) + 1);
    const joined = text.replace(/(?<=[0-9])[ \u00a0\u202f](?=[0-9]{3}(?![0-9]))/g, "");
    for (const [number] of joined.matchAll(new RegExp(NUMBER, "g"))) {
      add(value(number, point));
      const parts = number.split(".");
      if (parts.length > 1 && parts.slice(0, 2).every((each) => each.length < 3))
        parts.filter((each) => /^[0-9]+$/.test(each)).forEach((each) => add(value(each, point)));
    }
    const words = WORDS[lang] ? text.toLowerCase().match(/\p{L}+(?:-\p{L}+)?/gu) || [] : [];
    for (const word of words) {
      const known = word.match(WORDS[lang]);
      const number = known && NUMERALS[lang][known[1]], times = known && (TIMES[known[2]] || 1);
      if (known && (times === 1 || number < times)) add(String(number * times));
    }
    return found;
  }

  function joinedGroups(text) {
    const found = new Set();
    for (const [run] of text.matchAll(/[0-9](?:[ ()/.–-]{0,2}[0-9])*/g)) {
      const groups = run.match(/[0-9]+/g);
      groups.forEach((_, from) => {
        for (let to = from + 1; to <= from + 6; to++) found.add(groups.slice(from, to).join(""));
      });
    }
    return found;
  }

  function take(ways, there) {
    return ways.some((way) => {
      const enough = way.every((each) =>
        there.get(each) >= way.filter((other) => other === each).length);
      if (enough) way.forEach((each) => there.set(each, there.get(each) - 1));
      return enough;
    });
  }

  function waysOf({ hour, minute, number, half }, lang) {
    const point = POINTED.includes(lang) ? "." : ",", whole = value(hour || number, point);
    if (!(hour || half) || !/^[0-9]+$/.test(whole)) return [[whole]];
    const minutes = hour && value(minute, point) !== "0" ? [value(minute, point)] : [];
    return [0, 12, -12].map((step) => [String(Number(whole) + step), ...minutes]);
  }

  function lostGroups(text, there, joined) {
    const groups = text.match(/[0-9]+/g), digits = groups.join("");
    const wanted = groups.map((each) => value(each, "."));
    if (digits.length < 6) return groups.filter((_, n) => !take([[wanted[n]]], there));
    if (!/^[0-9]{4}-[0-9]{2}-[0-9]{2}$/.test(text) && joined.has(digits)) return [];
    return take([wanted], there) ? [] : [text];
  }

  // What a translation lacks, as its source writes it.
  return (source, translation, from = "en", to = "de") => {
    const lost = [];
    for (const [address] of source.matchAll(ADDRESS)) {
      const quoted = address.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&");
      const whole = new RegExp(`(?<!${LETTER})${quoted}`, "u");
      if (!whole.test(translation)) lost.push(address);
      translation = translation.replace(whole, " ");
    }
    const rest = source.replace(ADDRESS, " ");
    if (!/[0-9]/.test(rest)) return lost;
    const there = values(translation, to), joined = joinedGroups(translation);
    for (const { 0: found, groups } of rest.matchAll(ITEM)) {
      const text = found.trim();
      const { sign, scale, unit } = groups;
      if (groups.groups) lost.push(...lostGroups(text, there, joined));
      else if (!take(waysOf(groups, from), there)) {
        if (WORDS[to] || !/^([0-9]|1[0-2])$/.test(text)) lost.push(text);
      } else if (WORDS[to] && [sign, scale, unit].some((each) => each && !SIGNS[each].test(translation)))
        lost.push(text);
    }
    return lost;
  };
};

if (typeof module !== "undefined") module.exports = { liveMissing };
