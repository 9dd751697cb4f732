"""`linsketch run`: heavy hitters of a file of who-has-what."""

from linsketch.cli.common import (
    AsJson,
    Budget,
    Check,
    ChosenLayout,
    ChosenMethod,
    ChosenSampling,
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
    SlotsFrom,
    Threshold,
    User,
    given,
)


def run(
    data: DataFile,
    user: User,
    item: Item,
    rounds: Rounds,
    threshold: Threshold = None,
    budget: Budget = None,
    items_per_user: ItemsPerUser = None,
    count: Count = None,
    keys: Keys = None,
    method: ChosenMethod = None,
    sampling: ChosenSampling = None,
    layout: ChosenLayout = None,
    failure_probability: FailureProbability = 0.05,
    slots_from: SlotsFrom = None,
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
    """Find the heavy hitters of a file in a simulated campaign, round by round.

    Everything but the network is real: users sample and encode, the sums are peeled. The numbers
    of the population (users, items a user) are read off the file; a real campaign plans them.
    """
    from linsketch.cli.rehearse import rehearse, split
    from linsketch.cli.rows import opened, refuse_cluster
    from linsketch.cli.secure import Secure
    from linsketch.errors import PlanningError
    from linsketch.plan import method_named
    from linsketch.planner import plan_campaign

    chosen = Secure(secure, dropout)
    options = given(sampling=sampling, layout=layout, slots_from=slots_from)
    own = method_named(method or "slots").chosen(**options)  # before a long file is read
    refuse_cluster(cluster, secure)
    with opened(data, cluster, user=user, item=item, count=count, keys=keys) as rows:
        people, most = split(rows, rounds, items_per_user, seed)
        if threshold is not None and threshold > people.occurrences:
            raise PlanningError(
                f"No item can reach {threshold:,}: there are {people.occurrences:,} in all."
            )
        forecast = plan_campaign(
            rounds=rounds,
            users_per_round=int(people.users_in_round.max()),
            items_per_user=most,
            mean_items_per_user=people.occurrences / int(people.users_in_round.sum()),
            keys=people.keys,
            seed=people.seed,
            threshold=threshold,
            budget=budget,
            method=own,
            failure_probability=failure_probability,
        )
        if forecast.plan.cutoff > people.occurrences:
            raise PlanningError(
                f"With {forecast.plan.budget:,} bytes the threshold would be "
                f"{forecast.plan.cutoff:,}, and there are {people.occurrences:,} items in all. "
                "Raise the budget."
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
