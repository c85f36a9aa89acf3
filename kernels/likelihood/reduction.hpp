// Problems in a table, and their reduction to smaller ones with the same solution (theory §2.3).
//
// Rows may be scaled, dominated classes may be left out, and rows that leave one class are counts of it.
#pragma once

#include <numeric>
#include <vector>

#include "cells.hpp"
#include "loglik.hpp"

namespace quercus {

/// Return for each class the one that may replace it at a minimum: itself, unless another dominates it.
///
/// Moving the probability of a class to one that is as plausible in every row (of equals, the first stays) does not
/// reduce the likelihood and, since `-x ln x` is subadditive, does not raise the entropy.
inline std::vector<int64_t> dominating_classes(ConstRealMatrix P) {
    const Index n = P.rows, l = P.columns;
    std::vector<int64_t> heir(l);
    std::iota(heir.begin(), heir.end(), 0);
    for (Index j = 0; j < l; ++j) {
        for (Index k = 0; k < l; ++k) {
            if (k == j || heir[k] != k) continue;
            bool below = true, equal = true;
            for (Index i = 0; i < n; ++i) {
                if (P(i, j) > P(i, k)) {
                    below = false;
                    break;
                }
                if (P(i, j) < P(i, k)) equal = false;
            }
            if (below && (!equal || k < j)) {
                heir[j] = k;
                break;
            }
        }
    }
    for (Index j = 0; j < l; ++j)
        while (heir[heir[j]] != heir[j]) heir[j] = heir[heir[j]];
    return heir;
}

/// Return whether every row leaves one class.
inline bool is_precise(ConstRealMatrix P) {
    for (Index i = 0; i < P.rows; ++i) {
        Index some = 0;
        for (Index j = 0; j < P.columns; ++j) some += P(i, j) > 0.0;
        if (some > 1) return false;
    }
    return true;
}

/// Return the rows divided by `p . theta`, so that `P @ theta` is 1 and `l(theta)` 0.
inline OwnedMatrix<double> rescale_rows(ConstRealMatrix P, ConstReals theta) {
    const Index n = P.rows, l = P.columns;
    OwnedMatrix<double> scaled(n, l);
    for (Index i = 0; i < n; ++i) {
        double v = 0.0;
        for (Index j = 0; j < l; ++j) v += P(i, j) * theta[j];
        for (Index j = 0; j < l; ++j) scaled(i, j) = P(i, j) / v;
    }
    return scaled;
}

/// Contours over fewer classes, with a maximiser over these.
struct Reduced {
    OwnedMatrix<double> P;      // (n, m), `P @ theta` is 1
    std::vector<double> theta;  // (m,)
};

/// Return the columns of the undominated classes, rescaled.
inline Reduced without_dominated(ConstRealMatrix P, ConstReals theta) {
    const Index n = P.rows, l = P.columns;
    const std::vector<int64_t> heir = dominating_classes(P);
    std::vector<Index> place(l);
    Index m = 0;
    for (Index j = 0; j < l; ++j)
        if (heir[j] == j) place[j] = m++;
    OwnedMatrix<double> Q(n, m);
    std::vector<double> x(m);
    const double total = sum_of(theta);
    for (Index j = 0; j < l; ++j) {
        const Index s = place[heir[j]];
        x[s] += theta[j] / total;
        if (heir[j] != j) continue;
        for (Index i = 0; i < n; ++i) Q(i, s) = P(i, j);
    }
    return {rescale_rows(Q, x), std::move(x)};
}

/// Many problems over one table (d, l) of distinct informative contours, scaled to maximum 1, in compressed rows.
struct Problems {
    ConstRealMatrix table;
    Vector<const int64_t> start;    // start of each problem in the other columns, and the end
    Vector<const int32_t> columns;  // rows of the table
    ConstReals counts;
};

struct Problem {
    OwnedMatrix<double> P;  // (n, l)
    std::vector<double> w;  // (n,)
};

/// Return the contours of one problem and their counts.
inline Problem take_problem(const Problems& problems, Index problem) {
    const Index first = problems.start[problem];
    const Index n = problems.start[problem + 1] - first;
    Problem taken{{n, problems.table.columns}, std::vector<double>(n)};
    for (Index i = 0; i < n; ++i) {
        copy(problems.table[problems.columns[first + i]], taken.P[i]);
        taken.w[i] = problems.counts[first + i];
    }
    return taken;
}

/// Return the positive weights of the classes, largest first, if every row leaves one class.
inline std::vector<double> precise_counts(ConstRealMatrix P, ConstReals w) {
    std::vector<double> totals(P.columns), sorted(P.columns);
    for (Index i = 0; i < P.rows; ++i)
        for (Index j = 0; j < P.columns; ++j)
            if (P(i, j) > 0.0) totals[j] += w[i];
    sorted.resize(sort_positive(totals, sorted));
    return sorted;
}

}  // namespace quercus
