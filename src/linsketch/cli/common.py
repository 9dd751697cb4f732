"""What the commands share: errors in one line, files whole or not at all, options."""

import functools
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar

import typer

from linsketch.cli.secure import Summation
from linsketch.errors import LinsketchError, PlanningError
from linsketch.history import FailedRounds
from linsketch.markup import printable
from linsketch.plan import METHODS
from linsketch.results.folder import TRANSCRIPT
from linsketch.sampling import Sampling
from linsketch.sketch.iblt import Layout

P = ParamSpec("P")
T = TypeVar("T")

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]
DataFile = Annotated[
    Path, typer.Argument(help="Parquet, CSV, TSV or JSON lines; .gz too.", metavar="DATA")
]
Cluster = Annotated[
    str | None,
    typer.Option(
        help="Address of a Dask scheduler, like tcp://127.0.0.1:8786; DATA may be a folder then."
    ),
]
User = Annotated[str, typer.Option(help="Column of users.")]
Item = Annotated[str, typer.Option(help="Column of items.")]
Count = Annotated[str | None, typer.Option(help="Column of counts; default: a row counts 1.")]
Rounds = Annotated[int, typer.Option(help="Rounds; each user is in one of them.")]
Threshold = Annotated[
    int | None,
    typer.Option(help="Report items with this count or more; default: what the budget allows."),
]
Budget = Annotated[
    int | None,
    typer.Option(help="Bytes that a user may send in a round; default: the planner chooses."),
]
ChosenMethod = Annotated[
    str | None,
    typer.Option(help=f"How to find items: {', '.join(sorted(METHODS))} (default: slots)."),
]
ChosenSampling = Annotated[
    Sampling | None, typer.Option(help="How users sample; default: as suits the method.")
]
ChosenLayout = Annotated[
    Layout | None, typer.Option(help="Layout of tables: compact (default), or as in the paper.")
]
ItemsPerUser = Annotated[
    int | None,
    typer.Option(help="Most items of a user; default: as many as the busiest user has."),
]
Keys = Annotated[
    str | None,
    typer.Option(
        help="Kind of items: utf8:20, bytes:20, text:3 or int:32; default: utf8 of the longest."
    ),
]
FailureProbability = Annotated[
    float, typer.Option(help="Probability with which a proven promise may fail.")
]
Seed = Annotated[str, typer.Option(help="A text that cohorts, samples and hashes follow from.")]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder for transcript, result and page; default: linsketch-runs/PLAN."),
]
ChosenSum = Annotated[
    Summation,
    typer.Option(
        "--secure", help="Add vectors in the clear, or through a real secure sum, user by user."
    ),
]
Dropout = Annotated[
    float, typer.Option(help="Share of users that drop out of a secure sum, at any stage.")
]
SlotsFrom = Annotated[
    int | None,
    typer.Option(help="slots: name an item to users after so many occurrences; default: 2 or 3."),
]
LogJson = Annotated[
    Path | None, typer.Option(help="Append a JSON object to this file for each closed round.")
]
Check = Annotated[bool, typer.Option("--check", help="Compare with the truth in the file.")]
Failed = Annotated[
    FailedRounds,
    typer.Option(
        "--failed-rounds",
        help="What rounds that did not decode count as: scaled up from the others, or zero.",
    ),
]


def tidy(command: Callable[P, T]) -> Callable[P, T]:
    """Make a command print one line for what its user can mend, and exit with 2."""

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return command(*args, **kwargs)
        except LinsketchError as error:
            reason = str(error)
        except OSError as error:
            if isinstance(error, BrokenPipeError):
                raise
            where = f"{error.filename}: " if error.filename else ""
            reason = f"{where}{error.strerror or error}."
        sys.stderr.write(f"Error: {printable(' '.join(reason.split()))}\n")
        raise typer.Exit(2)

    return wrapped


def given(**options: Any) -> dict[str, Any]:
    """Return the options that were given: a method refuses those that it does not have."""
    return {name: value for name, value in options.items() if value is not None}


def print_json(value: Any) -> None:
    """Print one JSON object, in ASCII: no terminal or pipe can trip over it."""
    sys.stdout.write(json.dumps(value, indent=2) + "\n")


def seed_bytes(seed: str) -> bytes:
    """Return a seed as bytes."""
    try:
        return seed.encode()
    except UnicodeEncodeError:
        raise PlanningError("The seed is no text in UTF-8.") from None


def transcript_in(path: Path) -> Path:
    """Return the transcript of a folder, or the path itself."""
    return path / TRANSCRIPT if path.is_dir() else path


@contextmanager
def progress(rounds: int) -> Iterator[Callable[[str, int], None]]:
    """Show rounds as they close: a bar on a terminal, plain lines in a pipe, both on stderr."""
    if not sys.stderr.isatty():

        def line(text: str, _: int) -> None:
            sys.stderr.write(text + "\n")

        yield line
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("rounds", total=rounds)

        def advance(text: str, closed: int) -> None:
            bar.console.print(text, highlight=False, markup=False)
            bar.update(task, completed=closed)

        yield advance
