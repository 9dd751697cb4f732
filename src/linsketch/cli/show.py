"""Outcomes as tables on a terminal."""

from pathlib import Path

from rich.console import Console
from rich.table import Table
from rich.text import Text

from linsketch.markup import printable
from linsketch.results.outcome import Outcome
from linsketch.results.score import HeavyTruth, HistogramTruth

_LINES = 20


def show(outcome: Outcome, folder: Path | None = None, lines: int = _LINES) -> None:
    """Print what came out of a campaign."""
    console, plan, found = Console(), outcome.plan, outcome.items
    console.print(
        f"[bold]{outcome.users:,} users[/] in {len(outcome.rounds)} of {plan.rounds} rounds sent "
        f"[bold]{outcome.bytes_per_user_round:,} bytes[/] each "
        f"({outcome.words_per_user_round:,} words of 16 bits) and were sent up to "
        f"{outcome.down_bytes_per_user_round:,}; the server saw one sum a round."
    )
    secure = outcome.secure_sum
    if secure.up_bytes:
        console.print(
            f"Secure sum, {secure.protocol}: {secure.up_bytes:,} bytes up in all, the vector "
            f"included, and {secure.down_bytes:,} down."
        )
    if failed := list(outcome.failed_rounds):
        how = outcome.failed_as
        console.print(f"[yellow]Rounds that did not decode completely: {failed}; {how}.[/]")
    for warning in outcome.warnings:
        console.print(f"[bold yellow]{warning}[/]")
    title = (
        f"{len(found):,} items at {plan.cutoff:,} or above, each count within that"
        if outcome.is_histogram
        else f"{len(found):,} items for a threshold of {plan.cutoff:,}"
    )
    table = Table("item", title=title)
    for head in ("estimate", "standard error", "rounds"):
        table.add_column(head, justify="right")
    if outcome.truth:
        table.add_column("true count (bounded)", justify="right")
    for line in found[:lines]:
        cells = [f"{line.estimate:,.0f}", f"{line.stderr:,.1f}", f"{line.rounds}"]
        if outcome.truth:
            cells.append("few" if line.true_count is None else f"{line.true_count:,}")
        table.add_row(Text(printable(line.item)), *cells)
    if len(found) > lines:
        table.add_row(f"… {len(found) - lines:,} more")
    console.print(table)
    for text in _verdicts(outcome.truth):
        console.print(text)
    if folder:
        console.print(f"Page, result and transcript (sensitive) are in {folder}/.")


def _verdicts(truth: HeavyTruth | HistogramTruth | None) -> list[str]:
    """Compare with the truth; with both truths, where the bound makes a difference."""
    if truth is None:
        return []
    if isinstance(truth, HistogramTruth):
        said = [f"largest error {line.largest_error:,.1f}." for line in (truth.before, truth.after)]
    else:
        said = [
            f"precision {line.precision:.3f}, recall {line.recall:.3f}, [bold]F1 {line.f1:.3f}[/] "
            f"({len(line.missed)} missed, {len(line.wrong)} wrong)."
            for line in (truth.before, truth.after)
        ]
    if truth.before == truth.after:
        return [f"Against the truth: {said[1]}"]
    bound = "the bound on items a user"
    return [
        f"Against the truth before {bound}: {said[0]}",
        f"Against the truth after {bound}: {said[1]}",
    ]
