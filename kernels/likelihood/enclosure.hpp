// Boxes that provably contain a level set of the likelihood, or the part of it that matters (theory §2.5).
//
// Notation as in `loglik.hpp`. `outer_box` encloses the whole level set; `shrink` cuts from a box what a linear
// inequality excludes.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "loglik.hpp"

namespace quercus {

constexpr double UNIT_ROUNDOFF = 1.2e-16;  // slightly more than 2^-53, the rounding of one operation

/// Return an upper bound of `u = p . t - 1` over the simplex where `omega(u) <= x`: see `outer_box`.
inline double largest_move(ConstReals p, double x) {
    double top = 0.0;
    for (double value : p) top = std::max(top, value - 1.0);
    if (top == 0.0 || !(x < 1e100)) return top;
    double u = x + std::sqrt(2.0 * x);  // right of the root of omega(u) = x, and Newton stays there
    for (int round = 0; round < 4; ++round) u -= (u - std::log1p(u) - x) * (1.0 + u) / u;
    return u > 0.0 ? std::min(u * (1.0 + 1e-6), top) : top;
}

/// Confine the level set to `(t - theta)' A (t - theta) <= square` and to a first box; return `square`.
///
/// Theory §2.5 has the proof. Every point `t` of the level set satisfies
///
///     sum_i w_i omega(u_i) + sum_j (W - g_j) t_j <= delta,  delta = -c + W worst,
///
/// with `u_i = p_i . t - 1`, `omega(u) = u - ln(1 + u)`, `g` the gradient at `theta`, and the sum over the classes with
/// `g_j < W`. `worst` is the KKT excess of `theta`.
///
/// `A` receives the Cholesky factor of `A` plus a multiple of `11'`, which changes nothing on the simplex. If `A` is
/// too flat to be factored, -1 is returned, and only the box is valid.
///
/// Rounding (theory §2.8), with `u = 2^-53`: `g_j` is a sum of `n` positive terms with `l + 3` roundings each. Its
/// relative error is at most `(n + l + 3) u`, and `W - g_j` is reduced by as much. The form `d' A d`,
/// computed with the factor, has the relative error `l (n + 6 l + 3) u / rho`, where `rho` is the least pivot divided
/// by its diagonal entry. `square` is enlarged by as much.
///
/// - `P`, `w`: (n, l), (n,) contours and weights; `P theta` must be 1 in every row
/// - `c`: the level, at most 0
/// - `theta`: (l,) estimate, where the likelihood is 0
/// - `worst`: its KKT excess
/// - `a`, `b`: (l,) written: the first box
/// - `top`: (n,) written: upper bounds of `P t`
/// - `A`: (l, l) written
inline double ellipsoid(ConstRealMatrix P, ConstReals w, double c, ConstReals theta, double worst, Reals a, Reals b,
                        Reals top, RealMatrix A) {
    const Index n = P.rows, l = P.columns;
    const double W = sum_of(w);
    const double delta = -c + W * worst;
    std::vector<double> g(l);
    gradient(P, w, theta, g);
    const double slip = (n + l + 3) * UNIT_ROUNDOFF * W;
    for (Index j = 0; j < l; ++j)
        for (Index k = 0; k < l; ++k) A(j, k) = 0.0;
    for (Index i = 0; i < n; ++i) {
        const double u = largest_move(P[i], delta / w[i]);
        top[i] = (1.0 + u) * (1.0 + 1e-9);
        const double r = w[i] / (1.0 + 2.0 / 3.0 * u);
        for (Index j = 0; j < l; ++j) {
            const double pj = r * P(i, j);
            for (Index k = 0; k <= j; ++k) A(j, k) += pj * P(i, k);
        }
    }
    double square = 2.0 * delta, least = INFINITE;
    for (Index j = 0; j < l; ++j) {
        a[j] = 0.0;
        b[j] = 1.0;
        const double missing = W - g[j] - slip;
        if (missing > 1e-9 * W) {
            b[j] = std::min(1.0, delta / missing * (1.0 + 1e-6));
            if (b[j] > 0.0) {
                const double d = 2.0 * missing / std::max(b[j], theta[j]);
                A(j, j) += d;
                square += d * theta[j] * theta[j];  // (t - theta)^2 <= t^2 + theta^2
            }
        }
        least = std::min(least, A(j, j));
    }
    for (Index j = 0; j < l; ++j) {
        for (Index k = 0; k <= j; ++k) A(j, k) += least;  // sum (t - theta) = 0: a multiple of 11' changes nothing
        g[j] = A(j, j);
    }
    factor(A);
    double rho = 1.0;
    for (Index j = 0; j < l; ++j) {
        if (A(j, j) > 1e60 || !(A(j, j) * A(j, j) > 1e-9 * g[j])) return -1.0;
        rho = std::min(rho, A(j, j) * A(j, j) / g[j]);
    }
    return square / (1.0 - std::min(l * (n + 6.0 * l + 3.0) * UNIT_ROUNDOFF / rho, 0.5));
}

/// Solve `L L' X = B` in place of `B`: every column as `solve` does, but together, so that steps need not wait for the
/// ones before.
inline void solve_columns(ConstRealMatrix L, RealMatrix B) {
    const Index l = L.rows, m = B.columns;
    const auto take_off = [&](double factor, Index k, Index i) {
        for (Index c = 0; c < m; ++c) B(i, c) -= factor * B(k, c);
    };
    const auto divide = [&](Index i) {
        for (Index c = 0; c < m; ++c) B(i, c) /= L(i, i);
    };
    for (Index i = 0; i < l; ++i) {
        for (Index k = 0; k < i; ++k) take_off(L(i, k), k, i);
        divide(i);
    }
    for (Index i = l - 1; i >= 0; --i) {
        for (Index k = i + 1; k < l; ++k) take_off(L(k, i), k, i);
        divide(i);
    }
}

/// Write a box `[a, b]` that provably contains the level set, and upper bounds `top` of `P t` over it.
///
/// `P theta` must be 1 in every row. The box is that of `ellipsoid`.
inline void outer_box(ConstRealMatrix P, ConstReals w, double c, ConstReals theta, double worst, Reals a, Reals b,
                      Reals top) {
    const Index n = P.rows, l = P.columns;
    OwnedMatrix<double> A(l, l);
    const double square = ellipsoid(P, w, c, theta, worst, a, b, top, A);
    if (square < 0.0) return;
    std::vector<double> one(l, 1.0);
    solve(A, one);
    const double total = sum_of(one);
    OwnedMatrix<double> E(l, l + n);  // columns: the classes, then the rows of P
    for (Index j = 0; j < l; ++j) {
        E(j, j) = 1.0;
        for (Index i = 0; i < n; ++i) E(j, l + i) = P(i, j);
    }
    solve_columns(A, E);
    for (Index j = 0; j < l; ++j) {
        const double r = std::sqrt(square * std::max(E(j, j) - one[j] * one[j] / total, 0.0)) * (1.0 + 1e-6) + 1e-12;
        a[j] = std::max(a[j], theta[j] - r);
        b[j] = std::min(b[j], theta[j] + r);
    }
    for (Index i = 0; i < n; ++i) {  // p . (t - theta) over the ellipsoid and sum (t - theta) = 0
        double square_length = 0.0, mean = 0.0;
        for (Index j = 0; j < l; ++j) {
            square_length += P(i, j) * E(j, l + i);
            mean += P(i, j) * one[j];
        }
        const double r = std::sqrt(square * std::max(square_length - mean * mean / total, 0.0)) * (1.0 + 1e-6) + 1e-12;
        top[i] = std::min(top[i], 1.0 + r);
    }
}

/// Shrink a box to its intersection with the simplex; false if that is empty. The interior stays non-empty.
inline bool tighten(Reals a, Reals b) {
    const Index l = length(a);
    for (int round = 0; round < 2; ++round) {
        double sa = sum_of(a), sb = sum_of(b);
        if (sa > 1.0 + 1e-12 || sb < 1.0 - 1e-12) return false;
        for (Index j = 0; j < l; ++j) {
            b[j] = std::min(b[j], 1.0 - (sa - a[j]));
            a[j] = std::max(a[j], 1.0 - (sb - b[j]));
            if (a[j] > b[j] + 1e-12) return false;
            sa = sum_of(a);
            sb = sum_of(b);
        }
    }
    for (Index j = 0; j < l; ++j) {
        if (b[j] - a[j] < 1e-11) {
            b[j] = std::min(1.0, b[j] + 1e-11);
            a[j] = std::max(0.0, a[j] - 1e-11);
        }
    }
    if (sum_of(a) > 1.0 - 1e-11 || sum_of(b) < 1.0 + 1e-11) {
        for (Index j = 0; j < l; ++j) {
            a[j] = std::max(0.0, a[j] - 1e-11);
            b[j] = std::min(1.0, b[j] + 1e-11);
        }
    }
    return true;
}

/// Remove from the box what `q . t <= limit` excludes on the simplex; false if nothing is left.
///
/// The minimum of `q . t` over simplex and box is a fractional knapsack with a price `nu` of probability; away from the
/// vertex that attains it a coordinate costs `|q_j - nu|`, and the slack of the limit bounds its move.
inline bool shrink(ConstReals q, double limit, Reals a, Reals b) {
    const Index l = length(q);
    double left = 1.0, slack = limit;
    for (Index j = 0; j < l; ++j) {
        left -= a[j];
        slack -= q[j] * a[j];
    }
    double nu = -INFINITE;
    for (Index round = 0; round < l; ++round) {
        double price = INFINITE;
        for (Index j = 0; j < l; ++j)  // all classes of the next lowest cost at once
            if (nu < q[j] && q[j] < price) price = q[j];
        if (price == INFINITE) break;
        nu = price;
        for (Index j = 0; j < l; ++j) {
            if (q[j] != nu) continue;
            const double amount = std::min(left, b[j] - a[j]);
            slack -= q[j] * amount;
            left -= amount;
        }
        if (left <= 0.0) break;
    }
    const double rounding = 2e-15 * std::abs(limit) + 1e-13;
    if (slack < -rounding) return false;
    slack = std::max(slack, 0.0) * (1.0 + 1e-9) + rounding;
    for (Index j = 0; j < l; ++j) {
        const double d = q[j] - nu;
        if (d > 0.0) b[j] = std::min(b[j], a[j] + slack / d);
        else if (d < 0.0) a[j] = std::max(a[j], b[j] + slack / d);
    }
    return true;
}

/// Return the maximum of `p . t` over simplex and box, which must intersect.
inline double greatest_linear(ConstReals p, ConstReals a, ConstReals b) {
    const Index l = length(p);
    double left = 1.0, total = 0.0;
    for (Index j = 0; j < l; ++j) {
        total += p[j] * a[j];
        left -= a[j];
    }
    double cap = INFINITE;
    while (left > 0.0) {
        double best = -1.0;
        for (Index j = 0; j < l; ++j)  // all classes of the next largest value at once
            if (best < p[j] && p[j] < cap) best = p[j];
        if (best < 0.0) break;
        double room = 0.0;
        for (Index j = 0; j < l; ++j)
            if (p[j] == best) room += b[j] - a[j];
        total += best * std::min(left, room);
        left -= room;
        cap = best;
    }
    return total;
}

/// Return whether the box contains `x` up to rounding; if so, widen the box to contain it strictly.
inline bool contains(Reals a, Reals b, ConstReals x) {
    for (Index j = 0; j < length(x); ++j)
        if (x[j] < a[j] - 1e-12 || x[j] > b[j] + 1e-12) return false;
    for (Index j = 0; j < length(x); ++j) {
        a[j] = std::min(a[j], x[j]);
        b[j] = std::max(b[j], x[j]);
    }
    return true;
}

/// Write into `y` a point of simplex and box near `x`; the two must intersect.
inline void nearest(ConstReals a, ConstReals b, ConstReals x, Reals y) {
    const Index l = length(x);
    double left = 1.0;
    for (Index j = 0; j < l; ++j) {
        y[j] = std::min(std::max(x[j], a[j]), b[j]);
        left -= y[j];
    }
    double room = 0.0;
    for (Index j = 0; j < l; ++j) room += left > 0.0 ? b[j] - y[j] : y[j] - a[j];
    if (room > 0.0)
        for (Index j = 0; j < l; ++j) y[j] += left * (left > 0.0 ? b[j] - y[j] : y[j] - a[j]) / room;
}

}  // namespace quercus
