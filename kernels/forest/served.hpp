// The predictions of a served forest: of all trees and naive-Bayes members, for rows of values (theory §10.3, §10.4).
#pragma once

#include <stdexcept>

#include "codes.hpp"
#include "gaussian.hpp"
#include "growing.hpp"

namespace quercus::forest {

constexpr Index ROWS_AT_ONCE = 64;        // number of rows whose sums fit the fastest cache
constexpr int BOUND_STEPS = 50;           // maximum number of Newton's steps
constexpr double BOUND_NEAR = 0.01;       // a step of the log-odds that ends near the root
constexpr double BOUND_STILL = 1e-16;     // twice the error of the log-odds that is left
constexpr double BOUND_ROUNDING = 4e-16;  // rounding error of an end
constexpr double NEGLIGIBLE = 1e-100;     // a share below this counts as 0: it changes an end by less than rounding

/// The trees of a served forest.
struct ServedTrees {
    Bools named;                   // (K,) whether an attribute is nominal
    Matrix<const int32_t> nodes;   // (nodes, 4) of all trees, see `grow`
    ConstInts roots;               // (T,) number of each tree's root
    Vector<const uint64_t> masks;  // (nodes,) see `name_masks`; empty if no attribute is nominal
    ConstRealMatrix opinions;      // (opinions, 3 l) of all trees
    ConstInts first_opinions;      // (T,) number of each tree's first opinion
    ConstReals weights;            // (T,)
    ConstReals doubts;  // at index n: the most that the cut of a leaf with n rows of one class leaves to the others
};

/// The B distinct naive-Bayes members of a served forest.
struct ServedBayes {
    ConstRealMatrix priors, log_priors;                 // (B, l) of the classes
    ConstRealMatrix means, deviations, log_deviations;  // (B numbers, l) of each numeric attribute
    ConstRealMatrix frequencies;                        // (names, l) log frequencies, table by table
    ConstInts name_counts;  // (B nominals,) number of lines of each table; the last line is for unseen names
    ConstReals depths;      // (B,) log level of the cut, divided by the weight of the labels
    ConstReals shares;      // (B,) weight of each member in the forest
};

/// Return for each node the key that decides which names go left (nodes,); without meaning if a number is tested.
inline std::vector<uint64_t> name_masks(Matrix<const int32_t> nodes, ConstInts roots, Vector<const uint64_t> keys) {
    std::vector<uint64_t> mask(nodes.rows);  // at first the key of the node: parents come before their children
    for (Index t = 0; t < length(roots); ++t) mask[roots[t]] = keys[t];
    for (Index node = 0; node < nodes.rows; ++node) {
        if (nodes(node, ATTRIBUTE) < 0) continue;
        mask[node + 1] = derived_key(mask[node], LEFT);
        mask[node + nodes(node, SKIP)] = derived_key(mask[node], RIGHT);
        mask[node] = names_key(mask[node], nodes(node, TEST));
    }
    return mask;
}

/// Raise `ValueError` unless every path of each tree ends in a leaf with an opinion; there are K attributes, l classes.
inline void check_served_trees(Matrix<const int32_t> nodes, ConstInts node_counts, ConstInts opinion_counts,
                               Index opinions, Index K, Index l) {
    Index first = 0, held = 0;
    for (Index t = 0; t < length(node_counts); ++t) {
        const Index end = first + node_counts[t], own = opinion_counts[t];
        if (end <= first || end > nodes.rows || own < 0) throw std::invalid_argument("a tree has no nodes");
        for (Index node = first; node < end; ++node) {
            const Index k = nodes(node, ATTRIBUTE), skip = nodes(node, SKIP);
            if (k < NONE || k >= K || nodes(node, SIZE) < 0)
                throw std::invalid_argument("a node is neither a test nor a leaf");
            if (k == NONE ? skip < 0 || skip >= l + own : skip < 2 || node + skip >= end)
                throw std::invalid_argument("a node refers to a child or an opinion outside its tree");
        }
        first = end;
        held += own;
    }
    if (first != nodes.rows || held != opinions)
        throw std::invalid_argument("some nodes or opinions belong to no tree");
}

/// Replace each of `LANES` nodes by the leaf below it in which the row with these codes ends.
template <bool by_name>
inline void go_to_leaves(const ServedTrees& trees, Index (&at)[LANES], const uint16_t* const (&codes)[LANES]) {
    const int32_t* nodes = trees.nodes.data;
    for (bool going = true; going;) {
        going = false;
        for (int lane = 0; lane < LANES; ++lane) {
            const int32_t* node = nodes + FIELDS * at[lane];
            const int32_t k = node[ATTRIBUTE];
            const bool is_inner = k >= 0;
            const uint16_t code = codes[lane][k & -int32_t{is_inner}];
            bool on_left = Cut(node[TEST]).goes_left(code);
            if (by_name) {  // both branches are computed: neither the next attribute nor the branch can be predicted
                const bool is_name = trees.named[k & -int32_t{is_inner}];
                const bool heads = is_heads(derived_key(trees.masks[at[lane]], code));
                on_left = (is_name & heads) | (!is_name & on_left);
            }
            at[lane] += step_of(node, on_left) & -Index{is_inner};
            going |= is_inner;
        }
    }
}

/// Add the opinions of all trees on at most `ROWS_AT_ONCE` rows to `predicted` (m, 3 l).
template <bool by_name>
inline void add_trees(const ServedTrees& trees, Codes codes, RealMatrix predicted) {
    const Index l = predicted.columns / 3, m = codes.rows, pairs = m * length(trees.roots);
    OwnedMatrix<double> doubted(m, 2 * l);  // subtracted from beliefs, and added to plausibilities
    Index at[LANES], tree[LANES], row[LANES], next_tree = 0, next_row = 0;
    const uint16_t* mine[LANES];
    for (Index left = pairs; left > 0; left -= LANES) {
        const int lanes = static_cast<int>(std::min<Index>(left, LANES));
        for (int lane = 0; lane < LANES; ++lane) {
            if (lane >= lanes) {  // no pair remains: repeat the last one
                at[lane] = trees.roots[tree[lanes - 1]];
                mine[lane] = mine[lanes - 1];
                continue;
            }
            tree[lane] = next_tree;
            row[lane] = next_row;
            at[lane] = trees.roots[next_tree];
            mine[lane] = codes[next_row].data();
            if (++next_row == m) {
                next_row = 0;
                ++next_tree;
            }
        }
        go_to_leaves<by_name>(trees, at, mine);
        for (int lane = 0; lane < lanes; ++lane) {
            const Index t = tree[lane], i = row[lane];
            const int32_t* leaf = trees.nodes[at[lane]].data();
            const double weight = trees.weights[t];
            const Reals sum = predicted[i];
            const Index opinion = leaf[SKIP];
            if (opinion >= l) {
                const ConstReals own = trees.opinions[trees.first_opinions[t] + opinion - l];
                for (Index c = 0; c < 3 * l; ++c) sum[c] += weight * own[c];
                continue;
            }
            sum[opinion] += weight;
            sum[l + opinion] += weight;
            sum[2 * l + opinion] += weight;
            const double doubt = weight * trees.doubts[leaf[SIZE]];
            doubted(i, opinion) += doubt;
            for (Index c = 0; c < l; ++c) doubted(i, l + c) += c == opinion ? 0.0 : doubt;
        }
    }
    for (Index i = 0; i < m; ++i) {
        for (Index c = 0; c < l; ++c) {
            predicted(i, l + c) -= doubted(i, c);
            predicted(i, 2 * l + c) += doubted(i, l + c);
        }
    }
}

/// Return the greatest ``t`` with ``p ln(t / p) + (1 - p) ln((1 - t) / (1 - p)) >= depth``, or a little more.
///
/// The left side is concave in ``u = ln(t / (1 - t))``, so every step of Newton's ends to the right of the root. The
/// start is near the root for every `p` and `depth`: 3 or 4 steps suffice.
inline double greatest_share(double p, double depth) {
    if (!(p < 1.0)) return 1.0;
    if (std::isinf(depth) || !(p > NEGLIGIBLE)) return std::min(BOUND_ROUNDING - std::expm1(depth), 1.0);
    const double rest = 1.0 - p, log_p = std::log(p), log_rest = std::log1p(-p);
    const double entropy = p * log_p + rest * log_rest;
    const double lift = std::sqrt(-2.0 * depth * p * rest) - (2.0 / 3.0) * depth * rest;
    double u = (-depth - entropy) / rest;  // not left of the root, because ln(t) <= 0
    if (lift < rest) u = std::min(std::log((p + lift) / (rest - lift)), u);
    for (int step = 0; step < BOUND_STEPS; ++step) {
        const double x = std::exp(-u), t = 1.0 / (1.0 + x);
        if (!(t > p)) break;  // the cut is so small that only rounding errors remain
        const double move = (-std::log1p(x) - rest * u - entropy - depth) / (t - p);
        if (step > 0 && move > BOUND_NEAR) break;  // the steps lead left: only a rounding error leads far to the right
        u += move;
        // near the root, the error after a step is half its square times t (1 - t) / (t - p)
        if (std::abs(move) < BOUND_NEAR && move * move * t * (1.0 - t) < BOUND_STILL * (t - p)) break;
    }
    return std::min(1.0 / (1.0 + std::exp(-u)) + BOUND_ROUNDING, 1.0);
}

/// Write the probabilities (l,) of a row by naive-Bayes member `b`; `logs` (l,) and `own` (l,) are overwritten.
inline void write_bayes(const ServedBayes& bayes, Index b, ConstReals row, Bools named, Reals logs, Reals own,
                        Reals theta) {
    const Index l = length(theta), nominals = length(bayes.name_counts) / bayes.priors.rows;
    std::copy_n(bayes.log_priors[b].begin(), l, logs.begin());
    Index line = b * (length(row) - nominals);
    for (Index k = 0; k < length(row); ++k) {
        if (named[k]) continue;
        const double x = row[k];
        const Index here = line++;
        if (std::isnan(x)) continue;
        double least = std::numeric_limits<double>::infinity();
        for (Index c = 0; c < l; ++c) {
            const double z = (x - bayes.means(here, c)) / bayes.deviations(here, c);
            own[c] = 0.5 * std::min(z * z, FARTHEST) + bayes.log_deviations(here, c) + LOG_SQRT_2PI;
            least = std::min(least, own[c]);
        }
        for (Index c = 0; c < l; ++c) logs[c] -= own[c] - least;
    }
    Index table = 0, first = 0;
    while (table < b * nominals) first += bayes.name_counts[table++];
    for (Index k = 0; nominals > 0 && k < length(row); ++k) {
        if (!named[k]) continue;
        const Index names = bayes.name_counts[table++];
        if (!std::isnan(row[k])) {
            const Index name = row[k] >= 0.0 && row[k] < names - 1 ? static_cast<Index>(row[k]) : names - 1;
            for (Index c = 0; c < l; ++c) logs[c] += bayes.frequencies(first + name, c);
        }
        first += names;
    }
    double top = std::numeric_limits<double>::lowest(), total = 0.0;
    for (Index c = 0; c < l; ++c) top = std::max(top, logs[c]);
    for (Index c = 0; c < l; ++c) total += theta[c] = std::exp(logs[c] - top);
    for (Index c = 0; c < l; ++c) theta[c] = total > 0.0 ? theta[c] / total : bayes.priors(b, c);
}

/// Write the probabilities (B m, l) of rows by each naive-Bayes member, member by member.
inline void write_bayes_estimates(const ServedBayes& bayes, ConstRealMatrix values, Bools named, RealMatrix theta) {
    std::vector<double> logs(theta.columns), own(theta.columns);
    for (Index b = 0; b < bayes.priors.rows; ++b)
        for (Index i = 0; i < values.rows; ++i)
            write_bayes(bayes, b, values[i], named, logs, own, theta[b * values.rows + i]);
}

/// Add the opinions of the naive-Bayes members on rows to `predicted` (m, 3 l).
inline void add_bayes(const ServedBayes& bayes, ConstRealMatrix values, Bools named, RealMatrix predicted) {
    const Index l = predicted.columns / 3;
    std::vector<double> logs(l), own(l), theta(l);
    for (Index b = 0; b < bayes.priors.rows; ++b) {
        const double share = bayes.shares[b], depth = bayes.depths[b];
        for (Index i = 0; i < values.rows; ++i) {
            write_bayes(bayes, b, values[i], named, logs, own, theta);
            for (Index c = 0; c < l; ++c) {
                const double p = theta[c];
                double lower = p, upper = p;
                if (depth < 0.0) {  // at depth 0 the cut contains only the estimate
                    lower = std::min(std::max(1.0 - greatest_share(1.0 - p, depth), 0.0), p);
                    upper = std::max(greatest_share(p, depth), p);
                }
                predicted(i, c) += share * p;
                predicted(i, l + c) += share * lower;
                predicted(i, 2 * l + c) += share * upper;
            }
        }
    }
}

/// Write the predictions of the members for rows of values (m, K).
///
/// Parameters
/// ----------
/// cuts, cut_counts : see `write_codes`
/// reliable : ``T / (T + l)`` with T labels, the reliability by which bounds are discounted
/// tie : probabilities at most this much below the greatest count as equal to it
/// klass : (m,) the first of the likeliest classes
/// theta, belief, plausibility : (m, l)
inline void served_predictions(const ServedTrees& trees, const ServedBayes& bayes, ConstReals cuts,
                               ConstInts cut_counts, ConstRealMatrix values, double reliable, double tie,
                               Vector<int64_t> klass, RealMatrix theta, RealMatrix belief, RealMatrix plausibility) {
    const Index l = theta.columns, m = values.rows, most = std::min(m, ROWS_AT_ONCE);
    OwnedMatrix<double> sums(most, 3 * l);
    OwnedMatrix<uint16_t> codes(most, values.columns);
    for (Index first = 0; first < m; first += ROWS_AT_ONCE) {
        const Index count = std::min(m - first, ROWS_AT_ONCE);
        const RealMatrix here{sums[0].data(), count, 3 * l};
        const ConstRealMatrix rows{values[first].data(), count, values.columns};
        const Matrix<uint16_t> coded{codes[0].data(), count, values.columns};
        write_codes(rows, trees.named, cuts, cut_counts, coded);
        std::fill_n(here.data, count * 3 * l, 0.0);
        if (trees.masks.empty()) add_trees<false>(trees, coded, here);
        else add_trees<true>(trees, coded, here);
        add_bayes(bayes, rows, trees.named, here);
        for (Index i = 0; i < count; ++i) {
            const Index row = first + i;
            double top = 0.0;
            for (Index c = 0; c < l; ++c) {
                theta(row, c) = here(i, c);
                belief(row, c) = reliable * here(i, l + c);
                plausibility(row, c) = std::min(1.0 - reliable + reliable * here(i, 2 * l + c), 1.0);
                top = std::max(top, here(i, c));
            }
            Index likeliest = 0;
            while (likeliest + 1 < l && !(theta(row, likeliest) >= top - tie)) ++likeliest;
            klass[row] = likeliest;
        }
    }
}

}  // namespace quercus::forest
