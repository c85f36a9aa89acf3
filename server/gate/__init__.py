"""The checks of a call before it is served: who calls, how often, how large; and the record of it."""
