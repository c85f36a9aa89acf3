// The overlap of leaves: the entropy that the tests of a tree leave, as a mean over its prunings (theory §10.9).
#pragma once

#include "routing.hpp"

namespace quercus::forest {

constexpr double PSEUDO_COUNT = 0.5;  // added to the count of each class in a node
constexpr double LN_2 = 0.6931471805599453;

/// Logarithms of the Gamma function of counts; those of whole counts come from a table.
class LogGammas {
    std::vector<double> table;
    double more;

   public:
    /// Compute ``ln Γ(n + more)`` for whole n up to `most`.
    LogGammas(double more, Index most)
        : table(static_cast<std::size_t>(std::min<Index>(most + 1, TABLED))), more(more) {
        for (Index n = 0; n < static_cast<Index>(table.size()); ++n) table[n] = std::lgamma(n + more);
    }

    double operator()(double count) const {
        const auto whole = static_cast<std::size_t>(count);
        return whole == count && whole < table.size() ? table[whole] : std::lgamma(count + more);
    }
};

/// Write the overlap (nodes,) of each leaf of trees, in bits; for an inner node write the sum that its leaves share.
///
/// Parameters
/// ----------
/// nodes, opinions, counts : see `grow`; all rows of a leaf without an opinion have one class
inline void write_overlaps(Matrix<const int32_t> nodes, ConstRealMatrix opinions, Matrix<const int64_t> counts,
                           Reals overlaps) {
    const Index l = opinions.columns / 3;
    Index most = 0, largest = 0;
    for (Index m = 0; m < counts.rows; ++m) largest = std::max<Index>(largest, counts(m, 0));
    OwnedMatrix<double> held(largest, l);  // rows of each class in a node
    std::vector<double> number(largest), evidence(largest), stops(largest), reached(largest);
    Index first = 0, first_opinion = 0;
    for (Index node = 0, rows = 0, m = 0; m < counts.rows; ++m, rows = 0) {
        for (const Index end = node + counts(m, 0); node < end; ++node)
            if (nodes(node, ATTRIBUTE) < 0) rows += nodes(node, SIZE);
        most = std::max(most, rows);
    }
    const LogGammas of_class(PSEUDO_COUNT, most), of_all(PSEUDO_COUNT * static_cast<double>(l), most);
    const double none = of_all(0.0) - static_cast<double>(l) * of_class(0.0);
    for (Index m = 0; m < counts.rows; ++m) {
        const Index end = counts(m, 0);
        for (Index i = end - 1; i >= 0; --i) {  // children come after their parent
            const int32_t* node = nodes[first + i].data();
            const Reals mine = held[i];
            const bool is_leaf = node[ATTRIBUTE] < 0;
            const Index left = i + 1, right = is_leaf ? i : i + node[SKIP];
            if (is_leaf) {
                std::fill(mine.begin(), mine.end(), 0.0);
                const double size = node[SIZE];
                if (node[SKIP] < l) mine[node[SKIP]] = size;
                else
                    for (Index c = 0; c < l; ++c) mine[c] = size * opinions(first_opinion + node[SKIP] - l, c);
                number[i] = size;
            } else {
                for (Index c = 0; c < l; ++c) mine[c] = held(left, c) + held(right, c);
                number[i] = number[left] + number[right];
            }
            double alone = none - of_all(number[i]);
            for (const double count : mine) alone += of_class(count);
            evidence[i] = alone;
            stops[i] = 1.0;
            if (is_leaf) continue;
            const double apart = evidence[left] + evidence[right], more = std::max(alone, apart);
            evidence[i] = more + std::log(0.5 * (std::exp(alone - more) + std::exp(apart - more)));
            stops[i] = 0.5 * std::exp(alone - evidence[i]);
        }
        double* sum = overlaps.data() + first;
        reached[0] = 1.0;
        sum[0] = 0.0;
        for (Index i = 0; i < end; ++i) {
            const int32_t* node = nodes[first + i].data();
            double entropy = 0.0;
            for (const double count : held[i])
                if (count > 0.0) entropy -= count / number[i] * std::log(count / number[i]);
            sum[i] += reached[i] * stops[i] * entropy / LN_2;
            if (node[ATTRIBUTE] < 0) continue;
            for (const Index child : {i + 1, i + node[SKIP]}) {
                reached[child] = reached[i] * (1.0 - stops[i]);
                sum[child] = sum[i];
            }
        }
        first += end;
        first_opinion += counts(m, 1);
    }
}

/// Add the values of the leaves in which m rows end, `of_nodes` (nodes,), times the weight of the tree, to `sums` (m,).
inline void add_of_leaves(Codes codes, Bools named, Vector<const uint64_t> keys, Matrix<const int32_t> nodes,
                          Matrix<const int64_t> counts, ConstReals weights, ConstReals of_nodes, Reals sums) {
    for_each_leaf(codes, named, keys, nodes, counts, weights,
                  [&](Index m, Index i, Index leaf) { sums[i] += weights[m] * of_nodes[leaf]; });
}

}  // namespace quercus::forest
