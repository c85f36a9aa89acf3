"""Classifies with an unchanged tritonclient: ``python triton_classify.py ADDRESS``, a JSON of inputs on standard input.

A process of its own: tritonclient and the server define the same messages.
"""

import asyncio
import json
import sys
from typing import Any

import numpy as np
import tritonclient.grpc as triton
import tritonclient.grpc.aio as triton_aio

KINDS = {
    "FP64": np.float64,
    "FP32": np.float32,
    "INT64": np.int64,
    "INT32": np.int32,
    "UINT8": np.uint8,
    "BOOL": np.bool_,
}


def inputs_of(given: list[dict[str, Any]]) -> list[Any]:
    made = []
    for each in given:
        if each["datatype"] == "BYTES":
            values = np.array([text.encode() for text in each["values"]], dtype=np.object_)
        else:
            values = np.array([float(x) for x in np.ravel(each["values"])]).astype(KINDS[each["datatype"]])
        values = values.reshape(each["shape"])
        tensor = triton.InferInput(each["name"], list(values.shape), each["datatype"])
        tensor.set_data_from_numpy(values)
        made.append(tensor)
    return made


def plain(array: Any) -> Any:
    if array is None:
        return None
    if array.dtype == np.object_:
        return [each.decode() if isinstance(each, bytes) else each for each in array.ravel()]
    if array.dtype == np.float64:
        return [each.hex() for each in array.ravel().tolist()]
    return array.ravel().tolist()


def told(answer: Any) -> dict[str, Any]:
    response = answer.get_response()
    outputs = {each.name: plain(answer.as_numpy(each.name)) for each in response.outputs}
    return {
        "outputs": outputs,
        "shapes": {each.name: list(each.shape) for each in response.outputs},
        "version": response.model_version,
        "id": response.id,
        "classes": json.loads(response.parameters["classes"].string_param),
        "as_of": response.parameters["as_of"].int64_param,
        "unseen": json.loads(response.parameters["unseen"].string_param or "[]"),
    }


async def infer_aio(address: str, asked: dict[str, Any], options: dict[str, Any]) -> dict[str, Any]:
    async with triton_aio.InferenceServerClient(address) as client:
        return told(await client.infer(asked["model"], inputs_of(asked["inputs"]), **options))


def infer_http(address: str, asked: dict[str, Any], as_bytes: bool) -> dict[str, Any]:
    """By HTTP, with tensors as bytes or as JSON."""
    import tritonclient.http as triton_http

    headers = {"authorization": f"Bearer {asked['token']}"} if asked.get("token") else None
    inputs = []
    for each in asked["inputs"]:
        kind = np.object_ if each["datatype"] == "BYTES" else KINDS[each["datatype"]]
        values = [text.encode() for text in each["values"]] if kind is np.object_ else each["values"]
        tensor = triton_http.InferInput(each["name"], each["shape"], each["datatype"])
        tensor.set_data_from_numpy(np.array(values, dtype=kind).reshape(each["shape"]), binary_data=as_bytes)
        inputs.append(tensor)
    names = asked.get("outputs", ())
    outputs = [triton_http.InferRequestedOutput(name, binary_data=as_bytes) for name in names]
    client = triton_http.InferenceServerClient(address)
    try:
        answer = client.infer(
            asked["model"], inputs, request_id="r-1", headers=headers, outputs=outputs or None
        )
        response = answer.get_response()
        metadata = client.get_model_metadata(asked["model"], headers=headers)
        return {
            "outputs": {each["name"]: plain(answer.as_numpy(each["name"])) for each in response["outputs"]},
            "shapes": {each["name"]: each["shape"] for each in response["outputs"]},
            "sizes": [each.get("parameters", {}) for each in response["outputs"]],
            "id": response["id"],
            "classes": json.loads(response["parameters"]["classes"]),
            "live": client.is_server_live() and client.is_server_ready(),
            "ready": client.is_model_ready(asked["model"], headers=headers),
            "server": client.get_server_metadata(headers=headers)["extensions"],
            "platform": metadata["platform"],
            "inputs": [(each["name"], each["datatype"], each["shape"]) for each in metadata["inputs"]],
        }
    finally:
        client.close()


def main() -> None:
    address, asked = sys.argv[1], json.load(sys.stdin)
    headers = {"authorization": f"Bearer {asked['token']}"} if asked.get("token") else None
    options: dict[str, Any] = {"request_id": "r-1", "headers": headers}
    if asked.get("outputs"):
        options["outputs"] = [triton.InferRequestedOutput(name) for name in asked["outputs"]]
    try:
        if "http" in asked:
            found = infer_http(address, asked, asked["http"] == "bytes")
        elif asked.get("aio"):
            found = asyncio.run(infer_aio(address, asked, options))
        else:
            with triton.InferenceServerClient(address) as client:
                found = told(client.infer(asked["model"], inputs_of(asked["inputs"]), **options))
                found["live"] = client.is_server_live() and client.is_server_ready()
                found["ready"] = client.is_model_ready(asked["model"], headers=headers)
                metadata = client.get_model_metadata(asked["model"], headers=headers)
                found["platform"] = metadata.platform
                found["inputs"] = [(each.name, each.datatype, list(each.shape)) for each in metadata.inputs]
    except triton.InferenceServerException as error:
        found = {"error": error.status(), "message": error.message()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
