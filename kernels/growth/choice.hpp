// The choice of splits for many nodes at once (theory §3.1, §3.2, §9), see `quercus.trees.rules.choice`.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "kinds.hpp"

namespace quercus {

/// Keep in `standing` one split of each attribute: the cut that `quercus.trees.rules.gain.best_splits` chooses.
///
/// - first, bounds : see `quercus.trees.rules.choice.SplitCells`
/// - size, entropy : (m, C) rows in each cell, and its entropy at level 1
/// - standing : (m, T) populated splits; changed
inline void keep_one_cut(ConstInts first, ConstInts bounds, ConstRealMatrix size, ConstRealMatrix entropy,
                         Matrix<bool> standing) {
    constexpr double infinite = std::numeric_limits<double>::infinity();
    std::vector<double> left(first.size());  // the entropy that remains after each split
    for (Index g = 0; g < size.rows; ++g)
        for (Index k = 0; k < length(bounds) - 1; ++k) {
            const Index begin = bounds[k], end = bounds[k + 1];
            Index several = 0;
            for (Index t = begin; t < end; ++t) several += standing(g, t);
            if (several <= 1) continue;  // nothing to compare, and the entropies may be unknown
            double least = infinite;
            for (Index t = begin; t < end; ++t) {
                if (!standing(g, t)) continue;
                left[t] = 0.0;
                const Index last = t + 1 < length(first) ? first[t + 1] : size.columns;
                for (Index cell = first[t]; cell < last; ++cell)
                    left[t] += size(g, cell) / size(g, 0) * entropy(g, cell);
                least = std::min(least, left[t]);
            }
            double lowest = -1.0, highest = -1.0;  // numbers of rows below the first and the last of the tied cuts
            for (Index t = begin; t < end; ++t) {
                if (!standing(g, t) || !(left[t] <= least + TIE)) continue;
                highest = size(g, first[t] + BELOW);
                lowest = lowest < 0.0 ? highest : lowest;
            }
            const double middle = (lowest + highest) / 2;
            double nearest = infinite;
            for (Index t = begin; t < end; ++t)
                if (standing(g, t) && left[t] <= least + TIE)
                    nearest = std::min(nearest, std::abs(size(g, first[t] + BELOW) - middle));
            bool found = false;
            for (Index t = begin; t < end; ++t) {
                const bool tied = standing(g, t) && left[t] <= least + TIE;
                standing(g, t) = tied && !found && std::abs(size(g, first[t] + BELOW) - middle) <= nearest + TIE;
                found = found || standing(g, t);
            }
        }
}

/// Return the best split of each node, and write the gain ratios of its candidates (theory §3.1, §3.2).
///
/// The gain ratio of a split lies in `[(lower - Σ_h f_h upper_h) / S, (upper - Σ_h f_h lower_h) / S]` with `S` its
/// split information. A split is dominated if its upper end lies below the lower end of another by more than the
/// numerical uncertainty of both. Among the remaining rivals the one with the largest mid-value is chosen, the first of
/// ties.
///
/// - first : see `quercus.trees.rules.choice.SplitCells`
/// - size : (m, C) rows in each cell
/// - information : (m, T) split information of each split
/// - lower, upper : (m, C) ends of its entropy, in bits; 0 where there is no row
/// - candidates : (m, T) splits that are compared
/// - gain_lower, gain_upper : (m, T) gain ratio of each candidate; initially NaN
/// - rivals : (m, T) candidates that none dominates; initially false
inline std::vector<int64_t> compare_splits(ConstInts first, ConstRealMatrix size, ConstRealMatrix information,
                                           ConstRealMatrix lower, ConstRealMatrix upper, Matrix<const bool> candidates,
                                           RealMatrix gain_lower, RealMatrix gain_upper, Matrix<bool> rivals) {
    const Index nodes = size.rows, splits = length(first);
    std::vector<int64_t> split(nodes, NO_SPLIT);
    for (Index g = 0; g < nodes; ++g) {
        const Reals least = gain_lower[g], most = gain_upper[g];
        double highest = -std::numeric_limits<double>::infinity();  // of the lower ends, less their uncertainty
        for (Index t = 0; t < splits; ++t) {
            if (!candidates(g, t)) continue;
            const Index end = t + 1 < splits ? first[t + 1] : size.columns;
            double low = 0.0, high = 0.0;
            for (Index cell = first[t]; cell < end; ++cell) {
                if (!(size(g, cell) > 0)) continue;
                const double share = size(g, cell) / size(g, 0);
                low += share * lower(g, cell);
                high += share * upper(g, cell);
            }
            least[t] = (lower(g, 0) - high) / information(g, t);
            most[t] = (upper(g, 0) - low) / information(g, t);
            highest = std::max(highest, least[t] - TIE / std::min(information(g, t), 1.0));
        }
        double best = -std::numeric_limits<double>::infinity();
        for (Index t = 0; t < splits; ++t) {
            const double end =
                most[t] + TIE / std::min(information(g, t), 1.0);  // NaN for a split that is no candidate
            if (!(highest <= end)) continue;
            rivals(g, t) = true;
            best = std::max(best, (least[t] + most[t]) / 2);
        }
        for (Index t = splits - 1; t >= 0; --t)
            if (rivals(g, t) && (least[t] + most[t]) / 2 >= best - TIE) split[g] = t;
    }
    return split;
}

}  // namespace quercus
