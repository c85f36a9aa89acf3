"""The exact tree of a stream: only parts that an event may have changed are recomputed."""
