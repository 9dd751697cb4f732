"""Outcomes as tables on a terminal."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from linsketch.report.outcome import printable

_LINES = 20


def show(result: dict[str, Any], folder: Path | None = None, lines: int = _LINES) -> None:
    """Print what came out of a campaign."""
    console = Console()
    plan = result["plan"]
    name = "heavy_hitters" if plan["error"] is None else "histogram"
    found = result[name]
    users = sum(line["users"] for line in result["rounds"])
    console.print(
        f"[bold]{users:,} users[/] in {len(result['rounds'])} of {plan['rounds']} rounds sent "
        f"[bold]{result['bytes_per_user_round']:,} bytes[/] each "
        f"({result['words_per_user_round']:,} words of 16 bits) and were sent up to "
        f"{result['down_bytes_per_user_round']:,}; the server saw one sum a round."
    )
    if up := result["secure_sum"].get("up_bytes"):
        down = result["secure_sum"]["down_bytes"]
        console.print(
            f"Secure sum, {result['secure_sum']['protocol']}: {up:,} bytes up in all, the vector "
            f"included, and {down:,} down."
        )
    if failed := result["failed_rounds"]["rounds"]:
        how = (
            "the others are scaled up"
            if result["failed_rounds"]["counted_as"] == "scale"
            else ("they count as zero")
        )
        console.print(f"[yellow]Rounds that did not decode completely: {failed}; {how}.[/]")
    for warning in result["warnings"]:
        console.print(f"[bold yellow]{warning}[/]")
    title = (
        f"{len(found):,} items for a threshold of {plan['threshold']:,}"
        if name == "heavy_hitters"
        else f"{len(found):,} items at {plan['error']:,} or above, each count within that"
    )
    table = Table("item", title=title)
    for head in ("estimate", "standard error", "rounds"):
        table.add_column(head, justify="right")
    checked = any("true_count" in line for line in found)
    if checked:
        table.add_column("true count (bounded)", justify="right")
    for line in found[:lines]:
        cells = [f"{line['estimate']:,.0f}", f"{line['stderr']:,.1f}", f"{line['rounds']}"]
        if checked:
            true = line["true_count"]
            cells.append("few" if true is None else f"{true:,}")
        table.add_row(Text(printable(line["item"])), *cells)
    if len(found) > lines:
        table.add_row(f"… {len(found) - lines:,} more")
    console.print(table)
    truth = result.get("truth", {})
    if truth and truth["before"] == truth["after"]:
        console.print(f"Against the truth: {_verdict(truth['after'])}")
    else:
        for when, line in truth.items():
            console.print(f"Against the truth {when} the bound on items a user: {_verdict(line)}")
    if folder:
        console.print(f"Page, result and transcript (sensitive) are in {folder}/.")


def _verdict(line: dict[str, Any]) -> str:
    if "f1" not in line:
        return f"largest error {line['largest_error']:,.1f}."
    return (
        f"precision {line['precision']:.3f}, recall {line['recall']:.3f}, "
        f"[bold]F1 {line['f1']:.3f}[/] ({len(line['missed'])} missed, {len(line['wrong'])} wrong)."
    )
