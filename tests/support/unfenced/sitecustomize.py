"""The control of `cluster_torture`: in processes with this folder in PYTHONPATH the store checks no fence."""

from quercus.storage.queries import agenda

agenda.check_fence = lambda *_: None
