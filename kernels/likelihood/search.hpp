// Proven bounds of the least and greatest entropy over a level set of the likelihood (theory §2.7).
//
// Notation as in `loglik.hpp`. The greatest entropy is one convex program. The least is a concave minimisation, solved
// globally by branch and bound over boxes. Newton's method finds a local minimum, and a quadratic underestimator that
// is exact there (`boxes.hpp`) mostly proves it at once, in one box that provably contains the whole level set.
// Otherwise the box is shrunk to the part that may contain a lower entropy, and cut in two.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "boxes.hpp"
#include "cut.hpp"
#include "descent.hpp"
#include "enclosure.hpp"
#include "loglik.hpp"

namespace quercus {

constexpr double ROUNDING_TOLERANCE =
    5e-7;  // nats; greatest increase of the tolerance because of rounding in the likelihood
constexpr double SHRINK_MARGIN = 1e-9;  // nats above the reached value that shrinking a box must leave in it
constexpr double THIN_SIDE =
    1e-6;  // part of the widest side; after a cut that gained nothing, a side this short is not cut

/// Return whether the level set contains a vertex of the simplex.
inline bool has_vertex(ConstRealMatrix P, ConstReals w, double c) {
    for (Index j = 0; j < P.columns; ++j) {
        double total = 0.0;
        for (Index i = 0; i < P.rows; ++i) {
            if (P(i, j) <= 0.0) {
                total = -INFINITE;
                break;
            }
            total += w[i] * std::log(P(i, j));
        }
        if (total >= c) return true;
    }
    return false;
}

/// A box of the search: its sides, the bound in it, and the coordinate and value to cut it at.
struct Box {
    double bound;
    Index cut;
    double at;
    std::vector<double> a, b;
};

/// Insert a box into a binary heap with the least bound first.
inline void push_box(std::vector<Box>& heap, Box box) {
    heap.push_back(std::move(box));
    for (Index k = length(heap) - 1; k > 0 && heap[(k - 1) / 2].bound > heap[k].bound; k = (k - 1) / 2)
        std::swap(heap[(k - 1) / 2], heap[k]);
}

/// Take the first box from a heap.
inline Box pop_box(std::vector<Box>& heap) {
    std::swap(heap.front(), heap.back());
    Box first = std::move(heap.back());
    heap.pop_back();
    const Index count = length(heap);
    for (Index k = 0, child = 1; child < count; k = child, child = 2 * k + 1) {
        if (child + 1 < count && heap[child + 1].bound < heap[child].bound) ++child;
        if (heap[child].bound >= heap[k].bound) break;
        std::swap(heap[k], heap[child]);
    }
    return first;
}

/// The best local minimum found: where it is, its multiplier and its entropy.
struct LocalMinimum {
    std::vector<double> x;
    double mu;
    double reached;
};

/// Write a local minimum into `x`, and return its multiplier; shrink the box to the points that may be as good.
inline double first_minimum(ConstRealMatrix P, ConstReals w, Matrix<const int8_t> order, double c, double inner_c,
                            ConstReals top, Reals a, Reals b, ConstReals theta, Reals x) {
    double mu = guess_minimum(P, w, inner_c, theta, x);
    if (mu > 0.0) return mu;
    const double reached = entropy(x);
    mu = multiplier_at(P, w, x);
    if (mu > 0.0) {
        std::vector<double> y(x.size()), point(x.size());
        nearest(a, b, x, y);
        mu = bound_in_box(P, w, order, c, top, a, b, x, mu, y, INFINITE, reached + SHRINK_MARGIN).multiplier;
        to_boundary(P, w, inner_c, theta, y, point);
        if (entropy(point) < reached) {
            mu = newton_stationary(P, w, inner_c, point, mu);
            if (mu > 0.0) {
                copy(point, x);
                return mu;
            }
        }
    }
    mu = descend(P, w, c, inner_c, theta, x).multiplier;
    return mu > 0.0 ? mu : 1.0;
}

/// Bound the entropy in a box, shrink it, choose where to cut it, and look for a better minimum than `best` there.
inline void examine(ConstRealMatrix P, ConstReals w, Matrix<const int8_t> order, double c, double inner_c,
                    ConstReals theta, ConstReals top, LocalMinimum& best, double tolerance, Box& box) {
    const Index l = length(best.x);
    const Reals a = box.a, b = box.b;
    std::vector<double> y(l), point(l);
    nearest(a, b, best.x, y);
    auto [bound, cut, at, m] = bound_in_box(P, w, order, c, top, a, b, best.x, best.mu, y, best.reached - tolerance,
                                            best.reached + SHRINK_MARGIN);
    if (bound < best.reached - tolerance && !contains(a, b, best.x)) {
        at = std::min(std::max(y[cut], 0.8 * a[cut] + 0.2 * b[cut]), 0.2 * a[cut] + 0.8 * b[cut]);
        to_boundary(P, w, inner_c, theta, y, point);
        if (entropy(point) < best.reached - SHRINK_MARGIN) {
            const auto [value, mu] = descend(P, w, c, inner_c, theta, point);
            if (value < best.reached) best = {point, mu > 0.0 ? mu : 1.0, value};
        } else if (contains(a, b, point)) {  // minima often occur in groups: look for another one as good
            const double mu = newton_stationary(P, w, inner_c, point, m);
            if (mu > 0.0 && contains(a, b, point)) {
                copy(point, y);
                const double other = bound_in_box(P, w, order, c, top, a, b, point, mu, y, best.reached - tolerance,
                                                  best.reached + SHRINK_MARGIN)
                                         .bound;
                bound = std::max(bound, other);
            }
        }
    }
    if (bound <= box.bound) {  // no gain: halve the widest side rather than cut a thin one
        Index widest = 0;
        for (Index j = 1; j < l; ++j)
            if (b[j] - a[j] > b[widest] - a[widest]) widest = j;
        if (b[cut] - a[cut] < THIN_SIDE * (b[widest] - a[widest])) {
            cut = widest;
            at = 0.5 * (a[cut] + b[cut]);
        }
    }
    box.bound = std::max(bound, box.bound);
    box.cut = cut;
    box.at = at;
}

struct LeastEntropy {
    double bound;  // proven
    double reached;
    Index examined;  // boxes
};

/// Return the least entropy over the level set, in nats: proven bound, reached value, boxes examined.
///
/// Branch and bound over boxes, best bound first; stops when bound and reached value are within `tolerance`, or after
/// `effort` boxes. `P theta` must be 1 in every row (`theta` the maximiser, `worst` its KKT excess). `c` defines the
/// level set of the bound, `inner_c >= c` the one that contains the reached point: rounding in the maximum likelihood
/// is accounted for between them.
inline LeastEntropy least_entropy(ConstRealMatrix P, ConstReals w, double c, double inner_c, ConstReals theta,
                                  double worst, double tolerance, Index effort) {
    if (has_vertex(P, w, inner_c)) return {0.0, 0.0, 0};
    const Index l = P.columns;
    Box parent{0.0, 0, 0.0, std::vector<double>(l), std::vector<double>(l)};
    std::vector<double> top(P.rows);
    outer_box(P, w, c, theta, worst, parent.a, parent.b, top);
    tighten(parent.a, parent.b);
    const OwnedMatrix<int8_t> order = classes_by_plausibility(P);
    LocalMinimum best{{theta.begin(), theta.end()}, 0.0, 0.0};
    best.mu = first_minimum(P, w, order, c, inner_c, top, parent.a, parent.b, theta, best.x);
    best.reached = entropy(best.x);
    // between both levels the entropy differs by mu (inner_c - c): no search can make the gap smaller
    tolerance = std::max(tolerance, std::min(2.0 * best.mu * (inner_c - c), ROUNDING_TOLERANCE));
    std::vector<Box> heap;
    Index examined = 0;
    double finished = INFINITE;  // least bound of the boxes that are not cut; `reached` may have decreased since
    int sides = 1;               // first the whole box, then the two sides of every cut
    while (true) {
        for (int side = 0; side < sides; ++side) {
            Box box = parent;
            if (sides == 2) {
                (side == 0 ? box.b : box.a)[parent.cut] = parent.at;
                if (!tighten(box.a, box.b)) continue;
            }
            ++examined;
            examine(P, w, order, c, inner_c, theta, top, best, tolerance, box);
            if (box.bound < best.reached - tolerance) push_box(heap, std::move(box));
            else finished = std::min(finished, box.bound);
        }
        if (heap.empty()) return {std::min(finished, best.reached), best.reached, examined};
        parent = pop_box(heap);
        if (parent.bound >= best.reached - tolerance || examined + 2 > effort)
            return {std::min(std::min(parent.bound, finished), best.reached), best.reached, examined};
        sides = 2;
    }
}

struct GreatestEntropy {
    double bound;  // proven
    double reached;
};

/// Return the greatest entropy over the level set, in nats: proven bound and reached value, see `least_entropy`.
inline GreatestEntropy greatest_entropy(ConstRealMatrix P, ConstReals w, double c, double inner_c, ConstReals theta) {
    const Index l = P.columns;
    const double most = std::log(l);
    const std::vector<double> uniform(l, 1.0 / l);
    if (loglik(P, w, uniform) >= inner_c) return {most, most};
    std::vector<double> point(l), start(l);
    to_boundary(P, w, inner_c, theta, uniform, point);
    double mu = multiplier_at(P, w, point);
    if (mu < 0.0) {
        mu = newton_stationary(P, w, inner_c, point, mu);
        if (mu < 0.0) {
            const double reached = entropy(point);
            const double bound = entropy_bound(P, w, c, point, -mu);
            // the difference between both levels cannot be closed
            if (bound - reached <= 1e-11 - 2.0 * mu * (inner_c - c)) return {std::min(bound, most), reached};
        }
    }
    to_boundary(P, w, inner_c, theta, uniform, point);
    for (Index j = 0; j < l; ++j) start[j] = 0.5 * theta[j] + 0.5 * point[j];
    const std::vector<double> zeros(l, 0.0), ones(l, 1.0);
    const double bound = minimise_over_cut(P, w, c, {}, zeros, ones, start, INFINITE).bound;
    to_boundary(P, w, inner_c, theta, start, point);
    // the guess already lies on the boundary; the ray only repairs rounding, and may not lower the entropy
    const double of_start = loglik(P, w, start) >= inner_c ? entropy(start) : 0.0;
    return {std::min(-bound, most), std::max(entropy(point), of_start)};
}

}  // namespace quercus
