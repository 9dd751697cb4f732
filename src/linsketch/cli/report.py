"""`linsketch report`: a campaign's page."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from linsketch.cli.common import Failed, transcript_in


def report(
    transcript: Annotated[
        Path, typer.Argument(help="The transcript of a campaign, or its folder.")
    ],
    out: Annotated[
        Path | None, typer.Option(help="The page to write; else report.html beside the transcript.")
    ] = None,
    failed_rounds: Failed = "scale",
) -> None:
    """Write the page of a transcript: one HTML file, no network, no script."""
    from linsketch.errors import DataError
    from linsketch.report.folder import write_whole
    from linsketch.report.outcome import outcome
    from linsketch.report.page import page
    from linsketch.transcript import Transcript

    source = transcript_in(transcript)
    to = out or source.with_name("report.html")
    if to.exists() and not to.read_bytes().lower().startswith(b"<!doctype html"):
        raise DataError(f"{to} is no page; it is not written over.")
    with Transcript(source) as record:
        result = outcome(record, failed_rounds)
    write_whole(to, page(result))
    sys.stdout.write(f"{to}\n")
