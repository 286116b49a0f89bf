"""python apply_comparisons.py ROOT: the readers of the new records of vision and classifier."""
import sys
from pathlib import Path
path = Path(sys.argv[1], "benchmarks/comparisons.py")
text, new = path.read_text(), Path(__file__).with_name("comparisons_part.py").read_text()
helpers, rest = new.split("def classifier()"); readers = "def classifier()" + rest
classifier, vision = readers.split("def vision()"); vision = "def vision()" + vision

def put(text, name, body):
    start = text.index(f"def {name}()"); end = text.index("\n\n\n", start)
    return text[:start] + body.rstrip() + text[end:]

text = put(text, "classifier", classifier); text = put(text, "vision", vision)
marker = "# -- the records ---"
text = text.replace(marker, helpers.rstrip() + "\n\n\n" + marker, 1)
text = text.replace('"classifier.json": classifier', '"classifier.jsonl": classifier').replace('"vision.json": vision', '"vision.jsonl": vision')
text = text.replace("import ClassifierTraining, SeriesTraining", "import SeriesTraining") if "ClassifierTraining()" not in text else text
path.write_text(text)
