"""Errors of the store, in words that a user can act on.

Bad arguments raise `quercus.belief.errors.InvalidInput`. No exception of SQLAlchemy or of a driver leaves the
package: `dialect` turns each into one of these.
"""


class StorageError(Exception):
    """Root of everything this package raises, bad arguments apart."""


class NotFound(StorageError):  # noqa: N818 - a name that says what is wrong
    """A model, query, instance or tree version that does not exist.

    Attributes
    ----------
    resource : str
        Its kind: "model", "query", "instance", "tree version".
    name : str
        The requested object.
    detail : str
        What more there is to say, e.g. that it existed once.
    """

    def __init__(self, resource: str, name: str, detail: str = "") -> None:
        super().__init__(resource, name, detail)
        self.resource = resource
        self.name = name
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.resource} {self.name} does not exist" + (f" {self.detail}" if self.detail else "")


class AlreadyExists(StorageError):  # noqa: N818 - a name that says what is wrong
    """A name or id that other content already has.

    Attributes
    ----------
    resource : str
        Its kind: "model" or "instance".
    name : str
        The name or id.
    row : int or None
        Position of the row with this id in the batch that was refused because of it.
    """

    def __init__(self, resource: str, name: str, detail: str = "", row: int | None = None) -> None:
        super().__init__(resource, name, detail, row)
        self.resource = resource
        self.name = name
        self.detail = detail
        self.row = row

    def __str__(self) -> str:
        return f"{self.resource} {self.name} already exists" + (f" {self.detail}" if self.detail else "")


class FailedPrecondition(StorageError):  # noqa: N818 - a name that says what is wrong
    """A valid request at the wrong moment; `reason` names the obstacle.

    Attributes
    ----------
    reason : str
        Ready for the user.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ModelReplaced(FailedPrecondition):
    """The caller knows an earlier model of the same name: it has to look again."""


class Fenced(StorageError):  # noqa: N818 - a name that says what is wrong
    """A model that another grower has taken: nothing was stored.

    Attributes
    ----------
    model : str
        Its name.
    """

    def __init__(self, model: str) -> None:
        super().__init__(f"model {model} is grown by another grower now")
        self.model = model


class BeyondLog(FailedPrecondition):
    """A tree was asked for that knows more of a log than there is: waiting for it is in vain.

    Attributes
    ----------
    field : str
        Of the request.
    """

    def __init__(self, field: str, sequence: int, model: str, committed: int) -> None:
        super().__init__(
            f"{field}: is {sequence}, but the log of model {model} ends at {committed}: "
            "the number is of another model, or of one of this name that was deleted"
        )
        self.field = field

    @classmethod
    def check(cls, sequence: int, model: str, committed: int) -> None:
        """Raise if `min_sequence` lies beyond the committed events."""
        if sequence > committed:
            raise cls("min_sequence", sequence, model, committed)


class Stale(StorageError):  # noqa: N818 - a name that says what is wrong
    """The caller's copy of the vocabulary is old: read it again and retry. Nothing was stored."""


class ConflictingRows(Stale):
    """Some rows of a batch with new nominal values are refused. They teach no values: leave them out, and retry.

    Attributes
    ----------
    refused : tuple of AlreadyExists
        The refusals, each with its row.
    """

    def __init__(self, refused: tuple[AlreadyExists, ...]) -> None:
        super().__init__(refused)
        self.refused = refused


class StoreError(StorageError):
    """The store itself cannot do it: disk, file, schema, lock.

    Attributes
    ----------
    reason : str
        Ready for the user.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UnknownSchema(StoreError):  # noqa: N818 - a name that says what is wrong
    """The store was written by another version of Quercus, whose schema no migration here starts from.

    Attributes
    ----------
    found, known : str
        Schema revision of the store, and the newest one this version knows.
    """

    def __init__(self, store: str, found: str, known: str) -> None:
        super().__init__(
            f"{store} has schema revision {found}, which this version of quercus does not know (it knows revisions "
            f"up to {known}): use the version that wrote it, or bring each model over by its quercus export and the "
            "quercus import of this one"
        )
        self.store = store
        self.found = found
        self.known = known

    def __reduce__(self) -> tuple[type["UnknownSchema"], tuple[str, str, str]]:
        return type(self), (self.store, self.found, self.known)


class ReadOnlyStore(StoreError):  # noqa: N818 - a name that says what is wrong
    """The file or its folder may not be written."""


class ReadOnlyUntilRestart(ReadOnlyStore):
    """The store was opened read-only, or is damaged: trying again before a restart is useless."""


class NoSpace(StoreError):  # noqa: N818 - a name that says what is wrong
    """No space is left on the disk of the store; reading still works, and writing works again once there is space."""


class StoreBusy(StoreError):  # noqa: N818 - a name that says what is wrong
    """Another process held the write lock longer than the busy timeout; the call may be tried again."""


class InconsistentHistory(StoreError):  # noqa: N818 - a name that says what is wrong
    """A store whose file is whole, but whose history of queries contains impossible steps."""


class CorruptStore(StoreError):  # noqa: N818 - a name that says what is wrong
    """The file is not a database, not a store of Quercus, or damaged."""
