// Trees grown on the rows of a memory, from scratch or from earlier trees (theory §10.2, §10.6).
#pragma once

#include <memory>

#include "nodes.hpp"

namespace quercus::forest {

constexpr int LANES = 8;  // number of rows that descend trees at the same time

enum Field { ATTRIBUTE, TEST, SKIP, SIZE, FIELDS };  // columns of nodes

/// Return the distance from an inner node to its child, without a branch, since branches cannot be predicted.
inline Index step_of(const int32_t* node, bool on_left) { return 1 + ((Index{node[SKIP]} - 1) & (Index{on_left} - 1)); }

/// Memory without initial values: pages that are never written cost nothing.
template <class T>
using Buffer = std::unique_ptr<T[]>;

template <class T>
inline Buffer<T> buffer_of(Index count) {
    return std::make_unique_for_overwrite<T[]>(static_cast<std::size_t>(count));
}

/// The trees of a memory, or one of them, see `grow`.
struct Trees {
    Matrix<const int32_t> nodes;
    ConstRows rows;
    ConstRealMatrix opinions;
};

/// New trees of a memory. `nodes` and `opinions` have room for more.
struct GrownTrees {
    Buffer<int32_t> nodes, rows;
    Buffer<double> opinions;
    OwnedMatrix<int64_t> counts;
    Index node_count = 0, opinion_count = 0;
};

/// The input from which the trees of a memory are grown, see `grow`.
struct Evidence {
    Codes codes;
    Bools named;
    ConstInts varying;
    Kinds kinds;
    Labels labels;
    ConstRealMatrix contours;
    Kinds sole;
    ConstInts rank;
    Bools gone;
};

/// A node that waits to be grown.
struct Waiting {
    Index parent;              // the parent of a right child, else `NONE`
    Index start;               // where its rows start
    Index old, first;          // its earlier node, and where the rows of that one start; `NONE` if it is grown from
                               // scratch: then its rows are in place already, up to `out_end`
    Index in_first, in_end;    // range of the rows that come
    Index out_first, out_end;  // range of the rows that go
    uint64_t key;
    uint64_t same;  // bits of the attributes that are known not to vary, see `choose_test_of_classes`
};

/// Grows one tree after the other in the same working memory.
class Grower {
    const Evidence& evidence;
    const Index l, A;
    std::vector<Waiting> stack;
    std::vector<int32_t> class_counts;  // (waiting, l) counts of each class, first `NONE` where they are not known
    std::vector<int32_t> classes, kind, buffer;
    OwnedMatrix<int32_t> parts;
    std::vector<int64_t> count, left, order, places;
    OwnedMatrix<double> share;
    std::vector<double> theta;
    std::vector<uint16_t> column;
    std::vector<int16_t> label;
    ByClass by_class;
    const double* table = log_table();
    const int64_t wanted = tests_wanted(A);

   public:
    /// `n` is the number of rows of a tree, `most` the greatest number of rows that come, go or stay.
    Grower(const Evidence& evidence, Index n, Index most)
        : evidence(evidence),
          l(evidence.contours.columns),
          A(length(evidence.varying)),
          classes(l),
          kind(std::min(n, evidence.contours.rows)),
          buffer(most),
          parts(2, l),
          count(kind.size()),
          left(kind.size()),
          order(A),
          places(evidence.rank.size()),
          share(length(kind), l),
          theta(l),
          column(n),
          label(n),
          by_class(length(kind), l) {}

    struct Counts {
        Index nodes, opinions;
    };

