// Loops that compute the cells of splits from counts by code (see `quercus.trees.growth.incremental.layout`).
//
// The two cells of a cut are sums over the bins on either side of it. The one below the cut grows bin by bin; the one
// above it has the remaining rows with a value.
#pragma once

#include <algorithm>
#include <array>
#include <stdexcept>

#include "counting.hpp"

namespace quercus {

/// Write the sizes of cells, and which cells changed, from the sizes and marks of slots.
///
/// The cells of a cut that is no candidate stay empty: it divides the rows as a lower cut does
/// (`quercus.trees.tree.splits`).
///
/// - size, dirty : (m, S) sizes and marks of the slots
/// - offsets, widths, cuts, first : (K,) each, see `Layout.attribute_columns`
/// - to, changed : (m, C) sizes and marks of the cells; initially 0
inline void cell_sizes(Matrix<const int32_t> size, Matrix<const bool> dirty, ConstInts offsets, ConstInts widths,
                       ConstInts cuts, ConstInts first, Matrix<int32_t> to, Matrix<bool> changed) {
    for (Index g = 0; g < size.rows; ++g) {
        to(g, 0) = size(g, 0);
        changed(g, 0) = dirty(g, 0);
        for (Index k = 0; k < length(offsets); ++k) {
            const Index bins = cuts[k] + 1, width = widths[k];
            const int32_t* sizes = &size(g, offsets[k]);
            const bool* marks = &dirty(g, offsets[k]);
            int32_t* cells = &to(g, first[k]);
            bool* changes = &changed(g, first[k]);
            if (bins == 1) {
                std::copy_n(sizes, width, cells);
                std::copy_n(marks, width, changes);
                continue;
            }
            const Index branches = 2 + (width > bins);
            const int32_t missing = branches > NO_NUMBER ? sizes[bins] : 0;
            int32_t known = 0;           // rows with a value
            Index top = 0, touched = 0;  // the last bin with rows, and with changes
            for (Index j = 0; j < bins; ++j) {
                known += sizes[j];
                top = sizes[j] > 0 ? j : top;
                touched = marks[j] ? j : touched;
            }
            int32_t below = 0;
            bool reached = false, divided = false;
            for (Index j = 0; j < bins - 1; ++j) {
                const Index here = j * branches;
                below += sizes[j];
                reached |= marks[j];
                changes[here + BELOW] = reached;
                changes[here + ABOVE] = touched > j;
                if (branches > NO_NUMBER) changes[here + NO_NUMBER] = marks[bins];
                if (sizes[j] > 0 && top > j) {
                    divided = true;
                    cells[here + BELOW] = below;
                    cells[here + ABOVE] = known - below;
                    if (branches > NO_NUMBER) cells[here + NO_NUMBER] = missing;
                }
            }
            if (!divided && known > 0 && missing > 0) {  // the lowest cut separates known from missing values
                cells[BELOW] = sizes[0];
                cells[ABOVE] = known - sizes[0];
                cells[NO_NUMBER] = missing;
            }
        }
    }
}

/// Write the numbers of a block's columns into `order`, by ascending contour.
inline void columns_by_contour(ConstIds held, Ids order) {
    for (Index j = 0; j < length(order); ++j) order[j] = static_cast<int32_t>(j);
    std::ranges::sort(order, {}, [held](int32_t column) { return held[column]; });
}

/// Add the counts of the bins from `begin` to before `end` to `sums`.
inline void sum_up(const int32_t* rows, Index width, Index begin, Index end, Vector<int64_t> sums) {
    for (Index b = begin; b < end; ++b)
        for (Index j = 0; j < length(sums); ++j) sums[j] += rows[b * width + j];
}

/// Return cells of blocks in sparse form, their contours ascending.
///
/// - blocks, cells : (m,) the wanted cells; fastest if the cells of a block, and the cuts of an attribute, ascend
/// - pool, at, width, used : the blocks, see `quercus.trees.growth.incremental.tally`
/// - offsets, cuts : of attributes, see `Layout.attribute_columns`
/// - slot, attribute, cut, branch : of cells, see `Layout.cell_sources`
inline SparseCells gather_cells(ConstIds blocks, ConstIds cells, ConstIds pool, ConstInts at, ConstIds width,
                                ConstIds used, ConstInts offsets, ConstInts cuts, ConstInts slot, ConstInts attribute,
                                ConstInts cut, ConstInts branch) {
    const Index m = length(blocks);
    Index widest = 1;
    for (int32_t b : blocks) widest = std::max<Index>(widest, used[b]);
    std::vector<int32_t> order(widest);
    std::vector<int64_t> counts(widest), below(widest), known(widest);
    SparseCells found{std::vector<int64_t>(m + 1), std::vector<int32_t>(4 * m + widest),
                      std::vector<int64_t>(4 * m + widest)};
    Index n = 0, last = NONE, summed = NONE, bins = 0;
    for (Index c = 0; c < m; ++c) {
        const Index b = blocks[c], cell = cells[c], w = width[b], u = used[b];
        const int32_t *held = pool.data() + at[b], *rows = held + w;
        if (b != last) {
            columns_by_contour({held, static_cast<std::size_t>(u)}, part(Ids(order), 0, u));
            last = b;
            summed = NONE;
        }
        if (slot[cell] >= 0) {
            for (Index j = 0; j < u; ++j) counts[j] = rows[slot[cell] * w + j];
        } else {
            const Index k = attribute[cell], end = cut[cell] + 1;
            const int32_t* values = rows + offsets[k] * w;
            if (k != summed || end < bins) {
                for (Index j = 0; j < u; ++j) known[j] = below[j] = 0;
                sum_up(values, w, 0, cuts[k] + 1, part(Vector<int64_t>(known), 0, u));
                summed = k;
                bins = 0;
            }
            sum_up(values, w, bins, end, part(Vector<int64_t>(below), 0, u));
            bins = end;
            for (Index j = 0; j < u; ++j) counts[j] = branch[cell] == BELOW ? below[j] : known[j] - below[j];
        }
        make_room(found.ids, n, u);
        make_room(found.counts, n, u);
        for (Index i = 0; i < u; ++i) {
            const Index j = order[i];
            if (counts[j] <= 0) continue;
            found.ids[n] = held[j];
            found.counts[n] = counts[j];
            ++n;
        }
        found.start[c + 1] = n;
    }
    found.ids.resize(n);
    found.counts.resize(n);
    return found;
}

/// The populated cells entered so far: node, number and size of each, and their entries in sparse form.
struct Book {
    Ids ids;                 // contour of each entry, in memory of the caller
    Vector<int64_t> counts;  // count of each entry, likewise
    std::vector<int32_t> group, cell, size;
    std::vector<int64_t> start{0};

