/** A sensor: creates the model if it is missing, and pushes rows without labels. */
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { InstanceService } from "./build/generated/quercus/v1/instance_pb.js";
import { ModelService } from "./build/generated/quercus/v1/model_pb.js";
import { model, transport } from "./connection.js";

const models = createClient(ModelService, transport);
const instances = createClient(InstanceService, transport);

try {
  await models.createModel({
    modelId: "wine",
    specification: {
      classes: ["red", "white"],
      attributes: [
        { name: "alcohol", kind: { case: "numeric", value: {} } },
        { name: "tint", kind: { case: "nominal", value: { values: ["dark", "pale"] } } },
      ],
      budget: 5,
    },
  });
} catch (error) {
  if (ConnectError.from(error).code !== Code.AlreadyExists) throw error;
}

const bottles = Array.from({ length: 20 }, (_, k) => ({ alcohol: 10 + (k % 5), tint: k % 2 ? "dark" : "pale" }));
const stored = await instances.pushBatch({
  model,
  ids: bottles.map((_, k) => `bottle-${k}`), // with ids the push may be repeated: nothing is stored twice
  rows: {
    kind: {
      case: "named",
      value: {
        rows: bottles.map(({ alcohol, tint }) => ({
          values: {
            alcohol: { kind: { case: "number", value: alcohol } },
            tint: { kind: { case: "nominal", value: tint } },
          },
        })),
      },
    },
  },
});
console.log(`${stored.rowsStored} rows stored, ${stored.rowsKnown} were there already`);
