"""The parts of ``quercus demo``: a server, a sensor, two labellers and a classifier at work on real data."""

if __name__ != "quercus.demo":  # by another name every class would exist twice
    raise ImportError(f"import quercus.demo, not {__name__}")
