// The trees of a committee, grown from labels that may be uncertain.
//
// A member is an evidential tree of binary tests: ordered codes are compared with a code, names with one name. At a
// node the class probabilities `theta` maximise the evidential likelihood of its labels (E2M, theory §2.2), and every
// row counts for each class by its share ``θ_c pl_c / Σ θ pl``. The gain of a test is the Shannon entropy by which it
// reduces these shares, so with precise labels a member is an information-gain tree.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "../arrays.hpp"

namespace quercus::forest {

constexpr int MEMBER_STEPS = 100;   // maximum number of steps of E2M at a node
constexpr double STILL = 1e-6;      // E2M stops after a step that changes no probability by more
constexpr double SURE = 1 - 1e-9;   // a node with a class of this probability is a leaf
constexpr double GAIN_TIE = 1e-12;  // bits; a gain must exceed the best so far by more
constexpr double LITTLE = 1e-6;     // added to each probability of `theta`, so that it excludes no plausible class

/// Return a number in [0, `below`) and move the generator's `state` on: splitmix64.
inline int64_t random_below(uint64_t& state, int64_t below) {
    state += 0x9E3779B97F4A7C15u;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    z = z ^ (z >> 31);
    return static_cast<int64_t>(z % static_cast<uint64_t>(below));
}

/// Estimate the classes of rows by E2M (theory §2.2): return ``θ`` (l,), and write each row's `share` (n, l).
inline std::vector<double> estimate_shares(Vector<const int64_t> rows, ConstReals weights, ConstRealMatrix labels,
                                           RealMatrix share) {
    const Index l = labels.columns;
    std::vector<double> theta(l, 1.0 / l), found(l);
    for (int step = 0; step < MEMBER_STEPS; ++step) {
        double total = 0.0, moved = 0.0;
        std::fill(found.begin(), found.end(), 0.0);
        for (const int64_t i : rows) {
            double chance = 0.0;
            for (Index c = 0; c < l; ++c) chance += theta[c] * labels(i, c);
            for (Index c = 0; c < l; ++c) {
                share(i, c) = weights[i] * theta[c] * labels(i, c) / chance;
                found[c] += share(i, c);
            }
            total += weights[i];
        }
        for (Index c = 0; c < l; ++c) {
            found[c] /= total;
            moved = std::max(moved, std::abs(found[c] - theta[c]));
            theta[c] = found[c];
        }
        if (moved <= STILL) break;
    }
    return theta;
}

/// Return the Shannon entropy in bits of `counts` (l,) that sum to `total`.
inline double entropy_of_counts(ConstReals counts, double total) {
    double bits = 0.0;
    for (const double count : counts)
        if (count > 0) bits -= count / total * std::log2(count / total);
    return bits;
}

struct BestCode {
    double gain = -std::numeric_limits<double>::infinity();
    Index code = -1;
};

/// Return gain (bits) and code of the best test on an attribute, given the sums of shares by code (arity, l).
///
/// The code is -1 if no test has rows on both sides.
inline BestCode best_code(ConstRealMatrix table, bool is_ordered) {
    const Index arity = table.rows, l = table.columns;
    std::vector<double> whole(l), left(l), right(l);
    double total = 0.0;
    for (Index c = 0; c < l; ++c) {
        for (Index a = 0; a < arity; ++a) whole[c] += table(a, c);
        total += whole[c];
    }
    const double before = entropy_of_counts(whole, total);
    BestCode best;
    for (Index a = 0; a < arity; ++a) {
        double inside = 0.0;
        for (Index c = 0; c < l; ++c) {
            left[c] = is_ordered ? left[c] + table(a, c) : table(a, c);
            right[c] = std::max(whole[c] - left[c], 0.0);
            inside += left[c];
        }
        if (inside <= 0.0 || total - inside <= 1e-9) continue;
        double gain = before - (inside * entropy_of_counts(left, inside)) / total;
        gain -= (total - inside) * entropy_of_counts(right, total - inside) / total;
        if (gain > best.gain + GAIN_TIE) best = {gain, a};
    }
    return best;
}

struct MemberTest {
    Index attribute = -1, code = -1;
};

/// Return attribute and code of the best test among `tries` attributes that can split; -1, -1 if none can.
inline MemberTest choose_test(Vector<const int64_t> rows, Matrix<const int16_t> codes, ConstRealMatrix share,
                              Vector<const int64_t> ordered, Vector<const int64_t> arities, int64_t tries,
                              uint64_t& state) {
    const Index K = codes.columns, l = share.columns;
    std::vector<Index> order(K);
    std::iota(order.begin(), order.end(), Index{0});
    double best = -std::numeric_limits<double>::infinity();
    MemberTest chosen;
    int64_t tried = 0, most = 0;
    for (const int64_t arity : arities) most = std::max(most, arity);
    OwnedMatrix<double> tables(most, l);
    for (Index j = 0; j < K; ++j) {
        std::swap(order[j], order[j + random_below(state, K - j)]);
        const Index k = order[j];
        const RealMatrix table{tables[0].data(), static_cast<Index>(arities[k]), l};
        std::fill_n(table.data, table.rows * l, 0.0);
        for (const int64_t i : rows) {
            const Reals line = table[codes(i, k)];
            for (Index c = 0; c < l; ++c) line[c] += share(i, c);
        }
        const auto [gain, code] = best_code(table, ordered[k] > 0);
        if (code < 0) continue;
        if (gain > best + GAIN_TIE) {
            best = gain;
            chosen = {k, code};
        }
        if (++tried == tries) break;
    }
    return chosen;
}

struct Member {
    std::vector<int64_t> attribute, code, first;
    OwnedMatrix<double> theta;
};

/// Return whether a code is inside a test: whether its row goes to the first child.
inline bool is_inside(int16_t code, int64_t test, bool is_ordered) { return is_ordered ? code <= test : code == test; }

/// Grow one tree from the rows with a weight above 0.
///
/// Parameters
/// ----------
/// codes : (m, K)
/// labels : (m, l) contours
/// weights : (m,)
/// ordered : (K,) positive if the codes are in order
/// arities : (K,) number of codes
/// tries : number of attributes that are tested at a node
/// seed : of the order in which attributes are tried
///
/// Returns
/// -------
/// attribute, code, first : (nodes,) test of each node and its first child, -1 for a leaf; the second child is next to
///     the first
/// theta : (nodes, l) class probabilities of each node
inline Member grow_member(Matrix<const int16_t> codes, ConstRealMatrix labels, ConstReals weights,
                          Vector<const int64_t> ordered, Vector<const int64_t> arities, int64_t tries, int64_t seed) {
    std::vector<int64_t> rows, others(weights.size());
    for (Index i = 0; i < length(weights); ++i)
        if (weights[i] > 0.0) rows.push_back(i);
    auto state = static_cast<uint64_t>(seed);
    const Index l = labels.columns, drawn = length(rows);
    OwnedMatrix<double> share(labels.rows, l);
    std::vector<int64_t> attribute, code, first;
    std::vector<double> theta;
    std::vector<std::pair<Index, Index>> ranges{{0, drawn}};
    for (Index at = 0; at < length(ranges); ++at) {
        const auto [start, end] = ranges[at];
        const Vector<int64_t> here = part(Vector<int64_t>(rows), start, end);
        const std::vector<double> found = estimate_shares(here, weights, labels, share);
        theta.insert(theta.end(), found.begin(), found.end());
        double surest = 0.0;
        for (const double chance : found) surest = std::max(surest, chance);
        MemberTest test;
        if (here.size() > 1 && surest < SURE) test = choose_test(here, codes, share, ordered, arities, tries, state);
        attribute.push_back(test.attribute);
        code.push_back(test.code);
        first.push_back(-1);
        if (test.attribute < 0) continue;
        Index middle = 0, outside = 0;
        for (const int64_t row : here) {
            if (is_inside(codes(row, test.attribute), test.code, ordered[test.attribute] > 0)) here[middle++] = row;
            else others[outside++] = row;
        }
        std::copy_n(others.begin(), outside, here.begin() + middle);
        first[at] = length(ranges);
        ranges.emplace_back(start, start + middle);
        ranges.emplace_back(start + middle, end);
    }
    Member grown{std::move(attribute), std::move(code), std::move(first), {length(ranges), l}};
    std::copy(theta.begin(), theta.end(), grown.theta[0].begin());
    return grown;
}

/// Return the members' mean estimate ``θ`` of the class of each row of a pool.
///
/// Votes would mislead: if the evidence leaves two classes, each member considers them equally likely, but would vote
/// for the first (theory §11).
///
/// Parameters
/// ----------
/// codes, labels, ordered, arities, tries : see `grow_member`
/// weights : (members, m) number of times that each member drew each row
/// pool : (p, K) codes of the rows to predict
/// known : (p, l) contours of these rows: a member gives class c a probability in proportion to ``(θ_c + LITTLE) pl_c``
///
/// Returns
/// -------
/// (p, l) probabilities, with sum 1
inline OwnedMatrix<double> mean_probabilities(Matrix<const int16_t> codes, ConstRealMatrix labels,
                                              ConstRealMatrix weights, Vector<const int64_t> ordered,
                                              Vector<const int64_t> arities, int64_t tries, Matrix<const int16_t> pool,
                                              ConstRealMatrix known) {
    const Index l = labels.columns;
    OwnedMatrix<double> mean(pool.rows, l);
    std::vector<double> worth(l);
    for (Index b = 0; b < weights.rows; ++b) {
        const Member member = grow_member(codes, labels, weights[b], ordered, arities, tries, b);
        for (Index i = 0; i < pool.rows; ++i) {
            Index at = 0;
            while (member.attribute[at] >= 0) {
                const Index k = member.attribute[at];
                at = member.first[at] + (is_inside(pool(i, k), member.code[at], ordered[k] > 0) ? 0 : 1);
            }
            double total = 0.0;
            for (Index c = 0; c < l; ++c) {
                worth[c] = (member.theta(at, c) + LITTLE) * known(i, c);
                total += worth[c];
            }
            for (Index c = 0; c < l; ++c) mean(i, c) += worth[c] / (total * weights.rows);
        }
    }
    return mean;
}

}  // namespace quercus::forest
