/* Two ways to run the model in a page, for live_page.py. */
"use strict";

// The book's own script.
const plain = {
  async open() {
    this.model = Transformer.read(await new Response((await fetch("model.packed")).body
      .pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
  },
  async translate(ids, size) {
    const search = Transformer.beam(this.model, Transformer.encode(this.model, ids),
      { size, alpha: size > 1 ? 0.6 : 0 });
    for (let steps = 0; ; steps++) {
      const { done, value } = search.next();
      if (done) return { tokens: value.tokens, steps };
    }
  },
};

// onnxruntime-web over the graphs of `annotated-transformer export onnx`.
const runtime = {
  async open(kind) {
    ort.env.wasm.numThreads = 1;
    this.encoder = await ort.InferenceSession.create(`encoder_model.${kind}.onnx`);
    this.decoder = await ort.InferenceSession.create(`decoder_model_merged.${kind}.onnx`);
    this.config = await (await fetch("onnx/config.json")).json();
  },
  // Greedy search of `rows` copies at once, which costs what a beam of that size costs
  // but for its bookkeeping.
  async translate(ids, rows) {
    const int64 = (values, dims) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), dims);
    const { d_model, decoder_attention_heads: h } = this.config;
    const mask = int64(Array(rows * ids.length).fill(1), [rows, ids.length]);
    const { last_hidden_state } = await this.encoder.run({ attention_mask: mask,
      input_ids: int64(Array(rows).fill(ids).flat(), [rows, ids.length]) });
    const state = { encoder_hidden_states: last_hidden_state, encoder_attention_mask: mask };
    const names = this.decoder.inputNames.filter((name) => name.startsWith("past_key_values"));
    for (const name of names) state[name] = new ort.Tensor("float32", [], [rows, h, 0, d_model / h]);
    const tokens = [];
    for (let token = 1; tokens.length < ids.length + 50;) {
      const made = await this.decoder.run({ input_ids: int64(Array(rows).fill(token), [rows, 1]), ...state });
      for (const name of names) state[name] = made[name.replace("past_key_values", "present")];
      const logits = made.logits.data.subarray(0, made.logits.dims[2]);
      logits[0] = logits[1] = -Infinity; // no padding, no begin
      token = logits.indexOf(logits.reduce((a, b) => Math.max(a, b)));
      if (token === 2) return { tokens, steps: tokens.length + 1 };
      tokens.push(token);
    }
    return { tokens, steps: tokens.length };
  },
};
