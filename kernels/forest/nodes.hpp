// The statistics of a node's rows, and the draw of its test (theory §10.2).
//
// The rows of a node are one range of an array of row numbers, sorted by contour. Rows with equal contours are
// adjacent: they are a *run*. A sum over a run is its count times a share, and the runs are in the order of contours,
// so no sum depends on the order of the rows.
//
// Codes (rows, K) are 0 for a missing value, else the bin or the index of the name, counted from 1. A column has the
// codes of one attribute for the rows of a node. Labels are classes; `NONE` is a label that is not precise.
#pragma once

#include <cmath>
#include <limits>

#include "draws.hpp"

namespace quercus::forest {

constexpr int NONE = -1;               // in place of an index
constexpr int ATTEMPTS = 64;           // number of attempts to draw a subset of names that divides the rows of a node
constexpr uint16_t ALL_KNOWN = 65535;  // cut of a test that separates known numbers from missing ones
constexpr double SOLE = 1.0 - 1e-9;    // a class with this much probability is the only one
constexpr double PURITY_TIE = 1e-9;  // nats; a gain, times the rows, must exceed the best so far by more (theory §10.2)
constexpr int NODE_STEPS = 300;      // maximum number of steps of E2M at a node
constexpr double EXCESS = 1e-7;      // KKT excess (theory §2.2) at which E2M stops
constexpr int VERTEX_STEP = 4;       // the step at which a vertex is tried
constexpr int TABLED = 4096;         // n ln n is in a table for whole numbers below this
constexpr int FEW_CLASSES = 16;      // up to this many classes are counted with vectors or in one register
constexpr int FEW_OF_EACH = 8;       // with fewer rows per class, in one register
constexpr int BLOCK_OF_ROWS = 65528;       // number of rows whose count fits 16 bits
constexpr double PARTED = PURITY_TIE / 4;  // a purity above minus this is 0 but for rounding: the classes are separated
constexpr int FEW_ROWS = 16;               // a node with fewer rows is read in one loop, without vectors
constexpr int BITS = 64;                   // number of attributes for which a node records that they do not vary

using Codes = Matrix<const uint16_t>;
using Column = Vector<uint16_t>;
using Rows = Vector<int32_t>;
using ConstRows = Vector<const int32_t>;
using Kinds = Vector<const int32_t>;
using Labels = Vector<const int16_t>;
using Bools = Vector<const bool>;
using Ints = Vector<int64_t>;
using ConstInts = Vector<const int64_t>;

/// Write contour and length of each run of `rows`; return the number of runs.
inline Index runs_of(ConstRows rows, Kinds kinds, Rows kind, Ints count) {
    Index runs = 0;
    for (const int32_t row : rows) {
        const int32_t here = kinds[row];
        if (runs == 0 || kind[runs - 1] != here) {
            kind[runs] = here;
            count[runs] = 0;
            ++runs;
        }
        ++count[runs - 1];
    }
    return runs;
}

/// Write the number of rows of each class; false if a label is not precise.
inline bool count_classes(ConstRows rows, Labels labels, Rows classes) {
    std::fill(classes.begin(), classes.end(), 0);
    for (const int32_t row : rows) {
        const int16_t c = labels[row];
        if (c == NONE) return false;
        ++classes[c];
    }
    return true;
}

/// The shares of the classes in runs, stored class by class, so that loops over runs can use vector units.
class ByClass {
    Index runs = 0, l;
    OwnedMatrix<double> contour;
    std::vector<double> number, total;

   public:
    OwnedMatrix<double> share;  // (l, most), of which the first `runs` columns count
    std::vector<double> mass;   // (l,) numbers of rows times shares

    /// Make room for at most `most` runs and `l` classes.
    ByClass(Index most, Index l) : l(l), contour(l, most), number(most), total(most), share(l, most), mass(l) {}

    /// Read the contours and counts of the runs of a node.
    void read(Index runs_here, Kinds kind, ConstInts count, ConstRealMatrix contours) {
        runs = runs_here;
        for (Index d = 0; d < runs; ++d) {
            number[d] = static_cast<double>(count[d]);
            for (Index c = 0; c < l; ++c) contour(c, d) = contours(kind[d], c);
        }
    }

