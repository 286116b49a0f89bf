"""What `TASK evaluate` prints of a model and of data that it hasn't seen."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import UserError


def classifier(model: Any, data: str, root: Path | None) -> Iterator[str]:
    """How often a classifier is right, class by class, and how sure it is.

    Raises: UserError for examples of other classes.
    """
    from ..after.classifier import reliability
    from ..after.from_data import load_examples

    test, _ = load_examples(data, "test", model.classes, root)
    found = model.probabilities(test.texts)
    pairs = [*zip(found.argmax(-1).tolist(), test.labels, strict=True)]
    for number, name in [(None, "accuracy"), *enumerate(model.classes)]:
        own = [a == label for a, label in pairs if number in (None, label)]
        if own:
            title = name if number is None else f"  {name}:"
            yield f"{title} {sum(own) / len(own):.2%} of {len(own):,}"
    yield "confidence  accuracy  texts"
    for sure, share, count in reliability(found, test.labels):
        yield f"{sure:10.0%}  {share:8.1%}  {count:,}"


def language_model(model: Any, data: str, root: Path | None) -> Iterator[str]:
    """What the held-out part of a named text costs, or a whole file."""
    from ..data.texts import TEXTS, load_text, read_text

    own = data not in TEXTS and Path(data).is_file()
    found = model.measure(read_text(data) if own else load_text(data, root)[1])
    yield f"characters           {found.characters:>12,}"
    yield f"tokens               {found.tokens:>12,}"
    yield f"nats per token       {found.nats_per_token:>12.4f}"
    yield f"bits per character   {found.bits_per_character:>12.4f}"
    yield f"perplexity per word  {found.perplexity_per_word:>12.1f}"


def masked_language_model(model: Any, data: str, root: Path | None) -> Iterator[str]:
    """The loss on hidden tokens of held-out texts, or of a whole file, and how many are
    predicted right.
    """
    from ..after.from_data import check_own, own_path
    from ..after.masked_language_model import predictions, text_rows
    from ..data.text_files import read_lines
    from ..data.texts import unlabelled

    check_own(model)
    path = own_path(data, "imdb")
    texts = list(read_lines(path)) if path else unlabelled(None, root)[1]
    rows = text_rows(model.tokenizer, texts, model.config.max_length)
    loss, right = predictions(model.model, rows)
    yield f"nats per hidden token  {loss:.4f}"
    yield f"accuracy               {right:.2%}"


def vision(model: Any, data: str, root: Path | None) -> Iterator[str]:
    """How many test images a model gets right. Raises: UserError for other classes."""
    from ..after.from_data import load_images

    images = load_images(data, "t10k", root)
    highest, known = int(images.labels.max()), model.config.classes
    if highest >= known:
        raise UserError(
            f"the test images have a class {highest} and the model knows 0 to "
            f"{known - 1}: they belong to another set"
        )
    found = model.probabilities(images.images).argmax(-1)
    wrong, count = int((found != images.labels).sum()), len(images)
    yield f"accuracy {1 - wrong / count:.2%}: {wrong:,} of {count:,} test images wrong"


def series(model: Any, data: str, root: Path | None) -> Iterator[str]:
    """Errors on the last 20 %, beside naive forecasts and a tuned linear model."""
    from ..after import series as chapter
    from ..after.from_data import load_series

    context, horizon = model.config.context, model.config.horizon
    found = load_series(data, root)
    model.standardised(found)  # the same columns
    period = min(found.day, context)
    linear, back, _ = chapter.tuned_ridge(found, horizon, [context])
    forecasts = {
        "Transformer": chapter.forecaster(model.model),
        "linear": linear,
        f"seasonal naive, {period} steps": chapter.repeat_period(horizon, period),
        "naive": chapter.repeat_last(horizon),
    }
    test = chapter.split_series(found, back, horizon)[2]
    yield f"{'':<26}{'MSE':>8}{'MAE':>8}  standardised, {horizon} steps"
    for name, forecast in forecasts.items():
        squared, absolute = chapter.forecast_errors(forecast, test, context, horizon)
        yield f"{name:<26}{squared:>8.4f}{absolute:>8.4f}"
