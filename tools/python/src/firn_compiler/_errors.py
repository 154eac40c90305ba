"""Exceptions, one class for each way in which Firn ends: the model, the request, what is missing, a fault of Firn's."""
from __future__ import annotations

from typing import NamedTuple, Sequence


class Diagnostic(NamedTuple):
    kind: str  # "warning", "model", "usage", "unsupported", "internal", "stopped"
    message: str


class Error(Exception):
    """Base of all that Firn raises; `diagnostics` has every message with its kind."""

    def __init__(self, message: str, diagnostics: Sequence[Diagnostic] = ()) -> None:
        super().__init__(message)
        self.diagnostics: tuple[Diagnostic, ...] = tuple(diagnostics) or (Diagnostic(self.kind, message),)

    kind = "internal"


class ModelError(Error):
    """The model is wrong."""

    kind = "model"


class UsageError(Error, ValueError):
    """A file, an option or an argument is wrong; the message says what was wanted."""

    kind = "usage"


class UnsupportedError(Error):
    """The model has what Firn does not compile."""

    kind = "unsupported"


class InternalError(Error):
    """A fault of Firn's, which wants a report."""

    kind = "internal"


KINDS = ("warning", "model", "usage", "unsupported", "internal", "stopped")
CLASSES: dict[str, type[Error]] = {each.kind: each for each in (ModelError, UsageError, UnsupportedError, InternalError)}


def error_of(kind: str, diagnostics: Sequence[Diagnostic], fallback: str = "the compiler gave no reason") -> Error:
    errors = [each.message for each in diagnostics if each.kind != "warning"]
    return CLASSES.get(kind, InternalError)("\n".join(errors) or fallback, diagnostics)
