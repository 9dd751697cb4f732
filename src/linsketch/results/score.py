"""What was found, beside the truth, before and after the bound on items a user."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linsketch.keys import KeySpace
from linsketch.plan import Plan
from linsketch.results.items import Found


@dataclass(frozen=True)
class HeavyScore:
    """How well a list of heavy hitters fits the truth."""

    precision: float
    recall: float
    f1: float
    missed: tuple[Any, ...]
    wrong: tuple[Any, ...]


@dataclass(frozen=True)
class HistogramScore:
    """How far the counts are off."""

    largest_error: float
    within_error: bool


@dataclass(frozen=True)
class HeavyTruth:
    """The scores against all that users have, and against what the bound leaves of it."""

    before: HeavyScore
    after: HeavyScore


@dataclass(frozen=True)
class HistogramTruth:
    """The same for a histogram."""

    before: HistogramScore
    after: HistogramScore


def truth_of(
    keys: KeySpace[Any], before: Mapping[Any, int], after: Mapping[Any, int], cutoff: int
) -> dict[str, list[list[Any]]]:
    """Return what a check needs to know of the truth before and after the bound on items.

    For heavy hitters that is the items at a tenth of the cutoff or above, for a histogram (0) all
    of them.
    """
    return {
        name: [
            [keys.to_json(item), int(count)]
            for item, count in totals.items()
            if 10 * count >= cutoff
        ]
        for name, totals in (("before", before), ("after", after))
    }


def score(
    plan: Plan, found: Sequence[Found], truth: Mapping[str, Any]
) -> HeavyTruth | HistogramTruth:
    """Compare what was found with the truth."""
    before, after = (dict(map(tuple, truth[name])) for name in ("before", "after"))
    cutoff = plan.cutoff
    if plan.error is None:
        return HeavyTruth(_heavy_score(found, before, cutoff), _heavy_score(found, after, cutoff))
    return HistogramTruth(
        _histogram_score(found, before, cutoff), _histogram_score(found, after, cutoff)
    )


def _heavy_score(found: Sequence[Found], totals: dict[Any, int], cutoff: int) -> HeavyScore:
    listed = {line.item for line in found}
    heavy = {item for item, count in totals.items() if count >= cutoff}
    right = len(listed & heavy)
    return HeavyScore(
        precision=right / len(listed) if listed else 1.0,
        recall=right / len(heavy) if heavy else 1.0,
        f1=2 * right / (len(listed) + len(heavy)) if listed or heavy else 1.0,
        missed=tuple(sorted(heavy - listed, key=lambda item: (-totals[item], str(item)))),
        wrong=tuple(line.item for line in found if line.item not in heavy),
    )


def _histogram_score(found: Sequence[Found], totals: dict[Any, int], error: int) -> HistogramScore:
    estimates = {line.item: line.estimate for line in found}
    largest = max(
        (
            abs(estimates.get(item, 0.0) - totals.get(item, 0))
            for item in estimates.keys() | totals.keys()
        ),
        default=0.0,
    )
    return HistogramScore(largest, largest <= error)