    /// Set ``s_ic = θ_c pl_ic / Σ_k θ_k pl_ik`` of each run.
    void share_out(ConstReals theta) {
        double* __restrict sum = total.data();
        std::fill_n(sum, runs, 0.0);
        for (Index c = 0; c < l; ++c) {
            double* __restrict mine = share[c].data();
            const double* __restrict given = contour[c].data();
            const double chance = theta[c];
            for (Index d = 0; d < runs; ++d) {
                mine[d] = chance * given[d];
                sum[d] += mine[d];
            }
        }
        for (Index c = 0; c < l; ++c) {
            double* __restrict mine = share[c].data();
            for (Index d = 0; d < runs; ++d) mine[d] /= sum[d];
        }
        for (Index first = 0; first < l; first += 4) add_up(first);
    }

   private:
    /// Add up the masses of four classes from `first` on, in the order of the runs; with fewer, the last one repeats.
    void add_up(Index first) {
        const double* one[4];
        for (Index c = 0; c < 4; ++c) one[c] = share[std::min(first + c, l - 1)].data();
        double a = 0.0, b = 0.0, c = 0.0, e = 0.0;
        for (Index d = 0; d < runs; ++d) {
            const double n = number[d];
            a += n * one[0][d];
            b += n * one[1][d];
            c += n * one[2][d];
            e += n * one[3][d];
        }
        const double found[4] = {a, b, c, e};
        std::copy_n(found, std::min<Index>(4, l - first), mass.begin() + first);
    }
};

/// Set the likeliest class to probability 1 if that is the only maximiser: if ``g_c < 1`` for all other classes.
inline bool at_vertex(Index runs, Kinds kind, ConstInts count, ConstRealMatrix contours, Reals theta, double total) {
    const Index l = length(theta);
    Index a = 0;
    for (Index c = 0; c < l; ++c)
        if (theta[c] > theta[a]) a = c;
    for (Index d = 0; d < runs; ++d)
        if (contours(kind[d], a) <= 0.0) return false;
    for (Index c = 0; c < l; ++c) {
        double g = 0.0;
        for (Index d = 0; d < runs; ++d) g += count[d] * contours(kind[d], c) / contours(kind[d], a);
        if (c != a && g >= total * SOLE) return false;
    }
    std::fill(theta.begin(), theta.end(), 0.0);
    theta[a] = 1.0;
    return true;
}

/// Write ``θ̂`` (l,) of a node and the shares of the classes in each run (theory §2.2).
///
/// If every contour leaves one class (`sole`), θ̂ are the frequencies, no shares are written, and the result is true.
/// Else E2M starts from equal probabilities, so that among many maximisers it finds one that prefers no class without
/// reason. Near a vertex E2M converges ever more slowly; there the KKT condition proves that the vertex is the
/// maximiser.
inline bool estimate_node(Index runs, Kinds kind, ConstInts count, ConstRealMatrix contours, Kinds sole, Reals theta,
                          RealMatrix share, ByClass& by_class) {
    const Index l = contours.columns;
    double total = 0.0;
    bool precise = true;
    for (Index d = 0; d < runs; ++d) {
        total += count[d];
        precise = precise && sole[kind[d]] != NONE;
    }
    if (precise) {
        std::fill(theta.begin(), theta.end(), 0.0);
        for (Index d = 0; d < runs; ++d) theta[sole[kind[d]]] = count[d] / total;
        return true;
    }
    std::fill(theta.begin(), theta.end(), 1.0 / l);
    by_class.read(runs, kind, count, contours);
    for (int step = 0; step < NODE_STEPS; ++step) {
        if (step == VERTEX_STEP && at_vertex(runs, kind, count, contours, theta, total)) break;
        by_class.share_out(theta);
        double excess = 0.0;
        for (Index c = 0; c < l; ++c) {
            if (!(theta[c] > 0.0)) continue;
            const double mass = by_class.mass[c] / total;
            excess = std::max(excess, mass / theta[c] - 1.0);
            theta[c] = mass;
        }
        if (excess <= EXCESS) break;
    }
    at_vertex(runs, kind, count, contours, theta, total);
    by_class.share_out(theta);
    for (Index d = 0; d < runs; ++d)
        for (Index c = 0; c < l; ++c) share(d, c) = by_class.share(c, d);
    return false;
}

/// Return whether a code goes left.
///
/// Of numbers `test` is twice the cut, plus 1 if missing numbers go left. Of names the `key` of the attempt decides.
inline bool goes_left(int64_t code, bool named, int64_t test, uint64_t key) {
    if (named) return is_heads(derived_key(key, code));
    return code == 0 ? (test & 1) == 1 : code <= test >> 1;
}

/// The test of a number, evaluated without a branch: a code goes left if, less `skipped`, it is at most `cut`.
struct Cut {
    uint16_t skipped;  // 1 if missing numbers go right: their code, 0, less 1 is above all cuts
    uint16_t cut;

