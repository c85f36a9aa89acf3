# Generated from client/aio/trees.py by `make client`; edit that file.
"""The calls that classify rows and show trees."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from datetime import datetime
from typing import Any

from quercus.client import classifications
from quercus.client.classifications import Classifications
from quercus.client.errors import DeadlineExceeded, QuercusError
from quercus.client.messages import filled
from quercus.client.resources import model_resource, tree_resource
from quercus.client.results import Model, RowExplanation, Tree, TreeUpdate
from quercus.client.rows import Row
from quercus.client.sync.models import ModelCalls
from quercus.client.treeview import (
    EXPLAIN_S,
    RenderFormat,
    TreeVersion,
    explain_request,
    render_request,
    replaced_error,
)
from quercus.v1 import tree_pb2


class TreeCalls(ModelCalls):
    """The calls that classify rows and show trees."""

    def classify(
        self,
        model: str,
        rows: Iterable[Row] | Any,
        *,
        min_sequence: int = 0,
        want_paths: bool = False,
        want_masses: bool = False,
        coverage: float | None = None,
        want_doubt: bool = False,
    ) -> Classifications:
        """Classify rows (forms as in :meth:`push`).

        A value may be uncertain here: a set of names, or a :class:`Between` of numbers.

        Parameters
        ----------
        model, rows
            Name of the model, and any number of rows, sent in as few requests as the message limit allows.
        min_sequence
            Use only a tree grown from the log up to at least this number (:meth:`wait_grown` waits for it).
        want_paths
            Also return the path of every row, for a model of one tree.
        want_masses
            Also return the mass function of every row, if the model has them.
        coverage
            Also return prediction sets that contain the true class with this frequency, in (0, 1).
        want_doubt
            Also return the two kinds of doubt about every row, if the learner separates them.
        """
        form = self._row_format(model)
        try:
            answers = [
                self._call(request)
                for request in form.classify_requests(
                    model,
                    rows,
                    min_sequence,
                    want_paths=want_paths,
                    want_masses=want_masses,
                    coverage=coverage,
                    want_doubt=want_doubt,
                )
            ]
        except QuercusError:
            self._forms.forget_format(model)
            raise
        return classifications.merged(answers, tuple(form.specification.classes), want_paths)

    def tree(self, model: str, version: int | None = None, member: int = 0) -> Tree:
        """Return the newest tree, or the one of ``version``; if there are several, number ``member``."""
        request = filled(tree_pb2.GetTreeRequest, name=tree_resource(model, version), member=member)
        return Tree.from_message(self._call(request))

    def render(
        self,
        model: str,
        form: RenderFormat = "text",
        version: int | None = None,
        member: int | None = None,
        depth: int | None = None,
    ) -> str:
        """Return a drawing of a tree, or an overview of several: ``"text"``, ``"dot"`` (Graphviz) or ``"svg"``.

        Nodes deeper than ``depth`` are counted, not drawn.
        """
        return str((self._call(render_request(model, version, form, member, depth))).content)

    def explain_row(
        self, model: str, instance: str, at: int | datetime | None = None, *, timeout_s: float = EXPLAIN_S
    ) -> RowExplanation:
        """Return an earlier and the current prediction for a row, and the answers that changed it.

        The server grows the model again from its log, which takes seconds. If you stop waiting, it stops too.

        Parameters
        ----------
        model, instance
            Name of the model, and id of the row.
        at
            The earlier moment: the number of an event of the log, or a time; ``None``: when the row was pushed.
        timeout_s
            Maximum time to wait, in seconds.

        Raises
        ------
        FailedPrecondition
            If there is too much to replay, or the log does not reach `at`.
        ResourceExhausted
            If other replays are running.
        """
        found = self._call(explain_request(model, instance, at), timeout_s)
        return RowExplanation.from_message(found, found.classes)

    def watch(self, model: str, *, timeout_s: float | None = None) -> Generator[TreeUpdate, None, None]:
        """Yield the newest tree, then each newer one when it has grown (a slow reader skips versions).

        Parameters
        ----------
        model
            Name of the model.
        timeout_s
            Seconds after which to raise :class:`DeadlineExceeded`; ``None``: run until you stop, the model is deleted,
            or the server is unreachable for longer than ``outage_s``.
        """
        with closing(self._watch_trees(model, timeout_s, without_nodes=False)) as updates:
            for update in updates:
                yield TreeUpdate.from_message(update)

    def watch_versions(
        self, model: str, *, timeout_s: float | None = None
    ) -> Generator[TreeVersion, None, None]:
        """Yield the version of the newest tree, then of every newer one, as :meth:`watch` does but without the nodes.

        A large tree costs no more than a small one. For the parameters, see :meth:`watch`.
        """
        with closing(self._watch_trees(model, timeout_s, without_nodes=True)) as updates:
            for update in updates:
                yield TreeVersion(update.tree.version, update.tree.as_of, update.committed_sequence)

    def _watch_trees(
        self, model: str, timeout_s: float | None, uid: str = "", *, without_nodes: bool
    ) -> Generator[tree_pb2.WatchTreeResponse, None, None]:
        """Yield each tree that is newer than those before it.

        Parameters
        ----------
        uid
            Uid of the model; empty: that of the first tree. Needed because another model may take the name.
        """
        request = filled(tree_pb2.WatchTreeRequest, model=model_resource(model), without_nodes=without_nodes)
        version = 0
        with closing(self._stream_messages(request, timeout_s)) as updates:
            for update in updates:
                if uid not in {"", update.model_uid}:
                    raise replaced_error(model)
                uid = update.model_uid
                if update.tree.version > version:  # after an outage, the newest is sent again
                    version = update.tree.version
                    yield update

    def wait_grown(self, model: str, sequence: int | None = None, timeout_s: float | None = 60.0) -> Model:
        """Wait until the tree has learned from the log up to ``sequence`` (default: all of it).

        Wait for at most ``timeout_s`` seconds; ``None``: no limit.

        Raises
        ------
        DeadlineExceeded
            If the tree has not grown that far within ``timeout_s``.
        FailedPrecondition
            If the model was deleted, and another has its name.
        """
        before, now = self._sequences.model_uid(model), self.get_model(model)
        if sequence is None:
            sequence = now.sequence_committed
        elif before not in {"", now.uid} and sequence > now.sequence_committed:
            # Wait for a number beyond the end of the log, since a push may follow, unless the model was deleted.
            raise replaced_error(model)
        try:
            watched = self._watch_trees(model, timeout_s, now.uid, without_nodes=True)
            with closing(watched) as updates:
                for update in updates:
                    if update.tree.as_of >= sequence:
                        return self.get_model(model)
        except DeadlineExceeded:
            pass  # replaced by the error below, which has the progress
        grown = self.get_model(model).sequence_grown
        waited = "" if timeout_s is None else f" after {timeout_s:g} s"
        raise DeadlineExceeded(f"the tree of {model!r} had grown to event {grown} of {sequence}{waited}")
