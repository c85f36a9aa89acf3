"""A grower that takes long over a tree: ``python grower_worker.py URL MEMBER TTL_S MODEL fenced|unfenced``.

It becomes a member, takes the model, says so, computes until it hears a line, and publishes.
"""

import json
import sys

from quercus.server.growth.sharing import GrowerShare
from quercus.storage import AgendaEntry, Fenced, Store, StoreError


def say(**words: object) -> None:
    print(json.dumps(words), flush=True)


def main(url: str, member: str, ttl_s: str, model: str, how: str) -> None:
    with Store.open(url, busy_timeout_s=2.0) as store:
        share = GrowerShare(store, member, f"worker {member}", float(ttl_s))
        share.start()
        record = store.get_model(model)
        fence = share.get_fence(record.key, model)
        say(epoch=fence.epoch, as_of=record.sequence_committed)
        for line in sys.stdin:  # it computes, for as long as the test wants
            given = fence if how == "fenced" else None
            agenda = [AgendaEntry(1, b"stale", b"")]
            as_of = store.get_model(model).sequence_committed if line.strip() == "newest" else 2
            try:
                version = store.publish(
                    model, as_of=as_of, snapshot=member.encode(), agenda=agenda, key=record.key, fence=given
                )
                say(version=version)
            except Fenced as error:
                say(fenced=str(error))
            except StoreError as error:
                say(trouble=str(error))


if __name__ == "__main__":
    main(*sys.argv[1:])