    /// Write a tree to `grown` (nodes, 4), `mine` and `new_opinions` (opinions, 3 l). `come` and `go` are reordered.
    Counts grow_tree(uint64_t key, const Trees& old_tree, Rows come, Rows go, Matrix<int32_t> grown, Rows mine,
                     RealMatrix new_opinions) {
        const auto& [codes, named, varying, kinds, labels, contours, sole, rank, gone] = evidence;
        const auto& [nodes, rows, opinions] = old_tree;
        stack.clear();
        push_node({NONE, 0, rows.empty() ? NONE : 0, 0, 0, length(come), 0, length(go), key, 0});
        class_counts[0] = NONE;
        Index made = 0, opined = 0;
        while (!stack.empty()) {
            const Waiting at = stack.back();
            stack.pop_back();
            const Index node = made, old = at.old, come_count = at.in_end - at.in_first,
                        go_count = at.out_end - at.out_first;
            if (at.parent >= 0) grown(at.parent, SKIP) = static_cast<int32_t>(node - at.parent);
            if (old >= 0 && come_count == 0 && go_count == 0) {
                copy_subtree(old_tree, old, at.first, grown, mine, new_opinions, at.start, made, opined);
                continue;
            }
            Index end = at.start + come_count;
            if (old >= 0) {
                end += nodes(old, SIZE) - go_count;
                gather_rows(part(rows, at.first, at.first + nodes(old, SIZE)), gone, part(come, at.in_first, at.in_end),
                            mine, at.start);
            } else if (come_count > 0) {
                std::copy_n(come.begin() + at.in_first, end - at.start, mine.begin() + at.start);
            } else {  // rows of a node that is grown from scratch are in place
                end = at.out_end;
            }
            ++made;
            const Index n = end - at.start;
            const Rows here = part(mine, at.start, end);
            Test chosen;
            uint64_t same = at.same;
            Index top = 0;
            bool is_sole = false, is_precise = true;
            const int32_t* known = class_counts.data() + length(stack) * l;
            if (known[0] >= 0) std::copy_n(known, l, classes.begin());
            else is_precise = count_classes(here, labels, classes);
            if (is_precise) {
                top = std::max_element(classes.begin(), classes.end()) - classes.begin();
                is_sole = classes[top] == n;
                if (!is_sole) {
                    chosen = choose_test_of_classes(codes, named, varying, here, at.key, classes, labels, table, same,
                                                    order, parts, label, column, wanted);
                }
            }
            if (!is_precise || (chosen.attribute == NONE && !is_sole)) {
                if (old >= 0 || is_precise) sort_rows(here);
                const Index runs = runs_of(here, kinds, kind, count);
                estimate_node(runs, kind, count, contours, sole, theta, share, by_class);
                top = std::max_element(theta.begin(), theta.end()) - theta.begin();
                is_sole = theta[top] >= SOLE;
                if (!is_precise && !is_sole && n > 1) {
                    chosen = choose_test(codes, named, varying, here, at.key, runs, count, share, table, order, left,
                                         column);
                }
            }
            const auto [k, test] = chosen;
            const bool stays = old >= 0 && nodes(old, ATTRIBUTE) == k && nodes(old, TEST) == test;
            grown(node, ATTRIBUTE) = static_cast<int32_t>(k);
            grown(node, TEST) = static_cast<int32_t>(test);
            grown(node, SIZE) = static_cast<int32_t>(n);
            if (k == NONE) {
                if (is_sole && is_precise) {
                    grown(node, SKIP) = static_cast<int32_t>(top);
                } else {  // an uncertain label leaves the other classes plausible
                    grown(node, SKIP) = static_cast<int32_t>(l + opined);
                    const Reals opinion = new_opinions[opined++];
                    std::copy_n(theta.begin(), l, opinion.begin());
                    std::fill(opinion.begin() + l, opinion.end(), std::numeric_limits<double>::quiet_NaN());
                }
                continue;
            }
            const uint64_t mask = named[k] ? names_key(at.key, test) : 0;
            const uint64_t right_key = derived_key(at.key, RIGHT), left_key = derived_key(at.key, LEFT);
            if (stays) {
                const Index in_middle = at.in_first + partition_rows(part(come, at.in_first, at.in_end), k, test, mask);
                const Index out_middle =
                    at.out_first + partition_rows(part(go, at.out_first, at.out_end), k, test, mask);
                const Index size = nodes(old + 1, SIZE);
                const Index middle = at.start + size + (in_middle - at.in_first) - (out_middle - at.out_first);
                push_node({node, middle, old + nodes(old, SKIP), at.first + size, in_middle, at.in_end, out_middle,
                           at.out_end, right_key, same});
                push_node({NONE, at.start, old + 1, at.first, at.in_first, in_middle, at.out_first, out_middle,
                           left_key, same});
            } else {
                const Index middle = at.start + partition_rows(here, k, test, mask);
                push_node({node, middle, NONE, 0, 0, 0, 0, end, right_key, same});
                push_node({NONE, at.start, NONE, 0, 0, 0, 0, middle, left_key, same});
            }
            int32_t* on_left = class_counts.data() + (length(stack) - 1) * l;
            int32_t* on_right = on_left - l;
            on_left[0] = on_right[0] = NONE;
            for (Index c = 0; is_precise && c < l; ++c) {
                on_left[c] = parts(1, c);
                on_right[c] = classes[c] - parts(1, c);
            }
        }
        return {made, opined};
    }

