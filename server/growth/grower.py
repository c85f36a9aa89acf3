"""The grower: a process that folds every model's log into trees. ``python -m quercus.server.growth.grower URL``.

Models take turns by computing time, not by steps: the one that used least recently comes first. Models with long steps
grow in processes of their own (`quercus.server.growth.model_processes`), which run this module for one model.

The grower shares only the store with the server. It ends at once when its standard input ends, which means that the
server has ended. It may be killed at any time: a tree is published in one transaction, and the log has everything.
"""

from __future__ import annotations

import argparse
import logging
import math
import os
import signal
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from quercus.server.core.damaged_models import find_damage
from quercus.server.growth.child_process import LOOK, end_with_parent, keep_small, private_output
from quercus.server.growth.engines import learns_again
from quercus.server.growth.folding import LogFolder, RelearningFolder
from quercus.server.growth.heartbeat import HeartbeatWriter, LearningQueue
from quercus.server.growth.learner_pool import LEARNERS, LearnerPool, LearningFailedError
from quercus.server.growth.model_processes import (
    LEAVE,
    NO_WORK_LEFT,
    WORK_LEFT,
    ModelProcesses,
)
from quercus.server.growth.saved_growth import SavedGrowth, remove_orphaned_files
from quercus.server.growth.sharing import GrowerShare, OneModelShare, SoleShare
from quercus.server.growth.time_shares import RecentTime
from quercus.server.plugins import choose_inherited_plugins
from quercus.server.telemetry import logs
from quercus.server.wire.limits import QUIET_S, REST_POLL_S
from quercus.server.wire.models import specification_of
from quercus.server.wire.reports import stop_text, stopped_above, with_stop
from quercus.specification.pauses import growing_pause_s
from quercus.specification.server import (
    AGENDA_SHARE,
    GROWER_TTL_S,
    KEEP_TREES,
    LOG_FORMAT,
    LOG_LEVEL,
    LOG_LEVELS,
    POLL_MS,
    SNAPSHOT_INTERVAL_S,
)
from quercus.storage import Fenced, ModelRecord, NotFound, StorageError, Store

_log = logging.getLogger("quercus.server.growth.grower")  # even if it runs as __main__
NICENESS: Final = 5  # answering calls has priority over growing
FIRST_RETRY_S: Final = 0.5
LAST_RETRY_S: Final = 60.0
TAKE_RETRY_S: Final = 0.1
ROUND_S: Final = 0.1
"""Seconds of steps after which a round ends, so that models that have changed meanwhile get their turn."""

STEPS_SHARE: Final = 4
"""The steps of a round take at least this multiple of its beginning, which takes long with very many models."""

LONG_STEP_S: Final = 0.5
"""CPU seconds from which on a step is long, because others wait for it."""

LONG_STEPS: Final = 2
"""Number of successive long steps after which a model grows in a process of its own."""

LARGE_MODEL: Final = 10_000_000
"""Rows × attributes × classes from which on a model grows in a process of its own, however long its steps."""

BYTES_OF_LARGE: Final = 100
"""The same threshold is at most the bytes that a model may take, divided by this: only model processes are measured."""

REST_AFTER_S: Final = 2.0 * QUIET_S
"""Seconds without a change after which the grower polls the store more rarely; by then, the server wakes it."""

STORE_RETRY_S: Final = 5.0
"""Longest time, in seconds, until a model is tried again after the store failed, since somebody waits for its tree."""