    explicit Cut(int64_t test)
        : skipped(static_cast<uint16_t>(1 - (test & 1))), cut(static_cast<uint16_t>((test >> 1) - skipped)) {}
    bool goes_left(uint16_t code) const { return static_cast<uint16_t>(code - skipped) <= cut; }
};

struct Extent {
    int64_t low, high;  // least and greatest code of a known value; `high` is 0 if all are missing
    bool missing;       // whether a value is missing
};

/// Copy the codes of an attribute; return their extent.
inline Extent read_column(Codes codes, ConstRows rows, Index k, Column column) {
    const Index n = length(rows);
    const uint16_t* __restrict source = codes.data + k;
    if (n < FEW_ROWS) {
        uint16_t low = 65535, high = 0, last = 0;
        for (Index i = 0; i < n; ++i) {
            const uint16_t code = source[rows[i] * codes.columns], before = static_cast<uint16_t>(code - 1);
            column[i] = code;
            low = std::min(low, before);
            last = std::max(last, before);
            high = std::max(high, code);
        }
        return {low + 1, high, last == 65535};
    }
    for (Index i = 0; i < n; ++i) column[i] = source[rows[i] * codes.columns];
    // Every vector unit has minimum and maximum of signed numbers of 16 bits, so 2^15 is subtracted from the codes. The
    // code of a missing value, 0, less 1 is above all others.
    int16_t low = 32767, high = -32768, last = -32768;
    for (Index i = 0; i < n; ++i) {
        const auto code = static_cast<int16_t>(column[i] ^ 0x8000u);
        const auto before = static_cast<int16_t>((column[i] - 1u) ^ 0x8000u);
        low = std::min(low, before);
        last = std::max(last, before);
        high = std::max(high, code);
    }
    return {low + 32769, high + 32768, last == 32767};
}

/// Draw the test of a number with codes from `low` to `high`; `NONE` if it does not vary.
inline int64_t draw_cut(int64_t low, int64_t high, bool missing, uint64_t key) {
    if (low < high) return 2 * number_between(key, low, high) + is_heads(key);
    return missing && high > 0 ? 2 * int64_t{ALL_KNOWN} : NONE;
}

/// Return the first attempt to draw names that divides the rows; `NONE` if none does.
inline int64_t draw_names(Column column, Index n, uint64_t key) {
    for (int attempt = 0; attempt < ATTEMPTS; ++attempt) {
        const uint64_t mask = derived_key(key, attempt);
        const bool side = is_heads(derived_key(mask, column[0]));
        for (Index i = 1; i < n; ++i)
            if (is_heads(derived_key(mask, column[i])) != side) return attempt;
    }
    return NONE;
}

/// Draw the test of an attribute; `NONE` if it does not vary.
inline int64_t draw_test(Column column, Index n, bool named, Extent extent, uint64_t key) {
    if (!named) return draw_cut(extent.low, extent.high, extent.missing, key);
    const bool varies = extent.low < extent.high || (extent.missing && extent.high > 0);
    return varies ? draw_names(column, n, key) : NONE;
}

/// Replace the codes of names: by 0 for those that go left, by 1 for the others. Return the test of such a number.
inline int64_t number_names(Column column, Index n, int64_t high, uint64_t key) {
    if (high >= n) {
        for (Index i = 0; i < n; ++i) column[i] = !is_heads(derived_key(key, column[i]));
    } else {  // each name is hashed once
        std::vector<uint8_t> side(high + 1);
        for (int64_t code = 0; code <= high; ++code) side[code] = !is_heads(derived_key(key, code));
        for (Index i = 0; i < n; ++i) column[i] = side[column[i]];
    }
    return 1;
}

/// Write the number of rows of each run that go left by the test of a number.
inline void count_left(Vector<const uint16_t> column, Index runs, ConstInts count, int64_t test, Ints left) {
    const Cut cut(test);
    Index i = 0;
    for (Index d = 0; d < runs; ++d) {
        int64_t on_left = 0;
        for (const Index end = i + count[d]; i < end; ++i) on_left += cut.goes_left(column[i]);
        left[d] = on_left;
    }
}

/// Write the number of rows of each class that go left by the test of a number; `label` (n,) are their classes.
inline void count_left_of_classes(Vector<const uint16_t> column, Labels label, Index n, int64_t test, Rows left) {
    const Index l = length(left);
    const Cut cut(test);
    std::fill(left.begin(), left.end(), 0);
    if (l > FEW_CLASSES) {
        for (Index i = 0; i < n; ++i) left[label[i]] += cut.goes_left(column[i]);
        return;
    }
    if (n < FEW_OF_EACH * l) {  // all counts share one register, emptied before a count can overflow
        const int bits = 64 / FEW_CLASSES << (l <= FEW_CLASSES / 2);
        const Index most = (1 << bits) - 1;
        for (Index begin = 0; begin < n; begin += most) {
            const Index end = std::min(begin + most, n);
            uint64_t counts = 0;
            for (Index i = begin; i < end; ++i) counts += uint64_t{cut.goes_left(column[i])} << bits * label[i];
            for (Index c = 0; c < l; ++c, counts >>= bits) left[c] += static_cast<int32_t>(counts & most);
        }
        return;
    }
    const uint16_t* __restrict code = column.data();
    const int16_t* __restrict klass = label.data();
    for (Index begin = 0; begin < n; begin += BLOCK_OF_ROWS) {
        const Index end = std::min<Index>(begin + BLOCK_OF_ROWS, n);
        for (Index c = 0; c < l; ++c) {
            const auto mine = static_cast<int16_t>(c);
            uint16_t on_left = 0;  // as wide as codes and labels: eight rows in a vector of 128 bits
            for (Index i = begin; i < end; ++i)
                on_left = static_cast<uint16_t>(on_left + ((klass[i] == mine) & cut.goes_left(code[i])));
            left[c] += on_left;
        }
    }
}

/// ``n ln n`` of the whole numbers below `TABLED`.
inline const double* log_table() {
    static const auto table = [] {
        std::vector<double> found(TABLED);
        for (int n = 1; n < TABLED; ++n) found[n] = n * std::log(n);
        return found;
    }();
    return table.data();
}

/// Return ``n ln n`` of a whole number.
inline double n_log_n(int64_t n, const double* table) {
    return n < TABLED ? table[n] : n * std::log(static_cast<double>(n));
}

/// Return ``x ln x``; for small whole numbers from a table.
inline double n_log_n(double x, const double* table) {
    const auto whole = static_cast<int64_t>(x);
    if (whole == x && whole < TABLED) return table[whole];
    return x > 0.0 ? x * std::log(x) : 0.0;
}

/// Return ``-Σ_sides n H`` in nats, from the shares of the classes: it ranks the tests of a node as their gains do.
inline double purity(Index runs, ConstInts count, ConstInts left, ConstRealMatrix share, const double* table) {
    double pure = 0.0;
    int64_t on_left = 0, on_right = 0;
    for (Index d = 0; d < runs; ++d) {
        on_left += left[d];
        on_right += count[d] - left[d];
    }
    pure -= n_log_n(on_left, table) + n_log_n(on_right, table);
    const Index l = share.columns;
    std::vector<double> mine(l), other(l);
    for (Index d = 0; d < runs; ++d) {
        const auto here = static_cast<double>(left[d]), there = static_cast<double>(count[d] - left[d]);
        for (Index c = 0; c < l; ++c) {
            mine[c] += here * share(d, c);
            other[c] += there * share(d, c);
        }
    }
    for (Index c = 0; c < l; ++c) pure += n_log_n(mine[c], table) + n_log_n(other[c], table);
    return pure;
}

/// Return the purity for precise labels: `count` rows of each class (l,), of which `left` go left, `n` in all.
inline double purity_of_classes(Kinds count, Kinds left, Index n, const double* table) {
    const auto with = [&](auto of) {
        double pure = 0.0;
        int64_t on_left = 0, on_right = 0;
        for (Index c = 0; c < length(count); ++c) {
            const int64_t mine = left[c], other = count[c] - left[c];
            on_left += mine;
            on_right += other;
            pure += of(mine) + of(other);
        }
        return pure - of(on_left) - of(on_right);
    };
    if (n < TABLED) return with([table](int64_t m) { return table[m]; });
    return with([table](int64_t m) { return n_log_n(m, table); });
}

/// Return the number of attributes that get a test in a node: ``⌈√A⌉`` if A attributes vary in the log.
inline int64_t tests_wanted(Index A) { return static_cast<int64_t>(std::ceil(std::sqrt(static_cast<double>(A)))); }

/// Return the key that decides which names go left by a test, given the node's key (see `choose_test`).
inline uint64_t names_key(uint64_t key, int64_t test) {
    return derived_key(derived_key(key, PLACES + test / ATTEMPTS), test % ATTEMPTS);
}

/// Draw the item for a place of the order from those without a place, and return it.
inline int64_t draw_order(Ints order, Index place, uint64_t key) {
    const Index other = place + number_below(derived_key(key, PLACES + place), length(order) - place);
    std::swap(order[place], order[other]);
    return order[place];
}

struct Test {
    int64_t attribute = NONE, test = 0;
};

/// Return attribute and test of a node with labels that are not precise; `NONE` and 0 if no attribute varies.
///
/// The key determines an order of the A attributes that vary in the log; the first ``⌈√A⌉`` of them that vary in the
/// node get a test. The test with the greatest gain is chosen, the first of ties. The test of a number is as in
/// `goes_left`; that of names is the attempt, plus 64 times the number of the draw, from which `names_key` recovers
/// them.
inline Test choose_test(Codes codes, Bools named, ConstInts varying, ConstRows rows, uint64_t key, Index runs,
                        ConstInts count, ConstRealMatrix share, const double* table, Ints order, Ints left,
                        Column column) {
    const Index A = length(varying), n = length(rows);
    for (Index j = 0; j < A; ++j) order[j] = j;
    double best = -std::numeric_limits<double>::infinity();
    Test chosen;
    int64_t wanted = tests_wanted(A);
    for (Index place = 0; place < A; ++place) {
        const int64_t j = draw_order(order, place, key), k = varying[j];
        const uint64_t mine = derived_key(key, PLACES + A + j);
        const Extent extent = read_column(codes, rows, k, column);
        const int64_t test = draw_test(column, n, named[k], extent, mine);
        if (test == NONE) continue;
        const int64_t numeric = named[k] ? number_names(column, n, extent.high, derived_key(mine, test)) : test;
        count_left(column, runs, count, numeric, left);
        const double pure = purity(runs, count, left, share, table);
        if (pure > best + PURITY_TIE) {
            best = pure;
            chosen = {k, named[k] ? test + ATTEMPTS * (A + j) : test};
        }
        if (--wanted == 0) break;
    }
    return chosen;
}

/// Return attribute and test of a node with precise labels, as `choose_test`; `classes` (l,) counts the rows by class.
///
/// `same` has a bit for each of the first 64 attributes that is known not to vary; bits of attributes found not to vary
/// are added. No test is better than one that separates the classes, so the first such test ends the search. At the
/// end, the second line of `left` (2, l) has the number of rows of each class that go left by the chosen test. `wanted`
/// is `tests_wanted(A)`.
inline Test choose_test_of_classes(Codes codes, Bools named, ConstInts varying, ConstRows rows, uint64_t key,
                                   Kinds classes, Labels labels, const double* table, uint64_t& same, Ints order,
                                   Matrix<int32_t> left, Vector<int16_t> label, Column column, int64_t wanted) {
    const Index A = length(varying), n = length(rows);
    for (Index j = 0; j < A; ++j) order[j] = j;
    for (Index i = 0; i < n; ++i) label[i] = labels[rows[i]];
    double best = -std::numeric_limits<double>::infinity();
    Test chosen;
    for (Index place = 0; place < A; ++place) {
        const int64_t j = draw_order(order, place, key), k = varying[j];
        const uint64_t bit = k < BITS ? uint64_t{1} << k : 0;
        if (same & bit) continue;
        const Extent extent = read_column(codes, rows, k, column);
        if (extent.high == 0 || (extent.low == extent.high && !extent.missing)) {
            same |= bit;
            continue;
        }
        const uint64_t mine = derived_key(key, PLACES + A + j);
        const int64_t test = draw_test(column, n, named[k], extent, mine);
        if (test == NONE) continue;
        const int64_t numeric = named[k] ? number_names(column, n, extent.high, derived_key(mine, test)) : test;
        count_left_of_classes(column, label, n, numeric, left[0]);
        const double pure = purity_of_classes(classes, left[0], n, table);
        if (pure > best + PURITY_TIE) {
            best = pure;
            chosen = {k, named[k] ? test + ATTEMPTS * (A + j) : test};
            std::copy(left[0].begin(), left[0].end(), left[1].begin());
        }
        if (--wanted == 0 || best > -PARTED) break;
    }
    return chosen;
}

}  // namespace quercus::forest
