// The effect of rounding on a level set, and bounds of its entropy around that of the maximiser.
//
// Notation as in `loglik.hpp`. The derivations are in theory §2.8 and §2.13. `u = 2^-53` is the rounding of one
// operation.
//
// *Rounding.* The error of a term of the log-likelihood is at most `(4 l + 12) u` of its weight: `rounding`. The KKT
// excess is the difference from 1 of sums over all rows, whose `n` roundings could hide a level near 1; for such levels
// `sure_excess` also sums the rounding errors.
//
// *One ellipsoid.* With `d = t - theta` and `d' A d <= square`, `sum d = 0` of `ellipsoid`, both ends of the entropy
// are `H(theta) -+ sqrt(square q' M q)` up to terms of the second order, with `M` the inverse of `A` on the simplex and
// `q` the slopes of `h(t) = -t ln t`. No search is needed, and no likelihood is evaluated.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "descent.hpp"
#include "enclosure.hpp"
#include "loglik.hpp"

namespace quercus {

constexpr double ENTROPY_ROUNDING = 1e-14;  // nats; rounding of an entropy
constexpr double KNOWN_ENTROPY = 6.9e-7;    // nats (1e-6 bits); an entropy with a smaller error counts as known
constexpr double DEEP = 1e8;  // for a cut this many roundings of a plain sum below the maximum, a plain sum suffices

/// Return a bound of the effect of rounding on the log-likelihood of `l` classes, relative to the weight.
inline double rounding(Index l) { return (4.0 * l + 12.0) * UNIT_ROUNDOFF; }

/// Return a bound of the relative effect of rounding on a plainly summed gradient of the log-likelihood.
inline double plain_sums(Index n, Index l) { return (n + 2.0 * l + 8.0) * UNIT_ROUNDOFF; }

struct CompensatedSum {
    double total;
    double error;
};

/// Return a sum and its rounding error (Knuth).
inline CompensatedSum compensated_add(double total, double term) {
    const double result = total + term;
    const double taken = result - total;
    return {result, (total - (result - taken)) + (term - taken)};
}

/// Return an upper bound of the true KKT excess of `theta`, given the computed one, `worst`, at the level `c`.
inline double sure_excess(ConstRealMatrix P, ConstReals w, ConstReals theta, double worst, double c) {
    const Index n = P.rows, l = P.columns;
    const double W = sum_of(w);
    if (-c > DEEP * plain_sums(n, l) * W) return worst + plain_sums(n, l);
    std::vector<double> g(l), lost(l);
    double whole = 0.0, lost_weight = 0.0;
    for (Index i = 0; i < n; ++i) {
        const CompensatedSum weight = compensated_add(whole, w[i]);
        whole = weight.total;
        lost_weight += weight.error;
        const double v = dot(P[i], theta);
        for (Index j = 0; j < l; ++j) {
            const CompensatedSum sum = compensated_add(g[j], P(i, j) * (w[i] / v));
            g[j] = sum.total;
            lost[j] += sum.error;
        }
    }
    double top = 0.0;
    for (Index j = 0; j < l; ++j) top = std::max(top, ((g[j] - whole) + (lost[j] - lost_weight)) / W);
    return top + (l + 7.0) * UNIT_ROUNDOFF;
}

/// Return the amount, relative to the weight, by which the level of a bound must be lowered because of rounding.
///
/// Beside `rounding`, a tangent at `y` has the error of its gradient times `|t - y|`: at most 2, or the girth of a box
/// around the level set. `P theta` must be 1 in every row; `worst` is a `sure_excess`.
inline double level_error(ConstRealMatrix P, ConstReals w, ConstReals theta, double worst, double c) {
    const Index n = P.rows, l = P.columns;
    double span = 2.0;
    if (-c <= DEEP * plain_sums(n, l) * sum_of(w)) {
        std::vector<double> a(l), b(l), top(n);
        outer_box(P, w, c, theta, worst, a, b, top);
        double girth = 0.0;
        for (Index j = 0; j < l; ++j) girth += b[j] - a[j];
        span = std::min(span, girth);
    }
    return rounding(l) + plain_sums(n, l) * span;
}

struct TermRange {
    double least;
    double most;
};

/// Return the least and the greatest `-t ln t` over `[a, b]`.
inline TermRange entropy_term_range(double a, double b) {
    const double at_a = a > 0.0 ? -a * std::log(a) : 0.0;
    const double at_b = b > 0.0 ? -b * std::log(b) : 0.0;
    const double peak = std::exp(-1.0);
    return {std::min(at_a, at_b), a < peak && peak < b ? peak : std::max(at_a, at_b)};
}

struct EntropyError {
    double down;
    double up;
};

/// Return by how much the entropy (nats) where `l >= l(theta) - slack` may be below and above that of `theta`.
///
/// `P theta` must be 1 in every row, and `slack` must include the distance of `theta` from the maximum.
inline EntropyError entropy_error(ConstRealMatrix P, ConstReals w, ConstReals theta, double slack) {
    const Index n = P.rows, l = P.columns;
    std::vector<double> a(l), b(l), top(n);
    OwnedMatrix<double> A(l, l);
    outer_box(P, w, -slack, theta, 0.0, a, b, top);
    double down = ENTROPY_ROUNDING, up = ENTROPY_ROUNDING;
    for (Index j = 0; j < l; ++j) {  // bounds from the box
        const double here = entropy_term_range(theta[j], theta[j]).least;
        const auto [least, most] = entropy_term_range(a[j], b[j]);
        down += here - least;
        up += most - here;
    }
    std::vector<double> first_a(l), first_b(l);
    const double square = ellipsoid(P, w, -slack, theta, 0.0, first_a, first_b, top, A);
    double weight = 0.0, nu = 0.0;
    for (Index j = 0; j < l; ++j) {
        if (a[j] > 0.5 * theta[j]) {
            weight += theta[j];
            nu -= theta[j] * (std::log(theta[j]) + 1.0);
        }
    }
    if (square < 0.0 || weight == 0.0) return {down, up};
    nu /= weight;
    std::vector<double> q(l);
    double low = ENTROPY_ROUNDING, high = ENTROPY_ROUNDING;
    for (Index j = 0; j < l; ++j) {
        const double side = std::max(theta[j] - a[j], b[j] - theta[j]);
        if (a[j] > 0.5 * theta[j]) {
            q[j] = -std::log(theta[j]) - 1.0 - nu;
            low += side * side / (2.0 * a[j]);
        } else {
            const double here = entropy_term_range(theta[j], theta[j]).least;
            const auto [least, most] = entropy_term_range(a[j], b[j]);
            low += here - least + std::abs(nu) * side;
            high += most - here + std::abs(nu) * side;
        }
    }
    std::vector<double> z = q, one(l, 1.0);
    solve(A, z);
    solve(A, one);
    const double share = sum_of(z) / sum_of(one);
    double square_length = 0.0;
    for (Index j = 0; j < l; ++j) square_length += q[j] * (z[j] - share * one[j]);
    const double reach = std::sqrt(square * std::max(square_length, 0.0)) * (1.0 + 1e-6);
    return {std::min(down, low + reach), std::min(up, high + reach)};
}

/// Write the ends, as `solve_problem`, at a level `c` that rounding hides.
///
/// `l(theta)` may be `shortfall` below the maximum. The cut certainly contains the true maximiser, but maybe not
/// `theta`: the entropy of the maximiser counts as reached, as far as it is known.
inline void near_ends(ConstRealMatrix P, ConstReals w, double c, double shortfall, ConstReals theta, Reals ends) {
    const double here = entropy(theta);
    auto [down, up] = entropy_error(P, w, theta, shortfall - c);
    ends[0] = std::max(here - down, 0.0);
    ends[3] = std::min(here + up, std::log(theta.size()));
    if (c == 0.0 && std::max(down, up) <= KNOWN_ENTROPY) {
        down = up = 0.0;
    } else if (c < 0.0) {
        const EntropyError of_maximiser = entropy_error(P, w, theta, shortfall);
        down = of_maximiser.down;
        up = of_maximiser.up;
    }
    ends[1] = here + up;
    ends[2] = here - down;
}

/// Return `entropy_error` by the box alone, considering only its sides narrower than `widest`.
///
/// If the maximiser is not unique, the box is wide in the free directions, which the caller must handle.
inline double box_entropy_error(ConstRealMatrix P, ConstReals w, ConstReals theta, double slack, double widest) {
    const Index l = length(theta);
    std::vector<double> a(l), b(l), top(P.rows);
    outer_box(P, w, -slack, theta, 0.0, a, b, top);
    double total = 0.0;
    for (Index j = 0; j < l; ++j) {
        if (b[j] - a[j] < widest) {
            const double here = entropy_term_range(theta[j], theta[j]).least;
            const auto [least, most] = entropy_term_range(a[j], b[j]);
            total += std::max(most - here, here - least);
        }
    }
    return total;
}

}  // namespace quercus
