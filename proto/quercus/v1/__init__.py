"""Version 1 of the wire: the ``.proto`` files of ``quercus.v1``, the generated code, and what reads their options."""

if __name__ != "quercus.v1":  # by another name every class would exist twice
    raise ImportError(f"import quercus.v1, not {__name__}")