   private:
    void push_node(const Waiting& node) {
        stack.push_back(node);
        if (class_counts.size() < stack.size() * l) class_counts.resize(2 * stack.size() * l);
    }

    /// Copy a node with everything below it.
    void copy_subtree(const Trees& tree, Index old, Index first, Matrix<int32_t> grown, Rows mine,
                      RealMatrix new_opinions, Index start, Index& made, Index& opined) const {
        const auto& [nodes, rows, opinions] = tree;
        Index last = old;
        while (nodes(last, ATTRIBUTE) >= 0) last += nodes(last, SKIP);
        std::copy(nodes[old].data(), nodes[last + 1].data(), grown[made].data());
        for (Index each = old; each <= last; ++each, ++made) {
            if (nodes(each, ATTRIBUTE) >= 0 || nodes(each, SKIP) < l) continue;
            const ConstReals opinion = opinions[nodes(each, SKIP) - l];
            std::copy(opinion.begin(), opinion.end(), new_opinions[opined].begin());
            grown(made, SKIP) = static_cast<int32_t>(l + opined++);
        }
        std::copy_n(rows.begin() + first, nodes(old, SIZE), mine.begin() + start);
    }

    /// Write the rows of a node that stay, and those that come. What lies behind them may be overwritten.
    static void gather_rows(ConstRows rows, Bools gone, ConstRows come, Rows mine, Index at) {
        int32_t* __restrict target = mine.data() + at;
        for (const int32_t row : rows) {
            *target = row;
            target += 1 - gone[row];
        }
        std::copy(come.begin(), come.end(), target);
    }

    /// Sort rows by the order of their contours. Rows that stay are in the order of leaves before.
    void sort_rows(Rows mine) {
        const auto place_of = [this](int32_t row) { return evidence.rank[evidence.kinds[row]]; };
        const Index n = length(mine);
        if (length(places) > n) {  // counting would visit contours that do not occur here
            sort_few(mine, place_of);
            return;
        }
        std::copy(mine.begin(), mine.end(), buffer.begin());
        std::fill(places.begin(), places.end(), 0);
        for (const int32_t row : mine) ++places[place_of(row)];
        int64_t at = 0;
        for (int64_t& place : places) {
            const int64_t held = place;
            place = at;
            at += held;
        }
        for (Index i = 0; i < n; ++i) mine[places[place_of(buffer[i])]++] = buffer[i];
    }

    /// Sort rows by the order of their contours with Shell's method, which is not stable.
    template <class Place>
    static void sort_few(Rows mine, Place place_of) {
        const Index n = length(mine);
        for (Index gap = n / 2; gap > 0; gap /= 2) {
            for (Index i = gap; i < n; ++i) {
                const int32_t row = mine[i];
                const int64_t here = place_of(row);
                Index at = i;
                for (; at >= gap && place_of(mine[at - gap]) > here; at -= gap) mine[at] = mine[at - gap];
                mine[at] = row;
            }
        }
    }

