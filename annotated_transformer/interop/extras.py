"""Optional libraries: imported when they are needed, or named with a remedy."""

from importlib import import_module
from typing import Any

from ..errors import UserError


def needed(package: str) -> Any:
    """An optional library, imported.

    Raises: UserError with the remedy when it is not installed.
    """
    name = package.partition(".")[0]
    try:
        return import_module(package)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != name:
            raise
    extra = "fast" if name == "ctranslate2" else "export"
    raise UserError(f"this needs {name}: pip install 'annotated-transformer[{extra}]'")
