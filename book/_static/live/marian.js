/* The page "Live": a Marian model in place of the book's, from the folder that OPUS-MT
   publishes on the Hugging Face Hub. It goes the way of the package's interop/marian.py,
   marian_weights.py and marian_tokenizer.py, and does in plain JavaScript what they leave
   to SentencePiece. Loaded when such a folder is chosen, it becomes part of the worker
   (see `start` in translate.js), where its `read` stands in for transformer.js's own. */
"use strict";

var liveMarian = (Transformer) => {
  // -- config.json, as interop/marian.py reads it -----------------------------------------

  const SETTINGS = { // theirs, and ours
    d_model: "d_model", encoder_layers: "N", decoder_layers: "decoder_N",
    encoder_attention_heads: "h", decoder_attention_heads: "h",
    encoder_ffn_dim: "d_ff", decoder_ffn_dim: "d_ff",
    activation_function: "activation", max_position_embeddings: "max_length",
    vocab_size: "src_vocab_size", decoder_vocab_size: "tgt_vocab_size",
    share_encoder_decoder_embeddings: "shared_vocab",
    pad_token_id: "pad_id", decoder_start_token_id: "bos_id", eos_token_id: "eos_id",
  };
  const FIXED = { // what changes the computation, with the one value that is known here
    scale_embedding: true, tie_word_embeddings: true, static_position_embeddings: true,
    normalize_before: false, normalize_embedding: false, add_final_layer_norm: false,
  };
  const ACTIVATIONS = {
    relu: (x) => Math.max(0, x),
    swish: (x) => x / (1 + Math.exp(-x)),
    gelu: (x) => x * (1 + erf(x / Math.SQRT2)) / 2,
    gelu_new: (x) => x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))) / 2,
  };
  ACTIVATIONS.silu = ACTIVATIONS.swish;

  // Abramowitz and Stegun, 7.1.26: wrong by 1.5e-7 at most.
  function erf(x) {
    const t = 1 / (1 + 0.3275911 * Math.abs(x));
    const sum = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592]
      .reduce((sofar, factor) => (sofar + factor) * t, 0);
    return Math.sign(x) * (1 - sum * Math.exp(-x * x));
  }

  // Our settings, of a published config.json or of one that the package wrote.
  function readConfig(file) {
    const config = isPublished(file) ? ours(file) : file, { d_model, h } = config;
    if (!Object.hasOwn(ACTIVATIONS, config.activation))
      throw new Error(`config.json: activation_function is ${config.activation}, and this page `
        + `knows ${Object.keys(ACTIVATIONS).join(", ")}`);
    if (d_model % h || d_model % 2)
      throw new Error(`config.json: d_model is ${d_model}, and it must be even and divide into `
        + `${h} heads`);
    if (config.bos_id === config.eos_id)
      throw new Error("config.json: decoder_start_token_id and eos_token_id are the same");
    return { d_k: d_model / h, d_v: d_model / h, ...config };
  }

  const isPublished = (file) => !("annotated_transformer" in file);

  function ours(file) {
    const published = { scale_embedding: false, share_encoder_decoder_embeddings: true,
      decoder_vocab_size: file.vocab_size,
      ...Object.fromEntries(Object.entries(file).filter(([, value]) => value !== null)) };
    for (const [name, value] of Object.entries(FIXED))
      if ((published[name] ?? value) !== value)
        throw new Error(`config.json: ${name} is ${published[name]}, and this page knows only `
          + `${value}`);
    const config = {};
    for (const [theirs, name] of Object.entries(SETTINGS)) {
      const value = published[theirs];
      if (value === undefined) throw new Error(`config.json lacks the setting ${theirs}`);
      if ((config[name] ??= value) !== value)
        throw new Error(`config.json: ${Object.keys(SETTINGS).filter((it) =>
          SETTINGS[it] === name).join(" and ")} differ, and this page knows one value`);
    }
    return config;
  }

  // -- Weights, as interop/marian_weights.py maps them -------------------------------------

  // Our name of each part of a layer, and theirs.
  const ATTENTION = { W_Q: "q_proj", W_K: "k_proj", W_V: "v_proj", W_O: "out_proj" };
  const SIDES = {
    encoder: { attentions: { self_attention: "self_attn" }, norms: {
      after_attention: "self_attn_layer_norm", after_feed_forward: "final_layer_norm" } },
    decoder: { attentions: { self_attention: "self_attn", source_attention: "encoder_attn" },
      norms: { after_self_attention: "self_attn_layer_norm",
        after_source_attention: "encoder_attn_layer_norm",
        after_feed_forward: "final_layer_norm" } },
  };

  // Every tensor of a model: [our name, theirs, rows, columns].
  function expected({ N, decoder_N, d_model, d_ff, shared_vocab, ...config }) {
    const found = [];
    const linear = (name, theirs, outs, ins) => found.push(
      [`${name}.weight`, `${theirs}.weight`, outs, ins], [`${name}.bias`, `${theirs}.bias`, outs, 1]);
    for (const [side, { attentions, norms }] of Object.entries(SIDES))
      for (let l = 0; l < (side === "encoder" ? N : decoder_N); l++) {
        const [our, their] = [`${side}.layers.${l}`, `model.${side}.layers.${l}`];
        for (const [name, theirs] of Object.entries(attentions))
          for (const [part, projection] of Object.entries(ATTENTION))
            linear(`${our}.${name}.${part}`, `${their}.${theirs}.${projection}`, d_model, d_model);
        linear(`${our}.feed_forward.W_1`, `${their}.fc1`, d_ff, d_model);
        linear(`${our}.feed_forward.W_2`, `${their}.fc2`, d_model, d_ff);
        for (const [name, theirs] of Object.entries(norms))
          linear(`${our}.${name}.norm`, `${their}.${theirs}`, d_model, 1);
      }
    if (!shared_vocab) found.push(["src_embedding.weight", "model.encoder.embed_tokens.weight",
      config.src_vocab_size, d_model]);
    found.push(["tgt_embedding.weight", shared_vocab ? "model.shared.weight"
      : "model.decoder.embed_tokens.weight", config.tgt_vocab_size, d_model]);
    found.push(["logits_bias", "final_logits_bias", config.tgt_vocab_size, 1]);
    return found;
  }

  const FILE = "model.safetensors";

  // A published file's tensors under our names and in our order.
  function converted(tensors, config) {
    dropPositions(tensors, config);
    dropCopies(tensors, config.shared_vocab);
    if (tensors.final_logits_bias) { // one row, there
      const { data } = tensors.final_logits_bias;
      tensors.final_logits_bias = { rows: data.length, columns: 1, data };
    }
    const named = {};
    for (const [name, theirs] of expected(config)) {
      if (!tensors[theirs]) throw new Error(`${FILE} lacks the tensor ${theirs}`);
      named[name] = tensors[theirs];
      delete tensors[theirs];
    }
    const [other] = Object.keys(tensors);
    if (other) throw new Error(`${FILE} has a tensor ${other}, for which this page has no place`);
    return named;
  }

  // Stored codes of positions are left out: they are computed here.
  function dropPositions(tensors, { d_model, max_length }) {
    const half = d_model / 2, code = (p, i) => (i < half ? Math.sin : Math.cos)(
      p * 10000 ** (-2 * (i % half) / d_model));
    for (const name of Object.keys(tensors)) {
      if (!name.endsWith("embed_positions.weight")) continue;
      const { rows, columns, data } = tensors[name];
      if (rows !== max_length || columns !== d_model || !data.every((value, k) =>
        Math.abs(value - code(Math.floor(k / columns), k % columns)) < 0.01))
        throw new Error(`${FILE}: ${name} holds no sinusoids, and this page knows no others`);
      delete tensors[name];
    }
  }

  // A tied matrix may stand in the file again, under the name of each of its uses.
  function dropCopies(tensors, shared_vocab) {
    const sides = ["model.decoder.embed_tokens.weight", "model.encoder.embed_tokens.weight"];
    const whole = shared_vocab ? "model.shared.weight" : sides[0];
    for (const name of shared_vocab ? ["lm_head.weight", ...sides] : ["lm_head.weight"]) {
      const copy = tensors[name], kept = (copy && (tensors[whole] ??= copy));
      if (copy && (copy.data.length !== kept.data.length
        || copy.data.some((value, k) => value !== kept.data[k])))
        throw new Error(`${FILE}: ${name} differs from ${whole}, and this page knows only tied `
          + "matrices");
      delete tensors[name];
    }
  }

  function checkTensors(named, config) {
    for (const [name, theirs, rows, columns] of expected(config)) {
      const found = named[name];
      if (!found) throw new Error(`${FILE} lacks the tensor ${name}`);
      if (found.rows !== rows || found.columns !== columns)
        throw new Error(`${FILE}: ${theirs} is ${found.rows} × ${found.columns}, and config.json `
          + `asks for ${rows} × ${columns}`);
      if (!found.data.every(Number.isFinite))
        throw new Error(`${FILE}: ${theirs} holds numbers that are not finite`);
    }
  }

  // Marian's vectors have all sines before all cosines, the paper's have them in turn. What
  // lies along such a vector is put in our order: rows that make one, columns that read one.
  function reorder(named, { d_model }) {
    const place = (i) => (i % 2 ? (d_model + i - 1) / 2 : i / 2);
    for (const [name, { rows, columns, data }] of Object.entries(named)) {
      if (/(W_1|W_Q|W_K|W_V)\.bias$|^logits_bias$/.test(name)) continue;
      const before = data.slice();
      if (/W_O|W_2|norm/.test(name))
        for (let i = 0; i < rows; i++)
          data.set(before.subarray(place(i) * columns, (place(i) + 1) * columns), i * columns);
      else
        for (let n = 0; n < rows * columns; n += columns)
          for (let i = 0; i < columns; i++) data[n + i] = before[n + place(i)];
    }
  }

  // -- The file of a SentencePiece model ---------------------------------------------------

  // A message of Protocol Buffers as { number: [values] }. Each field begins with its number
  // and its type: 0 an integer, 1 eight bytes, 2 bytes after their length, 5 a float32.
  function message(bytes) {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length), fields = {};
    let at = 0;
    const take = (length) => {
      if (length > bytes.length - at) throw new RangeError("it ends too early");
      at += length;
      return at - length;
    };
    const integer = () => { // seven bits a byte, the lowest first
      for (let value = 0, factor = 1; ; factor *= 128) {
        const byte = view.getUint8(take(1));
        value += (byte % 128) * factor;
        if (byte < 128) return value;
      }
    };
    const TYPES = { 0: integer, 1: () => take(8),
      2: () => { const length = integer(), from = take(length); return bytes.subarray(from, from + length); },
      5: () => view.getFloat32(take(4), true) };
    while (at < bytes.length) {
      const tag = integer();
      (fields[Math.floor(tag / 8)] ||= []).push(TYPES[tag % 8]());
    }
    return fields;
  }

  const DECODER = new TextDecoder("utf-8", { ignoreBOM: true }), ENCODER = new TextEncoder();
  const [PIECE, SCORE, TYPE] = [1, 2, 3], [UNIGRAM, BPE] = [1, 2];
  const [NORMAL, UNKNOWN, CONTROL, USER_DEFINED] = [1, 2, 3, 4];

  // sentencepiece_model.proto: the pieces with their scores, how they cut a text, and how
  // a text becomes one to be cut.
  function readPieces(bytes, name) {
    try {
      const { 1: pieces, 2: [trainer], 3: [normalizer] } = message(bytes);
      const read = pieces.map(message).map((fields) => ({ piece: DECODER.decode(fields[PIECE][0]),
        score: fields[SCORE]?.[0] ?? 0, type: fields[TYPE]?.[0] ?? NORMAL }));
      if (!read.some(({ type }) => type === UNKNOWN)) throw new Error("it has no unknown piece");
      return { pieces: read, trainer: message(trainer), normalizer: message(normalizer) };
    } catch {
      throw new Error(`${name} is damaged, or no SentencePiece model`);
    }
  }

  // -- The normalizer (normalizer.cc) ------------------------------------------------------

  // The precompiled map from characters to others (NFKC and white space, mostly): a trie's
  // length, the trie, and the texts that its values point at, each ended by a zero. The
  // trie is a Darts double array. Of a unit's bits, 0 to 7 and 31 are the byte that leads
  // to it, 8 says that a key ends here, 9 that the offset to its children counts 256 times,
  // and the offset begins at 10; a key's value is the unit at the offset itself.
  function charsMap(bytes) {
    const length = bytes.length && new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
    const units = new Uint32Array(bytes.slice(4, 4 + length).buffer);
    const texts = bytes.subarray(4 + length), decode = (part) => DECODER.decode(part);
    const offset = (unit) => (unit >>> 10) << ((unit & 512) >>> 6);
    return (key, from) => { // what the longest key that begins here becomes, and its end
      let node = offset(units[0]), longest = 0, value;
      for (let i = from; i < key.length; i++) {
        node ^= key[i];
        const unit = units[node];
        if ((unit & 0x800000ff) !== key[i]) break;
        node ^= offset(unit);
        if (unit & 256) [longest, value] = [i + 1, units[node] & 0x7fffffff];
      }
      if (longest) return [decode(texts.subarray(value, texts.indexOf(0, value))), longest];
      const end = from + [0xc0, 0xe0, 0xf0].filter((first) => key[from] >= first).length + 1;
      return [decode(key.subarray(from, end)), end]; // the character stays
    };
  }

  const SPACE = "▁";

  // A text as pieces spell it: ▁ stands for a space, one before the text too, and of
  // several spaces one is left. What `own` finds, pieces of the user's, stays.
  function makeNormalizer({ 2: [map] = [new Uint8Array()], 3: [prefix] = [1],
    4: [single] = [1], 5: [escape] = [1] }, own) {
    const mapped = charsMap(map), space = escape ? SPACE : " ";

    function changed(text) { // part by part
      const bytes = ENCODER.encode(text), parts = [];
      for (let i = 0; i < bytes.length;) {
        const [part, end] = mapped(bytes, i);
        parts.push(part);
        i = end;
      }
      return parts;
    }

    return (text) => {
      const parts = text.split(own).flatMap((part, n) => (n % 2 ? [part] : changed(part)));
      if (!parts.length) return "";
      let normal = prefix ? space : "", afterSpace = single;
      for (const part of parts) {
        const rest = afterSpace ? part.replace(/^ +/, "") : part;
        if (rest) afterSpace = single && rest.endsWith(" ");
        normal += rest.replaceAll(" ", space);
      }
      while (single && normal.endsWith(space)) normal = normal.slice(0, -1);
      return normal;
    };
  }

  // -- Cutting (unigram_model.cc, bpe_model.cc, sentencepiece_processor.cc) -----------------

  // The way through a text whose pieces have the largest sum of log-probabilities: Viterbi's
  // algorithm. `best[n]` is that of the first n characters; a character without a piece
  // counts `unknown`. Sums are float32, as SentencePiece has them, so that ties are its own.
  function likeliest(text, scores, longest, unknown) {
    const letters = Array.from(text), best = new Float32Array(letters.length + 1), from = [];
    best.fill(-Infinity, 1);
    letters.forEach((_, start) => {
      const reach = (end, total) => {
        if (total > best[end]) [best[end], from[end]] = [total, start];
      };
      let piece = "";
      for (let end = start + 1; end <= Math.min(start + longest, letters.length); end++) {
        piece += letters[end - 1];
        if (scores.has(piece)) reach(end, best[start] + scores.get(piece));
        else if (end === start + 1) reach(end, Math.fround(best[start] + unknown));
      }
    });
    const pieces = [];
    for (let end = letters.length; end > 0; end = from[end])
      pieces.unshift(letters.slice(from[end], end).join(""));
    return pieces;
  }

  // Byte pairs: of all neighbours that are a piece together those with the largest score
  // are joined, the leftmost first, until none are.
  function merged(text, scores) {
    const symbols = Array.from(text);
    for (;;) {
      let best = -1, largest = -Infinity;
      for (let i = 0; i + 1 < symbols.length; i++) {
        const score = scores.get(symbols[i] + symbols[i + 1]);
        if (score > largest) [best, largest] = [i, score];
      }
      if (best < 0) return symbols;
      symbols.splice(best, 2, symbols[best] + symbols[best + 1]);
    }
  }

  const OPTIONS = { 24: "treat_whitespace_as_suffix", 35: "byte_fallback" };

  // How a file's model cuts a text. Neighbours that no piece has are one unknown piece.
  function makeCutter({ pieces, trainer, normalizer }, name) {
    const { 3: [kind] = [UNIGRAM] } = trainer;
    if (kind !== UNIGRAM && kind !== BPE)
      throw new Error(`${name} has model_type ${kind}, and this page knows unigram and BPE`);
    for (const [number, option] of Object.entries(OPTIONS))
      if (trainer[number]?.[0]) throw new Error(`${name} has ${option}, which this page lacks`);
    const plain = pieces.filter(({ type }) => type === NORMAL), own = pieces.filter(
      ({ type }) => type === USER_DEFINED).map(({ piece }) => piece);
    const scores = new Map(plain.map(({ piece, score }) => [piece, score]));
    const least = plain.reduce((a, { score }) => Math.min(a, score), Infinity);
    own.forEach((piece) => scores.set(piece, -0.1)); // nearly certain, to be preferred
    const longest = [...scores.keys()].reduce((a, piece) => Math.max(a, piece.length), 1);
    const quoted = own.sort((a, b) => b.length - a.length)
      .map((piece) => piece.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const split = new RegExp(own.length ? `(${quoted.join("|")})` : "(?!)", "u");
    const normalize = makeNormalizer(normalizer, split);
    const cut = kind === UNIGRAM
      ? (text) => likeliest(text, scores, longest, Math.fround(least - 10))
      : (text) => text.split(split).flatMap((part, n) => (n % 2 ? [part] : merged(part, scores)));
    return (text) => {
      const found = [];
      let wasUnknown = false;
      for (const piece of cut(normalize(text))) {
        const isUnknown = !scores.has(piece);
        if (isUnknown && wasUnknown) found.push(found.pop() + piece);
        else found.push(piece);
        wasUnknown = isUnknown;
      }
      return found;
    };
  }

  // -- The tokenizer, as interop/marian_tokenizer.py has it --------------------------------

  const END = "</s>", LOST = "<unk>", PADDING = "<pad>";

  // One side: its pieces, and their ids from a table of their own.
  function makeSide({ bytes, file, vocab, table }, size, { eos_id, pad_id }) {
    const ids = new Map(Object.entries(vocab)), names = [];
    ids.forEach((id, piece) => { names[id] = piece; });
    if (ids.size !== size || names.length !== size || names.includes(undefined))
      throw new Error(`${table} has ${ids.size} tokens, and config.json asks for ${size}`);
    if (!ids.has(LOST)) throw new Error(`${table} lacks ${LOST}`);
    for (const [piece, id] of [[END, eos_id], [PADDING, pad_id]])
      if (names[id] !== piece)
        throw new Error(`${table} has ${names[id]} as token ${id}, and config.json ${piece}`);
    const read = readPieces(bytes, file), cut = makeCutter(read, file);
    const silent = [END, LOST, PADDING, ...read.pieces.filter(({ type }) => type === CONTROL)
      .map(({ piece }) => piece)];
    return { ids, names, cut, silent };
  }

  // A code such as ">>deu<<" at the front of a text, and the rest.
  function splitCode(text) {
    const [code] = text.match(/^>>[^]*?<</) || [""];
    return [code, text.slice(code.length)];
  }

  const CONTROLS = /[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029]+/g; // as pair_tokenizer.py

  function makeTokenizer({ source, target }, config) {
    const sides = { source: makeSide(source, config.src_vocab_size, config),
      target: makeSide(target, config.tgt_vocab_size, config) };
    const codes = sides.source.names.filter((piece) => splitCode(piece)[0] === piece && piece);
    return {
      names: { source: sides.source.names, target: sides.target.names },
      unk_id: sides.source.ids.get(LOST),
      codes,
      encode(text, name = "source") {
        const { ids, cut } = sides[name], [code, rest] = splitCode(text);
        if (code && codes.length && !ids.has(code))
          throw new Error(`This model knows no ${code}, but ${codes.slice(0, 9).join(", ")}.`);
        const pieces = [...(code ? [code] : []), ...cut(rest)];
        return [...pieces, END].map((piece) => ids.get(piece) ?? ids.get(LOST));
      },
      decode(tokens) {
        const { names, silent } = sides.target;
        return tokens.map((id) => names[id]).filter((piece) => !silent.includes(piece)).join("")
          .replaceAll(SPACE, " ").replace(CONTROLS, " ").trim();
      },
      putBack: (output) => output, // it never copies what it can't read
    };
  }

  // -- The folder --------------------------------------------------------------------------

  const TABLES = ["vocab.json", "target_vocab.json"];

  // What the tokenizer needs of a folder's files; `json` reads one of them.
  async function readText(files, json) {
    const about = files["tokenizer_config.json"] ? await json("tokenizer_config.json") : {};
    const tables = { source: TABLES[0], target: TABLES[about.separate_vocabs ? 1 : 0] }, sides = {};
    for (const [side, table] of Object.entries(tables)) {
      const file = `${side}.spm`, vocab = await json(table);
      if (!files[file]) throw new Error(`choose ${file} as well`);
      sides[side] = { file, table, vocab, bytes: new Uint8Array(await files[file].arrayBuffer()) };
    }
    return { sides, text: { src_lang: about.source_lang || "und",
      tgt_lang: about.target_lang || "und" } };
  }

  // A folder's model: its weights by their names or ours, its text by their tokenizer or ours.
  function read(buffer, { config, text, tokenizer, target, sides }) {
    const { tensors } = Transformer.readTensors(buffer);
    const named = isPublished(config) ? converted(tensors, config) : tensors;
    checkTensors(named, config);
    if (isPublished(config)) reorder(named, config);
    const words = sides ? makeTokenizer(sides, config)
      : Transformer.makeTokenizer(tokenizer, target, config, text.normalize);
    const model = Transformer.build(named, config, words, [text.src_lang, text.tgt_lang]);
    model.activation = ACTIVATIONS[config.activation];
    return model;
  }

  return { ...Transformer, readConfig, readText, read };
};

if (typeof module !== "undefined") module.exports = { liveMarian };
