"""`python -m experiments fig1 fig2 fig3 drift grid table1 results`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from experiments import drift, fig1, fig2, fig3, fig4, grid, results, table1
from experiments.cells import Results
from experiments.words import load

FIGURES = {
    "fig1": fig1.figure,
    "fig2": fig2.figure,
    "fig3": fig3.figure,
    "fig4": fig4.figure,
    "drift": drift.figure,
    "grid": grid.figure,
    "table1": table1.figure,
    "results": results.figure,
}
_FILE = Path(__file__).parents[2] / "shared/data/words_counts.tsv.gz"
WORDS = _FILE if _FILE.exists() else None  # where the reference was measured


def main(
    figures: Annotated[list[str], typer.Argument(help=f"Some of {', '.join(FIGURES)}.")],
    words: Annotated[
        Path | None,
        typer.Option(help="word<TAB>count lines, .gz too; else wordfreq's English words."),
    ] = WORDS,
    out: Annotated[Path, typer.Option(help="Folder for figures and finished cells.")] = Path(
        "experiments/out"
    ),
    runs: Annotated[int, typer.Option(min=1, help="Runs a point (results: 15).")] = 5,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Redraw figures of the paper's section 7 with the real code."""
    unknown = [name for name in figures if name not in FIGURES]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(FIGURES)}.")
    if words is not None and not words.is_file():
        raise typer.BadParameter(f"There is no file {words}.")
    file = str(words) if words else ""
    caption = f"Drawn from {load(file).name}, cut to 3 characters: "
    caption += "not the paper's, which were StackOverflow's."
    for name in figures:
        FIGURES[name](
            Results(out, file),
            out,
            15 if name == "results" and runs == 5 else runs,
            workers,
            caption,
        )
        typer.echo(f"{name}: done, in {out}/")


if __name__ == "__main__":
    typer.run(main)
