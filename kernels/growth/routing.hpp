// Loops that sort rows into the leaves of a tree, and maintain lists of rows at leaves.
#pragma once

#include <algorithm>
#include <array>

#include "kinds.hpp"

namespace quercus {

constexpr int LANES = 16;        // number of lists that are followed at once
constexpr Index TOGETHER = 256;  // number of rows that descend a tree at once

/// The changes of rows at some nodes, one group for each node.
struct GroupedChanges {
    std::vector<int64_t> start;  // (g + 1,) start of each group in the other columns, and the end
    std::vector<int32_t> rows;
    std::vector<int32_t> was;    // contour under which each row was counted so far; negative for a row new to the node
    std::vector<int8_t> opened;  // change in the number of rows that may be asked about, by each row
};

/// Add new rows to groups of changes; drop the changes of earlier rows in the chosen groups.
///
/// - rows, was, opened, start : the changes, group by group
/// - chosen : (g,) whether all rows of a group are new
/// - more, group : the added rows, and the group of each
/// - ids, askable, precise : contours of rows, whether an oracle may be asked about a row, whether a contour is precise
inline GroupedChanges merge_changes(ConstIds rows, ConstIds was, ConstDeltas opened, ConstInts start, ConstFlags chosen,
                                    ConstIds more, ConstIds group, ConstIds ids, ConstFlags askable,
                                    ConstFlags precise) {
    const Index groups = length(chosen);
    std::vector<int64_t> at(groups + 1);
    for (Index g = 0; g < groups; ++g)
        for (Index i = start[g]; i < start[g + 1]; ++i) at[g + 1] += !chosen[g] || was[i] < 0;
    for (int32_t g : group) ++at[g + 1];
    for (Index g = 0; g < groups; ++g) at[g + 1] += at[g];
    const auto total = static_cast<std::size_t>(at[groups]);
    GroupedChanges to{at, std::vector<int32_t>(total), std::vector<int32_t>(total), std::vector<int8_t>(total)};
    for (Index g = 0; g < groups; ++g) {
        Index next = at[g];
        for (Index i = start[g]; i < start[g + 1]; ++i) {
            if (chosen[g] && was[i] >= 0) continue;
            to.rows[next] = rows[i];
            to.was[next] = was[i];
            to.opened[next] = opened[i];
            ++next;
        }
        at[g] = next;
    }
    for (Index i = 0; i < length(more); ++i) {
        const int32_t row = more[i];
        const Index next = at[group[i]]++;
        to.rows[next] = row;
        to.was[next] = NONE;
        to.opened[next] = askable[row] && !precise[ids[row]];
    }
    return to;
}

/// Insert the rows that arrived at a leaf at the front of its list.
inline void link_rows(ConstIds rows, ConstIds was, ConstInts start, ConstIds nodes, ConstIds split, Ids first,
                      Ids after) {
    for (Index g = 0; g < length(nodes); ++g) {
        if (split[g] >= 0) continue;
        for (Index i = start[g]; i < start[g + 1]; ++i) {
            if (was[i] >= 0) continue;
            after[rows[i]] = first[nodes[g]];
            first[nodes[g]] = rows[i];
        }
    }
}

/// A split: its attribute, its cut (negative if each code has a branch), and the number of the attribute's bins
/// (`quercus.trees.growth.incremental.layout.Layout.split_columns`).
struct Split {
    Index attribute, cut, bins;
};

/// Return the branch of a row at a split.
template <class Code>
inline Index branch_of(Codes<Code> codes, Index row, Split split) {
    const Index code = codes(row, split.attribute);
    if (split.cut < 0) return code;
    if (code >= split.bins) return NO_NUMBER;
    return code > split.cut ? ABOVE : BELOW;
}

/// The changes that arrive at the children of some nodes.
struct SentChanges {
    std::vector<int64_t> place;  // (c,) place of each child that receives a change, see `kids`
    std::vector<int32_t> group;  // (c,) index of the child's parent among the nodes
    GroupedChanges changes;      // one group for each of these children
};

/// Send the changes of split nodes to their children; drop those of leaves.
///
/// - codes : (n, K)
/// - attribute, cut, bins : columns of all splits, see `Split`
/// - branches : number of branches of each split
/// - rows, was, opened, start, nodes : the changes, node by node
/// - split : (g,) split of each node, negative for a leaf
/// - kids : place of each node's first child
template <class Code>
inline SentChanges send_changes(Codes<Code> codes, ConstInts attribute, ConstInts cut, ConstInts bins,
                                ConstInts branches, ConstIds rows, ConstIds was, ConstDeltas opened, ConstInts start,
                                ConstIds nodes, ConstIds split, ConstInts kids) {
    const Index groups = length(nodes);
    std::vector<Index> first(groups + 1);
    for (Index g = 0; g < groups; ++g) first[g + 1] = first[g] + (split[g] >= 0 ? branches[split[g]] : 0);
    std::vector<int32_t> to(first[groups]);  // first the number of each child's changes, later where they go
    std::vector<int16_t> way(rows.size());
    for (Index g = 0; g < groups; ++g) {
        if (split[g] < 0) continue;
        const Split here{attribute[split[g]], cut[split[g]], bins[split[g]]};
        int32_t* sizes = to.data() + first[g];
        for (Index i = start[g]; i < start[g + 1]; ++i) {
            const Index branch = branch_of(codes, rows[i], here);
            way[i] = static_cast<int16_t>(branch);
            ++sizes[branch];
        }
    }
    const auto count = static_cast<std::size_t>(std::ranges::count_if(to, [](int32_t size) { return size > 0; }));
    SentChanges sent{std::vector<int64_t>(count), std::vector<int32_t>(count), {}};
    auto& [below, to_rows, to_was, to_opened] = sent.changes;
    below.resize(count + 1);
    Index c = 0;
    int32_t total = 0;
    for (Index g = 0; g < groups; ++g)
        for (Index b = 0; b < first[g + 1] - first[g]; ++b) {
            int32_t& child = to[first[g] + b];
            const int32_t size = child;
            if (size == 0) continue;
            sent.place[c] = kids[nodes[g]] + b;
            sent.group[c] = static_cast<int32_t>(g);
            child = total;
            total += size;
            below[++c] = total;
        }
    to_rows.resize(total);
    to_was.resize(total);
    to_opened.resize(total);
    for (Index g = 0; g < groups; ++g) {
        if (split[g] < 0) continue;
        int32_t* next = to.data() + first[g];
        for (Index i = start[g]; i < start[g + 1]; ++i) {
            const Index at = next[way[i]]++;
            to_rows[at] = rows[i];
            to_was[at] = was[i];
            to_opened[at] = opened[i];
        }
    }
    return sent;
}

struct OwnedRows {
    std::vector<int32_t> rows, owner;
};

/// Write the rows in the lists of the leaves, and the owner of each row's leaf; return their number.
///
/// Several lists are followed at once, so that the processor loads their links at the same time.
inline Index list_rows(ConstIds leaves, ConstInts owner, ConstIds first, ConstIds after, Ids rows, Ids whose) {
    std::array<int32_t, LANES> lane_row, lane_owner;
    lane_row.fill(NONE);
    lane_owner.fill(0);
    Index count = 0, leaf = 0;
    bool going = true;
    while (going) {
        going = false;
        for (int lane = 0; lane < LANES; ++lane) {
            int32_t row = lane_row[lane];
            while (row < 0 && leaf < length(leaves)) {
                row = first[leaves[leaf]];
                lane_owner[lane] = static_cast<int32_t>(owner[leaf]);
                ++leaf;
            }
            if (row < 0 || count == length(rows)) continue;
            rows[count] = row;
            whose[count] = lane_owner[lane];
            ++count;
            lane_row[lane] = after[row];
            going = true;
        }
    }
    return count;
}

/// Send the rows that subtrees know to the lists of their leaves; return the other rows and their owners.
///
/// Many rows descend in step, so that the processor loads what they need at the same time.
///
/// - codes : (n, K)
/// - attribute, cut, bins : columns of all splits, see `Split`
/// - rows, whose : (m,) rows, and the index of each row's root in `roots`
/// - roots, known : (r,) roots of subtrees, and the first row that each subtree does not know
/// - split, kids : columns of all nodes
/// - kid : the children, see `NodeColumns`
/// - first, after : the lists
template <class Code>
inline OwnedRows relist_rows(Codes<Code> codes, ConstInts attribute, ConstInts cut, ConstInts bins, ConstIds rows,
                             ConstIds whose, ConstIds roots, ConstIds known, ConstIds split, ConstInts kids,
                             ConstIds kid, Ids first, Ids after) {
    OwnedRows others{std::vector<int32_t>(rows.size()), std::vector<int32_t>(rows.size())};
    std::array<int32_t, TOGETHER> at;
    Index count = 0;
    for (Index begin = 0; begin < length(rows); begin += TOGETHER) {
        const ConstIds here = part(rows, begin, std::min(begin + TOGETHER, length(rows)));
        for (Index i = 0; i < length(here); ++i) {
            const int32_t root = whose[begin + i];
            at[i] = roots[root];
            if (here[i] < known[root]) continue;
            at[i] = NONE;
            others.rows[count] = here[i];
            others.owner[count] = root;
            ++count;
        }
        bool going = true;
        while (going) {
            going = false;
            for (Index i = 0; i < length(here); ++i) {
                if (at[i] < 0) continue;
                const Index s = split[at[i]];
                if (s < 0) continue;
                at[i] = kid[kids[at[i]] + branch_of(codes, here[i], {attribute[s], cut[s], bins[s]})];
                going = true;
            }
        }
        for (Index i = 0; i < length(here); ++i) {
            if (at[i] < 0) continue;
            after[here[i]] = first[at[i]];
            first[at[i]] = here[i];
        }
    }
    others.rows.resize(count);
    others.owner.resize(count);
    return others;
}

}  // namespace quercus
