"""The command line; one file a command."""

import typer

from linsketch.cli.demo import demo

app = typer.Typer(add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False)
app.command()(demo)


@app.callback()
def main() -> None:
    """Find the popular items of a population without seeing anybody's items."""
