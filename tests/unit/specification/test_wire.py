"""The defaults in the comments of the wire format are those that the package declares."""

import re

from support.checkout import ROOT

from quercus.specification import parameters
from quercus.specification.parameter import Parameter

FIELD = re.compile(r"((?:[ ]*//[^\n]*\n)+)[ ]*(?:optional )?\w+ (\w+) = \d+;")


def test_comments_state_the_defaults() -> None:
    known = [each for each in vars(parameters).values() if isinstance(each, Parameter)]
    said = {}
    for comment, field in FIELD.findall((ROOT / "proto" / "quercus" / "v1" / "model.proto").read_text()):
        if found := re.search(r"default (\d+(?:\.\d+)?)", comment):
            said[field] = float(found[1])
    assert {"alpha", "budget", "min_instances", "warmup_rows", "level"} <= said.keys()
    for field, default in said.items():
        assert default in [each.default for each in known if each.name == field], field
