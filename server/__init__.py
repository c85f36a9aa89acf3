"""The server: `quercus.v1` by gRPC (grpc.aio) and HTTP, on the store, with growth in separate processes."""

if __name__ != "quercus.server":  # by another name every class would exist twice
    raise ImportError(f"import quercus.server, not {__name__}")
