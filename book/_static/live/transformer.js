/* "Attention Is All You Need" in plain JavaScript, to run in a page: a reader of
   safetensors, a tokenizer, the encoder, the decoder with a cache, and the beam.

   A vector is a Float32Array, and a matrix is { rows, columns, data } with its rows one
   after the other. `switches` turn parts of the model off:
     positions: false     add no position codes
     scale: false         leave out the division by √d_k
     residual: false      LayerNorm(Sublayer(x)) in place of LayerNorm(x + Sublayer(x))
     source: false        the heads of the decoder that look at the source give zeros
     off: Set             single parts by name, layers and heads from 0: "cross.0.3" is a
                          head that gives zeros (others begin "encoder", "decoder"),
                          "encoder.0.feed_forward" gives zeros, "encoder.positions" adds
                          no codes, "decoder.0.after_attention" has no residual */
"use strict";

var makeTransformer = () => {
  // -- Matrices -------------------------------------------------------------------------

  const matrix = (rows, columns) =>
    ({ rows, columns, data: new Float32Array(rows * columns) });
  const row = (X, i) => X.data.subarray(i * X.columns, (i + 1) * X.columns);
  const each = (n, make) => Array.from({ length: n }, (_, i) => make(i));

  // x Wᵀ + b for each row x of X: all that is trained in §3.2.2, §3.3 and §3.4 but norms.
  function linear(X, { weight, bias }) {
    const { rows: outs, columns: ins, data: W } = weight, Y = matrix(X.rows, outs);
    const x = X.data, y = Y.data;
    let o = 0;
    for (; o + 4 <= outs; o += 4) { // four outputs at once, so that x is read less often
      const w0 = o * ins, w1 = w0 + ins, w2 = w1 + ins, w3 = w2 + ins;
      for (let n = 0; n < X.rows; n++) {
        const start = n * ins, place = n * outs + o;
        let a = 0, b = 0, c = 0, d = 0;
        for (let i = 0; i < ins; i++) {
          const v = x[start + i];
          a += v * W[w0 + i]; b += v * W[w1 + i]; c += v * W[w2 + i]; d += v * W[w3 + i];
        }
        y[place] = a; y[place + 1] = b; y[place + 2] = c; y[place + 3] = d;
      }
    }
    for (; o < outs; o++)
      for (let n = 0; n < X.rows; n++) y[n * outs + o] = dot(row(X, n), row(weight, o));
    if (bias) for (let k = 0; k < y.length; k++) y[k] += bias.data[k % outs];
    return Y;
  }

  function dot(a, b) {
    let sum = 0;
    for (let i = 0; i < a.length; i++) sum += a[i] * b[i];
    return sum;
  }

  function add(X, Y) {
    const Z = matrix(X.rows, X.columns);
    for (let k = 0; k < Z.data.length; k++) Z.data[k] = X.data[k] + Y.data[k];
    return Z;
  }

  function softmax(scores) {
    const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
    const powers = scores.map((score) => Math.exp(score - largest));
    const sum = powers.reduce((a, b) => a + b, 0);
    return powers.map((power) => power / sum);
  }

  // -- The parts of the model -----------------------------------------------------------

  // Equation (1), §3.2.1, for one query: softmax(q Kᵀ / √d_k) V.
  function attention(query, keys, values, scaled) {
    const divisor = scaled ? Math.sqrt(query.length) : 1;
    const scores = keys.map((key) => dot(query, key) / divisor);
    const weights = softmax(scores);
    const attended = new Float32Array(values[0].length);
    values.forEach((value, j) => {
      for (let i = 0; i < value.length; i++) attended[i] += weights[j] * value[i];
    });
    return { attended, scores, weights };
  }

  // §3.2.2: h attentions side by side, then W_O. Row i of X looks at `keys[i]`, a list of
  // vectors. The decoder's hold nothing later than row i, which is what a mask is for.
  function multiHead(X, part, keys, values, { h, d_k, d_v }, switches, name) {
    const queries = linear(X, part.W_Q), joined = matrix(X.rows, h * d_v);
    const [scores, weights] = [0, 1].map(() => each(h, () => []));
    const blind = name.startsWith("cross") && switches.source === false;
    for (let head = 0; head < h; head++) {
      const key = (x) => x.subarray(head * d_k, (head + 1) * d_k);
      const value = (x) => x.subarray(head * d_v, (head + 1) * d_v);
      const off = blind || isOff(switches, `${name}.${head}`);
      for (let i = 0; i < X.rows; i++) {
        const found = attention(key(row(queries, i)), keys[i].map(key), values[i].map(value),
          switches.scale !== false);
        if (!off) row(joined, i).set(found.attended, head * d_v);
        scores[head].push(found.scores); // [head][query][key]
        weights[head].push(found.weights);
      }
    }
    return { output: linear(joined, part.W_O), joined, scores, weights };
  }

  const isOff = (switches, name) => Boolean(switches.off && switches.off.has(name));

  // Equation (2), §3.3: max(0, x W_1 + b_1) W_2 + b_2 at each position alone; a model may
  // have another activation than max(0, x).
  function feedForward(X, { W_1, W_2 }, activation = (x) => Math.max(0, x)) {
    const hidden = linear(X, W_1);
    hidden.data.forEach((x, k, data) => { data[k] = activation(x); });
    return linear(hidden, W_2);
  }

  // §3.1: mean 0 and variance 1 at each position, then a learned scale and shift.
  function layerNorm(X, { weight, bias }) {
    const Y = matrix(X.rows, X.columns), d = X.columns;
    for (let n = 0; n < X.rows; n++) {
      const x = row(X, n), y = row(Y, n);
      const mean = x.reduce((a, b) => a + b, 0) / d;
      const variance = x.reduce((a, b) => a + (b - mean) ** 2, 0) / d;
      const spread = Math.sqrt(variance + 1e-5);
      for (let i = 0; i < d; i++)
        y[i] = ((x[i] - mean) / spread) * weight.data[i] + bias.data[i];
    }
    return Y;
  }

  // §3.1: LayerNorm(x + Sublayer(x)), the residual connection around each sub-layer.
  function addNorm(X, output, norm, residual) {
    return layerNorm(residual ? add(X, output) : output, norm);
  }

  // §3.5: the sine and cosine code of one position.
  function position(place, d_model) {
    return Float32Array.from({ length: d_model }, (_, i) => {
      const angle = place * 10000 ** (-(i - (i % 2)) / d_model);
      return i % 2 ? Math.cos(angle) : Math.sin(angle);
    });
  }

  // §3.4 and §3.5: token vectors times √d_model, plus the codes of their positions.
  function embed(model, ids, placeOf, switches, side) {
    const own = side === "encoder" && model.src_embedding; // of two vocabularies
    const { d_model } = model.config, table = (own || model.tgt_embedding).weight;
    const tokens = matrix(ids.length, d_model), places = matrix(ids.length, d_model);
    const factor = Math.fround(Math.sqrt(d_model));
    const coded = switches.positions !== false && !isOff(switches, `${side}.positions`);
    ids.forEach((id, n) => {
      row(tokens, n).set(row(table, id).map((value) => value * factor));
      if (coded) row(places, n).set(position(placeOf(n), d_model));
    });
    return { tokens, places, sum: add(tokens, places) };
  }

  const rowsOf = (X) => each(X.rows, (i) => row(X, i));

  // A sub-layer's output, then add and norm, kept in `boxes` under their names in Figure 1.
  function subLayer(X, output, layer, name, part, boxes, switches) {
    boxes[`${name}.${part}`] = output;
    const after = `after_${part}`, residual = switches.residual !== false
      && !isOff(switches, `${name}.${after}`);
    return boxes[`${name}.${after}`] = addNorm(X, output, layer[after].norm, residual);
  }

  function fed(X, layer, name, boxes, switches, activation) {
    const off = isOff(switches, `${name}.feed_forward`);
    const output = off ? matrix(X.rows, X.columns)
      : feedForward(X, layer.feed_forward, activation);
    return subLayer(X, output, layer, name, "feed_forward", boxes, switches);
  }

  // §3.1, the left half of Figure 1. What comes back is all that the decoder needs: the
  // keys and values that each of its layers makes of the source, computed once; and, to
  // be looked at, what leaves each box and what each attention did.
  function encode(model, ids, switches = {}) {
    const embedding = embed(model, ids, (n) => n, switches, "encoder"), looks = {};
    const boxes = { "encoder.embedding": embedding.tokens, "encoder.positions": embedding.sum };
    let X = embedding.sum;
    model.encoder.layers.forEach((layer, l) => {
      const part = layer.self_attention, name = `encoder.${l}`;
      const K = linear(X, part.W_K), V = linear(X, part.W_V);
      const keys = rowsOf(K), values = rowsOf(V);
      const look = multiHead(X, part, ids.map(() => keys), ids.map(() => values),
        model.config, switches, name);
      looks[name] = { ...look, keys: K, values: V };
      X = subLayer(X, look.output, layer, name, "attention", boxes, switches);
      X = fed(X, layer, name, boxes, switches, model.activation);
    });
    const memory = model.decoder.layers.map(({ source_attention: part }) =>
      ({ keys: linear(X, part.W_K), values: linear(X, part.W_V) }));
    return { ids, boxes, looks, memory };
  }

  // §3.1, the right half of Figure 1. Row i of Y may see what `seen` gives for it of the
  // keys and values of its layer.
  function decode(model, source, Y, seen, switches) {
    const boxes = {}, looks = {};
    model.decoder.layers.forEach((layer, l) => {
      const part = layer.self_attention, memory = source.memory[l];
      const K = linear(Y, part.W_K), V = linear(Y, part.W_V), own = seen(l, rowsOf(K), rowsOf(V));
      const self = multiHead(Y, part, own.keys, own.values, model.config, switches,
        `decoder.${l}`);
      looks[`decoder.${l}`] = { ...self, keys: K, values: V };
      Y = subLayer(Y, self.output, layer, `decoder.${l}`, "self_attention", boxes, switches);
      const [keys, values] = [rowsOf(memory.keys), rowsOf(memory.values)];
      const cross = multiHead(Y, layer.source_attention, own.keys.map(() => keys),
        own.keys.map(() => values), model.config, switches, `cross.${l}`);
      looks[`cross.${l}`] = { ...cross, ...memory };
      Y = subLayer(Y, cross.output, layer, `decoder.${l}`, "source_attention", boxes, switches);
      Y = fed(Y, layer, `decoder.${l}`, boxes, switches, model.activation);
    });
    const { weight } = model.tgt_embedding; // the same matrix again, §3.4
    const logits = linear(Y, { weight, bias: model.logits_bias });
    const logProbs = rowsOf(logits).map((x) => logSoftmax(x, model.config));
    return { logProbs, boxes, looks };
  }

  // The newest token of each beginning. `pasts[n]` holds what beginning n has computed
  // before, layer by layer, and isn't changed.
  function step(model, source, tokens, pasts, switches = {}) {
    const place = pasts[0].length, after = pasts.map(() => ({ length: place + 1, layers: [] }));
    const seen = (l, keys, values) => {
      after.forEach((next, n) => {
        const before = pasts[n].layers[l] || { keys: [], values: [] };
        next.layers.push({ keys: [...before.keys, keys[n]], values: [...before.values, values[n]] });
      });
      return { keys: after.map((next) => next.layers[l].keys),
        values: after.map((next) => next.layers[l].values) };
    };
    const { sum } = embed(model, tokens, () => place, switches, "decoder");
    return { ...decode(model, source, sum, seen, switches), pasts: after };
  }

  // The decoder over a given translation, all its tokens at once as in training: how
  // probable each is after those before it, what leaves each box, where each head looks.
  function force(model, source, ids, switches = {}) {
    const read = [model.config.bos_id, ...ids.slice(0, -1)];
    const embedding = embed(model, read, (n) => n, switches, "decoder");
    const before = (vectors) => vectors.map((_, i) => vectors.slice(0, i + 1));
    const made = decode(model, source, embedding.sum, (_, keys, values) =>
      ({ keys: before(keys), values: before(values) }), switches);
    const boxes = { "decoder.embedding": embedding.tokens, "decoder.positions": embedding.sum,
      ...made.boxes };
    return { ...made, boxes, logProbability: ids.map((id, n) => made.logProbs[n][id]) };
  }

  // log p(next token), and -∞ for padding and begin, which no sentence contains.
  function logSoftmax(logits, { pad_id, bos_id }) {
    const largest = logits.reduce((a, b) => Math.max(a, b), -Infinity);
    const sum = logits.reduce((a, b) => a + Math.exp(b - largest), 0);
    const found = logits.map((logit) => logit - largest - Math.log(sum));
    found[pad_id] = found[bos_id] = -Infinity;
    return found;
  }

  // -- Search ---------------------------------------------------------------------------

  // The ids of the k largest of some log-probabilities, the best first.
  function top(logProbs, k) {
    const best = [];
    for (let id = 0; id < logProbs.length; id++) {
      if (best.length === k && !(logProbs[id] > logProbs[best[k - 1]])) continue;
      let place = best.length;
      while (place && logProbs[id] > logProbs[best[place - 1]]) place--;
      best.splice(place, 0, id);
      if (best.length > k) best.pop();
    }
    return best;
  }

  const begin = () => ({ length: 0, layers: [] });
  const penalty = (length, alpha) => ((5 + length) / 6) ** alpha;

  // §6.1: beam search, one step at each `next()`, and the result in the end. A beam of one
  // is greedy search. Hypotheses know their parents, so that the whole tree can be drawn.
  // It goes on until the `count` best are known, and gives them as `others`.
  function* beam(model, source, { size = 4, alpha = 0.6, count = 1, maxLength } = {},
    switches = {}) {
    const { config } = model, { eos_id } = config;
    const limit = Math.min(maxLength || source.ids.length + 50, config.max_length);
    let live = [{ token: config.bos_id, tokens: [], total: 0, past: begin() }];
    let ended = [], best = null;
    for (let length = 1; length <= limit; length++) {
      const made = step(model, source, live.map((each) => each.token),
        live.map((each) => each.past), switches);
      const candidates = live.flatMap((parent, n) =>
        top(made.logProbs[n], 2 * size).map((token) => ({
          parent, token, tokens: [...parent.tokens, token], past: made.pasts[n],
          total: parent.total + made.logProbs[n][token],
        }))).sort((a, b) => b.total - a.total).slice(0, 2 * size);
      candidates.forEach((each, place) => {
        each.score = each.total / penalty(length, alpha);
        each.ended = each.token === eos_id;
        each.counts = each.ended && place < size;
      });
      ended = [...ended, ...candidates.filter((each) => each.counts)]
        .sort((a, b) => b.score - a.score).slice(0, count);
      best = ended[0] || null;
      live = candidates.filter((each) => !each.ended).slice(0, size);
      live.forEach((each) => { each.kept = true; });
      yield { length, candidates, live, best, logProbs: made.logProbs };
      const largest = penalty(alpha > 0 ? limit : length + 1, alpha);
      const worst = ended[count - 1];
      if (worst && (size === 1 || live[0].total / largest <= worst.score)) break;
    }
    const result = (node) => ({ node, logProbability: node.total, score: node.score,
      tokens: node.tokens.slice(0, node.ended ? -1 : undefined), finished: Boolean(node.ended) });
    return { ...result(best || live[0]), others: ended.slice(1).map(result) };
  }

  // Runs a search to its end: the best translation of some source ids.
  function translate(model, ids, options = {}, switches = {}) {
    const search = beam(model, encode(model, ids, switches), options, switches);
    for (;;) {
      const { done, value } = search.next();
      if (done) return value;
    }
  }

  // The source in another order, its end token in place: the same for the same seed.
  function shuffle(ids, seed) {
    const words = ids.slice(0, -1);
    let state = (seed * 69621) % 2147483647;
    for (let i = words.length - 1; i > 0; i--) {
      state = (state * 48271) % 2147483647;
      const j = state % (i + 1);
      [words[i], words[j]] = [words[j], words[i]];
    }
    return [...words, ids[ids.length - 1]];
  }

  // -- Text (§5.1) ----------------------------------------------------------------------

  // The expressions that this package writes; another's might take for ever.
  const EXPRESSIONS = ["\\z", "▁\\z", "\\A▁", "[^▁]*▁", "[\\s\\x1c-\\x1f]+", "[\\s\\S]",
    "▁?[\\p{L}\\p{M}]+|▁?\\p{N}|▁?[^▁\\p{L}\\p{M}\\p{N}]+|▁"];

  // A pattern of a tokenizer.json: a text as it stands, or a regular expression.
  function pattern({ String: text, Regex: expression }) {
    if (expression !== undefined && !EXPRESSIONS.includes(expression))
      throw new Error("its tokenizer has an expression that this page doesn't know");
    const source = expression === undefined
      ? text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
      : expression.replaceAll("\\A", "^").replaceAll("\\z", "$");
    return new RegExp(source, "gu");
  }

  const NORMALIZERS = {
    NFC: () => (text) => text.normalize("NFC"),
    Lowercase: () => (text) => text.toLowerCase(),
    Prepend: ({ prepend }) => (text) => (text ? prepend + text : text),
    Replace: ({ pattern: found, content }) => (text) =>
      text.replace(pattern(found), () => content),
    Strip: () => (text) => text.trim(),
  };
  const DECODERS = { // from a list of tokens to another
    Fuse: () => (tokens) => [tokens.join("")],
    Replace: (settings) => (tokens) => tokens.map(NORMALIZERS.Replace(settings)),
    Strip: ({ content, start, stop }) => (tokens) => tokens.map((token) => {
      let [from, to] = [0, token.length];
      while (from < start && token[from] === content) from++;
      while (token.length - to < stop && to > from && token[to - 1] === content) to--;
      return token.slice(from, to);
    }),
  };

  function steps(kinds, { normalizers, decoders, ...settings }) {
    return (normalizers || decoders || [settings]).map((each) => {
      if (!kinds[each.type]) throw new Error(`tokenizer.json asks for ${each.type}`);
      return kinds[each.type](each);
    });
  }

  // Byte-pair encoding, §5.1: of all neighbours the pair that was learned first is joined,
  // the leftmost if it occurs twice, until no pair of neighbours was ever learned.
  function merged(symbols, ranks) {
    for (;;) {
      let best = -1, lowest = Infinity;
      for (let i = 0; i + 1 < symbols.length; i++) {
        const rank = ranks.get(`${symbols[i]} ${symbols[i + 1]}`);
        if (rank < lowest) [best, lowest] = [i, rank];
      }
      if (best < 0) return symbols;
      symbols.splice(best, 2, symbols[best] + symbols[best + 1]);
    }
  }

  // One character for each address and telephone number, straight quotes, and no text in
  // capitals or heading, as data/normalization.py has it.
  const HIDDEN = "\ufffc", COPIED = new RegExp(
    /(?<![\p{L}\p{N}_.%+-])[\p{L}\p{N}_.%+-]+@[\p{L}\p{N}_-]+(?:\.[\p{L}\p{N}_-]+)+|(?:https?:\/\/|www\.)\S*[\p{L}\p{N}_/]/u.source
    + /|(?<![\p{L}\p{N}_.@-])(?:[\p{L}\p{N}_-]+\.)+(?:com|org|net|edu|gov|info|io|eu|de|uk)(?![\p{L}\p{N}_-])(?:\/\S*[\p{L}\p{N}_])?/u.source
    + /|(?<![\p{L}\p{N}_.,:$€£+-])(?=(?:[^0-9]{0,2}[0-9]){7})[+(]{0,2}[0-9]{2,6}\)?(?:(?:[ -]{1,2}|\/(?=[0-9]{5}))[0-9]{2,8}){1,5}(?![.,:]?[0-9])(?![\p{L}\p{N}_/-])/u.source, "gu");

  function normalized(text) {
    const straight = text.replace(/[“”„‟«»]/g, '"').replace(/[‘’‚]/g, "'");
    const words = straight.split(" ").filter((word) => /\p{L}/u.test(word));
    const shouts = words.length > 1 && !/\p{Ll}/u.test(straight);
    const isHeading = words.length > 3 && words.every((word) => /^[^\p{L}]*\p{Lu}/u.test(word));
    if (!shouts && !isHeading) return straight;
    const [first] = straight.match(/^[^\p{L}]*\p{L}/u);
    return first + straight.slice(first.length).toLowerCase()
      .replace(/(?<![\p{L}\p{N}_])i(?![\p{L}\p{N}_\u0300-\u036f])/gu, "I");
  }

  // Text to ids, the end token last, and back, as the library `tokenizers` does; a source
  // is normalized first, if the model asks for it. The target may have merges of its own, and
  // a vocabulary.
  function makeTokenizer(settings, target, { pad_id, bos_id, eos_id }, normalize) {
    const { vocab, unk_token } = settings.model, special = [pad_id, bos_id, eos_id];
    const vocabs = { source: vocab, target: target.model.vocab || vocab };
    const sorted = (ids) => Object.keys(ids).sort((a, b) => ids[a] - ids[b]);
    const names = { source: sorted(vocabs.source), target: sorted(vocabs.target) };
    const ranked = ({ model: { merges } }) =>
      new Map(merges.map((pair, rank) => [pair.join(" "), rank]));
    const ranks = { source: ranked(settings), target: ranked(target) };
    const normal = steps(NORMALIZERS, settings.normalizer);
    const back = steps(DECODERS, settings.decoder);
    const { pattern: pieces } = settings.pre_tokenizer;
    const prepared = (text, side) => {
      // White space as Python counts it, each run of it one space.
      const clean = text.replace(/(?:(?!\ufeff)\s|[\x1c-\x1f\x85])+/gu, " ")
        .replace(/^ | $/g, "");
      const hidden = normalize ? clean.replace(COPIED, HIDDEN) : clean;
      const plainText = normalize && side === "source" ? normalized(hidden) : hidden;
      return normal.reduce((line, change) => change(line), plainText);
    };
    return {
      names,
      unk_id: vocab[unk_token],
      encode(text, side = "source") {
        const words = prepared(text, side).match(pattern(pieces)) || [], ids = vocabs[side];
        const tokens = words.flatMap((word) =>
          merged(Array.from(word, (letter) => (letter in ids ? letter : unk_token)), ranks[side]));
        return [...tokens.map((token) => ids[token]), eos_id];
      },
      decode(ids) {
        const tokens = ids.filter((id) => !special.includes(id)).map((id) => names.target[id]);
        return back.reduce((list, change) => change(list), tokens).join("");
      },
      // A translation with the source's addresses and unknown characters where it has
      // copied them, in order, then its rare letters.
      putBack(output, source) {
        if (source.includes(unk_token)) return output;
        const addresses = source.match(COPIED) || [];
        const unread = Array.from(prepared(source, "source"))
          .filter((each) => each === HIDDEN || !(each in vocab))
          .map((each) => (each === HIDDEN && addresses.shift()) || each);
        const whole = output.replace(/\[unk\]|\ufffc/g, (found) => unread.shift() ?? found);
        return whole.replace(/([\p{L}\p{N}_]*)\[unk\]([\p{L}\p{N}_]*)/gu, (found, before, after) => {
          const word = `${before}[\\p{L}\\p{N}_]${after}`;
          const alone = new RegExp(`(?<![\\p{L}\\p{N}_])${word}(?![\\p{L}\\p{N}_])`, "gu");
          const words = [...new Set(source.match(alone))]
            .filter((each) => before + after || this.encode(each).length > 2);
          return words.length === 1 ? words[0] : found;
        });
      },
    };
  }

  // -- The file -------------------------------------------------------------------------

  const NUMBERS = {
    I8: (bytes) => Float32Array.from(new Int8Array(bytes)),
    F32: (bytes) => new Float32Array(bytes),
    F16: (bytes) => Float32Array.from(new Uint16Array(bytes), (half) => {
      const power = (half >> 10) & 31, part = (half & 1023) / 1024;
      return (half >> 15 ? -1 : 1) * (power ? 2 ** (power - 15) * (1 + part) : 2 ** -14 * part);
    }),
    BF16: (bytes) => { // the upper half of a float32
      const halves = new Uint16Array(bytes), words = new Uint32Array(halves.length);
      halves.forEach((half, i) => { words[i] = half * 65536; });
      return new Float32Array(words.buffer);
    },
  };

  // A safetensors file: the length of a JSON header, the header, the numbers. Integers of
  // one byte have a scale for each row beside them; they become float32 here.
  function readTensors(buffer) {
    let length, header;
    try {
      length = Number(new DataView(buffer).getBigUint64(0, true));
      header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
    } catch {
      throw new Error("its weights are no safetensors file");
    }
    const { __metadata__: about, ...entries } = header, tensors = {};
    for (const [name, { dtype, shape, data_offsets: [from, to] }] of Object.entries(entries)) {
      const bytes = buffer.slice(8 + length + from, 8 + length + to);
      if (!NUMBERS[dtype]) throw new Error(`its weights are ${dtype}, not F32, F16 or BF16`);
      const [rows, columns = 1] = shape, isWhole = bytes.byteLength === to - from;
      const data = NUMBERS[dtype](isWhole ? bytes : new ArrayBuffer(0));
      if (shape.length > 2 || rows * columns !== data.length)
        throw new Error(`its tensor ${name} isn't of the shape that its header says`);
      tensors[name] = { rows, columns, data };
    }
    for (const [name, scale] of Object.entries(tensors)) {
      if (!name.endsWith(".scale")) continue;
      const whole = tensors[name.slice(0, -".scale".length)];
      scale.data.forEach((factor, n) => row(whole, n).forEach((value, i, of) => {
        of[i] = value * factor;
      }));
      delete tensors[name];
    }
    return { tensors, about };
  }

  // A model of these tensors, with what its text needs.
  function build(tensors, config, tokenizer, languages) {
    const model = { config, tokenizer, languages };
    for (const [name, tensor] of Object.entries(tensors)) put(model, name.split("."), tensor);
    return model;
  }

  // The file of the page's own model holds what a folder has in `config`, `text`,
  // `tokenizer` and `target`.
  function read(buffer, folder) {
    const { tensors, about } = readTensors(buffer);
    const { config, text, tokenizer, target = tokenizer } = folder || JSON.parse(about.about);
    return build(tensors, config, makeTokenizer(tokenizer, target, config, text.normalize),
      [text.src_lang, text.tgt_lang]);
  }

  // "encoder.layers.0.W" becomes model.encoder.layers[0].W.
  function put(place, [name, ...rest], value) {
    if (rest.length === 0) place[name] = value;
    else put(place[name] ||= name === "layers" ? [] : {}, rest, value);
  }

  return { read, readTensors, build, makeTokenizer, encode, step, begin, beam, translate, force,
    shuffle, top };
};

var Transformer = makeTransformer();

if (typeof module !== "undefined") module.exports = Transformer;
