"""The command line; one file a command."""

import io
import sys
from typing import Annotated

import typer

from linsketch import __version__
from linsketch.cli.common import tidy
from linsketch.cli.demo import demo
from linsketch.cli.histogram import histogram
from linsketch.cli.inspect import inspect
from linsketch.cli.new_app import helper_key, new_app, terms
from linsketch.cli.plan import plan
from linsketch.cli.report import report
from linsketch.cli.run import run

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
for command in (demo, run, histogram, plan, inspect, report, new_app, terms, helper_key):
    app.command()(tidy(command))


def _version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"linsketch {__version__}\n")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[  # noqa: ARG001  # its callback does the work
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Find the popular items of a population without seeing anybody's items."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal that cannot show a character
            stream.reconfigure(errors="replace")
