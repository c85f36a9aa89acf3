// Cells rewritten over another table, and a hash table of cells (`quercus.trees.likelihood.cell_cache`).
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "loglik.hpp"

namespace quercus {

/// Sort `size` elements in place by heap sort, which has no bad worst case.
///
/// `less(a, b)` compares the elements at two places, `swap(a, b)` exchanges them.
template <class Less, class Swap>
inline void heap_sort(Index size, Less less, Swap swap) {
    Index left = size / 2;
    while (size > 1) {
        if (left > 0) {
            --left;
        } else {
            --size;
            swap(0, size);
        }
        Index root = left;
        while (2 * root + 1 < size) {
            Index child = 2 * root + 1;
            if (child + 1 < size && less(child, child + 1)) ++child;
            if (!less(root, child)) break;
            swap(root, child);
            root = child;
        }
    }
}

/// Sort entries by column in place.
inline void sort_entries(Vector<int32_t> columns, Reals counts) {
    heap_sort(
        length(columns), [&](Index a, Index b) { return columns[a] < columns[b]; },
        [&](Index a, Index b) {
            std::swap(columns[a], columns[b]);
            std::swap(counts[a], counts[b]);
        });
}

/// Rewrite the cells `wanted` over the table of informative contours, each contour once, numbers ascending.
///
/// `column` has the number of each contour in that table, -1 for constant contours. The output has room for as many
/// entries as the input.
template <class Count>
inline void merge_cells(Vector<const int64_t> start, Vector<const int32_t> ids, Vector<const Count> counts,
                        Vector<const int64_t> wanted, Vector<const int32_t> column, Vector<int64_t> out_start,
                        Vector<int32_t> out_columns, Reals out_counts) {
    Index end = 0;
    for (Index w = 0; w < length(wanted); ++w) {
        const Index begin = end;
        out_start[w] = begin;
        bool risen = true;
        for (Index e = start[wanted[w]]; e < start[wanted[w] + 1]; ++e) {
            const int32_t k = column[ids[e]];
            if (k < 0) continue;
            risen = risen && (end == begin || out_columns[end - 1] < k);
            out_columns[end] = k;
            out_counts[end] = static_cast<double>(counts[e]);
            ++end;
        }
        if (risen) continue;
        sort_entries(part(out_columns, begin, end), part(out_counts, begin, end));
        Index last = begin;
        for (Index e = begin + 1; e < end; ++e) {
            if (out_columns[e] == out_columns[last]) {
                out_counts[last] += out_counts[e];
            } else {
                ++last;
                out_columns[last] = out_columns[e];
                out_counts[last] = out_counts[e];
            }
        }
        end = last + 1;
    }
    out_start[length(wanted)] = end;
}

/// Find or add cells in a hash table of `size` cells; write their numbers to `entries`, return the new size.
///
/// `slots` (their number is a power of 2; -1: free) hold numbers of cells, which are consecutive in the pool.
inline Index enter_cells(Vector<const int64_t> start, Vector<const int32_t> columns, ConstReals counts,
                         Vector<int32_t> slots, Vector<uint64_t> hashes, Vector<int64_t> pool_start,
                         Vector<int32_t> pool_columns, Reals pool_counts, Index size, Vector<int64_t> entries) {
    const uint64_t mask = slots.size() - 1;
    for (Index i = 0; i < length(start) - 1; ++i) {
        const auto own_columns = part(columns, start[i], start[i + 1]);
        const auto own_counts = part(counts, start[i], start[i + 1]);
        const Index entered = length(own_columns);
        uint64_t h = static_cast<uint64_t>(entered);
        for (Index e = 0; e < entered; ++e) {
            h = (h ^ static_cast<uint64_t>(own_columns[e])) * 0x9E3779B97F4A7C15;
            h ^= h >> 29;
            h = (h ^ static_cast<uint64_t>(static_cast<int64_t>(own_counts[e]))) * 0xBF58476D1CE4E5B9;
            h ^= h >> 32;
        }
        uint64_t slot = h & mask;
        Index found = -1;
        for (; slots[slot] >= 0; slot = (slot + 1) & mask) {
            const Index other = slots[slot];
            const Index begin = pool_start[other];
            if (hashes[other] == h && pool_start[other + 1] - begin == entered &&
                std::equal(own_columns.begin(), own_columns.end(), pool_columns.begin() + begin) &&
                std::equal(own_counts.begin(), own_counts.end(), pool_counts.begin() + begin)) {
                found = other;
                break;
            }
        }
        if (found < 0) {
            found = size;
            slots[slot] = static_cast<int32_t>(size);
            hashes[size] = h;
            const Index begin = pool_start[size];
            std::copy(own_columns.begin(), own_columns.end(), pool_columns.begin() + begin);
            std::copy(own_counts.begin(), own_counts.end(), pool_counts.begin() + begin);
            ++size;
            pool_start[size] = begin + entered;
        }
        entries[i] = found;
    }
    return size;
}

/// Fill the free `slots` of a larger hash table with the cells that have these hashes.
inline void place_hashes(Vector<const uint64_t> hashes, Vector<int32_t> slots) {
    const uint64_t mask = slots.size() - 1;
    for (Index i = 0; i < length(hashes); ++i) {
        uint64_t slot = hashes[i] & mask;
        while (slots[slot] >= 0) slot = (slot + 1) & mask;
        slots[slot] = static_cast<int32_t>(i);
    }
}

/// Return the order of two rows: -1, 0 or 1.
inline int compare_rows(ConstRealMatrix P, Index a, Index b) {
    for (Index j = 0; j < P.columns; ++j) {
        if (P(a, j) < P(b, j)) return -1;
        if (P(a, j) > P(b, j)) return 1;
    }
    return 0;
}

/// Reduce many problems to their distinct informative contours, as `maximiser.distinct_contours` does for one.
///
/// Problem `i` has the rows `first[i] .. first[i + 1] - 1` of `P` and `w`; the output has room for as many. `P` is
/// overwritten. `empty` marks the problems in which no row has weight.
inline void reduce_rows(RealMatrix P, ConstReals w, Vector<const int64_t> first, RealMatrix out_P, Reals out_w,
                        Vector<int64_t> out_start, Vector<bool> empty) {
    const Index l = P.columns;
    std::vector<Index> order;
    Index end = 0;
    for (Index i = 0; i < length(first) - 1; ++i) {
        out_start[i] = end;
        empty[i] = true;
        order.clear();
        for (Index row = first[i]; row < first[i + 1]; ++row) {
            if (w[row] <= 0.0) continue;
            empty[i] = false;
            double low = P(row, 0), high = low;
            for (Index j = 1; j < l; ++j) {
                low = std::min(low, P(row, j));
                high = std::max(high, P(row, j));
            }
            if (!(low < high)) continue;
            for (Index j = 0; j < l; ++j) P(row, j) /= high;
            order.push_back(row);
        }
        heap_sort(
            length(order), [&](Index a, Index b) { return compare_rows(P, order[a], order[b]) < 0; },
            [&](Index a, Index b) { std::swap(order[a], order[b]); });
        for (Index k = 0; k < length(order); ++k) {
            if (k > 0 && compare_rows(P, order[k - 1], order[k]) == 0) {
                out_w[end - 1] += w[order[k]];
            } else {
                copy(P[order[k]], out_P[end]);
                out_w[end] = w[order[k]];
                ++end;
            }
        }
    }
    out_start[length(first) - 1] = end;
}

}  // namespace quercus
