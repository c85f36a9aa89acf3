"""Errors of the store; their messages are for the user.

Invalid arguments raise `quercus.belief.errors.InvalidInput`. Exceptions of SQLAlchemy and of drivers are translated
into these errors by the dialects.
"""


class StorageError(Exception):
    """Base of all errors of this package, except for `InvalidInput`."""


class NotFound(StorageError):  # noqa: N818 - a name that says what is wrong
    """A model, query, instance or tree version that does not exist.

    Attributes
    ----------
    resource : str
        Its kind: "model", "query", "instance", "tree version".
    name : str
        The requested object.
    detail : str
        Further text, for example that the object existed once.
    """

    def __init__(self, resource: str, name: str, detail: str = "") -> None:
        super().__init__(resource, name, detail)
        self.resource = resource
        self.name = name
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.resource} {self.name} does not exist" + (f" {self.detail}" if self.detail else "")


class AlreadyExists(StorageError):  # noqa: N818 - a name that says what is wrong
    """A name or id that is taken.

    Attributes
    ----------
    resource : str
        Its kind: "model" or "instance".
    name : str
        The name or id.
    row : int or None
        Position, in the batch, of the row with this id.
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
    """A valid request that the present state does not allow.

    Attributes
    ----------
    reason : str
        Worded for the user.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class ModelReplaced(FailedPrecondition):
    """The caller knows an earlier state of the model, or an earlier model of its name: it must read the model again."""


class Fenced(StorageError):  # noqa: N818 - a name that says what is wrong
    """Another grower has taken the model; nothing was stored.

    Attributes
    ----------
    model : str
        Its name.
    """

    def __init__(self, model: str) -> None:
        super().__init__(f"model {model} is grown by another grower now")
        self.model = model


class BeyondLog(FailedPrecondition):
    """A request names an event beyond the end of the log, so that waiting for its tree is pointless.

    Attributes
    ----------
    field : str
        Field of the request.
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
    """The caller's copy of the vocabulary is outdated; nothing was stored. Read the vocabulary again, and retry."""


class ConflictingRows(Stale):
    """Some rows of a batch with new nominal values are refused. Retry without them, since they must add no values.

    Attributes
    ----------
    refused : tuple of AlreadyExists
        The refusals, each with its row.
    """

    def __init__(self, refused: tuple[AlreadyExists, ...]) -> None:
        super().__init__(refused)
        self.refused = refused


class StoreError(StorageError):
    """A fault of the store itself: of its disk, file, schema or lock.

    Attributes
    ----------
    reason : str
        Worded for the user.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UnknownSchema(StoreError):  # noqa: N818 - a name that says what is wrong
    """The store has the schema of another version of Quercus, from which no migration of this version starts.

    Attributes
    ----------
    found, known : str
        Schema revision of the store, and the newest that this version knows.
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
    """The store was opened read-only, or is damaged, so writes fail until the server is restarted."""


class NoSpace(StoreError):  # noqa: N818 - a name that says what is wrong
    """The disk of the store is full. Reading works, and writing works again once there is space."""


class StoreBusy(StoreError):  # noqa: N818 - a name that says what is wrong
    """Another process held a lock for longer than the busy timeout; the call may be tried again."""


class InconsistentHistory(StoreError):  # noqa: N818 - a name that says what is wrong
    """The store is not damaged, but the history of its queries contains impossible steps."""


class CorruptStore(StoreError):  # noqa: N818 - a name that says what is wrong
    """The file is not a database, not a store of Quercus, or damaged."""
