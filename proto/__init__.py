"""The wire: gRPC services and messages, one package a version."""

if __name__ != "quercus.proto":  # by another name every class would exist twice
    raise ImportError(f"import quercus.proto, not {__name__}")
