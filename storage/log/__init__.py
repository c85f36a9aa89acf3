"""The evidence log: events are appended, never changed."""
