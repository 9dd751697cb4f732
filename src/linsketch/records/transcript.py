"""Transcript: the durable record of a campaign, in one SQLite file.

It holds the plan and, of each closed round, the task and the sum: all that a server ever has, and
all that the answers are computed from. A rehearsal also keeps facts about its data there (what it
was checked against, what a baseline was asked about). It is sensitive: whoever has it can list
every sampled item, also one that a single person has.
"""

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from linsketch.errors import LinsketchError, TranscriptError
from linsketch.history import Round
from linsketch.plan import Plan
from linsketch.rings import Contribution
from linsketch.round import RoundSketch, RoundTask
from linsketch.server import Server

VERSION = 2
_APPLICATION = 0x4C534B54  # "LSKT"
_NOTICE = (
    "This file is sensitive: every sampled item of the campaign can be listed from it, also items "
    "that a single person has."
)
_SCHEMA = """
CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE rounds (
    round INTEGER PRIMARY KEY, task TEXT NOT NULL, users INTEGER NOT NULL, sum BLOB,
    failure TEXT NOT NULL, CHECK ((sum IS NULL) = (failure <> ''))
) STRICT;
"""


class Transcript:
    """A campaign's file: `Transcript.create(path, plan)`, later `Transcript(path)`.

    A round is added in one transaction, synced to the disk; a process killed at any moment
    leaves it in or out as a whole, and the primary key keeps it from being counted twice.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        if not self.path.is_file():
            raise TranscriptError(f"There is no transcript {self.path}.")
        self._database = self._connect()
        with self._errors():
            (application,) = self._database.execute("PRAGMA application_id").fetchone()
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            if application != _APPLICATION:
                raise TranscriptError(f"{self.path} is no transcript of linsketch.")
            if version != VERSION:
                raise TranscriptError(
                    f"{self.path} has version {version}; this release reads version {VERSION}."
                )
            self.plan = Plan.from_json(self.fact("plan"))

    @classmethod
    def create(
        cls, path: str | os.PathLike[str], plan: Plan, facts: dict[str, Any] | None = None
    ) -> "Transcript":
        """Begin a transcript; nothing that exists is written over."""
        path = Path(path)
        if path.exists():
            raise TranscriptError(f"{path} exists already; it is not written over.")
        draft = None
        try:
            handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)  # mode 600
            os.close(handle)
            draft = Path(name)
            database = sqlite3.connect(draft)
            try:
                database.executescript(
                    f"PRAGMA application_id = {_APPLICATION}; PRAGMA user_version = {VERSION};"
                    f"BEGIN; {_SCHEMA} COMMIT;"
                )
                rows = {"notice": _NOTICE, "plan": plan.to_json(), **(facts or {})}
                with database:
                    database.executemany(
                        "INSERT INTO facts VALUES (?, ?)",
                        [(name, json.dumps(value)) for name, value in rows.items()],
                    )
            finally:
                database.close()
            os.link(draft, path)  # never over a file that another process has just made
        except FileExistsError:
            raise TranscriptError(f"{path} exists already; it is not written over.") from None
        except (OSError, sqlite3.Error) as error:
            raise TranscriptError(f"Cannot write {path}: {_reason(error)}.") from None
        finally:
            if draft:
                draft.unlink(missing_ok=True)
        return cls(path)

    def _connect(self) -> sqlite3.Connection:
        with self._errors():
            database = sqlite3.connect(self.path)
            database.execute("PRAGMA synchronous = EXTRA")
            return database

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.IntegrityError:
            raise
        except sqlite3.Error as error:
            raise TranscriptError(f"{self.path}: {_reason(error)}.") from None

    def fact(self, name: str) -> Any:
        """Return a fact that was stored with the campaign, None if it was not."""
        with self._errors():
            row = self._database.execute(
                "SELECT value FROM facts WHERE name = ?", (name,)
            ).fetchone()
        try:
            return None if row is None else json.loads(row[0])
        except ValueError:
            raise TranscriptError(f"{self.path} is damaged: {name} is no JSON.") from None

    def keep_fact(self, name: str, value: Any) -> None:
        """Store a fact, like what a check against the truth said."""
        with self._errors(), self._database:
            self._database.execute(
                "INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, json.dumps(value))
            )

    @property
    def closed(self) -> int:
        """How many rounds are closed."""
        with self._errors():
            return int(self._database.execute("SELECT count(*) FROM rounds").fetchone()[0])

    def add(self, closed: Round, sums: Sequence[Contribution]) -> None:
        """Commit a closed round with its sums, one a group; one that failed has none."""
        sketch = RoundSketch.of(self.plan, closed.task)
        packed = None
        if not closed.failure:
            (total,) = sums
            packed = total.vector.pack(sketch.context)
        text = sketch.context.decode()
        row = (closed.task.round, text, closed.users, packed, closed.failure)
        try:
            with self._errors(), self._database:
                self._database.execute("INSERT INTO rounds VALUES (?, ?, ?, ?, ?)", row)
        except sqlite3.IntegrityError:
            raise TranscriptError(
                f"{self.path} has round {closed.task.round} already: is the campaign running twice?"
            ) from None

    def rounds(self) -> Iterator[tuple[RoundTask, list[Contribution], str]]:
        """Read the closed rounds, each with its sums or the reason why there are none."""
        with self._errors():
            rows = self._database.execute(
                "SELECT task, users, sum, failure FROM rounds ORDER BY round"
            )
            for text, users, packed, failure in rows:
                try:
                    task = RoundTask.from_json(json.loads(text), self.plan)
                    sketch = RoundSketch.of(self.plan, task)
                    vector = packed and sketch.ring.unpack(packed, sketch.context)
                except (LinsketchError, ValueError) as error:
                    raise TranscriptError(f"{self.path} is damaged: {error}") from None
                yield task, [Contribution(vector, users)] if vector else [], failure

    def server(self) -> Server:
        """Return the server as it was after the last closed round."""
        server = Server(self.plan)
        for task, sums, failure in self.rounds():
            if sums:
                server.close_round(task, sums)
            else:
                server.abort_round(task, failure)
        return server

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def __enter__(self) -> "Transcript":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _reason(error: Exception) -> str:
    return error.strerror if isinstance(error, OSError) and error.strerror else str(error)