    /// Move the rows that go left to the front, both sides in order; return the number of these.
    Index partition_rows(Rows mine, Index k, int64_t test, uint64_t key) {
        const uint16_t* __restrict source = evidence.codes.data + k;
        const Index step = evidence.codes.columns, n = length(mine);
        int32_t* __restrict others = buffer.data();
        Index middle = 0, outside = 0;
        const auto part_by = [&](auto goes_left) {
            for (Index i = 0; i < n; ++i) {
                const int32_t row = mine[i];
                mine[middle] = row;  // at i or before it, so no row is lost
                others[outside] = row;
                const bool on_left = goes_left(source[row * step]);
                middle += on_left;
                outside += 1 - on_left;
            }
        };
        if (evidence.named[k]) part_by([key](uint16_t code) { return is_heads(derived_key(key, code)); });
        else part_by([cut = Cut(test)](uint16_t code) { return cut.goes_left(code); });
        std::copy_n(others, outside, mine.begin() + middle);
        return middle;
    }
};

/// Grow the trees of a memory from their earlier state, without the rows that go, with the rows that come.
///
/// Without an earlier state the trees are grown from scratch. For a node with rows that come or go, the test is chosen
/// anew. If it is the same as before, the children are visited in turn; else everything below is grown from the node's
/// rows. A node whose rows stay is copied with its subtree, which depends only on these rows and on its path.
///
/// Parameters
/// ----------
/// codes : (all rows, K)
/// named : (K,) whether the attribute is nominal
/// varying : (A,) numbers of the attributes that vary in the log
/// kinds : (all rows,) number of each row's contour
/// labels : (all rows,) class of each row with a precise contour, else -1
/// contours : (contours, l) plausibilities, 1 at most
/// sole : (contours,) the class of a precise contour, else -1
/// rank : (contours,) their places in the lexicographic order
/// keys : (trees,) keys of the roots
/// nodes, rows, opinions, counts : the earlier state, see below; empty if there is none
/// come, go : rows that come, by rank, and rows that go; a row whose contour changed goes and comes
/// gone : (all rows,) whether a row goes
///
/// Returns
/// -------
/// nodes : (nodes, 4) attribute, test, skip and size of each node in pre-order, tree by tree. The left child follows
///     its parent, the right child is `skip` nodes after its parent. A leaf has attribute -1, and as `skip` the number
///     of its opinion; a number below l is the class that all its labels name
/// rows : (trees n,) rows of each tree in the order of its leaves
/// opinions : (opinions, 3 l) estimate, belief and plausibility of each other leaf, numbered from l on in each tree;
///     belief and plausibility are those of the earlier state, or NaN until they are solved
/// counts : (trees, 2) numbers of nodes and of opinions of each tree
inline GrownTrees grow(Codes codes, Bools named, ConstInts varying, Kinds kinds, Labels labels,
                       ConstRealMatrix contours, Kinds sole, ConstInts rank, Vector<const uint64_t> keys,
                       Matrix<const int32_t> nodes, ConstRows rows, ConstRealMatrix opinions,
                       Matrix<const int64_t> counts, ConstRows come, ConstRows go, Bools gone) {
    const Index trees = length(keys), l = contours.columns;
    const Index had = length(rows) / trees, n = had + length(come) - length(go);
    const Evidence evidence{codes, named, varying, kinds, labels, contours, sole, rank, gone};
    Grower grower(evidence, n, std::max({n, length(come), length(go)}));
    GrownTrees found{buffer_of<int32_t>(2 * n * trees * FIELDS), buffer_of<int32_t>(n * trees + 1),
                     buffer_of<double>(n * trees * 3 * l), OwnedMatrix<int64_t>(trees, 2)};
    std::vector<int32_t> coming(come.size()), going(go.size());
    Index node = 0, opinion = 0, made = 0, opined = 0;
    for (Index m = 0; m < trees; ++m) {
        std::copy(come.begin(), come.end(), coming.begin());
        std::copy(go.begin(), go.end(), going.begin());
        const Trees old{{nodes.data + node * FIELDS, nodes.rows - node, FIELDS},
                        part(rows, m * had, length(rows)),
                        {opinions.data + opinion * 3 * l, opinions.rows - opinion, 3 * l}};
        const auto [grown_nodes, grown_opinions] =
            grower.grow_tree(keys[m], old, coming, going, {found.nodes.get() + made * FIELDS, 2 * n, FIELDS},
                             {found.rows.get() + m * n, static_cast<std::size_t>(n) + 1},
                             {found.opinions.get() + opined * 3 * l, n, 3 * l});
        found.counts(m, 0) = grown_nodes;
        found.counts(m, 1) = grown_opinions;
        if (had > 0) {
            node += counts(m, 0);
            opinion += counts(m, 1);
        }
        made += grown_nodes;
        opined += grown_opinions;
    }
    found.node_count = made;
    found.opinion_count = opined;
    return found;
}

}  // namespace quercus::forest
