"""An observer within the database: which program published each tree, and who had the model at that moment.

Programs are told apart by the `application_name` of their connections. Triggers note which program renews which
member, and with each tree its program and the member that has taken the model. A tree of another program than that of
this member came from a grower that had been succeeded, whatever the code of the growers believes.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg

_WATCH: Final = """
CREATE SCHEMA watched;
CREATE TABLE watched.member (id text PRIMARY KEY, program text NOT NULL, renewed timestamptz NOT NULL);
CREATE TABLE watched.tree (model_id bigint, version bigint, program text, owner text, epoch bigint);
CREATE FUNCTION watched.note_member() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO watched.member VALUES (NEW.id, current_setting('application_name'), clock_timestamp())
        ON CONFLICT (id) DO UPDATE SET renewed = clock_timestamp();
    RETURN NEW;
END $$;
CREATE FUNCTION watched.note_tree() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    INSERT INTO watched.tree SELECT NEW.model_id, NEW.version, current_setting('application_name'), owner, epoch
        FROM growing WHERE model_id = NEW.model_id;
    RETURN NEW;
END $$;
CREATE TRIGGER watched AFTER INSERT OR UPDATE ON grower FOR EACH ROW EXECUTE FUNCTION watched.note_member();
CREATE TRIGGER watched AFTER INSERT ON snapshot FOR EACH ROW EXECUTE FUNCTION watched.note_tree();
"""
_STALE: Final = """
SELECT model_id, version, tree.program, coalesce(member.program, 'nobody'), epoch
FROM watched.tree LEFT JOIN watched.member ON member.id = owner WHERE member.program IS DISTINCT FROM tree.program
"""
_LIVE: Final = (
    "SELECT count(DISTINCT program) FROM watched.member WHERE renewed > clock_timestamp() - interval '1 s'"
)


def watch(url: str) -> None:
    """Observe a store from now on."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(_WATCH)


def stale(connection: psycopg.Connection[Any]) -> list[str]:
    """Return, in words, the trees that were published by a program whose grower did not have the model."""
    rows = connection.execute(_STALE).fetchall()
    return [
        f"version {version} of model {model} was published by {program}, while {owner} had the model (epoch {epoch})"
        for model, version, program, owner, epoch in rows
    ]


def live(connection: psycopg.Connection[Any]) -> int:
    """Return the number of programs that have renewed a member within the last second."""
    found = connection.execute(_LIVE).fetchone()
    assert found is not None
    return int(found[0])


def counted(connection: psycopg.Connection[Any]) -> tuple[int, int]:
    """Return the number of trees, and how many times another grower took a model between two trees of it."""
    found = connection.execute(
        "SELECT count(*), count(*) FILTER (WHERE epoch > before) FROM (SELECT epoch, lag(epoch) OVER "
        "(PARTITION BY model_id ORDER BY version) AS before FROM watched.tree) AS each"
    ).fetchone()
    assert found is not None
    return int(found[0]), int(found[1])
