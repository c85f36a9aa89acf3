// Roots of equations in one unknown, for the curves of precise labels (theory §2.9).
#pragma once

#include <algorithm>
#include <cmath>

namespace quercus {

/// Return the root `s >= 1` of `s - ln s = y`, `y >= 1` (Fritsch, Shafer, Crowley 1973).
inline double upper_root(double y) {
    const double e = y - 1.0;
    if (!(e > 1e-14)) return 1.0 + std::sqrt(2.0 * std::max(e, 0.0));
    const double root = std::sqrt(0.5 * e);
    double s = 1.0 + e + 2.0 * root / (1.0 + 0.3361 * root);  // within a few per cent
    for (int step = 0; step < 4; ++step) {
        const double z = s - std::log(s) - y;
        const double q = 2.0 * (1.0 - s) * (1.0 - s + 2.0 / 3.0 * z);
        const double move = z / (1.0 - s) * (q - z) / (q - 2.0 * z);
        s += s * move;
        if (std::abs(move) < 1e-4) break;
    }
    return std::max(s, 1.0);
}

/// Return the root `s > 0` of `s + ln s = y` (Fritsch, Shafer, Crowley 1973).
inline double product_root(double y) {
    if (y < -36.0) return std::exp(y);
    double s = y > 1.5 ? y - std::log(y) * (1.0 - 1.0 / y) : std::log1p(std::exp(y));
    for (int step = 0; step < 4; ++step) {
        const double z = y - s - std::log(s);
        const double q = 2.0 * (1.0 + s) * (1.0 + s + 2.0 / 3.0 * z);
        const double move = z / (1.0 + s) * (q - z) / (q - 2.0 * z);
        s += s * move;
        if (std::abs(move) < 1e-4) break;
    }
    return s;
}

/// Return the greatest `t` with `n ln(t / p) + (N - n) ln((1 - t) / (1 - p)) >= c`, `p = n / N`.
///
/// The result may be a little greater; only rounding can make it less, which is rare.
///
/// The left side is the profile likelihood of one class. It is concave in `u = ln(t / (1 - t))`, so every Newton step
/// ends outside the cut: to the right of the root.
inline double class_end(double n, double N, double c) {
    if (n <= 0.0) return -std::expm1(c / N);
    if (n >= N) return 1.0;
    const double rest = N - n;
    const double log_p = std::log(n / N), log_q = std::log(rest / N);
    double u = std::log(n / rest) + std::sqrt(-2.0 * c * N / (n * rest));
    for (int step = 0; step < 50; ++step) {
        const double x = std::exp(-u);
        const double log_t = -std::log1p(x);
        const double value = n * (log_t - log_p) + rest * (log_t - u - log_q) - c;
        const double move = value / (N / (1.0 + x) - n);
        u += move;
        if (step > 0 && move > -1e-13 * (1.0 + std::abs(u))) break;
    }
    return 1.0 / (1.0 + std::exp(-u));
}

/// Return the entropy of `(t, 1 - t)` in nats.
inline double binary_entropy(double t) {
    return 0.0 < t && t < 1.0 ? -t * std::log(t) - (1.0 - t) * std::log1p(-t) : 0.0;
}

}  // namespace quercus
