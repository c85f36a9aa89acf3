"""Between messages and values: converters, names, bounds, and the errors of the wire."""
