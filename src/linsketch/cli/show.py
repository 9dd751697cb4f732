"""Outcomes as tables on a terminal."""

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

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
        f"({result['words_per_user_round']:,} words of 16 bits); the server saw one sum a round."
    )
    if failed := result["failed_rounds"]["rounds"]:
        how = result["failed_rounds"]["counted_as"]
        console.print(f"[yellow]Rounds that did not decode completely: {failed} ({how}).[/]")
    title = (
        f"{len(found):,} items at {plan['threshold']:,} or above"
        if name == "heavy_hitters"
        else f"{len(found):,} items, each count within {plan['error']:,}"
    )
    table = Table("item", title=title)
    for head in ("estimate", "standard error", "rounds"):
        table.add_column(head, justify="right")
    checked = any("true_count" in line for line in found)
    if checked:
        table.add_column("true count", justify="right")
    for line in found[:lines]:
        cells = [f"{line['estimate']:,.0f}", f"{line['stderr']:,.1f}", f"{line['rounds']}"]
        if checked:
            true = line["true_count"]
            cells.append("few" if true is None else f"{true:,}")
        table.add_row(Text(str(line["item"])), *cells)
    if len(found) > lines:
        table.add_row(f"… {len(found) - lines:,} more")
    console.print(table)
    for when, line in result.get("truth", {}).items():
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
