// Labels that name one class or exclude one: the maximiser has a closed form at a given price (theory §2.10).
//
// A label that names class `j` has the likelihood `theta_j`; one that only excludes class `j` has `1 - theta_j`. With
// three classes, every label that is a set is of one of these kinds. With `n_j` and `m_j` their weights,
//
//     `l(theta) = sum_j f_j(theta_j)`,  `f_j(t) = n_j ln t + m_j ln(1 - t)`,
//
// and with a price of probability (a multiplier) the maximum has `f_j'(t) = price`, a quadratic equation
// (`best_share`). The maximiser belongs to the price with `sum_j share_j(price) = 1`; the sum falls as the price rises.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "loglik.hpp"

namespace quercus {

constexpr int PRICE_STEPS = 60;  // maximum number of Newton's steps; 3 to 6 are usual

/// The weight of the labels that name each class, and of those that exclude it.
struct Separable {
    std::vector<double> n, m;  // (l,)
};

/// Add up the weights of a problem's labels; false if some label is of neither kind, or none excludes a class.
inline bool separate(ConstRealMatrix P, ConstReals w, Separable& found) {
    const Index l = P.columns;
    found.n.assign(l, 0.0);
    found.m.assign(l, 0.0);
    bool some = false;
    for (Index i = 0; i < P.rows; ++i) {
        Index ones = 0, zeros = 0, one = 0, zero = 0;
        for (Index j = 0; j < l; ++j) {
            if (P(i, j) == 1.0) {
                ++ones;
                one = j;
            } else if (P(i, j) == 0.0) {
                ++zeros;
                zero = j;
            }
        }
        if (ones == 1 && zeros == l - 1) {
            found.n[one] += w[i];
        } else if (zeros == 1 && ones == l - 1) {
            found.m[zero] += w[i];
            some = true;
        } else {
            return false;
        }
    }
    return some;
}

/// Return the maximiser of `n ln t + m ln(1 - t) - price t` on `[0, 1]`; `price` is not 0 if `n` and `m` are.
inline double best_share(double n, double m, double price) {
    const double q = price + n + m;
    const double d = price + m - n;
    const double root = std::sqrt(d * d + 4.0 * n * m);
    return q > 0.0 ? 2.0 * n / (q + root) : (q - root) / (2.0 * price);
}

/// Return `-f''(t)`.
inline double steepness(double n, double m, double t) {
    const double u = 1.0 - t;
    return (n > 0.0 ? n / (t * t) : 0.0) + (m > 0.0 ? m / (u * u) : 0.0);
}

/// Write the only maximiser into `theta`; false if there may be more than one.
inline bool maximise_separable(ConstReals n, ConstReals m, Reals theta) {
    const Index l = length(n);
    double W = 0.0, named = 0.0;                 // weight of all labels, and of those that name a class
    double unpriced = 0.0;                       // the sum of shares at price 0
    Index last_unlabelled = -1, unlabelled = 0;  // a class that no label names or excludes, and the number of these
    for (Index j = 0; j < l; ++j) {
        W += n[j] + m[j];
        named += n[j];
        if (n[j] + m[j] > 0.0) {
            unpriced += n[j] / (n[j] + m[j]);
        } else {
            ++unlabelled;
            last_unlabelled = j;
        }
    }
    double lo = -2.0 * W;  // at this price, two classes with labels have shares of 1/2 or more
    double hi = named;     // at this price, no share exceeds `n_j / named`
    if (unlabelled > 0) {
        if (unpriced <= 1.0) {
            if (unlabelled > 1) return false;
            for (Index j = 0; j < l; ++j) theta[j] = j != last_unlabelled ? n[j] / (n[j] + m[j]) : 1.0 - unpriced;
            return true;
        }
        lo = 0.0;
    }
    double price = named;
    for (Index j = 0; j < l; ++j) {
        const double even = (n[j] + (W - named - m[j]) / (l - 1.0)) / W;
        price -= m[j] > 0.0 ? m[j] * std::min(even / (1.0 - even), 2.0) : 0.0;
    }
    price = std::min(price, hi);
    double total = 0.0;
    for (int step = 0; step < PRICE_STEPS; ++step) {
        if (!(lo < price && price <= hi)) price = 0.5 * (lo + hi);
        total = 0.0;
        double rate = 0.0;
        for (Index j = 0; j < l; ++j) {
            theta[j] = n[j] + m[j] > 0.0 ? best_share(n[j], m[j], price) : 0.0;
            total += theta[j];
            // the price does not change shares of 0 and 1
            if (0.0 < theta[j] && theta[j] < 1.0) rate += 1.0 / steepness(n[j], m[j], theta[j]);
        }
        if (std::abs(total - 1.0) <= 4e-16 || hi - lo <= 4e-16 * std::abs(price)) break;
        (total > 1.0 ? lo : hi) = price;
        price -= rate > 0.0 ? total * (1.0 - total) / rate : INFINITE;  // in 1 / total: exact if all m are 0
    }
    for (Index j = 0; j < l; ++j) theta[j] /= total;
    return true;
}

}  // namespace quercus
