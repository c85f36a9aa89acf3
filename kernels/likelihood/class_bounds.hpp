// The least and greatest probability of each class over the likelihood cut, many problems at once (theory §2.12).
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "class_extent.hpp"
#include "loglik.hpp"
#include "reduction.hpp"
#include "rounding_bounds.hpp"

namespace quercus {

constexpr double LEAST_DEPTH = 1e-9;  // nats; a cut less deep than this is replaced by one of this depth

/// Write proven lower and upper bounds (m, 2 l) of the class probabilities over the likelihood cuts of `wanted`.
///
/// `estimates` (m, l + 2) are those of `estimate_counts`.
inline void bound_counts(const Problems& problems, Vector<const int64_t> wanted, ConstRealMatrix estimates,
                         double alpha, RealMatrix bounds) {
    const Index l = problems.table.columns;
    std::vector<double> point(l);
    for (Index i = 0; i < length(wanted); ++i) {
        const ConstReals theta = part(estimates[i], 0, l);
        const Reals lower = part(bounds[i], 0, l), upper = part(bounds[i], l, 2 * l);
        if (alpha == 1.0 && estimates(i, l + 1) > 0.0) {  // the maximiser alone
            copy(theta, lower);
            copy(theta, upper);
            continue;
        }
        const auto [given, w] = take_problem(problems, wanted[i]);
        const OwnedMatrix<double> P = rescale_rows(given, theta);
        // if the cut contains only maximisers, a slightly deeper one keeps the computation clear of rounding
        const double c = std::min(
            std::log(alpha) - sum_of(w) * (estimates(i, l) + plain_sums(length(w), l) + rounding(l)), -LEAST_DEPTH);
        for (Index j = 0; j < l; ++j) {
            lower[j] = std::min(std::max(least_of_class(P, w, c, theta, j, 1.0, point), 0.0), theta[j]);
            upper[j] = std::max(std::min(-least_of_class(P, w, c, theta, j, -1.0, point), 1.0), theta[j]);
        }
    }
}

}  // namespace quercus
