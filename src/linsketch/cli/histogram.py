"""`linsketch histogram`: approximate counts of a file of who-has-what."""

from typing import Annotated

import typer

from linsketch.cli.common import (
    AsJson,
    Check,
    ChosenLayout,
    ChosenSum,
    Cluster,
    Count,
    DataFile,
    Dropout,
    Failed,
    FailureProbability,
    Item,
    ItemsPerUser,
    Keys,
    LogJson,
    Out,
    Rounds,
    Seed,
    User,
    given,
)


def histogram(
    data: DataFile,
    user: User,
    item: Item,
    rounds: Rounds,
    error: Annotated[int, typer.Option(help="No count is off by more than this.")],
    items_per_user: ItemsPerUser = None,
    count: Count = None,
    keys: Keys = None,
    method: Annotated[
        str,
        typer.Option(help="proven: Algorithm 3. slots: known items exact, no proof. unsampled."),
    ] = "proven",
    layout: ChosenLayout = None,
    failure_probability: FailureProbability = 0.05,
    failed_rounds: Failed = "scale",
    secure: ChosenSum = "clear",
    dropout: Dropout = 0.0,
    cluster: Cluster = None,
    seed: Seed = "1",
    out: Out = None,
    check: Check = False,
    log_json: LogJson = None,
    as_json: AsJson = False,
) -> None:
    """Estimate how often items occur in a file, each within an error (Algorithm 3).

    Items that are not listed have a count of at most the error. Where tables that hold everything
    weigh less than Algorithm 3, they are taken, and counts are exact.
    """
    from linsketch.cli.rehearse import rehearse, split
    from linsketch.cli.rows import opened, refuse_cluster
    from linsketch.cli.secure import Secure
    from linsketch.plan import method_named
    from linsketch.planner import plan_histogram

    chosen = Secure(secure, dropout)
    own = method_named(method).chosen(**given(layout=layout))  # before a long file is read
    refuse_cluster(cluster, secure)
    with opened(data, cluster, user=user, item=item, count=count, keys=keys) as rows:
        people, most = split(rows, rounds, items_per_user, seed)
        forecast = plan_histogram(
            rounds=rounds,
            users_per_round=int(people.users_in_round.max()),
            items_per_user=most,
            keys=people.keys,
            seed=people.seed,
            error=error,
            method=own,
            failure_probability=failure_probability,
        )
        rehearse(
            forecast.plan,
            people,
            out=out,
            failed=failed_rounds,
            truth=rows.item_totals if check else None,
            as_json=as_json,
            facts={"source": f"{data.name}, column {item}"},
            secure=chosen,
            log_json=log_json,
        )
