"""The classes of a model among the choices of a labelling configuration, whatever their spelling."""

import pytest

from quercus.client.bridges.label_studio_tasks import BadTaskError, read_control


def config(*choices: str) -> str:
    inner = "".join(f'<Choice value="{choice}"/>' for choice in choices)
    return f'<View><Text name="t" value="$id"/><Choices name="q" toName="t">{inner}</Choices></View>'


def test_a_choice_is_found_in_any_spelling_and_predicted_in_its_own() -> None:
    control = read_control(config("True", "False", "unsure"), ["false", "true"])
    assert control.prediction_result(["true"])[0]["value"] == {"choices": ["True"]}
    coded = read_control(config("101.0", "102.0"), ["101", "102"])
    assert coded.prediction_result(["102"])[0]["value"] == {"choices": ["102.0"]}


def test_case_counts_where_a_class_is_no_truth_value() -> None:
    with pytest.raises(BadTaskError, match="q lacks oak"):
        read_control(config("Oak", "beech"), ["oak", "beech"])
