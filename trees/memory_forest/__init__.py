"""The forest of many memories: extremely randomised evidential trees that remember different lengths of the past."""
