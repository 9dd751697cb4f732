"""Where the time goes in Flower's deployment runtime: SuperLink and SuperNodes on this machine.

`python bench/federation.py` takes about 5 minutes and writes docs/benchmarks-federation.md.
"""

import json
import os
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.flower import Deployment  # noqa: E402

CLIENTS = 12
STAGES = ("keys", "shares", "vectors", "unmasking", "masks", "decoding")


def campaign(folder: Path, name: str, method: str, helper: bool) -> str:
    """Run a campaign of three rounds over twelve clients; return its row of the table."""
    folder = folder / name.replace(" ", "-").replace(",", "")
    folder.mkdir()
    with Deployment(folder, secure=False) as deployed:

        def told(*command: object) -> str:
            done = deployed.call("linsketch", *command)
            assert done.returncode == 0, done.stderr
            return done.stdout

        sizes = ("--rounds", 3, "--users-per-round", 4, "--items-per-user", 3, "--threshold", 3)
        options = ("--budget", 4000, "--method", method, "--seed", name, "--keys", "utf8:16")
        (folder / "plan.json").write_text(told("plan", *sizes, *options, "--json"))
        secure = ("--secure", "masked")
        if helper:
            key = told("helper-key", folder / "private").strip()
            secure = ("--secure", "helper", "--helper-key", key)  # type: ignore[assignment]
        app = folder / "app"
        told("new-app", app, "--plan", folder / "plan.json", "--stage-seconds", 120, *secure)
        terms = json.loads(told("terms", app / "survey" / "terms.json", "--json"))["terms_id"]
        accept = f'accept="{terms}"'
        for client in range(CLIENTS):
            ledger = f'ledger="{folder}/ledger{client}"'
            deployed.supernode(f"client{client}", accept, ledger, f"partition-id={client}")
        if helper:
            ledger = f'ledger="{folder}/ledger"'
            deployed.supernode("helper", accept, ledger, 'role="helper"', f'key="{folder}/private"')
        deployed.online(CLIENTS + helper)
        start = time.perf_counter()
        said = deployed.run(app, f'out="{folder}/out" log-json="{folder}/log"')
        whole = time.perf_counter() - start
        lines = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
        assert [line["users"] for line in lines] == [4, 4, 4], said
        side_by_side = method != "adaptive"
        counted = lines[:1] if side_by_side else lines
        seconds = {
            stage: sum(line["seconds"].get(stage, 0.0) for line in counted) for stage in STAGES
        }
        cells = [f"{seconds[stage]:.1f}" if seconds[stage] else "" for stage in STAGES]
        messages = (1 if helper else 4) * CLIENTS + (3 + CLIENTS + 1) * helper
        rest = whole - sum(seconds.values())
        print(name, cells, f"{rest:.1f} {whole:.1f}", flush=True)
        return f"| {name} | {messages} | {' | '.join(cells)} | {rest:.1f} | **{whole:.1f}** |"


def main() -> None:
    """Measure, and write the page."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        for title, method, helper in (
            ("masked, one round after the other", "adaptive", False),
            ("masked, side by side", "unsampled", False),
            ("helper, one round after the other", "adaptive", True),
            ("helper, side by side", "unsampled", True),
        ):
            rows.append(campaign(Path(name), title, method, helper))
    heads = " | ".join(STAGES)
    text = f"""# Where the time goes on Flower

Written by `python bench/federation.py`: Flower's deployment runtime, a SuperLink and {CLIENTS}
SuperNodes on one machine with {os.cpu_count()} cores, three rounds of four clients. Seconds of
each stage, added up over the campaign; `rest` is `flwr run` itself: sending the app, starting the
server's process, waiting until no more nodes connect, finding the helper, streaming logs.

| campaign | messages | {heads} | rest | all |
|---|---:|{"---:|" * (len(STAGES) + 2)}
{chr(10).join(rows)}

SuperNodes look for messages every 3 s, and each message starts a process, which takes about 2 s of
CPU to load Flower and linsketch: that, and not the protocol (some 14 ms a client at 1,000
clients), is what a stage costs, and on this machine all clients share the cores. Side by side,
three rounds take the stages of one. On machines of their own, clients do not wait for each other's
processes.
"""
    (ROOT / "docs" / "benchmarks-federation.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
