// The greatest log likelihood of cells, with proof (theory §2.2).
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "../arrays.hpp"

namespace quercus {

constexpr double OCCURS = 1e-6;  // probability from which a class counts as one that occurs

/// Write the fields of `LikelihoodMaxima`, (m,) each.
///
/// Parameters
/// ----------
/// start, ids, counts : the cells, see `quercus.trees.likelihood.cells.Cells`; counts are whole numbers, or weights
/// contours : (d, l)
/// theta : (m, l) estimates
/// reached, bound, classes, weights : (m,) written
template <class Count>
inline void bound_maxima(Vector<const int64_t> start, Vector<const int32_t> ids, Vector<const Count> counts,
                         ConstRealMatrix contours, ConstRealMatrix theta, Reals reached, Reals bound,
                         Vector<uint64_t> classes, Reals weights) {
    const Index l = contours.columns;
    std::vector<double> score(l);  // of each class; none is above the weight where theta is a maximiser (theory §2.2)
    for (Index i = 0; i < length(reached); ++i) {
        double value = 0.0, weight = 0.0;
        std::fill(score.begin(), score.end(), 0.0);
        for (Index e = start[i]; e < start[i + 1]; ++e) {
            const ConstReals contour = contours[ids[e]];
            const double count = static_cast<double>(counts[e]);
            double least = contour[0], most = contour[0], chance = 0.0;
            for (Index c = 0; c < l; ++c) {
                least = std::min(least, contour[c]);
                most = std::max(most, contour[c]);
                chance += theta(i, c) * contour[c];
            }
            if (least == most) continue;  // the label is vacuous
            value += count * std::log(chance / most);
            weight += count;
            for (Index c = 0; c < l; ++c) score[c] += count * contour[c] / chance;
        }
        reached[i] = value;
        weights[i] = weight;
        const double top = *std::max_element(score.begin(), score.end());
        bound[i] = std::min(value + std::max(top - weight, 0.0), 0.0);
        classes[i] = 0;
        if (weight > 0.0)
            for (Index c = 0; c < l; ++c)
                if (theta(i, c) > OCCURS) classes[i] |= uint64_t{1} << c;
    }
}

}  // namespace quercus
