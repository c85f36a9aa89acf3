// Python bindings of the kernels that grow trees.
#include "growth/changes.hpp"
#include "growth/choice.hpp"
#include "growth/counting.hpp"
#include "growth/earned.hpp"
#include "growth/nodes.hpp"
#include "growth/routing.hpp"
#include "growth/splitting.hpp"
#include "python.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace quercus {

static auto unpacked(GroupedChanges to) {
    return std::tuple(std::move(to.start), std::move(to.rows), std::move(to.was), std::move(to.opened));
}

static auto unpacked(SentChanges sent) {
    return std::tuple(std::move(sent.place), std::move(sent.group), unpacked(std::move(sent.changes)));
}

static auto unpacked(OwnedRows found) { return std::pair(std::move(found.rows), std::move(found.owner)); }

static auto unpacked(SparseCells cells) {
    return std::tuple(std::move(cells.start), std::move(cells.ids), std::move(cells.counts));
}

static auto unpacked(Book book) {
    return std::tuple(std::move(book.group), std::move(book.cell), std::move(book.size), std::move(book.start));
}

/// Bind the kernels that read codes, for one type of these.
template <class Code>
static void bind_codes(nb::module_ module) {
    module.def(
        "send_changes",
        [](Codes<Code> codes, ConstInts attribute, ConstInts cut, ConstInts bins, ConstInts branches, ConstIds rows,
           ConstIds was, ConstDeltas opened, ConstInts start, ConstIds nodes, ConstIds split, ConstInts kids) {
            return unpacked(
                send_changes(codes, attribute, cut, bins, branches, rows, was, opened, start, nodes, split, kids));
        },
        "codes"_a, "attribute"_a, "cut"_a, "bins"_a, "branches"_a, "rows"_a, "was"_a, "opened"_a, "start"_a, "nodes"_a,
        "split"_a, "kids"_a,
        "Send the changes of split nodes to their children; return place and parent of each child, and the changes.");
    module.def(
        "relist_rows",
        [](Codes<Code> codes, ConstInts attribute, ConstInts cut, ConstInts bins, ConstIds rows, ConstIds whose,
           ConstIds roots, ConstIds known, ConstIds split, ConstInts kids, ConstIds kid, Ids first, Ids after) {
            return unpacked(
                relist_rows(codes, attribute, cut, bins, rows, whose, roots, known, split, kids, kid, first, after));
        },
        "codes"_a, "attribute"_a, "cut"_a, "bins"_a, "rows"_a, "whose"_a, "roots"_a, "known"_a, "split"_a, "kids"_a,
        "kid"_a, "first"_a, "after"_a,
        "Send the rows that subtrees know to the lists of their leaves; return the other rows and their owners.");
    module.def("count_rows", &count_rows<Code>, "codes"_a, "offsets"_a, "ids"_a, "rows"_a, "was"_a, "start"_a,
               "nodes"_a, "parent"_a, "split"_a, "spent"_a, "blocks"_a, "pool"_a, "at"_a, "width"_a, "used"_a,
               "column"_a, "dirty"_a, "size"_a,
               "Count rows in the blocks of their nodes, and remove their earlier counts.");
    module.def(
        "count_cells",
        [](Codes<Code> codes, ConstInts offsets, ConstInts widths, ConstInts cuts, ConstInts first, Index slots,
           ConstIds ids, ConstIds rows, ConstInts start, ConstIds nodes, ConstIds parent, ConstIds split,
           ConstInts spent, Ids column, Ids contours, Vector<int64_t> counts) {
            return unpacked(count_cells(codes, offsets, widths, cuts, first, slots, ids, rows, start, nodes, parent,
                                        split, spent, column, contours, counts));
        },
        "codes"_a, "offsets"_a, "widths"_a, "cuts"_a, "first"_a, "slots"_a, "ids"_a, "rows"_a, "start"_a, "nodes"_a,
        "parent"_a, "split"_a, "spent"_a, "column"_a, "contours"_a, "counts"_a,
        "Count the rows of nodes; return node, number and size of each populated cell, and where its entries begin.");
}

