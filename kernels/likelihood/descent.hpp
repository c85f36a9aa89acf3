// Local minima of the entropy over a level set of the likelihood (theory §2.7).
//
// Notation as in `loglik.hpp`. Frank-Wolfe steps find the neighbourhood, Newton's method the minimum and its
// multiplier.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "cut.hpp"
#include "loglik.hpp"

namespace quercus {

/// Return the Shannon entropy in nats.
inline double entropy(ConstReals theta) {
    double total = 0.0;
    for (double t : theta)
        if (t > 0.0) total -= t * std::log(t);
    return total;
}

/// Write into `point` the last point of the level set on the ray from `inner`, a point of it, through `outer`.
///
/// Entropy is concave, so along the ray it is least at an end. The function also moves a guess that is slightly outside
/// the level set into it.
inline void to_boundary(ConstRealMatrix P, ConstReals w, double c, ConstReals inner, ConstReals outer, Reals point) {
    const Index n = P.rows, l = P.columns;
    double reach = 1e6, move = 0.0;
    double total = sum_of(outer);  // points are off the simplex by rounding, which a short ray would magnify
    std::vector<double> direction(l);
    for (Index j = 0; j < l; ++j) {
        const double d = outer[j] / total - inner[j];
        direction[j] = d;
        move = std::max(move, std::abs(d));
        if (d < 0.0) reach = std::min(reach, -inner[j] / d);
    }
    if (move < 1e-14) {
        copy(inner, point);
        return;
    }
    std::vector<double> here(n), slope(n);
    for (Index i = 0; i < n; ++i) {
        double v = 0.0, rise = 0.0;
        for (Index j = 0; j < l; ++j) {
            v += P(i, j) * inner[j];
            rise += P(i, j) * direction[j];
        }
        here[i] = v;
        slope[i] = rise;
    }
    double lo = 0.0, hi = reach, t = reach, back = 1e-15;
    for (int step = 0; step < 100;
         ++step) {  // Newton's method on a concave function, from the right; bisection if that fails
        double value = -c, rate = 0.0;
        for (Index i = 0; i < n; ++i) {
            const double v = here[i] + t * slope[i];
            if (v <= 0.0) {
                value = -INFINITE;
                break;
            }
            value += w[i] * std::log(v);
            rate += w[i] * slope[i] / v;
        }
        if (value >= 0.0) {
            lo = t;
            if (step == 0 || value <= 1e-12 * std::abs(c)) break;
        } else {
            hi = t;
        }
        if (hi - lo <= 2e-16 * hi) break;
        double next = value > -INFINITE && rate < 0.0 ? t - value / rate : hi;
        if (step == 0 && lo < 1.0 && 1.0 < hi) {
            next = 1.0;
        } else if (value < 0.0 && step > 8) {  // outside only by rounding: step back by the rounding error
            next = std::min(next, t * (1.0 - back));
            back *= 4.0;
        }
        t = lo < next && next < hi ? next : 0.5 * (lo + hi);
    }
    total = 0.0;
    for (Index j = 0; j < l; ++j) {
        point[j] = std::max(inner[j] + lo * direction[j], 0.0);
        total += point[j];
    }
    for (Index j = 0; j < l; ++j) point[j] /= total;
}

/// Solve `A x = y` in place of `y` by Gaussian elimination with partial pivoting; false if singular.
inline bool eliminate(RealMatrix A, Reals y) {
    const Index m = length(y);
    for (Index k = 0; k < m; ++k) {
        Index pivot = k;
        for (Index i = k + 1; i < m; ++i)
            if (std::abs(A(i, k)) > std::abs(A(pivot, k))) pivot = i;
        if (!(std::abs(A(pivot, k)) > 0.0)) return false;
        if (pivot != k) {
            for (Index j = 0; j < m; ++j) std::swap(A(k, j), A(pivot, j));
            std::swap(y[k], y[pivot]);
        }
        for (Index i = k + 1; i < m; ++i) {
            const double f = A(i, k) / A(k, k);
            if (f == 0.0) continue;
            for (Index j = k; j < m; ++j) A(i, j) -= f * A(k, j);
            y[i] -= f * y[k];
        }
    }
    for (Index k = m - 1; k >= 0; --k) {
        for (Index j = k + 1; j < m; ++j) y[k] -= A(k, j) * y[j];
        y[k] /= A(k, k);
    }
    return true;
}

/// Return the classes with enough probability to count as present.
inline std::vector<Index> present_classes(ConstReals theta) {
    std::vector<Index> keep;
    keep.reserve(theta.size());
    for (Index j = 0; j < length(theta); ++j)
        if (theta[j] > SUPPORT) keep.push_back(j);
    return keep;
}

/// Find a stationary point of the entropy on `l = c` near `x` by Newton's method, on the face of `x`.
///
/// Solves `-ln x_j - 1 - mu g_j = nu` for `x_j > 0`, `l(x) = c`, `sum x = 1`. Returns the multiplier `mu`: positive at
/// a minimum, from a positive start `mu`; negative at a maximum, from a negative start; 0, with `x` unchanged, if the
/// method fails.
inline double newton_stationary(ConstRealMatrix P, ConstReals w, double c, Reals x, double mu) {
    const Index l = length(x);
    const std::vector<Index> keep = present_classes(x);
    const Index m = length(keep);
    if (m < 2) return 0.0;
    std::vector<double> y(l), g(l), d(m + 2);
    OwnedMatrix<double> H(l, l), A(m + 2, m + 2);
    double total = 0.0;
    for (Index p : keep) {
        y[p] = x[p];
        total += x[p];
    }
    for (Index p : keep) y[p] /= total;
    double nu = 0.0;
    const double start = mu;
    double value = derivatives(P, w, y, g, H);
    for (Index p : keep) nu -= (std::log(y[p]) + 1.0 + mu * g[p]) / m;
    for (int step = 0; step < 12; ++step) {
        for (Index r = 0; r < m + 2; ++r)
            for (Index s = 0; s < m + 2; ++s) A(r, s) = 0.0;
        double error = 0.0;
        for (Index r = 0; r < m; ++r) {
            const Index p = keep[r];
            for (Index s = 0; s < m; ++s) A(r, s) = mu * H(p, keep[s]);
            A(r, r) -= 1.0 / y[p];
            A(r, m) = A(m, r) = -g[p];
            A(r, m + 1) = A(m + 1, r) = -1.0;
            d[r] = std::log(y[p]) + 1.0 + mu * g[p] + nu;
            error = std::max(error, std::abs(d[r]) * y[p]);
        }
        d[m] = value - c;
        d[m + 1] = 0.0;
        if (error < 1e-13 && std::abs(value - c) <= 1e-13 * std::abs(c) + 1e-16) break;
        if (!eliminate(A, d)) return 0.0;
        double t = 1.0;
        for (Index r = 0; r < m; ++r)
            if (d[r] < 0.0) t = std::min(t, -0.9 * y[keep[r]] / d[r]);
        if (!(t > 0.1)) return 0.0;
        total = 0.0;
        for (Index r = 0; r < m; ++r) {
            y[keep[r]] += t * d[r];
            total += y[keep[r]];
        }
        for (Index p : keep) y[p] /= total;
        mu += t * d[m];
        nu += t * d[m + 1];
        value = derivatives(P, w, y, g, H);
        if (step == 11) return 0.0;
    }
    if ((mu > 0.0) != (start > 0.0)) return 0.0;
    const double change = entropy(y) - entropy(x);
    if ((mu > 0.0 ? change : -change) > 1e-12) return 0.0;
    copy(y, x);
    return mu;
}

/// Return the multiplier that fits `-ln x_j - 1 = mu g_j + nu` best over the classes with `x_j > 0`.
inline double multiplier_at(ConstRealMatrix P, ConstReals w, ConstReals x) {
    const Index l = length(x);
    std::vector<double> g(l);
    gradient(P, w, x, g);
    Index m = 0;
    double mean_q = 0.0, mean_g = 0.0;
    for (Index j = 0; j < l; ++j) {
        if (!(x[j] > SUPPORT)) continue;
        ++m;
        mean_q -= std::log(x[j]);
        mean_g += g[j];
    }
    mean_q /= m;
    mean_g /= m;
    double both = 0.0, square = 0.0;
    for (Index j = 0; j < l; ++j) {
        if (!(x[j] > SUPPORT)) continue;
        both += (-std::log(x[j]) - mean_q) * (g[j] - mean_g);
        square += (g[j] - mean_g) * (g[j] - mean_g);
    }
    return square > 0.0 ? both / square : 0.0;
}

/// Guess a minimum of the entropy over a small level set in closed form; write it to `x`.
///
/// Near its maximiser `theta` the likelihood is almost quadratic and the level set almost an ellipsoid, over which the
/// minimiser of the entropy's tangent is explicit. This step is taken twice, and Newton's method follows
/// (`newton_stationary`). Returns the multiplier, 0 if the method fails.
inline double guess_minimum(ConstRealMatrix P, ConstReals w, double c, ConstReals theta, Reals x) {
    const Index l = length(theta);
    const std::vector<Index> keep = present_classes(theta);
    const Index m = length(keep);
    if (m < 2) return 0.0;
    std::vector<double> g(l), one(m, 1.0), d(m), guess(l);
    OwnedMatrix<double> H(l, l), A(m, m);
    derivatives(P, w, theta, g, H);
    for (Index r = 0; r < m; ++r)
        for (Index s = 0; s < m; ++s) A(r, s) = H(keep[r], keep[s]);
    factor(A);
    for (Index r = 0; r < m; ++r)
        if (A(r, r) > 1e60) return 0.0;
    solve(A, one);
    copy(theta, x);
    for (int round = 0; round < 2; ++round) {
        for (Index r = 0; r < m; ++r) d[r] = std::log(std::max(x[keep[r]], 1e-12));
        solve(A, d);
        const double nu = sum_of(d) / sum_of(one);
        double size = 0.0;
        for (Index r = 0; r < m; ++r) {
            d[r] -= nu * one[r];
            size += d[r] * std::log(std::max(x[keep[r]], 1e-12));
        }
        if (!(size > 0.0)) return 0.0;
        double scale = std::sqrt(-2.0 * c / size);
        for (Index r = 0; r < m; ++r)
            if (d[r] < 0.0) scale = std::min(scale, -0.98 * theta[keep[r]] / d[r]);
        std::fill(guess.begin(), guess.end(), 0.0);
        for (Index r = 0; r < m; ++r) guess[keep[r]] = theta[keep[r]] + scale * d[r];
        to_boundary(P, w, c, theta, guess, x);
    }
    const double mu = multiplier_at(P, w, x);
    return mu > 0.0 ? newton_stationary(P, w, c, x, mu) : 0.0;
}

struct Descent {
    double value;  // the entropy reached (nats)
    double multiplier;
};

/// Walk `theta` down to a local minimum of the entropy over the level set; return its value (nats) and multiplier.
///
/// Each step minimises the tangent of the entropy over the level set (Frank-Wolfe); since the entropy is concave, no
/// step increases it. Newton's method makes the last steps.
inline Descent descend(ConstRealMatrix P, ConstReals w, double c, double inner_c, ConstReals centre, Reals theta) {
    const Index l = length(theta);
    std::vector<double> q(l), guess(l), point(l);
    const std::vector<double> zeros(l, 0.0), ones(l, 1.0);
    double value = entropy(theta), multiplier = 0.0;
    for (int round = 0; round < 30; ++round) {
        for (Index j = 0; j < l; ++j) {
            q[j] = -std::log(std::max(theta[j], 1e-12));
            guess[j] = 0.9 * centre[j] + 0.1 / l;
        }
        multiplier = minimise_over_cut(P, w, c, q, zeros, ones, guess, INFINITE).multiplier;
        to_boundary(P, w, inner_c, centre, guess, point);
        const double reached = entropy(point);
        if (reached < value) copy(point, theta);
        const bool done = reached >= value - 1e-12;
        if (done || value - reached < 1e-2 * value) {
            const double mu = newton_stationary(P, w, inner_c, theta, multiplier);
            if (mu > 0.0) return {entropy(theta), mu};
        }
        value = std::min(value, reached);
        if (done) break;
    }
    return {value, multiplier};
}

}  // namespace quercus
