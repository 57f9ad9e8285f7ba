"""Settings over the machines of a Ray cluster; their files come back through Ray: no disk need be shared."""

import os
import pathlib
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pohp_neurd import files
from pohp_neurd.experiment import grid, jobs, lanes, workers


def check_available() -> None:
    """Raises a ValueError that says how to install Ray if it is missing."""
    try:
        import ray  # noqa: F401
    except ImportError:
        raise ValueError(
            "executor=ray needs Ray, which is not installed: pip install 'pohp_neurd[ray]'."
        ) from None


def run(
    settings: Sequence[grid.Setting], runs: pathlib.Path, *, address: str | None, num_workers: int | None
) -> Iterator[tuple[grid.Setting, jobs.Outcome]]:
    """As `workers.run`, on the cluster at `address`, or on one of `num_workers` here if there is none.

    A setting whose worker or machine dies is begun again elsewhere.
    """
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    chosen = {"address": address} if address else {"num_cpus": num_workers, "include_dashboard": False}
    try:
        ray.init(**chosen, log_to_driver=False, configure_logging=False)
    except ConnectionError as error:
        raise ValueError(
            f"the Ray cluster at {address} does not answer ({error}): if it has tokens, set RAY_AUTH_MODE "
            "and RAY_AUTH_TOKEN as it does."
        ) from None
    try:
        attempt = ray.remote(num_cpus=1, max_retries=workers.TRIES - 1)(_attempt)
        pending = {attempt.remote(setting.script, dict(setting.flags)): setting for setting in settings}
        while pending:
            (ready,), _ = ray.wait(list(pending), num_returns=1)
            setting = pending.pop(ready)
            try:
                outcome, content = ray.get(ready)
                _write(runs / setting.id, content)
            except ray.exceptions.RayError as error:
                told = str(error).strip().partition("\n")[0]
                if not isinstance(error, ray.exceptions.RayTaskError):
                    told = f"Its worker died {workers.TRIES} times: {told}"
                outcome = jobs.Outcome(None, told, 0.0)
            except OSError as error:
                told = f"{error.strerror}: {error.filename or runs / setting.id}."
                outcome = jobs.Outcome(None, told, outcome.seconds)
            yield setting, outcome
    finally:
        ray.shutdown()


def check_reachable(address: str) -> None:
    """Raises a ValueError if nothing listens there: Ray itself would try for minutes."""
    host, found, port = address.removeprefix("ray://").rpartition(":")
    if not (found and port.isdecimal()):
        return  # a name, such as auto, that Ray resolves at once
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except OSError as error:
        raise ValueError(f"there is no Ray cluster at {address}: {error.strerror or error}.") from None


def _attempt(script: str, flags: Mapping[str, Any]) -> tuple[jobs.Outcome, dict[str, bytes]]:
    """Runs a setting where Ray has put it; the outcome, and the files of its folder but for checkpoints."""
    lanes.use_one_core()
    with tempfile.TemporaryDirectory() as place:
        path = pathlib.Path(place) / "run"
        outcome = jobs.attempt(script, flags, path)
        found = {
            file.relative_to(path).as_posix(): file.read_bytes()
            for file in sorted(path.rglob("*"))
            if file.is_file() and "checkpoints" not in file.relative_to(path).parts
        }
    return outcome, found


def _write(path: pathlib.Path, content: Mapping[str, bytes]) -> None:
    for name, data in content.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        with files.atomic(path / name, binary=True) as file:
            file.write(data)
