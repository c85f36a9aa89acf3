// The leaves in which rows end, and the predictions of trees and densities (theory §10.3, §10.4).
#pragma once

#include <cstring>

#include "gaussian.hpp"
#include "growing.hpp"

namespace quercus::forest {

/// Return the leaf of a row with these codes, in the tree whose root has number `node` and key `key`.
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

constexpr Index AT_A_TIME = 1024;             // number of rows that descend together: their codes fit the fastest cache
constexpr Index MOST_ALONE = AT_A_TIME / 64;  // maximum number of rows of a node that descend one by one

/// The paths of rows in one tree after another.
///
/// The rows in a node are bits of a set. A test is evaluated for 64 rows at a time, whether they are in the node or
/// not. Where only a few remain, these descend one by one but interleaved, so that the processor loads their nodes at
/// the same time.
class Paths {
    struct Node {
        Index number, rows;
        uint64_t key;
    };

    Codes codes;
    Bools named;
    bool by_name;
    Index words, few;
    OwnedMatrix<uint16_t> columns;  // (K, 64 words) the codes of each attribute, padded with 0
    std::vector<Node> waiting;
    std::vector<uint64_t> sets;  // (waiting, words) the rows of each node

   public:
    Paths(Codes codes, Bools named)
        : codes(codes),
          named(named),
          by_name(std::find(named.begin(), named.end(), true) != named.end()),
          words((codes.rows + 63) / 64),
          few(std::max<Index>(LANES, words)),
          columns(codes.columns, codes.rows > few ? 64 * words : 0) {
        for (Index i = 0; i < codes.rows && columns.columns > 0; ++i)
            for (Index k = 0; k < codes.columns; ++k) columns(k, i) = codes(i, k);
    }

    /// Call `each(row, leaf)` for each row, in the tree whose root has number `root` and key `key`.
    template <class Each>
    void go_down(Matrix<const int32_t> nodes, Index root, uint64_t key, Each each) {
        waiting.assign(1, {root, codes.rows, key});
        sets.resize(std::max<std::size_t>(sets.size(), words));
        for (Index w = 0; w < words; ++w) sets[w] = ~uint64_t{0} >> std::max<Index>(0, 64 * (w + 1) - codes.rows);
        while (!waiting.empty()) {
            const Node here = waiting.back();
            const Index place = length(waiting) - 1;
            const int32_t* at = nodes[here.number].data();
            if (at[ATTRIBUTE] < 0) {
                for_each_row(place, [&](Index row) { each(row, here.number); });
                waiting.pop_back();
            } else if (here.rows <= few) {
                go_alone(nodes, here, place, each);
                waiting.pop_back();
            } else {
                const Index on_left = divide(place, at, named[at[ATTRIBUTE]] ? names_key(here.key, at[TEST]) : 0);
                waiting.back() = {here.number + at[SKIP], here.rows - on_left, derived_key(here.key, RIGHT)};
                if (on_left > 0) waiting.push_back({here.number + 1, on_left, derived_key(here.key, LEFT)});
            }
        }
    }

   private:
    template <class Each>
    void for_each_row(Index place, Each each) const {
        for (Index w = 0; w < words; ++w)
            for (uint64_t rows = sets[place * words + w]; rows != 0; rows &= rows - 1)
                each(64 * w + std::countr_zero(rows));
    }

    /// Keep the rows that go right in the set at `place`, write those that go left into the next one; return their
    /// number.
    ///
    /// `mask` is the key that decides which names go left, 0 if a number is tested.
    Index divide(Index place, const int32_t* at, uint64_t mask) {
        sets.resize(std::max<std::size_t>(sets.size(), (place + 2) * words));
        uint64_t* here = sets.data() + place * words;
        const uint16_t* column = columns[at[ATTRIBUTE]].data();
        const Cut cut(at[TEST]);
        Index count = 0;
        for (Index w = 0; w < words; ++w) {
            uint64_t left = 0;
            if (mask != 0)
                for (uint64_t rows = here[w]; rows != 0; rows &= rows - 1) {
                    const int bit = std::countr_zero(rows);
                    left |= uint64_t{is_heads(derived_key(mask, column[64 * w + bit]))} << bit;
                }
            else if (here[w] != 0) left = here[w] & on_left(column + 64 * w, cut);
            here[words + w] = left;
            here[w] ^= left;
            count += std::popcount(left);
        }
        return count;
    }

    /// Return as bits which of 64 rows go left by the test of a number.
    static uint64_t on_left(const uint16_t* column, Cut cut) {
        uint8_t side[64];
        for (int i = 0; i < 64; ++i) side[i] = cut.goes_left(column[i]);
        uint64_t found = 0;
        for (int i = 0; i < 64; i += 8) {
            uint64_t eight;
            std::memcpy(&eight, side + i, sizeof eight);
            found |= (eight * 0x0102040810204080u >> 56) << i;  // the lowest bit of each byte
        }
        return found;
    }

