"""Events as signed messages: CloudEvents 1.0 in JSON, signed according to Standard Webhooks."""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import math
from collections.abc import Mapping
from datetime import UTC
from typing import Any, Final
from urllib.parse import quote

from quercus.client.errors import invalid
from quercus.client.results import LogEvent
from quercus.client.values import json_of

SECRET_PREFIX: Final = "whsec_"  # noqa: S105 - the prefix of secrets
LEAST_SECRET_BYTES: Final = 24
MOST_SECRET_BYTES: Final = 64
CONTENT_TYPE: Final = "application/cloudevents+json"


class Signer:
    """Signs messages with a secret that it shares with the receiver.

    Parameters
    ----------
    secret
        ``whsec_`` and base64 of 24 to 64 random bytes.

    Examples
    --------
    >>> signer = Signer("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    >>> signer.headers("msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')["webhook-signature"]
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE='
    """

    def __init__(self, secret: str) -> None:
        given = secret.strip()
        try:
            key = base64.b64decode(given.removeprefix(SECRET_PREFIX), validate=True)
        except (binascii.Error, ValueError):
            key = b""
        if not given.startswith(SECRET_PREFIX) or not LEAST_SECRET_BYTES <= len(key) <= MOST_SECRET_BYTES:
            raise invalid(
                "secret",
                f"must be {SECRET_PREFIX} and base64 of {LEAST_SECRET_BYTES} to {MOST_SECRET_BYTES} random bytes",
            )
        self._key = key

    def headers(self, identifier: str, timestamp: int, body: bytes) -> dict[str, str]:
        """Return the headers of a message: its id, the time (seconds since 1970), and the signature."""
        signed = b"%s.%d.%s" % (identifier.encode(), timestamp, body)
        signature = base64.b64encode(hmac.digest(self._key, signed, "sha256")).decode()
        return {
            "webhook-id": identifier,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": f"v1,{signature}",
        }


def event_message(event: LogEvent) -> bytes:
    """Return the body of a message about an event."""
    evidence = event.evidence
    data: dict[str, Any] = {
        "model": event.model,
        "model_uid": event.model_uid,
        "sequence": event.sequence,
        "instance": event.instance,
        "author": evidence.author,
        "label": _plain_label(evidence.label),
        "reliability": evidence.reliability,
        "query": evidence.query,
        "comment": evidence.comment,
        "took_s": evidence.took_s,
        "conflict": event.conflict,
    }
    if event.values is not None:
        data["values"] = {  # JSON has no infinite numbers: they become text
            name: str(value) if isinstance(value, float) and not math.isfinite(value) else json_of(value)
            for name, value in event.values.items()
        }
    envelope = {
        "specversion": "1.0",
        "id": event.id,
        "source": f"/models/{event.model}",
        "type": f"quercus.{event.kind}",
        "time": evidence.created_at.astimezone(UTC).isoformat().replace("+00:00", "Z"),
        "datacontenttype": "application/json",
        "data": data,
    }
    if event.instance:
        envelope["subject"] = quote(event.instance, safe="")
    return json.dumps(envelope, ensure_ascii=False, allow_nan=False).encode()


def _plain_label(label: object) -> Any:
    """Return the JSON form of a label: text for a class, a list for a set, an object for plausibilities or masses."""
    if isinstance(label, frozenset):
        return sorted(label)
    if isinstance(label, Mapping):
        if any(isinstance(key, frozenset) for key in label):
            return {"masses": [{"classes": sorted(focal), "mass": mass} for focal, mass in label.items()]}
        return {"plausibilities": dict(label)}
    return label
