"""TensorBoard event files, for those who have TensorBoard's writer installed."""

import contextlib
import importlib.util
import pathlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple


class Events(NamedTuple):
    """Where figures go; nowhere without a writer."""

    writer: Any

    def write(self, step: int, figures: Mapping[str, float]) -> None:
        """Adds the figures of one step."""
        if self.writer is not None:
            for name, value in figures.items():
                self.writer.add_scalar(name, value, step)


def check_available() -> None:
    """Raises a ValueError that says how to get the writer, if it is missing."""
    if importlib.util.find_spec("tensorboardX") is None:
        raise ValueError(
            "event files need tensorboardX: install it with pip install 'pohp_neurd[tensorboard]'."
        )


@contextlib.contextmanager
def opened(folder: pathlib.Path | None) -> Iterator[Events]:
    """Event files in `folder` while the block lasts; none without a folder."""
    if folder is None:
        yield Events(None)
        return
    import tensorboardX

    writer = tensorboardX.SummaryWriter(str(folder))
    try:
        yield Events(writer)
    finally:
        writer.close()
