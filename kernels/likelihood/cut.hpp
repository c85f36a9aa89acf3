// Proven bounds of linear functions and of the entropy over a level set of the likelihood (theory §2.4).
//
// Notation as in `loglik.hpp`. `linear_bound` and `entropy_bound` are weak duality: valid for any guess (theta,
// multiplier). `minimise_over_cut` is the primal-dual interior-point method that makes good guesses.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "loglik.hpp"

namespace quercus {

constexpr double KAPPA = 10.0;  // the barrier problem counts as solved when its error is below KAPPA mu
constexpr double SHRINK = 0.1;  // factor by which mu falls when that is so

/// Return the minimum of `q . t` over simplex and box (a fractional knapsack); infinity if they are disjoint.
inline double least_linear(ConstReals q, ConstReals a, ConstReals b) {
    const Index l = length(q);
    double left = 1.0, total = 0.0;
    for (Index j = 0; j < l; ++j) {
        total += q[j] * a[j];
        left -= a[j];
    }
    if (left < -1e-12) return INFINITE;
    std::vector<uint8_t> used(l);
    for (Index round = 0; round < l; ++round) {
        if (left <= 0.0) break;
        Index cheapest = -1;
        for (Index j = 0; j < l; ++j)
            if (!used[j] && (cheapest < 0 || q[j] < q[cheapest])) cheapest = j;
        used[cheapest] = true;
        const double amount = std::min(left, b[cheapest] - a[cheapest]);
        total += q[cheapest] * amount;
        left -= amount;
    }
    return left <= 1e-12 ? total : INFINITE;
}

/// Return a proven lower bound of `q . theta` over the level set within the box `a <= theta <= b`.
///
/// Weak duality with the tangent of the concave `l` at the guess: for every `lambda >= 0` the minimum is at least
/// `min over simplex and box of (q - lambda g) . t + lambda (c - l(theta) + g . theta)`.
inline double linear_bound(ConstRealMatrix P, ConstReals w, double c, ConstReals q, ConstReals a, ConstReals b,
                           ConstReals theta, double multiplier) {
    const Index l = length(q);
    std::vector<double> g(l);
    double bound = c - gradient(P, w, theta, g);
    for (Index j = 0; j < l; ++j) {
        bound += g[j] * theta[j];
        g[j] = q[j] - multiplier * g[j];
    }
    return least_linear(g, a, b) + multiplier * bound;
}

/// Return a proven upper bound (nats) of the entropy over the level set, from a guess (theta, multiplier).
///
/// See `linear_bound`; the inner maximum of entropy plus a linear function over the simplex is a log-sum-exp.
inline double entropy_bound(ConstRealMatrix P, ConstReals w, double c, ConstReals theta, double multiplier) {
    const Index l = length(theta);
    std::vector<double> g(l);
    const double value = gradient(P, w, theta, g);
    double top = -INFINITE, inner = 0.0;
    for (Index j = 0; j < l; ++j) {
        inner += g[j] * theta[j];
        top = std::max(top, multiplier * g[j]);
    }
    double total = 0.0;
    for (Index j = 0; j < l; ++j) total += std::exp(multiplier * g[j] - top);
    return top + std::log(total) + multiplier * (value - inner - c);
}

/// Return a proven upper bound of `l` over simplex and box: its tangent at `theta` (gradient `g`, `value`).
inline double likelihood_bound(ConstReals g, double value, ConstReals theta, ConstReals a, ConstReals b) {
    std::vector<double> falling(theta.size());
    for (Index j = 0; j < length(theta); ++j) {
        value -= g[j] * theta[j];
        falling[j] = -g[j];
    }
    return value - least_linear(falling, a, b);
}

struct CutMinimum {
    double bound;       // the best proven lower bound (without costs: minus the bound of the entropy); plus infinity
                        // if the box is proved not to meet the level set
    double multiplier;  // Lagrange multiplier of the likelihood constraint
};

/// Guess the minimiser of `q . theta` (or of `sum theta ln theta`) over the level set within a box.
///
/// Until the iterate is strictly inside the level set, the steps increase `l` (phase 1). From then on they keep
/// `slack = l(theta) - c` positive, which for a concave `l` makes the method converge reliably.
///
/// - `P`, `w`, `c`: the level set `l(theta) >= c`
/// - `q`: (l,) costs; empty: minimise the negative entropy instead; the box must then be `[0, 1]`
/// - `a`, `b`: (l,) bounds of the box; `a < b`, and the simplex must meet its interior
/// - `theta`: (l,) start, strictly inside box and simplex; receives the guess
/// - `enough`: stop as soon as the proven bound exceeds this (linear costs only)
inline CutMinimum minimise_over_cut(ConstRealMatrix P, ConstReals w, double c, ConstReals q, ConstReals a, ConstReals b,
                                    Reals theta, double enough) {
    const Index l = P.columns;
    const bool entropic = q.empty();
    std::vector<double> g(l), zl(l), zu(l), dzl(l), dzu(l), f1(l), d(l), one(l), ug(l), trial(l);
    OwnedMatrix<double> H(l, l), M(l, l);
    std::vector<uint8_t> boxed(l);
    std::vector<double> best_theta(theta.begin(), theta.end());
    double best = -INFINITE, best_objective = INFINITE, best_multiplier = 0.0;
    double scale = 1.0;
    if (!entropic) {
        double least = q[0], most = q[0];
        for (Index j = 0; j < l; ++j) {
            least = std::min(least, q[j]);
            most = std::max(most, q[j]);
        }
        scale = std::max(most - least, 1e-12);
    }
    for (Index j = 0; j < l; ++j) boxed[j] = b[j] < 1.0;
    double value = derivatives(P, w, theta, g, H);
    bool inside = false, fresh = true;
    int climbed = 0, since = 0;
    double mu = 0.0, nu = 0.0, multiplier = 1.0, slack = 1.0;
    for (int round = 0; round < INTERIOR_STEPS; ++round) {
        if (!inside) {
            const double ceiling = likelihood_bound(g, value, theta, a, b);
            if (ceiling < c) return {INFINITE, 0.0};
            ++climbed;
            if (value > c && (value - c > 0.3 * (ceiling - c) || climbed > 30)) {
                inside = true;
                fresh = true;
                slack = value - c;
            }
        }
        if (fresh) {
            mu = (inside ? 0.1 * scale : std::max(0.1, 0.1 * std::abs(value - c))) / l;
            multiplier = inside ? mu / slack : 1.0;
            for (Index j = 0; j < l; ++j) {
                zl[j] = mu / (theta[j] - a[j]);
                if (boxed[j]) zu[j] = mu / (b[j] - theta[j]);
            }
            fresh = false;
        }
        if (inside) {
            double objective = 0.0;
            for (Index j = 0; j < l; ++j) objective += theta[j] * (entropic ? std::log(theta[j]) : q[j]);
            if (objective < best_objective) {
                best_objective = objective;
                copy(theta, best_theta);
            }
            const double bound = entropic ? -entropy_bound(P, w, c, theta, multiplier)
                                          : linear_bound(P, w, c, q, a, b, theta, multiplier);
            since = bound > best + 1e-13 * scale ? 0 : since + 1;
            if (bound > best) {
                best = bound;
                best_multiplier = multiplier;
            }
            if (best >= enough || best_objective - best < 1e-12 * scale || (since >= 4 && mu < 1e-9 * scale)) break;
        }
        // error of the barrier problem with the present mu; mu falls only once the iterate is close to its solution
        for (int fall = 0; fall < 20; ++fall) {
            double error = inside ? std::abs(multiplier * slack - mu) : 0.0;
            for (Index j = 0; j < l; ++j) {
                f1[j] = -multiplier * g[j];
                if (inside) f1[j] += entropic ? std::log(theta[j]) + 1.0 : q[j];
                const double residual = std::abs(f1[j] - zl[j] + zu[j] - nu) * (theta[j] - a[j]);
                error = std::max(std::max(error, residual), std::abs(zl[j] * (theta[j] - a[j]) - mu));
                if (boxed[j]) error = std::max(error, std::abs(zu[j] * (b[j] - theta[j]) - mu));
            }
            if (error > KAPPA * mu || mu <= 1e-15 * scale) break;
            mu *= SHRINK;
        }
        // Newton step on the perturbed optimality conditions:
        // M d = r + g dm + nu,  sum d = 0,  g.d + slack/multiplier dm = mu/multiplier - slack
        for (Index j = 0; j < l; ++j) {
            for (Index k = 0; k < l; ++k) M(j, k) = multiplier * H(j, k);
            if (inside && entropic) M(j, j) += 1.0 / theta[j];
            M(j, j) += zl[j] / (theta[j] - a[j]);
            d[j] = -f1[j] + mu / (theta[j] - a[j]);
            if (boxed[j]) {
                M(j, j) += zu[j] / (b[j] - theta[j]);
                d[j] -= mu / (b[j] - theta[j]);
            }
            ug[j] = g[j];
            one[j] = 1.0;
        }
        factor(M);
        solve(M, one);
        solve(M, d);
        const double one_sum = sum_of(one), d_sum = sum_of(d);
        double dm = 0.0;
        if (inside) {
            solve(M, ug);
            double gd = 0.0, gg = 0.0, g1 = 0.0;
            for (Index j = 0; j < l; ++j) {
                gd += g[j] * d[j];
                gg += g[j] * ug[j];
                g1 += g[j] * one[j];
            }
            dm = (mu / multiplier - slack - gd + g1 * d_sum / one_sum) / (gg + slack / multiplier - g1 * g1 / one_sum);
            nu = -(d_sum + dm * g1) / one_sum;
        } else {
            nu = -d_sum / one_sum;
        }
        double ds = 0.0;
        for (Index j = 0; j < l; ++j) {
            d[j] += inside ? nu * one[j] + dm * ug[j] : nu * one[j];
            ds += g[j] * d[j];
        }
        double tp = 1.0 / TO_BOUNDARY, td = 1.0 / TO_BOUNDARY;
        if (inside) {
            if (ds < 0.0) tp = std::min(tp, -slack / ds);
            if (dm < 0.0) td = std::min(td, -multiplier / dm);
        }
        for (Index j = 0; j < l; ++j) {
            const double low = theta[j] - a[j];
            dzl[j] = mu / low - zl[j] - zl[j] * d[j] / low;
            if (d[j] < 0.0) tp = std::min(tp, -low / d[j]);
            if (dzl[j] < 0.0) td = std::min(td, -zl[j] / dzl[j]);
            if (!boxed[j]) continue;
            const double high = b[j] - theta[j];
            dzu[j] = mu / high - zu[j] + zu[j] * d[j] / high;
            if (d[j] > 0.0) tp = std::min(tp, high / d[j]);
            if (dzu[j] < 0.0) td = std::min(td, -zu[j] / dzu[j]);
        }
        tp = std::min(1.0, TO_BOUNDARY * tp);
        td = std::min(1.0, TO_BOUNDARY * td);
        for (int back = 0; back < 40; ++back) {  // stay inside the level set
            for (Index j = 0; j < l; ++j) trial[j] = theta[j] + tp * d[j];
            if (!inside || loglik(P, w, trial) - c >= (1.0 - TO_BOUNDARY) * slack) break;
            tp *= 0.6;
        }
        copy(trial, theta);
        for (Index j = 0; j < l; ++j) {
            zl[j] = std::max(zl[j] + td * dzl[j], 1e-300);
            if (boxed[j]) zu[j] = std::max(zu[j] + td * dzu[j], 1e-300);
        }
        value = derivatives(P, w, theta, g, H);
        if (inside) {
            multiplier = std::max(multiplier + td * dm, 1e-300);
            slack = value - c;
            if (!(slack > 0.0)) break;
        }
    }
    copy(best_theta, theta);
    return {best, best_multiplier};
}

}  // namespace quercus
