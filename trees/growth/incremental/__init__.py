"""The exact tree of a stream: parts that an event cannot have changed are not computed again."""
