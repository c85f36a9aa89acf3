"""Constants of Gaussian log-densities, for interpreted and for compiled code."""

import math

import numpy as np

FARTHEST = 1e300
"""Largest squared standardised distance from a mean: beyond it, distance tells no class from another."""

TINY = float(np.finfo(np.float64).tiny)
"""Least positive number of full precision: a floor of divisors."""

LOG_SQRT_2PI = 0.5 * math.log(2.0 * math.pi)
