"""Where growing trees finds the level of prediction bounds."""

from quercus.specification import parameters

PREDICTION_LEVEL: float = parameters.PREDICTION_LEVEL.default