class Grower:
    """Grows all models, a chunk of each in turn; a model that fails does not stop the others.

    Parameters
    ----------
    store : store, open in this process.
    keep : number of tree versions of each model that are kept.
    interval_s : seconds between two trees of a model while rows arrive.
    agenda_share : share of the time for choosing the queries of a model.
    learners : processes of learners that learn again from all evidence; by default, new ones.
    notify : called with the name of a model before each step, and with "" after it.
    notify_damage : called with the name of a model that cannot be read, and the reason; with "" once it can be read
        again, or is gone.
    share : the models that this grower is responsible for; by default, all.
    apart : processes of large models; None if all models grow here.
    """

    def __init__(
        self,
        store: Store,
        keep: int = KEEP_TREES.default,
        interval_s: float = SNAPSHOT_INTERVAL_S.default,
        agenda_share: float = AGENDA_SHARE.default,
        *,
        learners: LearnerPool | None = None,
        notify: Callable[[str], object] = lambda _: None,
        notify_damage: Callable[[str, str], object] = lambda *_: None,
        share: SoleShare | None = None,
        apart: ModelProcesses | None = None,
    ) -> None:
        self._store = store
        self._keep = keep
        self._interval_s = interval_s
        self._agenda_share = agenda_share
        self._learners = LearnerPool(store.url) if learners is None else learners
        self._notify = notify
        self._notify_damage = notify_damage
        self._share = SoleShare() if share is None else share
        self._apart = apart
        self._members: Sequence[str] = ()  # of the last round
        self._models: dict[int, LogFolder] = {}  # by key, like the other dictionaries
        self._failures: dict[int, int] = {}
        self._damaged: dict[int, str] = {}  # names that were reported
        self._seen = 0  # number of the newest change that was read
        self._busy: set[int] = set()  # changed, or worked on in the last round
        self._wake_at: dict[int, float] = {}  # when other models have something to do, or are tried again
        self._saved_apart: dict[int, SavedGrowth] = {}  # of models that grow in processes of their own
        self._damaged_apart: dict[
            str, str
        ] = {}  # damage of models that grow in processes of their own, by name
        self._recent = RecentTime()
        self._long_steps: dict[int, int] = {}  # number of successive ones
        self._sizes: dict[int, int] = {}  # attributes × classes

    def run_round(self) -> bool:
        """Let models that may have something to do take a step, in turn; return whether there is more to do.

        A step is short: a chunk of the log, or a tree that follows it. Slow learning happens in other processes, and
        takes one step to begin and one to end. A round ends early, so that nobody waits; the remaining models come in
        the next one.
        """
        begun = time.monotonic()
        self._follow_changes()
        self._follow_processes()
        ended = self._learners.collect_ended()
        self._busy |= {key for key in ended if key in self._models and key not in self._failures}
        now = time.monotonic()
        due = self._busy | {key for key, at in self._wake_at.items() if at <= now}
        records = {record.key: record for record in (self._store.models_of(sorted(due)) if due else [])}
        for gone in due - records.keys():
            self._forget_gone(gone)
        for key in [key for key, record in records.items() if self._grows_elsewhere(record)]:
            del records[key]
        behind = {record.key for record in records.values() if self._is_behind(record)}
        left_s = max(ROUND_S, STEPS_SHARE * (time.monotonic() - begun))
        for key in self._recent.in_turn(records, now):
            left_s -= self._step_model(records[key], bool(behind - {key}))
            if left_s <= 0.0:
                break
        return bool(self._busy)

    def _grows_elsewhere(self, record: ModelRecord) -> bool:
        """Move a large model to a process of its own; return whether it grows there, or has been stopped."""
        apart, key = self._apart, record.key
        if apart is None:
            return False
        try:
            is_stopped = 0 < apart.most_bytes <= stopped_above(record.report)
            if not (is_stopped or self._is_large(record, apart.most_bytes)):
                return False
        except Exception:  # the model is damaged, which its step reports
            return False
        if not is_stopped:
            if key in self._models:
                self._models[key].save_growth()
            apart.add_model(key, record.name)
            self._saved_apart[key] = SavedGrowth(self._store, record)
        self._busy.discard(key)
        self._drop_folder(key)
        self._forget_turns(key)
        self._share.return_later(key)
        return True

    def _is_large(self, record: ModelRecord, most_bytes: int) -> bool:
        """Return whether a model is large, or its last steps were long; `most_bytes` is its memory limit, 0 if none."""
        key = record.key
        most = min(LARGE_MODEL, most_bytes // BYTES_OF_LARGE) if most_bytes else LARGE_MODEL
        if key not in self._sizes:
            specification = specification_of(record.initial_specification)
            self._sizes[key] = len(specification.attributes) * specification.frame.size
        return record.instance_count * self._sizes[key] >= most or self._long_steps.get(key, 0) >= LONG_STEPS

    def _follow_processes(self) -> None:
        """Follow the processes of large models, and report and stop models that take too much memory."""
        if self._apart is None:
            return
        for exceeded in self._apart.collect_exceeded():
            key, model, most_bytes = exceeded.key, exceeded.name, self._apart.most_bytes
            with suppress(NotFound, Fenced):  # the model was deleted, or another grower has it
                record = self._store.get_model(model)
                if record.key == key:
                    fence, report = self._share.get_fence(key, model), with_stop(record.report, most_bytes)
                    self._store.replace_report(model, report, key=key, fence=fence)
                    _log.error(
                        "model %s takes %.0f MB and is grown no further: %s",
                        *(model, exceeded.used_bytes / 1e6, stop_text(most_bytes)),
                    )
            self._apart.drop_model(key)
        before, self._damaged_apart = self._damaged_apart, self._apart.damaged
        for name in {*before, *self._damaged_apart}:
            if (reason := self._damaged_apart.get(name, "")) != before.get(name):
                self._notify_damage(name, reason)

    def _follow_changes(self) -> None:
        """Read which models changed; models that failed wait until they are tried again."""
        if (members := self._share.members) is not self._members:
            for key in self._apart.keys if self._apart is not None else ():
                if not self._share.is_responsible(key):
                    self._forget_model(key)
            self._share.release_others()  # first, so that it is tried again if the store fails
            self._members, self._seen = members, 0  # models that belonged to others count as changed
        for change in self._store.changes(self._seen):
            self._seen = change.number
            if change.tree_version is None:
                self._forget_gone(change.key)
            elif not self._share.is_responsible(change.key):
                self._forget_model(change.key)
            elif self._apart is not None and change.key in self._apart:
                self._apart.note_change(change.key)
            elif change.key not in self._failures:
                folding = self._models.get(change.key)
                if folding is None or not folding.is_resting(change):  # otherwise it waits until `wake_at`
                    self._busy.add(change.key)

    @property
    def is_settled(self) -> bool:
        """True if the members have not changed since the last round, and there is no news of processes."""
        if self._apart is not None and self._apart.has_news:
            return False
        return self._share.members is self._members

    def _forget_model(self, key: int) -> None:
        self._share.return_later(key)
        self._busy.discard(key)
        self._drop_folder(key)
        if self._apart is not None:
            self._apart.drop_model(key)
        self._saved_apart.pop(key, None)
        self._forget_damage(key)
        self._forget_turns(key)
        self._failures.pop(key, None)

    def _forget_turns(self, key: int) -> None:
        self._recent.forget_model(key)
        for known in (self._wake_at, self._long_steps, self._sizes):
            known.pop(key, None)

    def _forget_gone(self, key: int) -> None:
        """Forget a model that was deleted, with its saved growth."""
        if key in self._models:
            self._models[key].forget_saved()
        saved = self._saved_apart.get(key)
        self._forget_model(key)
        if saved is not None:  # its process has ended, so it does not write the file again
            saved.remove_file()
        self._share.drop_model(key)

    def _forget_damage(self, key: int) -> None:
        if (name := self._damaged.pop(key, None)) is not None:
            self._notify_damage(name, "")

    def _drop_folder(self, key: int) -> None:
        """Drop the folded state of a model, and stop learning it."""
        folding = self._models.pop(key, None)
        if folding is not None:
            folding.close()

    def _step_model(self, record: ModelRecord, others_behind: bool) -> float:
        """Take a step of a model; return the seconds that it took."""
        key = record.key
        begun, computed = time.monotonic(), time.thread_time()
        self._busy.discard(key)
        self._wake_at.pop(key, None)
        self._notify(record.name)
        try:
            folding = self._folder_of(record)
            if folding.run_step(record, others_behind):
                self._busy.add(key)
        except Fenced:  # if this grower is responsible now, the other will soon release the model
            _log.debug("model %s is grown by another grower", record.name)
            self._forget_model(key)
            if self._share.is_responsible(key):
                self._wake_at[key] = time.monotonic() + TAKE_RETRY_S
        except Exception as error:
            self._retry_later(record, error)
        else:
            self._failures.pop(key, None)
            self._forget_damage(key)
            if folding.wake_at < math.inf:
                self._wake_at[key] = folding.wake_at
        self._notify("")
        now, computed = time.monotonic(), time.thread_time() - computed
        self._recent.add_seconds(key, computed, now)
        self._long_steps[key] = self._long_steps.get(key, 0) + 1 if computed >= LONG_STEP_S else 0
        return now - begun

    def close(self) -> None:
        """End the processes of learners and of large models."""
        self._learners.close()
        if self._apart is not None:
            self._apart.close()

    def save_growth(self) -> None:
        """Save the folded states of all models, so that other processes can continue from them."""
        for folding in self._models.values():
            folding.save_growth()

    @property
    def wake_at(self) -> float:
        """Monotonic time when the next round has work, even if the store does not change until then."""
        apart = math.inf if self._apart is None else self._apart.wake_at
        return min(apart, *self._wake_at.values(), math.inf)

    def _is_behind(self, record: ModelRecord) -> bool:
        folding = self._models.get(record.key)
        if folding is None:
            return record.sequence_committed > 0
        return folding.is_behind(record) and not folding.may_rest(record)

    def _folder_of(self, record: ModelRecord) -> LogFolder:
        folding = self._models.get(record.key)
        if folding is not None and folding.is_ahead(record):
            end = record.sequence_committed + 1
            _log.error(
                "model %s: the log ends before event %d, which was folded; it is read anew", record.name, end
            )
            folding.forget_saved()
            self._drop_folder(record.key)
            folding = None
        if folding is not None and folding.extensions != record.shapes.extensions:
            _log.info("model %s: it has other classes or attributes; its log is read again", record.name)
            self._drop_folder(record.key)
            folding = None
        if folding is None:
            pace = (self._keep, self._interval_s, self._agenda_share)
            if learns_again(specification_of(record.initial_specification)):
                folding = RelearningFolder(self._store, record, *pace, learners=self._learners)
            else:
                folding = LogFolder(self._store, record, *pace)
            folding.fence = partial(self._share.get_fence, record.key, record.name)
            self._models[record.key] = folding
        return folding

    def _retry_later(self, record: ModelRecord, error: Exception) -> None:
        """Log the error, and try again after a growing delay. A model that was deleted meanwhile is not a failure."""
        try:
            gone = self._store.get_model(record.name).key != record.key
        except NotFound:
            gone = True
        except StorageError:
            gone = False
        if gone:
            self._forget_gone(record.key)
            return
        count = self._failures[record.key] = self._failures.get(record.key, 0) + 1
        last = STORE_RETRY_S if isinstance(error, StorageError) else LAST_RETRY_S
        delay = growing_pause_s(count, FIRST_RETRY_S, last)
        self._wake_at[record.key] = time.monotonic() + delay
        if isinstance(error, StorageError | LearningFailedError):  # the folded state is still right
            _log.error("model %s cannot be grown: %s; trying again in %.1f s", record.name, error, delay)
            return
        if record.key in self._models:
            self._models[record.key].forget_saved()
        self._drop_folder(record.key)
        if found := find_damage(self._store, record.name):
            if count == 1:
                _log.error("model %s cannot be grown: %s; see quercus check", record.name, found)
            self._wake_at[record.key] = time.monotonic() + LAST_RETRY_S
            self._damaged[record.key] = record.name
            self._notify_damage(record.name, found)
            return
        _log.error("model %s cannot be grown; trying again in %.1f s", record.name, delay, exc_info=error)


def run_grower(
    store: Store,
    poll_s: float,
    grower: Grower,
    learners: LearnerPool,
    pulse: HeartbeatWriter,
    may_end: Callable[[], bool] = lambda: False,
) -> bool:
    """Grow until `may_end`: run rounds while there is work, then wait for changes of the store or the end of learning.

    If the store does not change for a while, it is polled more rarely; the server wakes the grower after a change.

    Returns
    -------
    bool
        Whether there is work left at the end.
    """
    delay = FIRST_RETRY_S
    while True:
        try:
            token = store.change_token()
            while is_busy := grower.run_round():
                token = store.change_token()
                if may_end():
                    break
            until, rests_at = grower.wake_at, time.monotonic() + REST_AFTER_S
            while (
                not may_end()
                and grower.is_settled
                and store.change_token() == token
                and (left := until - time.monotonic()) > 0
            ):
                pulse.report_model("")
                pause_s = poll_s if time.monotonic() < rests_at else max(poll_s, REST_POLL_S)
                if learners.wait_for_news(min(pause_s, left)):
                    break
            delay = FIRST_RETRY_S
            if may_end():
                return is_busy or until < math.inf or store.change_token() != token
        except StorageError as error:
            _log.error("the store cannot be read: %s; trying again in %.1f s", error, delay)
            pulse.report_model("")
            time.sleep(delay)
            delay = min(2 * delay, STORE_RETRY_S)


def main() -> None:
    """Run the grower until its parent ends."""
    parser = argparse.ArgumentParser(prog="quercus-grower")
    parser.add_argument("url")
    parser.add_argument("--poll-ms", type=int, default=POLL_MS.default)
    parser.add_argument("--log-level", default=LOG_LEVEL.default)
    parser.add_argument("--log-format", default=LOG_FORMAT.default)
    parser.add_argument("--keep-trees", type=int, default=KEEP_TREES.default)
    parser.add_argument("--snapshot-interval-s", type=float, default=SNAPSHOT_INTERVAL_S.default)
    parser.add_argument("--agenda-share", type=float, default=AGENDA_SHARE.default)
    parser.add_argument("--member", default="", help="identity among the growers that share the store")
    parser.add_argument("--ttl-s", type=float, default=GROWER_TTL_S.default)
    parser.add_argument("--max-model-memory-bytes", type=int, default=0)
    parser.add_argument("--only", type=int, help="number of the one model that this process grows")
    arguments = parser.parse_args()
    logs.set_up_logging(arguments.log_level, arguments.log_format)
    choose_inherited_plugins()
    member = arguments.member or uuid.uuid4().hex
    apart = None
    if arguments.only is None:
        same = ["--member", member, "--poll-ms", str(arguments.poll_ms), "--log-format", arguments.log_format,
                "--keep-trees", str(arguments.keep_trees), "--agenda-share", str(arguments.agenda_share),
                "--snapshot-interval-s", str(arguments.snapshot_interval_s)]  # fmt: skip
        command = [sys.executable, "-m", "quercus.server.growth.grower", arguments.url, *same]
        apart = ModelProcesses(command, arguments.max_model_memory_bytes)
    learners = LearnerPool(
        arguments.url, arguments.log_format, most=LEARNERS if arguments.only is None else 1
    )
    is_leaving = threading.Event()

    def on_line(line: str) -> None:
        if line == LEAVE:
            is_leaving.set()
        elif line == LOOK:
            learners.end_wait()
        elif line in LOG_LEVELS:
            logs.set_level(line)
            learners.set_log_level(line)
            if apart is not None:
                apart.set_log_level(line)

    end_with_parent(on_line)
    keep_small()
    # Ctrl-C and the end of a terminal reach the whole process group; the server decides what happens
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(NICENESS)  # for a process of one model, on top of that of its grower
    output = private_output()

    def learning_queue() -> LearningQueue:
        queue = learners.learning_queue()
        if apart is None:
            return queue
        return LearningQueue((*queue.learning, *apart.working), (*queue.waiting, *apart.waiting))

    pulse = HeartbeatWriter(output.fileno(), learning_queue)
    try:  # a store made now would hide the one that is put back
        store = Store.open(arguments.url, create=False)
    except StorageError as error:
        _log.error("the store cannot be opened: %s", error)
        sys.exit(1)
    share: SoleShare | None = None
    group = None
    if arguments.only is not None:
        share = one = OneModelShare(store, member, arguments.only)
    else:
        remove_orphaned_files(store)
        if store.may_be_shared:
            place = f"{socket.gethostname()[:100]}, process {os.getpid()}"
            share = group = GrowerShare(store, member, place, arguments.ttl_s)
            group.start()
            # on SIGTERM, leave the group, so that others need not wait until the membership ends
            signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    grower = Grower(
        store,
        arguments.keep_trees,
        arguments.snapshot_interval_s,
        arguments.agenda_share,
        learners=learners,
        notify=pulse.report_model,
        notify_damage=pulse.report_damage,
        share=share,
        apart=apart,
    )
    run = partial(run_grower, store, arguments.poll_ms / 1000, grower, learners, pulse)
    try:
        if arguments.only is None:
            run()
        else:
            is_work_left = run(lambda: one.is_gone or is_leaving.is_set())
            if not one.is_gone:
                grower.save_growth()
                sys.exit(WORK_LEFT if is_work_left else NO_WORK_LEFT)
    finally:
        grower.close()
        if group is not None:
            group.close()


if __name__ == "__main__":
    main()
