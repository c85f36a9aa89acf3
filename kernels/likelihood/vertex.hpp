// Least entropy over the likelihood cut of precise labels: the part of the curve towards the vertex (theory §2.9).
//
// For `t < 1` the likelihood may rise again along the curve of `precise.hpp`. The roots of `l = c` there are enclosed
// by bisection. A piece `[a, b]` of the curve need not be divided if none of its points can lie on the border of the
// cut, or if the likelihood is monotone on it, so that it contains at most one root. With `r_j = theta_j / theta_1` and
// `R` their sum, which rise with `t`,
//
//     `l = sum_(j>1) n_j ln r_j - N ln(1 + R) + constant`  and  `dl/dt = sum_(j>1) r_j' (n_1 s_j / t - N theta_1)`,
//
// which is above 0 on the whole piece if `n_1 s_2(b) / b >= N theta_1(a)`.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "loglik.hpp"
#include "roots.hpp"

namespace quercus {

constexpr double SMALLEST = 1e-200;  // least t: nearer to the vertex the entropy is practically 0
constexpr int MOST_PIECES = 2'000;   // maximum number of pieces examined

/// One end of an entropy interval, in nats: the proven bound, and the value at a point of the cut.
struct EntropyEnd {
    double bound, reached;
};

struct CurvePoint {
    double value;   // l(theta) - l(n / N)
    double mu;      // the multiplier
    double second;  // s_2
};

/// Write the point of the curve at `t` into `theta`.
inline CurvePoint curve_point(ConstReals n, ConstReals logs, double t, Reals theta) {
    const Index l = length(n);
    const double N = sum_of(n);
    const double k = t - std::log(t) + logs[0];
    theta[0] = n[0] / t;
    double Z = theta[0];
    double second = 1.0;
    for (Index j = 1; j < l; ++j) {
        const double s = upper_root(k - logs[j]);
        if (j == 1) second = s;
        theta[j] = n[j] / s;
        Z += theta[j];
    }
    double value = 0.0;
    for (Index j = 0; j < l; ++j) {
        theta[j] /= Z;
        value += n[j] * std::log(theta[j] * (N / n[j]));
    }
    return {value, 1.0 / Z, second};
}

/// Return the entropy of positive probabilities, in nats.
inline double entropy_of(ConstReals theta) {
    double total = 0.0;
    for (double t : theta) total -= t * std::log(t);
    return total;
}

/// Return the end `known` from the part `t >= 1` of the curve, updated for the part `t < 1`.
inline EntropyEnd bound_beyond(ConstReals n, ConstReals logs, double c, double inner_c, double tolerance,
                               EntropyEnd known, int most) {
    struct Piece {
        double lo, hi;
    };
    const Index l = length(n);
    const double N = sum_of(n);
    auto [bound, reached] = known;
    std::vector<double> a(l), b(l);
    // for any smaller t the likelihood is below the cut: l < (N - n_1) ln t + N ln(N / n_1)
    double last = std::exp((c - N * std::log(N / n[0])) / (N - n[0])) * 0.99;
    if (last >= 1.0) return known;
    if (last < SMALLEST) {
        last = SMALLEST;
        const double value = curve_point(n, logs, last, a).value;
        if (value >= inner_c) return {0.0, entropy_of(a)};
        if (value >= c) bound = 0.0;
    }
    std::vector<Piece> pieces{{last, 1.0}};
    const int limit = most > 20 ? MOST_PIECES : 10 * most;
    for (int examined = 1; !pieces.empty() && examined <= limit; ++examined) {
        const auto [lo, hi] = pieces.back();
        pieces.pop_back();
        const auto [l_lo, mu_lo, second_lo] = curve_point(n, logs, lo, a);
        const auto [l_hi, mu_hi, second] = curve_point(n, logs, hi, b);
        double r_lo = 0.0, r_hi = 0.0, total = 0.0;
        for (Index j = 1; j < l; ++j) {
            r_lo += a[j] / a[0];
            r_hi += b[j] / b[0];
            total += n[j] * std::max(std::log(b[j] / b[0] * (a[0] / a[j])), 0.0);
        }
        const double fall = N * std::max(std::log1p(r_hi) - std::log1p(r_lo), 0.0);
        const double h_a = entropy_of(a), h_b = entropy_of(b);
        if (l_lo >= inner_c) reached = std::min(reached, h_a);
        if (l_hi >= inner_c) reached = std::min(reached, h_b);
        // from one end to the other, the first sum of the likelihood can only rise and the second only lower it
        if (std::min(l_lo + total, l_hi + fall) < c || std::max(l_lo - fall, l_hi - total) > inner_c) continue;
        const bool monotone = n[0] * second / hi >= N * a[0] * (1.0 + 1e-12);
        if (monotone && (l_hi < c || l_lo > inner_c)) continue;
        // some point of the piece may lie on the border of the cut; its entropy follows from dH = mu dl along the
        // piece, on which mu = t / (n_1 (1 + R)) changes by at most `change`
        const double change = (hi * (1.0 + r_hi) - lo * (1.0 + r_lo)) / (n[0] * (1.0 + r_lo) * (1.0 + r_hi));
        double low;
        if (monotone)  // the likelihood only rises or only falls on the way to the border of the cut
            low = std::max(h_a + mu_lo * (c - l_lo) - change * std::abs(c - l_lo),
                           h_b + mu_hi * (c - l_hi) - change * std::abs(c - l_hi));
        else low = std::max(h_a + mu_lo * (c - l_lo), h_b + mu_hi * (c - l_hi)) - change * (total + fall);
        if (low >= reached - tolerance || hi - lo <= 1e-15 * hi) {
            bound = std::min(bound, low);
            continue;
        }
        double mid = std::sqrt(lo * hi);
        if (monotone && examined % 3 > 0 && l_lo < c &&
            l_hi > inner_c) {  // false position, alternately on either side of the root
            const double aside = 0.4 * tolerance / mu_hi;
            const double aim = examined % 3 == 1 ? inner_c + aside : c - aside;
            mid = lo * std::pow(hi / lo, (aim - l_lo) / (l_hi - l_lo));
            if (!(lo < mid && mid < hi)) mid = std::sqrt(lo * hi);
        }
        pieces.push_back({lo, mid});
        pieces.push_back({mid, hi});
    }
    for (const Piece& piece : pieces) {  // undecided; an entropy is at least -ln of the greatest probability
        curve_point(n, logs, piece.lo, a);
        bound = std::min(bound, -std::log(a[0]));
    }
    return {bound, reached};
}

}  // namespace quercus
