"""`linsketch new-app`, `terms` and `helper-key`: campaigns over real clients, on Flower."""

import json
import os
import secrets
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from linsketch.cli.common import AsJson, print_json

if TYPE_CHECKING:
    from linsketch.federation.terms import Terms

Sum = Literal["masked", "helper"]


def new_app(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is not there yet.")],
    plan: Annotated[
        Path | None,
        typer.Option(help="What `linsketch plan --json` printed; else one for 100 clients."),
    ] = None,
    secure: Annotated[Sum, typer.Option(help="One server, or a helper beside it.")] = "masked",
    helper_key: Annotated[
        str, typer.Option(help="The helper's public key: `linsketch helper-key`.")
    ] = "",
    corrupt: Annotated[float, typer.Option(help="masked: share of clients that collude.")] = 0.2,
    dropout: Annotated[float, typer.Option(help="masked: share of clients that drop out.")] = 0.1,
    split_view_safe: Annotated[
        bool, typer.Option(help="masked: more neighbours, against a server that lies about them.")
    ] = False,
    stage_seconds: Annotated[int, typer.Option(help="How long a stage of a round may take.")] = 60,
    largest_t_change: Annotated[
        float | None,
        typer.Option(help="adaptive: how far t may go from the plan's, as a factor (default: 4)."),
    ] = None,
) -> None:
    """Write a Flower app for a campaign: fill in `local_items`, then `flwr run`."""
    from importlib.resources import as_file, files
    from shutil import copytree, ignore_patterns

    from linsketch.errors import DataError, PlanningError
    from linsketch.federation.terms import Terms
    from linsketch.plan import Plan
    from linsketch.planner import plan_campaign
    from linsketch.results.folder import write_whole

    if folder.exists():
        raise DataError(f"{folder} exists already; it is not written over.")
    if plan is None:
        from linsketch.keys import Utf8Keys

        chosen = plan_campaign(
            rounds=5,
            users_per_round=20,
            items_per_user=3,
            keys=Utf8Keys(16),
            seed=secrets.token_bytes(8),  # every campaign has an identity of its own
            threshold=10,
        ).plan
    else:
        try:
            data = json.loads(plan.read_text(encoding="utf-8"))
        except ValueError:
            raise PlanningError(f"{plan} is no JSON.") from None
        chosen = Plan.from_json(data.get("plan", data) if isinstance(data, dict) else data)
    if largest_t_change is not None:
        type(chosen.method).chosen(largest_t_change=largest_t_change)  # if it has the option
        method = replace(chosen.method, largest_t_change=largest_t_change)  # type: ignore[type-var]
        chosen = replace(chosen, method=method)
    chosen = chosen.for_clients()
    if helper_key and secure != "helper":
        raise PlanningError("A helper's key goes with --secure helper.")
    if secure == "masked":
        terms = Terms.masked(
            chosen,
            corrupt=corrupt,
            dropout=dropout,
            split_view_safe=split_view_safe,
            stage_seconds=stage_seconds,
        )
    else:
        try:
            key = bytes.fromhex(helper_key)
        except ValueError:
            key = b""
        if len(key) != 32:
            raise PlanningError(
                "Give the helper's public key, 64 hexadecimal digits: --helper-key. The helper's "
                "operator makes one with `linsketch helper-key FILE`."
            )
        terms = Terms.helper(chosen, key, stage_seconds=stage_seconds)
    with as_file(files("linsketch.federation").joinpath("template")) as template:
        copytree(template, folder, ignore=ignore_patterns("__pycache__"))
    write_whole(folder / "survey" / "terms.json", json.dumps(terms.to_json(), indent=2) + "\n")
    _show(terms)
    sys.stdout.write(
        f"\nFill in local_items in {folder / 'survey' / 'client.py'}. Then run it on a SuperLink: "
        "docs/flower.md, from 100 virtual clients on one machine to a fleet.\n"
    )


def terms(
    file: Annotated[Path, typer.Argument(help="The terms.json of an app.")],
    as_json: AsJson = False,
) -> None:
    """Say what the operator of a client accepts with a campaign's terms, and their id."""
    from linsketch.federation.terms import Terms

    read = Terms.read(file)
    if as_json:
        print_json({"terms_id": read.terms_id, **read.to_json()})
    else:
        _show(read)


def helper_key(
    file: Annotated[Path, typer.Argument(help="Where the private key goes; never shown.")],
) -> None:
    """Make a helper's key: the private one into a file, the public one printed for the terms."""
    from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

    from linsketch.errors import DataError
    from linsketch.securesum.agreement import public_bytes

    private = X25519PrivateKey.generate()
    try:
        handle = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise DataError(f"{file} exists already; it is not written over.") from None
    with os.fdopen(handle, "w") as to:
        to.write(private.private_bytes_raw().hex() + "\n")
    sys.stdout.write(public_bytes(private).hex() + "\n")


def _show(terms: "Terms") -> None:
    from rich.console import Console
    from rich.table import Table

    plan, own = terms.plan, terms.secure_sum
    lines = {
        "a client takes part": f"once, in one of {plan.rounds:,} round{'s' * (plan.rounds > 1)}",
        "clients in a round": f"{terms.least:,} to {plan.users_per_round:,}, dropouts left out",
        "items of a client": f"at most {plan.items_per_user:,}, as {plan.keys.name}",
        "reported from": f"{plan.cutoff:,} on" if plan.error is None else f"error {plan.cutoff:,}",
        **plan.method.accepted(plan),
        "bytes of a client": f"{plan.budget:,} and the secure sum's own",
        "seconds of a stage": f"{terms.stage_seconds:,}",
        "secure sum": own.name,
        "hidden from": own.hidden_from,
    }
    table = Table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in lines.items():
        table.add_row(name, value)
    Console().print(table)
    # On lines of their own: these are copied.
    sys.stdout.write(f"terms: {terms.terms_id}\nplan: {plan.plan_id}\n")
    for name, value in own.to_copy.items():
        sys.stdout.write(f"{name}: {value}\n")
