// How much of the entropy's curvature an underestimator in a box keeps (theory §2.6).
//
// Notation as in `boxes.hpp`: `f_j` is the curvature that the underestimator of `h(t) = -t ln t` keeps for class `j`.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "loglik.hpp"

namespace quercus {

constexpr double CUT_BELOW = 0.5;     // of the way from the side of a box to a minimum: where to cut below it
constexpr double NEAR_MINIMUM = 0.8;  // part of a minimum; a side above it needs hardly more curvature than one at 1
constexpr double LEAST_CONCESSION = 1e-2;  // least part tried of the concession that is certainly enough
constexpr int HALVINGS = 5;                // number of bisections (of ratios) between that part and the whole
constexpr int NEWTON = 30;                 // maximum number of Newton's steps to where a line touches; 3 to 5 are usual
constexpr double STEEPEST =
    4.0;  // over b_j: greatest curvature wanted away from a local minimum; touches h at half of [0, b_j]

/// Return the least `f` for which `h(t) + f (t - y)^2 / 2` is above its tangent at `y` for all `t >= a`.
///
/// With `a <= y` it is `2 (a ln(a / y) + y - a) / (y - a)^2`, rounded up: between `1 / y` (a near y) and `2 / y`
/// (`a = 0`).
inline double least_curvature(double y, double a) {
    if (a <= 0.0) return 2.0 / y;
    const double d = (y - a) / y;
    if (d <= 1e-3) return (1.0 + 0.34 * d) / y;  // the series is 1 + d / 3 + d^2 / 6 + ...
    return 2.0 * (1.0 + 1e-9) * (a * std::log(a / y) + y - a) / ((y - a) * (y - a));
}

struct Envelope {
    double value;
    double slope;
};

/// Return value and slope at `y` of the convex envelope of `h(t) + f (t - y)^2 / 2` on `[a, b]`.
inline Envelope envelope(double f, double y, double a, double b) {
    const double here = y > 0.0 ? -y * std::log(y) : 0.0;
    if (y > 0.0 && f >= least_curvature(y, std::min(a, y))) return {here, -std::log(y) - 1.0};
    double t = b;  // where the line from a touches
    if (f * b > 1.0) {
        t = std::min(b, 2.0 / f);
        if (a > 0.0) {  // right of 1 / f the excess is concave and falls: Newton's steps from the right stay there
            for (int round = 0; round < NEWTON; ++round) {
                const double excess = 2.0 * (a * std::log(a / t) + t - a) - f * (t - a) * (t - a);
                const double step = excess / (2.0 * (t - a) * (1.0 / t - f));
                if (!(step > 1e-7 * t)) break;
                t -= step;
            }
        }
    }
    const double at_a = (a > 0.0 ? -a * std::log(a) : 0.0) + 0.5 * f * (a - y) * (a - y);
    const double at_t = -t * std::log(t) + 0.5 * f * (t - y) * (t - y);
    const double slope = (at_t - at_a) / (t - a);
    return {std::min(at_a + slope * (y - a) - 1e-13, here), slope};
}

/// Return whether `M - diag(f)` is positive definite for `sum d = 0` (lower triangle; `A` is working space).
inline bool is_convex(ConstRealMatrix M, ConstReals f, RealMatrix A) {
    const Index l = length(f);
    double free = 0.0;  // on the simplex, adding a multiple of 11' changes nothing
    for (Index j = 0; j < l; ++j) free = std::max(std::max(free, M(j, j)), std::abs(f[j]));
    for (Index j = 0; j < l; ++j) {
        for (Index k = 0; k <= j; ++k) A(j, k) = M(j, k) + 10.0 * free;
        double pivot = A(j, j) - f[j];
        for (Index k = 0; k < j; ++k) {
            A(j, k) = less_products(A(j, k), &A(j, 0), 1, &A(k, 0), k) / A(k, k);
            pivot -= A(j, k) * A(j, k);
        }
        A(j, j) = pivot;
        if (pivot <= 1e-9 * free) return false;
        A(j, j) = std::sqrt(pivot);
    }
    return true;
}

/// Write `e_j - tau / (b_j - a_j)^2` into `f`, but no less than 0 if `e_j` is above 0.
///
/// Every class then loses the same amount against `e` over its side of the box.
inline void give_way(ConstReals e, double tau, ConstReals a, ConstReals b, Reals f) {
    for (Index j = 0; j < length(e); ++j) {
        const double width = b[j] - a[j];
        f[j] = std::max(e[j] - tau / (width * width), std::min(e[j], 0.0));
    }
}

/// Write into `f` the curvatures nearest to the wanted `e` that `M` can afford; return the concession.
///
/// The concession is 0 if `M - diag(e)` is convex. Else it is the least sufficient `tau` of `give_way`, found by
/// bisection, or infinity if that exceeds `most` or if no concession is allowed (`exact`).
inline double affordable_curvature(ConstRealMatrix M, ConstReals e, ConstReals a, ConstReals b, bool exact, double most,
                                   Reals f, RealMatrix A) {
    const Index l = length(e);
    if (most < INFINITE && !exact) {
        give_way(e, most, a, b, f);
        if (!is_convex(M, f, A)) return INFINITE;
    }
    copy(e, f);
    if (is_convex(M, f, A)) return 0.0;
    if (exact) return INFINITE;
    double high = 0.0;
    for (Index j = 0; j < l; ++j) high = std::max(high, 1.01 * e[j] * (b[j] - a[j]) * (b[j] - a[j]));
    high = std::min(high, most);
    double low = LEAST_CONCESSION * high;
    for (int round = 0; round < HALVINGS; ++round) {
        const double middle = std::sqrt(low * high);
        give_way(e, middle, a, b, f);
        if (is_convex(M, f, A)) high = middle;
        else low = middle;
    }
    give_way(e, high, a, b, f);
    return high;
}

/// Write into `e` the curvatures with which the envelopes touch at `y`, or nearly.
///
/// At a local minimum (`exact`) a class without probability needs what makes the slope of its envelope at 0 no less
/// than the common slope of the others, `h(t) + e t^2 / 2 >= slope t` on `[0, b]`.
inline void wanted_curvature(ConstReals y, ConstReals a, ConstReals b, double mu, ConstReals g, bool exact, Reals e) {
    const Index l = length(y);
    double slope = 0.0;
    for (Index j = 0; j < l; ++j)
        if (y[j] > 0.0) slope -= (std::log(y[j]) + 1.0 + mu * g[j]) * y[j];
    for (Index j = 0; j < l; ++j) {
        if (y[j] > 0.0) {
            e[j] = least_curvature(y[j], std::min(a[j], y[j]));
        } else {
            const double rise = slope + mu * g[j] + std::log(b[j]);
            e[j] = 2.0 / b[j] * (rise <= 1.0 ? rise : std::exp(std::min(rise, 50.0) - 1.0));
        }
        if (!exact) e[j] = std::min(e[j], STEEPEST / b[j]);
    }
}

struct Concession {
    double tau;  // the concession, see `affordable_curvature`; infinity if one is necessary but not possible
    double phi;
    double kappa;
};

/// Choose `phi` and `kappa`: write the curvature before `diag(f)` into `M`, and `f` (see `quadratic.hpp`).
///
/// `width` is `s_hi - s_lo`; `exact` as in `affordable_curvature`.
inline Concession choose_curvature(double mu, ConstRealMatrix K, ConstReals gx, double width, ConstReals e,
                                   ConstReals a, ConstReals b, bool exact, RealMatrix M, Reals f, RealMatrix A) {
    const Index l = length(e);
    Concession best{INFINITE, 0.0, 0.0};
    OwnedMatrix<double> T(l, l);
    std::vector<double> trial_f(l);
    for (const double trial : {0.0, 0.4, 0.1, 0.02, 0.8}) {
        if (trial > 0.0 && !(width > 1e-300)) break;
        const double push = trial > 0.0 ? 2.0 * trial * mu / width : 0.0;
        for (Index j = 0; j < l; ++j)
            for (Index k = 0; k <= j; ++k) T(j, k) = (1.0 - trial) * mu * K(j, k) + push * gx[j] * gx[k];
        const double tau = affordable_curvature(T, e, a, b, exact, 0.95 * best.tau, trial_f, A);
        if (tau <= 0.95 * best.tau) {
            best = {tau, trial, 0.5 * push};
            copy(trial_f, f);
            for (Index j = 0; j < l; ++j) copy(T[j], M[j]);
        }
        if (best.tau == 0.0) break;
    }
    return best;
}

/// Return the class at which to cut the box below its probability in `y`; -1 for none.
///
/// This applies if it suffices that the envelopes touch near the local minimum `y`, which `M` allows: in the direction
/// `v` in which `M - diag(e)` is least convex one class needs too much curvature, because its side reaches too far
/// down.
inline Index cut_below(ConstRealMatrix M, ConstReals e, ConstReals y, ConstReals a, ConstReals b, Reals f, RealMatrix A,
                       Reals v) {
    const Index l = length(e);
    affordable_curvature(M, e, a, b, false, INFINITE, f, A);
    is_convex(M, f, A);
    for (Index j = 0; j < l; ++j) v[j] = (b[j] - a[j]) * (j % 2 == 0 ? 1.0 : -1.0);
    for (int round = 0; round < 3; ++round) {
        double size = 0.0;
        solve(A, v);
        for (Index j = 0; j < l; ++j) size += std::abs(v[j]);
        for (Index j = 0; j < l; ++j) v[j] /= size;
    }
    Index worst = -1;
    double most = 0.0;
    for (Index j = 0; j < l; ++j) {
        if (y[j] > 0.0 && a[j] < NEAR_MINIMUM * y[j] && (e[j] - 1.0 / y[j]) * v[j] * v[j] > most) {
            most = (e[j] - 1.0 / y[j]) * v[j] * v[j];
            worst = j;
        }
    }
    return worst;
}

/// Return the point at which to cut `[a, b]` around a minimum at `x`: near 0, curvature depends on ratios.
inline double cut_at(double a, double b, double x) {
    if (x > 0.0 && b > 3.0 * x && b - x >= x - a) return std::max(std::sqrt(x * b), 1.5 * x);
    return x - a >= b - x ? 0.5 * (a + x) : 0.5 * (x + b);
}

/// Return the coordinate whose entropy term loosens the bound most: wanted curvature times squared width.
inline Index widest_loss(ConstReals f, ConstReals a, ConstReals b) {
    const auto loss = [&](Index j) { return f[j] * ((b[j] - a[j]) * (b[j] - a[j])); };
    Index worst = 0;
    for (Index j = 0; j < length(f); ++j)
        if (loss(j) > loss(worst)) worst = j;
    return worst;
}

}  // namespace quercus
