"""Training that has left the finite numbers: the way in which a run fails by its own settings."""


class Diverged(Exception):
    """`what` is not finite any more, `after` some moment; `kept` is the newest checkpoint before, if any."""

    def __init__(self, what: str, *, after: str, kept: str | None, remedy: str) -> None:
        good = "there is no checkpoint yet" if kept is None else f"the checkpoint of {kept} is good"
        event = f"Training diverged: {what} was not finite after {after}"
        self.without_checkpoint = f"{event}. Try a smaller {remedy}."
        """What is said where checkpoints are not kept."""
        super().__init__(f"{event}; {good}. Try a smaller {remedy}.")
