"""`python -m experiments fig1 fig2 fig3 drift grid table1 results`, and `try FILE`."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from experiments import drift, fig1, fig2, fig3, fig4, grid, results, table1
from experiments.cells import Results
from experiments.drawn import load
from experiments.tryout import try_methods
from linsketch.cli.common import tidy

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
WORDS = Path(__file__).parents[1] / "data" / "words.tsv.gz"


def draw_figures(
    figures: Annotated[list[str], typer.Argument(help=f"Some of {', '.join(FIGURES)}.")],
    words: Annotated[Path, typer.Option(help="text<TAB>count lines, .gz too.")] = WORDS,
    out: Annotated[Path, typer.Option(help="Folder for figures and finished cells.")] = Path(
        "experiments/out"
    ),
    runs: Annotated[int, typer.Option(min=1, help="Runs a point (results: 15).")] = 5,
    workers: Annotated[int, typer.Option(min=1, help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Redraw figures of the paper's section 7 with the real code.

    `try FILE` tries methods on a file of your own: `python -m experiments try --help`.
    """
    unknown = [name for name in figures if name not in FIGURES]
    if unknown:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(FIGURES)}.")
    if not words.is_file():
        raise typer.BadParameter(f"There is no file {words}.")
    caption = f"Drawn from {load(str(words)).name}, cut to 3 characters: "
    caption += "not the paper's, which were StackOverflow's."
    for name in figures:
        FIGURES[name](
            Results(out, str(words)),
            out,
            15 if name == "results" and runs == 5 else runs,
            workers,
            caption,
        )
        typer.echo(f"{name}: done, in {out}/")


def main(arguments: list[str]) -> None:
    """Run one of the two commands."""
    trying = arguments[:1] == ["try"]
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command()(tidy(try_methods if trying else draw_figures))
    app(arguments[trying:], prog_name="python -m experiments" + " try" * trying)


if __name__ == "__main__":
    main(sys.argv[1:])
