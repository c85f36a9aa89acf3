// Values as codes: bins between quantile cuts, and names; 0 for a missing value.
#pragma once

#include <stdexcept>

#include "nodes.hpp"

namespace quercus::forest {

constexpr int LAST_NAME = 65534;  // names from this index on share a code

constexpr int SEARCHES = 8;  // number of values that are searched for at the same time

/// Write how many of the ascending `cuts` are at most each of `xs`.
inline void count_up_to(ConstReals cuts, const double (&xs)[SEARCHES], Index (&counts)[SEARCHES]) {
    const double* from[SEARCHES];
    std::fill_n(from, SEARCHES, cuts.data());
    Index left = length(cuts);
    for (; left > 1; left -= left / 2) {  // without a branch that depends on a value
        const Index half = left / 2;
        for (int each = 0; each < SEARCHES; ++each) from[each] += half & -Index{from[each][half - 1] <= xs[each]};
    }
    for (int each = 0; each < SEARCHES; ++each)
        counts[each] = from[each] - cuts.data() + (left == 1 && *from[each] <= xs[each]);
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
        for (Index i = 0; named[k] && i < values.rows; ++i) {
            const double x = values(i, k);
            const Index name = std::isnan(x) ? NONE : x < LAST_NAME ? static_cast<Index>(x) : LAST_NAME;
            codes(i, k) = static_cast<uint16_t>(1 + name);
        }
        for (Index i = 0; !named[k] && i < values.rows; i += SEARCHES) {
            const Index some = std::min<Index>(SEARCHES, values.rows - i);
            double xs[SEARCHES] = {};
            Index counts[SEARCHES];
            for (Index each = 0; each < some; ++each) xs[each] = values(i + each, k);
            count_up_to(mine, xs, counts);
            for (Index each = 0; each < some; ++each)
                codes(i + each, k) = static_cast<uint16_t>(std::isnan(xs[each]) ? 0 : 1 + counts[each]);
        }
    }
}

}  // namespace quercus::forest
