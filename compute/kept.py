"""Objects that stay on a worker of a Dask cluster between calls.

This module is light on purpose: a scheduler imports the modules that tasks name. The parts of an object go to its
worker as bytes.
"""

import pickle

from quercus.compute.errors import WorkerLostError


class KeptObject:
    """An object, and the number of its calls.

    Calls change the object, but Dask may create it again without them. So calls are numbered: a recreated object
    refuses the next call.

    Parameters
    ----------
    made_of
        The pickled pair of a class and its arguments.
    """

    def __init__(self, made_of: bytes) -> None:
        kind, arguments = pickle.loads(made_of)  # noqa: S301 - of the client, over TLS
        self.object = kind(*arguments)
        self.calls = 0


def call_kept(kept: KeptObject, number: int, method: str, arguments: bytes) -> bytes:
    """Call a method and return its pickled result.

    Raises
    ------
    WorkerLostError
        When this is not the object that earlier calls reached.
    """
    if kept.calls != number:
        raise WorkerLostError(f"an object was created again before its call {number}")
    kept.calls += 1
    return pickle.dumps(getattr(kept.object, method)(*pickle.loads(arguments)))  # noqa: S301 - as above
