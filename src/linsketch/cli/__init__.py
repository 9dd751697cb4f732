"""The command line; one file a command."""

import sys
from typing import Annotated

import typer

from linsketch import __version__
from linsketch.cli.demo import demo

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
app.command()(demo)


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"linsketch {__version__}\n")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[  # its callback does the work
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say it and exit.")
    ] = False,
) -> None:
    """Find the popular items of a population without seeing anybody's items."""
