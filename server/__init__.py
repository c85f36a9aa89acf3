"""The service: `quercus.v1` on grpc.aio, over the store, with growth in a separate process."""

if __name__ != "quercus.server":  # by another name every class would exist twice
    raise ImportError(f"import quercus.server, not {__name__}")
