"""Growth of one tree on rows that several workers hold."""

from quercus.compute.sharded.growth import deal, grow_sharded

__all__ = ["deal", "grow_sharded"]
