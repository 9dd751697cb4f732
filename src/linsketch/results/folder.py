"""A campaign's folder: transcript, result and page, each there as a whole or not at all."""

import json
import os
from pathlib import Path

from linsketch.results.outcome import Outcome
from linsketch.results.page import page

TRANSCRIPT = "transcript.sqlite"


def write_outcome(folder: Path, outcome: Outcome) -> None:
    """Write what came out of a campaign beside its transcript."""
    text = json.dumps(outcome.to_json(), indent=2, ensure_ascii=False)
    write_whole(folder / "result.json", text + "\n")
    write_whole(folder / "report.html", page(outcome))


def write_whole(path: Path, text: str) -> None:
    """Write a file so that it is there as a whole or not at all."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        draft.unlink(missing_ok=True)
