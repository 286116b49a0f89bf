import json
from pathlib import Path
def edit(name, swaps):
    path = Path(f"nbs/after/{name}.ipynb"); book = json.loads(path.read_text())
    for cell, old, new in swaps:
        c = next(c for c in book["cells"] if c["id"] == cell); text = "".join(c["source"])
        assert text.count(old) == 1, (cell, old, text)
        c["source"] = text.replace(old, new).splitlines(keepends=True)
    path.write_text(json.dumps(book, ensure_ascii=False, indent=1) + "\n")
edit("vision", [
 ("vision-live-says", "The difference will come with larger and many more images.", "Larger images, and many more of them, come below."),
 ("vision-maps-says", "The model was told the classes and nothing about ink, and it has found out what to look at.", "The model was told the classes and nothing about ink, and in the last layer its class token looks at ink more than chance would."),
 ("vision-prior", "To learn it takes data.\nThe authors of the vision Transformer saw the same at scale: trained on a million images it fell behind", "Its authors measured at scale what that asks of the data: trained on a million images the vision Transformer fell behind"),
 ("vision-own-command", "A small convolutional network gets for free what this model has to learn; on 60,000 images it still makes half as many mistakes.", "A small convolutional network, which is given both, made half as many mistakes on MNIST, in one untuned run of each."),
])
edit("classifier", [
 ("cls-linear-read", "Language identification is a task of letters; order and context have little to add.", "To name the language of these phrases, runs of letters are enough."),
 ("cls-record-read", "(It takes the longest because it is computed by the formula, the learned one by PyTorch's fused function. The validation", "(It took the longest: nearly all of its weights are so small that the processor treats them as *denormal* numbers, several times more slowly than others, unless it is told to take them for 0. The validation"),
 ("cls-words-read", "So one thing that the layer has learned is to pass strong words on to all positions.", "So what this layer passes on to other positions is strong words more than others."),
 ("cls-not-read", "One layer *could* look at \"not\" from \"good\"; in reviews of hundreds of words it learned to do well without.", "One layer *could* look at \"not\" from \"good\"; these six sentences show no sign that it does."),
 ("cls-not-read", "High accuracy on reviews doesn't carry over to a sentence of five words.", "Its accuracy on reviews doesn't carry over to these sentences of five words."),
 ("cls-remember", "- Attention without parameters finds itself and leaves a bag of words.", "- Attention without parameters mostly found itself here, and left a bag of words."),
])
