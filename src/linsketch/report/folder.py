"""A campaign's folder: transcript, result and page, each there as a whole or not at all."""

import json
import os
from pathlib import Path
from typing import Any

from linsketch.report.page import page

TRANSCRIPT = "transcript.sqlite"


def write_outcome(folder: Path, result: dict[str, Any]) -> None:
    """Write what came out of a campaign beside its transcript."""
    write_whole(folder / "result.json", json.dumps(result, indent=2, ensure_ascii=False) + "\n")
    write_whole(folder / "report.html", page(result))


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
