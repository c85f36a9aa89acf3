"""Models as files: a log that is imported, instances that are exported as a table."""
