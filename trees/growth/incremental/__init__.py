"""The exact tree of a stream: only the parts that an event may have changed are recomputed."""