void bind_growth(nb::module_ module) {
    module.attr("NONE") = NONE;
    module.attr("NO_SPLIT") = NO_SPLIT;
    module.attr("BELOW") = BELOW;
    module.attr("ABOVE") = ABOVE;
    module.attr("NO_NUMBER") = NO_NUMBER;
    module.attr("TIE") = TIE;
    module.attr("FIRST_WIDTH") = FIRST_WIDTH;
    bind_codes<int8_t>(module);
    bind_codes<int16_t>(module);
    module.def(
        "merge_changes",
        [](ConstIds rows, ConstIds was, ConstDeltas opened, ConstInts start, ConstFlags chosen, ConstIds more,
           ConstIds group, ConstIds ids, ConstFlags askable, ConstFlags precise) {
            return unpacked(merge_changes(rows, was, opened, start, chosen, more, group, ids, askable, precise));
        },
        "rows"_a, "was"_a, "opened"_a, "start"_a, "chosen"_a, "more"_a, "group"_a, "ids"_a, "askable"_a, "precise"_a,
        "Add new rows to groups of changes; drop the changes of earlier rows in the chosen groups.");
    module.def("link_rows", &link_rows, "rows"_a, "was"_a, "start"_a, "nodes"_a, "split"_a, "first"_a, "after"_a,
               "Insert the rows that arrived at a leaf at the front of its list.");
    module.def("list_rows", &list_rows, "leaves"_a, "owner"_a, "first"_a, "after"_a, "rows"_a, "whose"_a,
               "Write the rows in the lists of the leaves, and the owner of each row's leaf; return their number.");
    module.def("new_columns", &new_columns, "ids"_a, "rows"_a, "start"_a, "blocks"_a, "pool"_a, "at"_a, "width"_a,
               "used"_a, "contours"_a, "column"_a,
               "Return the most columns that each group of rows may add to its block.");
    module.def("copy_blocks", &copy_blocks, "pool"_a, "old"_a, "old_width"_a, "to"_a, "fresh"_a, "new_width"_a,
               "used"_a, "slots"_a, "Copy blocks within or between pools, each with its own widths.");
    module.def(
        "count_nodes",
        [](ConstIds ids, ConstIds rows, ConstInts start, Ids column) {
            return unpacked(count_nodes(ids, rows, start, column));
        },
        "ids"_a, "rows"_a, "start"_a, "column"_a, "Return the contours of rows, group by group, in sparse form.");
    module.def("cell_sizes", &cell_sizes, "size"_a, "dirty"_a, "offsets"_a, "widths"_a, "cuts"_a, "first"_a, "to"_a,
               "changed"_a, "Write the sizes of cells, and which cells changed, from the sizes and marks of slots.");
    module.def(
        "gather_cells",
        [](ConstIds blocks, ConstIds cells, ConstIds pool, ConstInts at, ConstIds width, ConstIds used,
           ConstInts offsets, ConstInts cuts, ConstInts slot, ConstInts attribute, ConstInts cut, ConstInts branch) {
            return unpacked(
                gather_cells(blocks, cells, pool, at, width, used, offsets, cuts, slot, attribute, cut, branch));
        },
        "blocks"_a, "cells"_a, "pool"_a, "at"_a, "width"_a, "used"_a, "offsets"_a, "cuts"_a, "slot"_a, "attribute"_a,
        "cut"_a, "branch"_a, "Return cells of blocks in sparse form, their contours ascending.");
    module.def(
        "preorder",
        [](Index root, ConstIds split, ConstInts width, ConstInts kids, ConstIds kid) {
            auto [nodes, above] = preorder(root, split, width, kids, kid);
            return std::pair(std::move(nodes), std::move(above));
        },
        "root"_a, "split"_a, "width"_a, "kids"_a, "kid"_a,
        "Return the nodes of a tree in pre-order, and the index of each one's parent.");
    module.def(
        "sum_groups",
        [](ConstIds was, ConstDeltas opened, ConstInts start) {
            auto [arriving, opening] = sum_groups(was, opened, start);
            return std::pair(std::move(arriving), std::move(opening));
        },
        "was"_a, "opened"_a, "start"_a,
        "Return for each group the number of new rows, and the change in the number of rows to ask about.");
    module.def(
        "keep_one_cut", &keep_one_cut, "first"_a, "bounds"_a, "size"_a, "entropy"_a, "standing"_a,
        "Keep in `standing` one split of each attribute: the cut with the largest gain, the middle one of ties.");
    module.def("compare_splits", &compare_splits, "first"_a, "size"_a, "information"_a, "lower"_a, "upper"_a,
               "candidates"_a, "gain_lower"_a, "gain_upper"_a, "rivals"_a,
               "Return the best split of each node; write the gain ratios of its candidates, and mark the rivals.");
    module.def("test_splits", &test_splits, "first"_a, "size"_a, "reached"_a, "bound"_a, "classes"_a, "candidates"_a,
               "share"_a, "earned"_a, "Mark the candidates whose gain is beyond chance.");
    module.def("chi_square_tail", &chi_square_tail, "value"_a, "freedom"_a,
               "Return the probability that chi-square with a whole number of degrees of freedom exceeds a value.");
}

}  // namespace quercus
