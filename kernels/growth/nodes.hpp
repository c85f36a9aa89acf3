// Loops over the columns of nodes, see `quercus.trees.growth.incremental.nodes`.
#pragma once

#include <utility>

#include "kinds.hpp"

namespace quercus {

struct Preorder {
    std::vector<int32_t> nodes;
    std::vector<int64_t> above;  // index of each node's parent in `nodes`, -1 for the root
};

/// Return the nodes of a tree in pre-order, children in order of code, and the index of each one's parent.
inline Preorder preorder(Index root, ConstIds split, ConstInts width, ConstInts kids, ConstIds kid) {
    Preorder order;
    using Waiting = std::pair<int32_t, int64_t>;  // a node, and the index of its parent
    std::vector<Waiting> waiting{{static_cast<int32_t>(root), NONE}};
    while (!waiting.empty()) {
        const auto [node, above] = waiting.back();
        waiting.pop_back();
        const int64_t place = length(order.nodes);
        order.nodes.push_back(node);
        order.above.push_back(above);
        if (split[node] < 0) continue;
        for (Index at = kids[node] + width[split[node]] - 1; at >= kids[node]; --at)
            if (kid[at] >= 0) waiting.emplace_back(kid[at], place);
    }
    return order;
}

}  // namespace quercus