    /// Enter a cell with `rows` rows and the positive counts among its `d` contours.
    void enter_cell(Index of_group, Index number, Index rows, const int32_t* of_contours, const int32_t* held,
                    Index d) {
        group.push_back(static_cast<int32_t>(of_group));
        cell.push_back(static_cast<int32_t>(number));
        size.push_back(static_cast<int32_t>(rows));
        const Index room = std::min(length(ids), length(counts));
        Index n = start.back();
        for (Index j = 0; j < d; ++j) {
            if (of_contours[j] <= 0) continue;
            if (n == room) throw std::length_error("cells have more entries than there is room for");
            ids[n] = held[j];
            counts[n] = of_contours[j];
            ++n;
        }
        start.push_back(n);
    }
};

/// Enter the cells of an attribute's cuts that are candidates.
///
/// - book, group : see `Book`
/// - cell : the attribute's first cell
/// - bins, branches : number of the attribute's bins, and of the branches of a split at a cut
/// - table, total : counts (slots of the attribute, d), and their sum in each slot
/// - own : (d,) counts of the node
/// - held, d : contours of the node, and their number
inline void enter_cuts(Book& book, Index group, Index cell, Index bins, Index branches, const int32_t* table,
                       const int32_t* total, const int32_t* own, const int32_t* held, Index d) {
    const int32_t missing = branches > NO_NUMBER ? total[bins] : 0;
    std::array<std::vector<int32_t>, 3> sides;
    for (auto& side : sides) side.resize(d);
    int32_t known = 0;
    Index top = 0;
    for (Index b = 0; b < bins; ++b) {
        known += total[b];
        top = total[b] > 0 ? b : top;
    }
    for (Index j = 0; j < d; ++j) {
        sides[NO_NUMBER][j] = missing > 0 ? table[bins * d + j] : 0;
        sides[ABOVE][j] = own[j] - sides[NO_NUMBER][j];
    }
    const auto enter = [&](Index first, int branch, int32_t rows, int contents) {
        book.enter_cell(group, first + branch, rows, sides[contents].data(), held, d);
    };
    if (known > 0 && total[top] == known) {  // one bin: the lowest cut separates known from missing values
        if (missing == 0) return;
        enter(cell, top == 0 ? BELOW : ABOVE, known, ABOVE);
        enter(cell, NO_NUMBER, missing, NO_NUMBER);
        return;
    }
    int32_t below = 0;
    for (Index cut = 0; cut < top; ++cut) {
        if (total[cut] == 0) continue;
        below += total[cut];
        for (Index j = 0; j < d; ++j) {
            sides[BELOW][j] += table[cut * d + j];
            sides[ABOVE][j] -= table[cut * d + j];
        }
        const Index at = cell + cut * branches;
        enter(at, BELOW, below, BELOW);
        enter(at, ABOVE, known - below, ABOVE);
        if (missing > 0) enter(at, NO_NUMBER, missing, NO_NUMBER);
    }
}

/// Count the rows of nodes straight into cells, without blocks; omit spent attributes, and cuts that are no candidates.
///
/// - codes, ids : (n, K) and (n,), codes and contour of each row
/// - offsets, widths, cuts, first : (K,) each, see `Layout.attribute_columns`
/// - slots : number of slots
/// - rows, start, nodes : rows, node by node
/// - parent, split : of all nodes
/// - spent : of all splits
/// - column : (d,) scratch, all -1
/// - contours, counts : room for the entries, see `Layout.entry_limits`
template <class Code>
inline Book count_cells(Codes<Code> codes, ConstInts offsets, ConstInts widths, ConstInts cuts, ConstInts first,
                        Index slots, ConstIds ids, ConstIds rows, ConstInts start, ConstIds nodes, ConstIds parent,
                        ConstIds split, ConstInts spent, Ids column, Ids contours, Vector<int64_t> counts) {
    Book book{contours, counts};
    Index widest = 1;
    for (Index g = 0; g < length(nodes); ++g)
        widest = std::max(widest, std::min<Index>(start[g + 1] - start[g], length(column)));
    std::vector<int32_t> held(widest), free(codes.columns), table(slots * widest), total(slots);
    for (Index g = 0; g < length(nodes); ++g) {
        const ConstIds here = part(rows, start[g], start[g + 1]);
        const Index d = sorted_columns(ids, here, column, held.data());
        const Index left = unspent_attributes(nodes[g], parent, split, spent, free);
        std::fill_n(table.begin(), slots * d, 0);
        std::ranges::fill(total, 0);
        for (int32_t row : here) {
            const Index j = column[ids[row]];
            ++table[j];
            for (Index f = 0; f < left; ++f) {
                const Index k = free[f], slot = offsets[k] + codes(row, k);
                ++table[slot * d + j];
                if (cuts[k] > 0) ++total[slot];  // bins are many; the few slots of other attributes are summed later
            }
        }
        book.enter_cell(g, 0, length(here), table.data(), held.data(), d);
        for (Index f = 0; f < left; ++f) {
            const Index k = free[f], at = offsets[k];
            if (cuts[k] > 0) {
                const Index bins = cuts[k] + 1, branches = 2 + (widths[k] > bins);
                enter_cuts(book, g, first[k], bins, branches, table.data() + at * d, total.data() + at, table.data(),
                           held.data(), d);
                continue;
            }
            for (Index slot = at; slot < at + widths[k]; ++slot) {
                const int32_t* here = table.data() + slot * d;
                Index size = 0;
                for (Index j = 0; j < d; ++j) size += here[j];
                if (size > 0) book.enter_cell(g, first[k] + slot - at, size, here, held.data(), d);
            }
        }
        for (Index j = 0; j < d; ++j) column[held[j]] = NONE;
    }
    return book;
}

}  // namespace quercus
