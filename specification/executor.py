"""The parameter that chooses where tasks run; one declaration for commands, estimators and experiments."""

from quercus.specification.parameter import Parameter

EXECUTOR = Parameter(
    "executor",
    str,
    "local",
    "Executor of tasks: local, processes:N or dask://host:port; the results are the same",
    1,
)

MAX_PROCESSES = 1024
"""Most processes that ``processes:N`` may start."""
