// E2M of Gaussian mixtures, one attribute after the other (theory §6).
//
// Throughout: `x`, `w` (n,) numbers and weights, with weight 0 where a number is missing; `log_pl` (l, n) log
// plausibilities; `parameters` (3, l) proportions, means and deviations; `t` (l, n) shares of the classes in each row.
#pragma once

#include <algorithm>
#include <cmath>

#include "../arrays.hpp"
#include "gaussian.hpp"

namespace quercus::forest {

/// Write ``t_ki ∝ pl_ik π_k φ(x_i; μ_k, σ_k)``; return the evidential log-likelihood.
inline double e_step(ConstReals x, ConstRealMatrix log_pl, ConstReals w, ConstRealMatrix parameters, RealMatrix t) {
    const Index l = t.rows, n = t.columns;
    std::vector<double> logs(l);
    for (Index k = 0; k < l; ++k) {
        logs[k] = parameters(0, k) > 0.0 ? std::log(parameters(0, k)) : -std::numeric_limits<double>::infinity();
        logs[k] -= std::log(parameters(2, k)) + LOG_SQRT_2PI;
    }
    double likelihood = 0.0;
    for (Index i = 0; i < n; ++i) {
        double top = std::numeric_limits<double>::lowest();  // all may be minus infinity for a row of weight 0
        for (Index k = 0; k < l; ++k) {
            const double z = (x[i] - parameters(1, k)) / parameters(2, k);
            t(k, i) = log_pl(k, i) + logs[k] - 0.5 * std::min(z * z, FARTHEST);
            top = std::max(top, t(k, i));
        }
        double total = 0.0;
        for (Index k = 0; k < l; ++k) {
            t(k, i) = std::exp(t(k, i) - top);
            total += t(k, i);
        }
        total = std::max(total, TINY);
        for (Index k = 0; k < l; ++k) t(k, i) /= total;
        likelihood += w[i] * (top + std::log(total));
    }
    return likelihood;
}

/// Write the most likely parameters, given shares `t`; a class without a share keeps its mean and deviation.
inline void m_step(ConstReals x, ConstReals w, ConstRealMatrix t, double floor, RealMatrix parameters) {
    const Index l = t.rows, n = t.columns;
    double weight = 0.0;
    for (Index k = 0; k < l; ++k) {
        double total = 0.0, mean = 0.0;
        for (Index i = 0; i < n; ++i) {
            total += w[i] * t(k, i);
            mean += w[i] * t(k, i) * x[i];
        }
        weight += total;
        parameters(0, k) = total;
        if (!(total > 0.0)) continue;
        mean /= total;
        double spread = 0.0;
        for (Index i = 0; i < n; ++i) spread += w[i] * t(k, i) * ((x[i] - mean) * (x[i] - mean));
        parameters(1, k) = mean;
        parameters(2, k) = std::max(std::sqrt(spread / total), floor);
    }
    for (Index k = 0; k < l; ++k) parameters(0, k) = weight > 0.0 ? parameters(0, k) / weight : 1.0 / l;
}

struct Fits {
    OwnedMatrix<double> proportions, means, deviations;
    std::vector<double> likelihood;
    std::vector<int64_t> steps;
};

/// Return parameters (K, l) that no step improves by `epsilon`, the log-likelihoods (K,), and the steps made (K,).
///
/// `x`, `w` (K, n). Means and deviations start as those of the shares `beyond` (l, n), the proportions as those of the
/// shares `plain` (l, n). A class without a share in `beyond` starts with mean and deviation from `plain`, a class
/// without a share in either with `centre` (K,) and `floor` (K,).
inline Fits fit_mixture(ConstRealMatrix x, ConstRealMatrix w, ConstReals centre, ConstReals floor,
                        ConstRealMatrix log_pl, ConstRealMatrix plain, ConstRealMatrix beyond, double epsilon,
                        int64_t max_steps) {
    const Index K = x.rows, l = log_pl.rows;
    Fits found{{K, l}, {K, l}, {K, l}, std::vector<double>(K), std::vector<int64_t>(K)};
    OwnedMatrix<double> t(l, log_pl.columns), parameters(3, l);
    std::vector<double> proportions(l);
    for (Index k = 0; k < K; ++k) {
        for (Index c = 0; c < l; ++c) {
            parameters(1, c) = centre[k];
            parameters(2, c) = floor[k];
        }
        m_step(x[k], w[k], plain, floor[k], parameters);
        std::copy_n(parameters[0].begin(), l, proportions.begin());
        m_step(x[k], w[k], beyond, floor[k], parameters);
        std::copy_n(proportions.begin(), l, parameters[0].begin());
        double now = e_step(x[k], log_pl, w[k], parameters, t);
        int64_t made = 0;
        for (bool gaining = true; gaining && made < max_steps; ++made) {
            m_step(x[k], w[k], t, floor[k], parameters);
            const double before = now;
            now = e_step(x[k], log_pl, w[k], parameters, t);
            gaining = now - before >= epsilon;
        }
        found.likelihood[k] = now;
        found.steps[k] = made;
        std::copy_n(parameters[0].begin(), l, found.proportions[k].begin());
        std::copy_n(parameters[1].begin(), l, found.means[k].begin());
        std::copy_n(parameters[2].begin(), l, found.deviations[k].begin());
    }
    return found;
}

}  // namespace quercus::forest
