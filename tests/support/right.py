"""A right message for every RPC, about a model that is there: what the fuzzer changes."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask

from quercus.client.plugins import PluginLike, to_proto
from quercus.inference import open_inference_pb2
from quercus.v1 import (
    admin_pb2,
    classify_pb2,
    display_pb2,
    instance_pb2,
    model_pb2,
    query_pb2,
    query_pb2_grpc,
    tree_pb2,
    values_pb2,
)
from support.published import published_message

LABELLER: Final = "ann"
TIMEOUT_S: Final = 60.0
Queries = list[query_pb2.Query]


def specifications() -> list[model_pb2.Specification]:
    """Return what is learned: by the default, and by the published tree."""
    nominal, numeric = model_pb2.NominalAttribute, model_pb2.NumericAttribute
    fields: dict[str, Any] = {
        "attributes": [
            model_pb2.Attribute(name="a", nominal=nominal(values=["a", "b"])),
            model_pb2.Attribute(name="b", numeric=numeric(bins=3)),
            model_pb2.Attribute(name="o", nominal=nominal(values=["s", "t"])),
        ],
        "classes": ["o", "s"],
        "alpha": 0.9,
        "budget": 100_000,
        "min_instances": 2,
        "warmup_rows": 4,
    }
    learners: list[PluginLike] = [
        {"name": "c45", "max_cuts": 9, "min_branch": 3, "confidence": None},
        {
            "name": "forest",
            "trees": 2,
            "vote": "mass",
            "max_features": 2,
            "seed": 7,
            "base": "belief-entropy",
        },
    ]
    return [
        model_pb2.Specification(**fields),
        published_message(**fields),
        *(model_pb2.Specification(**fields, learner=to_proto(each)) for each in learners),
    ]


class Labelling:
    """Leases and answers of a model, so that messages can name real ones.

    Parameters
    ----------
    address : of the server.
    model : whose queries.
    """

    def __init__(self, address: str, model: str) -> None:
        self._channel = grpc.insecure_channel(address)
        self._stub: Any = query_pb2_grpc.QueryServiceStub(self._channel)
        self._model = model
        self._held: Queries = []
        self.answered = ""

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def lease(self) -> Queries:
        """Give back what was leased, lease anew, and answer one; none is answered when fewer than two are open."""
        for query in self._held:
            with suppress(grpc.RpcError):
                back = query_pb2.ReturnQueryRequest(name=query.name, lease_token=query.lease_token)
                self._stub.ReturnQuery(back, timeout=TIMEOUT_S)
        wanted = query_pb2.LeaseQueriesRequest(
            model=f"models/{self._model}", labeller=LABELLER, max_queries=6, wait=Duration(nanos=200_000_000)
        )
        self._held = list(self._stub.LeaseQueries(wanted, timeout=TIMEOUT_S).queries)
        if len(self._held) > 1:
            first = self._held.pop()
            answer = query_pb2.AnswerQueryRequest(name=first.name, lease_token=first.lease_token)
            answer.label.class_name = "o"
            self._stub.AnswerQuery(answer, timeout=TIMEOUT_S)
            self.answered = first.name
        return self._held


def right_messages(model: str, held: Queries, answered: str, number: int) -> dict[str, list[Any]]:
    """Return right messages of every RPC, by its name.

    Parameters
    ----------
    model : that they speak of.
    held : queries that are leased.
    answered : name of a query that is answered.
    number : so that what is made, is made under another name.
    """
    of = f"models/{model}"
    label = values_pb2.Label(class_name="s")
    mass = values_pb2.MassFunction(focal_sets=[1, 3], masses=[0.4, 0.6])
    tokens = [{"name": query.name, "lease_token": query.lease_token} for query in held]
    named = {"name": answered, "labeller": LABELLER}
    return {
        "CreateModel": [
            model_pb2.CreateModelRequest(model_id=f"{model}-{number}-{k}", specification=specification)
            for k, specification in enumerate(specifications())
        ],
        "ExtendModel": [
            model_pb2.ExtendModelRequest(name=f"{of}-gone", classes=["later"], request_id="later")
        ],
        "GetModel": [model_pb2.GetModelRequest(name=of)],
        "ListLearners": [model_pb2.ListLearnersRequest()],
        "ListModels": [model_pb2.ListModelsRequest(page_size=2)],
        "UpdateModel": [
            model_pb2.UpdateModelRequest(
                name=of,
                specification=model_pb2.Specification(alpha=0.8),
                update_mask=FieldMask(paths=["alpha"]),
            )
        ],
        "DeleteModel": [model_pb2.DeleteModelRequest(name=f"{of}-gone")],
        **_instances(of, label),
        **_inferences(model),
        "LeaseQueries": [
            query_pb2.LeaseQueriesRequest(model=of, labeller="bob", lease_duration=Duration(seconds=1))
        ],
        "StreamQueries": [
            *(
                query_pb2.StreamQueriesRequest(model=of, labeller=LABELLER, **part)
                for part in _parts(tokens, label)
            ),
        ],
        "AnswerQuery": [
            query_pb2.AnswerQueryRequest(**token, label=each, reliability=0.9, comment="it is")
            for token in tokens
            for each in (label, values_pb2.Label(mass=mass))
        ],
        "RefuseQuery": [query_pb2.RefuseQueryRequest(**token, took=Duration(seconds=3)) for token in tokens],
        "ExtendLease": [
            query_pb2.ExtendLeaseRequest(**token, lease_duration=Duration(seconds=9)) for token in tokens
        ],
        "ReleaseLease": [
            query_pb2.ReleaseLeaseRequest(name=token["name"], comment="late") for token in tokens
        ]
        or [query_pb2.ReleaseLeaseRequest(name=answered)],
        "ReturnQuery": [query_pb2.ReturnQueryRequest(**token, how=1) for token in tokens],
        "CorrectAnswer": [query_pb2.CorrectAnswerRequest(**named, label=label)],
        "UndoAnswer": [query_pb2.UndoAnswerRequest(**named)],
        "ListNeighbours": [query_pb2.ListNeighboursRequest(**token, limit=3) for token in tokens]
        or [query_pb2.ListNeighboursRequest(name=answered, lease_token="t")],
        "ListQueries": [query_pb2.ListQueriesRequest(model=of, states=[2, 3], page_size=3)],
        "ListQueryHistory": [query_pb2.ListQueryHistoryRequest(name=of, page_size=5)],
        "ListLabellers": [query_pb2.ListLabellersRequest(model=of)],
        "GetLabellingPolicy": [query_pb2.GetLabellingPolicyRequest(model=of)],
        "UpdateLabellingPolicy": [
            query_pb2.UpdateLabellingPolicyRequest(
                model=of, policy=query_pb2.LabellingPolicy(max_held=100, tags=["x"], max_conflict=0.4)
            )
        ],
        "GetTree": [tree_pb2.GetTreeRequest(name=f"{of}/trees/latest")],
        "WatchTree": [tree_pb2.WatchTreeRequest(model=of)],
        "RenderTree": [
            tree_pb2.RenderTreeRequest(name=f"{of}/trees/latest", format=form) for form in (1, 2, 1, 2, 3)
        ],
        "ExplainRow": [tree_pb2.ExplainRowRequest(name=f"{of}/instances/row-1", sequence=1)],
        "GetStatus": [admin_pb2.GetStatusRequest()],
        "GetCaller": [admin_pb2.GetCallerRequest()],
        "StreamAnswers": [
            query_pb2.StreamAnswersRequest(model=of, limit=20, include_values=True),
            query_pb2.StreamAnswersRequest(model=of, labellers=[LABELLER], classes=["o"], newest_first=True),
        ],
        "SetLogLevel": [admin_pb2.SetLogLevelRequest(level="error")],
        "ListTokens": [admin_pb2.ListTokensRequest(page_size=3)],
        "CreateToken": [admin_pb2.CreateTokenRequest(caller="eve", roles=["reader"], all_models=True)],
        "RevokeToken": [admin_pb2.RevokeTokenRequest(name="tokens/0123456789abcdef")],
        "ListAuditEntries": [admin_pb2.ListAuditEntriesRequest(newest=5)],
        "ListDisputes": [query_pb2.ListDisputesRequest(model=of, page_size=3)],
        "GetDispute": [query_pb2.GetDisputeRequest(name=f"{of}/instances/row-1")],
        "Adjudicate": [
            query_pb2.AdjudicateRequest(name=f"{of}/instances/row-1", labeller=LABELLER, label=label)
        ],
        "MarkGold": [
            query_pb2.MarkGoldRequest(
                model=of,
                labeller=LABELLER,
                labels=[query_pb2.GoldLabel(instance_id="row-1", label=label, comment="known")],
            )
        ],
        "ListGold": [query_pb2.ListGoldRequest(model=of)],
        "GetAgreement": [query_pb2.GetAgreementRequest(model=of)],
        "ListExamples": [instance_pb2.ListExamplesRequest(model=of)],
    }


def _parts(tokens: list[dict[str, str]], label: values_pb2.Label) -> list[dict[str, Any]]:
    """Return what messages of a stream of queries hold beside model and labeller."""
    parts: list[dict[str, Any]] = [{"credits": 2}, {"credits": 1, "heartbeat": True}]
    for token in tokens:
        parts.append({"answer": query_pb2.AnswerQueryRequest(**token, label=label)})
        parts.append({"returned": query_pb2.ReturnQueryRequest(**token)})
    return parts


def _inferences(model: str) -> dict[str, list[Any]]:
    """Return right messages of the Open Inference Protocol."""
    tensor, contents = (
        open_inference_pb2.ModelInferRequest.InferInputTensor,
        open_inference_pb2.InferTensorContents,
    )
    texts = contents(bytes_contents=[b"a", b"a|b"])
    columns = [
        tensor(name="a", datatype="BYTES", shape=[2], contents=texts),
        tensor(name="b", datatype="FP64", shape=[2, 1], contents=contents(fp64_contents=[1.0, 2.0])),
        tensor(name="o", datatype="BYTES", shape=[2], contents=contents(bytes_contents=[b"s", b"?"])),
    ]
    infer = open_inference_pb2.ModelInferRequest
    return {
        "ServerLive": [open_inference_pb2.ServerLiveRequest()],
        "ServerReady": [open_inference_pb2.ServerReadyRequest()],
        "ServerMetadata": [open_inference_pb2.ServerMetadataRequest()],
        "ModelReady": [open_inference_pb2.ModelReadyRequest(name=model)],
        "ModelMetadata": [open_inference_pb2.ModelMetadataRequest(name=model)],
        "ModelInfer": [
            infer(model_name=model, inputs=columns, outputs=[{"name": "set"}, {"name": "label"}]),
            infer(
                model_name=model,
                inputs=[tensor(name="all", datatype="FP64", shape=[1, 3])],
                raw_input_contents=[bytes(24)],
            ),
        ],
    }


def _display() -> display_pb2.Display:
    """Return an item of every kind."""
    image = display_pb2.DisplayMedia(data=b"\x89PNG\r\n\x1a\n....", alt="a picture")
    audio = display_pb2.DisplayMedia(url="https://cam.example/7.ogg")
    series = display_pb2.DisplaySeries(values=[1.0, 2.0], step=0.5, unit="mm")
    contents: list[dict[str, Any]] = [
        {"text": "a text"},
        {"series": series},
        {"image": image},
        {"audio": audio},
        {"link": "https://a.example/"},
    ]
    return display_pb2.Display(items=[display_pb2.DisplayItem(title="t", **each) for each in contents])


def _instances(of: str, label: values_pb2.Label) -> dict[str, list[Any]]:
    value = values_pb2.NamedValue
    row = values_pb2.NamedRow(
        values={"a": value(nominal="a"), "b": value(number=2.0), "o": value(nominal="t")}
    )
    named = values_pb2.Rows(named=values_pb2.NamedRows(rows=[row]))
    packed = values_pb2.Rows(packed=values_pb2.PackedRows(values=[0.0, 1.5, 1.0, 1.0, float("nan"), 0.0]))
    labels = [
        values_pb2.Labels(
            list=values_pb2.LabelList(labels=[label, values_pb2.Label(vacuous=values_pb2.Vacuous())])
        ),
        values_pb2.Labels(sets=values_pb2.SetLabels(masks=[1, 3])),
        values_pb2.Labels(contours=values_pb2.PackedContours(plausibilities=[1.0, 0.5, 0.2, 1.0])),
    ]
    classified = [
        classify_pb2.ClassifyRequest(model=of, rows=rows, want_paths=True, want_masses=masses)
        for rows, masses in ((packed, False), (named, False), (packed, True))
    ]
    return {
        "PushInstances": [
            instance_pb2.PushInstancesRequest(model=of, rows=named),
            *(instance_pb2.PushInstancesRequest(model=of, rows=packed, labels=each) for each in labels),
        ],
        "PushBatch": [
            instance_pb2.PushBatchRequest(model=of, rows=named),
            instance_pb2.PushBatchRequest(
                model=of, rows=packed, labels=labels[1], ids=["u-1", "u-2"], displays=[_display()] * 2
            ),
        ],
        "StateEvidence": [
            instance_pb2.StateEvidenceRequest(
                model=of,
                labeller=LABELLER,
                request_id="r-1",
                statements=[instance_pb2.Statement(instance_id="row-1", label=label, reliability=0.8)],
            )
        ],
        "WatchEvents": [
            instance_pb2.WatchEventsRequest(model=of, after_sequence=2, kinds=[1, 2, 5], include_values=True)
        ],
        "ListInstances": [instance_pb2.ListInstancesRequest(model=of, page_size=3)],
        "GetInstance": [instance_pb2.GetInstanceRequest(name=f"{of}/instances/row-1")],
        "Classify": classified,
        "ClassifyStream": classified,
    }
