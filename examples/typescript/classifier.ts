/** A classifier: lists the models, then predicts one row, with what is known and what is not. */
import { createClient } from "@connectrpc/connect";
import { ClassifyService } from "./build/generated/quercus/v1/classify_pb.js";
import { ModelService } from "./build/generated/quercus/v1/model_pb.js";
import { model, transport } from "./connection.js";

const { models } = await createClient(ModelService, transport).listModels({});
for (const each of models) {
  console.log(`${each.name} (${each.specification?.learner?.name}): ${each.specification?.classes.join(", ")}`);
}

const found = await createClient(ClassifyService, transport).classify({
  model,
  rows: {
    kind: {
      case: "named",
      value: { rows: [{ values: { alcohol: { kind: { case: "number", value: 13.5 } }, tint: { kind: { case: "nominal", value: "dark" } } } }] },
    },
  },
});
console.log(`${found.classes[found.classIndices[0]!]}, by tree version ${found.treeVersion}`);
found.classes.forEach((name, k) => {
  console.log(`${name}: between ${found.belief[k]!.toFixed(3)} and ${found.plausibility[k]!.toFixed(3)}`);
});
