// A convex quadratic below the entropy, over a level set in a box (theory §2.6).
//
// Notation as in `loglik.hpp`; `h(t) = -t ln t`, so that the entropy is `H(t) = sum_j h(t_j)`. Around a point `y` of
// the box, with a multiplier `mu >= 0`, three inequalities hold on the level set within the box (`d = t - y`):
//
// - `-l(t) >= -l(y) - g . d + d' K d / 2` with `K = sum_i w_i p_i p_i' / (v_i^2 (1 + 2/3 U_i))`, where `1 + U_i` bounds
//   `p_i . t / v_i`: because `u - ln(1 + u) >= u^2 / (2 + 4/3 U)` for `u <= U`, `U >= 0`;
// - `h(t_j) >= E_j(y_j) + E_j'(y_j) d_j - f_j d_j^2 / 2` with `E_j` the convex envelope of `h(t) + f_j (t - y_j)^2 / 2`
//   over `[a_j, b_j]`, for any curvature `f_j` (a chord where `f_j` is small: Falk, Soland 1969);
// - `(s - s_lo) (s - s_hi) <= 0` for `s = g(x) . (t - x)` at any `x`, with `s_lo >= c - l(x)` because `l` is concave.
//
// Together, since `l(t) >= c`, they bound the entropy from below by
//
//     sum_j h(t_j) - (1 - phi) mu (l(t) - c) + kappa (s - s_lo) (s - s_hi) >= base + r . d + d' A d / 2,
//     A = (1 - phi) mu K + 2 kappa g(x) g(x)' - diag(f),
//
// a quadratic that is convex when `f` is small enough, so that its tangent at a near-minimiser is a proof. `E_j`
// touches `h` at `y_j` itself as soon as `f_j >= least_curvature(y_j, a_j)`, which is at most `2 / y_j` however near 0
// the box reaches: where `y` is a local minimum with multiplier `mu` and A is then convex, the bound is the minimum
// itself. `phi` moves curvature from the directions along the boundary of the level set, in which a minimum has more
// than it needs, to the one across.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "curvature.hpp"
#include "cut.hpp"
#include "loglik.hpp"

namespace quercus {

/// Working space and results of `bound_at` for `l` classes, from which its callers continue.
struct Workspace {
    OwnedMatrix<double> K, M,
        A;  // (l, l) curvature of the likelihood; of the quadratic before `diag(f)`; of the quadratic
    std::vector<double> e, f;  // (l,) wanted and affordable curvature of each class
    std::vector<double> g, r;  // (l,) gradient of the likelihood, and of the quadratic, at `y`
    std::vector<double> z, q;  // (l,) minimiser of the quadratic, and its gradient there

