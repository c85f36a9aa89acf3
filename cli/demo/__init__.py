"""The parts of ``quercus demo``: a server, a sensor, two labellers and a classifier, on real data."""
