/* What the page's Transformer does beside the page: this function becomes a worker, so that
   a long sentence never stops the scrolling. A page from a disk may not load a worker from
   a file, hence from its own text (see `start` in translate.js). */
"use strict";

var liveWorker = (self, Transformer, missing) => {
  let model = null, latest = 0;
  const channel = new MessageChannel(), waiting = [];
  channel.port1.onmessage = () => waiting.shift()();
  const pause = () => new Promise((resolve) => { // until other messages were seen
    waiting.push(resolve);
    channel.port2.postMessage(0);
  });

  // The name of a token of one side; of one that is written, by default.
  const named = (id, side = "target") => {
    const { bos_id, eos_id } = model.config;
    return { [bos_id]: "<s>", [eos_id]: "</s>" }[id] || model.tokenizer.names[side][id];
  };

  // A search's tree as a list, each node with its parent's place in it.
  function tree(steps, best) {
    const nodes = [{ name: "<s>", step: 0, state: "kept" }], places = new Map(), won = new Set();
    for (let node = best; node; node = node.parent) won.add(node);
    places.set(steps[0].candidates[0].parent, 0);
    steps.forEach(({ length, candidates }) => candidates.forEach((each) => {
      places.set(each, nodes.length);
      nodes.push({ name: named(each.token), step: length, parent: places.get(each.parent),
        text: model.tokenizer.decode(each.tokens), won: won.has(each),
        state: each.counts ? "ended" : each.kept ? "kept" : "pruned",
        probability: Math.exp(each.total - each.parent.total),
        total: each.total, score: each.score });
    }));
    return nodes;
  }

  // All that the page shows of a translation: what it read and wrote, each step's five most
  // probable tokens, every box of Figure 1 and every head.
  function inside(source, answer, switches) {
    const forced = Transformer.force(model, source, answer, switches);
    const candidates = forced.logProbs.map((logProbs) => Transformer.top(logProbs, 5)
      .map((id) => ({ id, name: named(id), probability: Math.exp(logProbs[id]) })));
    const looks = Object.entries({ ...source.looks, ...forced.looks }).map(
      ([name, { joined, scores, weights, values }]) => [name, { joined, scores, weights, values }]);
    return { ids: source.ids, answer, candidates,
      source: source.ids.map((id) => named(id, "source")),
      target: answer.map((id) => named(id)),
      probabilities: forced.logProbability.map(Math.exp),
      boxes: { ...source.boxes, ...forced.boxes }, looks: Object.fromEntries(looks) };
  }

  const total = (source, answer, switches) => Transformer.force(model, source, answer,
    switches).logProbability.reduce((a, b) => a + b, 0);

  const encoded = (text, side) => {
    const ids = model.tokenizer.encode(text, side), { max_length } = model.config;
    if (ids.length > max_length)
      throw new RangeError(`That's ${ids.length} tokens, and this model reads at most ${max_length}.`);
    return ids;
  };

  const tasks = {
    async load({ weights, packed, folder }) {
      const whole = packed ? weights.stream().pipeThrough(new DecompressionStream("gzip")) : weights;
      model = Transformer.read(await new Response(whole).arrayBuffer(), folder);
      return { config: model.config, codes: model.tokenizer.codes };
    },

    // One translation; `show` gets the best beginning at each step. A newer call ends it.
    async translate({ text, options, switches = {}, seed }, show, turn) {
      const began = performance.now();
      let ids = encoded(text, "source");
      if (seed) ids = Transformer.shuffle(ids, seed);
      const source = Transformer.encode(model, ids, switches);
      const written = (tokens) =>
        model.tokenizer.putBack(model.tokenizer.decode(tokens), text);
      const lost = ({ tokens }) => missing(text, written(tokens), ...model.languages);
      const searched = async (how, shown) => {
        const search = Transformer.beam(model, source, how, switches), steps = [];
        for (;;) {
          const { done, value } = search.next();
          if (done) return { ...value, steps };
          steps.push(value);
          if (value.live[0]) shown(written(value.live[0].tokens));
          await pause();
          if (turn !== latest) return null;
        }
      };
      let found = await searched(options, show);
      const milliseconds = found && (performance.now() - began) / (found.tokens.length + 1);
      const { size = 4 } = options || {};
      if (found && size > 1 && lost(found).length) {
        const again = await searched({ ...options, count: size }, () => {});
        found = again && { steps: again.steps, ...[again, ...again.others]
          .reduce((a, b) => (lost(b).length < lost(a).length ? b : a)) };
      }
      if (!found) return null;
      const answer = [...found.tokens, ...(found.finished ? [model.config.eos_id] : [])];
      return { output: written(found.tokens), read: model.tokenizer.decode(ids),
        unknown: ids.includes(model.tokenizer.unk_id),
        logProbability: found.logProbability, milliseconds, missing: lost(found),
        tree: tree(found.steps, found.node), ...inside(source, answer, switches) };
    },

    // What a translation's log-probability is with these switches.
    score: ({ ids, answer, switches }) =>
      total(Transformer.encode(model, ids, switches), answer, switches),

    // The same without each single head: what each is worth for this sentence.
    async worth({ ids, answer, switches }, show, turn) {
      const found = {}, whole = tasks.score({ ids, answer, switches });
      for (const name of ["encoder", "decoder", "cross"])
        for (const layer of (name === "encoder" ? model.encoder : model.decoder).layers.keys())
          for (let head = 0; head < model.config.h; head++) {
            const id = `${name}.${layer}.${head}`, off = new Set([...(switches.off || []), id]);
            found[id] = whole - tasks.score({ ids, answer, switches: { ...switches, off } });
            await pause();
            if (turn !== latest) return null;
          }
      return found;
    },

    // A translation that the reader gives: its tokens and their probabilities.
    given({ ids, text, switches }) {
      const answer = encoded(text, "target");
      const found = Transformer.force(model, Transformer.encode(model, ids, switches), answer,
        switches).logProbability;
      return { names: answer.map((id) => named(id)), probabilities: found.map(Math.exp),
        logProbability: found.reduce((a, b) => a + b, 0) };
    },
  };

  self.onmessage = async ({ data: { id, task, given } }) => {
    if (task === "translate") latest = id;
    const show = (text) => self.postMessage({ id, shown: text });
    try {
      self.postMessage({ id, found: await tasks[task](given, show, latest) });
    } catch (error) {
      self.postMessage({ id, error: error.message });
    }
  };
};

if (typeof module !== "undefined") module.exports = { liveWorker };
