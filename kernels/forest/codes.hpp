// Values as codes: bins between quantile cuts, and names; 0 for a missing value.
#pragma once

#include <stdexcept>

#include "nodes.hpp"

namespace quercus::forest {

constexpr int LAST_NAME = 65534;  // names from this index on share a code

/// Return how many of the ascending `cuts` are at most `x`.
inline Index count_up_to(ConstReals cuts, double x) {
    const double* first = cuts.data();
    Index left = length(cuts);
    while (left > 1) {  // without a branch that depends on `x`
        const Index half = left / 2;
        first += first[half - 1] <= x ? half : 0;
        left -= half;
    }
    return first - cuts.data() + (left == 1 && *first <= x);
}

/// Write the codes (m, K) of values (m, K), NaN where missing.
///
/// `named` (K,) marks the attributes whose values are indices of names. `cuts` has the ascending cuts of all
/// attributes, one attribute after the other, and `cut_counts` (K,) the number of cuts of each.
inline void write_codes(ConstRealMatrix values, Bools named, ConstReals cuts, ConstInts cut_counts,
                        Matrix<uint16_t> codes) {
    if (values.columns != length(named) || values.columns != length(cut_counts))
        throw std::invalid_argument("rows have more or fewer values than there are attributes");
    Index first = 0;
    for (Index k = 0; k < values.columns; ++k) {
        const ConstReals mine = part(cuts, first, first + cut_counts[k]);
        first += cut_counts[k];
        for (Index i = 0; i < values.rows; ++i) {
            const double x = values(i, k);
            Index code = 0;
            if (std::isnan(x)) code = 0;
            else if (named[k]) code = 1 + (x < LAST_NAME ? static_cast<Index>(x) : LAST_NAME);
            else code = 1 + count_up_to(mine, x);
            codes(i, k) = static_cast<uint16_t>(code);
        }
    }
}

}  // namespace quercus::forest
