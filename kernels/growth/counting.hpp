// Loops that count rows into cells.
//
// Each slot of a node (`quercus.trees.growth.incremental.layout`) is a cell with a count for each contour. Contours and
// rows are given by number.
#pragma once

#include <algorithm>

#include "kinds.hpp"

namespace quercus {

constexpr Index FIRST_WIDTH = 4;         // columns of a new block
constexpr Index INSERTED_CONTOURS = 32;  // contours of a node that are kept in order; any more are appended
constexpr Index AHEAD = 16;              // the memory of a row is requested this many rows ahead

/// Prefetch the memory at an address: a hint, which changes only the time.
///
/// The rows of a node are scattered over columns which, with a million rows, exceed the caches.
inline void fetch([[maybe_unused]] const void* place) {
#if defined(__GNUC__)
    __builtin_prefetch(place);
#endif
}

/// Write the column of each contour in a block.
inline void column_of(Ids column, ConstIds held, Index used) {
    for (Index j = 0; j < used; ++j) column[held[j]] = static_cast<int32_t>(j);
}

/// Reset the columns of contours to `NONE`.
inline void clear_columns(Ids column, ConstIds held, Index used) {
    for (Index j = 0; j < used; ++j) column[held[j]] = NONE;
}

/// Return the most columns that each group of rows may add to its block: (groups,). `column` stays all -1.
///
/// That is the number of contours without a column. They are counted only if the block may have too few columns for all
/// `contours`.
inline std::vector<int32_t> new_columns(ConstIds ids, ConstIds rows, ConstInts start, ConstIds blocks, ConstIds pool,
                                        ConstInts at, ConstIds width, ConstIds used, Index contours, Ids column) {
    std::vector<int32_t> fresh(blocks.size());
    for (Index g = 0; g < length(blocks); ++g) {
        const Index b = blocks[g], n = used[b];
        const Index most = std::min<Index>(contours - n, start[g + 1] - start[g]);
        if (n + most <= std::max<Index>(width[b], FIRST_WIDTH)) {
            fresh[g] = static_cast<int32_t>(most);
            continue;
        }
        const ConstIds held = pool.subspan(at[b]);
        column_of(column, held, n);
        for (Index i = start[g]; i < start[g + 1]; ++i) {
            const int32_t contour = ids[rows[i]];
            if (column[contour] >= 0) continue;
            column[contour] = static_cast<int32_t>(n);
            ++fresh[g];
        }
        clear_columns(column, held, n);
        for (Index i = start[g]; i < start[g + 1]; ++i) column[ids[rows[i]]] = NONE;
    }
    return fresh;
}

/// Write the attributes that the splits above have not used up into `free`, and return their number.
inline Index unspent_attributes(Index node, ConstIds parent, ConstIds split, ConstInts spent, Ids free) {
    const Index K = length(free);
    for (Index k = 0; k < K; ++k) free[k] = static_cast<int32_t>(k);
    for (Index above = parent[node]; above >= 0; above = parent[above])
        if (spent[split[above]] >= 0) free[spent[split[above]]] = NONE;
    Index count = 0;
    for (Index k = 0; k < K; ++k)
        if (free[k] >= 0) free[count++] = free[k];
    return count;
}

/// Count rows in the blocks of their nodes, and remove their earlier counts.
///
/// Spent attributes are omitted: at their node they have one value.
///
/// - codes : (n, K), in row-major order: they are read one row at a time
/// - offsets : (K,) first slot of each attribute
/// - ids : (n,) present contour of each row
/// - rows, was : (m,) rows, group by group, and their earlier contours; negative for a row that is new here
/// - start, nodes : groups of `rows`, and their nodes
/// - parent, split : columns of all nodes
/// - spent : attributes that each split uses up, see `quercus.trees.growth.incremental.layout.Layout`
/// - blocks : (g,) the block of each group
/// - pool, at, width, used : the blocks, see `quercus.trees.growth.incremental.tally`
/// - column : (d,) scratch, all -1
/// - dirty, size : (blocks, S) marks of the cells whose counts change; number of rows in each cell
template <class Code>
inline void count_rows(Codes<Code> codes, ConstInts offsets, ConstIds ids, ConstIds rows, ConstIds was, ConstInts start,
                       ConstIds nodes, ConstIds parent, ConstIds split, ConstInts spent, ConstIds blocks, Ids pool,
                       ConstInts at, ConstIds width, Ids used, Ids column, Matrix<bool> dirty, Matrix<int32_t> size) {
    const Index slots = dirty.columns;
    std::vector<int32_t> free(codes.columns);
    std::vector<int32_t> arrived(slots);  // rows of a group in each slot
    const Index last = length(rows) - 1;
    for (Index g = 0; g < length(blocks); ++g) {
        const Index b = blocks[g], w = width[b];
        const Ids held = pool.subspan(at[b]), counts = pool.subspan(at[b] + w);
        const Index left = slots > 1 ? unspent_attributes(nodes[g], parent, split, spent, free) : 0;
        column_of(column, held, used[b]);
        for (Index i = start[g]; i < start[g + 1]; ++i) {
            const Index later = rows[std::min(i + AHEAD, last)];
            fetch(&ids[later]);
            fetch(&codes(later, 0));
            const Index row = rows[i];
            const int32_t present = ids[row];
            if (was[i] == present) continue;
            Index to = column[present];
            if (to < 0) {
                to = used[b]++;
                column[present] = static_cast<int32_t>(to);
                held[to] = present;
            }
            ++counts[to];
            if (was[i] < 0) {
                ++arrived[0];
                for (Index f = 0; f < left; ++f) {
                    const Index slot = offsets[free[f]] + codes(row, free[f]);
                    ++counts[slot * w + to];
                    ++arrived[slot];
                }
                continue;
            }
            const Index back = column[was[i]];
            --counts[back];
            dirty(b, 0) = true;
            for (Index f = 0; f < left; ++f) {
                const Index slot = offsets[free[f]] + codes(row, free[f]);
                ++counts[slot * w + to];
                --counts[slot * w + back];
                dirty(b, slot) = true;
            }
        }
        for (Index slot = 0; slot < slots; ++slot) {
            if (arrived[slot] <= 0) continue;
            size(b, slot) += arrived[slot];
            dirty(b, slot) = true;
            arrived[slot] = 0;
        }
        clear_columns(column, held, used[b]);
    }
}

/// Copy blocks within or between pools: from `pool` at `old` into `to` at `fresh`, each with its own widths.
inline void copy_blocks(ConstIds pool, ConstInts old, ConstIds old_width, Ids to, ConstInts fresh, ConstIds new_width,
                        ConstIds used, Index slots) {
    for (Index g = 0; g < length(old); ++g) {
        const Index u = used[g];
        for (Index j = 0; j < u; ++j) to[fresh[g] + j] = pool[old[g] + j];
        for (Index slot = 0; slot < slots; ++slot) {
            const Index a = old[g] + old_width[g] * (slot + 1);
            const Index b = fresh[g] + new_width[g] * (slot + 1);
            for (Index j = 0; j < u; ++j) to[b + j] = pool[a + j];
            for (Index j = u; j < new_width[g]; ++j) to[b + j] = 0;
        }
    }
}

/// List the contours of rows in `held` and their columns in `column`; return their number.
///
/// A few contours are listed in ascending order.
inline Index sorted_columns(ConstIds ids, ConstIds rows, Ids column, int32_t* held) {
    Index d = 0;
    for (int32_t row : rows) {
        const int32_t contour = ids[row];
        if (column[contour] >= 0) continue;
        column[contour] = 0;
        Index j = d;
        for (; j > 0 && d < INSERTED_CONTOURS && held[j - 1] > contour; --j) held[j] = held[j - 1];
        held[j] = contour;
        ++d;
    }
    for (Index j = 0; j < d; ++j) column[held[j]] = static_cast<int32_t>(j);
    return d;
}

/// Cells in sparse form: the first entry of each cell, then contour and count of each entry.
struct SparseCells {
    std::vector<int64_t> start;
    std::vector<int32_t> ids;
    std::vector<int64_t> counts;
};

/// Return the contours of rows, group by group, in sparse form; `column` is scratch (d,), all -1.
inline SparseCells count_nodes(ConstIds ids, ConstIds rows, ConstInts start, Ids column) {
    const Index groups = length(start) - 1;
    SparseCells cells{std::vector<int64_t>(groups + 1), std::vector<int32_t>(rows.size()),
                      std::vector<int64_t>(rows.size())};
    for (Index g = 0; g < groups; ++g) {
        const ConstIds here = part(rows, start[g], start[g + 1]);
        int32_t* held = cells.ids.data() + cells.start[g];
        int64_t* counts = cells.counts.data() + cells.start[g];
        const Index d = sorted_columns(ids, here, column, held);
        for (int32_t row : here) ++counts[column[ids[row]]];
        for (Index j = 0; j < d; ++j) column[held[j]] = NONE;
        cells.start[g + 1] = cells.start[g] + d;
    }
    cells.ids.resize(cells.start[groups]);
    cells.counts.resize(cells.start[groups]);
    return cells;
}

}  // namespace quercus
