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
    this.encoder = await ort.InferenceSession.create(`encoder.${kind}.onnx`);
    this.step = await ort.InferenceSession.create(`decoder_step.${kind}.onnx`);
  },
  // Greedy search of `rows` copies at once, which costs what a beam of that size costs
  // but for its bookkeeping.
  async translate(ids, rows) {
    const int64 = (values, dims) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), dims);
    const { mask, memory_keys, memory_values } = await this.encoder.run(
      { ids: int64(Array(rows).fill(ids).flat(), [rows, ids.length]) });
    const [layers, , h, , d_k] = memory_keys.dims, tokens = [];
    let keys = new ort.Tensor("float32", [], [layers, rows, h, 0, d_k]), values = keys;
    for (let token = 1; tokens.length < ids.length + 50;) {
      const made = await this.step.run({ token: int64(Array(rows).fill(token), [rows]), mask,
        memory_keys, memory_values, keys, values });
      const logits = made.logits.data.subarray(0, made.logits.dims[1]);
      logits[0] = logits[1] = -Infinity; // no padding, no begin
      token = logits.indexOf(logits.reduce((a, b) => Math.max(a, b)));
      [keys, values] = [made.new_keys, made.new_values];
      if (token === 2) return { tokens, steps: tokens.length + 1 };
      tokens.push(token);
    }
    return { tokens, steps: tokens.length };
  },
};
