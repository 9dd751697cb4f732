"""The server: nothing to fill in. It sees one sum a round."""

from pathlib import Path

from linsketch.federation.flower import server_app

app = server_app(Path(__file__).with_name("terms.json"))
