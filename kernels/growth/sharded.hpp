// Loops of sharded growth (`quercus.compute.sharded`): they count and divide the rows of a shard, and add the counts of
// all shards.
//
// The rows of a node are adjacent in the columns of a shard, in any order: the counts do not depend on it.
#pragma once

#include <algorithm>

#include "routing.hpp"
#include "splitting.hpp"

namespace quercus {

/// Counts of nodes, entry by entry.
struct ShardCounts {
    std::vector<int64_t> first;                 // (g + 1,) start of the entries of each node
    std::vector<int32_t> slot, contour, count;  // the entries, by ascending slot; slot 0 is the node itself
};

/// Count the rows of nodes by slot and contour.
///
/// - codes, ids : (n, K) and (n,), codes and contour of each row
/// - begin, end : (g,) range of the rows of each node
/// - free : (g, K) attributes that may still split the node
/// - offsets, slots : see `quercus.trees.growth.incremental.layout.Layout`
/// - column : (d,) scratch, all -1
template <class Code>
inline ShardCounts count_shard(Codes<Code> codes, ConstIds ids, ConstInts begin, ConstInts end, Matrix<const bool> free,
                               ConstInts offsets, Index slots, Ids column) {
    const Index groups = length(begin);
    ShardCounts found{std::vector<int64_t>(groups + 1), {}, {}, {}};
    std::vector<int32_t> held(column.size()), table;
    std::vector<Index> left(offsets.size());
    Index n = 0;
    for (Index g = 0; g < groups; ++g) {
        Index d = 0;
        for (Index i = begin[g]; i < end[g]; ++i) {
            const int32_t contour = ids[i];
            if (column[contour] >= 0) continue;
            column[contour] = static_cast<int32_t>(d);
            held[d++] = contour;
        }
        make_room(table, 0, slots * d);
        std::fill_n(table.begin(), slots * d, 0);
        Index count = 0;
        for (Index k = 0; k < length(offsets); ++k)
            if (free(g, k)) left[count++] = k;
        for (Index i = begin[g]; i < end[g]; ++i) {
            const Index j = column[ids[i]];
            ++table[j];
            for (Index f = 0; f < count; ++f) {
                const Index k = left[f];
                ++table[(offsets[k] + codes(i, k)) * d + j];
            }
        }
        for (auto* entries : {&found.slot, &found.contour, &found.count}) make_room(*entries, n, slots * d);
        for (Index slot = 0; slot < slots; ++slot)
            for (Index j = 0; j < d; ++j) {
                if (table[slot * d + j] <= 0) continue;
                found.slot[n] = static_cast<int32_t>(slot);
                found.contour[n] = held[j];
                found.count[n] = table[slot * d + j];
                ++n;
            }
        found.first[g + 1] = n;
        for (Index j = 0; j < d; ++j) column[held[j]] = NONE;
    }
    for (auto* entries : {&found.slot, &found.contour, &found.count}) entries->resize(n);
    return found;
}

struct DividedRows {
    std::vector<int64_t> first;  // (g + 1,) start of the branches of each node
    std::vector<int64_t> stop;   // end of each branch; it begins where the one before ends, the first at `begin`
};

/// Put the rows of each split node in order of branch, in place.
///
/// - codes, ids, begin, end : see `count_shard`; codes and ids are reordered
/// - split : (g,) split of each node, negative for a leaf
/// - attribute, cut, bins : columns of all splits, see `Split`
/// - branches : number of branches of all splits
template <class Code>
inline DividedRows divide_rows(Matrix<Code> codes, Ids ids, ConstInts begin, ConstInts end, ConstIds split,
                               ConstInts attribute, ConstInts cut, ConstInts bins, ConstInts branches) {
    const Index groups = length(begin);
    DividedRows found{std::vector<int64_t>(groups + 1), {}};
    auto& [first, stop] = found;
    for (Index g = 0; g < groups; ++g) first[g + 1] = first[g] + (split[g] >= 0 ? branches[split[g]] : 0);
    stop.resize(first[groups]);
    std::vector<Index> free;  // place of the next row of each branch
    for (Index g = 0; g < groups; ++g) {
        if (split[g] < 0) continue;
        const Split test{attribute[split[g]], cut[split[g]], bins[split[g]]};
        int64_t* here = stop.data() + first[g];
        const Index width = first[g + 1] - first[g];
        for (Index i = begin[g]; i < end[g]; ++i) ++here[branch_of<Code>(codes, i, test)];
        free.resize(width);
        Index at = begin[g];
        for (Index b = 0; b < width; ++b) {
            free[b] = at;
            at += here[b];
            here[b] = at;
        }
        for (Index b = 0; b < width; ++b)
            while (free[b] < here[b]) {
                const Index i = free[b], way = branch_of<Code>(codes, i, test);
                if (way != b) {
                    const Index to = free[way];
                    std::ranges::swap_ranges(codes[i], codes[to]);
                    std::swap(ids[i], ids[to]);
                }
                ++free[way];
            }
    }
    return found;
}

/// Add the counts of the same nodes in all shards, and enter the cells of their candidates.
///
/// - nodes : number of nodes
/// - first : (shards, nodes + 1) start of the entries of each node of each shard
/// - slot_of, contour_of, count_of : entries of all shards, see `ShardCounts`
/// - free : (nodes, K) attributes that may still split the node
/// - offsets, widths, cuts, first_cell : the sheet of the layout
/// - slots : `S`
/// - column : (d,) scratch, all -1
/// - contours, counts : room for the entries of the cells
inline Book add_counts(Index nodes, Matrix<const int64_t> first, ConstIds slot_of, ConstIds contour_of,
                       ConstIds count_of, Matrix<const bool> free, ConstInts offsets, ConstInts widths, ConstInts cuts,
                       ConstInts first_cell, Index slots, Ids column, Ids contours, Vector<int64_t> counts) {
    Book book{contours, counts};
    std::vector<int32_t> held, table, total(slots);
    for (Index g = 0; g < nodes; ++g) {
        held.clear();
        for (Index s = 0; s < first.rows; ++s)
            for (Index i = first(s, g); i < first(s, g + 1) && slot_of[i] == 0; ++i) {
                if (column[contour_of[i]] >= 0) continue;
                column[contour_of[i]] = 0;
                held.push_back(contour_of[i]);
            }
        std::ranges::sort(held);
        const Index d = length(held);
        column_of(column, held, d);
        make_room(table, 0, slots * d);
        std::fill_n(table.begin(), slots * d, 0);
        std::ranges::fill(total, 0);
        for (Index s = 0; s < first.rows; ++s)
            for (Index i = first(s, g); i < first(s, g + 1); ++i) {
                table[slot_of[i] * d + column[contour_of[i]]] += count_of[i];
                total[slot_of[i]] += count_of[i];
            }
        book.enter_cell(g, 0, total[0], table.data(), held.data(), d);
        for (Index k = 0; k < length(offsets); ++k) {
            if (!free(g, k)) continue;
            const Index at = offsets[k];
            if (cuts[k] > 0) {
                const Index bins = cuts[k] + 1, branches = 2 + (widths[k] > bins);
                enter_cuts(book, g, first_cell[k], bins, branches, table.data() + at * d, total.data() + at,
                           table.data(), held.data(), d);
                continue;
            }
            for (Index slot = at; slot < at + widths[k]; ++slot)
                if (total[slot] > 0)
                    book.enter_cell(g, first_cell[k] + slot - at, total[slot], table.data() + slot * d, held.data(), d);
        }
        clear_columns(column, held, d);
    }
    return book;
}

}  // namespace quercus
