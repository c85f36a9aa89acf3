// Entropy over the likelihood cut of precise labels, for any number of classes (theory §2.9).
//
// With counts `n_1 >= n_2 >= ... > 0` of `N` labels the likelihood separates, `l(theta) = sum_j n_j ln theta_j`. All
// candidates for an end lie on a curve of one parameter, of the form `theta_j = (n_j / s_j) / Z`.
//
// *Least entropy.* At a minimum the constraint is active and `-ln theta_j - mu n_j / theta_j` is the same for all
// classes; with `s_j = mu n_j / theta_j` that says `s_j - ln s_j = K - ln n_j`, which has one root on each side of 1.
// The Hessian of the Lagrangian is diagonal with the signs of `s_j - 1`, so a minimum has at most two classes with
// `s_j < 1`; exchanging classes shows that the order of `theta` is that of the counts, and that leaves one at most, the
// first. So the curve is
//
//     `t = s_1 in (0, inf),  K = t - ln t + ln n_1,  s_j >= 1 for j > 1`,
//
// and along it `dH = mu dl` with `mu = 1 / Z`, which rises with `t`. From its maximum at `t = inf` the likelihood falls
// as `t` falls to 1, so there `l = c` has at most one root. The rest of the curve, towards the vertex, has
// `theta_1 >= theta_1(1)`. Mostly the profile likelihood of `theta_1` shows that the cut contains no such point; for
// small counts and ties it does not, and `vertex.hpp` is used.
//
// *Greatest entropy.* The same with the opposite sign of the multiplier `lambda`: `s_j + ln s_j = kappa + ln n_j`,
// where classes without labels have `theta_j = exp(-kappa) / Z`, `lambda = 1 / Z`. The point of the curve maximises the
// Lagrangian `H + lambda l` over the simplex, so `H + lambda (l - c)` is an upper bound wherever it is taken.
//
// Far out both curves are straight in `1 / sqrt(-l)`, so Newton's method is applied to this.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "loglik.hpp"
#include "roots.hpp"
#include "vertex.hpp"

