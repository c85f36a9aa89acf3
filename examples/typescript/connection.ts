/** A connection to the server that QUERCUS_SERVER names, with the token in QUERCUS_TOKEN. */
import { readFileSync } from "node:fs";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { createGrpcTransport } from "@connectrpc/connect-node";

export const model = "models/wine";

/** The published retry policy: which calls may be sent again when the server was away. */
const policy = JSON.parse(readFileSync(new URL("../../../service_config.json", import.meta.url), "utf8")).methodConfig[0];
const repeatable = new Set(policy.name.map((each: { service: string; method: string }) => `${each.service}/${each.method}`));

const repeat: Interceptor = (next) => async (request) => {
  for (let attempt = 1; ; attempt++) {
    try {
      return await next(request);
    } catch (error) {
      const isAway = ConnectError.from(error).code === Code.Unavailable;
      const mayRepeat = !request.stream && repeatable.has(`${request.service.typeName}/${request.method.name}`);
      if (!isAway || !mayRepeat || attempt === policy.retryPolicy.maxAttempts) throw error;
      await new Promise((done) => setTimeout(done, 100 * policy.retryPolicy.backoffMultiplier ** (attempt - 1)));
    }
  }
};

const authorize: Interceptor = (next) => (request) => {
  const token = process.env.QUERCUS_TOKEN;
  if (token) request.header.set("authorization", `Bearer ${token}`);
  return next(request);
};

const server = (process.env.QUERCUS_SERVER ?? "127.0.0.1:50051").replace(/^tls:/, "https:");

// The example ends with the reason in one line, not with a trace of calls.
process.on("uncaughtException", (error) => {
  console.error(ConnectError.from(error).message);
  process.exit(1);
});

export const transport = createGrpcTransport({
  baseUrl: server.startsWith("https:") ? server : `http://${server}`,
  interceptors: [repeat, authorize],
});
