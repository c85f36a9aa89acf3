"""The console: web pages for labellers, readers and operators; a gRPC client that acts with the rights of its users."""

if __name__ != "quercus.console":  # under another name every class would exist twice
    raise ImportError(f"import quercus.console, not {__name__}")
