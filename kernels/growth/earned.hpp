// Earned splits: those that beat the rival "do not split" beyond chance (theory §12, `quercus.trees.rules.earned`).
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>

#include "kinds.hpp"

namespace quercus {

/// Return the probability that chi-square with a whole number of degrees of freedom, 1 or more, exceeds a value.
///
/// It is a finite sum of positive terms; importing SciPy for it would cost a grower 11 MB.
inline double chi_square_tail(double value, Index freedom) {
    const double half = value / 2;
    if (half <= 0.0) return 1.0;
    // the terms are exp(-half) half^power / Γ(power + 1), computed as logarithms, which do not overflow
    double power = static_cast<double>(freedom % 2) / 2;
    double total = power > 0.0 ? std::erfc(std::sqrt(half)) : 0.0;
    double term = power * std::log(half) - half - std::lgamma(power + 1);
    for (Index i = 0; i < freedom / 2; ++i) {
        total += std::exp(term);
        power += 1.0;
        term += std::log(half / power);
    }
    return std::min(total, 1.0);
}

/// Mark the candidates that are earned.
///
/// - first : see `quercus.trees.rules.choice.SplitCells`
/// - size : (m, C) rows in each cell
/// - reached, bound, classes : (m, C) see `quercus.trees.likelihood.maxima.LikelihoodMaxima`
/// - candidates : (m, T) at most one split of each attribute
/// - share : (m,) significance level of the test of one candidate
/// - earned : (m, T) marks; those of candidates are written
inline void test_splits(ConstInts first, ConstRealMatrix size, ConstRealMatrix reached, ConstRealMatrix bound,
                        Matrix<const uint64_t> classes, Matrix<const bool> candidates, ConstReals share,
                        Matrix<bool> earned) {
    for (Index g = 0; g < size.rows; ++g)
        for (Index t = 0; t < length(first); ++t) {
            if (!candidates(g, t)) continue;
            const Index end = t + 1 < length(first) ? first[t + 1] : size.columns;
            double gain = -bound(g, 0);
            Index branches = 0;
            uint64_t occurring = classes(g, 0);
            for (Index cell = first[t]; cell < end; ++cell) {
                if (!(size(g, cell) > 0) || classes(g, cell) == 0) continue;
                gain += reached(g, cell);
                ++branches;
                occurring |= classes(g, cell);
            }
            const Index freedom = (branches - 1) * (std::popcount(occurring) - 1);
            earned(g, t) = freedom > 0 && gain > TIE && chi_square_tail(2 * gain, freedom) < share[g];
        }
}

}  // namespace quercus
