"""The service: `quercus.v1` on grpc.aio, over the store, with growth in a process of its own."""
