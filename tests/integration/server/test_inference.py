"""The Open Inference Protocol: an unchanged tritonclient gets what Classify says, bit for bit."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grpc
import numpy as np
import pytest
from support.checkout import ROOT
from support.published import published_model

from quercus.client import Between, Client, Nominal, Numeric, Specification
from quercus.inference import open_inference_pb2 as pb
from quercus.inference import open_inference_pb2_grpc
from quercus.server.gate import access

MODEL = "inferred"
NUMBERS = [0.5, 1.5, 2.5, float("nan")]
NAMES = ["red", "blue", "?", "red"]


@pytest.fixture(scope="module")
def grown(live: Any) -> str:
    """A model with a tree that splits on both attributes."""
    with Client(live.server.address) as client:
        attributes = [Nominal("hue", ["red", "blue"]), Numeric("size", edges=[1.0, 2.0])]
        client.create_model(MODEL, published_model(attributes, ["o", "s", "x"], alpha=1.0))
        rows = [[hue, size] for hue in ("red", "blue") for size in (0.5, 1.5, 2.5) for _ in range(5)]
        labels = ["o" if row[0] == "red" else "s" if row[1] < 1 else {"s", "x"} for row in rows]
        report = client.push(MODEL, rows, labels)
        for update in client.watch(MODEL):
            if update.tree.as_of >= report.committed_sequence:
                break
    return str(live.server.address)


def triton(address: str, **asked: Any) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, ROOT / "tests" / "support" / "triton_classify.py", address],
        input=json.dumps({"model": MODEL} | asked),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def tensor(name: str, datatype: str, values: list[Any], shape: list[int] | None = None) -> dict[str, Any]:
    return {"name": name, "datatype": datatype, "values": values, "shape": shape or [len(values)]}


def wanted(address: str, rows: list[Any]) -> dict[str, Any]:
    with Client(address) as client:
        said = client.classify(MODEL, rows)
    sets = [name in said.label_set(k) for k in range(len(rows)) for name in said.classes]
    return {
        "label": said.labels,
        "label_index": said.indices.tolist(),
        **{
            name: [each.hex() for each in table.ravel().tolist()]
            for name, table in (
                ("probabilities", said.theta),
                ("belief", said.belief),
                ("plausibility", said.plausibility),
            )
        },
        "set": sets,
    }


def test_columns_a_matrix_and_the_asyncio_client_say_what_classify_says(grown: str) -> None:
    rows = [[None if hue == "?" else hue, x] for hue, x in zip(NAMES, NUMBERS, strict=True)]
    expected = wanted(grown, rows)
    columns = [tensor("hue", "BYTES", NAMES), tensor("size", "FP64", NUMBERS, [4, 1])]
    found = triton(grown, inputs=columns)
    assert found["outputs"] == expected
    assert found["shapes"] == {
        "label": [4],
        "label_index": [4],
        "probabilities": [4, 3],
        "belief": [4, 3],
        "plausibility": [4, 3],
        "set": [4, 3],
    }
    assert (found["id"], found["classes"], found["live"], found["ready"]) == (
        "r-1",
        ["o", "s", "x"],
        True,
        True,
    )
    assert found["platform"] == "quercus_abc45"
    assert found["inputs"] == [["hue", "BYTES", [-1]], ["size", "FP64", [-1]]]
    indices = [{"red": 0.0, "blue": 1.0}.get(hue, float("nan")) for hue in NAMES]
    matrix = tensor("anything", "FP64", [list(row) for row in zip(indices, NUMBERS, strict=True)], [4, 2])
    assert triton(grown, inputs=[matrix])["outputs"] == expected
    assert triton(grown, inputs=columns, aio=True)["outputs"] == expected


@pytest.mark.parametrize("form", ["json", "bytes"])
def test_an_unchanged_client_by_http_gets_what_classify_says(grown: str, live: Any, form: str) -> None:
    hues, sizes = ["red", "blue", "red|blue", "green"], [0.5, 1.5, 2.5, 0.5]
    rows = [{"hue": set(hue.split("|")), "size": x} for hue, x in zip(hues, sizes, strict=True)]
    rows[3]["hue"] = "green"
    expected = wanted(grown, rows)
    columns = [tensor("hue", "BYTES", hues), tensor("size", "FP64", sizes, [4, 1])]
    address = f"127.0.0.1:{live.http.port}"
    for wished in ([], ["label", "belief"]):
        found = triton(address, inputs=columns, http=form, outputs=wished)
        assert found["outputs"] == {name: expected[name] for name in wished or expected}
        assert {bool(size) for size in found["sizes"]} == {form == "bytes" or not wished}
    assert (found["id"], found["classes"], found["live"], found["ready"]) == (
        "r-1",
        ["o", "s", "x"],
        True,
        True,
    )
    assert (found["platform"], found["server"]) == ("quercus_abc45", ["binary_tensor_data"])
    assert found["inputs"] == [["hue", "BYTES", [-1]], ["size", "FP64", [-1]]]


def test_tensors_as_json_may_be_nested_and_have_missing_values(grown: str, live: Any) -> None:
    expected = wanted(grown, [["red", None], [None, 1.5]])
    for data in ([[0, None], [None, 1.5]], [0.0, None, None, 1.5]):
        said = infer(
            live, {"id": "a", "inputs": [{"name": "x", "datatype": "FP64", "shape": [2, 2], "data": data}]}
        )
        found = {each["name"]: each["data"] for each in said.json["outputs"]}
        assert (found["label"], found["set"]) == (expected["label"], expected["set"])
        assert [x.hex() for x in found["belief"]] == expected["belief"]
        assert (said.json["id"], said.json["model_name"]) == ("a", MODEL)
        assert json.loads(said.json["parameters"]["classes"]) == ["o", "s", "x"]


def infer(live: Any, body: Any, path: str = f"/v2/models/{MODEL}/infer", **headers: str) -> Any:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return live.http.ask("POST", path, data, **headers)


HUE = {"name": "hue", "datatype": "BYTES", "shape": [1], "data": ["red"]}
SIZE = {"name": "size", "datatype": "FP64", "shape": [1], "data": [1.0]}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"[]", "request: is [], must be a JSON object"),
        (b"{", "request: cannot be read"),
        ({}, "inputs: is missing"),
        ({"inputs": [], "nputs": 1}, "request.nputs: is not known; an object here has id, parameters, inputs, outputs"),
        ({"inputs": [HUE | {"dat": 1}]}, "inputs[0].dat: is not known; an object here has name, shape, datatype"),
        ({"inputs": [HUE | {"data": [1]}]}, "inputs[0].data[0]: is 1, must be a text"),
        ({"inputs": [HUE | {"data": "red"}]}, "inputs[0].data: is 'red', must be a list"),
        ({"inputs": [HUE | {"name": 7}]}, "inputs[0].name: is 7, must be a text"),
        ({"inputs": [HUE | {"shape": ["1"]}]}, "inputs[0].shape: cannot be read"),
        ({"inputs": [SIZE | {"data": ["x"]}]}, "inputs[0].data: cannot be read"),
        ({"inputs": [SIZE | {"data": [[1], 2]}, HUE]}, "inputs[0].data: "),
        ({"inputs": [SIZE | {"datatype": "FP16"}]}, "inputs[0].datatype: is 'FP16'"),
        ({"inputs": [SIZE | {"datatype": "INT8", "data": [300]}, HUE]}, "does not fit into INT8"),
        ({"inputs": [SIZE | {"datatype": "INT32", "data": [2**31]}, HUE]}, "inputs[0].data: cannot be read"),
        ({"inputs": [SIZE | {"data": [1.0, 2.0]}, HUE]}, "has 2 elements, its shape [1] needs 1"),
        ({"inputs": [SIZE]}, "inputs: have no 'hue'"),
        ({"inputs": [SIZE | {"parameters": {"binary_data_size": 8}}]}, "is given, but so is binary_data_size"),
        ({"inputs": [SIZE, HUE], "parameters": {"min_sequence": "x"}}, "parameters['min_sequence']"),
        ({"inputs": [SIZE, HUE], "parameters": {"a": None}}, "must be a truth value, a number or a text"),
        ({"inputs": [SIZE, HUE], "outputs": [{"name": "nothing"}]}, "outputs[0].name: is 'nothing', must be one of"),
        ({"id": "\ud800", "inputs": [SIZE, HUE]}, "id: "),
    ],
)  # fmt: skip
def test_wrong_tensors_by_http_are_refused_in_words(grown: str, live: Any, body: Any, said: str) -> None:
    if isinstance(body, dict) and body.get("id"):
        body = json.dumps(body).replace("\\\\", "\\").encode()
    found = infer(live, body)
    assert found.status == 400, found
    assert said in found.json["error"]
    assert (found.json["code"], found.json["message"]) == ("invalid_argument", found.json["error"])


def test_bytes_behind_the_json_are_those_that_inputs_name(grown: str, live: Any) -> None:
    head = json.dumps({"inputs": [
        {"name": "x", "datatype": "FP64", "shape": [1, 2], "parameters": {"binary_data_size": 16}}
    ], "parameters": {"binary_data_output": True}}).encode()  # fmt: skip
    blob = np.array([0.0, 1.5]).tobytes()
    length = {"inference_header_content_length": str(len(head))}
    said = infer(live, head + blob, **length)
    size = int(said.headers["inference-header-content-length"])
    outputs = json.loads(said.body[:size])["outputs"]
    assert sum(each["parameters"]["binary_data_size"] for each in outputs) == len(said.body) - size
    for body, headers, words in (
        (head + blob[:-1], length, "is 16, but 15 bytes are left after the JSON"),
        (head + blob + b"x", length, "has 1 bytes after the JSON that no input takes"),
        (head, {"inference_header_content_length": "9999"}, "is 9999, but the body has"),
        (head, {"inference_header_content_length": "x"}, "must be the number of bytes of the JSON"),
        (head, {"content_type": "text/plain"}, "content-type: is 'text/plain'"),
    ):
        assert words in infer(live, body, **headers).json["error"]


def test_the_pages_of_the_protocol_by_http(grown: str, live: Any) -> None:
    http = live.http
    assert http.get("/v2/health/live").json == {"live": True}
    assert http.get("/v2/health/ready").json == {"ready": True}
    assert http.get("/v2").json["name"] == "quercus"
    assert http.get(f"/v2/models/{MODEL}").json["inputs"][1] == {
        "name": "size",
        "datatype": "FP64",
        "shape": [-1],
    }
    version = http.get(f"/v2/models/{MODEL}").json["versions"][0]
    assert http.get(f"/v2/models/{MODEL}/versions/{version}/ready").json == {"name": MODEL, "ready": True}
    for path in ("/v2/models/none", f"/v2/models/{MODEL}/versions/99999", "/v2/models/none/ready"):
        assert (http.get(path).status, http.get(path).json["code"]) == (404, "not_found"), path
    assert http.get("/v2/models").status == 404
    wrong = http.get(f"/v2/models/{MODEL}/infer")
    assert (wrong.status, wrong.headers["allow"]) == (405, "POST")
    assert http.get("/v2/models/a%2Fb").status == 404


UNKNOWN_HUES = tensor("hue", "BYTES", ["?", ""])


def test_numbers_of_every_size_and_outputs_on_request(grown: str) -> None:
    expected = wanted(grown, [[None, 1.0], [None, 3.0]])
    for datatype in ("FP32", "INT64", "INT32", "UINT8"):
        found = triton(
            grown, inputs=[tensor("size", datatype, [1, 3]), UNKNOWN_HUES], outputs=["belief", "label"]
        )
        assert found["outputs"] == {"belief": expected["belief"], "label": expected["label"]}


def test_uncertain_values_are_read_as_in_files(grown: str) -> None:
    rows = [
        {"hue": {"red", "blue"}, "size": Between(0.5, 1.5)},
        {"hue": "green", "size": 2.5},
        {"hue": "blue", "size": None},
    ]
    columns = [
        tensor("hue", "BYTES", ["red|blue", "green", "blue"]),
        tensor("size", "BYTES", ["0.5..1.5", "2.5", ""]),
    ]
    assert triton(grown, inputs=columns)["outputs"] == wanted(grown, rows)


def test_names_that_the_model_has_never_seen_are_told(grown: str) -> None:
    columns = [
        tensor("hue", "BYTES", ["red|mauve", "green", "blue", "green"]),
        tensor("size", "FP64", [1.0] * 4),
    ]
    (said,) = triton(grown, inputs=columns)["unseen"]
    assert said == {
        "attribute": "hue",
        "rows": 3,
        "names": 2,
        "examples": ["mauve", "green"],
        "rows_beyond": 0,
    }
    known = [tensor("hue", "BYTES", ["red", "?"]), tensor("size", "FP64", [1.0] * 2)]
    assert triton(grown, inputs=known)["unseen"] == []


def test_tokens_decide(start_live: Callable[..., Any], tmp_path: Path) -> None:
    live = start_live(tmp_path / "store.db", access="tokens")
    tokens, address = live.server.core.store.access, live.server.address
    reader = access.issue_token(tokens, "the-reader", ["reader"])[0]
    other = access.issue_token(tokens, "other", ["reader"], models={"another"})[0]
    labeller = access.issue_token(tokens, "the-labeller", ["labeller"])[0]
    operator = access.issue_token(tokens, "the-operator", ["operator"])[0]
    with Client(address, token=operator) as client:
        client.create_model(MODEL, Specification([Numeric("size")], ["o", "s"]))
        report = client.push(MODEL, [[1.0], [2.0]])
        next(each for each in client.watch(MODEL) if each.tree.as_of >= report.committed_sequence)
    asked = {"inputs": [tensor("size", "FP64", [1.0])]}
    assert triton(address, token=reader, **asked)["outputs"]["label"] == ["o"]
    assert "PERMISSION_DENIED" in triton(address, token=labeller, **asked)["error"]
    assert "not for the model" in triton(address, token=other, **asked)["message"]
    assert "UNAUTHENTICATED" in triton(address, **asked)["error"]
    channel = grpc.insecure_channel(address)
    stub = open_inference_pb2_grpc.GRPCInferenceServiceStub(channel)
    metadata = (("authorization", f"Bearer {other}"),)
    for call, request in (
        (stub.ModelReady, pb.ModelReadyRequest(name=MODEL)),
        (stub.ModelMetadata, pb.ModelMetadataRequest(name=MODEL)),
        (stub.ModelInfer, pb.ModelInferRequest(model_name=MODEL)),
    ):
        with pytest.raises(grpc.RpcError) as caught:
            call(request, metadata=metadata, timeout=30)
        assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    channel.close()


def typed(
    name: str, datatype: str, shape: list[int], **contents: Any
) -> pb.ModelInferRequest.InferInputTensor:
    return pb.ModelInferRequest.InferInputTensor(
        name=name, datatype=datatype, shape=shape, contents=pb.InferTensorContents(**contents)
    )


SIZE = typed("size", "FP64", [1], fp64_contents=[1.0])
HUE = typed("hue", "BYTES", [1], bytes_contents=[b"?"])
OTHER = typed("id", "INT64", [1], int64_contents=[7])
RAW = pb.ModelInferRequest.InferInputTensor(name="size", datatype="FP64", shape=[2])


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({}, "inputs", "is empty"),
        ({"inputs": [typed("volume", "FP64", [1], fp64_contents=[1.0])]}, "inputs[0].name", "must be an attribute"),
        ({"inputs": [SIZE, SIZE]}, "inputs[1].name", "the same as an earlier one"),
        ({"inputs": [typed("size", "FP16", [1])]}, "inputs['size'].datatype", "must be one of BYTES, FP64"),
        ({"inputs": [typed("size", "FP64", [2], fp64_contents=[1.0])]}, "inputs['size'].contents", "needs 2"),
        ({"inputs": [typed("size", "FP64", [1], fp32_contents=[1.0])]}, "inputs['size'].contents", "fp64_contents"),
        ({"inputs": [typed("size", "FP64", [0])]}, "inputs[0].shape[0]", "is 0, must be 1 to"),
        ({"inputs": [typed("size", "FP64", [-1])]}, "inputs[0].shape[0]", "is -1, must be 1 to"),
        ({"inputs": [typed("size", "FP64", [-1, 1])]}, "inputs[0].shape[0]", "is -1, must be 1 to"),
        ({"inputs": [SIZE, typed("hue", "BYTES", [-(2**63)])]}, "inputs[1].shape[0]", "must be 1 to"),
        ({"inputs": [typed("m", "FP64", [-1, 2])]}, "inputs[0].shape[0]", "is -1, must be 1 to"),
        ({"inputs": [typed("m", "FP64", [1, -2])]}, "inputs['m'].shape[1]", "is -2, the model has 2"),
        ({"inputs": [typed("size", "FP64", [1, 1, 1], fp64_contents=[1.0])]}, "inputs['size'].shape", "[n] or [n, 1]"),
        ({"inputs": [typed("size", "FP64", [100_000_000])]}, "inputs[0].shape[0]", "max_batch_rows"),
        ({"inputs": [typed("hue", "FP64", [1], fp64_contents=[float("inf")])]}, "inputs['hue'][0]", "is not a name"),
        ({"inputs": [SIZE]}, "inputs", "have no 'hue': send a tensor of ? or NaN"),
        ({"inputs": [SIZE, OTHER]}, "inputs[1].name", "must be an attribute"),
        ({"inputs": [typed("hue", "BYTES", [1], bytes_contents=[b"\xff"])]}, "inputs['hue'][0]", "which is not UTF-8"),
        ({"inputs": [typed("size", "BYTES", [1], bytes_contents=[b"x"])]}, "inputs['size'][0]", "must be a number"),
        ({"inputs": [typed("size", "BYTES", [1], bytes_contents=[b"3..2"])]}, "inputs['size'][0]", "rising order"),
        ({"inputs": [HUE, typed("size", "FP64", [1], fp64_contents=[float("inf")])]}, "inputs['size']", "finite"),
        ({"inputs": [typed("m", "FP64", [1, 3], fp64_contents=[0.0] * 3)]}, "inputs['m'].shape[1]", "2 attributes"),
        ({"inputs": [typed("m", "FP64", [1, 2], fp64_contents=[7.0, 0.0])]}, "inputs['m']", "must be an index"),
        ({"inputs": [SIZE], "outputs": [{"name": "score"}]}, "outputs[0].name", "must be one of label"),
        ({"inputs": [HUE, SIZE, OTHER], "outputs": [{"name": "mass"}]}, "outputs", "no mass functions"),
        ({"inputs": [SIZE], "raw_input_contents": [bytes(8)]}, "inputs[0].contents", "only one of the two"),
        ({"inputs": [RAW], "raw_input_contents": [bytes(8)] * 2}, "raw_input_contents", "must have one for each"),
        ({"inputs": [RAW], "raw_input_contents": [bytes(9)]}, "inputs['size'].contents", "raw bytes"),
        ({"inputs": [SIZE], "id": "x" * 201}, "id", "at most 200"),
        ({"inputs": [SIZE], "parameters": {"min_sequence": pb.InferParameter(bool_param=True)}},
         "parameters['min_sequence']", "whole number"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(
    fields: dict[str, Any], field: str, said: str, grown: str, tools: Any
) -> None:
    with grpc.insecure_channel(grown) as channel:
        stub = open_inference_pb2_grpc.GRPCInferenceServiceStub(channel)
        with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, said, field=field):
            stub.ModelInfer(pb.ModelInferRequest(model_name=MODEL, **fields), timeout=30)


@pytest.mark.parametrize(
    ("size", "field", "said"),
    [
        (typed("size", "BYTES", [3], bytes_contents=[b"1", b"2", b"two"]), "inputs['size'][2]",
         "is 'two', must be a number, ?, or a range as 2..3"),
        (typed("size", "FP64", [3], fp64_contents=[1.0, 2.0, float("-inf")]), "inputs['size']",
         "is -inf in row 2, attribute 'size', must be a finite number"),
        (typed("m", "FP64", [3, 2], fp64_contents=[0.0, 1.0, 0.0, 1.0, 7.0, 1.0]), "inputs['m']",
         "is 7.0 in row 2, attribute 'hue', must be an index into its 2 values, 0 to 1"),
    ],
)  # fmt: skip
def test_one_bad_row_is_named_by_column_row_value_and_bound(
    size: Any, field: str, said: str, grown: str, tools: Any
) -> None:
    """The protocol has no error for a row: the request is refused whole."""
    inputs = [size] if size.name == "m" else [typed("hue", "BYTES", [3], bytes_contents=[b"?"] * 3), size]
    with grpc.insecure_channel(grown) as channel:
        stub = open_inference_pb2_grpc.GRPCInferenceServiceStub(channel)
        with tools.refused(grpc.StatusCode.INVALID_ARGUMENT, said, field=field):
            stub.ModelInfer(pb.ModelInferRequest(model_name=MODEL, inputs=inputs), timeout=30)


def test_a_model_is_ready_once_it_has_a_tree(grown: str, live: Any, tools: Any) -> None:
    with Client(grown) as client, grpc.insecure_channel(grown) as channel:
        client.create_model("untaught", Specification([Numeric("size")], ["o", "s"]))
        stub = open_inference_pb2_grpc.GRPCInferenceServiceStub(channel)

        def is_ready(model: str, version: str = "") -> bool:
            return bool(stub.ModelReady(pb.ModelReadyRequest(name=model, version=version), timeout=30).ready)

        newest = stub.ModelMetadata(pb.ModelMetadataRequest(name=MODEL), timeout=30).versions[0]
        assert is_ready(MODEL)
        assert is_ready(MODEL, newest)
        with tools.refused(grpc.StatusCode.NOT_FOUND, "999", "the newest is"):
            is_ready(MODEL, "999")
        with tools.refused(grpc.StatusCode.NOT_FOUND, "nothing"):
            is_ready("nothing")
        report = client.push("untaught", [[1.0], [2.0]])
        next(each for each in client.watch("untaught") if each.tree.as_of >= report.committed_sequence)
        assert is_ready("untaught")


def test_a_model_without_a_tree_is_not_ready(start_live: Any, tmp_path: Path) -> None:
    """Without a grower, for a grower may give it one at any moment."""
    address = start_live(tmp_path / "store.db", grower=False).server.address
    with Client(address) as client, grpc.insecure_channel(address) as channel:
        client.create_model("untaught", Specification([Numeric("size")], ["o", "s"]))
        stub = open_inference_pb2_grpc.GRPCInferenceServiceStub(channel)
        for version in ("", "1"):
            request = pb.ModelReadyRequest(name="untaught", version=version)
            assert not stub.ModelReady(request, timeout=30).ready


def test_versions_and_models_that_are_not_there(grown: str, tools: Any) -> None:
    with grpc.insecure_channel(grown) as channel:
        stub = open_inference_pb2_grpc.GRPCInferenceServiceStub(channel)
        answer = stub.ModelInfer(pb.ModelInferRequest(model_name=MODEL, inputs=[SIZE, HUE]), timeout=30)
        assert not answer.raw_output_contents  # typed as the inputs
        assert np.array(answer.outputs[2].contents.fp64_contents).shape == (3,)
        same = pb.ModelInferRequest(model_name=MODEL, model_version=answer.model_version, inputs=[SIZE, HUE])
        assert stub.ModelInfer(same, timeout=30).outputs == answer.outputs
        with tools.refused(grpc.StatusCode.NOT_FOUND, "999", "the newest is"):
            stub.ModelInfer(
                pb.ModelInferRequest(model_name=MODEL, model_version="999", inputs=[SIZE, HUE]), timeout=30
            )
        with tools.refused(grpc.StatusCode.NOT_FOUND, "nothing"):
            stub.ModelMetadata(pb.ModelMetadataRequest(name="nothing"), timeout=30)
        assert stub.ServerMetadata(pb.ServerMetadataRequest(), timeout=30).name == "quercus"


def test_a_nominal_value_is_found_by_number_and_truth_value(live: Any) -> None:
    """As pandas and NumPy type the columns: codes of which one is missing are floats."""
    with Client(live.server.address) as client:
        attributes = [Nominal("code", ["101", "102"]), Nominal("on", ["false", "true"])]
        client.create_model("typed", published_model(attributes, ["o", "s"], alpha=1.0))
        rows = [[code, on] for code in (101, 102) for on in (True, False) for _ in range(10)]
        report = client.push("typed", rows, ["o" if (row[0] == 101) == row[1] else "s" for row in rows])
        next(each for each in client.watch("typed") if each.tree.as_of >= report.committed_sequence)
        expected = client.classify("typed", [["101", "true"], ["102", "true"], ["102", "false"]]).labels
        asked = [
            ("INT64", [101, 102, 102], "BOOL", [True, True, False]),
            ("FP64", [101.0, 102.0, 102.0], "BYTES", ["True", "TRUE", "False"]),
            ("BYTES", ["101.0", " 102", "102"], "BYTES", ["true", "true", "false"]),
        ]
        for kind, codes, truth, on in asked:
            columns = [tensor("code", kind, codes), tensor("on", truth, on)]
            found = triton(live.server.address, model="typed", inputs=columns, outputs=["label"])
            assert found["outputs"]["label"] == expected
