"""Checks that descriptions (key spaces, sizes, seeds, sketches) make of their own fields."""

from operator import index
from typing import Any

from linsketch.errors import PlanningError


def whole_number(owner: Any, field: str, least: int, most: int) -> None:
    """Refuse a field that is no integer from least to most; make others a Python int."""
    value = getattr(owner, field)
    whole = hasattr(value, "__index__") and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise PlanningError(
            f"{_label(owner)}: {field} must be a whole number from {least:,} to {most:,}, "
            f"not {value!r}."
        )
    object.__setattr__(owner, field, index(value))


def instance(owner: Any, field: str, kind: type) -> None:
    """Refuse a field that is not of its type."""
    value = getattr(owner, field)
    if not isinstance(value, kind):
        raise PlanningError(
            f"{_label(owner)}: {field} must be {kind.__name__}(...), not {value!r}."
        )


def probability(owner: Any, field: str) -> None:
    """Refuse a field that is no number strictly between 0 and 1; make others a Python float."""
    value = getattr(owner, field)
    if not isinstance(value, float | int) or not 0 < value < 1:
        raise PlanningError(f"{_label(owner)}: {field} must lie between 0 and 1, not {value!r}.")
    object.__setattr__(owner, field, float(value))


def one_of(owner: Any, field: str, allowed: tuple[str, ...]) -> None:
    """Refuse a field that is none of a few words."""
    value = getattr(owner, field)
    if value not in allowed:
        raise PlanningError(
            f"{_label(owner)}: {field} is {', '.join(allowed[:-1])} or {allowed[-1]}, "
            f"not {value!r}."
        )


def _label(owner: Any) -> str:
    return str(getattr(owner, "label", type(owner).__name__))
