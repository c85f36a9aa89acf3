// The kinds of cells, and the solution of those whose labels are all precise or vacuous (theory §2.9).
//
// A cell is a sparse vector of counts over a table of contours (`quercus.trees.likelihood.cells`). For each contour,
// `klass` has the one class that it leaves (precise), `CONSTANT` (vacuous) or `OTHER`. Cells that need more than class
// counts are marked as `GENERAL` in `kinds` and left to the caller. `Count` is the type of counts: whole numbers, or
// weights.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "loglik.hpp"
#include "precise.hpp"
#include "roots.hpp"

namespace quercus {

constexpr int8_t CONSTANT = -1, OTHER = -2;          // of a contour that leaves more than one class
enum CellKind { EMPTY, VACUOUS, PRECISE, GENERAL };  // by the most informative of the labels of a cell
constexpr int MALFORMED = -1;
constexpr double TIGHT = 1e-11;  // nats; the gap to which precise labels are solved

/// Write the class counts of the precise labels among entries `first .. last - 1` into `n`; return the cell's kind.
///
/// The kind is `MALFORMED` if a number of a contour is out of range or not above the one before, or a count is not
/// positive.
template <class Count>
inline int tally(Index first, Index last, Vector<const int32_t> ids, Vector<const Count> counts,
                 Vector<const int8_t> klass, Reals n) {
    std::fill(n.begin(), n.end(), 0.0);
    int kind = EMPTY;
    Index before = -1;
    for (Index e = first; e < last; ++e) {
        const Index number = ids[e];
        if (number <= before || number >= length(klass) || counts[e] <= 0) return MALFORMED;
        before = number;
        const int k = klass[number];
        if (k >= 0) n[k] += counts[e];
        kind = std::max<int>(kind, k >= 0 ? PRECISE : k == CONSTANT ? VACUOUS : GENERAL);
    }
    return kind;
}

/// Write the positive values of `n` into `x`, largest first; return their number.
inline Index sort_positive(ConstReals n, Reals x) {
    Index m = 0;
    for (double value : n) {
        if (!(value > 0.0)) continue;
        Index k = m;
        for (; k > 0 && x[k - 1] < value; --k) x[k] = x[k - 1];
        x[k] = value;
        ++m;
    }
    return m;
}

/// Return the row of counts in a cache of `size` rows, a power of 2.
inline Index slot_of(ConstReals x, Index size) {
    uint64_t h = x.size();
    for (double value : x) {
        h = (h ^ static_cast<uint64_t>(static_cast<int64_t>(value))) * 0x9E3779B97F4A7C15;
        h ^= h >> 29;
    }
    return static_cast<Index>(h & static_cast<uint64_t>(size - 1));
}

/// Write lower bound, reached least, reached greatest entropy and upper bound (nats) for counts in falling order.
///
/// `free` further classes have no label; `outer` and `inner` enclose `ln alpha`, which may be 0.
inline void ends_of_counts(ConstReals n, Index free, double outer, double inner, Reals ends) {
    if (inner >= 0.0) {
        const double N = sum_of(n);
        double total = 0.0;
        for (double value : n) total += value * std::log(value);
        const double value = n.size() > 1 ? std::log(N) - total / N : 0.0;
        ends[0] = ends[1] = ends[2] = ends[3] = std::max(value, 0.0);
        return;
    }
    EntropyEnd least{0.0, 0.0};
    if (n.size() > 1) least = least_entropy_of_counts(n, outer, inner, TIGHT, CURVE_STEPS);
    const EntropyEnd greatest = greatest_entropy_of_counts(n, free, outer, inner, TIGHT, CURVE_STEPS);
    ends[0] = least.bound;
    ends[1] = least.reached;
    ends[2] = greatest.reached;
    ends[3] = greatest.bound;
}

/// Write lower end, upper end and gap (bits) for counts in falling order; false if rounding forbids.
///
/// See `ends_of_counts`, here at the level `c = ln alpha`.
inline bool interval_of_counts(ConstReals n, Index free, double c, Reals found) {
    const Index l = length(n);
    const double slack = sum_of(n) * LOG_ROUNDING * (l + 4);
    if (c < 0.0 && -c <= SHARP_PRECISE * slack) return false;
    double ends[4];
    ends_of_counts(n, free, c - slack, c < 0.0 ? c + slack : 0.0, ends);
    const double bit = std::log(2.0);
    const double gap = std::max(std::max(ends[1] - ends[0], ends[3] - ends[2]), 0.0);
    const bool settled = gap <= 2.0 * TIGHT;
    found[0] = (settled ? ends[1] : ends[0]) / bit;
    found[1] =
        std::max(found[0], std::min((settled ? ends[2] : ends[3]) / bit, std::log2(static_cast<double>(l + free))));
    found[2] = gap / bit;
    return true;
}

/// Write kinds (m,), and lower end, upper end and gap in bits (3, m) of all cells but the general ones.
///
/// `keys` (e, l) and `values` (e, 3) are a cache of solutions, in which a new solution replaces the one in its row.
/// Returns the number of a malformed cell, or -1.
template <class Count>
inline Index solve_precise(Vector<const int64_t> start, Vector<const int32_t> ids, Vector<const Count> counts,
                           Vector<const int8_t> klass, Index l, double alpha, RealMatrix keys, RealMatrix values,
                           Vector<int8_t> kinds, RealMatrix ends) {
    std::vector<double> n(l), sorted(l);
    double scratch[4];
    const double bit = std::log(2.0);
    const double top = std::log2(static_cast<double>(l));
    const double c = alpha > 0.0 ? std::log(alpha) : -INFINITE;
    for (Index i = 0; i < length(start) - 1; ++i) {
        const int kind = tally(start[i], start[i + 1], ids, counts, klass, n);
        kinds[i] = static_cast<int8_t>(kind);
        if (kind == MALFORMED) return i;
        if (kind == EMPTY) {
            ends(0, i) = ends(1, i) = ends(2, i) = 0.0;
        } else if (kind == VACUOUS || alpha == 0.0) {
            kinds[i] = VACUOUS;
            ends(0, i) = ends(2, i) = 0.0;
            ends(1, i) = top;
        } else if (kind == PRECISE) {
            const Index k = sort_positive(n, sorted);
            const ConstReals x = part(Reals(sorted), 0, k);
            if (alpha == 1.0) {  // without the cache: solving is cheaper than a look-up
                ends_of_counts(x, l - k, 0.0, 0.0, scratch);
                ends(0, i) = ends(1, i) = std::min(scratch[0] / bit, top);
                ends(2, i) = 0.0;
                continue;
            }
            const Index slot = slot_of(x, keys.rows);
            const Reals key = keys[slot], value = values[slot];
            const bool same = (k == l || key[k] == 0.0) && std::equal(x.begin(), x.end(), key.begin());
            if (!same) {
                if (!interval_of_counts(x, l - k, c, value)) {
                    kinds[i] = GENERAL;
                    key[0] = -1.0;
                    continue;
                }
                for (Index j = 0; j < l; ++j) key[j] = j < k ? x[j] : 0.0;
            }
            for (Index r = 0; r < 3; ++r) ends(r, i) = value[r];
        }
    }
    return -1;
}

/// Write kinds, theta (m, l) and uniqueness (m,) of all cells but the general ones; return as `solve_precise`.
template <class Count>
inline Index estimate_precise(Vector<const int64_t> start, Vector<const int32_t> ids, Vector<const Count> counts,
                              Vector<const int8_t> klass, Vector<int8_t> kinds, RealMatrix theta, Vector<bool> unique) {
    const Index l = theta.columns;
    std::vector<double> n(l);
    for (Index i = 0; i < length(start) - 1; ++i) {
        const int kind = tally(start[i], start[i + 1], ids, counts, klass, n);
        kinds[i] = static_cast<int8_t>(kind);
        if (kind == MALFORMED) return i;
        if (kind == GENERAL) continue;
        const double N = sum_of(n);
        unique[i] = kind == PRECISE;
        for (Index j = 0; j < l; ++j) theta(i, j) = N > 0.0 ? n[j] / N : 1.0 / l;
    }
    return -1;
}

/// Write kinds (m,) and class bounds (m, l) of all cells but the general ones; return as `solve_precise`.
template <class Count>
inline Index bound_precise(Vector<const int64_t> start, Vector<const int32_t> ids, Vector<const Count> counts,
                           Vector<const int8_t> klass, double alpha, Vector<int8_t> kinds, RealMatrix lower,
                           RealMatrix upper) {
    const Index l = lower.columns;
    std::vector<double> n(l);
    for (Index i = 0; i < length(start) - 1; ++i) {
        const int kind = tally(start[i], start[i + 1], ids, counts, klass, n);
        kinds[i] = static_cast<int8_t>(kind);
        if (kind == MALFORMED) return i;
        if (kind <= VACUOUS || alpha == 0.0) {
            kinds[i] = VACUOUS;
            for (Index j = 0; j < l; ++j) {
                lower(i, j) = 0.0;
                upper(i, j) = 1.0;
            }
        } else if (kind == PRECISE) {
            const double N = sum_of(n);
            const double c = std::log(alpha) - N * LOG_ROUNDING * 6.0;
            for (Index j = 0; j < l; ++j) {
                const double p = n[j] / N;
                if (alpha == 1.0) {  // the cut is practically the maximiser alone
                    lower(i, j) = upper(i, j) = p;
                    continue;
                }
                lower(i, j) = std::max(std::min(1.0 - class_end(N - n[j], N, c) - 4e-16, p), 0.0);
                upper(i, j) = std::min(std::max(class_end(n[j], N, c) + 4e-16, p), 1.0);
            }
        }
    }
    return -1;
}

}  // namespace quercus
