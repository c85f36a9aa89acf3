"""The console: pages in a browser for labellers, readers and operators; a gRPC client with the rights of its users."""

if __name__ != "quercus.console":  # by another name every class would exist twice
    raise ImportError(f"import quercus.console, not {__name__}")
