"""Where the settings of a sweep are run; what comes out does not depend on it."""

import functools

from pohp_neurd import checks
from pohp_neurd.experiment import lanes, ray_cluster, sweep, workers

EXECUTORS = ("local", "ray")


def build(name: str = "local", *, cores: int | None = None, address: str | None = None) -> sweep.Execute:
    """The executor of that name: the cores of this machine, or a Ray cluster here or at `address`."""
    checks.one_of("executor", name, EXECUTORS)
    if name == "ray":
        ray_cluster.check_available()
        if address and cores:
            raise ValueError("cores are of a Ray cluster that is started here: address excludes them.")
        if cores is not None and cores < 1:
            raise ValueError(f"cores must be at least 1, but is {cores}.")
        if address:
            ray_cluster.check_reachable(address)
        return functools.partial(ray_cluster.run, address=address, num_workers=cores)
    if address:
        raise ValueError("address is of a Ray cluster: it needs executor=ray.")
    return functools.partial(workers.run, num_workers=lanes.cores(cores))
