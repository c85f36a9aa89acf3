// The predictions of the members (theory §10.3, §10.4).
#pragma once

#include "gaussian.hpp"
#include "growing.hpp"

namespace quercus::forest {

inline bool any_named(Bools named) { return std::find(named.begin(), named.end(), true) != named.end(); }

/// Return the leaf of a row with these codes, in the tree whose root has number `node` and this key.
inline Index leaf_of(Matrix<const int32_t> nodes, Index node, uint64_t key, const uint16_t* codes, Bools named) {
    for (const int32_t* at = nodes[node].data(); at[ATTRIBUTE] >= 0; at = nodes[node].data()) {
        const int32_t k = at[ATTRIBUTE], test = at[TEST];
        const uint16_t code = codes[k];
        const bool on_left = named[k] ? goes_left(code, true, test, names_key(key, test)) : Cut(test).goes_left(code);
        key = derived_key(key, on_left ? LEFT : RIGHT);
        node += step_of(at, on_left);
    }
    return node;
}

/// Write the leaves of at most `LANES` rows in the tree of this root, whose tests are all of numbers, into `at`.
///
/// Rows go down side by side: none waits for where another one goes.
inline void leaves_of(Matrix<const int32_t> nodes, Index root, Codes codes, Index (&at)[LANES]) {
    std::fill(at, at + LANES, root);
    for (bool going = true; going;) {
        going = false;
        for (Index lane = 0; lane < codes.rows; ++lane) {
            const int32_t* node = nodes[at[lane]].data();
            const int32_t k = node[ATTRIBUTE];
            const bool is_inner = k >= 0, on_left = Cut(node[TEST]).goes_left(codes(lane, k & -int32_t{is_inner}));
            at[lane] += step_of(node, on_left) & -Index{is_inner};
            going |= is_inner;
        }
    }
}

/// Add the trees' predictions of m rows, times `weights` (trees,), to `predicted` (m, 3 l).
///
/// These are estimate, belief and plausibility, or the estimate alone for `predicted` (m, l); for (trees m, l) it is
/// that of each tree. Of a leaf whose n rows have one class, the cut at `level` leaves this class ``level^(1/n)`` at
/// least. A tree of weight 0 is skipped. See `grow`.
inline void add_opinions(Codes codes, Bools named, Vector<const uint64_t> keys, Matrix<const int32_t> nodes,
                         ConstRealMatrix opinions, Matrix<const int64_t> counts, ConstReals weights, double level,
                         RealMatrix predicted) {
    const Index l = opinions.columns / 3;
    const bool by_name = any_named(named), with_bounds = predicted.columns > l;
    const Index lines_apart = predicted.rows > codes.rows ? codes.rows : 0;
    Index first = 0, first_opinion = 0, at[LANES];
    for (Index m = 0; m < length(keys); ++m) {
        const double weight = weights[m];
        for (Index i = 0; weight > 0.0 && i < codes.rows; ++i) {
            const Index lane = i % LANES;
            if (by_name) at[lane] = leaf_of(nodes, first, keys[m], codes[i].data(), named);
            else if (lane == 0)
                leaves_of(nodes, first, {codes[i].data(), std::min<Index>(LANES, codes.rows - i), codes.columns}, at);
            const Index leaf = at[lane];
            const Index opinion = nodes(leaf, SKIP), size = nodes(leaf, SIZE);
            const Reals sum = predicted[m * lines_apart + i];
            if (opinion >= l) {
                const ConstReals own = opinions[first_opinion + opinion - l];
                for (Index c = 0; c < predicted.columns; ++c) sum[c] += weight * own[c];
                continue;
            }
            sum[opinion] += weight;
            if (!with_bounds) continue;
            const double sure = weight * (size == 1 ? level : std::pow(level, 1.0 / size));
            sum[l + opinion] += sure;
            for (Index c = 0; c < l; ++c) sum[2 * l + c] += c == opinion ? weight : weight - sure;
        }
        first += counts(m, 0);
        first_opinion += counts(m, 1);
    }
}

/// Add ``Σ_k ln φ(x_k; μ_kc, σ_kc)`` of rows (m, K), without missing values, to `logs` (m, l).
///
/// Of each number the greatest one over the classes is left out, which tells no class from another. So a number far
/// from all classes does not drown what others say, and one that is as dense under all adds nothing to the last bit.
inline void add_densities(ConstRealMatrix values, ConstRealMatrix means, ConstRealMatrix deviations, RealMatrix logs) {
    const Index l = logs.columns, m = values.rows;
    OwnedMatrix<double> own(l, m);  // many rows at a time, of one attribute after the other
    std::vector<double> column(m), least(m);
    for (Index k = 0; k < values.columns; ++k) {
        for (Index i = 0; i < m; ++i) column[i] = values(i, k);
        std::fill(least.begin(), least.end(), std::numeric_limits<double>::infinity());
        for (Index c = 0; c < l; ++c) {
            const double mean = means(k, c), deviation = deviations(k, c);
            const double constant = std::log(deviation) + LOG_SQRT_2PI;
            double* __restrict mine = own[c].data();
            double* __restrict lowest = least.data();
            for (Index i = 0; i < m; ++i) {
                const double z = (column[i] - mean) / deviation, square = z * z;
                mine[i] = 0.5 * (square < FARTHEST ? square : FARTHEST) + constant;
                lowest[i] = mine[i] < lowest[i] ? mine[i] : lowest[i];
            }
        }
        for (Index i = 0; i < m; ++i)
            for (Index c = 0; c < l && !std::isnan(column[i]); ++c) logs(i, c) -= own(c, i) - least[i];
    }
}

}  // namespace quercus::forest
