"""Argos Translate: a package that it installs, which cuts and translates as we do."""

import json
import os
from zipfile import ZipFile

import pytest
from exporting import PHRASES, run_elsewhere, shipped, two_vocabularies
from tiny_run import refused

from annotated_transformer import load
from annotated_transformer.cli import app
from annotated_transformer.data.tokenizer_training import train_tokenizer
from annotated_transformer.decoding.options import SearchOptions
from annotated_transformer.errors import UserError
from annotated_transformer.interop.argos import export_argos, sentencepiece_model
from annotated_transformer.interop.marian_tokenizer import MarianTokenizer, Pieces

pytestmark = pytest.mark.filterwarnings("ignore:passed as unknown")
sentencepiece = pytest.importorskip("sentencepiece")
ctranslate2 = pytest.importorskip("ctranslate2")
BEAM = SearchOptions(alpha=0.0)
EVERYDAY = [
    "Where is the station?",
    "I would like a cup of tea.",
    "Got it? Really?!",  # whose words German alone has merged
    "Tom didn't know that Mary was coming to the party tonight.",
    "It costs 1,250.50 euros (or more)...",
    "Here is Łódź.",
]


@pytest.fixture(scope="module", params=["phrasebook-en-de", "tatoeba-en-de"])
def package(request, tmp_path_factory):
    """A model in 8 bits, texts for it, and its package, written by the command."""
    path = tmp_path_factory.mktemp("argos") / "en_de.argosmodel"
    asked = ["export", "argos", "-m", request.param, "-o", str(path)]
    app(asked, standalone_mode=False)
    texts = PHRASES if request.param.startswith("phrasebook") else EVERYDAY
    eight = load(request.param, device="cpu", engine="ctranslate2", dtype="int8")
    return eight, texts, path


def test_sentencepiece_cuts_and_joins_as_we_do(package):
    translator, texts, path = package
    ours = translator.tokenizer
    with ZipFile(path) as archive:
        model = archive.read("translate-en_de/sentencepiece.model")
    theirs = sentencepiece.SentencePieceProcessor()
    theirs.LoadFromSerializedProto(model)
    for text in texts:
        tokens = theirs.encode(f"  {text}", out_type=str)
        ids = [ours.source.token_to_id(token) for token in tokens]
        ids = [ours.unk_id if i is None else i for i in ids]
        assert [[*ids, 2]] == ours.encode_source([text]), text
    for text in translator.translate(texts, beam_size=1):
        row = ours.encode_target([text])[0][:-1]
        tokens = list(map(ours.target.id_to_token, row))
        if ours.unk_id not in row:
            assert theirs.decode_pieces(tokens) == text


def test_the_package_has_all_that_argos_translate_reads(package, tmp_path):
    translator, texts, path = package
    with ZipFile(path) as archive:
        archive.extractall(tmp_path)
    (folder,) = tmp_path.iterdir()
    about = json.loads((folder / "metadata.json").read_text("utf-8"))
    assert [about[f"{side}_code"] for side in ("from", "to")] == ["en", "de"]
    assert [about[f"{side}_name"] for side in ("from", "to")] == ["English", "German"]
    assert "Licence" in (folder / "README.md").read_text("utf-8")
    processor = sentencepiece.SentencePieceProcessor(
        model_file=str(folder / "sentencepiece.model")
    )
    engine = ctranslate2.Translator(str(folder / "model"), intra_threads=1)
    rows = [processor.encode(text, out_type=str) for text in texts]
    settings = dict(beam_size=4, length_penalty=0, replace_unknowns=True)
    found = engine.translate_batch(rows, **settings)
    found = [processor.decode_pieces(each.hypotheses[0]) for each in found]
    assert found == translator.translate(texts, BEAM)


ARGOS = """
import sys
from argostranslate import package, translate

class OneSentence:  # the model of its own is fetched from the network
    def split_sentences(self, text):
        return [text]

package.install_from_path(sys.argv[1])
translation = translate.get_translation_from_codes("en", "de")
translation.underlying.sentencizer = OneSentence()
for text in sys.argv[2:]:
    print(translation.translate(text))
"""


def test_argos_translate_installs_it_and_translates_as_we_do(package, tmp_path):
    translator, texts, path = package
    here = {name: str(tmp_path) for name in ("HOME", "XDG_DATA_HOME")}
    env = os.environ | here | {"ARGOS_PACKAGES_DIR": str(tmp_path / "packages")}
    found = run_elsewhere("argostranslate", ARGOS, path, *texts, env=env)
    assert found == translator.translate(texts, BEAM)


def test_what_argos_translate_cannot_run_is_refused(run, tmp_path):
    out = tmp_path / "x.argosmodel"
    pairs = [("a b", "c d")] * 20
    moses = train_tokenizer(pairs, "en", "de", 30, moses=True, lowercase=True)
    with pytest.raises(UserError, match="neither Moses' rules nor lower case"):
        export_argos(shipped().model, moses, out)
    model = sentencepiece_model(two_vocabularies().source)
    special = {"</s>": 0, "<unk>": 1, "<pad>": 2}
    side = Pieces(model, special | {">>deu<<": 3})
    with pytest.raises(UserError, match="code of the target language"):
        export_argos(shipped().model, MarianTokenizer(side, side, "en", "de"), out)
    assert not list(tmp_path.iterdir())
    out.write_text("mine")
    refused(run("export", "argos", "-o", out), out, "exists already")
    assert out.read_text() == "mine" and len(list(tmp_path.iterdir())) == 1
    other = tmp_path / "x.zip"
    refused(run("export", "argos", "-o", other), other, "must end in .argosmodel")
    assert not other.exists()
