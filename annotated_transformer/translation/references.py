"""Hypotheses and references that belong together, line by line."""

from collections.abc import Sequence

from ..errors import UserError


def reference_files(
    hypotheses: Sequence[str], references: Sequence[str] | Sequence[Sequence[str]]
) -> list[list[str]]:
    """The references as a list of files, each as long as the hypotheses.

    Raises:
        UserError: no hypotheses, no references, numbers of lines that differ, or a
            string in place of a list.
    """
    single = [line for line in references if isinstance(line, str)]
    mixed = 0 < len(single) < len(references)
    if mixed or isinstance(hypotheses, str) or isinstance(references, str):
        raise UserError(
            "a string where a list of lines belongs: pass a list, also for a single "
            "sentence"
        )
    files = [single] if len(single) == len(references) else [*map(list, references)]
    for file in files:
        counts = f"{len(hypotheses)} hypotheses and {len(file)} references"
        if not hypotheses or not file:
            raise UserError(
                f"{counts}: nothing to score; check that neither file is empty"
            )
        if len(hypotheses) != len(file):
            raise UserError(
                f"{counts}: the files must match line by line; look for a lost or an "
                "extra line"
            )
    return files
