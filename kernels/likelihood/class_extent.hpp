// Proven bounds of the probability of one class over the likelihood cut (theory §2.12).
//
// Where `q . theta` is least over `{theta in the simplex : l(theta) >= c}`, `q = mu g + nu` on the support of `theta`,
// with `g` the gradient of `l`. Newton's method finds this point, starting from the quadratic model of `l` at its
// maximiser. At any point `y`, the tangent of `l` proves a bound: `l(t) <= l(y) + g . t - W`, so for every `mu >= 0`
//
//     `q . t >= min_k (q_k - mu g_k) + mu (W + c - l(y))`  on the whole cut.
//
// If value and bound agree, the bound is the result; otherwise (rarely) the interior-point method of `cut.hpp` takes
// over. If the maximiser is a vertex `e_a`, the guess is where an edge `(1 - t) e_a + t e_k` leaves the cut: one
// equation in one unknown.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "cut.hpp"
#include "descent.hpp"
#include "loglik.hpp"

namespace quercus {

constexpr double EXTENT_GAP = 1e-10;      // greatest distance at which the value found and the proven bound agree
constexpr int EXTENT_STEPS = 20;          // maximum number of Newton's steps
constexpr int EDGE_STEPS = 60;            // maximum number of Newton's steps on an edge; 4 to 8 are usual
constexpr double EDGE_TOLERANCE = 1e-14;  // relative tolerance of the end of an edge
constexpr Index NO_CLASS = -1;
constexpr double DUST = 4e-16;  // rounding error of a proven bound, relative to its terms

/// Solve `A y = x - nu 1` with `sum y = 0` in place of `x`, given the factor of `A` and `A^-1 1`.
inline void project(ConstRealMatrix A, ConstReals one, Reals x) {
    solve(A, x);
    const double nu = sum_of(x) / sum_of(one);
    for (Index r = 0; r < length(x); ++r) x[r] -= nu * one[r];
}

/// Write the least point of `sign theta_j` in the quadratic model of the cut at its maximiser into `y`.
///
/// With `a = W - g` and `H` the negative Hessian, both at `theta`, the model is `a . d + d' H d / 2 <= -c`. Returns the
/// multiplier `mu`, 0 if the model has none.
inline double quadratic_start(ConstRealMatrix P, ConstReals w, double c, ConstReals theta, Index j, double sign,
                              Reals y) {
    const Index l = length(theta);
    std::vector<Index> keep;
    for (Index k = 0; k < l; ++k)
        if (theta[k] > SUPPORT || k == j) keep.push_back(k);
    const Index m = length(keep);
    std::vector<double> g(l), one(m, 1.0), q(m), a(m);
    OwnedMatrix<double> H(l, l), A(m, m);
    derivatives(P, w, theta, g, H);
    const double W = sum_of(w);
    for (Index r = 0; r < m; ++r) {
        for (Index s = 0; s < m; ++s) A(r, s) = H(keep[r], keep[s]);
        a[r] = std::max(W - g[keep[r]], 0.0);
        if (keep[r] == j) q[r] = sign;
    }
    factor(A);
    for (Index r = 0; r < m; ++r)
        if (A(r, r) > 1e60) return 0.0;
    solve(A, one);
    std::vector<double> down = q, away = a;
    project(A, one, down);
    project(A, one, away);
    double size = 0.0, rest = 0.0;
    for (Index r = 0; r < m; ++r) {
        size += q[r] * down[r];
        rest += a[r] * away[r];
    }
    if (!(size > 0.0)) return 0.0;
    const double scale = std::sqrt((rest - 2.0 * c) / size);
    double t = 1.0;
    for (Index r = 0; r < m; ++r) {
        const double d = -scale * down[r] - away[r];
        if (d < 0.0) t = std::min(t, -0.95 * theta[keep[r]] / d);
    }
    std::fill(y.begin(), y.end(), 0.0);
    double total = 0.0;
    for (Index r = 0; r < m; ++r) {
        y[keep[r]] = theta[keep[r]] + t * (-scale * down[r] - away[r]);
        total += y[keep[r]];
    }
    if (!(y[j] > 0.0)) return 0.0;
    for (Index k = 0; k < l; ++k) y[k] /= total;
    return 1.0 / scale;
}

/// Return a proven lower bound of `sign theta_j` over the cut, from a start `y` with multiplier `mu`, or minus
/// infinity.
inline double newton(ConstRealMatrix P, ConstReals w, double c, Index j, double sign, Reals y, double mu) {
    const Index l = length(y);
    const double W = sum_of(w);
    std::vector<double> g(l), d(l + 2);
    std::vector<Index> keep;
    keep.reserve(l);
    OwnedMatrix<double> H(l, l), room(l + 2, l + 2);
    const auto cost = [&](Index k) { return k == j ? sign : 0.0; };
    double nu = INFINITE;
    for (int step = 0; step < EXTENT_STEPS; ++step) {
        const double value = derivatives(P, w, y, g, H);
        if (!std::isfinite(value)) return -INFINITE;
        double low = INFINITE;
        for (Index k = 0; k < l; ++k) low = std::min(low, cost(k) - mu * g[k]);
        low += mu * (W + c - value);
        low -= DUST * (1.0 + mu * (W + std::abs(c) + std::abs(value)));
        if (std::abs(sign * y[j] - low) <= EXTENT_GAP) return low;
        keep.clear();
        for (Index k = 0; k < l; ++k)
            if (y[k] > 0.0) keep.push_back(k);
        const Index m = length(keep);
        if (m < 2) return -INFINITE;
        if (nu == INFINITE) {
            nu = 0.0;
            for (Index r = 0; r < m; ++r) nu += (cost(keep[r]) - mu * g[keep[r]]) / m;
        }
        const RealMatrix A{&room(0, 0), m + 2, m + 2};
        std::fill_n(A.data, (m + 2) * (m + 2), 0.0);
        for (Index r = 0; r < m; ++r) {
            const Index p = keep[r];
            for (Index s = 0; s < m; ++s) A(r, s) = mu * H(p, keep[s]);
            A(r, m) = A(m, r) = -g[p];
            A(r, m + 1) = A(m + 1, r) = -1.0;
            d[r] = mu * g[p] + nu - cost(p);
        }
        d[m] = value - c;
        d[m + 1] = 0.0;
        if (!eliminate(A, part(Reals(d), 0, m + 2))) return -INFINITE;
        double t = 1.0;
        Index last = NO_CLASS;
        for (Index r = 0; r < m; ++r) {
            if (y[keep[r]] + t * d[r] <= 0.0) {
                t = -y[keep[r]] / d[r];
                last = keep[r];
            }
        }
        if (last >= 0 && t > 0.5) {  // nearly 0: it belongs at 0
            if (last == j) return -INFINITE;
        } else {
            last = NO_CLASS;
            t = t < 1.0 ? std::min(1.0, 0.9 * t) : 1.0;
        }
        double total = 0.0;
        for (Index r = 0; r < m; ++r) {
            y[keep[r]] = keep[r] == last ? 0.0 : y[keep[r]] + t * d[r];
            total += y[keep[r]];
        }
        for (Index r = 0; r < m; ++r) y[keep[r]] /= total;
        mu = std::max(mu + t * d[m], 0.2 * mu);
        nu += t * d[m + 1];
    }
    return -INFINITE;
}

/// Return the class that has all the probability, or `NO_CLASS`.
inline Index vertex_of(ConstReals theta) {
    for (Index k = 0; k < length(theta); ++k)
        if (theta[k] == 1.0) return k;
    return NO_CLASS;
}

/// Return whether the cut holds the vertex of class `k`.
inline bool may_be_alone(ConstRealMatrix P, ConstReals w, double c, Index k) {
    double value = 0.0;
    for (Index i = 0; i < P.rows; ++i) {
        if (!(P(i, k) > 0.0)) return false;
        value += w[i] * std::log(P(i, k));
    }
    return value >= c;
}

/// Return the greatest `t` with `l((1 - t) e_a + t e_k) >= c`, up to rounding.
///
/// `e_a` is the maximiser, `P[:, a]` is 1, and `e_k` is beyond the cut. Newton's method, within a bracket.
inline double edge_end(ConstRealMatrix P, ConstReals w, double c, Index k) {
    double slope = 0.0, bend = 0.0;
    for (Index i = 0; i < P.rows; ++i) {
        const double rise = P(i, k) - 1.0;
        slope += w[i] * rise;
        bend += w[i] * (rise * rise);
    }
    double low = 0.0, high = 1.0;
    double t = std::min(-2.0 * c / (std::sqrt(slope * slope - 2.0 * bend * c) - slope), 0.9);
    for (int step = 0; step < EDGE_STEPS; ++step) {
        double value = -c, rate = 0.0;
        for (Index i = 0; i < P.rows; ++i) {
            const double v = 1.0 + t * (P(i, k) - 1.0);
            value += v > 0.0 ? w[i] * std::log(v) : -INFINITE;
            rate += v > 0.0 ? w[i] * (P(i, k) - 1.0) / v : 0.0;
        }
        (value >= 0.0 ? low : high) = t;
        const double next = value > -INFINITE && rate < 0.0 ? t - value / rate : low;
        if (std::abs(next - t) <= EDGE_TOLERANCE * t && next < 1.0) return next;
        t = low < next && next < high ? next : 0.5 * (low + high);
    }
    return t;
}

/// Return the bound of `sign theta_j` that the tangent at `(1 - t) e_a + t e_k` proves; `g` (l,) is scratch.
inline double proven_at_edge(ConstRealMatrix P, ConstReals w, double c, Index a, Index k, double t, Index j,
                             double sign, Reals g) {
    const Index l = P.columns;
    double W = 0.0, value = 0.0;
    for (Index m = 0; m < l; ++m) g[m] = 0.0;
    for (Index i = 0; i < P.rows; ++i) {
        const double v = P(i, a) + t * (P(i, k) - P(i, a));
        if (!(v > 0.0)) return -INFINITE;
        W += w[i];
        value += w[i] * std::log(v);
        for (Index m = 0; m < l; ++m) g[m] += w[i] / v * P(i, m);
    }
    if (!(g[a] > g[k])) return -INFINITE;
    const double mu = 1.0 / (g[a] - g[k]);
    double low = INFINITE;
    for (Index m = 0; m < l; ++m) low = std::min(low, (m == j ? sign : 0.0) - mu * g[m]);
    return low + mu * (W + c - value) - DUST * (1.0 + mu * (W + std::abs(c) + std::abs(value)));
}

/// Return a proven lower bound of `sign theta_j` where `e_a` is the maximiser, or minus infinity.
///
/// Another class has its greatest probability at the end of its edge, unless the cut is wider with a third class. Class
/// `a` has its least probability at the end of the longest edge, unless several classes together leave it less. In
/// these exceptions the proof fails.
inline double least_at_vertex(ConstRealMatrix P, ConstReals w, double c, Index a, Index j, double sign, Reals g) {
    Index best = j;
    double longest = 0.0;
    if (sign > 0.0) {
        for (Index k = 0; k < P.columns; ++k) {
            if (k == a) continue;
            if (may_be_alone(P, w, c, k)) return 0.0;
            const double t = edge_end(P, w, c, k);
            if (t > longest) {
                best = k;
                longest = t;
            }
        }
    } else {
        longest = edge_end(P, w, c, j);
    }
    const double bound = proven_at_edge(P, w, c, a, best, longest, j, sign, g);
    const double reached = sign > 0.0 ? 1.0 - longest : -longest;
    return std::abs(reached - bound) <= EXTENT_GAP ? bound : -INFINITE;
}

/// Return a proven lower bound of `sign theta_j` over the cut (`sign` 1: the least, -1: the greatest probability).
///
/// `P @ theta` must be 1 in every row, `theta` the maximiser; `y` is scratch (l,).
inline double least_of_class(ConstRealMatrix P, ConstReals w, double c, ConstReals theta, Index j, double sign,
                             Reals y) {
    const Index l = length(theta);
    if (sign > 0.0) {
        if (theta[j] <= 0.0) return 0.0;
        if (theta[j] < 1.0) {  // test whether the class may have probability 0
            for (Index k = 0; k < l; ++k) y[k] = k == j ? 0.0 : theta[k] / (1.0 - theta[j]);
            if (loglik(P, w, y) >= c) return 0.0;
        }
    } else {
        for (Index k = 0; k < l; ++k) y[k] = k == j ? 1.0 : 0.0;
        if (loglik(P, w, y) >= c) return -1.0;
    }
    const Index a = vertex_of(theta);
    if (a != NO_CLASS) {
        const double bound = least_at_vertex(P, w, c, a, j, sign, y);
        if (bound > -INFINITE) return bound;
    }
    const double mu = quadratic_start(P, w, c, theta, j, sign, y);
    if (mu > 0.0) {
        const double bound = newton(P, w, c, j, sign, y, mu);
        if (bound > -INFINITE) return bound;
    }
    std::vector<double> cost(l);
    cost[j] = sign;
    for (Index k = 0; k < l; ++k) y[k] = 0.9 * theta[k] + 0.1 / l;
    return minimise_over_cut(P, w, c, cost, std::vector<double>(l), std::vector<double>(l, 1.0), y, INFINITE).bound;
}

}  // namespace quercus