    /// Let a few rows of a node descend one by one.
    template <class Each>
    void go_alone(Matrix<const int32_t> nodes, const Node& from, Index place, Each each) const {
        Index rows[MOST_ALONE], at[MOST_ALONE], count = 0;
        for_each_row(place, [&](Index row) { rows[count++] = row; });
        if (by_name) {
            for (Index i = 0; i < count; ++i)
                each(rows[i], leaf_of(nodes, from.number, from.key, codes[rows[i]].data(), named));
            return;
        }
        std::fill(at, at + count, from.number);
        for (bool going = true; going;) {
            going = false;
            for (Index lane = 0; lane < count; ++lane) {
                const int32_t* node = nodes[at[lane]].data();
                const int32_t k = node[ATTRIBUTE];
                const bool is_inner = k >= 0,
                           on_left = Cut(node[TEST]).goes_left(codes(rows[lane], k & -int32_t{is_inner}));
                at[lane] += step_of(node, on_left) & -Index{is_inner};
                going |= is_inner;
            }
        }
        for (Index lane = 0; lane < count; ++lane) each(rows[lane], at[lane]);
    }
};

/// Call `each(tree, row, leaf)` for every row and every tree with a weight above 0; for each row, in the order of the
/// trees.
template <class Each>
inline void for_each_leaf(Codes codes, Bools named, Vector<const uint64_t> keys, Matrix<const int32_t> nodes,
                          Matrix<const int64_t> counts, ConstReals weights, Each each) {
    for (Index begin = 0; begin < codes.rows; begin += AT_A_TIME) {
        Paths paths({codes[begin].data(), std::min(AT_A_TIME, codes.rows - begin), codes.columns}, named);
        Index first = 0;
        for (Index m = 0; m < length(keys); first += counts(m++, 0))
            if (weights[m] > 0.0)
                paths.go_down(nodes, first, keys[m], [&](Index i, Index leaf) { each(m, begin + i, leaf); });
    }
}

/// Add the trees' predictions of m rows, times `weights` (trees,), to `predicted` (m, 3 l).
///
/// These are estimate, belief and plausibility; for `predicted` (m, l) the estimates alone; for (trees m, l) the
/// estimates by each tree. In a leaf whose n rows have one class, its least probability over the cut at `level` is
/// ``level^(1/n)``. A tree of weight 0 is skipped. See `grow`.
inline void add_opinions(Codes codes, Bools named, Vector<const uint64_t> keys, Matrix<const int32_t> nodes,
                         ConstRealMatrix opinions, Matrix<const int64_t> counts, ConstReals weights, double level,
                         RealMatrix predicted) {
    const Index l = opinions.columns / 3;
    const bool with_bounds = predicted.columns > l;
    const Index lines_apart = predicted.rows > codes.rows ? codes.rows : 0;
    std::vector<Index> first_opinions(length(keys) + 1);
    for (Index m = 0; m < length(keys); ++m) first_opinions[m + 1] = first_opinions[m] + counts(m, 1);
    for_each_leaf(codes, named, keys, nodes, counts, weights, [&](Index m, Index i, Index leaf) {
        const double weight = weights[m];
        const Index opinion = nodes(leaf, SKIP), size = nodes(leaf, SIZE);
        const Reals sum = predicted[m * lines_apart + i];
        if (opinion >= l) {
            const ConstReals own = opinions[first_opinions[m] + opinion - l];
            for (Index c = 0; c < predicted.columns; ++c) sum[c] += weight * own[c];
            return;
        }
        sum[opinion] += weight;
        if (!with_bounds) return;
        const double sure = weight * (size == 1 ? level : std::pow(level, 1.0 / size));
        sum[l + opinion] += sure;
        for (Index c = 0; c < l; ++c) sum[2 * l + c] += c == opinion ? weight : weight - sure;
    });
}

/// Add ``Σ_k ln φ(x_k; μ_kc, σ_kc)`` of rows (m, K), without missing values, to `logs` (m, l).
///
/// For each number the maximum over the classes is subtracted, which changes no comparison of classes. So a number far
/// from all classes does not outweigh the others, and a number of equal density in all classes adds exactly 0.
inline void add_densities(ConstRealMatrix values, ConstRealMatrix means, ConstRealMatrix deviations, RealMatrix logs) {
    const Index l = logs.columns, m = values.rows;
    OwnedMatrix<double> own(l, m);  // minus log densities of one attribute
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
