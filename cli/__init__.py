"""The commands of ``quercus``, one module each."""

if __name__ != "quercus.cli":  # under another name every class would exist twice
    raise ImportError(f"import quercus.cli, not {__name__}")
