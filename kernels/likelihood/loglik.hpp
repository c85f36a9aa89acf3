// The evidential log-likelihood, its derivatives and its maximiser (theory §2.1, §2.2).
//
// Notation of all headers of this folder: `P` (n, l) contours, `w` (n,) weights, `W` their sum, `v = P theta`,
// `l(theta) = sum_i w_i ln v_i`, level set `{theta in the simplex: l(theta) >= c}`. In nats.
//
// The interior-point methods here and in `cut.hpp` may stop early or diverge without harm: they return only a *guess*,
// and every bound that leaves these kernels is recomputed from the guess by weak duality, which is valid for any guess.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "../arrays.hpp"

namespace quercus {

constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr double TO_BOUNDARY = 0.995;  // fraction of the way to the boundary that a step may take
constexpr int INTERIOR_STEPS = 80;     // interior-point steps; 8 to 20 are usual
constexpr double SUPPORT = 1e-7;       // a class with less probability counts as absent

// Sums are taken in order, two terms per iteration. From a simple loop GCC makes vectors of the products alone, which
// is slower than no vectors.

/// Return `x . y`.
inline double dot(ConstReals x, ConstReals y) {
    const Index n = length(x);
    double total = 0.0;
    Index i = 0;
    for (; i + 1 < n; i += 2) {
        total += x[i] * y[i];
        total += x[i + 1] * y[i + 1];
    }
    if (i < n) total += x[i] * y[i];
    return total;
}

/// Return `s` less the `n` products of every `step`-th value of `x` with the values of `y`.
inline double less_products(double s, const double* x, Index step, const double* y, Index n) {
    Index i = 0;
    for (; i + 1 < n; i += 2) {
        s -= x[i * step] * y[i];
        s -= x[(i + 1) * step] * y[i + 1];
    }
    if (i < n) s -= x[i * step] * y[i];
    return s;
}

/// Return `l(theta)`; minus infinity if some `v_i` is 0.
inline double loglik(ConstRealMatrix P, ConstReals w, ConstReals theta) {
    double total = 0.0;
    for (Index i = 0; i < P.rows; ++i) {
        const double v = dot(P[i], theta);
        if (v <= 0.0) return -INFINITE;
        total += w[i] * std::log(v);
    }
    return total;
}

inline double sum_of(ConstReals values) {
    double total = 0.0;
    for (double value : values) total += value;
    return total;
}

inline void copy(ConstReals source, Reals target) { std::copy_n(source.data(), target.size(), target.data()); }

/// Write `dl/dtheta` into `g`; return `l(theta)`.
inline double gradient(ConstRealMatrix P, ConstReals w, ConstReals theta, Reals g) {
    const Index n = P.rows, l = P.columns;
    for (Index j = 0; j < l; ++j) g[j] = 0.0;
    double total = 0.0;
    for (Index i = 0; i < n; ++i) {
        const double v = dot(P[i], theta);
        total += w[i] * std::log(v);
        const double r = w[i] / v;
        for (Index j = 0; j < l; ++j) g[j] += r * P(i, j);
    }
    return total;
}

/// Write the gradient into `g` and *minus* the Hessian into `H`; return `l(theta)`.
inline double derivatives(ConstRealMatrix P, ConstReals w, ConstReals theta, Reals g, RealMatrix H) {
    const Index n = P.rows, l = P.columns;
    for (Index j = 0; j < l; ++j) {
        g[j] = 0.0;
        for (Index k = 0; k <= j; ++k) H(j, k) = 0.0;
    }
    double total = 0.0;
    for (Index i = 0; i < n; ++i) {
        const double v = dot(P[i], theta);
        total += w[i] * std::log(v);
        const double r = w[i] / v;
        for (Index j = 0; j < l; ++j) {
            double pj = P(i, j) * r;
            if (pj == 0.0) continue;
            g[j] += pj;
            pj /= v;
            for (Index k = 0; k <= j; ++k) H(j, k) += pj * P(i, k);
        }
    }
    for (Index j = 0; j < l; ++j)
        for (Index k = 0; k < j; ++k) H(k, j) = H(j, k);
    return total;
}

/// Compute the Cholesky factor of `A` in place (lower triangle); a zero pivot is replaced by a huge one.
inline void factor(RealMatrix A) {
    const Index l = A.rows;
    for (Index j = 0; j < l; ++j) {
        const double floor = 1e-14 * std::abs(A(j, j)) + 1e-300;
        const double square = less_products(A(j, j), &A(j, 0), 1, &A(j, 0), j);
        const double d = square > floor ? std::sqrt(square) : 1e64;
        A(j, j) = d;
        for (Index i = j + 1; i < l; ++i) A(i, j) = less_products(A(i, j), &A(i, 0), 1, &A(j, 0), j) / d;
    }
}

/// Solve `L L' x = b` in place of `b`.
inline void solve(ConstRealMatrix L, Reals b) {
    const Index l = L.rows;
    for (Index i = 0; i < l; ++i) b[i] = less_products(b[i], &L(i, 0), 1, b.data(), i) / L(i, i);
    for (Index i = l - 1; i >= 0; --i) {
        const double rest = i + 1 < l ? less_products(b[i], &L(i + 1, i), l, &b[i + 1], l - 1 - i) : b[i];
        b[i] = rest / L(i, i);
    }
}

/// Return the largest step `t <= 1 / TO_BOUNDARY` that keeps `x + t dx >= 0`.
inline double longest_step(ConstReals x, ConstReals dx) {
    double t = 1.0 / TO_BOUNDARY;
    for (Index j = 0; j < length(x); ++j)
        if (dx[j] < 0.0 && -x[j] > t * dx[j]) t = -x[j] / dx[j];
    return t;
}

/// Return the KKT excess `max_j g_j - 1` of a point of the simplex (theory §2.2); `g` receives `g_j`.
///
/// It is infinite where some `v_i` is 0: such a point is near no maximiser.
inline double kkt_excess(ConstRealMatrix P, ConstReals w, ConstReals theta, Reals g) {
    gradient(P, w, theta, g);
    const double W = sum_of(w);
    double worst = 0.0;
    for (Index j = 0; j < length(theta); ++j) {
        g[j] /= W;
        // where some v_i is 0: infinite for the classes that its label allows, NaN for the others
        if (!(g[j] < INFINITE)) return INFINITE;
        worst = std::max(worst, g[j] - 1.0);
    }
    return worst;
}

struct Maximum {
    std::vector<double> theta;
    double worst;  // its KKT excess
};

/// Remove the classes that are 0 at the optimum, then take plain Newton steps on the others while these improve.
inline Maximum polish(ConstRealMatrix P, ConstReals w, std::vector<double> theta, double worst) {
    const Index l = P.columns;
    const double W = sum_of(w);
    std::vector<double> g(l);
    kkt_excess(P, w, theta, g);
    std::vector<Index> keep;
    for (Index j = 0; j < l; ++j)
        if (theta[j] > 1.0 - g[j] || theta[j] > 1e-3) keep.push_back(j);
    const Index m = length(keep);
    std::vector<double> full_g(l), trial(l), step(m);
    OwnedMatrix<double> full_H(l, l), A(m, m);
    double total = 0.0;
    for (Index a = 0; a < m; ++a) total += theta[keep[a]];
    for (Index a = 0; a < m; ++a) trial[keep[a]] = theta[keep[a]] / total;
    for (int round = 0; round < 4; ++round) {
        const double e = kkt_excess(P, w, trial, g);
        if (e < worst || (e <= 1e-15 && worst <= 1e-15)) {
            worst = e;
            theta = trial;
        }
        derivatives(P, w, trial, full_g, full_H);
        for (Index a = 0; a < m; ++a) {
            step[a] = full_g[keep[a]] / W - 1.0;
            for (Index b = 0; b < m; ++b) A(a, b) = full_H(keep[a], keep[b]) / W;
        }
        factor(A);
        solve(A, step);
        total = 0.0;
        for (Index a = 0; a < m; ++a) {
            const double value = trial[keep[a]] + step[a];
            if (!(value > 0.0)) return {std::move(theta), worst};
            trial[keep[a]] = value;
            total += value;
        }
        for (Index a = 0; a < m; ++a) trial[keep[a]] /= total;
    }
    return {std::move(theta), worst};
}

/// Return the maximum evidential likelihood estimate and its KKT excess.
///
/// Solves `min_x -(1/W) l(x) + sum x, x >= 0`, whose solution sums to 1 by itself, and so needs no equality constraint
/// (Kim, Carbonetto, Stephens, Anitescu 2020). If the maximiser is not unique, the path leads to the middle of the set
/// of maximisers.
inline Maximum maximise(ConstRealMatrix P, ConstReals w) {
    const Index l = P.columns;
    const double W = sum_of(w);
    std::vector<double> x(l, 1.0 / l), z(l, 1.0), g(l), dx(l), dz(l), theta(l);
    std::vector<double> best = x;
    OwnedMatrix<double> H(l, l);
    double best_excess = kkt_excess(P, w, best, g);
    int stalled = 0;
    for (int round = 0; round < INTERIOR_STEPS; ++round) {
        derivatives(P, w, x, g, H);
        double mu = 0.0;
        for (Index j = 0; j < l; ++j) {
            g[j] /= W;
            mu += x[j] * z[j];
            for (Index k = 0; k < l; ++k) H(j, k) /= W;
        }
        mu /= l;
        for (Index j = 0; j < l; ++j) H(j, j) += z[j] / x[j];
        factor(H);
        for (Index j = 0; j < l; ++j) dx[j] = g[j] - 1.0;
        solve(H, dx);
        for (Index j = 0; j < l; ++j) dz[j] = -z[j] - z[j] * dx[j] / x[j];
        double tx = std::min(1.0, longest_step(x, dx));
        double tz = std::min(1.0, longest_step(z, dz));
        double affine = 0.0;
        for (Index j = 0; j < l; ++j) affine += (x[j] + tx * dx[j]) * (z[j] + tz * dz[j]);
        const double ratio = affine / l / mu;
        const double sigma = ratio * ratio * ratio;
        for (Index j = 0; j < l; ++j) {
            const double correction = sigma * mu - dx[j] * dz[j];
            dz[j] = correction;  // kept until the corrected dx is known
            dx[j] = g[j] - 1.0 + correction / x[j];
        }
        solve(H, dx);
        for (Index j = 0; j < l; ++j) dz[j] = -z[j] + (dz[j] - z[j] * dx[j]) / x[j];
        tx = std::min(1.0, TO_BOUNDARY * longest_step(x, dx));
        tz = std::min(1.0, TO_BOUNDARY * longest_step(z, dz));
        double total = 0.0;
        for (Index j = 0; j < l; ++j) {
            x[j] = std::max(x[j] + tx * dx[j], 1e-300);
            z[j] = std::max(z[j] + tz * dz[j], 1e-300);
            total += x[j];
        }
        for (Index j = 0; j < l; ++j) theta[j] = x[j] / total;
        const double e = kkt_excess(P, w, theta, g);
        if (e < best_excess) {
            stalled = e < 0.9 * best_excess ? 0 : stalled + 1;
            best_excess = e;
            copy(theta, best);
        } else {
            ++stalled;
        }
        if (best_excess <= 1e-15 || (stalled >= 3 && best_excess < 1e-9) || stalled >= 20) break;
    }
    return polish(P, w, std::move(best), best_excess);
}

}  // namespace quercus
