// The solution of many entropy-interval problems in one call (theory §2.3).
//
// A problem is a count vector over a table of distinct contours, scaled to maximum 1, none of them constant. Simple
// cases are tried first: if the level set contains a vertex, the minimum is 0; if it contains the uniform point, the
// maximum is `ln l`; precise labels have a solution with one parameter (`precise.hpp`).
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "boxes.hpp"
#include "cells.hpp"
#include "descent.hpp"
#include "enclosure.hpp"
#include "loglik.hpp"
#include "polygon.hpp"
#include "precise.hpp"
#include "reduction.hpp"
#include "rounding_bounds.hpp"
#include "search.hpp"
#include "separable.hpp"

namespace quercus {

constexpr double TOLERANCE = 2e-10;  // nats; a search goes on until the gap is this small or its effort is spent
constexpr double SHARP_GENERAL =
    8.0;  // rounding errors; for a cut nearer to the maximum, the bounds of its ellipsoid are used
constexpr double NEAR_MAXIMUM =
    1e-3;                         // part of the weight, nats at most; a nearer cut gets few boxes if they prove enough
constexpr double BLURRED = 1e4;   // rounding errors of the likelihood; a nearer cut never gets more than few boxes
constexpr Index FEW_BOXES = 100;  // near the maximum, more boxes would only fight rounding
constexpr double FINE = 1e-14;    // KKT excess at which a maximiser in closed form is good enough
constexpr double ALMOST_ACTIVE =
    1e-6;  // if `g_j` is at most this much below 1, a maximiser may give class j probability

/// The state of a problem: solved; or all ends but the least entropy are known, which `search_counts` finds; or there
/// may be many maximisers, and the cut is so near to them that `quercus.trees.likelihood.solver.maximisers` must
/// decide.
enum State { SOLVED, SEARCH, MAXIMISERS };

/// Return whether `theta` is certainly the only maximiser; false if that is unknown.
inline bool is_certainly_unique(ConstRealMatrix P, ConstReals w, ConstReals theta) {
    const Index l = P.columns;
    std::vector<double> g(l);
    kkt_excess(P, w, theta, g);
    std::vector<Index> active;
    for (Index j = 0; j < l; ++j)
        if (g[j] >= 1.0 - ALMOST_ACTIVE) active.push_back(j);
    const Index m = length(active);
    OwnedMatrix<double> A(m, m);
    for (Index r = 0; r < m; ++r) {
        for (Index s = 0; s <= r; ++s) {
            for (Index i = 0; i < P.rows; ++i) A(r, s) += P(i, active[r]) * P(i, active[s]);
            A(r, s) += 1.0;
        }
    }
    double largest = 0.0;
    for (Index r = 0; r < m; ++r) largest = std::max(largest, A(r, r));
    factor(A);
    double smallest = INFINITE;
    for (Index r = 0; r < m; ++r) {
        smallest = std::min(smallest, A(r, r));
        if (A(r, r) > 1e60) return false;  // the factor marks a zero pivot in this way
    }
    return smallest * smallest > 1e-9 * largest;
}

/// Return a lower bound of the entropy over the level set from one box around it, and an entropy reached (nats).
///
/// If both agree, no search is needed, as in most problems with 30 labels or more. `x` is the maximiser, `Q @ x` 1 in
/// every row; `outer` and `inner` enclose `ln alpha`; `worst` is the KKT excess of `x`. If Newton's method fails, its
/// start is used only if `tight`.
inline EntropyEnd first_bound(ConstRealMatrix Q, ConstReals w, double outer, double inner, ConstReals x, double worst,
                              bool tight) {
    const Index n = Q.rows, l = Q.columns;
    for (Index j = 0; j < l; ++j) {
        double value = 0.0;
        for (Index i = 0; i < n; ++i) value += Q(i, j) > 0.0 ? w[i] * std::log(Q(i, j)) : -INFINITE;
        if (value >= inner) return {0.0, 0.0};
    }
    std::vector<double> a(l), b(l), top(n);
    outer_box(Q, w, outer, x, worst, a, b, top);
    tighten(a, b);
    std::vector<double> y(x.begin(), x.end());
    double mu = guess_minimum(Q, w, inner, x, y);
    const double reached = entropy(y);
    if (!(mu > 0.0) && tight) mu = multiplier_at(Q, w, y);
    if (!(mu > 0.0)) return {0.0, reached};
    std::vector<double> point = y;
    const double bound = bound_in_box(Q, w, classes_by_plausibility(Q), outer, top, a, b, y, mu, point,
                                      reached - TOLERANCE, reached + SHRINK_MARGIN)
                             .bound;
    return {std::min(std::max(bound, 0.0), reached), reached};
}

/// Return whether every label is a set of classes, in a table of contours with maximum 1.
inline bool is_set_valued(ConstRealMatrix P) {
    return std::all_of(P.data, P.data + P.rows * P.columns, [](double p) { return p == 0.0 || p == 1.0; });
}

/// Return the same ends as `first_bound` for three classes and labels that are sets, which would often need a search.
///
/// If some class is named by no precise label, the least entropy is often on a side of the simplex, where the polygon
/// is fast.
inline EntropyEnd least_of_sets(ConstRealMatrix Q, ConstReals w, double outer, double inner, ConstReals x, double worst,
                                bool tight) {
    std::array<bool, 3> named{};
    for (Index i = 0; i < Q.rows; ++i)
        for (Index j = 0; j < 3; ++j)
            named[j] = named[j] || (Q(i, j) > 0.0 && Q(i, (j + 1) % 3) == 0.0 && Q(i, (j + 2) % 3) == 0.0);
    EntropyEnd least{0.0, INFINITE};
    if (named[0] && named[1] && named[2]) least = first_bound(Q, w, outer, inner, x, worst, tight);
    if (least.bound >= least.reached - TOLERANCE) return least;
    const EntropyEnd other = least_in_polygon(Q, w, x, outer, inner, 0.5 * TOLERANCE);
    const double reached = std::min(least.reached, other.reached);
    return {std::min(std::max(least.bound, other.bound), reached), reached};
}

/// Write lower bound, reached least, reached greatest entropy and upper bound (nats) into `ends`.
///
/// The bounds are always valid. `worst` is the KKT excess of `theta`.
inline State solve_problem(ConstRealMatrix P, ConstReals w, ConstReals theta, double worst, double alpha, bool tight,
                           Reals ends) {
    const Index l = P.columns;
    const double c = std::log(alpha);
    const bool all_precise = is_precise(P);
    if (all_precise) {
        const std::vector<double> n = precise_counts(P, w);
        const double slack = sum_of(n) * LOG_ROUNDING * (length(n) + 4);
        if (c == 0.0 || -c > SHARP_PRECISE * slack) {
            ends_of_counts(n, l - length(n), c - slack, c + slack, ends);
            return SOLVED;
        }
    }
    const OwnedMatrix<double> scaled = rescale_rows(P, theta);
    const double W = sum_of(w);
    worst = sure_excess(scaled, w, theta, worst, c);
    const double error = W * (worst + rounding(l));
    if (-c <= SHARP_GENERAL * error) {
        near_ends(scaled, w, c, W * worst, theta, ends);
        return all_precise || is_certainly_unique(scaled, w, theta) ? SOLVED : MAXIMISERS;
    }
    const double outer = c - W * level_error(scaled, w, theta, worst, c);
    double inner = c + error;
    const auto greatest = greatest_entropy(scaled, w, outer, inner, theta);
    ends[3] = greatest.bound;
    ends[2] = greatest.reached;
    ends[0] = ends[1] = 0.0;
    const auto [Q, x] = without_dominated(scaled, theta);
    if (x.size() == 1) return SOLVED;
    if (is_precise(Q)) {
        const EntropyEnd least = least_entropy_of_counts(precise_counts(Q, w), outer, inner, TOLERANCE, CURVE_STEPS);
        ends[0] = least.bound;
        ends[1] = least.reached;
        return SOLVED;
    }
    std::vector<double> g(x.size());
    worst = sure_excess(Q, w, x, kkt_excess(Q, w, x, g), c);
    inner = std::max(inner, c + W * (worst + rounding(l)));
    const EntropyEnd least = is_set_valued(P) && x.size() == 3 ? least_of_sets(Q, w, outer, inner, x, worst, tight)
                                                               : first_bound(Q, w, outer, inner, x, worst, tight);
    ends[0] = least.bound;
    ends[1] = least.reached;
    return least.bound >= least.reached - TOLERANCE ? SOLVED : SEARCH;
}

/// Find the maximisers of the problems `wanted`.
///
/// `found` (m, l + 2) receives theta, its KKT excess, and 1 if theta is certainly the only maximiser.
inline void estimate_counts(const Problems& problems, Vector<const int64_t> wanted, RealMatrix found) {
    const Index l = problems.table.columns;
    Separable separable;
    std::vector<double> g(l);
    for (Index i = 0; i < length(wanted); ++i) {
        const auto [P, w] = take_problem(problems, wanted[i]);
        const Reals theta = part(found[i], 0, l);
        double &worst = found(i, l), &sure = found(i, l + 1);
        std::fill(found[i].begin(), found[i].end(), 0.0);
        if (w.empty()) continue;
        if (is_precise(P)) {
            for (Index k = 0; k < P.rows; ++k)
                for (Index j = 0; j < l; ++j)
                    if (P(k, j) > 0.0) theta[j] += w[k];
            const double total = sum_of(w);
            for (Index j = 0; j < l; ++j) theta[j] /= total;
            sure = 1.0;
            continue;
        }
        if (separate(P, w, separable) && maximise_separable(separable.n, separable.m, theta)) {
            worst = kkt_excess(P, w, theta, g);
            sure = worst <= FINE;
            if (worst <= FINE) continue;
        }
        const Maximum maximum = maximise(P, w);
        copy(maximum.theta, theta);
        worst = maximum.worst;
        sure = is_certainly_unique(rescale_rows(P, theta), w, theta);
    }
}

/// Solve the problems `wanted` into `ends` (m, 4) and `states` (m,), see `solve_problem`, from their `estimates`.
inline void solve_counts(const Problems& problems, Vector<const int64_t> wanted, ConstRealMatrix estimates,
                         double alpha, bool tight, RealMatrix ends, Vector<int8_t> states) {
    const Index l = problems.table.columns;
    for (Index i = 0; i < length(wanted); ++i) {
        const auto [P, w] = take_problem(problems, wanted[i]);
        if (w.empty() || alpha == 0.0) {  // without informative contours, or at level 0, the cut is the simplex
            ends(i, 0) = ends(i, 1) = 0.0;
            ends(i, 2) = ends(i, 3) = std::log(static_cast<double>(l));
            states[i] = SOLVED;
        } else {
            states[i] = static_cast<int8_t>(
                solve_problem(P, w, part(estimates[i], 0, l), estimates(i, l), alpha, tight, ends[i]));
        }
    }
}

/// Write lower bound and reached least entropy of problems that `solve_counts` left; return the boxes examined.
///
/// At most `effort` boxes are examined for each.
inline Index search_counts(const Problems& problems, Vector<const int64_t> wanted, ConstRealMatrix estimates,
                           double alpha, Index effort, RealMatrix ends) {
    const Index l = problems.table.columns;
    Index examined = 0;
    for (Index i = 0; i < length(wanted); ++i) {
        const auto [P, w] = take_problem(problems, wanted[i]);
        const ConstReals theta = part(estimates[i], 0, l);
        const double W = sum_of(w);
        const double c = std::log(alpha);
        const auto [Q, x] = without_dominated(rescale_rows(P, theta), theta);
        std::vector<double> g(x.size());
        const double worst = sure_excess(Q, w, x, kkt_excess(Q, w, x, g), c);
        const double outer = c - W * level_error(Q, w, x, worst, c);
        const double error = W * (std::max(worst, estimates(i, l)) + rounding(l));
        const bool blurred = -c <= BLURRED * error;
        const bool few = blurred || -c <= NEAR_MAXIMUM * std::min(W, 1.0);
        const Index most = few ? std::min(effort, FEW_BOXES) : effort;
        auto found = least_entropy(Q, w, outer, c + error, x, worst, TOLERANCE, most);
        examined += found.examined;
        if (few && !blurred && found.reached - found.bound > KNOWN_ENTROPY && effort > most) {
            found = least_entropy(Q, w, outer, c + error, x, worst, TOLERANCE, effort);
            examined += found.examined;
        }
        ends(i, 0) = std::max(ends(i, 0), found.bound);
        ends(i, 1) = std::max(found.reached, ends(i, 0));
    }
    return examined;
}

}  // namespace quercus
