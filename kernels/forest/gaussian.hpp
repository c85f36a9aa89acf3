// Constants of Gaussian log-densities, and of their fits.
#pragma once

#include <limits>

namespace quercus::forest {

constexpr double FARTHEST = 1e300;  // largest squared standardised distance: beyond, it distinguishes no classes
constexpr double TINY = std::numeric_limits<double>::min();  // smallest normal number, the minimum of divisors
constexpr double LOG_SQRT_2PI = 0.9189385332046727;          // half of ln 2π

constexpr double EPSILON = 1e-3;      // gain of the log-likelihood, in nats over all rows, below which a fit stops
constexpr double FLOOR_SHARE = 0.01;  // least deviation, as a share of the whole column's, when labels are precise
constexpr double FREE_SHARE = 0.2;    // the addition to it when labels are vacuous
constexpr double COLUMN_ROUNDING = 4 * std::numeric_limits<double>::epsilon();  // floor of a constant column, relative
                                                                                // to its largest number
constexpr double LARGEST_NUMBER = 1e100;  // larger ones, of either sign, count as this one: no square overflows

}  // namespace quercus::forest
