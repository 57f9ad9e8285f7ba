"""What an option may be and what it is by default, where more than one module has the option.

Nothing here loads JAX: the configs that scripts read flags into take these too.
"""

LEARNERS = ("spg", "neurd", "neurd_cix")

OPTIMIZERS = ("adam", "adam_without_momentum", "sgd")

COMMON_MODES = ("paper", "dropped")
"""Of the part of a direction that is common to all actions: kept, as in the paper, or dropped."""

COMMON_MODE = "dropped"
"""In a table both give one policy. In a network what is kept leaks through shared weights, and the findings
turn on it."""
