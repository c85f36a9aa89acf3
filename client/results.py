# Generated from proto/quercus/v1 by `make proto`; edit the .proto files, and client/additions.py.
"""The results of the client's calls: frozen values of plain Python types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal, Self

from quercus.client.additions import (
    CallerAdditions,
    LogEventAdditions,
    ModelAdditions,
    QueryAdditions,
    ReasonAdditions,
    RecentAccuracyAdditions,
    RivalAdditions,
    StatusAdditions,
    TreeAdditions,
    TreeUpdateAdditions,
)
from quercus.client.display_messages import display_of
from quercus.client.plugins import parameter_of
from quercus.client.reading import (
    Words,
    fact_of,
    label_of,
    row_values,
    seconds_of,
    to_datetime,
)
from quercus.client.resources import id_of, model_of, number_of
from quercus.client.specification_messages import specification_of
from quercus.client.specifications import Specification
from quercus.client.tree_nodes import TreeNode, nodes_of
from quercus.client.values import Value
from quercus.specification.display import Display
from quercus.specification.parameter import Parameter
from quercus.specification.reasons import Fact
from quercus.specification.written_labels import Label

if TYPE_CHECKING:
    from quercus.v1 import admin_pb2, classify_pb2, instance_pb2, model_pb2, query_pb2, tree_pb2, values_pb2


STATE: Final = Words({1: "off", 2: "running", 3: "restarting", 4: "silent"})


KIND: Final = Words(
    {
        1: "instance",
        2: "answer",
        3: "refusal",
        4: "specification",
        5: "correction",
        6: "opinion",
        7: "statement",
        8: "adjudication",
    }
)


QUERY_STATE: Final = Words({1: "open", 2: "leased", 3: "answered", 4: "refused", 5: "withdrawn"})


IDLE: Final = Words(
    {
        1: "nothing_to_ask",
        2: "all_leased",
        3: "budget_spent",
        4: "growing",
        5: "not_for_you",
        6: "share_spent",
        7: "hour_spent",
        8: "hands_full",
        9: "not_assigned",
    },
    unknown="nothing_to_ask",
)


QUERY_STEP_KIND: Final = Words(
    {
        1: "opened",
        2: "leased",
        3: "released",
        4: "expired",
        5: "skipped",
        6: "postponed",
        7: "answered",
        8: "refused",
        9: "withdrawn",
        10: "corrected",
        11: "undone",
        12: "evicted",
        13: "settled",
    }
)


AnswerKind = Literal[
    "answered", "refused", "corrected", "undone", "stated", "retracted", "adjudicated", "marked"
]
ANSWER_KIND: Final = Words(
    {
        1: "answered",
        2: "refused",
        3: "corrected",
        4: "undone",
        5: "stated",
        6: "retracted",
        7: "adjudicated",
        8: "marked",
    }
)


AnswerState = Literal["counts", "pending", "replaced", "undone", "empty", "gold"]
ANSWER_STATE: Final = Words({1: "counts", 2: "pending", 3: "replaced", 4: "undone", 5: "empty", 6: "gold"})


ReliabilitySource = Literal["declared", "estimated"]
RELIABILITY_SOURCE: Final = Words({1: "declared", 2: "estimated"})


CorrectionPermission = Literal["own", "anyone", "nobody"]
CORRECTION_PERMISSION: Final = Words({1: "own", 2: "anyone", 3: "nobody"})


CombinationRule = Literal["dempster", "cautious"]
COMBINATION_RULE: Final = Words({1: "dempster", 2: "cautious"})


@dataclass(frozen=True)
class GrowerMember:
    """One of the growers that share a store.

    Attributes
    ----------
    place
        Description of its process and host.
    models
        Number of models that it grows.
    own
        True for the grower of this server.
    """

    place: str
    models: int = 0
    own: bool = False

    @classmethod
    def from_message(cls, message: admin_pb2.GrowerMember) -> Self:
        """Return the result of a message."""
        return cls(message.place, message.models, message.own)


@dataclass(frozen=True)
class Status(StatusAdditions):
    """The status of a server.

    Attributes
    ----------
    version
        Version of the package.
    uptime_s
        Time since it started.
    store_revision
        Schema revision of the store.
    store_bytes
        Size of the store's files; 0 if the database does not report it.
    store_trouble
        The reason why the store cannot be used now; empty if it can.
    grower
        ``off``: this server grows no trees; ``running``; ``restarting``: it ended, and starts again soon;
        ``silent``: it makes no progress.
    grower_pid
        Its process; ``None`` if there is none.
    grower_at
        While it is silent: the model of its last report.
    grower_restarts
        Number of restarts.
    learning
        Models that are being learned again from all evidence, or grown in processes of their own, at most a second
        ago.
    waiting
        Models that wait for a process, the next one first: the first ten.
    waiting_count
        Number of all models that wait for a process.
    lag_s
        Longest time that an event of any model has waited for a tree.
    models
        Number of models.
    calls
        Calls in progress, including streams.
    writes_waiting
        Writes that wait for the writer thread.
    memory_bytes
        Resident memory of the server's processes, without the grower.
    tls
        Whether connections are encrypted.
    tokens
        Whether calls need a token.
    log_level
        ``debug``, ``info``, ``warning`` or ``error``.
    growers
        The live growers that share the store, if several may.
    restricted
        True if the caller's token is for some models: only those are counted and named, and numbers of the whole
        server (store_bytes, calls, writes_waiting, memory_bytes, growers) are left out.
    damaged
        Models that cannot be served because their stored data are damaged, at most 100, each with what is damaged,
        as ``quercus check`` says it. Lists leave them out.
    stopped
        Models that are grown no further, at most 100, each with the reason: ``Model.growth_stopped``.
    """

    version: str
    uptime_s: float = 0.0
    store_revision: str = ""
    store_bytes: int = 0
    store_trouble: str = ""
    grower: str = "unspecified"
    grower_pid: int | None = None
    grower_at: str = ""
    grower_restarts: int = 0
    learning: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    waiting_count: int = 0
    lag_s: float = 0.0
    models: int = 0
    calls: int = 0
    writes_waiting: int = 0
    memory_bytes: int = 0
    tls: bool = False
    tokens: bool = False
    log_level: str = ""
    growers: tuple[GrowerMember, ...] = ()
    restricted: bool = False
    damaged: Mapping[str, str] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def from_message(cls, message: admin_pb2.GetStatusResponse) -> Self:
        """Return the result of a message."""
        return cls(
            message.version,
            seconds_of(message.uptime),
            message.store_revision,
            message.store_bytes,
            message.store_trouble,
            STATE[message.grower.state],
            message.grower.pid if message.grower.HasField("pid") else None,
            message.grower.at,
            message.grower.restarts,
            tuple(message.grower.learning),
            tuple(message.grower.waiting),
            message.grower.waiting_count,
            seconds_of(message.grower.lag),
            message.models,
            message.calls,
            message.writes_waiting,
            message.memory_bytes,
            message.tls,
            message.tokens,
            message.log_level,
            tuple(GrowerMember.from_message(each) for each in message.growers),
            message.restricted,
            dict(sorted(message.damaged.items())),
            dict(sorted(message.stopped.items())),
        )


@dataclass(frozen=True)
class Caller(CallerAdditions):
    """The caller of a server, and its permissions.

    Attributes
    ----------
    name
        The name of the token, under which its labels are stored; empty if the server needs no tokens.
    roles
        In alphabetical order; all roles if the server needs no tokens.
    models
        Names of the models that it may use, in alphabetical order; ``None`` if it may use all.
    needs_token
        Whether calls need a token.
    methods
        The RPCs that the caller may call, as in ``QueryService/LeaseQueries``, in alphabetical order.
    """

    name: str
    roles: tuple[str, ...] = ()
    models: tuple[str, ...] | None = None
    needs_token: bool = False
    methods: frozenset[str] = frozenset()

    @classmethod
    def from_message(cls, message: admin_pb2.GetCallerResponse) -> Self:
        """Return the result of a message."""
        return cls(
            message.name,
            tuple(message.roles),
            tuple(message.models) if not message.all_models else None,
            message.needs_token,
            frozenset(message.methods),
        )


@dataclass(frozen=True)
class Token:
    """A token, without its secret.

    Attributes
    ----------
    id
        Its public part, which follows ``quercus_`` in the token.
    caller
        The name of the caller, under which its labels are stored.
    roles
        In alphabetical order.
    models
        Names of the models that it is for, in alphabetical order; ``None`` if it is for all.
    created_at
        When it was created.
    expires_at
        When it expires; ``None``: never.
    revoked_at
        When it was revoked; ``None``: it was not.
    live
        Whether it is valid now.
    """

    id: str
    caller: str
    roles: tuple[str, ...]
    models: tuple[str, ...] | None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    live: bool = False

    @classmethod
    def from_message(cls, message: admin_pb2.Token) -> Self:
        """Return the result of a message."""
        return cls(
            id_of(message.name),
            message.caller,
            tuple(message.roles),
            tuple(message.models) if not message.all_models else None,
            to_datetime(message.create_time),
            to_datetime(message.expire_time) if message.HasField("expire_time") else None,
            to_datetime(message.revoke_time) if message.HasField("revoke_time") else None,
            message.live,
        )


@dataclass(frozen=True)
class NewToken:
    """A new token, with its secret.

    Attributes
    ----------
    id
        Its public part, which follows ``quercus_`` in the token.
    caller
        The name of the caller, under which its labels are stored.
    roles
        In alphabetical order.
    models
        Names of the models that it is for, in alphabetical order; ``None`` if it is for all.
    created_at
        When it was created.
    expires_at
        When it expires; ``None``: never.
    revoked_at
        When it was revoked; ``None``: it was not.
    live
        Whether it is valid now.
    secret
        The token as its holder shows it. It is not stored, and cannot be read again.
    """

    id: str
    caller: str
    roles: tuple[str, ...]
    models: tuple[str, ...] | None
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    live: bool = False
    secret: str = field(default="", repr=False)

    @classmethod
    def from_message(cls, message: admin_pb2.CreateTokenResponse) -> Self:
        """Return the result of a message."""
        return cls(
            id_of(message.token.name),
            message.token.caller,
            tuple(message.token.roles),
            tuple(message.token.models) if not message.token.all_models else None,
            to_datetime(message.token.create_time),
            to_datetime(message.token.expire_time) if message.token.HasField("expire_time") else None,
            to_datetime(message.token.revoke_time) if message.token.HasField("revoke_time") else None,
            message.token.live,
            message.secret,
        )


@dataclass(frozen=True)
class AuditEntry:
    """A call that administered the server or a model, or tried to.

    Attributes
    ----------
    at
        When it ended.
    who
        The caller.
    action
        The call.
    target
        The model or the token that it was about; ``server`` for all others, ``unread`` if its message was not read.
    outcome
        Its status.
    """

    at: datetime
    who: str = ""
    action: str = ""
    target: str = ""
    outcome: str = ""

    @classmethod
    def from_message(cls, message: admin_pb2.AuditEntry) -> Self:
        """Return the result of a message."""
        return cls(to_datetime(message.time), message.who, message.action, message.target, message.outcome)


@dataclass(frozen=True)
class ConfusionCell:
    """A cell of a confusion matrix.

    Attributes
    ----------
    said
        Position of the class that was said or predicted, among the classes of the model.
    holds
        Position of the right class.
    rows
        Number of rows.
    """

    said: int
    holds: int = 0
    rows: int = 0

    @classmethod
    def from_message(cls, message: values_pb2.ConfusionCell) -> Self:
        """Return the result of a message."""
        return cls(message.said, message.holds, message.rows)


@dataclass(frozen=True)
class PathStep:
    """A branch on the way from the root to a leaf.

    Attributes
    ----------
    attribute
        Name of the attribute.
    value
        Name of the branch.
    """

    attribute: str
    value: str = ""

    @classmethod
    def from_message(cls, message: classify_pb2.PathStep) -> Self:
        """Return the result of a message."""
        return cls(message.attribute, message.value)


@dataclass(frozen=True)
class StatementReport:
    """The outcome of statements.

    Attributes
    ----------
    committed_sequence
        Newest committed sequence number of the model after these statements.
    stored
        Number of new statements.
    known
        Statements that were stored already, with the same labeller and label.
    model_uid
        Uid of the model that stores them.
    """

    committed_sequence: int
    stored: int = 0
    known: int = 0
    model_uid: str = ""

    @classmethod
    def from_message(cls, message: instance_pb2.StateEvidenceResponse) -> Self:
        """Return the result of a message."""
        return cls(
            message.committed_sequence, message.statements_stored, message.statements_known, message.model_uid
        )


@dataclass(frozen=True)
class Evidence:
    """One statement about an instance's label: it says what is known of the row.

    How an answer came about, such as what the labeller's screen showed, is in ``Answer`` only, which is for
    reviewing answers.

    Attributes
    ----------
    sequence
        Number of its event in the log.
    author
        ``source``, or the labeller's name.
    label
        In the form that an answer takes; ``None`` if there is none.
    refused
        The labeller could not tell the class: there is no label.
    reliability
        Probability that the author is right.
    created_at
        When it was stored.
    kind
        That of its event in the log. ``instance``: the label that was pushed with the row; ``answer``; ``refusal``;
        ``opinion``: one of several answers, which count through the answer that follows them; ``statement``: a
        label without a query, or its withdrawal if there is no label, which counts through the correction that
        follows it; ``adjudication``: a label that overrules those of all labellers, in the same way;
        ``correction``: replaces all earlier answers, and without a label takes them back.
    query
        Number of the query that it answers; ``None`` for a label that is not an answer.
    comment
        The labeller's comment.
    took_s
        The labeller's time; ``None`` if unknown.
    """

    sequence: int
    author: str
    label: Label
    refused: bool
    reliability: float
    created_at: datetime
    kind: str = "answer"
    query: int | None = None
    comment: str = ""
    took_s: float | None = None

    @classmethod
    def from_message(cls, message: instance_pb2.Evidence, classes: Sequence[str]) -> Self:
        """Return the result of a message."""
        return cls(
            message.sequence,
            message.author,
            label_of(message.label, classes) if message.HasField("label") else None,
            message.refused,
            message.reliability,
            to_datetime(message.create_time),
            KIND[message.kind],
            number_of(message.query) if message.HasField("query") else None,
            message.comment,
            seconds_of(message.took) if message.HasField("took") else None,
        )


@dataclass(frozen=True)
class Guess:
    """The guess of the newest tree about a row.

    Attributes
    ----------
    class_name
        The likeliest class.
    doubt
        1 minus the probability of that class: 0 where the model is sure.
    """

    class_name: str
    doubt: float = 0.0

    @classmethod
    def from_message(cls, message: instance_pb2.Guess) -> Self:
        """Return the result of a message."""
        return cls(message.class_name, message.doubt)


@dataclass(frozen=True)
class Instance:
    """A row with the history of its label.

    Attributes
    ----------
    id
        Its id.
    values
        Every attribute of the model, without a value where it is missing: a row to classify or to push.
    history
        All statements, oldest first.
    contour
        Plausibility of each class by the combined evidence.
    conflict
        True if an answer contradicted the pushed label totally; the answer counts.
    display
        Items pushed beside it, if the call asks for one row.
    guess
        The guess of the newest tree, if the call asks for that.
    """

    id: str
    values: Mapping[str, Value] = field(default_factory=dict)
    history: tuple[Evidence, ...] = ()
    contour: tuple[float, ...] = ()
    conflict: bool = False
    display: Display = ()
    guess: Guess | None = None

    @classmethod
    def from_message(cls, message: instance_pb2.Instance, classes: Sequence[str]) -> Self:
        """Return the result of a message."""
        return cls(
            id_of(message.name),
            row_values(message.values),
            tuple(Evidence.from_message(each, classes) for each in message.history),
            tuple(message.contour.plausibilities),
            message.conflict,
            display_of(message.display),
            Guess.from_message(message.guess) if message.HasField("guess") else None,
        )


@dataclass(frozen=True)
class LogEvent(LogEventAdditions):
    """An event of the log of a model.

    Attributes
    ----------
    sequence
        Number of the event in the log, from which a later watch continues.
    model
        Name of the model.
    model_uid
        Uid of the model: no other model ever has it.
    kind
        ``instance``: a row was pushed, ``answer``, ``refusal``, ``specification``: that of the model changed,
        ``correction``, ``opinion``, ``statement`` or ``adjudication``.
    instance
        Id of the row; empty for ``specification``.
    evidence
        The labeller, the label and the time.
    conflict
        True if an answer contradicted the earlier evidence totally, and replaced it.
    values
        Values of the row by attribute; ``None`` if they were not requested.
    """

    sequence: int
    model: str
    model_uid: str
    kind: str
    instance: str
    evidence: Evidence
    conflict: bool = False
    values: Mapping[str, Value] | None = None

    @classmethod
    def from_message(
        cls,
        message: instance_pb2.LogEvent,
        classes: Sequence[str],
        *,
        sequence: int,
        model: str,
        model_uid: str,
    ) -> Self:
        """Return the result of a message."""
        return cls(
            sequence,
            model,
            model_uid,
            KIND[message.kind],
            message.instance_id,
            Evidence.from_message(message.evidence, classes),
            message.conflict,
            row_values(message.values) if message.HasField("values") else None,
        )


@dataclass(frozen=True)
class Example:
    """A row that shows what a class is.

    Attributes
    ----------
    class_name
        The class.
    instance
        Id of the row.
    remark
        What to look at.
    values
        Values of the row by attribute.
    display
        Items pushed beside the row.
    """

    class_name: str
    instance: str = ""
    remark: str = ""
    values: Mapping[str, Value] = field(default_factory=dict)
    display: Display = ()

    @classmethod
    def from_message(cls, message: instance_pb2.Example) -> Self:
        """Return the result of a message."""
        return cls(
            message.class_name,
            id_of(message.instance),
            message.remark,
            row_values(message.values),
            display_of(message.display),
        )


@dataclass(frozen=True)
class Strategy:
    """The declaration of a query strategy.

    Attributes
    ----------
    name
        Its name.
    summary
        The instances that it selects, in a sentence.
    parameters
        Those that a model gives it.
    package
        The package that brings it, with its version; empty for strategies of Quercus itself.
    """

    name: str
    summary: str = ""
    parameters: tuple[Parameter, ...] = ()
    package: str = ""

    @classmethod
    def from_message(cls, message: model_pb2.Strategy) -> Self:
        """Return the result of a message."""
        return cls(
            message.name,
            message.summary,
            tuple(parameter_of(each) for each in message.parameters),
            message.package,
        )


@dataclass(frozen=True)
class Learner:
    """The declaration of a learner, from which a client can make a form.

    Attributes
    ----------
    name
        Its name.
    summary
        What it is, in a sentence.
    parameters
        Those that a model gives it.
    bases
        The learners that may grow its trees; empty if it lets none choose.
    strategies
        The strategies that can choose the queries of its models; the default first.
    package
        The package that brings it, with its version; empty for learners of Quercus itself.
    """

    name: str
    summary: str = ""
    parameters: tuple[Parameter, ...] = ()
    bases: tuple[str, ...] = ()
    strategies: tuple[Strategy, ...] = ()
    package: str = ""

    @classmethod
    def from_message(cls, message: model_pb2.Learner) -> Self:
        """Return the result of a message."""
        return cls(
            message.name,
            message.summary,
            tuple(parameter_of(each) for each in message.parameters),
            tuple(message.bases),
            tuple(Strategy.from_message(each) for each in message.strategies),
            message.package,
        )


@dataclass(frozen=True)
class AccuracyBlock:
    """The accuracy of the predictions of some rows.

    Attributes
    ----------
    rows
        Number of rows.
    precise_rows
        Rows among these whose label is one class.
    right
        Precise rows whose class was predicted.
    expected
        Sum over all rows of the pignistic probability, under the row's label, of the class that was predicted.
    unasked_rows
        Rows among these whose label no query asked for: no strategy chose them.
    unasked_expected
        The sum of ``expected`` over those.
    confusion
        The precise rows, by the class that was predicted and that of the label; in order, without empty cells.
    """

    rows: int
    precise_rows: int = 0
    right: int = 0
    expected: float = 0.0
    unasked_rows: int = 0
    unasked_expected: float = 0.0
    confusion: tuple[ConfusionCell, ...] = ()

    @classmethod
    def from_message(cls, message: model_pb2.AccuracyBlock) -> Self:
        """Return the result of a message."""
        return cls(
            message.rows,
            message.precise_rows,
            message.right,
            message.expected,
            message.unasked_rows,
            message.unasked_expected,
            tuple(ConfusionCell.from_message(each) for each in message.confusion),
        )


@dataclass(frozen=True)
class RecentAccuracy(RecentAccuracyAdditions):
    """The accuracy of predictions on the last rows whose label came after the prediction, at most 1,000.

    Rows that were asked about are harder than others: if most labels are answers, the accuracy on all rows is
    higher.

    Attributes
    ----------
    blocks
        Blocks of 50 rows, the oldest first; the newest may have fewer.
    labelled_rows
        Rows with a label, of which the newest are those of the blocks.
    """

    blocks: tuple[AccuracyBlock, ...]
    labelled_rows: int = 0

    @classmethod
    def from_message(cls, message: model_pb2.RecentAccuracy) -> Self:
        """Return the result of a message."""
        return cls(tuple(AccuracyBlock.from_message(each) for each in message.blocks), message.labelled_rows)


@dataclass(frozen=True)
class AverageConfidence:
    """A model's own estimate of its accuracy on all rows: the mean probability of the classes that it predicts.

    It needs no labels, and is only as good as the probabilities are.

    Attributes
    ----------
    rows
        Number of rows; if there are more than 1,000, then 1,000 evenly spread ones.
    mean
        Mean pignistic probability of the classes that the newest trees predict.
    """

    rows: int
    mean: float = 0.0

    @classmethod
    def from_message(cls, message: model_pb2.AverageConfidence) -> Self:
        """Return the result of a message."""
        return cls(message.rows, message.mean)


@dataclass(frozen=True)
class Extension:
    """Classes and attributes that a model got after it was created.

    Attributes
    ----------
    sequence
        Sequence number of the event.
    classes
        Names of the new classes.
    attributes
        Names of the new attributes.
    """

    sequence: int
    classes: tuple[str, ...] = ()
    attributes: tuple[str, ...] = ()

    @classmethod
    def from_message(cls, message: model_pb2.Extension) -> Self:
        """Return the result of a message."""
        return cls(message.sequence, tuple(message.classes), tuple(message.attributes))


@dataclass(frozen=True)
class AccuracyFall:
    """The accuracy on the last labels that came after a prediction fell, more than chance explains.

    Attributes
    ----------
    before
        Mean accuracy before.
    since
        Mean accuracy since.
    labels
        Number of labels since.
    """

    before: float
    since: float = 0.0
    labels: int = 0

    @classmethod
    def from_message(cls, message: model_pb2.AccuracyFall) -> Self:
        """Return the result of a message."""
        return cls(message.before, message.since, message.labels)


@dataclass(frozen=True)
class ChangedAttribute:
    """An attribute whose values have changed.

    Attributes
    ----------
    name
        Its name.
    distance
        Total variation distance of its bins or names from those before: the share of rows that lie elsewhere, 0 to
        1.
    """

    name: str
    distance: float = 0.0

    @classmethod
    def from_message(cls, message: model_pb2.ChangedAttribute) -> Self:
        """Return the result of a message."""
        return cls(message.name, message.distance)


@dataclass(frozen=True)
class Drift:
    """Changes of the recent past.

    They are reported for as long as they lie within the last 1,000 labels or the last 500 rows.

    Attributes
    ----------
    accuracy
        The accuracy fell; ``None`` if it did not.
    attributes
        Attributes whose values differ in the last 500 rows from those of the 2,000 rows before, the most changed
        first.
    """

    accuracy: AccuracyFall | None
    attributes: tuple[ChangedAttribute, ...] = ()

    @classmethod
    def from_message(cls, message: model_pb2.Drift) -> Self:
        """Return the result of a message."""
        return cls(
            AccuracyFall.from_message(message.accuracy) if message.HasField("accuracy") else None,
            tuple(ChangedAttribute.from_message(each) for each in message.attributes),
        )


@dataclass(frozen=True)
class Model(ModelAdditions):
    """The current state of a model on the server.

    Attributes
    ----------
    name
        Its name.
    specification
        Its definition; nominal attributes have the values learned so far.
    created_at
        When it was created.
    sequence_committed
        Sequence number of the newest committed event of the log.
    sequence_grown
        Newest event that the newest tree contains; committed - grown events are not in it yet.
    tree_version
        Newest tree version, 0 if none is grown yet.
    instance_count
        Number of rows.
    queries_answered
        Queries answered: with those leased now, never more than the budget.
    queries_leased
        Queries leased now.
    queries_refused
        Without refusals that were taken back.
    queries_open
        Open entries of the agenda now.
    conflicts
        Answers that contradicted the pushed label totally, resolved in favour of the oracle.
    lag_s
        Age of the oldest event that the newest tree does not contain; zero if it contains all.
    uid
        Unique and permanent: distinguishes the model from a later one with its name.
    accuracy
        Recent accuracy of the newest trees; ``None`` if unknown.
    average_confidence
        The newest trees' own estimate of their accuracy on all rows; ``None`` if there are no rows or it is
        unknown.
    other_names
        By attribute: rows of the newest tree that hold a name beyond its max_values. Attributes without such rows
        are absent.
    growth_stopped
        Why the model is grown no further, and how it can be: growing it takes more memory than the server allows.
        Its newest tree classifies, and rows and answers are taken. Empty for all other models.
    asking_stopped
        Why the model asks nothing, and how it can: its strategy is of a package that the server does not have. It
        learns and classifies all the same. Empty for all other models.
    extensions
        The classes and attributes that came later, the oldest first.
    drift
        Changes of the recent past; ``None`` where there are none, and where that is unknown.
    """

    name: str
    specification: Specification
    created_at: datetime
    sequence_committed: int = 0
    sequence_grown: int = 0
    tree_version: int = 0
    instance_count: int = 0
    queries_answered: int = 0
    queries_leased: int = 0
    queries_refused: int = 0
    queries_open: int = 0
    conflicts: int = 0
    lag_s: float = 0.0
    uid: str = ""
    accuracy: RecentAccuracy | None = None
    average_confidence: AverageConfidence | None = None
    other_names: Mapping[str, int] = field(default_factory=dict)
    growth_stopped: str = ""
    asking_stopped: str = ""
    extensions: tuple[Extension, ...] = ()
    drift: Drift | None = None

    @classmethod
    def from_message(cls, message: model_pb2.Model) -> Self:
        """Return the result of a message."""
        return cls(
            id_of(message.name),
            specification_of(message.specification),
            to_datetime(message.create_time),
            message.sequence_committed,
            message.sequence_grown,
            message.tree_version,
            message.instance_count,
            message.queries_answered,
            message.queries_leased,
            message.queries_refused,
            message.queries_open,
            message.conflicts,
            seconds_of(message.lag),
            message.uid,
            RecentAccuracy.from_message(message.accuracy) if message.HasField("accuracy") else None,
            AverageConfidence.from_message(message.average_confidence)
            if message.HasField("average_confidence")
            else None,
            dict(sorted(message.other_names.items())),
            message.growth_stopped,
            message.asking_stopped,
            tuple(Extension.from_message(each) for each in message.extensions),
            Drift.from_message(message.drift) if message.HasField("drift") else None,
        )


@dataclass(frozen=True)
class Rival(RivalAdditions):
    """An attribute that may still be the best split of a node, with its gain-ratio interval.

    If numbers are split at thresholds, a rival is one threshold of the attribute.

    Attributes
    ----------
    attribute
        Name of the attribute.
    lower
        Lower end of the interval.
    upper
        Upper end of the interval.
    threshold
        Threshold of the split; ``None`` for a split by values or bins.
    """

    attribute: str
    lower: float = 0.0
    upper: float = 0.0
    threshold: float | None = None

    @classmethod
    def from_message(cls, message: query_pb2.Rival) -> Self:
        """Return the result of a message."""
        return cls(
            message.attribute,
            message.lower,
            message.upper,
            message.threshold if message.HasField("threshold") else None,
        )


@dataclass(frozen=True)
class Reason(ReasonAdditions):
    """The reason why an instance is queried.

    A program that shows the sentence, the facts and the rivals can show any reason, even of a strategy that it does
    not know.

    Attributes
    ----------
    path
        Path to the undecided node; or to the leaf of the instance, then attribute and value are empty. Of a forest
        that asks, in the active tree beside it: the deepest contested node on the row's path, or the leaf of the
        row.
    rivals
        Attributes of the node, or their thresholds, that none dominates, in declared order; none for a leaf. If
        there are more than 100, those whose gain ratio may be largest.
    attribute
        Attribute of the child of an undecided node that the instance stands for; empty for a leaf.
    value
        Value of that attribute.
    score
        Value of the label by the measure of the strategy. Published: by how much the entropy interval of the child
        narrows without this label, w(S(T_h)) - w(S(T_h without i)), in bits, and 1 more if the label is vacuous.
    node_count
        Number of rows of the node.
    strategy
        The strategy that selected it.
    sentence
        What the strategy says of it: one or two sentences; empty if facts and rivals say all.
    facts
        What the strategy found, in the order in which it is shown.
    """

    path: tuple[tuple[str, str], ...]
    rivals: tuple[Rival, ...] = ()
    attribute: str = ""
    value: str = ""
    score: float = 0.0
    node_count: int = 0
    strategy: str = "published"
    sentence: str = ""
    facts: tuple[Fact, ...] = ()

    @classmethod
    def from_message(cls, message: query_pb2.Reason) -> Self:
        """Return the result of a message."""
        return cls(
            tuple((each.attribute, each.value) for each in message.path),
            tuple(Rival.from_message(each) for each in message.rivals),
            message.attribute,
            message.value,
            message.score,
            message.node_count,
            message.strategy,
            message.sentence,
            tuple(fact_of(each) for each in message.facts),
        )


@dataclass(frozen=True)
class Query(QueryAdditions):
    """A question to a labeller.

    Attributes
    ----------
    name
        Its name, with the model and the number: models/{model}/queries/{number}.
    model
        Name of the model.
    number
        Its number in the model.
    state
        ``open``, ``leased``, ``answered``, ``refused``, or ``withdrawn``: its label is no longer wanted, or its
        answer was taken back.
    instance
        Id of the row.
    values
        Values of the row by attribute.
    contour
        Plausibility of each class by the present evidence of the row.
    classes
        The model's frame, so that a labeller needs no second call.
    reason
        Why it is asked.
    tree_version
        Version of the tree that selected it.
    labeller
        Who holds it, or answered it.
    expires_at
        End of the lease by the server's wall clock, for display; the lease itself ends by a clock that is never
        set. ``None`` if nobody holds it.
    lease_token
        What the holder answers with; only in responses to the holder.
    left_s
        Rest of the lease when the server sent the query; ``None`` if nobody holds it.
    answers
        Number of answers that it has.
    answers_wanted
        Number of answers that it wants.
    display
        Items pushed beside the row; only in responses to the holder.
    place
        While open or leased: its place on the agenda of the newest tree, from 1, which is leased first; otherwise
        ``None``.
    """

    name: str
    model: str
    number: int
    state: str
    instance: str
    values: Mapping[str, Value]
    contour: tuple[float, ...]
    classes: tuple[str, ...]
    reason: Reason
    tree_version: int = 0
    labeller: str = ""
    expires_at: datetime | None = None
    lease_token: str = field(default="", repr=False)
    left_s: float | None = None
    answers: int = 0
    answers_wanted: int = 1
    display: Display = ()
    place: int | None = None

    @classmethod
    def from_message(cls, message: query_pb2.Query) -> Self:
        """Return the result of a message."""
        return cls(
            message.name,
            model_of(message.name),
            number_of(message.name),
            QUERY_STATE[message.state],
            id_of(message.instance),
            row_values(message.values),
            tuple(message.contour.plausibilities),
            tuple(message.classes),
            Reason.from_message(message.reason),
            message.tree_version,
            message.labeller,
            to_datetime(message.lease_expire_time) if message.HasField("lease_expire_time") else None,
            message.lease_token,
            seconds_of(message.lease_left) if message.HasField("lease_left") else None,
            message.answers,
            message.answers_wanted,
            display_of(message.display),
            message.place if message.HasField("place") else None,
        )


@dataclass(frozen=True)
class Lease:
    """The outcome of one attempt to lease: the queries, or the reason why there was none.

    Attributes
    ----------
    queries
        The leased queries.
    idle
        The reason why nothing was leased: ``nothing_to_ask``, ``all_leased``, ``budget_spent``, ``growing``,
        ``not_for_you``, ``share_spent``, ``hour_spent``, ``hands_full`` or ``not_assigned``; ``None`` if something
        was.
    budget_left
        Number of answers that the budget still allows.
    """

    queries: tuple[Query, ...]
    idle: str | None = None
    budget_left: int = 0

    @classmethod
    def from_message(cls, message: query_pb2.LeaseQueriesResponse) -> Self:
        """Return the result of a message."""
        return cls(
            tuple(Query.from_message(each) for each in message.queries),
            IDLE[message.idle] if message.HasField("idle") else None,
            message.budget_left,
        )


@dataclass(frozen=True)
class AnswerReport:
    """A committed answer or refusal.

    Attributes
    ----------
    query
        Name of the query.
    committed_sequence
        Newest committed sequence number of the model after it.
    conflict
        The answer contradicted the earlier evidence totally, and replaced it.
    wants_more
        The query wants more answers, from other labellers.
    degree_of_conflict
        Mass of the empty set in the combined answers so far; 0 if one answer is wanted.
    ignorance
        Mass of the whole frame in the combined answers so far; 0 if one answer is wanted.
    reliability
        The reliability with which the answer counted; ``None`` for a refusal.
    model_uid
        Uid of the model whose log has it.
    """

    query: str
    committed_sequence: int = 0
    conflict: bool = False
    wants_more: bool = False
    degree_of_conflict: float = 0.0
    ignorance: float = 0.0
    reliability: float | None = None
    model_uid: str = ""

    @classmethod
    def from_message(cls, message: query_pb2.AnswerQueryResponse) -> Self:
        """Return the result of a message."""
        return cls(
            message.name,
            message.committed_sequence,
            message.conflict,
            message.wants_more,
            message.degree_of_conflict,
            message.ignorance,
            message.reliability if message.HasField("reliability") else None,
            message.model_uid,
        )


@dataclass(frozen=True)
class Neighbour:
    """A row of known class that is like the row of a query.

    The search covers the newest 1,000 rows with labels, and the newest 1,000 pushed rows.

    Attributes
    ----------
    instance
        Id of the row.
    values
        Values of the row by attribute.
    class_name
        The class that its labels leave.
    same_leaf
        Whether it is in the same leaf of the newest tree; false if the model has several trees.
    distance
        Mean over the attributes, in [0, 1]: for numbers the difference as a share of their range among the searched
        rows, for names 0 or 1; a value that only one of the rows has counts 1.
    differing
        At most 3 attributes in which they differ most, the largest difference first.
    """

    instance: str
    values: Mapping[str, Value] = field(default_factory=dict)
    class_name: str = ""
    same_leaf: bool = False
    distance: float = 0.0
    differing: tuple[str, ...] = ()

    @classmethod
    def from_message(cls, message: query_pb2.Neighbour) -> Self:
        """Return the result of a message."""
        return cls(
            id_of(message.instance),
            row_values(message.values),
            message.class_name,
            message.same_leaf,
            message.distance,
            tuple(message.differing),
        )


@dataclass(frozen=True)
class QueryStep:
    """A step in the history of a query.

    Attributes
    ----------
    query
        Number of the query.
    kind
        What happened: ``opened``, ``leased``, ``released``, ``expired``, ``skipped``, ``postponed``, ``answered``,
        ``refused``, ``withdrawn``, ``corrected``, ``undone``, ``evicted``: an operator ended the lease, or its
        access token was revoked or expired, or ``settled``: the budget is spent, and the query is settled with the
        answers that it has.
    state
        State of the query after the step.
    labeller
        The labeller of the step; empty for steps of the service.
    lease
        Name of the lease, which is not its token.
    at
        When it happened.
    clock
        When it happened, in seconds on the clock of the leases, which never goes back.
    until
        On the same clock: end of the lease or of the postponement; ``None`` without one.
    sequence
        The event of the step in the log, 0 if there is none.
    why
        The reason, where one was given.
    """

    query: int
    kind: str
    state: str
    labeller: str
    lease: str
    at: datetime
    clock: float = 0.0
    until: float | None = None
    sequence: int = 0
    why: str = ""

    @classmethod
    def from_message(cls, message: query_pb2.QueryStep) -> Self:
        """Return the result of a message."""
        return cls(
            number_of(message.query),
            QUERY_STEP_KIND[message.kind],
            QUERY_STATE[message.state],
            message.labeller,
            message.lease,
            to_datetime(message.time),
            message.clock,
            message.until if message.HasField("until") else None,
            message.sequence,
            message.why,
        )


@dataclass(frozen=True)
class Answer:
    """A label that a labeller gave to an instance.

    Attributes
    ----------
    number
        Number of its event in the log: the number of the answer.
    instance
        Id of the instance.
    labeller
        Name of the labeller.
    at
        When it was stored (UTC).
    kind
        The action: ``answered``, ``refused``, ``corrected``, ``undone``; without a query ``stated`` and
        ``retracted``; ``adjudicated``: it decides between the labellers of the instance, and overrules them;
        ``marked``: it makes the instance a gold question.
    state
        The current state: it ``counts``, is ``pending`` until its query has all its answers, was ``replaced`` or
        ``undone``; it has no label (``empty``); or it answers a gold question (``gold``), and is not evidence.
    label
        The label in the form in which it is given; ``None`` for kinds without a label.
    text
        The label in words: a class, a set ``a|b``, plausibilities ``a:1 b:0.4``, masses ``{a|b}:0.7 {a}:0.3``,
        ``?`` for nothing; empty without a label.
    reliability
        The reliability with which it counts.
    comment
        The labeller's comment.
    took_s
        The labeller's time; ``None`` if unknown.
    query
        Number of its query; ``None`` for a statement.
    former
        Number of the answer that it replaced or took back; ``None`` if there is none.
    former_label
        Label of that answer; ``None`` if there is none.
    former_text
        The same in words.
    later
        Number of the answer that replaced it or took it back; ``None`` if there is none.
    conflict
        It contradicted the earlier evidence totally.
    known
        Plausibility of each class by the present evidence of the instance.
    class_name
        The class, if only one is left; otherwise ``None``.
    values
        Values of the instance by attribute, on request.
    shown
        Name of the labeller's screen, if the client sent one.
    """

    number: int
    instance: str
    labeller: str
    at: datetime
    kind: AnswerKind
    state: AnswerState
    label: Label = None
    text: str = ""
    reliability: float = 0.0
    comment: str = ""
    took_s: float | None = None
    query: int | None = None
    former: int | None = None
    former_label: Label = None
    former_text: str = ""
    later: int | None = None
    conflict: bool = False
    known: Mapping[str, float] = field(default_factory=dict)
    class_name: str | None = None
    values: Mapping[str, Value] = field(default_factory=dict)
    shown: str = ""

    @classmethod
    def from_message(cls, message: query_pb2.Answer, classes: Sequence[str]) -> Self:
        """Return the result of a message."""
        return cls(
            message.sequence,
            id_of(message.instance),
            message.labeller,
            to_datetime(message.create_time),
            ANSWER_KIND[message.kind],
            ANSWER_STATE[message.state],
            label_of(message.label, classes) if message.HasField("label") else None,
            message.text,
            message.reliability,
            message.comment,
            seconds_of(message.took) if message.HasField("took") else None,
            number_of(message.query) if message.HasField("query") else None,
            message.former_sequence if message.HasField("former_sequence") else None,
            label_of(message.former_label, classes) if message.HasField("former_label") else None,
            message.former_text,
            message.later_sequence if message.HasField("later_sequence") else None,
            message.conflict,
            dict(zip(classes, message.contour.plausibilities, strict=False)),
            message.class_name if message.HasField("class_name") else None,
            row_values(message.values),
            message.shown,
        )


@dataclass(frozen=True)
class DisputeLabel:
    """The label of a labeller, beside those of others.

    Attributes
    ----------
    number
        Number of its event in the log.
    labeller
        Name of the labeller.
    at
        When it was stored (UTC).
    kind
        The action: ``answered``, ``corrected``, ``stated``, or ``adjudicated``.
    state
        The current state: it ``counts``, is ``pending`` until its query has all its answers, or was ``replaced`` by
        an adjudication.
    plausibility
        Plausibility of each class by this label.
    text
        The label in words, as in ``Answer``.
    reliability
        The reliability with which it counts.
    comment
        The labeller's comment.
    took_s
        The labeller's time; ``None`` if unknown.
    """

    number: int
    labeller: str
    at: datetime
    kind: AnswerKind
    state: AnswerState
    plausibility: Mapping[str, float] = field(default_factory=dict)
    text: str = ""
    reliability: float = 0.0
    comment: str = ""
    took_s: float | None = None

    @classmethod
    def from_message(cls, message: query_pb2.DisputeLabel, classes: Sequence[str]) -> Self:
        """Return the result of a message."""
        return cls(
            message.sequence,
            message.labeller,
            to_datetime(message.create_time),
            ANSWER_KIND[message.kind],
            ANSWER_STATE[message.state],
            dict(zip(classes, message.contour.plausibilities, strict=False)),
            message.text,
            message.reliability,
            message.comment,
            seconds_of(message.took) if message.HasField("took") else None,
        )


@dataclass(frozen=True)
class Dispute:
    """An instance, and the labels that its labellers gave.

    Attributes
    ----------
    instance
        Id of the instance.
    disputed
        Whether two valid labels name different classes.
    labels
        The newest label of each labeller, oldest first, including those that an adjudication overrules; and last,
        the valid adjudication.
    known
        Plausibility of each class by all that is known of the instance.
    values
        Values of the instance by attribute; only of one that was asked for by name.
    display
        Items pushed beside it; only of one that was asked for by name.
    """

    instance: str
    disputed: bool = False
    labels: tuple[DisputeLabel, ...] = ()
    known: Mapping[str, float] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)
    display: Display = ()

    @classmethod
    def from_message(cls, message: query_pb2.Dispute, classes: Sequence[str]) -> Self:
        """Return the result of a message."""
        return cls(
            id_of(message.instance),
            message.disputed,
            tuple(DisputeLabel.from_message(each, classes) for each in message.labels),
            dict(zip(classes, message.contour.plausibilities, strict=False)),
            row_values(message.values),
            display_of(message.display),
        )


@dataclass(frozen=True)
class AdjudicationReport:
    """A committed adjudication.

    Attributes
    ----------
    committed_sequence
        Newest committed sequence number of the model after it.
    conflict
        The decision contradicts the pushed label totally.
    model_uid
        Uid of the model whose log has it.
    """

    committed_sequence: int
    conflict: bool = False
    model_uid: str = ""

    @classmethod
    def from_message(cls, message: query_pb2.AdjudicateResponse) -> Self:
        """Return the result of a message."""
        return cls(message.committed_sequence, message.conflict, message.model_uid)


@dataclass(frozen=True)
class GoldReport:
    """Committed marks.

    Attributes
    ----------
    committed_sequence
        Newest committed sequence number of the model after them.
    stored
        Marks that were made or taken back.
    known
        Marks that existed already.
    model_uid
        Uid of the model whose log has them.
    """

    committed_sequence: int
    stored: int = 0
    known: int = 0
    model_uid: str = ""

    @classmethod
    def from_message(cls, message: query_pb2.MarkGoldResponse) -> Self:
        """Return the result of a message."""
        return cls(message.committed_sequence, message.stored, message.known, message.model_uid)


@dataclass(frozen=True)
class GoldQuestion:
    """A row whose class is known, to see which labellers answer right.

    Attributes
    ----------
    instance
        Id of the row.
    text
        The right answer in words, as in ``Answer``.
    labeller
        Who marked it.
    at
        When it was marked (UTC).
    comment
        Comment of whoever marked it.
    answered
        Number of labellers whose answer stands and names a class.
    right
        Those whose most plausible classes are all right.
    """

    instance: str
    text: str
    labeller: str
    at: datetime
    comment: str = ""
    answered: int = 0
    right: int = 0

    @classmethod
    def from_message(cls, message: query_pb2.GoldQuestion) -> Self:
        """Return the result of a message."""
        return cls(
            id_of(message.instance),
            message.text,
            message.labeller,
            to_datetime(message.create_time),
            message.comment,
            message.answered,
            message.right,
        )


@dataclass(frozen=True)
class LabellerPair:
    """The agreement of two labellers.

    Attributes
    ----------
    first
        The labeller whose name comes first.
    second
        The other one.
    rows
        Rows for which both name one class.
    same
        Those with the same class.
    kappa
        Cohen's kappa: 1 is perfect agreement, 0 agreement by chance; ``None`` where it is not defined: both name
        one class only.
    """

    first: str
    second: str = ""
    rows: int = 0
    same: int = 0
    kappa: float | None = None

    @classmethod
    def from_message(cls, message: query_pb2.LabellerPair) -> Self:
        """Return the result of a message."""
        return cls(
            message.first,
            message.second,
            message.rows,
            message.same,
            message.kappa if message.HasField("kappa") else None,
        )


@dataclass(frozen=True)
class LabellerConfusion:
    """The classes that a labeller named, against those that hold by all that is known of the rows.

    Attributes
    ----------
    labeller
        Name of the labeller.
    cells
        Cells with rows, in order.
    """

    labeller: str
    cells: tuple[ConfusionCell, ...] = ()

    @classmethod
    def from_message(cls, message: query_pb2.LabellerConfusion) -> Self:
        """Return the result of a message."""
        return cls(message.labeller, tuple(ConfusionCell.from_message(each) for each in message.cells))


@dataclass(frozen=True)
class Agreement:
    """The agreement of the labellers of a model.

    For each row the newest label of each labeller counts, even if it was overruled. In ``alpha``, pairs and
    confusions a label counts if it has a single most plausible class.

    Attributes
    ----------
    shared
        Rows with labels of two or more labellers.
    disputed
        Those in dispute now: two valid labels have no most plausible class in common.
    adjudicated
        Those that somebody has adjudicated.
    alpha
        Krippendorff's alpha for nominal data: 1 is perfect agreement, 0 agreement by chance; ``None`` where it is
        not defined.
    alpha_rows
        Rows for which two or more labellers name one class.
    alpha_labels
        Their labels.
    pairs
        Pairs among the 200 labellers with the most labels, those with the most rows first; at most 1,000.
    confusions
        What each of these labellers names, against what holds; in order of name.
    is_partial
        Whether there are more labels than the 20,000 newest that were counted.
    """

    shared: int
    disputed: int = 0
    adjudicated: int = 0
    alpha: float | None = None
    alpha_rows: int = 0
    alpha_labels: int = 0
    pairs: tuple[LabellerPair, ...] = ()
    confusions: tuple[LabellerConfusion, ...] = ()
    is_partial: bool = False

    @classmethod
    def from_message(cls, message: query_pb2.Agreement) -> Self:
        """Return the result of a message."""
        return cls(
            message.shared,
            message.disputed,
            message.adjudicated,
            message.alpha if message.HasField("alpha") else None,
            message.alpha_rows,
            message.alpha_labels,
            tuple(LabellerPair.from_message(each) for each in message.pairs),
            tuple(LabellerConfusion.from_message(each) for each in message.confusions),
            message.is_partial,
        )


@dataclass(frozen=True)
class Labeller:
    """The counts of a labeller for a model.

    Attributes
    ----------
    name
        Name of the labeller.
    answered
        Number of answers.
    refused
        Queries refused: nobody can tell.
    skipped
        Queries left to other labellers.
    postponed
        Queries left for later.
    expired
        Leases that expired without a reply.
    corrected
        Answers corrected.
    undone
        Answers taken back.
    held
        Queries held now.
    agreement
        Share of the same class over the pairs with each other labeller of each row, as GetAgreement counts them;
        ``None``: there are none.
    reliability
        Probability that this labeller's answer is right, estimated from confusion matrices; ``None``: nobody shared
        a query with this labeller.
    median_s
        Median time of the newest 1,000 answers; ``None`` without answers.
    stated
        Number of statements, without queries.
    agreement_deviation
        Standard deviation of the agreement; ``None`` if that is.
    reliability_deviation
        Standard deviation of the reliability; ``None`` if that is.
    gold_answered
        Gold questions that this labeller answered: the answers stand, and name a class.
    gold_right
        Those that were answered right: the most plausible classes are all among those of the mark.
    gold_lower
        Lower end of Wilson's interval of the share of right answers, at confidence 0.9; ``None`` without such
        answers.
    gold_upper
        Its upper end.
    """

    name: str
    answered: int = 0
    refused: int = 0
    skipped: int = 0
    postponed: int = 0
    expired: int = 0
    corrected: int = 0
    undone: int = 0
    held: int = 0
    agreement: float | None = None
    reliability: float | None = None
    median_s: float | None = None
    stated: int = 0
    agreement_deviation: float | None = None
    reliability_deviation: float | None = None
    gold_answered: int = 0
    gold_right: int = 0
    gold_lower: float | None = None
    gold_upper: float | None = None

    @classmethod
    def from_message(cls, message: query_pb2.LabellerStatistics) -> Self:
        """Return the result of a message."""
        return cls(
            message.name,
            message.answered,
            message.refused,
            message.skipped,
            message.postponed,
            message.expired,
            message.corrected,
            message.undone,
            message.held,
            message.agreement if message.HasField("agreement") else None,
            message.reliability if message.HasField("reliability") else None,
            seconds_of(message.median) if message.HasField("median") else None,
            message.stated,
            message.agreement_deviation if message.HasField("agreement_deviation") else None,
            message.reliability_deviation if message.HasField("reliability_deviation") else None,
            message.gold_answered,
            message.gold_right,
            message.gold_lower if message.HasField("gold_lower") else None,
            message.gold_upper if message.HasField("gold_upper") else None,
        )


@dataclass(frozen=True)
class LabellingPolicy:
    """The labelling policy of a model.

    Attributes
    ----------
    answers_per_query
        Number of labellers who answer each query, whose answers are combined; 1 to 20, and 0 means 1.
    max_conflict
        Answers in more conflict than this ask for one more labeller, up to twice ``answers_per_query``; in [0, 1],
        0.5 by default.
    reliability
        Reliability of an answer that was sent without one. ``declared``, the default: 1; ``estimated``: estimated
        from the agreement of the labellers.
    per_labeller
        Most answers of one labeller, counting leased queries; ``None``: no bound but the model's budget.
    per_hour
        Most answers of all labellers within an hour, counting leased queries; ``None``: no bound but the model's
        budget.
    max_held
        Maximum number of queries that one labeller holds at once; 1 to 100, and 0 means 20.
    corrections
        Labellers who may correct an answer: the one who gave it (``own``, the default), ``anyone`` of
        ``labellers``, or ``nobody``.
    tags
        Tags by which labellers who answer for any model may choose; at most 20.
    labellers
        Names of the labellers who are asked and may state labels, at most 1,000; empty: everybody. Whoever holds a
        query when the policy changes may still answer it. Operators state labels for anybody.
    combination
        Rule that combines the answers of several labellers: Dempster's (``dempster``, the default), or the cautious
        one where they may have conferred (``cautious``).
    gold_share
        Share of the leased queries that are gold questions (MarkGold), while there are any that the labeller has
        not been asked; in [0, 1], 0 by default.
    """

    answers_per_query: int = 1
    max_conflict: float = 0.5
    reliability: ReliabilitySource = "declared"
    per_labeller: int | None = None
    per_hour: int | None = None
    max_held: int = 20
    corrections: CorrectionPermission = "own"
    tags: tuple[str, ...] = ()
    labellers: tuple[str, ...] = ()
    combination: CombinationRule = "dempster"
    gold_share: float = 0.0

    @classmethod
    def from_message(cls, message: query_pb2.LabellingPolicy) -> Self:
        """Return the result of a message."""
        return cls(
            message.answers_per_query,
            message.max_conflict if message.HasField("max_conflict") else 0.5,
            RELIABILITY_SOURCE[message.reliability],
            message.per_labeller if message.HasField("per_labeller") else None,
            message.per_hour if message.HasField("per_hour") else None,
            message.max_held,
            CORRECTION_PERMISSION[message.corrections],
            tuple(message.tags),
            tuple(message.labellers),
            COMBINATION_RULE[message.combination],
            message.gold_share,
        )


@dataclass(frozen=True)
class AttributeBranches:
    """The branch names of an attribute in force.

    Attributes
    ----------
    attribute
        Name of the attribute.
    branches
        Name of each branch code: value, bin, or "?" for missing.
    edges
        Numeric attributes: the inner edges in force.
    numeric
        Whether it is numeric.
    """

    attribute: str
    branches: tuple[str, ...] = ()
    edges: tuple[float, ...] = ()
    numeric: bool = False

    @classmethod
    def from_message(cls, message: tree_pb2.AttributeBranches) -> Self:
        """Return the result of a message."""
        return cls(message.attribute, tuple(message.branches), tuple(message.edges), message.numeric)


@dataclass(frozen=True)
class Member:
    """One tree of several.

    Attributes
    ----------
    nodes
        Number of nodes.
    leaves
        Number of leaves.
    depth
        Tests on the longest path.
    classes
        The classes that it distinguishes: all classes, or one and the others ("not ...").
    """

    nodes: int
    leaves: int = 0
    depth: int = 0
    classes: tuple[str, ...] = ()

    @classmethod
    def from_message(cls, message: tree_pb2.Member) -> Self:
        """Return the result of a message."""
        return cls(message.nodes, message.leaves, message.depth, tuple(message.classes))


@dataclass(frozen=True)
class Tree(TreeAdditions):
    """A tree at a version: a function of the model's log up to ``as_of``.

    Forests have several, and so have learners that distinguish each class from the rest.

    Attributes
    ----------
    model
        Name of the model.
    version
        Its version, from 1.
    as_of
        Number of the last event of the log that it contains.
    classes
        The frame, in order.
    attributes
        The branch names of each attribute.
    nodes
        Its nodes, in pre-order.
    created_at
        When it was grown.
    learner
        The learner's name, e.g. ``abc45``, ``c45``, ``forest``.
    members
        All trees of the version: several for a forest, and for learners with one tree per class.
    member
        Index of the member that ``nodes`` describe.
    """

    model: str
    version: int
    as_of: int
    classes: tuple[str, ...]
    attributes: tuple[AttributeBranches, ...]
    nodes: tuple[TreeNode, ...]
    created_at: datetime
    learner: str = ""
    members: tuple[Member, ...] = ()
    member: int = 0

    @classmethod
    def from_message(cls, message: tree_pb2.Tree) -> Self:
        """Return the result of a message."""
        return cls(
            model_of(message.name),
            message.version,
            message.as_of,
            tuple(message.classes),
            tuple(AttributeBranches.from_message(each) for each in message.attributes),
            nodes_of(message),
            to_datetime(message.create_time),
            message.learner,
            tuple(Member.from_message(each) for each in message.members),
            message.member,
        )


@dataclass(frozen=True)
class TreeUpdate(TreeUpdateAdditions):
    """A tree, and the end of the log when it was sent.

    Attributes
    ----------
    tree
        The newest tree.
    committed_sequence
        Newest committed sequence number when this was sent.
    """

    tree: Tree
    committed_sequence: int = 0

    @classmethod
    def from_message(cls, message: tree_pb2.WatchTreeResponse) -> Self:
        """Return the result of a message."""
        return cls(Tree.from_message(message.tree), message.committed_sequence)


@dataclass(frozen=True)
class RowPrediction:
    """The prediction of a row by a model that is grown from the log up to an event.

    Attributes
    ----------
    as_of
        Number of the last event of the log that it contains.
    at
        When that event was stored (UTC).
    class_name
        The class that is most probable; empty if several are.
    theta
        Probability of each class.
    class_set
        The classes that none dominates.
    path
        The branches from the root to the leaf of the row; of a forest in the tree beside it; empty of several
        trees.
    """

    as_of: int
    at: datetime
    class_name: str = ""
    theta: tuple[float, ...] = ()
    class_set: tuple[str, ...] = ()
    path: tuple[PathStep, ...] = ()

    @classmethod
    def from_message(cls, message: tree_pb2.RowPrediction) -> Self:
        """Return the result of a message."""
        return cls(
            message.as_of,
            to_datetime(message.create_time),
            message.class_name,
            tuple(message.theta),
            tuple(message.class_set),
            tuple(PathStep.from_message(each) for each in message.path),
        )


@dataclass(frozen=True)
class RowAnswer:
    """An answer about the row itself, and what the model said before it.

    Attributes
    ----------
    answer
        The answer.
    before
        What the model said of the row just before it; ``None`` for an answer before the time that was asked about.
    """

    answer: Answer
    before: RowPrediction | None = None

    @classmethod
    def from_message(cls, message: tree_pb2.RowAnswer, classes: Sequence[str]) -> Self:
        """Return the result of a message."""
        return cls(
            Answer.from_message(message.answer, classes),
            RowPrediction.from_message(message.before) if message.HasField("before") else None,
        )


@dataclass(frozen=True)
class RowChange:
    """A change of what the model says of a row: with these events it has another first class or path.

    Attributes
    ----------
    first_sequence
        Number of the first event that may have caused it: of an answer its own, of rows the first of those that
        came together.
    sequence
        Number of the last of these events.
    answer
        The answer that changed it; ``None`` if rows did, or the definition of the model.
    specification
        The definition of the model changed.
    after
        What the model says from then on.
    """

    first_sequence: int
    sequence: int
    answer: Answer | None
    specification: bool
    after: RowPrediction

    @classmethod
    def from_message(cls, message: tree_pb2.RowChange, classes: Sequence[str]) -> Self:
        """Return the result of a message."""
        return cls(
            message.first_sequence,
            message.sequence,
            Answer.from_message(message.answer, classes) if message.HasField("answer") else None,
            message.specification,
            RowPrediction.from_message(message.after),
        )


@dataclass(frozen=True)
class RowExplanation:
    """The reasons why a model says of a row what it says.

    Attributes
    ----------
    classes
        The frame, in order.
    then
        What the model said then.
    now
        What it says of all of the log.
    answers
        The answers about the row, in order.
    changes
        The changes between then and now, in order; at most the last 200.
    change_count
        How many changes there were.
    complete
        Every event was tried. False for learners that learn again from all evidence: there a change and one that
        took it back are not looked for where the model says the same before the one and after the other.
    beside
        The path is that in the tree beside a forest, whose votes give the class.
    """

    classes: tuple[str, ...]
    then: RowPrediction
    now: RowPrediction
    answers: tuple[RowAnswer, ...] = ()
    changes: tuple[RowChange, ...] = ()
    change_count: int = 0
    complete: bool = False
    beside: bool = False

    @classmethod
    def from_message(cls, message: tree_pb2.ExplainRowResponse, classes: Sequence[str]) -> Self:
        """Return the result of a message."""
        return cls(
            tuple(message.classes),
            RowPrediction.from_message(message.then),
            RowPrediction.from_message(message.now),
            tuple(RowAnswer.from_message(each, classes) for each in message.answers),
            tuple(RowChange.from_message(each, classes) for each in message.changes),
            message.change_count,
            message.complete,
            message.beside,
        )
