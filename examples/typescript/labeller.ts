/** A labelling client: leases queries one by one, and answers them as a person would. */
import { createClient } from "@connectrpc/connect";
import { QueryService } from "./build/generated/quercus/v1/query_pb.js";
import { model, transport } from "./connection.js";

const queries = createClient(QueryService, transport);

for (let answered = 0; answered < 3; answered++) {
  const lease = await queries.leaseQueries({ model, labeller: "ann", maxQueries: 1, wait: { seconds: 30n } });
  const query = lease.queries[0];
  if (query === undefined) break; // nothing to ask, or the budget is spent
  const tint = query.values?.values["tint"]?.kind;
  const className = tint?.case === "nominal" && tint.value === "dark" ? "red" : "white";
  await queries.answerQuery({
    name: query.name,
    leaseToken: query.leaseToken,
    label: { kind: { case: "className", value: className } },
    reliability: 0.9, // the labeller may be wrong: the answer counts for less
  });
  console.log(`${query.instance}: ${className}`);
}
