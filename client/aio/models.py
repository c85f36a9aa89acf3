"""The calls for the server itself and for models."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Collection, Sequence

from quercus.belief.errors import shown
from quercus.client.aio.connection import Connection
from quercus.client.comparing import same_model
from quercus.client.errors import AlreadyExists, invalid
from quercus.client.memory import RowFormat
from quercus.client.messages import filled, to_duration
from quercus.client.resources import model_resource
from quercus.client.results import AuditEntry, Caller, Learner, Model, NewToken, Status, Token
from quercus.client.rows import former_widths
from quercus.client.specification_messages import (
    Change,
    message_of_changes,
    message_of_specification,
    update_request,
)
from quercus.client.specifications import Specification
from quercus.specification.attributes import Attribute, Nominal, Numeric
from quercus.v1 import admin_pb2, model_pb2, values_pb2


class ModelCalls(Connection):
    """The calls for the server itself and for models."""

    async def status(self) -> Status:
        """Return the state of the server."""
        return Status.from_message(await self._call(admin_pb2.GetStatusRequest()))

    async def caller(self) -> Caller:
        """Return the name and the permissions of the caller, as given by this client's token."""
        return Caller.from_message(await self._call(admin_pb2.GetCallerRequest()))

    async def set_log_level(self, level: str) -> str:
        """Set the level of the server's log (debug, info, warning, error) until it ends; return the previous level."""
        previous: str = (await self._call(filled(admin_pb2.SetLogLevelRequest, level=level))).previous
        return previous

    async def create_token(
        self,
        caller: str,
        roles: Collection[str],
        *,
        models: Collection[str] | None = None,
        lifetime_s: float | None = None,
    ) -> NewToken:
        """Create a token on a server that requires tokens; its secret is only in the returned value.

        Parameters
        ----------
        caller
            Name of its owner: 1 to 63 characters of ``A-Z a-z 0-9 . _ @ -``, beginning with a letter or digit.
        roles
            Some of reader, sensor, labeller, corrector and operator.
        models
            Names of the models that it may use, at least one; ``None``: all.
        lifetime_s
            Seconds until it expires; ``None``: never. It cannot expire later than the token that creates it.
        """
        request = filled(
            admin_pb2.CreateTokenRequest,
            caller=caller,
            roles=list(roles),
            all_models=models is None,
            models=list(models or ()),
            lifetime=None if lifetime_s is None else to_duration(lifetime_s, "lifetime_s"),
        )
        return NewToken.from_message(await self._call(request))

    def tokens(self) -> AsyncIterator[Token]:
        """Yield all tokens, oldest first, including those that are no longer valid."""
        return self._list(admin_pb2.ListTokensRequest(), lambda page: map(Token.from_message, page.tokens))

    async def revoke_token(self, token_id: str) -> Token:
        """Revoke a token: its streams end, and queries leased with it are open again."""
        request = filled(admin_pb2.RevokeTokenRequest, name=f"tokens/{token_id}")
        return Token.from_message(await self._call(request))

    async def audit(self, newest: int = 50) -> tuple[AuditEntry, ...]:
        """Return the newest entries of the audit log, at most 1,000, oldest first."""
        found = await self._call(filled(admin_pb2.ListAuditEntriesRequest, newest=newest))
        return tuple(map(AuditEntry.from_message, found.entries))

    async def learners(self) -> tuple[Learner, ...]:
        """Return the learners that the server has, each with its parameters."""
        found = await self._call(model_pb2.ListLearnersRequest())
        return tuple(map(Learner.from_message, found.learners))

    async def create_model(self, name: str, specification: Specification, *, exist_ok: bool = False) -> Model:
        """Create a model.

        Parameters
        ----------
        name
            1 to 63 characters of ``a-z 0-9 _ -``, beginning with a letter.
        specification
            Attributes, classes and learner.
        exist_ok
            Return an existing model of this name, if it has the same specification.

        Raises
        ------
        AlreadyExists
            If the name is taken; with ``exist_ok``, if the existing model has another specification (the error names
            the differences).
        """
        message = message_of_specification(specification)
        request = filled(model_pb2.CreateModelRequest, model_id=name, specification=message)
        try:
            made = Model.from_message(await self._call(request))
        except AlreadyExists:
            if not exist_ok:
                raise
            return same_model(await self.get_model(name), specification)
        self._forget_model(name)
        return made

    async def get_model(self, name: str) -> Model:
        """Return the current state of a model."""
        return Model.from_message(await self._fetch_model(name))

    async def _fetch_model(self, name: str) -> model_pb2.Model:
        found: model_pb2.Model = await self._call(
            filled(model_pb2.GetModelRequest, name=model_resource(name))
        )
        self._sequences.record_uid(name, found.uid)
        return found

    async def _fetch_classes(self, model: str) -> tuple[str, ...]:
        return tuple((await self._fetch_model(model)).specification.classes)

    async def _classes_for(
        self, contour: values_pb2.Contour, model: str, classes: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Return the known classes of a model; fetch them again if a contour has more, as after an extension."""
        if len(contour.plausibilities) <= len(classes):
            return classes
        return await self._fetch_classes(model)

    def models(self) -> AsyncIterator[Model]:
        """Yield all models, in order of name."""
        return self._list(model_pb2.ListModelsRequest(), lambda page: map(Model.from_message, page.models))

    async def update_model(self, name: str, **changes: Change) -> Model:
        """Change parameters of a model, those in `quercus.specification.model.CHANGEABLE`.

        ``pruning=None`` turns pruning off, and ``max_depth=None`` removes the limit of depth.
        """
        return Model.from_message(await self._call(update_request(name, changes)))

    async def extend_model(
        self,
        name: str,
        *,
        classes: Sequence[str] = (),
        attributes: Sequence[Attribute] = (),
        request_id: str | None = None,
    ) -> Model:
        """Add classes and attributes to a model, after the existing ones.

        Rows pushed earlier have no values of the new attributes. Labels given earlier exclude the new classes, unless
        they are vacuous. The tree is grown anew; leases and open queries stay.

        Parameters
        ----------
        name
            Name of the model.
        classes, attributes
            The new ones, in order.
        request_id
            Id that makes the call idempotent: a call with the id of an earlier one changes nothing. ``None``: a new id.

        Raises
        ------
        InvalidArgument
            If the model already has a name, or a bound is exceeded; the error names the field.
        AlreadyExists
            If the earlier call with this id added something else.
        """
        for field, given in (("classes", classes), ("attributes", attributes)):
            if isinstance(given, str | Nominal | Numeric):
                raise invalid(field, f"are {shown(given)}, must be a list")
        message = message_of_changes({"classes": classes, "attributes": attributes})
        request = filled(
            model_pb2.ExtendModelRequest,
            name=model_resource(name),
            classes=message.classes,
            attributes=message.attributes,
            request_id=request_id or uuid.uuid4().hex,
        )
        extended = Model.from_message(await self._call(request))
        self._forms.forget_format(name)
        return extended

    async def delete_model(self, name: str) -> None:
        """Delete a model with its evidence, queries and trees."""
        await self._call(filled(model_pb2.DeleteModelRequest, name=model_resource(name)))
        self._forget_model(name)

    def _forget_model(self, name: str) -> None:
        """Forget everything about an earlier model of this name."""
        self._sequences.forget_model(name)
        self._forms.forget_format(name)

    async def _row_format(self, model: str) -> RowFormat:
        """Return the encoding of a model's rows, from memory or from the server."""
        form = self._forms.get_fresh(model)
        if form is not None and self._sequences.model_uid(model) in {"", form.uid}:
            return form
        current = await self.get_model(model)  # even if the name now belongs to another model
        return self._forms.remember_format(model, current.specification, current.uid, former_widths(current))
