// The least width of the entropy interval when one row is left out (theory §3.3, which has the proof).
//
// `P @ theta` is 1 in every row, so that `l(theta) = 0`. `l_k = l - ln v_k` is the log-likelihood without one row of
// the contour `p_k`. One Newton step moves the ends of the whole interval into the cut of `l_k`, without reading the
// rows:
//
//     `l_k(x + d) >= l_k(x) + g_k . d - omega*(r)`,  `max l_k <= omega*(lambda)`,
//
// with `r` the length of `d` in the local norm, `lambda` that of the Newton step, `omega*(r) = -r - ln(1 - r)`.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "descent.hpp"
#include "loglik.hpp"
#include "rounding_bounds.hpp"

namespace quercus {

constexpr double LONGEST_STEP = 0.7;  // in the local norm; longer steps are not bounded by self-concordance

/// Invert `A` in place (Gauss-Jordan with partial pivoting); false if singular.
inline bool invert(RealMatrix A) {
    const Index m = A.rows;
    std::vector<Index> order(m);
    for (Index k = 0; k < m; ++k) {
        Index pivot = k;
        for (Index i = k + 1; i < m; ++i)
            if (std::abs(A(i, k)) > std::abs(A(pivot, k))) pivot = i;
        order[k] = pivot;
        if (!(std::abs(A(pivot, k)) > 0.0)) return false;
        if (pivot != k)
            for (Index j = 0; j < m; ++j) std::swap(A(k, j), A(pivot, j));
        const double scale = 1.0 / A(k, k);
        A(k, k) = 1.0;
        for (Index j = 0; j < m; ++j) A(k, j) *= scale;
        for (Index i = 0; i < m; ++i) {
            const double f = A(i, k);
            if (i == k || f == 0.0) continue;
            A(i, k) = 0.0;
            for (Index j = 0; j < m; ++j) A(i, j) -= f * A(k, j);
        }
    }
    for (Index k = m - 1; k >= 0; --k)
        if (order[k] != k)
            for (Index i = 0; i < m; ++i) std::swap(A(i, k), A(i, order[k]));
    return true;
}

/// Write the inverse of the bordered matrix of the conditions of optimality at `x`; return `l(x)`.
///
/// See `move_into_cut`. The result is NaN if the matrix is singular.
inline double optimality(ConstRealMatrix P, ConstReals w, ConstReals x, double mu, Vector<const Index> face,
                         RealMatrix K, RealMatrix H, Reals g) {
    const Index m = length(face);
    const double value = derivatives(P, w, x, g, H);
    for (Index r = 0; r < m; ++r) {
        for (Index s = 0; s < m; ++s) K(r, s) = mu * H(face[r], face[s]);
        K(r, r) -= 1.0 / x[face[r]];
        K(r, m) = K(m, r) = -g[face[r]];
        K(r, m + 1) = K(m + 1, r) = -1.0;
    }
    for (Index r = m; r < m + 2; ++r)
        for (Index s = m; s < m + 2; ++s) K(r, s) = 0.0;
    return invert(K) ? value : std::numeric_limits<double>::quiet_NaN();
}

/// Write upper bounds of the maximum of each `l_k` into `tops` (n,); infinity if none is known.
///
/// The step is taken on the face of `theta`; a class off the face is held at 0 by a multiplier, which must not be
/// negative.
inline void highest_without(ConstRealMatrix P, ConstReals w, ConstReals theta, double worst, Reals tops) {
    const Index n = P.rows, l = P.columns;
    const double W = sum_of(w);
    const std::vector<Index> face = present_classes(theta);
    const Index m = length(face);
    std::vector<double> g(l), d(m), d_full(l);
    OwnedMatrix<double> H(l, l), K(m + 1, m + 1);
    derivatives(P, w, theta, g, H);
    for (Index r = 0; r < m; ++r) {
        for (Index s = 0; s < m; ++s) K(r, s) = H(face[r], face[s]);
        K(r, m) = K(m, r) = 1.0;
    }
    const bool regular = invert(K);
    for (Index k = 0; k < n; ++k) {
        tops[k] = INFINITE;
        if (!regular) continue;
        double q = 0.0;
        for (Index r = 0; r < m; ++r) {
            d[r] = 0.0;
            for (Index s = 0; s < m; ++s) d[r] -= K(r, s) * P(k, face[s]);
            q -= d[r] * P(k, face[r]);
        }
        if (!(0.0 <= q && q < 0.5)) continue;
        double nu = 0.0;  // H_k d = -p_k + nu on the face
        for (Index s = 0; s < m; ++s) nu += K(m, s) * P(k, face[s]);
        nu /= 1.0 - q;
        double square = 0.0, loose = 0.0;
        bool held = true;
        for (Index j = 0; j < l; ++j) {
            double push = -P(k, j) * -q / (1.0 - q);  // becomes (H_k d)_j
            for (Index r = 0; r < m; ++r) push += H(j, face[r]) * d[r] / (1.0 - q);
            if (theta[j] > SUPPORT) {
                loose += 2.0 * std::abs(push + P(k, j) - nu);
            } else {
                const double hold = W - g[j] + push + P(k, j) - nu;
                held = held && hold >= 0.0;
                loose += hold * theta[j];
            }
            d_full[j] = push;
        }
        for (Index r = 0; r < m; ++r) square += d_full[face[r]] * d[r] / (1.0 - q);
        if (held && 0.0 <= square && square < 1.0) {
            const double size = std::sqrt(square);
            tops[k] = -size - std::log1p(-size) + loose + W * (worst + plain_sums(n, l) + rounding(l));
        }
    }
}

/// Return the least `t` found with `rise + slope t - omega*(sqrt(aa + 2 ae t + ee t^2)) >= level`, or NaN.
inline double length_of_step(double level, double rise, double slope, double aa, double ae, double ee) {
    constexpr double NONE = std::numeric_limits<double>::quiet_NaN();
    double t = 0.0, room = 0.0;
    for (int step = 0; step < 8; ++step) {
        const double r = std::sqrt(std::max(aa + t * (2.0 * ae + ee * t), 0.0));
        if (!(r < LONGEST_STEP)) return NONE;
        room = rise + slope * t + r + std::log1p(-r) - level;
        if (0.0 <= room && room <= 1e-9) return t;
        const double rate = slope - (ae + ee * t) / (1.0 - r);
        if (!(rate > 0.0)) return room < 0.0 ? NONE : t;
        t += (1e-12 - room) / rate;
    }
    return room >= 0.0 ? t : NONE;
}

/// Move `x`, near which the entropy is stationary on `l = c` with multiplier `mu`, into the cut without each row.
///
/// `ends` (n,) keeps the greatest (if `highest`) or the least entropy (nats) reached so far.
inline void move_into_cut(ConstRealMatrix P, ConstReals w, double c, ConstReals x, double mu, ConstReals tops,
                          bool highest, Reals ends) {
    const Index n = P.rows, l = P.columns;
    const std::vector<Index> face = present_classes(x);
    const Index m = length(face);
    OwnedMatrix<double> K(m + 2, m + 2), H(l, l);
    std::vector<double> g(l), a(m), e(m), He(m), fault(m);  // fault: residual of -ln x_j - 1 - mu g_j = nu
    const double value = optimality(P, w, x, mu, face, K, H, g);
    if (!(value > -INFINITE)) return;
    double slope = 0.0, ee = 0.0, nu = 0.0;
    for (Index r = 0; r < m; ++r) {
        fault[r] = std::log(x[face[r]]) + 1.0 + mu * g[face[r]];
        nu -= fault[r] / m;
    }
    for (Index r = 0; r < m; ++r) {
        fault[r] += nu;
        e[r] = -K(r, m);
    }
    for (Index r = 0; r < m; ++r) {
        He[r] = 0.0;
        for (Index s = 0; s < m; ++s) He[r] += H(face[r], face[s]) * e[s];
        slope += g[face[r]] * e[r];
        ee += He[r] * e[r];
    }
    for (Index k = 0; k < n; ++k) {
        double v = 0.0;
        for (Index j = 0; j < l; ++j) v += P(k, j) * x[j];
        if (!(tops[k] < INFINITE) || !(v > 0.0)) continue;
        const double level = tops[k] + c;
        const double here = value - std::log(v);
        double aa = 0.0, ae = 0.0, ga = 0.0, pa = 0.0, pe = 0.0;
        for (Index r = 0; r < m; ++r) {
            a[r] = K(r, m) * (here - level);
            for (Index s = 0; s < m; ++s) a[r] += K(r, s) * (fault[s] - mu * P(k, face[s]) / v);
        }
        for (Index r = 0; r < m; ++r) {
            double Ha = 0.0;
            for (Index s = 0; s < m; ++s) Ha += H(face[r], face[s]) * a[s];
            aa += Ha * a[r];
            ae += He[r] * a[r];
            ga += g[face[r]] * a[r];
            pa += P(k, face[r]) * a[r] / v;
            pe += P(k, face[r]) * e[r] / v;
        }
        const double t = length_of_step(level, here + ga - pa, slope - pe, aa - pa * pa, ae - pa * pe, ee - pe * pe);
        double reached = 0.0;
        for (Index r = 0; r < m; ++r) {
            const double y = x[face[r]] + a[r] + t * e[r];
            if (!(y > 0.0)) {
                reached = std::numeric_limits<double>::quiet_NaN();
                break;
            }
            reached -= y * std::log(y);
        }
        if (highest ? reached > ends[k] : reached < ends[k]) ends[k] = reached;
    }
}

/// Write the ends that are known without search into `low` and `high` (n,): those of a vertex, the uniform point or
/// `theta`.
inline void known_ends(ConstRealMatrix P, ConstReals w, double c, ConstReals theta, ConstReals tops, Reals low,
                       Reals high) {
    const Index n = P.rows, l = P.columns;
    const double at_theta = entropy(theta);
    const double uniform = loglik(P, w, std::vector<double>(l, 1.0 / l));
    std::vector<double> at_vertex(l), barred(l);
    for (Index i = 0; i < n; ++i) {
        for (Index j = 0; j < l; ++j) {
            if (P(i, j) > 0.0) at_vertex[j] += w[i] * std::log(P(i, j));
            else barred[j] += w[i];
        }
    }
    for (Index k = 0; k < n; ++k) {
        const double level = tops[k] + c;
        low[k] = level <= 0.0 ? at_theta : INFINITE;
        high[k] = level <= 0.0 ? at_theta : -INFINITE;
        double v = 0.0;
        for (Index j = 0; j < l; ++j) {
            v += P(k, j) / l;
            const double left = P(k, j) > 0.0 ? barred[j] : barred[j] - 1.0;
            const double own = P(k, j) > 0.0 ? std::log(P(k, j)) : 0.0;
            if (left == 0.0 && at_vertex[j] - own >= level) low[k] = 0.0;
        }
        if (uniform - std::log(v) >= level) high[k] = std::log(static_cast<double>(l));
    }
}

}  // namespace quercus
