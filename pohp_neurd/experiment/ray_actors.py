"""Workers of live play on a Ray cluster: one that runs already, or one that is started here."""

import contextlib
from collections.abc import Iterator
from typing import Any

from pohp_neurd.experiment import actors, executor, game_config
from pohp_neurd.experiment import run as run_loop


@contextlib.contextmanager
def crew(config: game_config.Config, chosen: game_config.Actors) -> Iterator[actors.Crew]:
    """Actors as `chosen`."""
    executor.check_ray(chosen.address)
    with executor.connected(chosen.address, chosen.workers):
        import ray

        player = ray.remote(num_cpus=1, max_restarts=0)(actors.Player)
        count = chosen.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        first = _Actor(player.remote(config))
        first.check()
        hired = iter([first])
        hire = lambda: next(hired, None) or _Actor(player.remote(config))  # noqa: E731
        with contextlib.closing(actors.Crew(hire, count, _ready, ray.put)) as made:
            yield made


class _Actor:
    """An actor on a Ray cluster."""

    def __init__(self, handle: Any) -> None:
        self.handle: Any = handle
        self.answered: Any = None

    def check(self) -> None:
        """Raises a ValueError where the cluster has not what this machine has."""
        import ray

        try:
            theirs = ray.get(self.handle.versions.remote())
        except ray.exceptions.RayError as error:
            told = str(error).strip().splitlines()[-1]
            raise ValueError(f"the Ray cluster cannot play: {told}") from None
        for name, version in actors.versions().items():
            if theirs[name] != version:
                raise ValueError(
                    f"the Ray cluster has {name} {theirs[name]}, but this machine {version}: a run needs the "
                    "same everywhere."
                )

    def take(self, job: actors.Job, order: Any) -> None:
        self.answered = self.handle.play.remote(job, order)

    def answer(self) -> Any:
        import ray

        try:
            return ray.get(self.answered)
        except (ray.exceptions.RayActorError, ray.exceptions.OutOfMemoryError) as error:
            raise actors.Died(f"with {str(error).strip().partition(chr(10))[0]}") from None
        except ray.exceptions.RayTaskError as error:
            if isinstance(error.cause, MemoryError):
                raise actors.Died("for want of memory") from None
            raise run_loop.Lost(f"A worker cannot play: {error.cause!r}") from None
        except (ray.exceptions.RayError, ConnectionError) as error:
            raise _gone(error) from None

    def end(self) -> None:
        import ray

        with contextlib.suppress(Exception):  # a cluster that has gone needs no goodbye
            ray.kill(self.handle)


def _ready(workers: list[_Actor], patient: bool) -> list[_Actor]:
    import ray

    del patient  # nothing is played here
    by_answer: dict[Any, _Actor] = {worker.answered: worker for worker in workers}
    try:
        ready, _ = ray.wait(list(by_answer), num_returns=1, timeout=executor.PATIENCE)
        if not ready and not any(node["Alive"] for node in ray.nodes()):
            raise ConnectionError("no node is alive")
    except (ray.exceptions.RayError, ConnectionError) as error:
        raise _gone(error) from None
    return [by_answer[answer] for answer in ready]


def _gone(error: Exception) -> run_loop.Lost:
    told = str(error).strip().partition("\n")[0]
    return run_loop.Lost(f"The Ray cluster has gone ({told}).")
