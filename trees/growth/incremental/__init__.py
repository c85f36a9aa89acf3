"""The exact tree under a stream: what an event cannot have changed is not computed again."""