namespace quercus {

constexpr int CURVE_STEPS = 100;  // maximum number of evaluations of a curve; 3 to 6 are usual
constexpr double LOG_ROUNDING =
    2.3e-16;  // of one logarithm of the likelihood, times k + 4 for k classes; part of its weight
constexpr double SHARP_PRECISE = 32.0;  // rounding errors; the curves are not used for a level nearer to the maximum
constexpr double FLATTEST = -40.0;      // kappa at which the point is uniform to the last digit

/// A place on either curve.
struct Place {
    double value;  // l - l(n / N)
    double slope;  // derivative of `value` in the parameter of the curve
    double Z;
};

/// Write `s` of the curve of least entropy at `t`. `logs` are the logarithms of `n`.
inline Place low_point(ConstReals n, ConstReals logs, double N, double t, Reals s) {
    const double k = t - std::log(t) + logs[0];
    s[0] = t;
    double Z = n[0] / t;
    double rates = -n[0] / t;
    double pull = Z / t;
    for (Index j = 1; j < length(n); ++j) {
        const double root = n[j] == n[0] && t >= 1.0 ? t : upper_root(k - logs[j]);
        s[j] = root;
        const double y = n[j] / root;
        const double rate = root != t && root > 1.0 ? (t - 1.0) / (t * (root - 1.0)) : 1.0 / t;
        Z += y;
        rates -= n[j] * rate;
        pull += y * rate;
    }
    double value = 0.0;
    for (Index j = 0; j < length(n); ++j) value += n[j] * std::log(N / (s[j] * Z));
    return {value, rates + N * pull / Z, Z};
}

/// Write `s` of the curve of greatest entropy, as `low_point` for least entropy; `free` classes have no label.
inline Place high_point(ConstReals n, ConstReals logs, double N, Index free, double kappa, Reals s) {
    const double empty = free > 0 ? free * std::exp(-kappa) : 0.0;
    double Z = empty;
    double rates = 0.0;
    double pull = empty;
    for (Index j = 0; j < length(n); ++j) {
        const double root = product_root(kappa + logs[j]);
        s[j] = root;
        const double y = n[j] / root;
        const double rate = 1.0 / (1.0 + root);
        Z += y;
        rates -= n[j] * rate;
        pull += y * rate;
    }
    double value = 0.0;
    for (Index j = 0; j < length(n); ++j) value += n[j] * std::log(N / (s[j] * Z));
    return {value, rates + N * pull / Z, Z};
}

/// Return the entropy of the classes with labels at a point of either curve, in nats.
inline double entropy_at(ConstReals n, ConstReals s, double Z) {
    double total = 0.0;
    for (Index j = 0; j < length(n); ++j) {
        const double theta = n[j] / (s[j] * Z);
        total -= theta * std::log(theta);
    }
    return total;
}

struct Distance {
    double s;     // a guess of the mean `s` for `l = c`, by the curvature of `l` at its maximum
    double mean;  // log
};

inline Distance distance(ConstReals n, ConstReals logs, double N, double c) {
    double mean = 0.0;
    for (Index j = 0; j < length(n); ++j) mean += n[j] * logs[j];
    mean /= N;
    double square = 0.0;
    for (Index j = 0; j < length(n); ++j) square += n[j] * ((logs[j] - mean) * (logs[j] - mean));
    return {std::sqrt(square / (-2.0 * c)), mean};
}

/// Take Newton's step towards `l(x) = aim` in `1 / sqrt(-l)`, within the bracket of points known to be below and above.
inline double next_place(double x, double value, double slope, double aim, double lo, double hi) {
    double next = std::numeric_limits<double>::quiet_NaN();
    if (value < 0.0 && slope > 0.0) {
        const double q = -value;
        next = x + 2.0 * q / slope * (std::sqrt(q / -aim) - 1.0);
    }
    if (!(lo < next && next < hi)) next = hi < INFINITE ? 0.5 * (lo + hi) : 2.0 * std::max(x, 1.0);
    return next;
}

/// Write the logarithms of `n`; return the sum of `n ln n`.
inline double take_logs(ConstReals n, Reals logs) {
    double total = 0.0;
    for (Index j = 0; j < length(n); ++j) {
        logs[j] = std::log(n[j]);
        total += n[j] * logs[j];
    }
    return total;
}

/// Return the least entropy over `{l(theta) >= l(n/N) + c}`, in nats.
///
/// Parameters
/// ----------
/// n : (l,) positive counts in falling order, l >= 2
/// c, inner_c : levels for the bound and for the reached point, below 0
/// tolerance : nats
/// most : evaluations of the curve; with few of them the bound is valid but the reached value may be the start
inline EntropyEnd least_entropy_of_counts(ConstReals n, double c, double inner_c, double tolerance, int most) {
    const double N = sum_of(n);
    if (length(n) == 2)  // the cut is an interval, whose end on the side of the greater count is farther from 1/2
        return {binary_entropy(class_end(n[0], N, c)), binary_entropy(class_end(n[0], N, inner_c))};
    std::vector<double> s(n.size()), logs(n.size());
    double reached = std::log(N) - take_logs(n, logs) / N;
    double bound = reached;
    const Place one = low_point(n, logs, N, 1.0, s);
    if (one.value < inner_c) {
        double lo = 1.0, hi = INFINITE;
        bound = -INFINITE;
        const auto [mean_s, mean] = distance(n, logs, N, inner_c);
        double t = std::max(mean_s + mean - logs[0], 1.0 + 0.1 * mean_s);
        for (int step = 0; step < most; ++step) {
            const auto [value, slope, Z] = low_point(n, logs, N, t, s);
            const double here = entropy_at(n, s, Z);
            bound = std::max(bound, here + (c - value) / Z);  // dH = mu dl, and mu rises with t
            if (value >= inner_c) {
                reached = std::min(reached, here);
                hi = t;
            } else {
                lo = t;
            }
            if (reached - bound <= tolerance || hi - lo <= 4e-16 * lo) break;
            t = next_place(t, value, slope, inner_c + 0.4 * tolerance * Z, lo, hi);
        }
    }
    const double first = n[0] / one.Z;
    const double rest = N - n[0];
    const double profile = n[0] * std::log(first * (N / n[0])) + rest * std::log((1.0 - first) * (N / rest));
    EntropyEnd end{bound, reached};
    if (!(first > n[0] / N && profile < c)) end = bound_beyond(n, logs, c, inner_c, tolerance, end, most);
    return {std::max(std::min(end.bound, end.reached), 0.0), end.reached};
}

/// Return the greatest entropy over `{l(theta) >= l(n/N) + c}`, in nats.
///
/// Parameters
/// ----------
/// n : (l,) positive counts, l >= 1
/// free : number of further classes, without labels
/// c, inner_c, tolerance, most : see `least_entropy_of_counts`
inline EntropyEnd greatest_entropy_of_counts(ConstReals n, Index free, double c, double inner_c, double tolerance,
                                             int most) {
    const Index l = length(n);
    const double N = sum_of(n);
    const double top = std::log(static_cast<double>(l + free));
    std::vector<double> logs(l);
    const double spread = take_logs(n, logs);
    const double flat = N * std::log(N) - spread - N * top;  // l of the uniform point
    double reached = std::log(N) - spread / N;
    if (flat >= inner_c) return {top, top};
    if (l == 1) {
        const double outer = std::exp(c / N), inner = std::exp(inner_c / N);
        const double scale = std::log(static_cast<double>(free));
        return {std::min(binary_entropy(outer) + (1.0 - outer) * scale, top),
                binary_entropy(inner) + (1.0 - inner) * scale};
    }
    std::vector<double> s(l);
    double lo = FLATTEST, hi = INFINITE;
    double bound = top;
    auto [mean_s, mean] = distance(n, logs, N, inner_c);
    mean_s = std::max(mean_s, 0.1);
    double kappa = std::max(mean_s + std::log(mean_s) - mean, lo);
    for (int step = 0; step < most; ++step) {
        const auto [value, slope, Z] = high_point(n, logs, N, free, kappa, s);
        double here = entropy_at(n, s, Z);
        if (free > 0) {
            const double theta = std::exp(-kappa) / Z;
            here += free * theta * (kappa + std::log(Z));
        }
        bound = std::min(bound, here + (value - c) / Z);
        if (value >= inner_c) {
            reached = std::max(reached, here);
            hi = kappa;
        } else {
            lo = kappa;
        }
        if (bound - reached <= tolerance || hi - lo <= 4e-16 * std::max(std::abs(lo), 1.0)) break;
        kappa = next_place(kappa, value, slope, inner_c + 0.4 * tolerance * Z, lo, hi);
    }
    return {std::max(bound, reached), reached};
}

}  // namespace quercus
