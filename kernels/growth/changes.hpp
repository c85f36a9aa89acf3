// Loops over the changes on one level of the tree, see `quercus.trees.growth.incremental.growing`.
#pragma once

#include "kinds.hpp"

namespace quercus {

struct ChangeTotals {
    std::vector<int32_t> arriving, opening;  // (g,) numbers of new rows, and of rows to ask about, less those before
};

/// Return the totals of groups of changes.
inline ChangeTotals sum_groups(ConstIds was, ConstDeltas opened, ConstInts start) {
    const Index groups = length(start) - 1;
    ChangeTotals totals{std::vector<int32_t>(groups), std::vector<int32_t>(groups)};
    for (Index g = 0; g < groups; ++g) {
        int32_t arriving = 0, opening = 0;
        for (Index i = start[g]; i < start[g + 1]; ++i) {
            arriving += was[i] < 0;
            opening += opened[i];
        }
        totals.arriving[g] = arriving;
        totals.opening[g] = opening;
    }
    return totals;
}

}  // namespace quercus