    explicit Workspace(Index l) : K(l, l), M(l, l), A(l, l), e(l), f(l), g(l), r(l), z(l), q(l) {}
};

constexpr Index TILE = 4;  // sums over rows are taken for a tile of TILE by TILE pairs of classes at once

/// Return rows (n, l) with zeros behind them, up to a multiple of `TILE` columns: what `expand` reads.
inline OwnedMatrix<double> padded(ConstRealMatrix P) {
    OwnedMatrix<double> Q(P.rows, (P.columns + TILE - 1) / TILE * TILE);
    for (Index i = 0; i < P.rows; ++i)
        for (Index j = 0; j < P.columns; ++j) Q(i, j) = P(i, j);
    return Q;
}

/// Write gradient `g` and curvature `K` (lower triangle) of the first inequality above; return `l(y)`.
///
/// `Q` is `P` `padded`, `V` (n,) bounds `P t`. Minus infinity where some `p_i . y` is 0.
inline double expand(ConstRealMatrix Q, ConstReals w, ConstReals y, ConstReals V, Reals g, RealMatrix K) {
    const Index n = Q.rows, l = length(y);
    std::vector<double> v(n), s(n);
    for (Index i = 0; i < n; ++i) v[i] = dot(part(Q[i], 0, l), y);
    double value = 0.0;
    for (Index i = 0; i < n; ++i) {
        if (!(v[i] > 0.0)) return -INFINITE;
        value += w[i] * std::log(v[i]);
    }
    for (Index i = 0; i < n; ++i) {
        const double r = w[i] / v[i];
        s[i] = r / (v[i] + 2.0 / 3.0 * std::max(V[i] - v[i], 0.0));
        v[i] = r;
    }
    for (Index j = 0; j < l; j += TILE) {
        double sums[TILE] = {};
        for (Index i = 0; i < n; ++i)
            for (Index r = 0; r < TILE; ++r) sums[r] += v[i] * Q(i, j + r);
        for (Index r = 0; r < std::min(TILE, l - j); ++r) g[j + r] = sums[r];
        for (Index k = 0; k <= j; k += TILE) {
            double tile[TILE][TILE] = {};
            for (Index i = 0; i < n; ++i) {
                for (Index r = 0; r < TILE; ++r) {
                    const double scaled = s[i] * Q(i, j + r);
                    for (Index t = 0; t < TILE; ++t) tile[r][t] += scaled * Q(i, k + t);
                }
            }
            for (Index r = 0; r < std::min(TILE, l - j); ++r)
                for (Index t = 0; t < TILE && k + t <= j + r; ++t) K(j + r, k + t) = tile[r][t];
        }
    }
    return value;
}

/// Move `y` towards the minimum, over simplex and box, of the quadratic with gradient `g` there and curvature `A`.
///
/// Pairs of coordinates exchange probability, the pair with the largest gain first.
inline void settle_in_box(ConstRealMatrix A, Reals g, ConstReals a, ConstReals b, Reals y) {
    const Index l = length(g);
    for (Index round = 0; round < 8 * l; ++round) {
        Index up = -1, down = -1;
        for (Index j = 0; j < l; ++j) {
            if (y[j] < b[j] && (up < 0 || g[j] < g[up])) up = j;
            if (y[j] > a[j] && (down < 0 || g[j] > g[down])) down = j;
        }
        if (up < 0 || down < 0 || !(g[down] - g[up] > 1e-12)) return;
        const double curvature = A(up, up) + A(down, down) - 2.0 * A(up, down);
        double t = std::min(b[up] - y[up], y[down] - a[down]);
        if (curvature * t > g[down] - g[up]) {
            t = (g[down] - g[up]) / curvature;
            y[up] += t;
            y[down] -= t;
        } else if (b[up] - y[up] < y[down] - a[down]) {
            y[up] = b[up];
            y[down] -= t;
        } else {
            y[up] += t;
            y[down] = a[down];
        }
        for (Index j = 0; j < l; ++j) g[j] += t * (A(j, up) - A(j, down));
    }
}

/// Move `z` to the minimum of `(r - push g) . d + d' A d / 2`, `d = z - y`, over simplex and box.
///
/// `q` receives the gradient there.
inline void minimise_quadratic(ConstRealMatrix A, ConstReals r, double push, ConstReals g, ConstReals a, ConstReals b,
                               ConstReals y, Reals z, Reals q) {
    const Index l = length(r);
    const auto write_gradient = [&] {
        for (Index j = 0; j < l; ++j) {
            q[j] = r[j] - push * g[j];
            for (Index k = 0; k < l; ++k) q[j] += A(j, k) * (z[k] - y[k]);
        }
    };
    write_gradient();
    settle_in_box(A, q, a, b, z);
    write_gradient();  // computed anew: the exchanges accumulate rounding
}

/// Return the multiplier that may put the quadratic's minimiser on the level set, by one step of the secant method.
///
/// `z` moves from the minimiser of the quadratic to that with another multiplier. `shortfall` is `c - l(y)`; `l` is
/// approximated by its expansion at `y`. This is only a guess: any multiplier gives a bound, and further steps gain
/// little.
inline double next_multiplier(ConstRealMatrix A, ConstReals r, ConstReals g, ConstRealMatrix K, double shortfall,
                              double mu, ConstReals a, ConstReals b, ConstReals y, Reals z, Reals q) {
    const Index l = length(r);
    double gain = 0.0, target = shortfall;
    for (Index j = 0; j < l; ++j) {
        gain += g[j] * (z[j] - y[j]);
        for (Index k = 0; k < l; ++k) target += 0.5 * K(std::max(j, k), std::min(j, k)) * (z[j] - y[j]) * (z[k] - y[k]);
    }
    const double missed = gain - target;
    const double m = mu * (missed < 0.0 ? 1.3 : 0.75);
    minimise_quadratic(A, r, m - mu, g, a, b, y, z, q);
    gain = -target;
    for (Index j = 0; j < l; ++j) gain += g[j] * (z[j] - y[j]);
    if (gain == missed) return m * (gain < 0.0 ? 1.5 : 0.6);
    return std::min(std::max(m - gain * (m - mu) / (gain - missed), 0.2 * mu), 5.0 * mu);
}

/// Write curvature `A` and gradient `r` at `y` of the quadratic; return the sum of the envelopes at `y`.
///
/// `slope` and `push` are the factors of `g(y)` and `g(x)` in the gradient, `M` the curvature without `diag(f)`.
inline double underestimate(ConstReals y, ConstReals a, ConstReals b, ConstReals f, ConstRealMatrix M, double slope,
                            ConstReals g, double push, ConstReals gx, RealMatrix A, Reals r) {
    double total = 0.0;
    for (Index j = 0; j < length(y); ++j) {
        const auto [here, rise] = envelope(f[j], y[j], a[j], b[j]);
        total += here;
        r[j] = rise + slope * g[j] + push * gx[j];
        for (Index k = 0; k <= j; ++k) A(j, k) = A(k, j) = M(j, k);
        A(j, j) -= f[j];
    }
    return total;
}

struct QuadraticBound {
    double bound;
    double above;  // the quadratic at its minimiser
    double value;  // `l(y)`
};

/// Bound the entropy by one quadratic, around `y` and with multiplier `m`; `Q` is `P` `padded`.
///
/// With `exact` the bound must not lose anything at `y`: it is minus infinity if no convex quadratic allows that.
inline QuadraticBound bound_at(ConstRealMatrix Q, ConstReals w, double c, ConstReals V, ConstReals a, ConstReals b,
                               ConstReals gx, double origin, double s_lo, double s_hi, ConstReals y, double m,
                               bool exact, Workspace& scratch) {
    auto& [K, M, A, e, f, g, r, z, q] = scratch;
    const Index l = length(y);
    const double value = expand(Q, w, y, V, g, K);
    if (value == -INFINITE) return {-INFINITE, -INFINITE, value};
    wanted_curvature(y, a, b, m, g, exact, e);
    const auto [tau, phi, kappa] = choose_curvature(m, K, gx, s_hi - s_lo, e, a, b, exact, M, f, A);
    if (tau == INFINITE) return {-INFINITE, -INFINITE, value};
    double s = -origin;
    for (Index j = 0; j < l; ++j) s += gx[j] * y[j];
    const double push = kappa * (2.0 * s - s_lo - s_hi);
    double above = underestimate(y, a, b, f, M, -(1.0 - phi) * m, g, push, gx, A, r);
    above += kappa * (s - s_lo) * (s - s_hi) - (1.0 - phi) * m * (value - c);
    copy(y, z);
    minimise_quadratic(A, r, 0.0, g, a, b, y, z, q);
    double bound = least_linear(q, a, b);
    for (Index j = 0; j < l; ++j) {
        above += 0.5 * (r[j] + q[j]) * (z[j] - y[j]);  // now at z
        bound -= q[j] * z[j];
    }
    return {bound + above, above, value};
}

}  // namespace quercus
