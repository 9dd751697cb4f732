"""A ledger on disk: what must not happen twice, noted durably before it happens."""

import os
import sqlite3
from pathlib import Path

from linsketch.errors import LinsketchError
from linsketch.securesum.base import refuse_repeated

_APPLICATION = 0x4C534B4C  # "LSKL"


class FileLedger:
    """Entries in an SQLite file; a note is synced to the disk before `note` returns.

    A client keeps one for its contributions, a helper one for the clients it has counted.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        try:
            self.path.touch(mode=0o600)
            self._database = sqlite3.connect(self.path, isolation_level=None)
            self._database.execute("PRAGMA synchronous = EXTRA")
            known = self._database.execute("PRAGMA application_id").fetchone()[0]
            tables = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            if known != _APPLICATION and tables:
                raise LinsketchError(f"{self.path} is no ledger of linsketch.")
            self._database.execute(f"PRAGMA application_id = {_APPLICATION}")
            self._database.execute(
                "CREATE TABLE IF NOT EXISTS noted (entry BLOB PRIMARY KEY) WITHOUT ROWID, STRICT"
            )
        except (OSError, sqlite3.Error) as error:
            raise LinsketchError(f"Cannot use the ledger {self.path}: {error}.") from None

    def note(self, *entries: bytes) -> None:
        """Note all entries at once, or refuse if one has been noted."""
        if not all(isinstance(entry, bytes) for entry in entries):
            raise LinsketchError("A ledger notes bytes.")
        refuse_repeated(entries, ())
        try:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                self._database.executemany(
                    "INSERT INTO noted VALUES (?)", [(entry,) for entry in entries]
                )
                self._database.execute("COMMIT")
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
        except sqlite3.IntegrityError:
            refuse_repeated(entries, entries)
        except sqlite3.Error as error:
            raise LinsketchError(f"Cannot note in the ledger {self.path}: {error}.") from None

    def has(self, entry: bytes) -> bool:
        """Return whether an entry has been noted."""
        try:
            query = "SELECT count(*) FROM noted WHERE entry = ?"
            return bool(self._database.execute(query, (entry,)).fetchone()[0])
        except sqlite3.Error as error:
            raise LinsketchError(f"Cannot read the ledger {self.path}: {error}.") from None

    def close(self) -> None:
        """Close the file."""
        self._database.close()
