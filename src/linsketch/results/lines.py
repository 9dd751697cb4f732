"""Outcomes as lines of a log."""

from collections.abc import Callable
from pathlib import Path

from linsketch.markup import printable
from linsketch.results.outcome import Outcome

_LINES = 20


def summary(
    outcome: Outcome, folder: Path, say: Callable[[str], None], warn: Callable[[str], None]
) -> None:
    """Say what came out of a campaign."""
    for warning in outcome.warnings:
        warn(warning)
    for line in outcome.items[:_LINES]:
        say(f"{printable(line.item)}: {line.estimate:,.0f} ± {line.stderr:,.0f}")
    say(f"Page, result and transcript (sensitive) are in {folder}.")
