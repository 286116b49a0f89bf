"""`attend`, `info` and `corpora`: what is inside a model, and what there is."""

import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import UserError, escaped
from ..model_names import SHIPPED
from .loading import import_torch, open_translator
from .options import Device, ModelName, Page, Strict, app, preset_names
from .streams import echo, files_of, validate_outputs, validate_text

if TYPE_CHECKING:
    from ..pretrained import SavedModel


@app.command()
def attend(
    text: Annotated[str, typer.Argument(help="The source sentence.")],
    target: Annotated[
        str | None,
        typer.Argument(help="Its translation; the model's own if none is given."),
    ] = None,
    model: ModelName = SHIPPED,
    out: Page = Path("attention.html"),
    strict: Strict = False,
    device: Device = None,
) -> None:
    """Write a self-contained HTML page with the attention of every layer and head.

    **Example**

    `annotated-transformer attend "Sunday, March 21, 2027" --out attention.html`
    """
    from ..attention_view import attention_page
    from ..files import write_file

    for side in (text, target):
        validate_text(side, "attend takes one sentence, so write it out")
    validate_outputs(out, reads=files_of(model))
    if out.suffix not in ("", ".html", ".htm"):
        raise UserError(f"{out}: attend writes a page, so let the name end in .html")
    translator = open_translator(model, device)
    weights = translator.attention(text, target, strict=strict)
    source, outputs = " ".join(weights.source), " ".join(weights.target)
    page = attention_page(source, outputs, weights.panels())
    write_file(out, page.encode())
    echo(f"wrote {out}")


@app.command()
def info(
    name: Annotated[
        str,
        typer.Argument(
            help="A preset of Table 3, such as base or big, or any model that "
            "`translate` opens.",
            autocompletion=preset_names,
        ),
    ] = SHIPPED,
) -> None:
    """Parameters, floating-point operations and configuration of a preset or a model,
    and the card that lies beside a model's weights.

    **Examples**

    `annotated-transformer info base`

    `annotated-transformer info runs/phrasebook`
    """
    from ..files import read_card

    import_torch()
    config, saved = find_config(name)
    rows = {"model": name} | {n: str(v) for n, v in config.to_dict().items()}
    for each in saved.owner.read_files(saved.folder, config) if saved else ():
        if hasattr(each, "src_lang"):
            rows["languages"] = f"{each.src_lang} to {each.tgt_lang}"
    for title, value in {**rows, **costs(config, saved)}.items():
        echo(f"{title:<30}  {escaped(value)}")
    if saved and (card := read_card(saved.folder)):
        echo(f"\n{card.rstrip()}")


def costs(config: Any, saved: "SavedModel | None") -> dict[str, str]:
    """The numbers of parameters, and the operations for 25 tokens on each side."""
    from ..decoding.engines import choose_engine
    from ..model.config import TransformerConfig
    from ..model.costs import flops, parameters_by_part
    from ..training.checkpoint import check_layers, count_tensors

    if saved:
        check_layers(config, count_tensors(saved.folder), saved.folder)
    if saved and saved.model_type != "transformer":
        parameters, work = saved.parameters(), None
    else:
        parameters, work = parameters_by_part(config), flops(config, 25, 25)
    rows = {f"parameters: {part}": f"{n:,}" for part, n in parameters.items()}
    rows["parameters"] = f"{sum(parameters.values()):,}"
    if work:
        rows["forward FLOPs, 25 → 25 tokens"] = f"{work.forward:.3e}"
        rows["forward and backward FLOPs"] = f"{sum(work):.3e}"
    if isinstance(config, TransformerConfig):
        rows["engine auto"] = choose_engine(config)
    return rows


def find_config(name: str) -> "tuple[Any, SavedModel | None]":
    """The configuration of a preset or of a model, and where that lies.

    Raises: UserError for a name of neither, naming the nearest.
    """
    from ..model.config import table_3
    from ..model_names import shipped
    from ..pretrained import find_model

    models, presets = shipped(), table_3()
    if name in presets:
        return presets[name], None
    if not (name in models or re.search(r"[/\\:]", name) or os.path.exists(name)):
        known = f"name a model ({', '.join(models)}, a run's or a model's folder, "
        known += "hf:owner/name) or a preset, such as base or big"
        for close in get_close_matches(name, [*models, *presets], n=1):
            known = f"did you mean {close!r}?"
        raise UserError(f"{name!r} is neither a model nor a preset: {known}")
    saved = find_model(name)
    return saved.config(), saved


@app.command()
def corpora() -> None:
    """List the named corpora: languages, splits with their sizes, licence and source.

    **Example**

    `annotated-transformer corpora`
    """
    from ..data.corpora import named_corpora

    for name, spec in named_corpora().items():
        by_hand = dict.fromkeys(file.split for file in spec.files if not file.url)
        sizes = (f"{split} {size:,}" for split, size in spec.sizes().items())
        rows = {
            "pairs": " ".join(spec.pairs),
            "splits": ", ".join(sizes),
            "licence": spec.licence,
            "source": spec.source,
            "prepare yourself": ", ".join(by_hand),
        }
        echo(name)
        for heading, words in rows.items():
            if words:
                echo(f"  {heading}: {words}")
