// Values as codes: bins between quantile cuts, and names; 0 for a missing value.
#pragma once

#include <stdexcept>

#include "nodes.hpp"

namespace quercus::forest {

constexpr int LAST_NAME = 65534;  // the last with a separate code

/// Return how many of the `cuts`, which rise, are at most `x`.
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
/// `named` (K,) tells the attributes whose values are indices of names; `cuts` are those of all attributes, one after
/// the other, of which each has `cut_counts` (K,).
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
